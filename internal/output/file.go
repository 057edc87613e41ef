// Package output writes files. A regular file is written next to the one that it replaces, and
// renamed when it is complete.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/signals"
)

// WriteFile calls print with the writer of a file. The file is written next to the one it
// replaces, then renamed. So it is never half written. What is no regular file, such as a pipe
// or a device, is written to directly. None of the inputs is overwritten.
func WriteFile(name string, print func(io.Writer) error, inputs ...string) error {
	to, err := placeOf(name, inputs)
	if err != nil {
		return err
	}
	if to.direct {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fault.As(fault.Machine, err)
		}
		return errors.Join(Gather(f, name, print), f.Close())
	}
	return replace(to, name, print)
}

// Writable looks whether a file can be written, before a program runs for nothing. Standard
// output, - or "", can.
func Writable(name string) error {
	if name == "" || name == "-" {
		return nil
	}
	to, err := placeOf(name, nil)
	if err != nil || to.direct {
		return err
	}
	f, err := to.neighbour()
	if err != nil {
		return unwritten(name, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// A place is where a file goes.
type place struct {
	path   string // behind symbolic links
	mode   fs.FileMode
	direct bool // it exists and is no regular file
}

// placeOf finds out what a file is at present.
func placeOf(name string, inputs []string) (place, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		path, err := resolved(name)
		return place{path: path}, unwritten(name, err)
	case err != nil:
		return place{}, fault.As(fault.Machine, err)
	case info.IsDir():
		return place{}, fault.Optionf("output", name, "it is a directory")
	case !info.Mode().IsRegular():
		return place{direct: true}, nil
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return place{}, fault.Optionf("output", name, "it is also the input")
		}
	}
	path, err := filepath.EvalSymlinks(name)
	return place{path: path, mode: info.Mode().Perm()}, fault.As(fault.Machine, err)
}

// resolved returns the path of a file that does not exist yet: behind symbolic links, also
// one that leads nowhere.
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
func replace(to place, name string, print func(io.Writer) error) (err error) {
	g := signals.NewGuard()
	defer g.End()
	f, err := g.Make(to.neighbour)
	if err != nil {
		return unwritten(name, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := Gather(f, name, print); err != nil {
		return err
	}
	if err = to.finish(f); err == nil {
		err = to.settle(f.Name())
	}
	return unwritten(name, err)
}

// finish closes a file that is complete, with the mode of what it replaces.
func (p place) finish(f *os.File) error {
	if p.mode == 0 {
		p.mode = 0o666 &^ umask()
	}
	return errors.Join(f.Chmod(p.mode), f.Close())
}

// settle moves a file to its place. If something is mounted there, it cannot be replaced and is
// written into.
func (p place) settle(file string) error {
	err := os.Rename(file, p.path)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	if err := copyFile(file, p.path); err != nil {
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
func (p place) neighbour() (*os.File, error) {
	if err := Room(); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(p.path), "."+filepath.Base(p.path)+".*")
}

// Room returns an error if this program cannot open the files that package os needs for its
// first: if there is no room for the runtime's poller, that ends the program.
func Room() error {
	for range 2 {
		var pipe [2]int
		if err := syscall.Pipe(pipe[:]); err != nil {
			return fault.As(fault.Machine, fmt.Errorf("%w: ulimit -n allows more", err))
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

// Reason is the cause of a file's error, without the name of the file, which may be a
// temporary one.
func Reason(err error) error {
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
