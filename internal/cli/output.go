package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// write calls print with where the output goes. A file is written beside its
// place and renamed when all went well, so that nothing is ever half written and
// nothing is lost; what is no regular file, such as a pipe or a device, is
// written to as it is. Inputs are the files that the command reads: none of them
// is overwritten.
func (a *app) write(c *common, print func(io.Writer) error, inputs ...string) error {
	return a.writeTo(a.out, c, print, inputs...)
}

// writeTo is write for another stream than standard output.
func (a *app) writeTo(stream io.Writer, c *common, print func(io.Writer) error, inputs ...string) error {
	switch {
	case c.output == "-" || c.output == "" && stream == a.out:
		return gather(a.out, "standard output", print)
	case c.output == "":
		return gather(stream, "standard error", print)
	}
	place, err := destination(c.output, inputs)
	if err != nil {
		return err
	}
	if place.direct {
		f, err := os.OpenFile(c.output, os.O_WRONLY, 0)
		if err != nil {
			return machineError(err)
		}
		return errors.Join(gather(f, c.output, print), f.Close())
	}
	return replace(place, c.output, print)
}

// A target is where a file of output goes.
type target struct {
	path   string // behind symbolic links
	mode   fs.FileMode
	direct bool // it exists and is no regular file
}

// destination finds out what an output file is at present.
func destination(name string, inputs []string) (target, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return target{path: name}, nil
	case err != nil:
		return target{}, machineError(err)
	case info.IsDir():
		return target{}, usageError("-o %s: it is a directory", name)
	case !info.Mode().IsRegular():
		return target{direct: true}, nil
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return target{}, usageError("-o %s: it is the file to be read", name)
		}
	}
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return target{}, machineError(err)
	}
	return target{path: path, mode: info.Mode().Perm()}, nil
}

// replace writes a file beside its place and renames it.
func replace(to target, name string, print func(io.Writer) error) (err error) {
	f, err := beside(to)
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	defer cleanUp(f.Name())()
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := gather(f, name, print); err != nil {
		return err
	}
	if to.mode == 0 {
		to.mode = 0o666 &^ umask()
	}
	err = errors.Join(f.Chmod(to.mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to.path)
	}
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return nil
}

// beside makes a file for what is to take a file's place.
func beside(to target) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(to.path), "."+filepath.Base(to.path)+".*")
}

// umask returns the process's mask for new files.
func umask() fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fs.FileMode(mask)
}

// cleanUp removes a file should a signal end the program before the function it
// returns is called. The program still ends by the signal.
func cleanUp(name string) (done func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		os.Remove(name)
		signal.Reset()
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Signal(s)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// reason is what is wrong with a file, without the name of a temporary one.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// gather calls print with a writer that gathers output for another.
func gather(to io.Writer, name string, print func(io.Writer) error) error {
	buf := flusher{to: to}
	err := print(&buf)
	if err == nil {
		err = buf.flush()
	}
	if buf.failed != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(buf.failed)))
	}
	return err
}

// Output is written when so much of it has been gathered, or when the last
// writing was so long ago: intervals appear as they come in.
const (
	flushAt    = 64 << 10
	flushAfter = 100 * time.Millisecond
)

// A flusher gathers output, so that an error in the first lines of input
// leaves nothing printed and many small writes become few. The buffer is not
// embedded: its other ways of writing would go past the flushing.
type flusher struct {
	buf    bytes.Buffer
	to     io.Writer
	last   time.Time // of a write, or of the first gathering
	failed error     // of a write
}

func (f *flusher) Write(p []byte) (int, error) {
	n, _ := f.buf.Write(p)
	if f.last.IsZero() {
		f.last = time.Now()
	}
	if f.buf.Len() >= flushAt || time.Since(f.last) > flushAfter {
		return n, f.flush()
	}
	return n, nil
}

func (f *flusher) flush() error {
	f.last = time.Now()
	_, err := f.buf.WriteTo(f.to)
	if err != nil {
		f.failed = err
	}
	return err
}
