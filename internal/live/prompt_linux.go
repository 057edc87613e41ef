package live

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Prompt returns a writer that writes to the same file as w, if that is one. What can be
// written without waiting is written without the runtime being told of the system call: it
// would wake a thread that looks after those that wait, which costs more than the writing
// of a line. The writer is used by one goroutine.
func Prompt(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return w
	}
	st, err := f.Stat()
	if err != nil {
		return w
	}
	p := &prompt{file: f, flags: unix.RWF_NOWAIT}
	if st.Mode().IsRegular() { // nobody has to read before there is room
		p.flags = 0
	}
	if p.conn, err = f.SyscallConn(); err != nil {
		return w
	}
	p.try = func(fd uintptr) bool {
		p.written, p.errno = writeAtOnce(fd, p.text, p.flags)
		return true
	}
	return p
}

type prompt struct {
	file    *os.File
	conn    syscall.RawConn
	flags   uintptr
	refused bool // terminals do not say whether they would have to wait

	try     func(fd uintptr) bool
	text    []byte
	written int
	errno   syscall.Errno
}

// Write writes at once if it can, and otherwise as the file does.
func (p *prompt) Write(b []byte) (int, error) {
	if p.refused || len(b) == 0 {
		return p.file.Write(b)
	}
	p.text, p.written, p.errno = b, 0, 0
	if err := p.conn.Write(p.try); err != nil {
		return 0, err
	}
	p.refused = p.errno == unix.EOPNOTSUPP || p.errno == unix.ENOSYS
	if p.written == len(b) {
		return p.written, nil
	}
	n, err := p.file.Write(b[p.written:])
	return p.written + n, err
}

// writeAtOnce writes behind what has been written to a file. See pwritev2(2): an offset of -1
// is where the file is.
func writeAtOnce(fd uintptr, b []byte, flags uintptr) (int, syscall.Errno) {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	here := ^uintptr(0)
	n, _, errno := unix.RawSyscall6(unix.SYS_PWRITEV2, fd, uintptr(unsafe.Pointer(&v)), 1, here, here, flags)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
