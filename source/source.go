// Package source opens recordings: it tells from a file's content what wrote
// it and returns a reader of counts. It is the one place where input formats
// are registered; each format is a package below this one.
package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/accounts"
	"github.com/cyclestack/cyclestack/internal/source/threshold"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// A Reader yields the tables of a recording one at a time.
//
//	for r.Next() {
//		use(r.Table())
//	}
//	err := r.Err()
type Reader interface {
	// Next advances to the next table.
	Next() bool
	// Table returns the current table. It belongs to the reader and is valid
	// until the next call of Next; its *Layout stays the same pointer as long
	// as columns and scopes do.
	Table() *counts.Table
	// Err returns the error that ended the reading, nil at the end.
	Err() error
	// Kind says what wrote the recording, such as "perf-stat-csv". It is known
	// after the first Next.
	Kind() string
}

// A Keeper is a reader that sums what it reads, as one of samples does: it is
// told before the first Next which scopes to keep apart. Others yield all the
// scopes that they have.
type Keeper interface{ Keep(counts.By) }

// sniff is how much of a file is looked at to recognise it.
const sniff = 64 << 10

// formats are the registered formats, in the order in which they are tried.
var formats = []struct {
	name   string
	detect func(head []byte) bool
	open   func(r io.Reader, name string) Reader
	seeks  bool // it reads a file better by its parts than in one stream
}{
	{"perf.data", perfdata.Detect, func(r io.Reader, name string) Reader {
		return perfdata.NewTableReader(r, name, perfdata.TableOptions{})
	}, true},
	{"callgrind", simulation.Detect, func(r io.Reader, name string) Reader {
		return simulation.NewReader(r, name, simulation.ReaderOptions{})
	}, false},
	{"accounts", accounts.Detect, func(r io.Reader, name string) Reader {
		return accounts.NewReader(r, name)
	}, false},
	{"perf stat", perfstat.Detect, func(r io.Reader, name string) Reader {
		return perfstat.NewReader(r, name, perfstat.Options{})
	}, false},
	{"load-latency thresholds", threshold.Detect, func(r io.Reader, name string) Reader {
		return threshold.NewReader(r, name)
	}, false},
}

// ErrFormat is returned for a file that no format recognises.
var ErrFormat = errors.New("not a recording that cyclestack knows")

// New returns a reader of the recording that r holds. The name is for
// messages. Of a pipe it waits for no more than it takes to recognise what
// comes out of it.
func New(r io.Reader, name string) (Reader, error) {
	b := bufio.NewReaderSize(r, sniff)
	for {
		// One byte more than there is, so as to wait for the next piece.
		head, err := b.Peek(min(b.Buffered()+1, sniff))
		if err == nil {
			head, _ = b.Peek(b.Buffered())
		}
		for _, f := range formats {
			if !f.detect(head) {
				continue
			}
			if f.seeks && rewind(r) {
				return f.open(r, name), nil
			}
			return f.open(b, name), nil
		}
		switch {
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("%s: %w", name, err)
		case err == io.EOF && len(head) == 0:
			return nil, fmt.Errorf("%s: empty", name)
		case err == io.EOF || len(head) == sniff:
			return nil, unrecognised(b, name)
		}
	}
}

// rewind returns to the beginning of what can be read at any place, as a file
// can and a pipe cannot.
func rewind(r io.Reader) bool {
	f, ok := r.(io.ReadSeeker)
	if _, at := r.(io.ReaderAt); !ok || !at {
		return false
	}
	_, err := f.Seek(0, io.SeekStart)
	return err == nil
}

// A formatError is an ErrFormat that says what is wrong in its own words.
type formatError struct{ err error }

func (e *formatError) Error() string   { return e.err.Error() }
func (e *formatError) Unwrap() []error { return []error{e.err, ErrFormat} }

// unrecognised says what a file is that no format recognises. The reader of
// perf stat's output knows what people take for it.
func unrecognised(b io.Reader, name string) error {
	r := perfstat.NewReader(b, name, perfstat.Options{})
	for r.Next() {
	}
	if err := r.Err(); err != nil {
		return &formatError{err}
	}
	return fmt.Errorf("%s: %w: it reads perf.data, perf stat's text, CSV and JSON, callgrind's and cachegrind's files, cyclestack's own JSON, and tables of load-latency thresholds", name, ErrFormat)
}

// A File is an opened recording.
type File struct {
	Reader
	c io.Closer
}

// Keep says which scopes to keep apart, if the recording is one of samples.
func (f *File) Keep(by counts.By) {
	if k, ok := f.Reader.(Keeper); ok {
		k.Keep(by)
	}
}

// Close closes the file.
func (f *File) Close() error { return f.c.Close() }

// Open opens a recording; "-" is standard input. A directory is one if perf
// record --threads wrote it.
func Open(name string) (*File, error) {
	if in, err := Stream(name); in != nil || err != nil {
		if err != nil {
			return nil, err
		}
		r, err := New(in, name)
		if err != nil {
			return nil, err
		}
		return &File{r, io.NopCloser(in)}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return openDir(name)
	}
	r, err := New(f, name)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{r, f}, nil
}

func openDir(name string) (*File, error) {
	d, err := perfdata.OpenDir(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: is a directory, and none that perf record --threads wrote; name the recordings in it", name)
	}
	if err != nil {
		return nil, err
	}
	r := perfdata.NewTableReader(d.Head, name, perfdata.TableOptions{Reader: perfdata.Options{Parts: d.Parts}})
	return &File{r, d}, nil
}
