package perfevent

import "github.com/cyclestack/cyclestack/internal/perffile"

// An Attr is the kernel's struct perf_event_attr as far as this module uses
// it. The fields are named as the kernel's; what they mean is in
// perf_event_open(2).
type Attr struct {
	Type                                         uint32
	Config, Config1, Config2, Config3            uint64
	ExcludeUser, ExcludeKernel, ExcludeHV        bool
	ExcludeGuest, ExcludeHost, ExcludeIdle       bool
	Precise                                      uint8 // precise_ip, 0…3: for sampling only
	Pinned, Exclusive                            bool
	Disabled, Inherit, InheritStat, EnableOnExec bool
	ReadFormat                                   uint64

	Sample                                 uint64 // sample_period, or sample_freq with Freq
	Freq                                   bool
	SampleType                             uint64
	SampleIDAll                            bool
	Mmap, MmapData, Mmap2, Comm, CommExec  bool
	Task, ContextSwitch, KSymbol, BPFEvent bool
	BuildID, Namespaces, Cgroup, TextPoke  bool
	Watermark                              bool   // Wakeup is in bytes and not in events
	Wakeup                                 uint32 // wakeup_events or wakeup_watermark
	BranchSampleType                       uint64
	SampleRegsUser, SampleRegsIntr         uint64
	SampleStackUser                        uint32
	SampleMaxStack                         uint16
	ExcludeCallchainUser                   bool
	ExcludeCallchainKernel                 bool
	UseClockID                             bool
	ClockID                                int32
}

// kernelAttr is struct perf_event_attr of include/uapi/linux/perf_event.h as
// it is since version 9 (config4). Kernels before that accept it as long as
// the fields that they do not know are 0.
type kernelAttr struct {
	typ              uint32
	size             uint32
	config           uint64
	sample           uint64
	sampleType       uint64
	readFormat       uint64
	flags            uint64
	wakeup           uint32
	bpType           uint32
	config1          uint64
	config2          uint64
	branchSampleType uint64
	sampleRegsUser   uint64
	sampleStackUser  uint32
	clockID          int32
	sampleRegsIntr   uint64
	auxWatermark     uint32
	sampleMaxStack   uint16
	_                uint16
	auxSampleSize    uint32
	auxAction        uint32
	sigData          uint64
	config3          uint64
	config4          uint64
}

// Sizes of struct perf_event_attr in its versions.
const (
	attrSizeVer0 = 64
	attrSizeVer8 = 136 // config3
	attrSize     = 144 // version 9
)

// kernel returns the attributes as the kernel takes them.
func (a *Attr) kernel() kernelAttr {
	k := kernelAttr{
		typ: a.Type, size: attrSize, config: a.Config, config1: a.Config1, config2: a.Config2, config3: a.Config3,
		sample: a.Sample, sampleType: a.SampleType, readFormat: a.ReadFormat, wakeup: a.Wakeup,
		branchSampleType: a.BranchSampleType, sampleRegsUser: a.SampleRegsUser, sampleRegsIntr: a.SampleRegsIntr,
		sampleStackUser: a.SampleStackUser, sampleMaxStack: a.SampleMaxStack, clockID: a.ClockID,
		flags: uint64(a.Precise&3) << perffile.PrecisePos,
	}
	for _, f := range [...]struct {
		set  bool
		flag uint64
	}{
		{a.Disabled, perffile.FlagDisabled}, {a.Inherit, perffile.FlagInherit}, {a.Pinned, perffile.FlagPinned}, {a.Exclusive, perffile.FlagExclusive},
		{a.ExcludeUser, perffile.FlagExcludeUser}, {a.ExcludeKernel, perffile.FlagExcludeKernel}, {a.ExcludeHV, perffile.FlagExcludeHV},
		{a.ExcludeIdle, perffile.FlagExcludeIdle}, {a.Mmap, perffile.FlagMmap}, {a.Comm, perffile.FlagComm}, {a.Freq, perffile.FlagFreq},
		{a.InheritStat, perffile.FlagInheritStat}, {a.EnableOnExec, perffile.FlagEnableOnExec}, {a.Task, perffile.FlagTask},
		{a.Watermark, perffile.FlagWatermark}, {a.MmapData, perffile.FlagMmapData}, {a.SampleIDAll, perffile.FlagSampleIDAll},
		{a.ExcludeHost, perffile.FlagExcludeHost}, {a.ExcludeGuest, perffile.FlagExcludeGuest}, {a.Mmap2, perffile.FlagMmap2},
		{a.CommExec, perffile.FlagCommExec}, {a.UseClockID, perffile.FlagUseClockID}, {a.ContextSwitch, perffile.FlagContextSwitch},
		{a.Namespaces, perffile.FlagNamespaces}, {a.KSymbol, perffile.FlagKSymbol}, {a.BPFEvent, perffile.FlagBPFEvent},
		{a.Cgroup, perffile.FlagCgroup}, {a.TextPoke, perffile.FlagTextPoke}, {a.BuildID, perffile.FlagBuildID}, {a.ExcludeCallchainUser, perffile.FlagExcludeCallchainUser}, {a.ExcludeCallchainKernel, perffile.FlagExcludeCallchainKernel},
	} {
		if f.set {
			k.flags |= f.flag
		}
	}
	return k
}

// Configurations of software events that this package counts for itself.
const (
	softwareCPUClock  = 0
	softwareTaskClock = 1
	softwareDummy     = 9
)
