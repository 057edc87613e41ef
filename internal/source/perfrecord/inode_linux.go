package perfrecord

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// is reports whether a name stands for the file that was mapped.
func (i inode) is(name string) bool {
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil || st.Ino != i.number || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	return unix.Major(uint64(st.Dev)) == i.major && unix.Minor(uint64(st.Dev)) == i.minor
}

// inodeOf returns a file's number, 0 if it has none.
func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
