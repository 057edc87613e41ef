package perfrecord

import (
	"encoding/hex"
	"io/fs"
	"slices"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Kept is what several recordings of one machine share, so that short ones which follow each
// other read it once. They must be made one after another.
type Kept struct {
	// Brief says that recordings of the whole machine describe only processes that run. The
	// first describes all of them.
	Brief bool

	last     *seen // of the last recording; nil before the first
	kernel   module
	modules  []module
	list     string // /proc/modules, when modules were read
	features *perfdata.Features
	ids      map[keptFile]string
}

// A keptFile is a file whose build id is known.
type keptFile struct {
	name string
	inode
}

// keptMost bounds the build ids that are kept.
const keptMost = 1 << 14

// readKernel finds out where the kernel and its modules are, as [host.readKernel] does.
func (k *Kept) readKernel(h *host) {
	list, _ := fs.ReadFile(h.root, "proc/modules") // some kernels have none
	if k.kernel.len == 0 || string(list) != k.list {
		h.readKernel()
		k.kernel, k.modules, k.list = h.kernel, h.modules, string(list)
		return
	}
	h.kernel, h.modules = k.kernel, k.modules
}

// header returns what the header says of the machine.
func (k *Kept) header(h *host, o Options) *perfdata.Features {
	if k.features == nil {
		k.features = h.features(o)
	}
	f := *k.features
	return &f
}

// buildID returns the build id of a file, nil if it has none.
func (k *Kept) buildID(name string, is inode) []byte {
	key := keptFile{name, is}
	id, ok := k.ids[key]
	if !ok {
		if len(k.ids) >= keptMost {
			clear(k.ids)
		}
		if k.ids == nil {
			k.ids = map[keptFile]string{}
		}
		id = string(buildID(name))
		k.ids[key] = id
	}
	return []byte(id)
}

// buildID reads the build id of a file, nil if it has none.
func buildID(name string) []byte {
	o, err := object.Open(name, object.Options{})
	if err != nil {
		return nil
	}
	defer o.Close()
	id, err := hex.DecodeString(o.BuildID)
	if err != nil {
		return nil
	}
	return id
}

// A seen says which processes run during a recording.
type seen struct {
	active    map[int]struct{} // they have samples, and have not ended
	threads   map[int]int      // processes of threads with samples
	unnamed   []int            // of threads, to be named
	described map[int]struct{} // what they have mapped is in the recording
	existing  []int            // at the beginning, sorted
	all       bool             // what all of these have mapped is in the recording
	parents   map[int]int      // of those that have begun
	missing   []int            // to be described
}

func newSeen() *seen {
	return &seen{active: map[int]struct{}{}, threads: map[int]int{}, described: map[int]struct{}{}, parents: map[int]int{}}
}

// begin writes the records of processes at the beginning of a recording. In the first one
// these are all, later those that ran in the last one or have begun since.
func (k *Kept) begin(s *synthesis) {
	now := newSeen()
	s.tally.seen = now // what begins meanwhile is noted
	now.existing = s.numbers("proc")
	var list []int
	if last := k.last; last == nil {
		now.all, list = true, now.existing
	} else {
		s.brief = true
		for _, pid := range now.existing {
			_, ran := last.active[pid]
			_, began := last.parents[pid]
			if _, known := slices.BinarySearch(last.existing, pid); ran || !known && !began {
				now.described[pid] = struct{}{}
				list = append(list, pid)
			}
		}
	}
	s.processes(list, nil)
	slices.Sort(now.existing)
}

// sample notes that a thread runs.
func (s *seen) sample(pid, tid int) {
	if _, ok := s.threads[tid]; !ok && pid > 0 && pid != tid && len(s.threads) < maxPIDs {
		s.threads[tid] = pid
		s.unnamed = append(s.unnamed, tid)
	}
	if _, ok := s.active[pid]; ok || pid <= 0 || len(s.active) >= maxPIDs {
		return
	}
	s.active[pid] = struct{}{}
	if _, ok := s.described[pid]; !ok && !s.all {
		s.missing = append(s.missing, pid)
	}
}

// began notes a process that begins. What its parent has mapped may be unknown.
func (s *seen) began(pid, parent int) {
	if pid == parent || len(s.parents) >= maxPIDs {
		return
	}
	s.parents[pid] = parent
	delete(s.described, pid)
	if _, ok := s.described[parent]; ok || s.all {
		s.described[pid] = struct{}{}
	}
}

// ran notes a process that executes a program: the kernel tells what it maps.
func (s *seen) ran(pid int) { s.described[pid] = struct{}{} }

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
			out.process(pid)
			parent, ok := s.parents[pid]
			if !ok {
				break
			}
			pid = parent
		}
	}
	for _, tid := range s.unnamed {
		if !s.all {
			out.thread(s.threads[tid], tid)
		}
	}
	s.missing, s.unnamed = s.missing[:0], s.unnamed[:0]
}

// ancestorsMost bounds the ancestors that a process inherits from.
const ancestorsMost = 8
