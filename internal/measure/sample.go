package measure

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// SampleOptions say what a recording takes samples of.
type SampleOptions struct {
	Options             // of them the target, the choice, the source, the period and NoInherit matter
	Events     []string // lists in perf's spelling; none are those that the method needs
	Filters    []Filter // of tracepoints among Events
	Rate       Rate     // how often samples are taken
	Calls      Calls    // callchains with each sample
	Branches   Branches // which branches each sample has
	Switches   bool     // records of each switch between threads
	OffCPU     bool     // where threads wait, and where they run
	NoBuildIDs bool     // of files
	Cgroups    bool     // samples name their cgroup
	Memory     bool     // samples say which data was accessed, of events that know
	Physical   bool     // samples have the physical address of the data
	Aborts     bool     // samples say how a transaction was aborted
	RingSize   int      // bytes for each CPU's records until they are written; 0 is the usual size
}

// Calls say how callchains are recorded; the zero value is not at all.
type Calls struct {
	Chains    bool // by frame pointers, of the kernel at least
	StackUser int  // bytes of the program's stack to unwind; 0 for none
	CallStack bool // the processor's record of open calls
}

// defaultStackUser is how many bytes of a stack are copied, as by perf.
const defaultStackUser = 8192

// ParseCalls reads a way of recording callchains in perf's spelling: fp, lbr, dwarf, or dwarf
// and the bytes of the stack.
func ParseCalls(text string) (Calls, error) {
	switch how, size, sized := strings.Cut(text, ","); {
	case text == "fp":
		return Calls{Chains: true}, nil
	case text == "lbr":
		return Calls{Chains: true, CallStack: true}, nil
	case how == "dwarf" && !sized:
		return Calls{Chains: true, StackUser: defaultStackUser}, nil
	case how == "dwarf":
		n, err := strconv.ParseUint(size, 10, 32)
		if n = (n + 7) &^ 7; err == nil && n > 0 && n <= perffile.MaxStackUser {
			return Calls{Chains: true, StackUser: int(n)}, nil
		}
		return Calls{}, fmt.Errorf("dwarf,%s: it is dwarf and the bytes of the stack, up to %d", size, perffile.MaxStackUser)
	}
	return Calls{}, fmt.Errorf("%s: it is fp (frame pointers), dwarf (copies of the stack), dwarf,BYTES or lbr", text)
}

// A Rate says how often samples are taken. The zero Rate is the plan's, or the usual one.
type Rate struct {
	PerSecond uint64 // of each event
	Most      bool   // as many as the kernel allows
	Every     uint64 // a sample after so many events; 0 for a number per second
}

// usualRate is how many samples a second are taken if neither the user nor the plan says.
// It is close to perf's 4000, but does not keep in step with what a program does at
// regular intervals.
const usualRate = 3989

// clockEvent takes samples where no event of the processor does.
const clockEvent = "cpu-clock"

// A Recording is what is to be recorded on this machine.
type Recording struct {
	m       *Measurement
	options SampleOptions
	spec    perfevent.SampleSpec
	rate    uint64 // samples of an event in a second, or the events between two of them
	freq    bool   // rate is in samples a second
	chosen  bool   // the user chose nodes
	notes   []counts.Note
}

// NewRecording finds out what is to be recorded.
func NewRecording(k Kernel, o SampleOptions) (*Recording, error) {
	k.Cache = nil // plans in the cache do not say how to sample
	chosen := o.Choice.Nodes != "" || o.Choice.Level != 0
	if len(o.Events) == 0 && !chosen && o.Set == "" {
		o.Choice.Level = 1
	}
	m, err := New(k, o.Options)
	if err != nil {
		return nil, err
	}
	r := &Recording{m: m, options: o, chosen: chosen}
	if err := r.choose(); err != nil {
		return nil, err
	}
	if err := r.offCPU(); err != nil {
		return nil, err
	}
	r.parts()
	return r, nil
}

// Spec says what is to be sampled.
func (r *Recording) Spec() perfevent.SampleSpec { return r.spec }

// Notes are remarks on what is sampled.
func (r *Recording) Notes() []counts.Note { return r.notes }

// Machine returns the machine that is recorded.
func (r *Recording) Machine() *Machine { return r.m.machine }

// Refused reports whether the clock can take the samples, after an error of the start. If
// so, the recording has another Spec from now on.
func (r *Recording) Refused(err error) bool {
	var refused *perfevent.OpenError
	c := &r.options.Choice
	if !errors.As(err, &refused) || len(r.m.parts) == 0 || r.options.Source != Auto || c.Model != "" || r.options.Set != "" {
		return false
	}
	if r.clock(fmt.Sprintf("the kernel refuses the processor's counters (%v)", refused)) != nil || r.offCPU() != nil {
		return false
	}
	r.parts()
	return true
}

// ErrNoEvents says that the kernel has none of the events that the nodes need. Its kind is
// fault.Machine.
var ErrNoEvents = fault.Machinef("the kernel has none of the events that these nodes need")

// StartError gives an error of the start, or of the recording, a kind.
func StartError(err error) error { return startError(err) }

// parts has samples say what was asked for of the data accessed and of transactions.
func (r *Recording) parts() {
	for _, g := range r.spec.Groups {
		for i := range g {
			e := &g[i]
			if e.Attr.Sample == 0 {
				continue
			}
			if r.options.Memory {
				e.SampleMemory()
			}
			if r.options.Physical {
				e.Attr.SampleType |= perffile.SamplePhysAddr
			}
			if r.options.Aborts {
				e.Attr.SampleType |= perffile.SampleTransaction
			}
		}
	}
}

// choose finds the events, and what else is to be sampled.
func (r *Recording) choose() (err error) {
	if err := r.often(); err != nil {
		return err
	}
	o := &r.options
	r.spec = perfevent.SampleSpec{Target: o.Target, Timeout: o.Period.Timeout, Delay: o.Period.Delay, Callchains: o.Calls.Chains, StackUser: o.Calls.StackUser, CallStack: o.Calls.CallStack,
		Branches: uint64(o.Branches), Switches: o.Switches, NoBuildIDs: o.NoBuildIDs,
		Cgroups: o.Cgroups || len(o.Target.Cgroups) > 0, NoInherit: o.NoInherit, RingSize: o.RingSize}
	if len(o.Events) > 0 {
		return r.listed()
	}
	why := r.m.machine.NoPMU()
	switch {
	case o.Source == OS:
		return r.clock("")
	case why == "":
		return r.events()
	case o.Source == PMU || o.Choice.Model != "" || o.Set != "":
		return &NoPMUError{why}
	}
	return r.clock(why)
}

// listed takes samples of the user's events.
func (r *Recording) listed() error {
	sys := r.m.machine.Sys
	sys.Names = r.m.spelled
	for i, list := range r.options.Events {
		groups, err := sys.ResolveSampled(list, r.rate, r.freq)
		if err != nil {
			return &fault.OptionError{Option: "event", Err: err}
		}
		for _, f := range r.options.Filters {
			if err := f.apply(i, groups); err != nil {
				return &fault.OptionError{Option: "filter", Err: err}
			}
		}
		r.spec.Groups = append(r.spec.Groups, groups...)
	}
	r.everyTracepoint()
	return nil
}

// everyTracepoint has tracepoints take a sample each time, as perf record does, unless the
// user said how often.
func (r *Recording) everyTracepoint() {
	if r.options.Rate != (Rate{}) {
		return
	}
	for _, g := range r.spec.Groups {
		for i := range g {
			if a := &g[i].Attr; a.Type == perffile.TypeTracepoint && a.Freq && a.Sample == r.rate {
				a.Sample, a.Freq = 1, false
			}
		}
	}
}

// often finds out how often to take samples.
func (r *Recording) often() error {
	most := r.m.machine.Sys.MaxSampleRate()
	r.rate, r.freq = usualRate, true
	switch rate := r.options.Rate; {
	case rate.Every > 0:
		r.rate, r.freq = rate.Every, false
	case rate.Most && most == 0:
		return fault.Machinef("the kernel does not say how many samples it allows")
	case rate.Most:
		r.rate = most
	case rate.PerSecond > 0:
		r.rate = rate.PerSecond
	case most > 0 && most < usualRate:
		r.rate = most
		r.note("%d samples a second: kernel.perf_event_max_sample_rate allows no more", most)
	}
	return nil
}

// clock takes samples by the clock. Why says why nothing better does; "" if it was asked
// for.
func (r *Recording) clock(why string) (err error) {
	if r.spec.Groups, err = r.m.machine.Sys.ResolveSampled(clockEvent, r.rate, r.freq); err != nil {
		return fault.As(fault.Machine, err)
	}
	if why == "" {
		return nil
	}
	r.note("samples are taken by the clock (%s), as %s: they show where the time goes, not why", clockEvent, why)
	if r.chosen {
		r.note("nodes and levels choose among the processor's events: there are none")
	}
	return nil
}

// events takes samples of a method's events.
func (r *Recording) events() error {
	if err := r.m.pmuParts(); err != nil {
		return err
	}
	o := &r.options
	apart := !r.m.cpus() && len(o.Target.Cgroups) == 0 && !o.NoInherit && !perfevent.InheritedReads()
	for _, p := range r.m.parts {
		r.spec.Groups = append(r.spec.Groups, r.groups(p, apart)...)
		r.notes = append(r.notes, p.notes...)
	}
	if len(r.spec.Groups) == 0 {
		return ErrNoEvents
	}
	r.spec.Times = len(r.spec.Groups) > 1 && !apart
	if apart && len(r.spec.Groups) > 1 {
		r.note("the groups are multiplexed, and before Linux 6.13 samples of programs do not say how long each was counted: compare events of one group only, or sample CPUs")
	}
	return nil
}

// groups returns a part's groups for taking samples. One event of each takes them, or all
// if apart says so.
func (r *Recording) groups(p *part, apart bool) [][]perfevent.Event {
	f := r.m.finder(p, len(r.m.parts) > 1)
	var groups [][]perfevent.Event
	for i := range p.plan.Groups {
		var group []perfevent.Event
		takes := false
		for _, e := range p.plan.Sampled(&p.plan.Groups[i]) {
			ev, ok := f.event(&e.Event)
			if !ok {
				continue
			}
			if strings.Contains(e.Perf, "ldlat=") {
				ev.SampleMemory()
				ev.Attr.Precise = 3
			}
			if e.Takes || apart {
				ev.Attr.Sample, ev.Attr.Freq = r.every(&e)
				takes = true
			}
			group = append(group, ev)
		}
		if len(group) > 0 && !takes { // the one that was to take them is missing
			group[0].Attr.Sample, group[0].Attr.Freq = r.rate, r.freq
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// every returns after how many of an event to take a sample: as the plan says, unless the
// user does.
func (r *Recording) every(e *plan.Sampled) (sample uint64, freq bool) {
	if e.Period > 0 && r.options.Rate == (Rate{}) {
		return e.Period, false
	}
	return r.rate, r.freq
}

func (r *Recording) note(format string, args ...any) {
	r.notes = append(r.notes, counts.Notef(format, args...))
}
