// Package hostinfo reads what a machine's files say of its virtualization and of
// the processes that hold counters.
package hostinfo

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxFile bounds what is read of a file.
const maxFile = 64 << 10

// text returns the content of a small file without the space around it, "" if it
// cannot be read.
func text(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(b) > maxFile {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Hypervisor names what a virtual machine runs on. It is "unknown" if only the
// processor says that there is one, and "" for a real machine.
func Hypervisor(root fs.FS) string {
	if t := text(root, "sys/hypervisor/type"); t != "" {
		return t
	}
	if t := text(root, "proc/device-tree/hypervisor/compatible"); t != "" {
		return strings.Trim(t, "\x00")
	}
	flagged := slices.Contains(flags(root), "hypervisor")
	vendor := strings.TrimSpace(text(root, "sys/class/dmi/id/sys_vendor"))
	switch {
	case flagged && vendor != "":
		return vendor
	case flagged:
		return "unknown"
	case strings.HasPrefix(vendor, "QEMU"):
		return vendor
	}
	return ""
}

// flags returns the features of the first processor, as /proc/cpuinfo has them.
func flags(root fs.FS) []string {
	for line := range strings.Lines(firstProcessor(root)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "flags" {
			return strings.Fields(value)
		}
	}
	return nil
}

// Features returns the flags, and for a first-level cache of code the flag "l1i=SIZE": some
// cores have the flags of the one before, and another cache.
func Features(root fs.FS) []string {
	list := flags(root)
	const cache = "sys/devices/system/cpu/cpu0/cache/index1/"
	if text(root, cache+"level") == "1" && text(root, cache+"type") == "Instruction" {
		list = append(list, "l1i="+text(root, cache+"size"))
	}
	return list
}

// firstProcessor returns the beginning of proc/cpuinfo, which is long on a machine of
// many processors, and slow to read.
func firstProcessor(root fs.FS) string {
	f, err := root.Open("proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4<<10)
	n, _ := io.ReadFull(f, b)
	return string(b[:n])
}

// CounterHolders lists the other processes that have counters open, as far as this
// process may see. It looks at every file that every process has open, which
// takes its time.
func CounterHolders(root fs.FS) []string {
	var found []string
	self := strconv.Itoa(os.Getpid())
	pids, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil
	}
	for _, entry := range pids {
		pid := entry.Name()
		if _, err := strconv.Atoi(pid); err != nil || pid == self {
			continue
		}
		if n := perfFiles(root, path.Join("proc", pid, "fd")); n > 0 {
			found = append(found, fmt.Sprintf("%s, process %s: %d counters", text(root, path.Join("proc", pid, "comm")), pid, n))
		}
	}
	return found
}

// perfFiles counts the files of perf_event_open among a process's.
func perfFiles(root fs.FS, dir string) int {
	fds, err := fs.ReadDir(root, dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, fd := range fds {
		if to, err := fs.ReadLink(root, path.Join(dir, fd.Name())); err == nil && to == "anon_inode:[perf_event]" {
			n++
		}
	}
	return n
}
