package samples

import (
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/ibs"
	"github.com/cyclestack/cyclestack/internal/source/spe"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An Op is one instruction or fetch that the hardware followed, with what it measured:
// Intel's PEBS, AMD's IBS, Arm's SPE or POWER's marked instructions.
type Op struct {
	Kinds  OpKinds
	Source perffile.DataSrc // of a load or store; 0 if it is not known
	Addr   uint64           // of its data, virtual; 0 if it is not known
	Phys   uint64
	Width  int // bytes of its data; 0 if it is not known

	// Cycles. Total is those of the whole instruction. The others are parts of it: until
	// it was issued, of the address's translation, until its data came, and from its
	// completion to its retirement.
	Total, Issue, Translation, Access, Retire uint64

	// SinceRetired is the cycles from when the instruction before it retired.
	SinceRetired uint64

	// Weight is the latency that perf has for it, and Second that of the whole instruction, if
	// any.
	Weight, Second uint64
}

// OpKinds say what an Op is, and what happened to it.
type OpKinds uint32

// The bits of OpKinds.
const (
	OpLoad OpKinds = 1 << iota
	OpStore
	OpPrefetch
	OpMisaligned
	OpBranch
	OpTaken
	OpMispredicted
	OpFetch // an instruction fetch, and no instruction
	OpAborted
	OpFetchMiss   // of the level-1 instruction cache
	OpFetchMissL2 // and of the level-2 cache
	OpFetchMissL3
	OpFetchTLBMiss
	OpFetchTLBWalk
	OpTimed // SinceRetired was measured
)

// A facility is the hardware that took a sample.
type facility uint8

const (
	noFacility facility = 1 << iota
	ibsOps
	ibsFetches
	speOps
	weights // what the kernel made of any of them: weights and data sources
)

// hardware finds what the hardware says of samples.
type hardware struct {
	in     *perfdata.Reader
	events map[*perfdata.Event]facility
	cpu    ibs.CPU
	power  bool
	op     Op
	bad    int64 // raw parts that are not what their event says

	byCycles, filtered bool // how IBS chose ops
}

func newHardware(in *perfdata.Reader) *hardware {
	h := &hardware{in: in, events: map[*perfdata.Event]facility{}}
	f := in.Features()
	h.cpu = ibsCPU(f.CPUID)
	h.power = strings.HasPrefix(f.Arch, "ppc64")
	return h
}

// ibsCPU takes family and model from a processor's identification, "AuthenticAMD,25,1,1".
func ibsCPU(id string) (c ibs.CPU) {
	part := strings.Split(id, ",")
	if len(part) == 4 && part[0] == "AuthenticAMD" {
		c.Family, c.Model = number(part[1]), number(part[2])
	}
	return c
}

// number is a decimal number, -1 for what is none.
func number(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<16 {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// facility returns what took an event's samples.
func (h *hardware) facility(e *perfdata.Event) facility {
	f, ok := h.events[e]
	if ok {
		return f
	}
	f = noFacility
	pmu := e.Name
	for _, p := range h.in.Features().PMUs {
		if p.Type == e.Type {
			pmu = p.Name
		}
	}
	raw := e.SampleType&perffile.SampleRaw != 0 && e.Type > perffile.TypeBreakpoint
	switch {
	case e.IsDummy():
	case raw && strings.HasPrefix(pmu, "ibs_op"):
		f = ibsOps
	case raw && strings.HasPrefix(pmu, "ibs_fetch"):
		f = ibsFetches
	case e.SampleType&(perffile.SampleWeight|perffile.SampleWeightStruct) != 0:
		f = weights
	}
	h.events[e] = f
	return f
}

// of returns what the hardware says of a sample, nil for nothing. It is valid until the
// next call.
func (h *hardware) of(rec *perfdata.Sample) *Op {
	h.op = Op{}
	switch h.facility(rec.Event()) {
	case ibsOps:
		op, ok := ibs.DecodeOp(rec.Raw(), h.cpu)
		if !ok {
			h.bad++
			return nil
		}
		h.op.fromIBS(&op)
		h.byCycles, h.filtered = h.byCycles || op.ByCycles, h.filtered || op.Filtered
	case ibsFetches:
		f, ok := ibs.DecodeFetch(rec.Raw(), h.cpu)
		if !ok {
			h.bad++
			return nil
		}
		h.op.fromFetch(&f)
	case weights:
		if !h.weighed(rec) {
			return nil
		}
	default:
		return nil
	}
	return &h.op
}

// notes says what of the samples cannot be read, and how the hardware chose them.
func (h *hardware) notes() []counts.Note {
	var out []counts.Note
	if h.bad > 0 {
		out = append(out, counts.Notef("%d samples of IBS have no registers that can be read: only their number counts", h.bad))
	}
	if h.byCycles {
		out = append(out, counts.Notef("IBS chose an op each so many cycles: ops behind a stall are sampled more often (ibs_op/cnt_ctl=1/ chooses evenly)"))
	}
	if h.filtered {
		out = append(out, counts.Notef("IBS sampled only slow instructions (l3missonly or ldlat): shares are of those"))
	}
	return out
}

func (o *Op) set(kind OpKinds, is bool) {
	if is {
		o.Kinds |= kind
	}
}

func (o *Op) fromIBS(x *ibs.Op) {
	o.set(OpLoad, x.Load && !x.Prefetch)
	o.set(OpStore, x.Store && !x.Load && !x.Prefetch)
	o.set(OpPrefetch, x.Prefetch)
	o.set(OpMisaligned, x.Misaligned)
	o.set(OpBranch, x.Branch)
	o.set(OpTaken, x.Branch && x.Taken)
	o.set(OpMispredicted, x.Branch && x.Mispredicted)
	o.Source, o.Addr, o.Phys, o.Width = x.Source, x.Addr, x.Phys, x.Width
	o.Total, o.Retire = x.ToComplete+x.ToRetire, x.ToRetire
	if o.Kinds&OpLoad != 0 {
		o.Access, o.Translation = x.MissLatency, x.TLBLatency
	}
	if o.Weight = o.Access; o.Weight > 0 {
		o.Second = o.Total
	}
}

func (o *Op) fromFetch(x *ibs.Fetch) {
	o.Kinds = OpFetch
	o.set(OpAborted, !x.Complete)
	o.set(OpFetchMiss, x.Miss)
	o.set(OpFetchMissL2, x.L2Miss)
	o.set(OpFetchMissL3, x.L3Miss)
	o.set(OpFetchTLBMiss, x.TLBMiss)
	o.set(OpFetchTLBWalk, x.TLBWalk)
	o.Total, o.Translation = x.Latency, x.TLBLatency
}

// weighed takes the weights and the data source of a sample. It is false for one that has
// neither, as samples of other events in the same recording do.
func (h *hardware) weighed(rec *perfdata.Sample) bool {
	w, src, o := rec.Weight(), perffile.DataSrc(rec.DataSrc()), &h.op
	access := src.Op() &^ perffile.OpNA
	if access == 0 && w == (perfdata.Weight{}) {
		return false
	}
	o.set(OpLoad, access&perffile.OpLoad != 0)
	o.set(OpStore, access&perffile.OpStore != 0 && access&perffile.OpLoad == 0)
	o.set(OpPrefetch, access&perffile.OpPrefetch != 0)
	if access != 0 {
		o.Source, o.Addr, o.Phys = src, rec.Addr(), rec.PhysAddr()
	}
	o.Total, o.Weight, o.Second = w.Latency, w.Latency, uint64(w.Var2)
	switch {
	case h.power:
		// The second and third are stages of the pipeline, and no parts of the first.
	case w.Var2 > 0:
		o.Total = uint64(w.Var2)
	}
	if o.Kinds&OpLoad != 0 {
		o.Access = min(w.Latency, o.Total)
	}
	o.SinceRetired = uint64(w.Var3)
	o.set(OpTimed, !h.power && rec.Has(perffile.SampleWeightStruct))
	return true
}

func (o *Op) fromSPE(r *spe.Record, cpu spe.CPU) {
	*o = Op{Source: r.DataSrc(cpu), Addr: r.Addr, Phys: r.Phys}
	o.set(OpLoad, r.Load())
	o.set(OpStore, r.Store())
	o.set(OpMisaligned, r.Events&spe.Misaligned != 0)
	o.set(OpBranch, r.Class == spe.Branch)
	o.set(OpTaken, r.Class == spe.Branch && r.Events&spe.NotTaken == 0)
	o.set(OpMispredicted, r.Class == spe.Branch && r.Events&spe.Mispredicted != 0)
	o.Weight = uint64(r.Total)
	o.Total, o.Issue = o.Weight, uint64(min(r.Issue, r.Total))
	o.Translation = min(uint64(r.Translation), o.Total-o.Issue)
	if o.Kinds&OpLoad != 0 {
		o.Access = o.Total - o.Issue - o.Translation
	}
}
