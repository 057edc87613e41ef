package measure_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/measure"
)

// The processes of a user are those that ps lists, and a zombie is none.
func TestUserProcesses(t *testing.T) {
	root := fstest.MapFS{
		"proc/7/status":  {Data: []byte("State:\tS (sleeping)\nUid:\t4000000001\t4000000002\t0\t0\n")},
		"proc/8/status":  {Data: []byte("State:\tZ (zombie)\nUid:\t4000000002\t4000000002\t0\t0\n")},
		"proc/9/status":  {Data: []byte("State:\tR (running)\nUid:\t4000000002\t4000000002\t0\t0\n")},
		"proc/10/status": {Data: []byte("Uid:\n")},
	}
	if got, err := measure.UserProcesses(root, "4000000002"); err != nil || !sameSet(got, "7", "9") {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"4000000001", "no such user", "-1", ""} {
		if got, err := measure.UserProcesses(root, name); err == nil {
			t.Errorf("%q has %q", name, got)
		}
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip(err)
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	got, err := measure.UserProcesses(os.DirFS("/"), strconv.Itoa(os.Geteuid()))
	if list := strings.Split(got, ","); err != nil || !slices.Contains(list, strconv.Itoa(sleep.Process.Pid)) || slices.Contains(list, strconv.Itoa(os.Getpid())) {
		t.Errorf("%q, %v: sleep is %d, this process %d", got, err, sleep.Process.Pid, os.Getpid())
	}
}

func sameSet(list string, want ...string) bool {
	got := strings.Split(list, ",")
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}
