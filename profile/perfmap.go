package profile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/internal/object"
)

// perfMapName is the file with the names of code that just-in-time compilers made for a
// process.
func perfMapName(pid int) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }

// readPerfMap reads a perf map: lines of an address and a size in hexadecimal, and a name
// that may contain blanks. Source: tools/perf/Documentation/jit-interface.txt of Linux.
// Lines of another form are left out and counted; the last one may be truncated.
func readPerfMap(r io.Reader) (t *nameTable, odd int, err error) {
	t = &nameTable{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		start, size, name, ok := perfMapLine(s.Bytes())
		if !ok {
			odd++
			continue
		}
		if !t.add(start, size, name) {
			return nil, odd, fmt.Errorf("there are too many symbols")
		}
	}
	t.settle()
	return t, odd, s.Err()
}

func perfMapLine(line []byte) (start, size uint64, name []byte, ok bool) {
	a, rest, ok1 := bytes.Cut(line, []byte(" "))
	b, name, ok2 := bytes.Cut(rest, []byte(" "))
	start, ok3 := parseHex(bytes.TrimPrefix(a, []byte("0x")))
	size, ok4 := parseHex(bytes.TrimPrefix(b, []byte("0x")))
	return start, size, name, ok1 && ok2 && ok3 && ok4 && len(name) > 0 && start+size >= start
}

func openPerfMap(path string) (*nameTable, string, error) {
	if err := object.Regular(path); err != nil {
		return nil, "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	t, odd, err := readPerfMap(f)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	note := ""
	if odd > 0 {
		note = fmt.Sprintf("%s: %d lines are no symbols", path, odd)
	}
	return t, note, nil
}
