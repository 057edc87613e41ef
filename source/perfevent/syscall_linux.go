package perfevent

import (
	"bytes"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// openEvent calls perf_event_open. pid is a thread: 0 is the calling one, -1 is any.
// cpu is a processor, -1 any. group is the descriptor of the leader, -1 for none. The
// descriptor is closed on exec. The error is a unix.Errno.
//
// Older kernels accept longer attributes if the unknown part is 0. One that does not
// says the size of the attributes that it knows. If the rest is 0, it gets these.
func openEvent(a *Attr, pid, cpu, group int, flags uintptr) (int, error) {
	k := a.kernel()
	fd, errno := openAttr(&k, pid, cpu, group, flags)
	if errno == unix.E2BIG && k.size >= attrSizeVer0 && k.size < attrSize && k.empty(k.size) {
		fd, errno = openAttr(&k, pid, cpu, group, flags)
	}
	if errno != 0 {
		return -1, errno
	}
	return fd, nil
}

// openAttr makes the system call. After E2BIG the kernel has written the size
// that it knows.
func openAttr(k *kernelAttr, pid, cpu, group int, flags uintptr) (int, unix.Errno) {
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(k)), uintptr(pid), uintptr(cpu), uintptr(group),
			flags|unix.PERF_FLAG_FD_CLOEXEC, 0)
		if errno != unix.EINTR {
			return int(fd), errno
		}
	}
}

// empty says whether nothing is set in the attributes from a byte on.
func (k *kernelAttr) empty(from uint32) bool {
	b := (*[attrSize]byte)(unsafe.Pointer(k))[from:]
	return len(bytes.Trim(b, "\x00")) == 0
}

// hasFormatLost says whether the kernel knows PERF_FORMAT_LOST (Linux 6.0).
var hasFormatLost = sync.OnceValue(func() bool {
	a := Attr{Type: perffile.TypeSoftware, Config: softwareDummy, ReadFormat: perffile.FormatLost, Disabled: true, ExcludeKernel: true, ExcludeHV: true}
	fd, err := openEvent(&a, 0, -1, -1, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
})

// control enables or disables a group by its leader.
func control(fd int, request uint) error {
	return os.NewSyscallError("ioctl", unix.IoctlSetInt(fd, request, 0))
}

// identify returns the kernel's id of an event, which is in the readings of groups.
func identify(fd int) (uint64, error) {
	var id uint64
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_ID, uintptr(unsafe.Pointer(&id)))
	if errno != 0 {
		return 0, os.NewSyscallError("ioctl", errno)
	}
	return id, nil
}

// setFilter sets what fields of a tracepoint must be to count.
func setFilter(fd int, filter string) error {
	text, err := unix.BytePtrFromString(filter)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER, uintptr(unsafe.Pointer(text))); errno != 0 {
		return errno
	}
	return nil
}

// readEvent reads an event or a group.
func readEvent(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// raiseFiles raises the number of files that the process may have open as far
// as it may by itself. It reports whether that is more than it was.
func raiseFiles() bool {
	var l unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &l) != nil || l.Cur >= l.Max {
		return false
	}
	l.Cur = l.Max
	return unix.Prlimit(0, unix.RLIMIT_NOFILE, &l, nil) == nil
}

// filesLimit returns how many files the process may have open.
func filesLimit() uint64 {
	var l unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &l) != nil {
		return 0
	}
	return l.Cur
}
