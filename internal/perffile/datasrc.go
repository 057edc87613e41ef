package perffile

import "strings"

// A DataSrc says where the data of a memory access came from: the kernel's
// union perf_mem_data_src. Linux before 4.14 knows only the old field of levels,
// later ones write both.
type DataSrc uint64

// Op is what an access did; several bits can be set.
type Op uint8

// The bits of an Op.
const (
	OpNA Op = 1 << iota
	OpLoad
	OpStore
	OpPrefetch
	OpExec
)

// Op returns what the access did.
func (d DataSrc) Op() Op { return Op(d & 0x1f) }

// Level is where in the memory hierarchy the data was found.
type Level uint8

// The levels of the memory hierarchy.
const (
	LevelUnknown  Level = iota
	LevelL1             // level-1 cache
	LevelL2             // level-2 cache
	LevelL3             // level-3 cache
	LevelL4             // level-4 cache
	LevelL2MHB          // level-2 miss handling buffer
	LevelMSC            // cache on the memory's side
	LevelL0             // level-0 cache
	LevelUncached       // memory that is not cached
	LevelCXL            // memory behind CXL
	LevelIO             // I/O memory
	LevelAnyCache       // a cache, of whatever level
	LevelLFB            // line fill buffer, a miss under way
	LevelRAM            // memory
	LevelPMEM           // persistent memory
)

var levelNames = [...]string{"unknown", "L1", "L2", "L3", "L4", "L2 MHB", "MSC", "L0", "uncached", "CXL", "I/O",
	"any cache", "LFB", "RAM", "PMEM"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}

// The bits of the old field of levels, PERF_MEM_LVL_…
const (
	oldHit = 1 << (iota + 1)
	oldMiss
	oldL1
	oldLFB
	oldL2
	oldL3
	oldRAM
	oldRemoteRAM1
	oldRemoteRAM2
	oldRemoteCache1
	oldRemoteCache2
	oldIO
	oldUncached

	oldRemote = oldRemoteRAM1 | oldRemoteRAM2 | oldRemoteCache1 | oldRemoteCache2
)

func (d DataSrc) old() uint64 { return uint64(d) >> 5 & 0x3fff }

// Level returns where the data was found, or with [DataSrc.Miss] which level it
// was not found in.
func (d DataSrc) Level() Level {
	if n := d >> 33 & 0xf; n != 0 && n != 0xf {
		return Level(n)
	}
	for _, l := range []struct {
		bits uint64
		is   Level
	}{
		{oldL1, LevelL1}, {oldLFB, LevelLFB}, {oldL2, LevelL2}, {oldL3, LevelL3},
		{oldRAM | oldRemoteRAM1 | oldRemoteRAM2, LevelRAM}, {oldRemoteCache1 | oldRemoteCache2, LevelAnyCache},
		{oldIO, LevelIO}, {oldUncached, LevelUncached},
	} {
		if d.old()&l.bits != 0 {
			return l.is
		}
	}
	return LevelUnknown
}

// Hit reports whether the level served the access.
func (d DataSrc) Hit() bool { return d.old()&oldHit != 0 }

// Miss reports whether the level did not have the data.
func (d DataSrc) Miss() bool { return d.old()&oldMiss != 0 }

// Remote reports whether the data came from another socket, node or chip.
func (d DataSrc) Remote() bool { return d>>37&1 != 0 || d.old()&oldRemote != 0 }

// Hops returns how far away a remote level is, in the kernel's steps: 1 another
// core of the node, 2 another node of the socket, 3 another socket, 4 another
// board; 0 where not known.
func (d DataSrc) Hops() int { return int(d >> 43 & 7) }

// Snoop is what asking other caches came to; several bits can be set.
type Snoop uint8

// The bits of a Snoop.
const (
	SnoopNA Snoop = 1 << iota
	SnoopNone
	SnoopHit
	SnoopMiss
	SnoopHitM    // another cache had it, modified
	SnoopForward // another cache passed it on
	SnoopPeer    // it came from a cache of the same level
)

// Snoop returns what asking other caches came to.
func (d DataSrc) Snoop() Snoop { return Snoop(d>>19&0x1f) | Snoop(d>>38&3)<<5 }

// Locked reports whether the instruction was locked.
func (d DataSrc) Locked() bool { return d>>24&2 != 0 }

// TLB is how the address was translated; several bits can be set.
type TLB uint8

// The bits of a TLB.
const (
	TLBNA TLB = 1 << iota
	TLBHit
	TLBMiss
	TLBL1
	TLBL2
	TLBWalker // hardware walked the page table
	TLBOS     // the operating system did
)

// TLB returns how the address was translated.
func (d DataSrc) TLB() TLB { return TLB(d >> 26 & 0x7f) }

// Blocked is why a load waited for a store before it; both bits can be set.
type Blocked uint8

// The bits of a Blocked.
const (
	BlockedNA   Blocked = 1 << iota
	BlockedData         // the store's data could not be forwarded
	BlockedAddr         // the addresses conflicted
)

// Blocked returns why a load waited.
func (d DataSrc) Blocked() Blocked { return Blocked(d >> 40 & 7) }

// String describes the access: "load L3 hit, snoop hitm, TLB L1 hit, locked".
func (d DataSrc) String() string {
	var parts []string
	access := names(uint64(d.Op()), "", "load", "store", "prefetch", "exec")
	place := d.Level().String()
	if d.Remote() {
		place = "remote " + place
	}
	switch {
	case d.Hit():
		place += " hit"
	case d.Miss():
		place += " miss"
	}
	parts = append(parts, strings.TrimSpace(access+" "+place))
	if s := names(uint64(d.Snoop()), "", "none", "hit", "miss", "hitm", "forward", "peer"); s != "" {
		parts = append(parts, "snoop "+s)
	}
	if t := d.TLB(); t&^TLBNA != 0 {
		// The levels first, then what came of it.
		what := names(uint64(t>>3), "L1", "L2", "walker", "OS") + " " + names(uint64(t), "", "hit", "miss")
		parts = append(parts, "TLB "+strings.TrimSpace(what))
	}
	if b := names(uint64(d.Blocked()), "", "data", "address"); b != "" {
		parts = append(parts, "blocked by "+b)
	}
	if d.Locked() {
		parts = append(parts, "locked")
	}
	return strings.Join(parts, ", ")
}

func names(bits uint64, of ...string) string {
	var out []string
	for i, name := range of {
		if bits>>i&1 != 0 && name != "" {
			out = append(out, name)
		}
	}
	return strings.Join(out, "/")
}
