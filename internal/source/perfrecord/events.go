package perfrecord

import (
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/source/perfdata"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// fileEvents returns events as a file has them.
func fileEvents(list []perfevent.SampledEvent) []*perfdata.Event {
	events := make([]*perfdata.Event, len(list))
	for i := range list {
		e := &list[i]
		events[i] = &perfdata.Event{Attr: fileAttr(&e.Attr), Index: i, IDs: e.IDs, Name: e.Name, Named: true, Unit: e.Unit, Scale: 1, CPUs: e.CPUs}
	}
	members := map[int]int{}
	for i := range list {
		members[list[i].Leader]++
	}
	for i := range list {
		if leader := list[i].Leader; members[leader] > 1 {
			events[i].Leader = events[leader]
		}
	}
	return events
}

// fileAttr returns attributes as a file has them.
func fileAttr(a *perfevent.Attr) perfdata.Attr {
	out := perfdata.Attr{
		Type: a.Type, Config: a.Config, Config1: a.Config1, Config2: a.Config2, Config3: a.Config3,
		SamplePeriod: a.Sample, SampleType: perfdata.SampleType(a.SampleType), ReadFormat: a.ReadFormat,
		Precise: a.Precise, Wakeup: a.Wakeup, BranchType: a.BranchSampleType,
		RegsUser: a.SampleRegsUser, RegsIntr: a.SampleRegsIntr, StackUser: a.SampleStackUser, ClockID: a.ClockID, MaxStack: a.SampleMaxStack,
	}
	for _, f := range [...]struct {
		set  bool
		flag uint64
	}{
		{a.Disabled, perffile.FlagDisabled}, {a.Inherit, perffile.FlagInherit}, {a.Pinned, perffile.FlagPinned},
		{a.Exclusive, perffile.FlagExclusive}, {a.ExcludeUser, perffile.FlagExcludeUser}, {a.ExcludeKernel, perffile.FlagExcludeKernel},
		{a.ExcludeHV, perffile.FlagExcludeHV}, {a.ExcludeIdle, perffile.FlagExcludeIdle}, {a.ExcludeHost, perffile.FlagExcludeHost},
		{a.ExcludeGuest, perffile.FlagExcludeGuest}, {a.Freq, perffile.FlagFreq}, {a.InheritStat, perffile.FlagInheritStat},
		{a.EnableOnExec, perffile.FlagEnableOnExec}, {a.Watermark, perffile.FlagWatermark}, {a.SampleIDAll, perffile.FlagSampleIDAll},
		{a.Mmap, perffile.FlagMmap}, {a.MmapData, perffile.FlagMmapData}, {a.Mmap2, perffile.FlagMmap2}, {a.Comm, perffile.FlagComm},
		{a.CommExec, perffile.FlagCommExec}, {a.Task, perffile.FlagTask}, {a.ContextSwitch, perffile.FlagContextSwitch},
		{a.KSymbol, perffile.FlagKSymbol}, {a.BPFEvent, perffile.FlagBPFEvent}, {a.BuildID, perffile.FlagBuildID},
		{a.Namespaces, perffile.FlagNamespaces}, {a.Cgroup, perffile.FlagCgroup}, {a.TextPoke, perffile.FlagTextPoke},
		{a.UseClockID, perffile.FlagUseClockID}, {a.ExcludeCallchainUser, perffile.FlagExcludeCallchainUser},
		{a.ExcludeCallchainKernel, perffile.FlagExcludeCallchainKernel},
	} {
		if f.set {
			out.Flags |= f.flag
		}
	}
	return out
}
