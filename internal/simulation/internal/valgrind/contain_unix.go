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

// contain puts a program into a process group of its own, all of which ends with
// its context: valgrind's children are valgrinds themselves.
func contain(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endRest ends what a program has left running under valgrind: its process group; and what
// has left that, of which there are files in the directory, whose names end with the number
// of the process. A number may have been given to another process meanwhile: valgrind's
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

// Resident returns the most memory that an ended program and those it waited for had
// at a time, in bytes; 0 if it is not known, or not more than this process has: on
// Linux what a process had before it executed a program counts as well, and a process
// that Go starts has its parent's memory until then.
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
