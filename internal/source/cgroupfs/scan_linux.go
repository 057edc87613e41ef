package cgroupfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A Reader reads the cgroups below a directory. It belongs to one goroutine.
type Reader struct {
	dir     string // of the tree that is walked
	cpu     string // of version 1's controller cpu; "" for none
	version int
	buf     []byte
	names   []byte // entries of directories
	group   Group
	n       int
	beyond  int
}

// Open finds the tree of cgroups that keeps account of processor time: version 2, or
// version 1's controller cpuacct.
func Open(root string) (*Reader, error) {
	r := &Reader{dir: root, version: 2, buf: make([]byte, 4096), names: make([]byte, 16<<10)}
	is := func(name string) bool { return unix.Access(path.Join(root, name), unix.F_OK) == nil }
	switch {
	case is("cgroup.controllers"):
	case is("cpuacct/cpuacct.usage"), is("cpu,cpuacct/cpuacct.usage"):
		r.version, r.dir, r.cpu = 1, path.Join(root, "cpuacct"), path.Join(root, "cpu")
		if !is("cpuacct/cpuacct.usage") {
			r.dir = path.Join(root, "cpu,cpuacct")
			r.cpu = r.dir
		}
	case is("unified/cgroup.controllers"):
		r.dir = path.Join(root, "unified")
	default:
		return nil, fault.Machinef("%s: no cgroups are mounted there: it has neither cgroup.controllers nor cpuacct", root)
	}
	return r, nil
}

// At returns a reader of a tree of cgroups of any kind, for its paths.
func At(dir string) *Reader {
	return &Reader{dir: dir, version: 2, buf: make([]byte, 4096), names: make([]byte, 16<<10)}
}

// Dir returns the directory of the root cgroup.
func (r *Reader) Dir() string { return r.dir }

// Version returns the version of cgroups, 1 or 2.
func (r *Reader) Version() int { return r.version }

// Beyond returns how many cgroups the last scan left out, as there were too many.
func (r *Reader) Beyond() int { return r.beyond }

// A Group is one cgroup during a scan.
type Group struct {
	ID    uint64 // the kernel's; another cgroup of the same name has another one
	Depth int    // 0 for the root

	r      *Reader
	parent int    // open directory
	at     []byte // path below the root: the last Length bytes are the name
	name   string // relative to parent
}

// Path returns the path below the root; "" for the root.
func (g *Group) Path() string { return string(g.at) }

// Is reports whether the path is this one.
func (g *Group) Is(path string) bool { return string(g.at) == path }

// Scan calls visit for each cgroup, parents first.
func (r *Reader) Scan(visit func(*Group)) error {
	r.n, r.beyond = 0, 0
	fd, err := unix.Open(r.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fault.As(fault.Machine, fmt.Errorf("%s: %w", r.dir, err))
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fault.As(fault.Machine, fmt.Errorf("%s: %w", r.dir, err))
	}
	r.group = Group{ID: st.Ino, r: r, parent: fd, name: ".", at: r.group.at[:0]}
	r.n++
	visit(&r.group)
	return r.children(fd, 1, visit)
}

// children visits the cgroups in a directory.
func (r *Reader) children(fd, depth int, visit func(*Group)) error {
	if depth > deepest {
		r.beyond++
		return nil
	}
	names, err := r.subdirectories(fd)
	if err != nil {
		return err
	}
	length := len(r.group.at)
	var st unix.Stat_t
	for name := range strings.SplitSeq(names, "\x00") {
		if name == "" {
			continue
		}
		if r.n >= most {
			r.beyond++
			continue
		}
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		r.n++
		at := append(append(r.group.at[:length], '/'), name...)
		r.group = Group{ID: st.Ino, Depth: depth, r: r, parent: fd, name: name, at: at}
		visit(&r.group)
		r.group.at = at
		if st.Nlink == 2 { // one without children: its own entry, and the one in its parent
			continue
		}
		below, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is gone
		}
		err = r.children(below, depth+1, visit)
		unix.Close(below)
		if err != nil {
			return err
		}
	}
	r.group.at = r.group.at[:length]
	return nil
}

// subdirectories returns the names of the directories in an open one, each with a zero
// byte behind it.
func (r *Reader) subdirectories(fd int) (string, error) {
	var list strings.Builder
	for {
		n, err := unix.ReadDirent(fd, r.names)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV): // it is gone
			return list.String(), nil
		case err != nil:
			return "", fault.As(fault.Machine, fmt.Errorf("%s%s: %w", r.dir, r.group.at, err))
		case n <= 0:
			return list.String(), nil
		}
		addDirectories(&list, r.names[:n])
	}
}

// addDirectories adds the names of the directories among entries, as getdents64(2) has
// them.
func addDirectories(list *strings.Builder, buf []byte) {
	const length, kind, name = 16, 18, 19 // offsets in struct linux_dirent64
	for len(buf) > name {
		size := int(binary.NativeEndian.Uint16(buf[length:]))
		if size <= name || size > len(buf) {
			return
		}
		text, _, _ := strings.Cut(string(buf[name:size]), "\x00")
		if t := buf[kind]; (t == unix.DT_DIR || t == unix.DT_UNKNOWN) && text != "." && text != ".." {
			list.WriteString(text)
			list.WriteByte(0)
		}
		buf = buf[size:]
	}
}

// read returns the content of a small file of the cgroup, valid until the next call; nil
// if it cannot be read.
func (g *Group) read(file string) []byte { return g.r.readAt(g.parent, g.name+"/"+file) }

func (r *Reader) readAt(dir int, name string) []byte {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, r.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return r.buf[:max(0, n)]
	}
}

// CPU reads the processor time.
func (g *Group) CPU() (c CPU, ok bool) {
	if g.r.version == 2 {
		return parseCPU(g.read("cpu.stat"))
	}
	if c.Usage, ok = number(g.read("cpuacct.usage")); !ok {
		return c, false
	}
	parseTicks(g.read("cpuacct.stat"), &c)
	parseThrottled(g.r.readAt(unix.AT_FDCWD, g.r.cpu+string(g.at)+"/cpu.stat"), &c)
	return c, true
}

// Pressure reads for how long tasks waited. Version 1 does not have it.
func (g *Group) Pressure() (p Pressure) {
	if g.r.version == 1 {
		return p
	}
	for i, file := range [...]string{PressureCPU: "cpu.pressure", PressureIO: "io.pressure", PressureMemory: "memory.pressure"} {
		p[i].Some, p[i].Full, p[i].Known = parsePressure(g.read(file))
	}
	return p
}

// HostPressure reads the same for all tasks of a host, below the root of its files.
func HostPressure(root string) (p Pressure) {
	r := &Reader{buf: make([]byte, 1024)}
	for i, file := range [...]string{PressureCPU: "cpu", PressureIO: "io", PressureMemory: "memory"} {
		p[i].Some, p[i].Full, p[i].Known = parsePressure(r.readAt(unix.AT_FDCWD, path.Join(root, "proc/pressure", file)))
	}
	return p
}
