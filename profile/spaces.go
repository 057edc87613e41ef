package profile

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Spaces are the address spaces of the processes of a recording, and the names of their
// threads, over time.
//
// The methods that hand in events take the time first, in nanoseconds of the recording's clock.
// In old recordings some records have no time: then all events and queries take a number that
// grows with the position in the file. Events may come in any order up to the next Settle,
// which sorts them by time and applies them. Find, Mapped, Number and Comm see the events that
// were settled, and may ask about any time in any order.
//
// A mapping holds from its time on. It also holds for earlier times if nothing else is
// known to have been mapped there. Memory grows with the number of different mappings and
// not with the length of the recording; see Forget.
//
// Spaces remember where the last addresses were found. Another goroutine needs a Copy.
type Spaces struct {
	// Late counts the events that came after later ones had been settled. They apply from
	// the latest settled time on.
	Late int

	processes map[int]*process
	kernel    process
	comms     map[int][]comm
	files     map[fileKey]*File
	list      []*File
	byName    map[string][]*File
	buildIDs  map[string]string
	pending   []event
	version   uint32
	numbers   uint32 // the last that a space was given
	settled   uint64
	random    *rand.Rand
	unmapped  *File // the kernel's code without a recorded mapping
	views     views
}

// A process is the history of one address space.
type process struct {
	versions []version // by time; the first holds for all times before as well
	exited   uint64    // if its last event was its end, otherwise 0
}

// A version is an address space from a time on.
type version struct {
	time uint64
	root *node
	id   uint32 // of the nodes that the version may change
	// number changes with what is mapped; see Number.
	number uint32
}

// A comm is the name of a thread from a time on.
type comm struct {
	time uint64
	name string
}

type fileKey struct {
	name, buildID string
	pid           int
	kind          kind
}

// An event is a change that was not applied yet.
type event struct {
	time  uint64
	apply func(uint64)
}

// NewSpaces returns spaces without mappings.
func NewSpaces() *Spaces {
	return &Spaces{
		processes: map[int]*process{},
		comms:     map[int][]comm{},
		files:     map[fileKey]*File{},
		byName:    map[string][]*File{},
		buildIDs:  map[string]string{},
		numbers:   numberFirst,
		random:    rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		unmapped:  newFile(fileKey{name: "[kernel]", kind: kindKernel}),
	}
}

// BuildID states the build id of a file for mappings without one, as the table in a recording's
// header does. It may come before or after the mappings, and before the file's first use by a
// Symbolizer.
func (s *Spaces) BuildID(file, id string) {
	s.buildIDs[file] = id
	for _, f := range s.byName[file] {
		if f.BuildID != "" {
			continue
		}
		f.BuildID = id
		key := fileKey{name: f.Name, buildID: id, pid: f.PID, kind: f.kind}
		if s.files[key] == nil { // so that later mappings are of the same file
			s.files[key] = f
		}
	}
}

// Files returns everything that was mapped, in the order of its first mapping.
func (s *Spaces) Files() []*File { return s.list }

// Map notes that memory was mapped. It replaces what was there before.
func (s *Spaces) Map(time uint64, m Mapping) {
	if m.Start+m.Len < m.Start { // the kernel's own may be said to go up to the end
		m.Len = ^uint64(0) - m.Start
	}
	if m.Len == 0 {
		return
	}
	if m.Kernel {
		m.PID = kernelPID
	}
	file := s.file(m)
	s.add(time, func(time uint64) { s.insert(time, m, file) })
}

// Fork notes that a process, or a thread of one, was created. A process starts with a copy
// of its parent's memory. Leave out the events that a recorder makes up for processes that
// existed before the recording (PERF_RECORD_MISC_FORK_EXEC).
func (s *Spaces) Fork(time uint64, pid, tid, parentPID, parentTID int) {
	s.add(time, func(time uint64) {
		if name := s.Comm(time, parentTID); name != "" {
			s.rename(time, tid, name)
		}
		if pid != parentPID {
			s.inherit(time, pid, parentPID)
		}
	})
}

// SetComm notes the name of a thread. With exec its process runs a new program, and nothing
// is mapped any more.
func (s *Spaces) SetComm(time uint64, pid, tid int, name string, exec bool) {
	s.add(time, func(time uint64) {
		s.rename(time, tid, name)
		if exec {
			s.process(pid).begin(s, time, nil)
		}
	})
}

// Exit notes that a thread has ended.
func (s *Spaces) Exit(time uint64, pid, tid int) {
	s.add(time, func(time uint64) {
		if p := s.processes[pid]; p != nil && pid == tid {
			p.exited = max(time, 1)
		}
	})
}

// KernelSymbol notes that the kernel made code, such as a BPF program's, or removed it
// (PERF_RECORD_KSYMBOL).
func (s *Spaces) KernelSymbol(time, addr, size uint64, name string, removed bool) {
	m := Mapping{PID: kernelPID, Start: addr, Len: size, File: name}
	if size == 0 || addr+size < addr {
		return
	}
	if removed {
		s.add(time, func(time uint64) { s.unmap(time, m) })
		return
	}
	file := s.intern(fileKey{name: name, kind: kindKernelSym})
	if file.referenceAddress == 0 {
		file.referenceAddress = addr
	}
	s.add(time, func(time uint64) { s.insert(time, m, file) })
}

func (s *Spaces) add(time uint64, apply func(uint64)) {
	s.pending = append(s.pending, event{time, apply})
}

// Settle applies the events that were handed in, in order of time.
func (s *Spaces) Settle() {
	s.views = views{}
	sorting.Stable(s.pending, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	for _, e := range s.pending {
		if e.time < s.settled {
			s.Late++
		}
		s.settled = max(s.settled, e.time)
		e.apply(s.settled)
	}
	s.pending = s.pending[:0]
	s.views = views{} // a fork asks for its parent's name
}

// Forget drops what only times before the given one need: earlier versions, and processes
// that had ended. It bounds memory while a recording is read as it is written.
func (s *Spaces) Forget(time uint64) {
	s.views = views{}
	for pid, p := range s.processes {
		if p.exited != 0 && p.exited < time {
			delete(s.processes, pid)
			delete(s.comms, pid)
			continue
		}
		p.versions = since(p.versions, time, func(v version) uint64 { return v.time })
	}
	for tid, c := range s.comms {
		s.comms[tid] = since(c, time, func(c comm) uint64 { return c.time })
	}
}

// since drops the entries that are replaced by others at or before a time.
func since[T any](list []T, time uint64, of func(T) uint64) []T {
	n := sort.Search(len(list), func(i int) bool { return of(list[i]) > time })
	if n < 2 {
		return list
	}
	return slices.Clone(list[n-1:])
}

// file returns the file of a mapping, which is made at its first mapping.
func (s *Spaces) file(m Mapping) *File {
	key := fileKey{name: m.File, buildID: m.BuildID, kind: kindOf(m)}
	if key.buildID == "" {
		key.buildID = s.buildIDs[listed(m.File, key.kind)]
	}
	switch key.kind {
	case kindPerfMap:
		key.name, key.buildID, key.pid = object.PerfMapName(m.PID), "", m.PID
	case kindJitdump:
		key.pid = m.PID
	}
	f := s.intern(key)
	if key.kind == kindKernel && f.reference == "" {
		f.reference, f.referenceAddress = reference(m)
	}
	return f
}

// listed returns the name of a file in a table of build ids: the kernel's is without the
// reference symbol.
func listed(name string, kind kind) string {
	if end := strings.IndexByte(name, ']'); kind == kindKernel && end >= 0 {
		return name[:end+1]
	}
	return name
}

func (s *Spaces) intern(key fileKey) *File {
	f, ok := s.files[key]
	if !ok {
		f = newFile(key)
		s.files[key] = f
		s.list = append(s.list, f)
		name := listed(f.Name, f.kind)
		s.byName[name] = append(s.byName[name], f)
	}
	return f
}

func newFile(key fileKey) *File {
	k := key.kind
	return &File{Name: key.name, BuildID: key.buildID, PID: key.pid, kind: k,
		Kernel: k == kindKernel || k == kindModule || k == kindKernelSym, Anonymous: k == kindPerfMap || k == kindMemory}
}

// process returns the address space of a process.
func (s *Spaces) process(pid int) *process {
	if pid == kernelPID {
		return &s.kernel
	}
	p := s.processes[pid]
	if p == nil {
		p = &process{}
		s.processes[pid] = p
	}
	return p
}

// insert applies a mapping.
func (s *Spaces) insert(time uint64, m Mapping, file *File) {
	p := s.process(m.PID)
	p.exited = 0
	n := &node{start: m.Start, end: m.Start + m.Len, offset: m.PgOff, file: file, priority: s.random.Uint32()}
	if file.kind.absolute() {
		n.offset = m.Start
	}
	v := p.change(s, time, m.Start, n.end)
	n.owner = v.id
	v.root, v.number = v.root.replace(n, v.id), s.newNumber()
}

// unmap applies the end of a mapping.
func (s *Spaces) unmap(time uint64, m Mapping) {
	v := s.process(m.PID).change(s, time, m.Start, m.Start+m.Len)
	v.root, v.number = v.root.remove(m.Start, m.Start+m.Len, v.id), s.newNumber()
}

// inherit gives a new process the memory of its parent.
func (s *Spaces) inherit(time uint64, pid, parent int) {
	from := s.process(parent)
	var root *node
	if n := len(from.versions); n > 0 {
		root = from.versions[n-1].root
		from.versions[n-1].id = s.newVersion() // the nodes are no longer its own
	}
	p := s.process(pid)
	p.exited = 0
	p.begin(s, time, root)
}

func (s *Spaces) newVersion() uint32 {
	s.version++
	return s.version
}

func (s *Spaces) newNumber() uint32 {
	s.numbers++
	return s.numbers
}

// change returns the version to change a range in: the current one if nothing is mapped
// there yet, otherwise a new one.
func (p *process) change(s *Spaces, time, start, end uint64) *version {
	n := len(p.versions)
	switch {
	case n == 0:
		p.begin(s, time, nil)
	case p.versions[n-1].time < time && p.versions[n-1].root.overlaps(start, end):
		p.begin(s, time, p.versions[n-1].root)
	}
	return &p.versions[len(p.versions)-1]
}

// begin starts a version.
func (p *process) begin(s *Spaces, time uint64, root *node) {
	v := version{time: time, root: root, id: s.newVersion(), number: s.newNumber()}
	if n := len(p.versions); n > 0 && p.versions[n-1].time == time {
		p.versions[n-1] = v
		return
	}
	p.versions = append(p.versions, v)
}

// at returns the address space at a time.
func (p *process) at(time uint64) *node {
	if p == nil {
		return nil
	}
	v := p.versions
	switch n := len(v); {
	case n == 0:
		return nil
	case n == 1 || v[n-1].time <= time:
		return v[n-1].root
	}
	i := sort.Search(len(v), func(i int) bool { return v[i].time > time })
	return v[max(i-1, 0)].root
}

func (s *Spaces) rename(time uint64, tid int, name string) {
	list := s.comms[tid]
	n := len(list)
	switch {
	case n > 0 && list[n-1].time == time:
		list[n-1].name = name
		return
	case n > 0 && list[n-1].name == name:
		return
	}
	s.comms[tid] = append(list, comm{time, name})
}

// Comm returns the name of a thread at a time, or "" if it is not known. Thread 0 is the
// idle thread, with the kernel's name for it.
func (s *Spaces) Comm(time uint64, tid int) string {
	v := &s.views.names[uint(tid)%recentViews]
	if v.tid != tid || time < v.first || time > v.last || v.last == 0 {
		*v = s.named(time, tid)
	}
	return v.name
}

// A named is a thread with its name, from a time to another.
type named struct {
	name        string
	tid         int
	first, last uint64
}

// named looks for the name of a thread at a time.
func (s *Spaces) named(time uint64, tid int) named {
	out := named{tid: tid, last: ^uint64(0)}
	list := s.comms[tid]
	switch {
	case tid == 0:
		out.name = "swapper"
		return out
	case len(list) == 0:
		return out
	}
	i := max(0, sort.Search(len(list), func(i int) bool { return list[i].time > time })-1)
	if i+1 < len(list) {
		out.last = list[i+1].time - 1
	}
	if i > 0 {
		out.first = list[i].time
	}
	out.name = list[i].name
	return out
}

// Find returns the place of an address of a process. In the kernel, addresses without a
// recorded mapping are places in a file [kernel]: the kernel does not show its addresses to
// all users. Find is faster if an address is near the one before.
func (s *Spaces) Find(time uint64, pid int, addr uint64, mode Mode) Place {
	var v *view
	otherwise := (*File)(nil)
	switch mode {
	case User:
		v = s.userView(time, pid)
	case Kernel:
		v, otherwise = s.kernelView(time), s.unmapped
	case 0:
		if n := s.processes[pid].at(time).find(addr); n != nil {
			return placeIn(n, nil, addr)
		}
		return placeIn(s.kernel.at(time).find(addr), nil, addr)
	default:
		return Place{Offset: addr}
	}
	n := v.last
	if n == nil || addr < n.start || addr >= n.end {
		if n = v.root.find(addr); n != nil {
			v.last = n
		}
	}
	return placeIn(n, otherwise, addr)
}

// placeIn returns the place of an address in a mapping, or in otherwise if there is none.
func placeIn(n *node, otherwise *File, addr uint64) Place {
	if n == nil {
		return Place{File: otherwise, Offset: addr}
	}
	return Place{File: n.file, Offset: n.offset + (addr - n.start)}
}

// Copy returns spaces for another goroutine, to find what was settled. Hand in events to
// the original only, while no copy is in use.
func (s *Spaces) Copy() *Spaces {
	out := *s
	out.views = views{}
	return &out
}

// A space is the meaning of a process's or the kernel's addresses, as long as nothing changes
// there.
type space struct {
	number uint32
	mode   Mode
	pid    int32  // not the kernel's
	from   uint64 // the first time
	length uint64 // of the time; the last one is included
}

// has reports whether the space holds for a sample.
func (s *space) has(time uint64, pid int32, mode Mode) bool {
	return time-s.from <= s.length && s.pid == pid && s.mode == mode && s.number != 0
}

// The numbers of spaces without any mapping; those of others follow.
const (
	numberEmpty uint32 = 1 + iota
	numberEmptyKernel
	numberFirst
)

// views are the spaces that were asked about last. They hold until the next change.
type views struct {
	last   space // that Number returned
	kernel view
	recent [recentViews]view // of processes
	names  [recentViews]named
}

// recentViews is how many processes are remembered, a power of two.
const recentViews = 64

// A view is a space, and what is mapped in it.
type view struct {
	space
	root *node
	last *node // where an address was
}

// Number identifies the meaning of addresses: in spaces of one number, the same addresses are
// the same places, also after later calls of Settle and Forget. It is 0 if that is not known.
func (s *Spaces) Number(time uint64, pid int32, mode Mode) uint32 {
	if mode == Kernel {
		return s.kernelView(time).number
	}
	if !s.views.last.has(time, pid, mode) {
		s.views.last = s.space(time, pid, mode)
	}
	return s.views.last.number
}

func (s *Spaces) space(time uint64, pid int32, mode Mode) space {
	switch mode {
	case User:
		return s.userView(time, int(pid)).space
	case 0:
		return space{}
	}
	return space{number: numberEmpty, mode: mode, pid: pid, length: ^uint64(0)}
}

func (s *Spaces) userView(time uint64, pid int) *view {
	v := &s.views.recent[uint(pid)%recentViews]
	if !v.has(time, int32(pid), User) {
		*v = s.processes[pid].view(time, numberEmpty)
		v.pid, v.mode = int32(pid), User
	}
	return v
}

func (s *Spaces) kernelView(time uint64) *view {
	v := &s.views.kernel
	if time-v.from > v.length || v.number == 0 {
		*v = s.kernel.view(time, numberEmptyKernel)
		v.mode = Kernel
	}
	return v
}

// view returns an address space at a time. The number is for one without mappings.
func (p *process) view(time uint64, empty uint32) view {
	if p == nil || len(p.versions) == 0 {
		return view{space: space{number: empty, length: ^uint64(0)}}
	}
	v := p.versions
	i := max(1, sort.Search(len(v), func(i int) bool { return v[i].time > time }))
	out := view{space: space{number: v[i-1].number, length: ^uint64(0)}, root: v[i-1].root}
	if i > 1 {
		out.from = v[i-1].time
	}
	if i < len(v) {
		out.length = v[i].time - 1
	}
	out.length -= out.from
	return out
}
