package perfdata

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A Part is a file of records without a header, of a directory that perf record
// --threads wrote.
type Part struct {
	Name string // for messages
	R    io.Reader
}

// A Dir is an opened directory of perf record --threads.
type Dir struct {
	Head  *os.File // the file "data", for NewReader
	Parts []Part   // "data.0", …, for Options.Parts
	files []*os.File
}

// maxParts bounds the files of a directory: perf has at most one thread, and one file,
// for each logical processor.
const maxParts = 4096

// OpenDir opens the files of a directory that perf record --threads wrote. The
// error is an os.ErrNotExist if it is no such directory.
func OpenDir(path string) (*Dir, error) {
	head, err := os.Open(filepath.Join(path, "data"))
	if err != nil {
		return nil, err
	}
	d := &Dir{Head: head}
	for i := range maxParts {
		name := filepath.Join(path, fmt.Sprintf("data.%d", i))
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			return d, nil
		}
		if err != nil {
			d.Close()
			return nil, err
		}
		d.files = append(d.files, f)
		d.Parts = append(d.Parts, Part{name, f})
	}
	d.Close()
	return nil, fmt.Errorf("%s: more than %d files", path, maxParts)
}

// Close closes the files.
func (d *Dir) Close() error {
	err := d.Head.Close()
	for _, f := range d.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// nextPart goes on to the next file of a directory. It returns false if there is
// none, or if the current one failed.
func (r *Reader) nextPart() bool {
	if len(r.data.parts) == 0 || r.data.win.err != io.EOF || r.stats.Truncated >= 0 {
		return false
	}
	r.endUnpack()
	if r.stats.Truncated >= 0 {
		return false
	}
	part := r.data.parts[0]
	r.data.parts = r.data.parts[1:]
	r.name, r.data.begin, r.data.bound, r.packed.joined = part.Name, 0, -1, 0
	if r.data.win.ahead != nil {
		r.data.win.stopAhead()
	}
	r.data.win = window{r: part.R, buf: r.data.win.buf}
	return true
}
