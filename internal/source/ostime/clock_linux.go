package ostime

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock of the times in /proc/PID/stat. That clock goes on while the
// machine is suspended, and takes a system call to read. So time.Now is read instead, and
// the difference of the two is looked up once in a second.
func sinceBoot() time.Duration {
	boot.mu.Lock()
	defer boot.mu.Unlock()
	now := time.Now()
	if past := now.Sub(boot.at); !boot.at.IsZero() && past < time.Second {
		return boot.then + past
	}
	boot.at, boot.then = now, max(boot.then, read(unix.CLOCK_BOOTTIME))
	return boot.then
}

// boot is when sinceBoot was read last.
var boot struct {
	mu   sync.Mutex
	at   time.Time
	then time.Duration
}

// ownTime is the processor time of the calling thread: on a busy machine what
// takes long need not cost much.
func ownTime() time.Duration { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

func read(clock int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(clock, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// tickTime is the time between two ticks of the kernel's clock, in ns; 0 if it is not
// known. The coarse clock is that of the last tick, and so has their resolution.
var tickTime = sync.OnceValue(func() float64 {
	var ts unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
		return 0
	}
	return float64(ts.Nano())
})
