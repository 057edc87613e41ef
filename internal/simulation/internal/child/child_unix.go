//go:build unix

package child

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
	"time"
)

// contain puts a program into a process group of its own, which ends with its context:
// the children of a simulator are simulators themselves.
func contain(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// EndRest ends what a program has left running: its process group, and processes that
// have left the group. Those have files in the directory, and their number between dots in
// the names. The number may belong to another process by now: the simulator's arguments
// name the directory.
func EndRest(group int, dir string) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		for part := range strings.SplitSeq(e.Name(), ".") {
			pid, err := strconv.Atoi(part)
			if err != nil || pid <= 1 {
				continue
			}
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && bytes.Contains(args, []byte(filepath.Base(dir))) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// Spent returns the processor time of this process and of others, with all processes that those
// have waited for.
func Spent(pids []int) (spent time.Duration) {
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil {
		spent = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The fields behind the name: utime, stime, cutime and cstime are 14 to 17 of proc_pid_stat(5).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for i := 11; i < 15 && i < len(fields); i++ {
			ticks, _ := strconv.ParseInt(fields[i], 10, 64)
			spent += time.Duration(ticks) * tick
		}
	}
	return spent
}

// Moved returns how many bytes processes have read and written, with all processes that those
// have waited for: rchar and wchar of proc_pid_io(5). What is not known is 0.
func Moved(pids []int) (bytes int64) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		var read, written int64
		if err == nil {
			_, err = fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\n", &read, &written)
		}
		if err == nil {
			bytes += read + written
		}
	}
	return bytes
}

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// Resident returns the largest memory of an ended program, in bytes. The processes that it
// waited for count too. It is 0 if that is not known, or not more than this process has. On
// Linux it includes the memory before the process executed the program. A process that Go
// starts has its parent's memory until then.
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
