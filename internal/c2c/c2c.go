// Package c2c finds the cache lines that several threads use, from sampled loads and
// stores. It counts how often a load found the line in another core's cache, and where it is
// read and written. Threads that use different bytes of a line share it falsely: set apart,
// they would not wait for each other.
//
// Accesses are counted as perf c2c does (perf's c2c_decode_stats). A sample counts once,
// whatever its period: loads and stores are sampled at periods of their own.
package c2c

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// An Access is a sampled load or store.
type Access struct {
	Source     perffile.DataSrc
	Store      bool
	Addr, Phys uint64 // Phys is 0 if it is not known
	Width      int    // bytes; 0 if it is not known
	Latency    uint64 // cycles; 0 if it is not known
	PID, TID   int
	CPU, Node  int // -1 if it is not known
	IP         uint64
	Kernel     bool

	// Object is the number of the memory that several processes map, and Offset the place in
	// it; 0 for other memory.
	Object int
	Offset uint64
}

// Counts are of accesses, by what they are and where their data was. The names are perf's.
type Counts struct {
	Records     int64 `json:"records"`
	Loads       int64 `json:"loads"`
	Stores      int64 `json:"stores"`
	LocalHITM   int64 `json:"local_hitm"` // loads from a line that another cache had modified
	RemoteHITM  int64 `json:"remote_hitm"`
	LocalPeer   int64 `json:"local_peer"` // loads from another core's cache, in whatever state
	RemotePeer  int64 `json:"remote_peer"`
	LFB         int64 `json:"fill_buffer"` // loads that hit
	L1          int64 `json:"l1"`
	L2          int64 `json:"l2"`
	LLC         int64 `json:"llc"`
	RemoteHit   int64 `json:"remote_hit"` // loads from a remote cache that had not modified the line
	LocalDRAM   int64 `json:"local_dram"`
	RemoteDRAM  int64 `json:"remote_dram"`
	Miss        int64 `json:"load_miss"`
	StoreL1Hit  int64 `json:"store_l1_hit"`
	StoreL1Miss int64 `json:"store_l1_miss"`
	StoreNA     int64 `json:"store_na"`
	Locked      int64 `json:"locked"`
	BlockedData int64 `json:"blocked_data"` // by a store whose data or address conflicted
	BlockedBy   int64 `json:"blocked_address"`

	// Latencies of loads in cycles: from lines modified remotely, locally, from peers, and
	// others.
	RemoteHITMCycles Mean `json:"remote_hitm_cycles"`
	LocalHITMCycles  Mean `json:"local_hitm_cycles"`
	PeerCycles       Mean `json:"peer_cycles"`
	LoadCycles       Mean `json:"load_cycles"`
}

// A Mean is a sum and its number of terms.
type Mean struct {
	Sum float64
	N   int64
}

// Value is the mean, 0 of nothing.
func (m Mean) Value() float64 { return m.Sum / float64(max(1, m.N)) }

// MarshalJSON implements json.Marshaler: the mean, null of nothing.
func (m Mean) MarshalJSON() ([]byte, error) {
	if m.N == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(m.Value())
}

func (m *Mean) add(v uint64) {
	if v > 0 {
		m.Sum += float64(v)
		m.N++
	}
}

// HITM is the loads from lines that another cache had modified.
func (c *Counts) HITM() int64 { return c.LocalHITM + c.RemoteHITM }

// Peer is the loads from another core's cache.
func (c *Counts) Peer() int64 { return c.LocalPeer + c.RemotePeer }

// The bits of the kernel's old field of levels.
const (
	levelNA = 1 << iota
	levelHit
	levelMiss
	levelL1
	levelLFB
	levelL2
	levelL3
	levelRAM
	levelRemoteRAM1
	levelRemoteRAM2
	levelRemoteCache1
	levelRemoteCache2
)

// levels returns the old field of levels. Where only the newer one is set, it follows.
func levels(d perffile.DataSrc) uint64 {
	if old := uint64(d) >> 5 & 0x3fff; old != 0 {
		return old
	}
	switch d.Level() {
	case perffile.LevelL0, perffile.LevelL1:
		return levelHit | levelL1
	case perffile.LevelLFB, perffile.LevelL2MHB:
		return levelHit | levelLFB
	case perffile.LevelL2:
		return levelHit | levelL2
	case perffile.LevelL3, perffile.LevelL4, perffile.LevelMSC:
		return levelHit | levelL3
	case perffile.LevelRAM, perffile.LevelPMEM, perffile.LevelCXL:
		return levelHit | levelRAM
	}
	return 0
}

// add counts an access.
func (c *Counts) add(a *Access) {
	c.Records++
	if a.Source.Locked() {
		c.Locked++
	}
	if a.Source.Blocked()&perffile.BlockedData != 0 {
		c.BlockedData++
	}
	if a.Source.Blocked()&perffile.BlockedAddr != 0 {
		c.BlockedBy++
	}
	if a.Store {
		c.store(levels(a.Source))
		return
	}
	c.Loads++
	hitm, local, peer := c.RemoteHITM, c.LocalHITM, c.Peer()
	c.load(a.Source)
	switch {
	case c.RemoteHITM > hitm:
		c.RemoteHITMCycles.add(a.Latency)
	case c.LocalHITM > local:
		c.LocalHITMCycles.add(a.Latency)
	case c.Peer() > peer:
		c.PeerCycles.add(a.Latency)
	default:
		c.LoadCycles.add(a.Latency)
	}
}

func (c *Counts) store(level uint64) {
	c.Stores++
	switch {
	case level&levelHit != 0 && level&levelL1 != 0:
		c.StoreL1Hit++
	case level&levelMiss != 0 && level&levelL1 != 0:
		c.StoreL1Miss++
	case level&levelNA != 0:
		c.StoreNA++
	}
}

// load counts where a load found its data. A remote level without a distance is remote for
// perf; one at a distance is named by the old field.
func (c *Counts) load(d perffile.DataSrc) {
	level, snoop := levels(d), d.Snoop()
	far := uint64(d)>>37&1 != 0 && d.Hops() == 0
	peer := snoop&perffile.SnoopPeer != 0
	if level&levelHit != 0 {
		for _, x := range []struct {
			bit uint64
			to  *int64
		}{{levelLFB, &c.LFB}, {levelL1, &c.L1}, {levelL2, &c.L2}, {levelRAM, &c.LocalDRAM}} {
			if level&x.bit != 0 {
				*x.to++
			}
		}
		switch {
		case level&levelL3 != 0 && snoop&perffile.SnoopHitM != 0:
			c.LocalHITM++
		case level&levelL3 != 0:
			c.LLC++
		}
		if peer && level&(levelL2|levelL3) != 0 {
			c.LocalPeer++
		}
		if level&(levelRemoteRAM1|levelRemoteRAM2) != 0 || far {
			c.RemoteDRAM++
		}
	}
	if level&(levelRemoteCache1|levelRemoteCache2) != 0 || far {
		switch {
		case snoop&perffile.SnoopHit != 0:
			c.RemoteHit++
		case snoop&perffile.SnoopHitM != 0:
			c.RemoteHITM++
		case peer:
			c.RemoteHit++
			c.RemotePeer++
		}
	}
	if level&levelMiss != 0 {
		c.Miss++
	}
}

// A Sharing says how threads share a line.
type Sharing uint8

// The kinds of sharing.
const (
	None  Sharing = iota // one thread, or nobody writes
	False                // a thread writes, and others use different bytes only
	True                 // a thread writes bytes that others use
	Both                 // bytes that are written and shared, and bytes that are not
)

func (s Sharing) String() string { return [...]string{"none", "false", "true", "both"}[s] }

// A Line is a cache line.
type Line struct {
	Addr uint64 // virtual, of its first access
	PID  int    // 0 for the kernel's
	Counts
	Sharing Sharing
	Threads int
	CPUs    int
	Nodes   []int // in order
	Places  []*Place

	threads     set
	used        []used // by threads
	cpus, nodes set
}

// A Place is where in a line, and where in the code, accesses are.
type Place struct {
	Offset  int
	PID     int
	IP      uint64
	Kernel  bool
	First   int // number of its first access, as Lines counts them
	Threads int
	CPUs    int
	Nodes   []int
	Counts

	tids, cpus, nodes set
}

type placeKey struct {
	line   *Line
	offset int
	pid    int
	ip     uint64
}

// used is the bytes that a thread reads and writes: a bit for each 64th part of the line.
type used struct{ read, written uint64 }

// A set is numbers in order, none of them twice.
type set []int32

// add adds a number, if it is none below 0 and there is room. It returns its place, or -1,
// and whether it is new.
func (s *set) add(n int) (at int, added bool) {
	at, found := slices.BinarySearch(*s, int32(n))
	switch {
	case found:
		return at, false
	case n < 0 || len(*s) >= maxThreads:
		return -1, false
	}
	*s = sorting.Insert(*s, at, int32(n))
	return at, true
}

// Bounds on what is remembered: lines, places in all lines, and threads of a line.
const (
	maxLines   = 1 << 16
	maxPlaces  = 1 << 17
	maxThreads = 1 << 10 // and of processors and nodes
)

// Lines collects accesses by cache line.
type Lines struct {
	Size   int // of a line, bytes
	All    Counts
	Others Counts // of lines that there was no room for
	Unsure bool   // widths of some accesses are not known: sharing is judged by their first bytes

	lines  map[lineKey]*Line
	places map[placeKey]*Place
	number int
}

type lineKey struct {
	pid  int
	addr uint64
}

// New returns an empty collection of lines of so many bytes: a power of two, 64 if it is
// none.
func New(size int) *Lines {
	if size < 16 || size > 1<<12 || bits.OnesCount(uint(size)) != 1 {
		size = 64
	}
	return &Lines{Size: size, lines: map[lineKey]*Line{}, places: map[placeKey]*Place{}}
}

// Add adds an access. It returns the access's number if it is the first at its place, and
// else -1. A place is an offset in the line and an instruction of a process.
func (l *Lines) Add(a *Access) int {
	l.All.add(a)
	l.number++
	mask := uint64(l.Size - 1)
	key := lineKey{a.PID, a.Addr &^ mask}
	switch {
	case a.Phys != 0: // processes share memory at addresses of their own
		key = lineKey{-1, a.Phys &^ mask}
	case a.Object > 0:
		key = lineKey{-1 - a.Object, a.Offset &^ mask}
	case a.Addr>>63 != 0:
		key.pid = 0
	}
	x := l.lines[key]
	if x == nil {
		if len(l.lines) >= maxLines {
			l.Others.add(a)
			return -1
		}
		x = &Line{Addr: a.Addr &^ mask, PID: max(0, a.PID)}
		if a.Addr>>63 != 0 {
			x.PID = 0
		}
		l.lines[key] = x
	}
	x.Counts.add(a)
	x.use(a, l.Size)
	l.Unsure = l.Unsure || a.Width == 0
	return l.place(x, a)
}

// use notes which bytes a thread uses.
func (x *Line) use(a *Access, size int) {
	x.cpus.add(a.CPU)
	x.nodes.add(a.Node)
	i, added := x.threads.add(a.TID)
	if i < 0 {
		return
	}
	if added {
		x.used = sorting.Insert(x.used, i, used{})
	}
	u := &x.used[i]
	part := max(1, size/64)
	from := int(a.Addr&uint64(size-1)) / part
	to := min(63, (int(a.Addr&uint64(size-1))+max(1, a.Width)-1)/part)
	bytes := ^uint64(0) << from & (^uint64(0) >> (63 - to))
	if a.Store {
		u.written |= bytes
	} else {
		u.read |= bytes
	}
}

// place counts an access at its place.
func (l *Lines) place(x *Line, a *Access) int {
	key := placeKey{x, int(a.Addr & uint64(l.Size-1)), a.PID, a.IP}
	p := l.places[key]
	if p == nil {
		if len(l.places) >= maxPlaces {
			return -1
		}
		p = &Place{Offset: key.offset, PID: a.PID, IP: a.IP, Kernel: a.Kernel, First: l.number}
		l.places[key] = p
		x.Places = append(x.Places, p)
	}
	p.Counts.add(a)
	p.cpus.add(a.CPU)
	p.nodes.add(a.Node)
	p.tids.add(a.TID)
	if p.First == l.number {
		return l.number
	}
	return -1
}

// sharing judges how the threads of a line share it.
func (x *Line) sharing() Sharing {
	same, apart := false, false
	for i, u := range x.used {
		if u.written == 0 {
			continue
		}
		for k, o := range x.used {
			switch bytes := o.read | o.written; {
			case i == k:
			case bytes&u.written != 0:
				same = true
			default:
				apart = true
			}
		}
	}
	switch {
	case same && apart:
		return Both
	case same:
		return True
	case apart:
		return False
	}
	return None
}

// Shared returns the lines that several threads use and one of them writes, or that loads
// found in other caches: those with the most such loads first.
func (l *Lines) Shared() []*Line {
	var list []*Line
	for _, x := range l.lines {
		x.Sharing, x.Threads, x.CPUs, x.Nodes = x.sharing(), len(x.threads), len(x.cpus), x.nodes.ints()
		if x.Sharing == None && x.HITM()+x.Peer()+x.RemoteHit == 0 {
			continue
		}
		for _, p := range x.Places {
			p.Threads, p.CPUs, p.Nodes = len(p.tids), len(p.cpus), p.nodes.ints()
		}
		sorting.Sort(x.Places, func(a, b *Place) int {
			return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.HITM()+b.Peer(), a.HITM()+a.Peer()), cmp.Compare(b.Records, a.Records), cmp.Compare(a.IP, b.IP), cmp.Compare(a.PID, b.PID))
		})
		list = append(list, x)
	}
	sorting.Sort(list, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(b.HITM(), a.HITM()), cmp.Compare(b.Peer(), a.Peer()), cmp.Compare(b.Records, a.Records), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.PID, b.PID))
	})
	return list
}

func (s set) ints() []int {
	list := make([]int, len(s))
	for i, n := range s {
		list[i] = int(n)
	}
	return list
}
