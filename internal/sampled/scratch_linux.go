package sampled

import (
	"os"

	"golang.org/x/sys/unix"
)

// Scratch returns a file without a name: on a disk, or in memory where nothing may be
// written.
func Scratch() (*os.File, error) {
	f, err := os.CreateTemp("", "cyclestack-samples-*")
	if err == nil {
		return f, os.Remove(f.Name())
	}
	fd, err := unix.MemfdCreate("cyclestack-samples", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "cyclestack-samples"), nil
}
