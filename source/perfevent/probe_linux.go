package perfevent

import (
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/hostinfo"
)

// Probe opens counters and closes them again. Settings are read below the
// root.
func (s *System) Probe(root fs.FS) *Probe {
	p := s.Limits(root)
	p.Hypervisor = hostinfo.Hypervisor(root)
	p.Seccomp = seccomp(root)
	// Counters of this thread must count on this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.probeScopes(p)
	p.Slots = len(s.Core()) > 0 && s.probeSlots()
	return p
}

// Limits is Probe without Supported, Errors, Slots, Hypervisor and Seccomp. It
// serves those who are going to count and meet the refusals of the kernel then.
func (s *System) Limits(root fs.FS) *Probe {
	p := &Probe{Paranoid: 2}
	if n, err := strconv.Atoi(setting(root, paranoid)); err == nil {
		p.Paranoid = n
	}
	p.Watchdog = len(s.Core()) > 0 && setting(root, "proc/sys/kernel/nmi_watchdog") == "1"
	p.SMT = setting(root, path.Join(cpuDir, "smt/active")) == "1"
	p.capabilities(root)
	if len(s.Core()) == 0 {
		return p
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.Counters = s.probeCounters()
	return p
}

// setting returns the content of a small file, "" if it cannot be read.
func setting(root fs.FS, name string) string {
	text, err := read(root, name)
	if err != nil {
		return ""
	}
	return text
}

// Bits of capabilities, see include/uapi/linux/capability.h.
const (
	capSysAdmin = 21
	capPerfmon  = 38
)

// capabilities finds out what the process may do.
func (p *Probe) capabilities(root fs.FS) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var words [2]unix.CapUserData
	err := unix.Capget(&head, &words[0])
	caps := uint64(words[0].Effective) | uint64(words[1].Effective)<<32
	p.UserNamespace = userNamespace(root)
	p.CapPerfmon = err == nil && caps&(1<<capSysAdmin|1<<capPerfmon) != 0 && !p.UserNamespace
}

// seccomp reports whether a filter of system calls is at work.
func seccomp(root fs.FS) bool {
	for line := range strings.Lines(setting(root, "proc/self/status")) {
		if value, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(value) == "2"
		}
	}
	return false
}

// userNamespace reports whether the process is in another user namespace than the first,
// which maps every user to itself.
func userNamespace(root fs.FS) bool {
	text := setting(root, "proc/self/uid_map")
	return text != "" && !slices.Equal(strings.Fields(text), []string{"0", "0", "4294967295"})
}

// probeScopes finds out which scopes can be counted. On a machine without a PMU it
// tries a software event: the permissions are the same.
func (s *System) probeScopes(p *Probe) {
	name, attr := "task-clock", Attr{Type: perffile.TypeSoftware, Config: softwareTaskClock}
	if cores := s.Core(); len(cores) > 0 {
		e, err := s.Resolve("cycles")
		if err == nil {
			name, attr = "cycles", e.Attr
		}
	}
	o := newOpener(s, &scheme{}, &notes{}, Attr{})
	p.Supported = true
	for _, scope := range []struct {
		about    string
		userOnly bool
		pid, cpu int
	}{{"own task, user mode only", true, 0, -1}, {"own task with the kernel", false, 0, -1}, {"system wide", false, -1, s.first()}} {
		o.wide = scope.pid < 0
		a := attr
		a.Disabled, a.ExcludeKernel, a.ExcludeHV = true, scope.userOnly, scope.userOnly
		fd, err := openEvent(&a, scope.pid, scope.cpu, -1, 0)
		if errno, failed := err.(unix.Errno); failed {
			p.Errors = append(p.Errors, OpenError{Event: name + " (" + scope.about + ")", Errno: errno, Advice: o.advice(errno)})
			p.Supported = p.Supported && errno != unix.ENOSYS
			continue
		}
		unix.Close(fd)
	}
}

// first returns the first processor of the first core PMU.
func (s *System) first() int {
	if cores := s.Core(); len(cores) > 0 && len(cores[0].CPUs) > 0 {
		return cores[0].CPUs[0]
	}
	if len(s.CPUs) > 0 {
		return s.CPUs[0]
	}
	return 0
}

// maxCounters is more than any core has.
const maxCounters = 32

// probeCounters finds the number of usable general counters: the largest group of one
// event's copies that the kernel puts on counters. The groups are pinned, as these say
// when they are not counted. It tries events without a fixed counter; on Arm and POWER
// any counter counts instructions.
func (s *System) probeCounters() int {
	names := []string{"branch-misses", "cache-misses", "instructions", "cycles"}
	if runtime.GOARCH != "amd64" {
		names = []string{"instructions", "branch-misses", "cache-misses", "cycles"}
	}
	for _, name := range names {
		e, err := s.Resolve(name)
		if err != nil {
			continue
		}
		n := 0
		for n < maxCounters && s.counts(&e, n+1) {
			n++
		}
		if n > 0 {
			return n
		}
	}
	return 0
}

// counts says whether a group of copies of an event gets on the counters: those
// of the first processor, or where that is not allowed of this thread.
func (s *System) counts(e *Event, copies int) bool {
	group := make([]Attr, copies)
	for i := range group {
		group[i] = e.Attr
		group[i].ExcludeKernel, group[i].ExcludeHV = true, true
	}
	group[0].Pinned = true
	return runs(group, -1, s.first()) || runs(group, 0, -1)
}

// probeSlots finds whether a group of slots and one of its parts opens.
func (s *System) probeSlots() bool {
	var group []Attr
	for _, name := range []string{"slots", "topdown-retiring"} {
		e, err := s.resolveTerms(s.Core()[0].Name, name)
		if err != nil {
			return false
		}
		e.Attr.ExcludeKernel, e.Attr.ExcludeHV = true, true
		group = append(group, e.Attr)
	}
	return runs(group, 0, -1) || runs(group, -1, s.first())
}

// runs says whether a group can be opened and gets on counters. A pinned group
// that does not reads as nothing.
func runs(group []Attr, pid, cpu int) bool {
	leader := -1
	for i := range group {
		a := group[i]
		if i == 0 {
			a.ReadFormat = perffile.FormatTotalTimeEnabled | perffile.FormatTotalTimeRunning | perffile.FormatGroup
		}
		fd, err := openEvent(&a, pid, cpu, leader, 0)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		if i == 0 {
			leader = fd
		}
	}
	buf := make([]byte, 8*(3+len(group)))
	n, err := readEvent(leader, buf)
	return err == nil && n > 0
}
