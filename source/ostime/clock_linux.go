package ostime

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock by which the kernel says when threads began.
func sinceBoot() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// ownTime is the processor time of the calling thread: on a busy machine what
// takes long need not cost much.
func ownTime() time.Duration { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

func read(clock int32) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
