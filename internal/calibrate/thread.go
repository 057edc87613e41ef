//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/cpulist"
)

// pin locks the calling goroutine to its thread and the thread to a logical processor. The
// returned function undoes both.
func pin(logical int) (undo func(), err error) {
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("processors that may be used: %w", err)
	}
	one.Set(logical)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("cannot run on processor %d: %w", logical, err)
	}
	return func() {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
		_ = unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}, nil
}

// realtime gives the calling thread, which must be pinned, precedence over all others that
// are not real-time themselves. Threads that it starts are as usual.
func realtime() error {
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	if err != nil {
		return fmt.Errorf("real-time scheduling: %w (it takes CAP_SYS_NICE)", err)
	}
	return nil
}

// usable returns the logical processors that this process may run on.
func usable() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("processors that may be used: %w", err)
	}
	var list []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// current returns the logical processor that the caller is running on.
func current() int {
	var logical uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&logical)), 0, 0); errno != 0 {
		return 0
	}
	return int(logical)
}

// nodes returns the processors of each NUMA node that has memory, by node; empty if the
// kernel does not say.
func nodes(root string) map[int][]int {
	found := map[int][]int{}
	dirs, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	for _, dir := range dirs {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "cpulist"))
		if err != nil || !hasMemory(dir) {
			continue
		}
		if list, err := cpulist.Parse(string(text)); err == nil {
			found[n] = list
		}
	}
	return found
}

// hasMemory reads a node's meminfo, whose lines begin with "Node 0 ".
func hasMemory(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "meminfo"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 4 && f[2] == "MemTotal:" {
			return f[3] != "0"
		}
	}
	return false
}

// nodeOf returns the node of a processor, -1 if it is not known.
func nodeOf(all map[int][]int, logical int) int {
	for n, list := range all {
		if slices.Contains(list, logical) {
			return n
		}
	}
	return -1
}
