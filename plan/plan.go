// Package plan decides which events are counted together. It turns nodes of a model
// into groups of events that fit the processor's counters at the same time. The
// events of one node share a group if they can, and the groups are as few as
// possible.
//
// It is the second step of the flow
//
//	model → plan → source → counts → account → report
//
// It knows counters and their constraints, and what Linux's drivers demand of groups.
// It asks no kernel: a plan can be made anywhere for any processor.
//
// The package promises that a plan's groups fit the counters and that LowerBound is
// proved. A plan is the same whenever and wherever it is made.
//
//	cat, err := model.Embedded()
//	cpu, err := cat.CPU("skylakex")
//	m, err := cat.Model("", cpu.Name)
//	events, err := cat.Events(cpu)
//	p, err := plan.New(m, events, plan.Options{Level: 2})
//	fmt.Println(len(p.Groups), p.LowerBound)
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// Options say what to plan for.
type Options struct {
	// Nodes are the nodes to plan for, by their index in the model. Nil is the
	// main tree down to Level.
	Nodes []int
	// Level is the deepest level of the main tree; 0 is all of it.
	Level int
	// Set is the name of one of the model's event sets, to plan for instead of
	// nodes. Its events need not share groups.
	Set string
	// Without are events that shall not be counted, because the machine refused
	// them. Nodes that need them are missing. An input that may be one of several
	// events is the next one that the processor has.
	Without []string

	SMT      bool // the core's other logical processors run, too
	Watchdog bool // the kernel's NMI watchdog counts, too
	Counters int  // general counters that are free with the watchdog running; 0 is all of them
	Errata   bool // keep to what the kernel's workarounds for errata leave
}

// A Plan says which events to count together.
type Plan struct {
	CPU     *model.CPU
	Model   *model.Model
	PMU     *PMU
	Options Options // that it was made with

	Groups []Group // in the order of their first turn: what matters most comes first
	Always []Event // counted all of the time, in no group: they need no counter of the core
	Nodes  []Node  // that the plan is for, in the order of the model

	// LowerBound is a number of groups that is proved to be needed for keeping
	// together what this plan keeps together: every node that is Together. If it
	// equals the number of groups, there is no better plan.
	LowerBound int

	// Rotation is the order of multiplexing, by the groups' indexes. Groups with
	// nodes of the first levels are in it more often than others.
	Rotation []int

	Warnings []counts.Note // what must be known to use the plan

	general counters
	taken   []counters                // what something else takes all of the time: one of each
	cycles  *Event                    // of the core, for taking samples; nil if there is none
	periods map[model.Identity]uint64 // of a set's events: after how many to take a sample
}

// A Group is events that are counted at one time.
type Group struct {
	Events   []Event  // in the order for perf
	Counters []string // by event: one it can be put on, so that each has its own; "" for a part of slots
	Nodes    []int    // indexes in the model: the nodes to be read from this group
	Turns    int      // in one rotation
}

// A Node is a node of the model, and where its events are counted.
type Node struct {
	Index    int    // in the model
	Together bool   // all of its events are in one group
	Groups   []int  // those its events are read from; none if they are all counted all of the time
	Parts    []Part // how it was split; nil if it is Together
	Missing  string // why it cannot be counted; "" if it can
}

// A Part is events of a node that is not Together. They are a ratio in itself. Unless
// Loose, it can be counted at another time than the node's other parts at little harm.
type Part struct {
	Events []string `json:"events"`
	Groups []int    `json:"groups"` // one, unless no group has them all
	Loose  bool     `json:"loose"`  // a ratio is formed of counts of several times: from this part's events, or from this and others
}

// Optimal reports whether no plan has fewer groups.
func (p *Plan) Optimal() bool { return len(p.Groups) <= p.LowerBound }

// Runs returns how often the program must run to be counted without multiplexing:
// once for each group, and once if all events are counted all of the time.
func (p *Plan) Runs() int { return max(1, len(p.Groups)) }

// GeneralCounters returns how many general counters the plan uses of each
// logical processor.
func (p *Plan) GeneralCounters() int { return p.general.len() }

// Together returns how many nodes have all their events in one group, and how many can be
// counted.
func (p *Plan) Together() (together, of int) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Missing == "" {
			of++
			if n.Together {
				together++
			}
		}
	}
	return together, of
}

// New makes a plan for a model on the processor of an event table.
func New(m *model.Model, events *model.EventTable, opt Options) (*Plan, error) {
	if opt.Level < 0 || opt.Counters < 0 {
		return nil, errors.New("levels and counters are not negative")
	}
	c, err := newCatalog(events, opt)
	if err != nil {
		return nil, err
	}
	in, err := newInputs(m, c)
	if err != nil {
		return nil, err
	}
	p := &Plan{CPU: events.CPU(), Model: m, PMU: c.pmu, Options: opt, general: c.general}
	b := &builder{Plan: p, in: in}
	if opt.Set != "" {
		err = b.askSet(opt.Set)
	} else {
		err = b.askNodes()
	}
	if err != nil {
		return nil, err
	}
	b.search()
	b.keepParts()
	b.order()
	b.place()
	b.findCycles()
	b.warn()
	return p, nil
}

// A builder is a plan being made.
type builder struct {
	*Plan
	in     *inputs
	space  *space
	wishes []wish // by node of the plan; of those that are missing empty
	single []set  // events that are to be counted in any company
	cover  *cover
	turn   []int // the groups of the cover in the order of the plan
}

// askNodes finds out what the nodes need.
func (b *builder) askNodes() error {
	for _, i := range b.chosen() {
		if i < 0 || i >= len(b.Model.Nodes) {
			return fmt.Errorf("%s has no node number %d", b.Model.Name, i)
		}
		n := Node{Index: i}
		if need := b.in.node(i); need.err != nil {
			n.Missing = need.err.Error()
		}
		b.Nodes = append(b.Nodes, n)
	}
	b.makeSpace()
	b.wishes = make([]wish, len(b.Nodes))
	for k := range b.Nodes {
		n := &b.Nodes[k]
		if n.Missing == "" {
			n.Missing = b.uncountable(b.in.node(n.Index).events)
		}
		if n.Missing == "" {
			b.wishes[k] = b.in.wish(b.space, n.Index)
		}
	}
	return nil
}

// uncountable says which of the events cannot be counted, not even alone; "" if
// all can.
func (b *builder) uncountable(events []int) string {
	for _, e := range events {
		if !b.space.fits(b.in.set([]int{e})) {
			return fmt.Sprintf("there is no counter for %s", b.in.events[e].Name)
		}
	}
	return ""
}

// chosen returns the nodes to plan for.
func (b *builder) chosen() []int {
	if b.Options.Nodes != nil {
		all := slices.Clone(b.Options.Nodes)
		slices.Sort(all)
		return slices.Compact(all)
	}
	var all []int
	for i := range b.Model.Nodes {
		if n := &b.Model.Nodes[i]; n.Section == "" && (b.Options.Level == 0 || n.Level <= b.Options.Level) {
			all = append(all, i)
		}
	}
	return all
}

// askSet finds the events of an event set.
func (b *builder) askSet(name string) error {
	i := slices.IndexFunc(b.Model.EventSets, func(s model.EventSet) bool { return s.Name == name })
	if i < 0 {
		return b.noSet(name)
	}
	var events []int
	b.periods = map[model.Identity]uint64{}
	for _, e := range b.Model.EventSets[i].Events {
		n, err := b.in.number(e.Event)
		if err != nil {
			return fmt.Errorf("event set %s: %w", name, err)
		}
		b.periods[b.in.events[n].ID] = e.SampleAfter
		more, err := b.in.withCompanions(n)
		if err != nil {
			return fmt.Errorf("event set %s: %w", name, err)
		}
		events = union(events, more)
	}
	b.makeSpace()
	if why := b.uncountable(events); why != "" {
		return fmt.Errorf("event set %s: %s", name, why)
	}
	b.single = b.each(events)
	return nil
}

// each returns sets of one event each, with those that it needs in its group.
func (b *builder) each(events []int) (sets []set) {
	for _, e := range events {
		all, _ := b.in.withCompanions(e) // found before: a node whose event lacks one is missing
		sets = append(sets, b.in.set(all))
	}
	return sets
}

func (b *builder) noSet(name string) error {
	if len(b.Model.EventSets) == 0 {
		return fmt.Errorf("%s has no event set %q: it has none", b.Model.Name, name)
	}
	var names []string
	for i := range b.Model.EventSets {
		names = append(names, b.Model.EventSets[i].Name)
	}
	return fmt.Errorf("%s has no event set %q; it has %s", b.Model.Name, name, strings.Join(names, ", "))
}

// makeSpace makes the space of all events met so far.
func (b *builder) makeSpace() {
	b.taken = b.watchdog()
	demands := make([]demand, len(b.in.events))
	for i := range b.in.events {
		demands[i] = b.in.events[i].demand
	}
	b.space = newSpace(demands, b.PMU.Registers, b.taken, b.PMU.errata())
}

// watchdog returns what the watchdog takes: one of the counters that can count its
// event, or where that is left out, of the general ones.
func (b *builder) watchdog() []counters {
	if !b.Options.Watchdog {
		return nil
	}
	can := b.general // where its event is left out: one of those
	if i, err := b.in.number(b.PMU.Watchdog); err == nil {
		can = b.in.events[i].demand.can
	}
	return b.heldOf(can)
}

// heldOf returns what the watchdog takes if these counters can count its event: one of
// them. On Intel's processors that is a fixed one, or a general one where a group counts
// the same. A number of general counters that the caller gives was found with events of
// general counters while the watchdog counted: one that has no fixed counter to go to is
// on a general one that is not among them.
func (p *Plan) heldOf(can counters) []counters {
	if p.PMU.Watchdog == "" || p.Options.Counters > 0 && can.fixed() < 0 {
		return nil
	}
	return []counters{can}
}

// Efforts of the searches, in sets tried for whether they fit. A million takes
// less than a tenth of a second.
const (
	effortQuick = 300_000
	effortBound = 8_000_000
	effortLong  = 1_000_000
	effortParts = 6_000_000 // for all parts
)

// search finds the groups for the nodes whose events fit one, and a home for
// every other event.
func (b *builder) search() {
	units := slices.Clone(b.single)
	for k := range b.wishes {
		if w := &b.wishes[k]; len(w.parts) == 1 {
			units = append(units, w.parts[0])
			continue
		}
		for _, part := range b.wishes[k].parts {
			units = append(units, b.each(part.members())...)
		}
	}
	units = largest(units)
	b.cover = newCover(b.space, units)
	b.cover.firstFit()
	b.LowerBound = counting(b.space, units)
	b.cover.reduce(b.LowerBound, effortQuick)
	if found := len(b.cover.groups); found > b.LowerBound {
		b.LowerBound = lowerBound(b.space, units, b.cover.groups, b.cover.seen, effortBound)
		b.cover.reduce(b.LowerBound, effortLong)
	}
}

// keepParts puts the parts of split nodes into the existing groups, as far as there is
// room. Parts of the most important nodes come first.
func (b *builder) keepParts() {
	parts := 0
	for k := range b.wishes {
		parts += len(b.wishes[k].parts)
	}
	order := make([]int, len(b.wishes))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(b.rank(x), b.rank(y)) })
	for _, k := range order {
		w := &b.wishes[k]
		if len(w.parts) < 2 {
			continue
		}
		for _, part := range w.parts {
			b.keep(part.members(), effortParts/parts)
		}
	}
}

// keep puts the events of a part into one group, with those that they need there. If that
// cannot be, it takes few groups.
func (b *builder) keep(events []int, effort int) {
	all := b.in.set(nil)
	for _, with := range b.each(events) {
		all.join(with)
	}
	if b.cover.add(all, effort) || len(events) < 3 {
		return
	}
	b.keep(events[:len(events)/2], effort/2)
	b.keep(events[len(events)/2:], effort/2)
}
