//go:build unix

package emulator

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// HostTarget is QEMU's name for this machine's instruction set.
func HostTarget() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// contain puts a program into a process group of its own, which ends with its context.
func contain(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endRest ends what a program has left running in the emulator: its process group, and
// processes that have left the group. Each has a file in the directory with its number in
// the name. The number may belong to another process by now: the emulator's arguments name
// the directory.
func endRest(group int, dir string) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		parts := strings.Split(e.Name(), ".")
		var pid int
		if len(parts) != 3 {
			continue
		}
		if n, err := fmt.Sscanf(parts[1], "%d", &pid); n != 1 || err != nil || pid <= 1 {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(args, []byte(filepath.Base(dir))) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
