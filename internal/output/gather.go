package output

import (
	"bytes"
	"io"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// Gather calls print with a writer that gathers output for another, which is called name.
// An error in the first lines of input then leaves nothing printed.
func Gather(to io.Writer, name string, print func(io.Writer) error) error {
	buf := gatherer{to: to}
	err := print(&buf)
	if err == nil {
		err = buf.flush()
	}
	if buf.failed != nil {
		return unwritten(name, buf.failed)
	}
	return err
}

// Output is written when so much of it has been gathered, or when the last
// write was so long ago: intervals appear as they come in.
const (
	flushAt    = 64 << 10
	flushAfter = 100 * time.Millisecond
)

// A gatherer makes few writes of many. The buffer is not embedded: its other ways of writing
// would go past the flushing.
type gatherer struct {
	buf    bytes.Buffer
	to     io.Writer
	last   time.Time // of a write, or of the first gathering
	failed error     // of a write
}

func (f *gatherer) Write(p []byte) (int, error) {
	if f.buf.Len() == 0 && len(p) >= flushAt {
		n, err := f.to.Write(p)
		f.last, f.failed = time.Now(), err
		return n, err
	}
	n, _ := f.buf.Write(p)
	if f.last.IsZero() {
		f.last = time.Now()
	}
	if f.buf.Len() >= flushAt || time.Since(f.last) > flushAfter {
		return n, f.flush()
	}
	return n, nil
}

func (f *gatherer) flush() error {
	f.last = time.Now()
	_, err := f.buf.WriteTo(f.to)
	if err != nil {
		f.failed = err
	}
	return err
}

// unwritten returns the error of a file that cannot be written; nil stays nil.
func unwritten(name string, err error) error {
	if err == nil {
		return nil
	}
	return fault.Machinef("cannot write %s: %w", name, Reason(err))
}
