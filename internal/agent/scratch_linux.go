package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// scratch returns a file without a name: on a disk, or in memory where nothing may be
// written.
func scratch() (*os.File, error) {
	f, err := os.CreateTemp("", "cyclestack-profile-*")
	if err == nil {
		return f, os.Remove(f.Name())
	}
	fd, err := unix.MemfdCreate("cyclestack-profile", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "cyclestack-profile"), nil
}
