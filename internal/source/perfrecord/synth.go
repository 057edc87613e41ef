package perfrecord

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/cpulist"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A synthesis makes records of what existed before the kernel began to write them. It
// reads /proc and writes them at time 0. The kernel already records what changes
// meanwhile.
type synthesis struct {
	root  fs.FS
	write func(perfdata.Record)
	tally *tally
	data  bool     // mappings of data are wanted, too
	brief bool     // of threads, only the first is named
	kept  *process // takes what is read; nil for nothing

	// pause is called after each process: others write meanwhile, into what has
	// little room. nil for nothing.
	pause func()
}

// kernel tells where the kernel's code is.
func (s *synthesis) kernel(h *host) {
	for i, m := range append([]module{h.kernel}, h.modules...) {
		if m.len == 0 {
			continue
		}
		rec := &perfdata.Mmap{PID: -1, Addr: m.addr, Len: m.len, Filename: []byte(m.name)}
		rec.Type, rec.Misc = perffile.RecordMmap, perfdata.Misc(perfdata.ModeKernel)
		if i == 0 {
			rec.PgOff = m.addr // of the symbol in its name
		}
		s.write(rec)
	}
}

// command writes the records of a process that is about to execute its program. With
// maps, it has just executed it.
func (s *synthesis) command(pid int, program string, maps []byte) {
	name := "cyclestack"
	if maps != nil {
		name = path.Base(program)
		name = name[:min(len(name), maxComm)]
	}
	s.write(&perfdata.Comm{PID: pid, TID: pid, Comm: []byte(name)})
	s.maps(pid, maps)
}

// maxComm is how long the kernel keeps the names of threads.
const maxComm = 15

// everything writes the records of all processes.
func (s *synthesis) everything() { s.processes(s.numbers("proc"), nil) }

// processes writes the records of processes and threads, and what they have mapped.
func (s *synthesis) processes(pids, tids []int) {
	for _, pid := range pids {
		s.process(pid)
		if s.pause != nil {
			s.pause()
		}
	}
	for _, tid := range tids {
		if pid := s.owner(tid); pid > 0 {
			s.process(pid)
		}
	}
}

func (s *synthesis) process(pid int) {
	s.kept = s.tally.seen.keep(pid)
	defer func() { s.kept = nil }()
	dir := path.Join("proc", strconv.Itoa(pid))
	tids := []int{pid}
	if !s.brief {
		tids = s.numbers(path.Join(dir, "task"))
	}
	for _, tid := range tids {
		s.thread(pid, tid)
	}
	maps, err := fs.ReadFile(s.root, path.Join(dir, "maps"))
	if err != nil {
		return // it has ended, or is another user's
	}
	s.maps(pid, maps)
}

// thread writes the name of a thread.
func (s *synthesis) thread(pid, tid int) {
	name, err := fs.ReadFile(s.root, path.Join("proc", strconv.Itoa(pid), "task", strconv.Itoa(tid), "comm"))
	if err == nil {
		text := strings.TrimRight(string(name), "\n")
		if s.kept != nil {
			s.kept.name(tid, text)
		}
		s.write(&perfdata.Comm{PID: pid, TID: tid, Comm: []byte(text)})
	}
}

// maps tells what a process has mapped.
func (s *synthesis) maps(pid int, maps []byte) {
	for line := range strings.Lines(string(maps)) {
		m, ok := parseMap(strings.TrimRight(line, "\n"))
		code := ok && m.Prot&protExec != 0
		if !code && (!ok || !s.data) {
			continue
		}
		m.PID, m.TID = pid, pid
		if code {
			s.tally.mapped(string(m.Filename), inode{m.Maj, m.Min, m.Inode})
			if s.kept != nil && len(s.kept.maps) < mapsMost {
				s.kept.maps = append(s.kept.maps, m)
			}
		} else {
			m.Misc |= perffile.MiscMmapData
		}
		s.write(m)
	}
}

// maxCgroups bounds how many cgroups are named.
const maxCgroups = 1 << 16

// cgroups tells the names of the cgroups below a directory, whose numbers are
// those of their directories.
func (s *synthesis) cgroups(dir string) {
	n := 0
	_ = fs.WalkDir(s.root, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // it has ended, or is another user's
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if n++; n > maxCgroups {
			return fs.SkipAll
		}
		if id := inodeOf(info); id != 0 {
			s.write(&perfdata.Cgroup{ID: id, Path: []byte("/" + strings.TrimPrefix(strings.TrimPrefix(name, dir), "/"))})
		}
		return nil
	})
}

// numbers returns the names in a directory that are numbers.
func (s *synthesis) numbers(dir string) []int {
	entries, err := fs.ReadDir(s.root, dir)
	if err != nil && len(entries) == 0 {
		return nil
	}
	var list []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			list = append(list, n)
		}
	}
	return list
}

// owner returns the process of a thread, 0 if there is no such thread.
func (s *synthesis) owner(tid int) int {
	text, err := fs.ReadFile(s.root, path.Join("proc", strconv.Itoa(tid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(id))
			return n
		}
	}
	return 0
}

// Bits of a mapping's protection and flags: see mmap(2).
const (
	protRead, protWrite, protExec = 1, 2, 4
	mapShared, mapPrivate         = 1, 2
)

// parseMap parses a line of /proc/PID/maps: "addr-addr rwxp offset major:minor
// inode   file".
func parseMap(line string) (m *perfdata.Mmap, ok bool) {
	addresses, rest, _ := strings.Cut(line, " ")
	modes, rest, _ := strings.Cut(rest, " ")
	offset, rest, _ := strings.Cut(rest, " ")
	device, rest, _ := strings.Cut(rest, " ")
	number, file, _ := strings.Cut(rest, " ")
	if len(modes) != 4 {
		return nil, false
	}
	low, high, _ := strings.Cut(addresses, "-")
	major, minor, _ := strings.Cut(device, ":")
	var n [6]uint64
	for i, x := range [...]struct {
		text       string
		base, bits int
	}{{low, 16, 64}, {high, 16, 64}, {offset, 16, 64}, {major, 16, 32}, {minor, 16, 32}, {number, 10, 64}} {
		var err error
		if n[i], err = strconv.ParseUint(x.text, x.base, x.bits); err != nil {
			return nil, false
		}
	}
	m = &perfdata.Mmap{Addr: n[0], Len: n[1] - n[0], PgOff: n[2], Maj: uint32(n[3]), Min: uint32(n[4]), Inode: n[5], Flags: mapPrivate}
	m.Misc = perfdata.Misc(perfdata.ModeUser)
	for i, bit := range []uint32{protRead, protWrite, protExec} {
		if modes[i] != '-' {
			m.Prot |= bit
		}
	}
	if modes[3] == 's' {
		m.Flags = mapShared
	}
	if file = strings.TrimLeft(file, " "); file == "" {
		file = "//anon"
	}
	m.Filename = []byte(file)
	return m, true
}

// parseCPUs returns the processors of a list, none if it is none.
func parseCPUs(list string) []int {
	cpus, err := cpulist.Parse(list)
	if err != nil {
		return nil
	}
	return cpus
}
