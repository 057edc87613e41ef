package valgrind

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
)

// Keep writes the files of the simulation into one, with the share of last-level misses that a
// further cache answers: the simulator does not know it. Each file is a part of it, as in
// callgrind's own files with several parts.
func (s *Simulation) Keep(w io.Writer, beyond float64) error {
	out := bufio.NewWriter(w)
	for i, name := range s.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if i == 0 {
			if text, err = describeBeyond(text, beyond); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return out.Flush()
}

// describeBeyond adds a description to the header of a file: before the command, where both
// simulators have theirs.
func describeBeyond(text []byte, beyond float64) ([]byte, error) {
	at := bytes.Index(text, []byte("cmd:"))
	if at < 0 || at > 0 && text[at-1] != '\n' {
		return nil, fmt.Errorf("it names no command")
	}
	line := fmt.Sprintf("desc: %s: %g\n", beyondDescription, beyond)
	return bytes.Join([][]byte{text[:at], text[at:]}, []byte(line)), nil
}
