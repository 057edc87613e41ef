package profile

import (
	"fmt"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/internal/object"
)

// readPerfMap reads a perf map. Lines of another form are counted.
func readPerfMap(r io.Reader) (t *nameTable, odd int, err error) {
	t = &nameTable{}
	odd, err = object.ReadPerfMap(r, t.add)
	if err != nil {
		return nil, odd, err
	}
	t.settle()
	return t, odd, nil
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
