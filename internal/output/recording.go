package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/signals"
)

// A Recording is a file that grows for a while. It is written next to the one that it
// replaces, which is kept as NAME.old, as perf does. What is no regular file is written to
// directly.
type Recording struct {
	to    place
	out   io.Writer
	file  *os.File // nil for standard output
	name  string
	guard *signals.Guard // until signals are caught
	kept  atomic.Bool
}

// NewRecording makes the file, or takes standard output if the name is -. A signal removes
// the file until Unguard is called.
func NewRecording(name string, stdout io.Writer) (_ *Recording, err error) {
	f := &Recording{out: stdout, name: "standard output", guard: signals.NewGuard()}
	if name == "-" {
		signals.BearPipes()
		return f, nil
	}
	defer func() {
		if err != nil {
			f.guard.End()
		}
	}()
	if f.to, err = placeOf(name, nil); err != nil {
		return nil, err
	}
	f.name = name
	if f.to.direct {
		f.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		if old, err := os.Stat(f.old()); err == nil && old.IsDir() && f.to.mode != 0 {
			return nil, fault.Optionf("output", name, "the existing file would be renamed to %s, which is a directory: name another file", f.old())
		}
		f.file, err = f.guard.Make(f.to.neighbour)
	}
	f.out = f.file
	return f, unwritten(name, err)
}

// Unguard ends the guard: from now on the caller catches signals, and calls Discard.
func (f *Recording) Unguard() { f.guard.End() }

// Regular reports whether the file can be read again.
func (f *Recording) Regular() bool { return f.file != nil && !f.to.direct }

// old is the name of what was in the place of the file before.
func (f *Recording) old() string { return f.to.path + ".old" }

func (f *Recording) Write(b []byte) (int, error) { return signals.Write(f.out, b) }

// Seek is that of a file. Standard output is written like a pipe, even if it leads
// into a file: others may have written into that.
func (f *Recording) Seek(offset int64, whence int) (int64, error) {
	if f.file == nil {
		return 0, errors.ErrUnsupported
	}
	return f.file.Seek(offset, whence)
}

// Stamped gives the file a name of its own when it is kept: NAME and the time, as perf has
// it. It returns the name.
func (f *Recording) Stamped(now time.Time) string {
	const step = 10 * time.Millisecond // between names
	for {
		path := f.to.path + "." + now.Format("20060102150405") + fmt.Sprintf("%02d", now.Nanosecond()/int(step))
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			f.to.path, f.to.mode = path, 0
			return path
		}
		now = now.Add(step)
	}
}

// Keep puts the file into its place.
func (f *Recording) Keep() error {
	if f.file == nil {
		return nil
	}
	if f.to.direct {
		return unwritten(f.name, f.file.Close())
	}
	if err := f.to.finish(f.file); err != nil {
		return unwritten(f.name, err)
	}
	f.kept.Store(true)
	err := os.Rename(f.to.path, f.old())
	switch {
	case errors.Is(err, syscall.EBUSY): // something is mounted there
		err = copyFile(f.to.path, f.old())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = f.to.settle(f.file.Name())
	}
	if err != nil {
		return fault.Machinef("cannot write %s: %w: the recording is in %s", f.name, Reason(err), f.file.Name())
	}
	return nil
}

// Discard removes the file, unless it is kept.
func (f *Recording) Discard() {
	if f.file == nil || f.kept.Load() {
		return
	}
	f.file.Close()
	if !f.to.direct {
		os.Remove(f.file.Name())
	}
}
