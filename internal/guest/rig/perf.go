package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/cyclestack/cyclestack/internal/guest"
)

// fetchPerf puts the kernel's own perf and its libraries into one directory. Tests
// compare with it.
func fetchPerf(ctx context.Context, apt *apt, rig guest.Rig, a guest.Arch) (err error) {
	// All of its dependencies would be a whole system, as perf has scripts in
	// other languages.
	libs, err := apt.libraries(ctx, "linux-perf", a.Debian)
	if err != nil {
		return err
	}
	debs, err := apt.download(ctx, a.Debian, append(libs, "linux-perf")...)
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp(apt.dir, "perf-")
	if err != nil {
		return err
	}
	for _, d := range debs {
		if err := unpack(ctx, filepath.Join(apt.archives(), d.file), tree); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(rig.Perf(a)), 0o755); err != nil {
		return err
	}
	out, err := os.MkdirTemp(filepath.Dir(rig.Perf(a)), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	if err := collect(tree, "usr/bin/perf", out); err != nil {
		return err
	}
	return os.Rename(out, rig.Perf(a))
}

// collect copies a program and all libraries that it needs into one directory, and the dynamic
// loader as [guest.Loader].
func collect(tree, program, out string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	copied := map[string]bool{}
	pending := []string{program}
	for len(pending) > 0 {
		file := pending[0]
		pending = pending[1:]
		if copied[path.Base(file)] {
			continue
		}
		copied[path.Base(file)] = true
		names, err := copyELF(root, file, filepath.Join(out, path.Base(file)))
		if err != nil {
			return err
		}
		for _, name := range names {
			if file, err = find(root, name); err != nil {
				return err
			}
			pending = append(pending, file)
		}
	}
	return linkLoader(out, path.Base(program))
}

// linkLoader gives the dynamic loader that a program asks for a name of its own.
func linkLoader(dir, program string) error {
	f, err := elf.Open(filepath.Join(dir, program))
	if err != nil {
		return err
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return fmt.Errorf("%s has no dynamic loader", program)
	}
	interp, err := section.Data()
	if err != nil || len(interp) == 0 {
		return fmt.Errorf("%s: .interp: %w", program, err)
	}
	return os.Link(filepath.Join(dir, path.Base(string(interp[:len(interp)-1]))), filepath.Join(dir, guest.Loader))
}

// copyELF copies a file and returns the names of the libraries that it needs.
func copyELF(root *os.Root, file, out string) ([]string, error) {
	in, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := writeFile(out, in); err != nil {
		return nil, err
	}
	e, err := elf.NewFile(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return e.ImportedLibraries()
}

// find returns the path of a library.
func find(root *os.Root, name string) (string, error) {
	matches, err := fs.Glob(root.FS(), path.Join("usr/lib*/*", name))
	if err != nil {
		return "", err
	}
	more, err := fs.Glob(root.FS(), path.Join("usr/lib*", name))
	if matches = append(matches, more...); len(matches) == 0 {
		return "", errors.Join(fmt.Errorf("no package has %s", name), err)
	}
	return matches[0], nil
}
