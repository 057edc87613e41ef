package perfrecord

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A process is what is known of a process: what it has mapped, and its threads' names. It was
// read from /proc, or the kernel told it during a recording. Between two recordings a process
// may change unseen. It is read again after a sample outside of all that it has mapped, and
// now and then.
type process struct {
	maps    []*perfdata.Mmap // of code, in the order of their making
	names   map[int]string   // of threads
	written int              // recordings that it was written to since it was read
	idle    int              // recordings without a sample of it since the last
}

const (
	writtenMost = 16      // recordings before a process is read again
	idleMost    = 60      // recordings before a process without samples is forgotten
	namesMost   = 1 << 12 // threads of a process whose names are kept
	mapsMost    = 1 << 12 // mappings of a process; one with more is always read
	changesMost = 1 << 16 // of a recording; after more of them everything is read again
)

// has reports whether an address is in what a process has mapped.
func (p *process) has(addr uint64) bool {
	return slices.ContainsFunc(p.maps, func(m *perfdata.Mmap) bool { return addr-m.Addr < m.Len })
}

// add adds a mapping, and drops those that it covers.
func (p *process) add(m *perfdata.Mmap) {
	covered := func(o *perfdata.Mmap) bool { return o.Addr >= m.Addr && o.Addr+o.Len <= m.Addr+m.Len }
	if slices.ContainsFunc(p.maps, covered) {
		p.maps = slices.DeleteFunc(slices.Clone(p.maps), covered) // a child may share them
	}
	p.maps = append(p.maps, m)
}

// name keeps the name of a thread.
func (p *process) name(tid int, name string) {
	if p.names == nil || len(p.names) >= namesMost {
		p.names = map[int]string{}
	}
	p.names[tid] = name
}

// A change is what the kernel reports about a process. They are sorted before they are applied:
// each processor has a ring of its own.
type change struct {
	time   uint64
	kind   perfdata.RecordType // FORK, EXIT, COMM or MMAP2
	pid    int
	parent int    // of FORK
	tid    int    // of COMM
	name   string // of COMM
	exec   bool   // COMM by exec
	mmap   *perfdata.Mmap
}

// A seen says which processes run during a recording.
type seen struct {
	known     map[int]*process
	active    map[int]struct{} // they have samples, and have not ended
	threads   map[int]int      // processes of threads with samples
	unnamed   []int            // of threads, to be named
	described map[int]struct{} // what they have mapped is in the recording
	read      map[int]struct{} // from /proc, during this recording
	all       bool             // what all processes have mapped is in the recording
	parents   map[int]int      // of those that have begun
	changed   map[int]struct{} // the kernel told what these have mapped
	changes   []change
	missing   []int // to be described
}

// begin writes the records of processes at the beginning of the first recording. Later ones
// describe processes as they have samples.
func (k *Kept) begin(s *synthesis) {
	now := &seen{active: map[int]struct{}{}, threads: map[int]int{}, described: map[int]struct{}{}, read: map[int]struct{}{}, parents: map[int]int{}, changed: map[int]struct{}{}}
	s.tally.seen = now // what begins meanwhile is noted
	if k.known == nil {
		k.known, now.all = map[int]*process{}, true
	}
	now.known = k.known
	if now.all {
		s.processes(s.numbers("proc"), nil)
	}
}

// sample notes that a thread runs, and whether its code is known. The address is 0 in the
// kernel.
func (s *seen) sample(pid, tid int, addr uint64) {
	if pid <= 0 {
		return
	}
	if _, ok := s.threads[tid]; !ok && pid != tid && len(s.threads) < maxPIDs {
		s.threads[tid] = pid
		s.unnamed = append(s.unnamed, tid)
	}
	if _, ok := s.active[pid]; !ok {
		if len(s.active) >= maxPIDs {
			return
		}
		s.active[pid] = struct{}{}
		if _, ok := s.described[pid]; !ok && !s.all {
			s.missing = append(s.missing, pid)
		}
	}
	if addr != 0 && !s.all {
		s.check(pid, addr)
	}
}

// check has a process read again that runs code which it is not known to have mapped.
func (s *seen) check(pid int, addr uint64) {
	p := s.known[pid]
	if p == nil || p.written >= writtenMost || p.has(addr) {
		return
	}
	_, read := s.read[pid]
	if _, changed := s.changed[pid]; changed || read {
		return
	}
	p.written = writtenMost
	if _, ok := s.described[pid]; ok {
		delete(s.described, pid)
		s.missing = append(s.missing, pid)
	}
}

// note notes what the kernel reports about a process. What the parent of one that begins has
// mapped may not be in the recording.
func (s *seen) note(c change) {
	if len(s.changes) <= changesMost {
		s.changes = append(s.changes, c)
	}
	switch {
	case c.kind == perffile.RecordExit:
		delete(s.active, c.pid)
		return
	case c.kind == perffile.RecordFork:
		if len(s.parents) >= maxPIDs {
			return
		}
		s.parents[c.pid] = c.parent
		delete(s.described, c.pid)
		if _, ok := s.described[c.parent]; ok || s.all {
			s.described[c.pid] = struct{}{}
		}
	case c.exec: // what it maps from now on comes from the kernel
		s.described[c.pid] = struct{}{}
	}
	s.changed[c.pid] = struct{}{}
}

// describe writes the records of processes that run and that are not described yet. What
// precedes them in a round are at most samples of a moment ago.
func (r *Recording) describe() {
	s := r.tally.seen
	if s == nil || len(s.missing)+len(s.unnamed) == 0 {
		return
	}
	out := r.synthesis(&r.spec)
	out.pause, out.brief = nil, true
	for _, pid := range s.missing {
		// The record of its beginning replaces what it has mapped by what its parent has: the
		// ancestors are described as well.
		for range ancestorsMost {
			if _, ok := s.described[pid]; ok {
				break
			}
			s.described[pid] = struct{}{}
			out.recall(pid)
			parent, ok := s.parents[pid]
			if !ok {
				break
			}
			pid = parent
		}
	}
	for _, tid := range s.unnamed {
		if !s.all {
			out.recallName(s.threads[tid], tid)
		}
	}
	s.missing, s.unnamed = s.missing[:0], s.unnamed[:0]
}

// ancestorsMost bounds the ancestors that a process inherits from.
const ancestorsMost = 8

// recall writes what is known of a process, or else reads it.
func (s *synthesis) recall(pid int) {
	p := s.tally.seen.known[pid]
	if p == nil || p.written >= writtenMost || len(p.maps) >= mapsMost {
		s.process(pid)
		return
	}
	p.written++
	s.recallName(pid, pid)
	for _, m := range p.maps {
		own := *m
		own.PID, own.TID = pid, pid
		s.tally.mapped(string(m.Filename), inode{m.Maj, m.Min, m.Inode})
		s.write(&own)
	}
}

// recallName writes the name of a thread that is known, or else reads it.
func (s *synthesis) recallName(pid, tid int) {
	p := s.tally.seen.known[pid]
	if p != nil {
		if name, ok := p.names[tid]; ok {
			s.write(&perfdata.Comm{PID: pid, TID: tid, Comm: []byte(name)})
			return
		}
	}
	s.kept = p
	s.thread(pid, tid)
	s.kept = nil
}

// keep keeps what was read of a process; nil where nothing is kept.
func (s *seen) keep(pid int) *process {
	if s == nil || len(s.known) >= maxPIDs {
		return nil
	}
	s.read[pid] = struct{}{}
	p := &process{}
	s.known[pid] = p
	return p
}

// end takes over what the kernel told during a recording, and forgets processes that do not
// run. With lost records nothing is known for sure.
func (k *Kept) end(s *seen, lost bool) {
	if lost || len(s.changes) > changesMost {
		clear(k.known)
		return
	}
	sorting.Stable(s.changes, func(x, y change) int { return cmp.Compare(x.time, y.time) })
	for i := range s.changes {
		k.apply(&s.changes[i], s)
	}
	for pid, p := range k.known {
		if _, ran := s.active[pid]; ran {
			p.idle = 0
		} else if p.idle++; p.idle > idleMost {
			delete(k.known, pid)
		}
	}
}

func (k *Kept) apply(c *change, s *seen) {
	p := k.known[c.pid]
	switch c.kind {
	case perffile.RecordExit:
		delete(k.known, c.pid)
	case perffile.RecordFork:
		if parent := k.known[c.parent]; parent != nil && len(k.known) < maxPIDs {
			child := &process{maps: slices.Clip(parent.maps), written: parent.written}
			if name, ok := parent.names[c.parent]; ok {
				child.name(c.pid, name)
			}
			k.known[c.pid] = child
		} else if _, read := s.read[c.pid]; !read {
			delete(k.known, c.pid)
		}
	case perffile.RecordComm:
		if c.exec && len(k.known) < maxPIDs {
			p = &process{}
			k.known[c.pid] = p
		}
		if p != nil {
			p.name(c.tid, c.name)
		}
	case perffile.RecordMmap2:
		if p != nil && len(p.maps) < mapsMost {
			p.add(c.mmap)
		}
	}
}

// Where fields of records are; see include/uapi/linux/perf_event.h. The time is in what
// follows a record: thread, time, processor and identifier.
const (
	timeBehind = 24 // of the end
	mmapName   = 72
	commName   = 16
)

// changeOf reads a record of the kernel as a change. It is none if it is of a thread only, or
// no mapping of code.
func changeOf(b []byte) (c change, ok bool) {
	if len(b) < headerSize+8+timeBehind+8 {
		return c, false
	}
	number := func(at int) int { return int(int32(binary.NativeEndian.Uint32(b[at:]))) }
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	misc := binary.NativeEndian.Uint16(b[4:])
	text := func(from int) []byte { name, _, _ := bytes.Cut(b[from:len(b)-timeBehind-8], []byte{0}); return name }
	c = change{time: word(len(b) - timeBehind), kind: perfdata.RecordType(binary.NativeEndian.Uint32(b)), pid: number(8)}
	switch c.kind {
	case perffile.RecordFork: // pid, ppid, tid, ptid
		c.parent = number(12)
		return c, c.pid != c.parent
	case perffile.RecordExit:
		return c, len(b) >= 24+timeBehind+8 && c.pid == number(16)
	case perffile.RecordComm:
		c.tid, c.exec = number(12), misc&perffile.MiscCommExec != 0
		c.name = string(text(commName))
		return c, true
	case perffile.RecordMmap2:
		if len(b) <= mmapName+timeBehind+8 || misc&perffile.MiscMmapData != 0 {
			return c, false
		}
		m := &perfdata.Mmap{Addr: word(16), Len: word(24), PgOff: word(32), Prot: uint32(number(64)), Flags: uint32(number(68)), Filename: bytes.Clone(text(mmapName))}
		m.Misc = perfdata.Misc(misc)
		if misc&perffile.MiscMmapBuildID != 0 {
			const most = 20
			m.BuildID = bytes.Clone(b[44 : 44+min(most, int(b[40]))])
		} else {
			m.Maj, m.Min, m.Inode, m.InodeGeneration = uint32(number(40)), uint32(number(44)), word(48), word(56)
		}
		c.mmap = m
		return c, true
	}
	return c, false
}
