package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/cyclestack/cyclestack/internal/guest"
)

// fetchQEMU unpacks an architecture's emulator with its libraries. They are not
// the host's own: a host need not be of the same release, and need not change.
func fetchQEMU(ctx context.Context, apt *apt, rig guest.Rig, a guest.Arch) error {
	debs, err := apt.closure(ctx, a.QEMU)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(rig.QEMU(), 0o755); err != nil {
		return err
	}
	// The emulator itself comes last: its presence says that all is there.
	var last string
	for _, d := range debs {
		file := filepath.Join(apt.archives(), d.file)
		if strings.HasPrefix(d.file, a.QEMU+"_") {
			last = file
			continue
		}
		if err := unpack(ctx, file, rig.QEMU()); err != nil {
			return err
		}
	}
	if last == "" {
		return fmt.Errorf("apt fetched no %s", a.QEMU)
	}
	return unpack(ctx, last, rig.QEMU())
}

func unpack(ctx context.Context, file, dir string) error {
	out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("dpkg-deb --extract %s: %w: %s", filepath.Base(file), err, out)
	}
	return nil
}

// fetchKernel takes the kernel, and nothing else, out of its package.
func fetchKernel(ctx context.Context, apt *apt, rig guest.Rig, a guest.Arch) error {
	name, err := apt.newest(ctx, a.Kernel, a.Debian)
	if err != nil {
		return err
	}
	debs, err := apt.download(ctx, a.Debian, name)
	if err != nil {
		return err
	}
	if len(debs) != 1 {
		return fmt.Errorf("apt has %d files for %s, want one", len(debs), name)
	}
	return extractKernel(ctx, filepath.Join(apt.archives(), debs[0].file), rig.Kernel(a))
}

func extractKernel(ctx context.Context, deb, kernel string) (err error) {
	// Reading stops at the kernel, and dpkg-deb with it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was stopped, or the reader met the end of what it wrote
	}()
	r, err := findKernel(tar.NewReader(out))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(deb), err)
	}
	return writeFile(kernel, r)
}

// findKernel advances to the kernel's image: vmlinuz, or vmlinux where it is not
// compressed.
func findKernel(t *tar.Reader) (io.Reader, error) {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the package has no /boot/vmlinu…")
		}
		if err != nil {
			return nil, err
		}
		if ok, _ := path.Match("boot/vmlinu[xz]-*", path.Clean(strings.TrimPrefix(h.Name, "./"))); ok {
			return t, nil
		}
	}
}

// writeFile writes a file that is there whole or not at all.
func writeFile(name string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
