package output

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/signals"
)

// WriteDir calls print with the writers of files in a directory. The directory is written
// next to the one it replaces, which then goes as one: a reader finds all files of one run. A
// directory that has anything else keeps it, and its files are replaced one after the other.
// None of the inputs is overwritten.
func WriteDir(name string, files []string, print func(map[string]io.Writer) error, inputs ...string) error {
	to := place{mode: fs.ModePerm &^ umask()}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		to.path, err = resolved(name)
	case err == nil && !info.IsDir():
		return fault.Optionf("output", name, "it is no directory")
	case err == nil:
		to.mode, to.direct = info.Mode().Perm(), true
		to.path, err = filepath.EvalSymlinks(name)
	}
	if err != nil {
		return unwritten(name, err)
	}
	for _, file := range files { // refused as each would be by itself
		if _, err := placeOf(filepath.Join(name, file), inputs); to.direct && err != nil {
			return err
		}
	}
	g := signals.NewGuard()
	defer g.End()
	made, err := g.Make(to.neighbourDir)
	if err != nil {
		return unwritten(name, err)
	}
	made.Close()
	dir := made.Name()
	defer os.RemoveAll(dir) // what is left: after a success the directory that was replaced
	if err := fill(dir, files, print); err != nil {
		return err
	}
	return unwritten(name, to.settleDir(dir, files))
}

// fill writes the files of a new directory.
func fill(dir string, files []string, print func(map[string]io.Writer) error) error {
	writers, open := map[string]io.Writer{}, []func() error{}
	for _, name := range files {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return unwritten(name, err)
		}
		b := bufio.NewWriterSize(f, flushAt)
		writers[name] = b
		open = append(open, func() error { return errors.Join(b.Flush(), f.Close()) })
	}
	err := print(writers)
	for i, end := range open {
		if e := end(); err == nil && e != nil {
			err = unwritten(files[i], e)
		}
	}
	return err
}

// neighbourDir makes a directory next to the one that it is to replace.
func (p place) neighbourDir() (*os.File, error) {
	if err := Room(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(p.path), "."+filepath.Base(p.path)+".*")
	if err != nil {
		return nil, err
	}
	return os.Open(dir)
}

// settleDir moves a directory to its place.
func (p place) settleDir(dir string, files []string) error {
	if err := os.Chmod(dir, p.mode); err != nil {
		return err
	}
	if !p.direct {
		return os.Rename(dir, p.path)
	}
	old, err := os.ReadDir(p.path)
	if err != nil {
		return err
	}
	foreign := slices.ContainsFunc(old, func(e fs.DirEntry) bool { return !slices.Contains(files, e.Name()) || !e.Type().IsRegular() })
	if !foreign && exchange(dir, p.path) == nil {
		return nil
	}
	for _, name := range files { // something else is in it, or mounted there, or the file system cannot exchange
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(p.path, name)); err != nil {
			return err
		}
	}
	return nil
}
