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
	"sync"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/report"
)

// write calls print with the writer of the output. A file is written under another name
// and renamed if all went well, so that it is never half written. What is no regular file,
// such as a pipe or a device, is written to directly. Inputs are the files that the command
// reads: none of them is overwritten.
func (a *app) write(c *common, print func(io.Writer) error, inputs ...string) error {
	return a.writeTo(a.out, c, print, inputs...)
}

// document writes a document in the format that was asked for.
func (a *app) document(c *common, document any, inputs ...string) error {
	return a.write(c, func(out io.Writer) error {
		return report.Write(out, c.format, document, c.options(a.terminal(c, a.out)))
	}, inputs...)
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
		path, err := resolved(name)
		if err != nil {
			return target{}, machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
		}
		return target{path: path}, nil
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

// resolved returns where a file comes to be that does not exist: behind symbolic links, also
// one that leads to where nothing is.
func resolved(name string) (string, error) {
	const links = 40 // as many as Linux follows
	for range links {
		dir, base := filepath.Split(name)
		if base == "" { // a directory is meant
			base, dir = ".", name
		}
		if dir == "" {
			dir = "."
		}
		dir, err := filepath.EvalSymlinks(dir) // not cleaned before: what .. is depends on links
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, base)
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if name = to; !filepath.IsAbs(to) {
			name = dir + string(filepath.Separator) + to
		}
	}
	return "", syscall.ELOOP
}

// replace writes a file under another name and renames it.
func replace(to target, name string, print func(io.Writer) error) (err error) {
	g := newGuard()
	defer g.end()
	f, err := g.neighbour(to)
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := gather(f, name, print); err != nil {
		return err
	}
	if err = finished(f, to); err == nil {
		err = settle(f.Name(), to.path)
	}
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return nil
}

// finished closes a file that is complete, with the mode of what it replaces.
func finished(f *os.File, to target) error {
	if to.mode == 0 {
		to.mode = 0o666 &^ umask()
	}
	return errors.Join(f.Chmod(to.mode), f.Close())
}

// settle moves a file to its place, or if something is mounted there, which cannot be
// replaced, writes it into that.
func settle(file, place string) error {
	err := os.Rename(file, place)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	if err := copyFile(file, place); err != nil {
		return err
	}
	return os.Remove(file)
}

// copyFile writes what is in a file into another one.
func copyFile(file, into string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(into)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// neighbour makes a file in the directory of the one that it is to replace.
func neighbour(to target) (*os.File, error) {
	if err := room(); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(to.path), "."+filepath.Base(to.path)+".*")
}

// room returns an error if this program cannot open the files that package os needs for its
// first: if there is no room for the runtime's poller, that ends the program.
func room() error {
	for range 2 {
		var pipe [2]int
		if err := syscall.Pipe(pipe[:]); err != nil {
			return fmt.Errorf("%w: ulimit -n allows more", err)
		}
		defer syscall.Close(pipe[0])
		defer syscall.Close(pipe[1])
	}
	return nil
}

// umask returns the process's mask for new files.
func umask() fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fs.FileMode(mask)
}

// A guard removes a file should a signal end the program before the guard's end. The program
// still ends by the signal. Signals that are ignored (nohup) stay so.
type guard struct {
	signals chan os.Signal
	mu      sync.Mutex
	file    string // "" for none yet
}

func newGuard() *guard {
	g := &guard{signals: make(chan os.Signal, 1)}
	for _, s := range heard(true) {
		if number, ok := s.(syscall.Signal); ok && ends(number) {
			signal.Notify(g.signals, s)
		}
	}
	go func() {
		s, ok := (<-g.signals).(syscall.Signal)
		if !ok {
			return // it is closed
		}
		g.mu.Lock() // and not unlocked: nothing is to be made any more
		if g.file != "" {
			os.Remove(g.file)
		}
		endBy(s)
	}()
	return g
}

// neighbour makes the file that is guarded.
func (g *guard) neighbour(to target) (*os.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, err := neighbour(to)
	if err == nil {
		g.file = f.Name()
	}
	return f, err
}

func (g *guard) end() {
	signal.Stop(g.signals)
	close(g.signals)
}

// bearPipes has writing to where nobody reads any more be an error, and not the end of this
// program: what it has started is to be ended first.
func bearPipes() {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}

// reason is what is wrong with a file, without the name of a temporary one.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
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

// writable looks whether an output file can be written, before a program runs for
// nothing.
func writable(name string) error {
	if name == "" || name == "-" {
		return nil
	}
	to, err := destination(name, nil)
	if err != nil || to.direct {
		return err
	}
	f, err := neighbour(to)
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
