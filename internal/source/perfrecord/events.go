package perfrecord

import (
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
		SamplePeriod: a.Sample, SampleType: perfdata.SampleType(a.SampleType), ReadFormat: perfdata.ReadFormat(a.ReadFormat),
		Precise: a.Precise, Wakeup: a.Wakeup, BranchType: perfdata.BranchType(a.BranchSampleType),
		RegsUser: a.SampleRegsUser, RegsIntr: a.SampleRegsIntr, StackUser: a.SampleStackUser, ClockID: a.ClockID, MaxStack: a.SampleMaxStack,
	}
	for _, f := range [...]struct {
		set  bool
		flag perfdata.AttrFlags
	}{
		{a.Disabled, perfdata.FlagDisabled}, {a.Inherit, perfdata.FlagInherit}, {a.Pinned, perfdata.FlagPinned},
		{a.Exclusive, perfdata.FlagExclusive}, {a.ExcludeUser, perfdata.FlagExcludeUser}, {a.ExcludeKernel, perfdata.FlagExcludeKernel},
		{a.ExcludeHV, perfdata.FlagExcludeHV}, {a.ExcludeIdle, perfdata.FlagExcludeIdle}, {a.ExcludeHost, perfdata.FlagExcludeHost},
		{a.ExcludeGuest, perfdata.FlagExcludeGuest}, {a.Freq, perfdata.FlagFreq}, {a.InheritStat, perfdata.FlagInheritStat},
		{a.EnableOnExec, perfdata.FlagEnableOnExec}, {a.Watermark, perfdata.FlagWatermark}, {a.SampleIDAll, perfdata.FlagSampleIDAll},
		{a.Mmap, perfdata.FlagMmap}, {a.MmapData, perfdata.FlagMmapData}, {a.Mmap2, perfdata.FlagMmap2}, {a.Comm, perfdata.FlagComm},
		{a.CommExec, perfdata.FlagCommExec}, {a.Task, perfdata.FlagTask}, {a.ContextSwitch, perfdata.FlagContextSwitch},
		{a.KSymbol, perfdata.FlagKSymbol}, {a.BPFEvent, perfdata.FlagBPFEvent}, {a.BuildID, perfdata.FlagBuildID},
		{a.Namespaces, perfdata.FlagNamespaces}, {a.Cgroup, perfdata.FlagCgroup}, {a.TextPoke, perfdata.FlagTextPoke},
		{a.UseClockID, perfdata.FlagUseClockID},
	} {
		if f.set {
			out.Flags |= f.flag
		}
	}
	return out
}
