package output

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Scratch is a file for the time that it is open: on a disk, or in memory where nothing
// may be written.
type Scratch struct {
	*os.File
	Path string // that this process can open
}

// NewScratch returns a file. It has no name that other processes know.
func NewScratch() (*Scratch, error) {
	f, err := os.CreateTemp("", "cyclestack-*")
	if err == nil {
		err = os.Remove(f.Name())
	} else if fd, err2 := unix.MemfdCreate("cyclestack", unix.MFD_CLOEXEC); err2 == nil {
		f, err = os.NewFile(uintptr(fd), "cyclestack"), nil
	}
	if err != nil {
		return nil, err
	}
	return &Scratch{f, fmt.Sprintf("/proc/self/fd/%d", f.Fd())}, nil
}
