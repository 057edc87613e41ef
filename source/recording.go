package source

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/internal/source/oprofile"
	"github.com/cyclestack/cyclestack/internal/source/perfscript"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Name returns the name that the recording was opened by.
func (r *Recording) Name() string { return r.name }

// Close closes the recording.
func (r *Recording) Close() error { return r.close() }

// Stream reports whether the recording can be read only once.
func (r *Recording) Stream() bool { return r.stream != nil }

// Kept reports whether the recording is a document of accounts that this program
// wrote. Its places in the code are those that it names.
func (r *Recording) Kept() bool { return r.format.what == kept }

// Simulated reports whether a simulator wrote the recording.
func (r *Recording) Simulated() bool { return r.format.what == simulated }

// onlyText is the error of what needs more than the text of samples; nil for other recordings.
func (r *Recording) onlyText() error {
	if r.format.what != script {
		return nil
	}
	return fault.Inputf("%s: this is text of perf script, which is reported by comm, process, thread, cpu, module and function: give perf.data itself", r.name)
}

// HasSamples reports whether the recording has samples, which may be split by place in
// the code. A perf.data file without is one of perf stat record.
func (r *Recording) HasSamples() bool {
	if r.format.what != sampled || r.parts != nil {
		return r.parts != nil || r.format.what == script
	}
	if r.read {
		return false
	}
	b := r.stream
	if b == nil {
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return false
		}
		b = bufio.NewReaderSize(r.file, headSize)
	}
	for {
		head, err := peek(b)
		if samples, decided := perfdata.HoldsSamples(head); decided || err != nil || len(head) == headSize {
			return samples
		}
	}
}

// Head returns up to n bytes from the beginning, none of a stream. Readers of it go on where they are.
func (r *Recording) Head(n int) []byte {
	file, ok := r.file.(io.ReaderAt)
	if !ok {
		return nil
	}
	head, _ := io.ReadAll(io.NewSectionReader(file, 0, int64(n)))
	return head
}

// Tables returns a reader of the recording's counts. Samples are summed by the scopes
// of by; other recordings yield all scopes that they have.
func (r *Recording) Tables(by counts.By) Reader {
	src, err := r.start()
	if err != nil {
		return failedReader{err}
	}
	if r.file != nil && r.format.what != sampled {
		src = bufio.NewReaderSize(src, headSize)
	}
	t := r.format.tables(src, r.name, r.parts)
	if k, ok := t.(interface{ Keep(counts.By) }); ok {
		k.Keep(by)
	}
	return t
}

// start returns the recording from its beginning.
func (r *Recording) start() (io.Reader, error) {
	if r.stream != nil {
		if r.read {
			return nil, fmt.Errorf("%s: it can be read only once", r.name)
		}
		r.read = true
		return r.stream, nil
	}
	return r.file, r.rewind()
}

// rewind goes to the beginning of all files.
func (r *Recording) rewind() error {
	list := []io.Seeker{r.file}
	for _, p := range r.parts {
		if f, ok := p.R.(io.Seeker); ok {
			list = append(list, f)
		}
	}
	for _, f := range list {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// A failedReader is a reader of what cannot be read.
type failedReader struct{ err error }

func (f failedReader) Next() bool           { return false }
func (f failedReader) Table() *counts.Table { return nil }
func (f failedReader) Err() error           { return f.err }
func (f failedReader) Kind() string         { return "" }
func (f failedReader) Close() error         { return nil }

// A PlaceReader yields one table by place in the code. Its first scope is the whole.
// It must be closed, before the recording.
type PlaceReader interface {
	Reader
	Close() error
}

// What samples are read as. Their packages are internal; importers name them here.
type (
	SampleOptions = samples.Options // which samples are read, and by what they are split
	Stacks        = samples.Stacks
	Access        = samples.Access // a load that was sampled with its latency
	Memory        = samples.Memory
	Code          = code.Reader
)

// Samples returns the samples by place in the code, and by what else the options
// say. Its Err is perfdata.ErrFormat for what is no perf.data file.
func (r *Recording) Samples(o SampleOptions) PlaceReader {
	src, err := r.start()
	if err != nil {
		return failedReader{err}
	}
	if r.format.what == rows {
		if !reflect.ValueOf(o.Filter).IsZero() || o.Within != 0 || o.Interval > 0 || o.By != counts.Module && o.By != counts.Function {
			return failedReader{fault.Usagef("%s: opreport's rows are by module or function, without other kinds and filters", r.name)}
		}
		return oprofile.NewPlaceReader(src, r.name, o.By)
	}
	if r.format.what == script {
		const known = counts.By(1<<counts.Comm | 1<<counts.Process | 1<<counts.Thread | 1<<counts.CPU)
		if !reflect.ValueOf(o.Filter).IsZero() || o.Within&^known != 0 || o.Interval > 0 || o.By != counts.Run && o.By != counts.Module && o.By != counts.Function {
			return failedReader{r.onlyText()}
		}
		return perfscript.NewPlaceReader(src, r.name, o.By, o.Within)
	}
	o.Reader.Parts = r.parts
	return samples.NewReader(src, r.name, o)
}

// Stacks returns the stacks of samples. What is a stream is first copied to a
// temporary file. The stacks must be closed.
func (r *Recording) Stacks(o SampleOptions) (*Stacks, error) {
	src, done, err := r.twice()
	if err != nil {
		return nil, err
	}
	defer done()
	o.Reader.Parts = r.parts
	return samples.ReadStacks(src, r.name, o)
}

// Memory hands on the loads that were sampled with a latency. What is a stream is
// first copied to a temporary file.
func (r *Recording) Memory(o SampleOptions, each func(*Access)) (*Memory, error) {
	src, done, err := r.twice()
	if err != nil {
		return nil, err
	}
	defer done()
	o.Reader.Parts = r.parts
	return samples.ReadMemory(src, r.name, o, each)
}

// Code returns the code that samples were taken in. It reads the recording whenever it
// is asked for more, so that it is for files only. It must be closed, before the
// recording.
func (r *Recording) Code(symbols profile.Config) (*Code, error) {
	if err := r.onlyText(); err != nil {
		return nil, err
	}
	if r.file == nil {
		return nil, fmt.Errorf("%s: it has to be read several times, which a stream cannot be", r.name)
	}
	return code.New(r.file, r.parts, r.name, symbols)
}

// SimulatedPlaces returns a simulator's counts by place in the code, within functions
// if that is among the options. Of a filter only what is about code counts. Programs
// are below the options' Symbols.Root.
func (r *Recording) SimulatedPlaces(o SampleOptions) PlaceReader {
	src, err := r.start()
	if err != nil {
		return failedReader{err}
	}
	only := o.Filter.Code()
	opts := simulation.ReaderOptions{By: o.By, Within: o.Within, Chains: true, Root: o.Symbols.Root}
	if only != nil {
		opts.Only = only.Match
	}
	return &filteredReader{simulation.NewReader(bufio.NewReaderSize(src, headSize), r.name, opts), only, r.name, nil}
}

// A filteredReader yields no table if the filter leaves no place.
type filteredReader struct {
	*simulation.Reader
	only *samples.CodeFilter // nil if all count
	name string
	none error
}

func (f *filteredReader) Next() bool {
	if !f.Reader.Next() {
		return false
	}
	if f.only != nil {
		f.none = f.only.Err(f.name)
	}
	return f.none == nil
}

func (f *filteredReader) Err() error { return cmp.Or(f.none, f.Reader.Err()) }

// twice returns what can be read twice: the file, or a copy of the stream. The function
// it returns gives up the copy.
func (r *Recording) twice() (io.ReadSeeker, func(), error) {
	if err := r.onlyText(); err != nil {
		return nil, nil, err
	}
	src, err := r.start()
	if err != nil {
		return nil, nil, err
	}
	if r.file != nil {
		return r.file, func() {}, nil
	}
	f, err := spool(src)
	if err != nil {
		return nil, nil, fmt.Errorf("%s has to be read twice, and cannot be kept for that: %w", r.name, err)
	}
	return f, func() { f.Close() }, nil
}

// spool copies a stream to a file without a name.
func spool(src io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "cyclestack-*")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	if _, err := io.Copy(f, src); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SampleTimes returns the times of the first and the last sample in nanoseconds, by the
// machine's clock. They are false for a stream, and if the header does not have them.
func (r *Recording) SampleTimes() (times [2]uint64, ok bool) {
	if r.format.what != sampled || r.file == nil || r.parts != nil || r.rewind() != nil {
		return times, false
	}
	in, err := perfdata.NewReader(r.file, r.name, perfdata.Options{})
	if err != nil {
		return times, false
	}
	defer in.Close()
	times = in.Features().SampleTime
	return times, times != [2]uint64{}
}
