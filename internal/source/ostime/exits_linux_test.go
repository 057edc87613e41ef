package ostime

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// TestShortChildren has a shell wait for processes that sleep, each for less time than
// passes between two looks.
func TestShortChildren(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	wrong := shortChildren(t, sh)
	if len(wrong) > 0 { // Linux 6.18 once had a process's sleep in its time in the run queue, on a busy machine
		t.Log(wrong)
		wrong = shortChildren(t, sh)
	}
	for _, text := range wrong {
		t.Error(text)
	}
}

// shortChildren says which of the processes were not seen to sleep as long as they did.
func shortChildren(t *testing.T, sh string) (wrong []string) {
	w := New(os.DirFS("/"), Spec{Listen: true, Keep: counts.By(0).With(counts.Process)})
	defer w.Close()
	if !w.exits.listens() {
		t.Skip("the kernel does not tell of threads that end: ", w.exits.err)
	}
	c := exec.Command(sh, "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.02; done")
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	w.Started(c.Process.Pid)
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	w.Ended(c.Process.Pid)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	w.Reaped(c.ProcessState)
	out := w.Join(counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}))
	slept := 0
	for i, scope := range out.Scopes {
		if scope.TID == c.Process.Pid {
			continue
		}
		slept++
		got := millis(out, i)
		if blocked := got["thread_time"] - got["thread_run"] - got["runqueue_wait"]; !(blocked >= 19) {
			wrong = append(wrong, fmt.Sprintf("%s was blocked for %.1f ms, and slept for 20: %v", scope.Label, blocked, got))
		}
	}
	if slept != 8 {
		t.Errorf("%d processes slept, want 8: %v", slept, out.Scopes)
	}
	return wrong
}
