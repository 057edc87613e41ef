package cyclestack

import "syscall"

// threadID is the calling thread's number, as the kernel counts.
func threadID() int { return syscall.Gettid() }
