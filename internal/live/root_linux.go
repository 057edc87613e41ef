package live

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Root is the machine's file system. What is read of it are small files of the
// kernel's, many of them before a program is started and some again and again, so
// they are opened without what package os does for files that may have to be waited
// for, and those that are there as long as the machine is are kept open when they
// are read again.
func Root() fs.FS { return &root{FS: os.DirFS("/"), files: map[string]int{}} }

type root struct {
	fs.FS

	mu    sync.Mutex
	files map[string]int // those that were opened: what they are kept open as, or notKept
}

// Bounds on what is kept open, and what stands for a file that is not.
const (
	mostKept = 32
	notKept  = -1
)

// Open opens a file or a directory.
func (r *root) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, again := r.kept(name)
	if fd >= 0 {
		return &file{fd: fd, name: name, keeper: r}, nil
	}
	for {
		fd, err := open("/" + name)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		default:
			f := &file{fd: fd, name: name}
			if again && r.keep(name, fd) {
				f.keeper = r
			}
			return f, nil
		}
	}
}

// open opens a file of the kernel's, which need not be waited for: see pread.
func open(path string) (int, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	here := unix.AT_FDCWD
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(p)), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_LARGEFILE, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// kept returns as what a file is kept open, and whether it has been opened before
// and is worth to be kept.
func (r *root) kept(name string) (fd int, again bool) {
	rest, process := strings.CutPrefix(name, "proc/")
	if process && rest[0] >= '0' && rest[0] <= '9' {
		return notKept, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fd, again = r.files[name]
	if !again && len(r.files) < mostKept {
		r.files[name] = notKept
	}
	if !again {
		fd = notKept
	}
	return fd, again
}

// keep keeps a file open, unless it is a directory or kept already.
func (r *root) keep(name string, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files[name] != notKept {
		return false
	}
	r.files[name] = fd
	return true
}

// forget has a file opened again the next time: it is gone, as what a cgroup or a
// processor that went offline had, and may come back. Others may be reading it.
func (r *root) forget(name string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, name)
}

// Stat, ReadDir, ReadLink and Lstat are those of os.DirFS.

func (r *root) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

func (r *root) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

func (r *root) ReadLink(name string) (string, error) { return fs.ReadLink(r.FS, name) }

func (r *root) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.FS, name) }

// A file is one that is open, read from its beginning. It is used by one goroutine.
type file struct {
	fd     int
	name   string
	at     int64
	keeper *root    // that keeps it open; nil for none
	dir    *os.File // the same, as a directory; nil until it is read as one
}

// Read reads on.
func (f *file) Read(b []byte) (int, error) {
	for {
		n, err := pread(f.fd, b, f.at)
		switch {
		case err == unix.EINTR:
		case err != nil:
			f.keeper.forget(f.name)
			return 0, &fs.PathError{Op: "read", Path: f.name, Err: err}
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			f.at += int64(n)
			return n, nil
		}
	}
}

// pread reads from a place in a file. What the kernel tells need not be waited for, so the
// runtime is not told of the call: it would wake a thread that looks after those that wait.
// It is preadv(2) as that is given the place in the same way on all processors.
func pread(fd int, b []byte, at int64) (int, error) {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	n, _, errno := unix.RawSyscall6(unix.SYS_PREADV, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1, uintptr(at), uintptr(at>>32), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Reread reads the file from its beginning, as it is now.
func (f *file) Reread(b []byte) (int, error) {
	f.at = 0
	n, err := f.Read(b)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// Readdirnames returns the names in a directory, all of them.
func (f *file) Readdirnames(int) (names []string, err error) {
	b := make([]byte, 1<<13)
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_GETDENTS64, uintptr(f.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return names, &fs.PathError{Op: "readdirent", Path: f.name, Err: errno}
		case n == 0:
			return names, nil
		default:
			_, _, names = unix.ParseDirent(b[:n], -1, names)
		}
	}
}

// ReadDir reads a directory on.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	if f.dir == nil {
		f.dir = os.NewFile(uintptr(f.fd), "/"+f.name)
	}
	return f.dir.ReadDir(n)
}

// Stat is that of the file of this name.
func (f *file) Stat() (fs.FileInfo, error) { return os.Stat("/" + f.name) }

// Close closes the file, unless it is kept.
func (f *file) Close() error {
	switch {
	case f.dir != nil:
		return f.dir.Close()
	case f.keeper != nil:
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(f.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
