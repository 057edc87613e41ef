package object

import (
	"fmt"
	"os"
	"syscall"
)

// unload gives up the memory of a mapped file. It is read again where it is looked at.
func unload(data []byte) {
	if len(data) > 0 {
		_ = syscall.Madvise(data, syscall.MADV_DONTNEED) // it only costs memory if that fails
	}
}

// stateOf identifies a file with its contents. No program can set the time of the last change.
func stateOf(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x.%x.%x.%x.%x", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}
