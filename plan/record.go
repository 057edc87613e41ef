package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// cyclesPeriod is the number of cycles per sample if the vendor's list has none:
// about a thousand samples in a second.
const cyclesPeriod = 2_000_000

// findCycles finds the event that takes the samples in groups of others. It has the
// last number, so the search ignores it.
func (b *builder) findCycles() {
	i, err := b.in.number("cycles")
	if err != nil {
		return
	}
	e := b.in.events[i]
	if e.period == 0 {
		e.period = cyclesPeriod
	}
	b.cycles = &e
}

// Record returns the perf record commands that sample the plan's events: one, with
// the groups multiplexed by the kernel, or with runs one for each group. They are
// for the whole machine and ten seconds, as those of Perf. There are none if nothing
// needs a counter of the core: events that are counted all of the time take no
// samples. There are none for counts of each logical processor either.
//
// In a group one event takes the samples, cycles if the group has them or has room
// for them. Each sample has the counts of all events. The events of a set all take
// samples, with periods of their own by their cost. Such samples have no times of
// counting, so each group of a set has a run of its own.
func (p *Plan) Record(runs bool) []Command {
	if p.PerCPU() { // samples of one processor do not say what the other one does
		return nil
	}
	var all []Command
	var events []string
	args := []string{"perf", "record", "-a"}
	for i := range p.Groups {
		group := p.inMode(p.recorded(&p.Groups[i]))
		events = append(events, group)
		all = append(all, command(append(slices.Clone(args), "-o", p.File(i+1, "data")), []string{group}))
	}
	if runs || p.Options.Set != "" || len(events) == 0 {
		return all
	}
	if len(events) > 1 {
		args = append(args, "--running-time") // without it perf does not record the groups' shares of the time
	}
	return []Command{command(append(args, "-o", p.File(0, "data")), events)}
}

// A Sampled is an event of a group as it is opened for taking samples.
type Sampled struct {
	Event
	Takes  bool   // it takes samples, which have the counts of those that do not
	Period uint64 // after how many to take one, as its maker or the source of its set says; 0 if none does
}

// Sampled returns the events of a group in the order of opening them for samples.
// All events of a set take samples. In other groups one does: cycles, if the group
// has it or has room for it. Each event also has a period, for kernels that cannot
// read a group's counts with a sample.
func (p *Plan) Sampled(g *Group) []Sampled {
	if p.Options.Set != "" {
		list := make([]Sampled, len(g.Events))
		for i, e := range g.Events {
			list[i] = Sampled{e, true, cmp.Or(p.periods[e.ID], e.period)}
		}
		return list
	}
	events, by := p.sampling(g)
	list := make([]Sampled, len(events))
	for i, e := range events {
		list[i] = Sampled{e, i == by, e.period}
	}
	return list
}

// recorded returns a group as perf record's -e takes it.
func (p *Plan) recorded(g *Group) string {
	var names []string
	reads := false
	for _, e := range p.Sampled(g) {
		if e.Takes {
			names = append(names, e.sampled(e.Period))
		} else {
			names = append(names, e.PerfName())
			reads = true
		}
	}
	group := braced(names)
	if reads {
		group += ":S"
	}
	return group
}

// sampling returns the events of a group in the order for sampling, and the index of the
// sampled one. It leads the group, unless slots must, for the metrics derived from it: then it
// comes second, since slots cannot take samples (see tools/perf/Documentation/topdown.txt).
func (p *Plan) sampling(g *Group) (events []Event, by int) {
	events = slices.Clone(g.Events)
	if by = p.sampler(events); by < 0 {
		events = append(events, *p.cycles)
		by = len(events) - 1
	}
	to := 0
	if slices.ContainsFunc(events, func(e Event) bool { return e.demand.can.isMetric() }) {
		to = 1
	}
	e := events[by]
	return sorting.Insert(slices.Delete(events, by, by+1), to, e), to
}

// sampler returns which of a group's events takes samples, -1 for cycles, which
// there is room for besides.
func (p *Plan) sampler(events []Event) int {
	if p.cycles != nil {
		if i := slices.IndexFunc(events, func(e Event) bool { return e.ID == p.cycles.ID }); i >= 0 {
			events[i].period = p.cycles.period
			return i
		}
		if p.roomFor(events, p.cycles) {
			return -1
		}
	}
	can := func(e Event) bool { return e.Name != p.PMU.Slots && !e.demand.can.isMetric() }
	if i := slices.IndexFunc(events, func(e Event) bool { return can(e) && e.period > 0 }); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(events, can))
}

// roomFor reports whether another event can be counted with those of a group.
func (p *Plan) roomFor(events []Event, e *Event) bool {
	var demands []demand
	for i := range events {
		demands = append(demands, events[i].demand)
	}
	s := newSpace(append(demands, e.demand), p.PMU.Registers, p.taken, p.PMU.errata())
	all := newSet(len(s.demands))
	for i := range s.demands {
		all.add(i)
	}
	return s.fits(all)
}

// sampled returns the event with its name and its period; 0 leaves the period to
// perf.
func (e *Event) sampled(period uint64) string {
	s := e.PerfName()
	if period == 0 {
		return s
	}
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return fmt.Sprintf("%s,period=%d%s", s[:i], period, s[i:])
	}
	name, modifier, _ := strings.Cut(s, ":")
	return fmt.Sprintf("%s/period=%d/%s", name, period, modifier)
}
