// Package source opens recordings. A recording is recognised by its content, opened
// once, and says what it has: tables of counts, samples, code. The formats are
// registered here and nowhere else; each is a package of its own.
//
//	rec, err := source.Open("perf.data")
//	tables := rec.Tables(0)
//	for tables.Next() {
//		use(tables.Table())
//	}
//	err = tables.Err()
//
// The package promises that no content of a file makes it panic: it returns an error.
package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/accounts"
	"github.com/cyclestack/cyclestack/internal/source/oprofile"
	"github.com/cyclestack/cyclestack/internal/source/perfscript"
	"github.com/cyclestack/cyclestack/internal/source/published"
	"github.com/cyclestack/cyclestack/internal/source/threshold"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// A Reader yields the tables of a recording one at a time.
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

// A format is one that recordings are recognised by.
type format struct {
	detect func(head []byte) bool
	tables func(src io.Reader, name string, parts []perfdata.Part) Reader
	what   what
}

// what is what the recordings of a format have besides tables.
type what uint8

const (
	tablesOnly what = iota
	sampled         // samples, perhaps
	rows            // of places in the code, as opreport printed them
	script          // samples, as perf script printed them
	simulated       // a simulator's counts by place in the code
	kept            // accounts that this program has written
)

// formats are the registered formats, in the order of trial.
var formats = []format{
	{perfdata.Detect, func(src io.Reader, name string, parts []perfdata.Part) Reader {
		return perfdata.NewTableReader(src, name, perfdata.TableOptions{Reader: perfdata.Options{Parts: parts}})
	}, sampled},
	{simulation.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return simulation.NewReader(src, name, simulation.ReaderOptions{})
	}, simulated},
	{accounts.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return accounts.NewReader(src, name)
	}, kept},
	{perfstat.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return perfstat.NewReader(src, name, perfstat.Options{})
	}, tablesOnly},
	{threshold.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return threshold.NewReader(src, name)
	}, tablesOnly},
	{oprofile.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return oprofile.NewReader(src, name)
	}, rows},
	{perfscript.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return perfscript.NewReader(src, name)
	}, script},
	{published.Detect, func(src io.Reader, name string, _ []perfdata.Part) Reader {
		return published.NewReader(src, name)
	}, tablesOnly},
}

// ErrFormat is returned for a file that no format recognises.
var ErrFormat = errors.New("not a recording that cyclestack knows")

// A Recording is an opened recording: a file, a directory of perf record --threads, or
// a stream, such as standard input or a pipe. A stream can be read once, and all else
// several times, one reading after the other.
type Recording struct {
	name   string
	format *format
	file   io.ReadSeeker   // nil for a stream
	stream *bufio.Reader   // nil for a file
	parts  []perfdata.Part // of a directory
	close  func() error
	read   bool // somebody reads the stream

	// Progress, if it is not nil, is told how many bytes were read, and how many there are: -1
	// in a stream before its end. A file that is read again has more than its size read. Calls
	// may be concurrent.
	Progress func(read, size int64)
	passed   atomic.Int64
	size     int64
}

// Open opens a recording; "-" is standard input.
func Open(name string) (*Recording, error) {
	if name == "-" {
		return New(os.Stdin, name)
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
	r.close = f.Close
	return r, nil
}

func openDir(name string) (*Recording, error) {
	d, err := perfdata.OpenDir(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: is a directory, and none that perf record --threads wrote; name the recordings in it", name)
	}
	if err != nil {
		return nil, err
	}
	r := &Recording{name: name, format: &formats[0], parts: d.Parts, close: d.Close}
	r.file, _ = r.watch(d.Head).(io.ReadSeeker)
	for i := range r.parts {
		r.parts[i].R = r.watch(r.parts[i].R)
	}
	return r, nil
}

// New opens the recording that src holds. The name is for messages. Of a stream it
// waits for no more than it takes to recognise what comes out of it.
func New(src io.Reader, name string) (*Recording, error) {
	r := &Recording{name: name, close: func() error { return nil }}
	src = r.watch(src)
	f, ok := src.(watchedFile)
	b := bufio.NewReaderSize(src, headSize)
	var err error
	if r.format, err = recognise(b, name); err != nil {
		return nil, err
	}
	if ok {
		r.file = f
	} else {
		r.stream = b
	}
	return r, nil
}

// headSize is how much of a recording is looked at to recognise it, in bytes.
const headSize = 64 << 10

// recognise finds the format of a recording by its first bytes.
func recognise(b *bufio.Reader, name string) (*format, error) {
	for {
		head, err := peek(b)
		for i := range formats {
			if formats[i].detect(head) {
				return &formats[i], nil
			}
		}
		switch {
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("%s: %w", name, err)
		case err == io.EOF && len(head) == 0:
			return nil, fmt.Errorf("%s: empty", name)
		case err == io.EOF || len(head) == headSize:
			return nil, unrecognised(b, head, name)
		}
	}
}

// peek waits for the next piece of a stream, and returns all of its beginning that is
// there.
func peek(b *bufio.Reader) ([]byte, error) {
	head, err := b.Peek(min(b.Buffered()+1, headSize))
	if err == nil {
		head, _ = b.Peek(b.Buffered())
	}
	return head, err
}

// A formatError is an ErrFormat that says what is wrong in its own words.
type formatError struct{ err error }

func (e *formatError) Error() string   { return e.err.Error() }
func (e *formatError) Unwrap() []error { return []error{e.err, ErrFormat} }

// others are tools whose output is not read, by a text in it, and what to do instead.
var others = []struct{ text, tool, instead string }{
	{"Measuring group ", "likwid-perfctr", countInstead},
	{"Hardware Event Count:", "VTune", countInstead},
	{"MUX Reliability:", "VTune", countInstead},
	{"Group,Metric,", "Arm's topdown-tool", countInstead},
	{"run,time,level,stage,group,metric,", "Arm's topdown-tool", countInstead},
	{"Avg_MHz\tBusy%", "turbostat", countInstead},
	{"Trace Event Information", "perf c2c report", dataInstead},
	{"# Total weight :", "perf mem report", dataInstead},
	{"# Overhead ", "perf report", dataInstead},
	{`{"name": "Level1", "ph": "C"`, "toplev --json", "print it with -x,"},
	{"% Slots", "toplev --columns", "print it with -x,"},
}

const (
	countInstead = "count with perf stat, and give its output"
	dataInstead  = "give the perf.data that it was printed from"
)

// unrecognised says what a file is that no format recognises. The reader of
// perf stat's output knows what people take for it.
func unrecognised(b io.Reader, head []byte, name string) error {
	for _, o := range others {
		if bytes.Contains(head, []byte(o.text)) {
			return &formatError{fmt.Errorf("%s: this is output of %s, and is not read: %s", name, o.tool, o.instead)}
		}
	}
	r := perfstat.NewReader(b, name, perfstat.Options{})
	for r.Next() {
	}
	if err := r.Err(); err != nil {
		return &formatError{err}
	}
	return fmt.Errorf("%s: %w", name, ErrFormat)
}
