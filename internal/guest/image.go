package guest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// An Image is a file tree that a guest starts with, in the format that the kernel
// unpacks: cpio's "newc", described in the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst. Everything belongs
// to root.
type Image struct {
	w    io.Writer
	err  error
	ino  int
	dirs map[string]bool
}

// NewImage returns an image that is written to w.
func NewImage(w io.Writer) *Image { return &Image{w: w, dirs: map[string]bool{".": true}} }

// Add adds a file, and the directories above it. Errors are kept for [Image.Close].
func (m *Image) Add(name string, perm fs.FileMode, data []byte) {
	name = strings.TrimPrefix(path.Clean(name), "/")
	m.mkdir(path.Dir(name))
	m.entry(name, modeFile|int(perm.Perm()), [2]int{}, data)
}

// AddFile adds a file of the host's as an executable.
func (m *Image) AddFile(name, file string) {
	data, err := os.ReadFile(file)
	if err != nil && m.err == nil {
		m.err = err
	}
	m.Add(name, 0o755, data)
}

// AddDevice adds a character device by its major and minor number.
func (m *Image) AddDevice(name string, major, minor int) {
	m.mkdir(path.Dir(name))
	m.entry(name, modeDevice|0o600, [2]int{major, minor}, nil)
}

// Close ends the image and returns the first error of all that was added.
func (m *Image) Close() error {
	m.entry("TRAILER!!!", 0, [2]int{}, nil)
	return m.err
}

// The kinds of entries, as in a stat's st_mode.
const (
	modeFile   = 0o100000
	modeDir    = 0o040000
	modeDevice = 0o020000
)

func (m *Image) mkdir(name string) {
	if m.dirs[name] {
		return
	}
	m.mkdir(path.Dir(name))
	m.dirs[name] = true
	m.entry(name, modeDir|0o755, [2]int{}, nil)
}

// entry writes a header of thirteen numbers, the name with a zero byte after it, and the
// data; name and data each end at a multiple of four bytes.
func (m *Image) entry(name string, mode int, device [2]int, data []byte) {
	if m.err != nil {
		return
	}
	m.ino++
	head := "070701"
	for _, n := range []int{m.ino, mode, 0, 0, 1, 0, len(data), 0, 0, device[0], device[1], len(name) + 1, 0} {
		head += fmt.Sprintf("%08X", n)
	}
	head += name + "\x00"
	m.write([]byte(head + padding(len(head))))
	m.write(data)
	m.write([]byte(padding(len(data))))
}

func padding(n int) string { return "\x00\x00\x00"[:-n&3] }

func (m *Image) write(p []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(p)
	}
}
