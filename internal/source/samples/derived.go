package samples

import (
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Derivation says which counts are derived from what the hardware says of samples.
type Derivation uint8

// Which counts are derived.
const (
	DeriveNone Derivation = iota
	// DeriveAlone derives those of instructions, if the recording has nothing but samples
	// that the hardware describes.
	DeriveAlone
	// DeriveOps derives those of instructions in any recording that has some.
	DeriveOps
	// DeriveBranches derives those of branch stacks: each branch is a sample of its own.
	DeriveBranches
)

// A derived is a count that is derived of samples. The amount of a sample is what it adds
// for each event that the sample stands for.
type derived struct {
	name   string
	of     facility
	amount func(*Op) float64
}

// OpsEvent is the derived count of the instructions that the hardware sampled. A table has
// it if counts of instructions were derived.
const OpsEvent = "op.instructions"

// The derived counts of the cycles since the instruction before retired. Most processors do
// not measure them.
const (
	timedEvent        = "op.timed"
	sinceRetiredEvent = "op.since_retired_cycles"
)

func is(kinds OpKinds) func(*Op) float64 {
	return func(o *Op) float64 { return one(o.Kinds&kinds != 0) }
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

const (
	memory  = ibsOps | speOps | weights
	anyOp   = memory
	anyWalk = perffile.TLBWalker | perffile.TLBMiss
)

// derivedOps are the counts of instructions. Those of levels follow: see levelNames.
var derivedOps = append([]derived{
	{OpsEvent, anyOp, func(o *Op) float64 { return one(o.Kinds&OpFetch == 0) }},
	{"op.measured", anyOp, func(o *Op) float64 { return one(o.Kinds&OpFetch == 0 && o.Total > 0) }},
	{"op.cycles", anyOp, func(o *Op) float64 { return ofOp(o, o.Total) }},
	{"op.issue_cycles", speOps, func(o *Op) float64 { return ofOp(o, o.Issue) }},
	{"op.translation_cycles", ibsOps | speOps, func(o *Op) float64 { return ofOp(o, o.Translation) }},
	{"op.retire_cycles", ibsOps, func(o *Op) float64 { return ofOp(o, o.Retire) }},
	{timedEvent, weights, is(OpTimed)},
	{sinceRetiredEvent, weights, func(o *Op) float64 { return float64(o.SinceRetired) }},
	{"load.instructions", memory, is(OpLoad)},
	{"store.instructions", memory, is(OpStore)},
	{"prefetch.instructions", ibsOps | weights, is(OpPrefetch)},
	{"load.cycles", memory, func(o *Op) float64 { return float64(o.Access) }},
	{"access.tlb_miss", memory, func(o *Op) float64 { return one(o.access() && tlbMissed(o.Source.TLB())) }},
	{"access.tlb_walk", memory, func(o *Op) float64 { return one(o.access() && o.Source.TLB()&perffile.TLBMiss != 0) }},
	{"access.locked", ibsOps | weights, func(o *Op) float64 { return one(o.Source.Locked()) }},
	{"access.modified_elsewhere", memory, func(o *Op) float64 { return one(o.Source.Snoop()&perffile.SnoopHitM != 0) }},
	{"access.misaligned", ibsOps | speOps, is(OpMisaligned)},
	{"load.blocked", weights, func(o *Op) float64 {
		return one(o.Source.Blocked()&(perffile.BlockedData|perffile.BlockedAddr) != 0)
	}},
	{"branch.instructions", ibsOps | speOps, is(OpBranch)},
	{"branch.taken", ibsOps | speOps, is(OpTaken)},
	{"branch.mispredicted", ibsOps | speOps, is(OpMispredicted)},
	{"fetch.fetches", ibsFetches, is(OpFetch)},
	{"fetch.aborted", ibsFetches, is(OpAborted)},
	{"fetch.cycles", ibsFetches, func(o *Op) float64 { return float64(o.Total) * one(o.Kinds&OpFetch != 0) }},
	{"fetch.translation_cycles", ibsFetches, func(o *Op) float64 { return float64(o.Translation) * one(o.Kinds&OpFetch != 0) }},
	{"fetch.l1_miss", ibsFetches, is(OpFetchMiss)},
	{"fetch.l2_miss", ibsFetches, is(OpFetchMissL2)},
	{"fetch.l3_miss", ibsFetches, is(OpFetchMissL3)},
	{"fetch.tlb_miss", ibsFetches, is(OpFetchTLBMiss)},
	{"fetch.tlb_walk", ibsFetches, is(OpFetchTLBWalk)},
}, derivedLevels()...)

// access reports whether the instruction is a load or store.
func (o *Op) access() bool { return o.Kinds&(OpLoad|OpStore) != 0 }

// ofOp is cycles of an instruction; 0 of a fetch.
func ofOp(o *Op, cycles uint64) float64 { return float64(cycles) * one(o.Kinds&OpFetch == 0) }

// tlbMissed reports whether the first TLB did not have the page: the second had it, or
// none had.
func tlbMissed(t perffile.TLB) bool {
	return t&perffile.TLBMiss != 0 || t&perffile.TLBHit != 0 && t&perffile.TLBL2 != 0 && t&perffile.TLBL1 == 0
}

// A levelClass is a group of levels that a load can find its data in.
type levelClass uint8

const (
	classL1 levelClass = iota
	classLFB
	classL2
	classL3
	classPeer // a cache of another core of the node
	classRemoteCache
	classRAM
	classRemoteRAM
	classOther // persistent memory, CXL, I/O, memory that is not cached
	classUnknown
)

// levelNames are the classes in the names of counts.
var levelNames = [...]string{"l1", "fill_buffer", "l2", "l3", "other_core", "remote_cache", "ram", "remote_ram", "other", "unknown"}

// derivedLevels are, for each class of levels, the loads and the cycles until their data
// came.
func derivedLevels() []derived {
	var list []derived
	for i, name := range levelNames {
		c := levelClass(i)
		list = append(list,
			derived{"load." + name, memory, func(o *Op) float64 { return one(o.Kinds&OpLoad != 0 && classOf(o.Source) == c) }},
			derived{"load." + name + "_cycles", memory, func(o *Op) float64 {
				return float64(o.Access) * one(o.Kinds&OpLoad != 0 && classOf(o.Source) == c)
			}})
	}
	return list
}

// classOf returns where a load found its data.
func classOf(d perffile.DataSrc) levelClass {
	level, near := d.Level(), d.Hops() == 1 // PERF_MEM_HOPS_0 is another core of the node
	switch {
	case d.Miss() || level == perffile.LevelUnknown:
		return classUnknown
	case level == perffile.LevelRAM && d.Remote():
		return classRemoteRAM
	case level == perffile.LevelRAM:
		return classRAM
	case level == perffile.LevelPMEM || level == perffile.LevelCXL || level == perffile.LevelIO || level == perffile.LevelUncached:
		return classOther
	case d.Remote() && !near:
		return classRemoteCache
	case d.Remote(), level == perffile.LevelAnyCache, d.Snoop()&(perffile.SnoopHitM|perffile.SnoopForward|perffile.SnoopPeer) != 0:
		return classPeer
	case level == perffile.LevelL1 || level == perffile.LevelL0:
		return classL1
	case level == perffile.LevelLFB || level == perffile.LevelL2MHB:
		return classLFB
	case level == perffile.LevelL2:
		return classL2
	}
	return classL3
}

// derivedBase is the index of the first derived event. Files have fewer events than this,
// or those beyond are not counted.
const derivedBase = 1 << 15

// A deriver makes further counts of samples.
type deriver struct {
	hw       *hardware
	list     []derived
	events   []*perfdata.Event // by place in list
	branches bool              // the list is that of branch stacks
}

// newDeriver returns what derives counts in a recording, nil for nothing.
func newDeriver(hw *hardware, what Derivation, spe bool) *deriver {
	switch what {
	case DeriveNone:
		return nil
	case DeriveBranches:
		return newBranchDeriver(hw)
	}
	of, others := facility(0), false
	for _, e := range hw.in.Events() {
		switch f := hw.facility(e); {
		case e.IsDummy():
		case f == noFacility, f == weights && (e.Type <= perffile.TypeBreakpoint && e.Type != perffile.TypeRaw || cyclesOf(e)):
			others = true
			of |= f
		default:
			of |= f
		}
	}
	if spe {
		of, others = of|speOps, false
	}
	of &^= noFacility
	if of == 0 || others && what == DeriveAlone {
		return nil
	}
	d := &deriver{hw: hw}
	for _, x := range derivedOps {
		if x.of&of != 0 {
			d.add(x)
		}
	}
	return d
}

// cyclesOf reports whether an event counts cycles or instructions by the codes of Intel's
// processors.
func cyclesOf(e *perfdata.Event) bool {
	code := e.Config & 0xffff
	return e.Type == perffile.TypeRaw && (code == 0x3c || code == 0xc0 || code == 0x1c0)
}

func (d *deriver) add(x derived) {
	d.list = append(d.list, x)
	d.events = append(d.events, perfdata.NewEvent(perfdata.Attr{}, x.name, derivedBase+len(d.events)))
}

// each hands on what a sample adds to the derived counts.
func (d *deriver) each(o *Op, period float64, add func(e *perfdata.Event, value float64)) {
	for i := range d.list {
		if v := d.list[i].amount(o); v != 0 {
			add(d.events[i], v*period)
		}
	}
}

// derivedBranches are the counts of branch stacks. Each branch that was taken is a sample
// at its own address. Its cycles are those since the branch before it, so they are the
// cycles of the block that it ends.
var derivedBranches = [...]string{BranchesEvent, "taken.known", "taken.mispredicted", "taken.timed", "taken.cycles", "taken.after_misprediction", "taken.after_misprediction_cycles"}

// BranchesEvent is the derived count of the branches in branch stacks. A table has it if
// counts of branches were derived.
const BranchesEvent = "taken.branches"

// The places of derivedBranches.
const (
	takenAll = iota
	takenKnown
	takenMispredicted
	takenTimed
	takenCycles
	takenAfter
	takenAfterCycles
)

// newBranchDeriver returns what derives counts of branch stacks, nil if there are none.
func newBranchDeriver(hw *hardware) *deriver {
	d := &deriver{hw: hw, branches: true}
	for _, e := range hw.in.Events() {
		if e.SampleType&perffile.SampleBranchStack != 0 && e.BranchType&perffile.BranchCallStack == 0 {
			for _, name := range derivedBranches {
				d.add(derived{name: name})
			}
			return d
		}
	}
	return nil
}

// eachBranch hands on what the branches of a sample add to the derived counts, and where.
// The cycles of a branch are not known where they are 0, or as large as they can be.
func (d *deriver) eachBranch(rec *perfdata.Sample, add func(e *perfdata.Event, ip uint64, value float64)) {
	if rec.Event().BranchType&perffile.BranchCallStack != 0 {
		return
	}
	b := rec.Branches()
	for i := range b.Len() {
		x := b.At(i)
		counted := func(place int, is bool, value float64) {
			if is {
				add(d.events[place], x.From, value)
			}
		}
		timed := x.Cycles > 0 && x.Cycles < 1<<16-1
		counted(takenAll, true, 1)
		counted(takenKnown, x.Mispredicted || x.Predicted, 1)
		counted(takenMispredicted, x.Mispredicted, 1)
		counted(takenTimed, timed, 1)
		counted(takenCycles, timed, float64(x.Cycles))
		after := timed && i+1 < b.Len() && b.At(i+1).Mispredicted
		counted(takenAfter, after, 1)
		counted(takenAfterCycles, after, float64(x.Cycles))
	}
}
