package samples

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A memoryObject is a piece of memory that processes map at addresses of their own: a file, or
// anonymous memory, mapped with MAP_SHARED.
type memoryObject struct {
	major, minor      uint32
	inode, generation uint64
}

// sharedMaps are the shared mappings of processes.
type sharedMaps struct {
	pids    map[int][]sharedMap
	objects map[memoryObject]int // numbers from 1
	n       int                  // of mappings
}

type sharedMap struct {
	start, end, offset uint64
	object             int
}

// mapShared is the flag MAP_SHARED of a mapping.
const mapShared = 1

// maxShared bounds the mappings that are remembered.
const maxShared = 1 << 17

// know takes a record in the order of the file.
func (s *sharedMaps) know(rec perfdata.Record) {
	switch rec := rec.(type) {
	case *perfdata.Mmap:
		s.mapped(rec)
	case *perfdata.Task:
		switch list := s.pids[rec.PPID]; {
		case rec.PID == rec.PPID:
		case rec.Type == perffile.RecordFork && s.n+len(list) <= maxShared && len(list) > 0:
			s.n += len(list) - len(s.pids[rec.PID])
			s.pids[rec.PID] = slices.Clone(list)
		}
	case *perfdata.Comm:
		if rec.Misc&perffile.MiscCommExec != 0 {
			s.n -= len(s.pids[rec.PID])
			delete(s.pids, rec.PID)
		}
	}
}

// mapped notes a mapping, which replaces what was at its addresses. Without an inode, as in
// records with build ids, nobody can tell which mappings are of the same memory.
func (s *sharedMaps) mapped(rec *perfdata.Mmap) {
	list := s.pids[rec.PID]
	end := rec.Addr + rec.Len
	if rec.Type != perffile.RecordMmap2 || end < rec.Addr {
		return
	}
	kept := slices.DeleteFunc(list, func(m sharedMap) bool { return m.start < end && rec.Addr < m.end })
	s.n -= len(list) - len(kept)
	if rec.Flags&mapShared != 0 && rec.Misc&perffile.MiscMmapBuildID == 0 && rec.Inode != 0 && s.n < maxShared {
		key := memoryObject{rec.Maj, rec.Min, rec.Inode, rec.InodeGeneration}
		if s.objects == nil {
			s.objects, s.pids = map[memoryObject]int{}, map[int][]sharedMap{}
		}
		number, ok := s.objects[key]
		if !ok {
			number = len(s.objects) + 1
			s.objects[key] = number
		}
		kept = append(kept, sharedMap{rec.Addr, end, rec.PgOff, number})
		s.n++
	}
	if len(kept) > 0 {
		s.pids[rec.PID] = kept
	} else if len(list) > 0 {
		delete(s.pids, rec.PID)
	}
}

// find returns the number of the object that an address is in, and where; 0 for none.
func (s *sharedMaps) find(pid int, addr uint64) (object int, offset uint64) {
	for _, m := range s.pids[pid] {
		if m.start <= addr && addr < m.end {
			return m.object, addr - m.start + m.offset
		}
	}
	return 0, 0
}
