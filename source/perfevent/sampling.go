package perfevent

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A SampleSpec says what to take samples of, and how.
//
// An event takes samples if its Attr.Sample is not 0: one after so many of it,
// or with Attr.Freq so many in a second. If other events of its group take none,
// each sample has the counts of the whole group (perf's :S). Attr.SampleType has what
// its samples hold in addition to what all have.
type SampleSpec struct {
	Groups [][]Event // the events of a group count at the same time; groups are multiplexed
	Target Target

	Timeout time.Duration // ends the sampling; 0: with the command, the processes, or Stop
	Delay   time.Duration // before sampling begins

	Times      bool   // samples say how long their event was on a counter, so that multiplexing can be corrected
	Callchains bool   // with each sample
	MaxStack   int    // addresses in a callchain; 0 is the kernel's limit
	StackUser  int    // bytes of the user's stack with each callchain, to unwind; it then has the kernel's calls only
	CallStack  bool   // the processor's record of open calls with each callchain, on Intel's (perf's lbr)
	Branches   uint64 // which branches each sample has, as the kernel's PERF_SAMPLE_BRANCH_ bits; 0 for none
	Switches   bool   // records of each switch between threads
	NoBuildIDs bool   // the kernel does not say the build ids of what is mapped
	Cgroups    bool   // samples have the cgroup
	NoInherit  bool   // not the command's children, nor threads that come later
	RingSize   int    // bytes of each processor's ring; 0 is 512 KiB

	// Requests are functions that Next calls before it returns. Each gets a function that lets
	// samples be taken, or not. It may be nil.
	Requests <-chan func(enable func(on bool) error)

	// Begin is called when everything is opened, before samples are taken and the command
	// is started. It tells what is there before the records tell what changes. Events and
	// WriteTo can be used. Its error ends the sampling, and is Sample's. It may be nil.
	Begin func(*Sampling) error
}

// defaultRing is how many bytes the kernel can write for each processor before
// they are read: as much as a user may have without privileges.
const defaultRing = 512 << 10

// maxRing bounds the memory of a ring.
const maxRing = 1 << 30

// A SampledEvent is an event of a sampling as the kernel opened it.
type SampledEvent struct {
	Event          // with the attributes that it was opened with
	IDs   []uint64 // of its instances, one for each place where it was opened
	CPUs  []int    // by instance: the processor
	TIDs  []int    // by instance: the thread that it was opened on; -1 for any, 0 for a command to come

	Leader int // index of the first event of its group among the events: its own if it is the first or alone
}

func (v *SampledEvent) add(id uint64, cpu, tid int) {
	v.IDs, v.CPUs, v.TIDs = append(v.IDs, id), append(v.CPUs, cpu), append(v.TIDs, tid)
}

// check says what cannot be sampled as asked.
func (spec *SampleSpec) check(sys *System, whole *Spec) error {
	if spec.RingSize < 0 || spec.RingSize > maxRing {
		return &TargetError{Msg: fmt.Sprintf("rings of %d bytes: at most %d", spec.RingSize, maxRing)}
	}
	sampled := func(e Event) bool { return e.Attr.Sample > 0 }
	for _, g := range spec.Groups {
		if !slices.ContainsFunc(g, sampled) {
			return &TargetError{Msg: fmt.Sprintf("none of %s takes samples", names(g))}
		}
		if i := slices.IndexFunc(g, func(e Event) bool { return e.tool != noTool }); i >= 0 {
			return &EventError{g[i].Name, "not a counter: it takes no samples"}
		}
		most := sys.MaxSampleRate()
		if i := slices.IndexFunc(g, func(e Event) bool { return e.Attr.Freq && e.Attr.Sample > most }); i >= 0 && most > 0 {
			return &EventError{g[i].Name, fmt.Sprintf("%d samples a second are more than kernel.perf_event_max_sample_rate allows (%d)", g[i].Attr.Sample, most)}
		}
	}
	if len(spec.Groups) == 0 {
		return &TargetError{Msg: "nothing to sample: no events"}
	}
	if len(sys.CPUs) == 0 { // each has a ring
		return errNoCPUs
	}
	if spec.StackUser > 0 && userRegisters[runtime.GOARCH] == 0 {
		return &TargetError{Msg: "stacks of this processor cannot be unwound"}
	}
	if spec.CallStack && spec.Branches > 0 {
		return &TargetError{Msg: "the processor records branches or the open calls, not both"}
	}
	if spec.StackUser < 0 || spec.StackUser > perffile.MaxStackUser || spec.StackUser%8 != 0 {
		return &TargetError{Msg: fmt.Sprintf("copies of %d bytes of the stack: a multiple of 8, at most %d", spec.StackUser, perffile.MaxStackUser)}
	}
	return whole.check(sys)
}

// userRegisters are the registers that unwinding begins with: all but the segments of x86.
var userRegisters = map[string]uint64{"amd64": 0xff0fff, "arm64": 1<<33 - 1}

func names(events []Event) string {
	var list []string
	for _, e := range events {
		list = append(list, e.Name)
	}
	return some(list)
}

// whole returns what a Spec for the same would be, with what the kernel is to
// put into samples.
func (spec *SampleSpec) whole() *Spec {
	s := &Spec{Target: spec.Target, Timeout: spec.Timeout, Delay: spec.Delay, NoInherit: spec.NoInherit}
	for _, g := range spec.Groups {
		reads := spec.Times || slices.ContainsFunc(g, func(e Event) bool { return e.Attr.Sample == 0 })
		g = slices.Clone(g)
		for i := range g {
			spec.prepare(&g[i].Attr, reads && g[i].Attr.Sample > 0)
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// prepare sets what samples of an event hold.
func (spec *SampleSpec) prepare(a *Attr, reads bool) {
	a.SampleType |= perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleCPU
	if a.Type == perffile.TypeTracepoint {
		a.SampleType |= perffile.SampleRaw // its fields
	}
	a.SampleIDAll = true
	if a.Freq {
		a.SampleType |= perffile.SamplePeriod
	}
	if reads {
		a.SampleType |= perffile.SampleRead
	}
	bare := a.ExcludeCallchainUser && a.ExcludeCallchainKernel
	if spec.Callchains && !bare {
		a.SampleType |= perffile.SampleCallchain
		a.SampleMaxStack = uint16(min(spec.MaxStack, 1<<16-1))
	}
	if spec.StackUser > 0 && !bare {
		a.SampleType |= perffile.SampleRegsUser | perffile.SampleStackUser
		a.SampleRegsUser, a.SampleStackUser, a.ExcludeCallchainUser = userRegisters[runtime.GOARCH], uint32(spec.StackUser), true
	}
	if spec.CallStack {
		a.SampleType |= perffile.SampleBranchStack
		a.BranchSampleType = perffile.BranchUser | perffile.BranchCallStack | perffile.BranchNoFlags | perffile.BranchNoCycles
	}
	if spec.Branches > 0 {
		a.SampleType |= perffile.SampleBranchStack
		a.BranchSampleType = spec.Branches
	}
	if spec.Cgroups {
		a.SampleType |= perffile.SampleCgroup
	}
}

// MaxSampleRate returns how many samples of an event the kernel allows in a second
// (kernel.perf_event_max_sample_rate). The kernel lowers it where samples take too
// long. It is 0 if it is not known.
func (s *System) MaxSampleRate() uint64 {
	n, err := strconv.ParseUint(s.setting("proc/sys/kernel/perf_event_max_sample_rate"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// samples reports whether samples of any event have a part.
func (spec *Spec) samples(part uint64) bool {
	return slices.ContainsFunc(spec.Groups, func(g []Event) bool {
		return slices.ContainsFunc(g, func(e Event) bool { return e.Attr.SampleType&part != 0 })
	})
}
