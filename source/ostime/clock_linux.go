package ostime

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock by which the kernel says when threads began.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
