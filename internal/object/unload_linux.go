package object

import "syscall"

// unload gives up the memory of a mapped file. It is read again where it is looked at.
func unload(data []byte) {
	if len(data) > 0 {
		_ = syscall.Madvise(data, syscall.MADV_DONTNEED) // it only costs memory if that fails
	}
}
