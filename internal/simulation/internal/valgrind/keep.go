package valgrind

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
)

// Keep writes the files of the simulation into one, with what the simulator does
// not know: how many misses of the last simulated cache a further one
// answers. Each file is a
// part of it, as of one that callgrind itself has written with several parts.
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

// describeBeyond adds a description to the header of a file, where both simulators
// have theirs: before the command.
func describeBeyond(text []byte, beyond float64) ([]byte, error) {
	at := bytes.Index(text, []byte("cmd:"))
	if at < 0 || at > 0 && text[at-1] != '\n' {
		return nil, fmt.Errorf("it names no command")
	}
	line := fmt.Sprintf("desc: %s: %g\n", beyondDescription, beyond)
	return bytes.Join([][]byte{text[:at], text[at:]}, []byte(line)), nil
}
