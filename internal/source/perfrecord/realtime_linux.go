package perfrecord

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// setRealtime gives this thread a SCHED_FIFO priority, or the usual policy for 0.
func setRealtime(priority int) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	if priority > 0 {
		a.Policy, a.Priority, a.Flags = unix.SCHED_FIFO, uint32(priority), unix.SCHED_FLAG_RESET_ON_FORK
	}
	return unix.SchedSetAttr(0, &a, 0)
}

// tryRealtime reports whether a priority may be had, by a thread that then ends.
func tryRealtime(priority int) error {
	if priority == 0 {
		return nil
	}
	if priority < 1 || priority > 99 {
		return fault.Optionf("realtime", fmt.Sprint(priority), "a priority is from 1 to 99")
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
		result <- setRealtime(priority)
	}()
	if err := <-result; err != nil {
		return fault.Machinef("the priority %d cannot be set: %w: ulimit -r allows more", priority, err)
	}
	return nil
}
