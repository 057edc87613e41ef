package perfevent

import (
	"os/exec"
	"testing"
)

// TestLiveness waits for processes with a notification of their end, and without one:
// unknown flags make the kernel refuse it.
func TestLiveness(t *testing.T) {
	const unknownFlags = 1 << 30
	for _, flags := range []int{0, unknownFlags} {
		c := exec.Command("cat")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		l := &liveness{quit: make(chan struct{})}
		l.add(c.Process.Pid, flags, processExists)
		if flags == unknownFlags && len(l.looks) != 1 {
			t.Errorf("flags %#x: %d processes are polled, want 1", flags, len(l.looks))
		}
		type end struct{ seen, exists bool }
		ended := make(chan end)
		go func() {
			seen := l.look() && l.wait()
			ended <- end{seen, processExists(c.Process.Pid)}
		}()
		if !processExists(c.Process.Pid) {
			t.Errorf("flags %#x: the process does not run", flags)
		}
		in.Close() // which ends it
		if e := <-ended; !e.seen || e.exists {
			t.Errorf("flags %#x: its end was seen: %v, when it existed: %v", flags, e.seen, e.exists)
		}
		l.close()
		_ = c.Wait()
	}
}

// A liveness that is closed does not wait for the end of process 1.
func TestLivenessClosed(t *testing.T) {
	for _, flags := range []int{0, 1 << 30} {
		l := &liveness{quit: make(chan struct{})}
		l.add(1, flags, processExists)
		l.close()
		if l.look() && l.wait() && l.look() {
			t.Errorf("flags %#x: process 1 has ended", flags)
		}
	}
}
