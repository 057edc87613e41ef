package samples

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page: on x86, and mostly on arm64.
const hugePage = 2 << 20

// huge asks the kernel for huge pages where memory is that nothing has used yet, and around it.
// Look-ups at random then miss the TLB less. Without an answer all works as well.
func huge(at unsafe.Pointer, size uintptr) {
	from := uintptr(at)
	begin := from &^ (hugePage - 1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, (from+size-begin+hugePage-1)&^(hugePage-1), syscall.MADV_HUGEPAGE)
}
