package perfevent

import (
	"os/exec"
	"testing"
	"time"
)

// TestLiveness waits for processes with a notification of their end, and without one:
// unknown flags make the kernel refuse it.
func TestLiveness(t *testing.T) {
	const unknownFlags = 1 << 30
	for _, flags := range []int{0, unknownFlags} {
		c := exec.Command("sleep", "0.2")
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		l := &liveness{quit: make(chan struct{})}
		l.add(c.Process.Pid, flags, processExists)
		if flags == unknownFlags && len(l.looks) != 1 {
			t.Errorf("flags %#x: %d processes are looked for, want 1", flags, len(l.looks))
		}
		began := time.Now()
		if !l.look() || !l.wait() {
			t.Errorf("flags %#x: it was no longer asked", flags)
		}
		if early := 100*time.Millisecond - time.Since(began); early > 0 {
			t.Errorf("flags %#x: it ended %v too early", flags, early)
		}
		if processExists(c.Process.Pid) {
			t.Errorf("flags %#x: it goes on", flags)
		}
		l.close()
		_ = c.Wait()
	}

	l := newLiveness(&Target{PIDs: []int{1}})
	l.close() // and then nobody waits
	select {
	case <-l.gone:
		t.Error("process 1 has ended")
	case <-time.After(10 * time.Millisecond):
	}
}
