//go:build unix

package valgrind

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// contain puts a program into a process group of its own, which ends with its context:
// valgrind's children are valgrinds themselves.
func contain(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endRest ends what a program has left running under valgrind: its process group, and
// processes that have left the group. Those have files in the directory whose names end
// with the process number. The number may belong to another process by now: valgrind's
// arguments name the directory.
func endRest(group int, dir string) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext("."+e.Name()), "."))
		if err != nil {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(args, []byte(filepath.Base(dir))) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Resident returns the most memory that an ended program and the processes that it waited
// for had at a time, in bytes. It is 0 if that is not known, or not more than this process
// has. On Linux it includes the memory before the process executed the program, and a
// process that Go starts has its parent's memory until then.
func Resident(state *os.ProcessState) int64 {
	var own syscall.Rusage
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || usage.Maxrss <= own.Maxrss {
		return 0
	}
	unit := int64(1 << 10)
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return int64(usage.Maxrss) * unit
}
