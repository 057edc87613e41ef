package plan

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/model"
)

// An Event is one that a plan counts.
type Event struct {
	Name string // the vendor's; as the formula has it where it has modifiers
	Perf string // as perf accepts it without knowing the name: cpu/event=0x9c,umask=0x1/
	Bare bool   // Perf is no term in slashes: r400fa, duration_time

	ID model.Identity // what it is on this processor

	// Core says that the core's PMU counts it, so it may be multiplexed. Others are
	// counted all of the time.
	Core bool

	demand demand
	period uint64 // after how many to take a sample, as its maker recommends; 0 if that is not known
}

// A catalog resolves the events of one processor for a plan, and numbers them.
type catalog struct {
	cpu    *model.CPU
	table  *model.EventTable
	pmu    *PMU
	driver *driver
	opt    Options
	events []Event
	byID   map[model.Identity]int

	without map[model.Identity]bool // events that shall not be counted

	general counters // that there are
	missing counters // general ones that the PMU has, but that cannot be used
}

// newCatalog returns the catalog of a processor.
func newCatalog(table *model.EventTable, opt Options) (*catalog, error) {
	pmu, err := PMUOf(table.CPU())
	if err != nil {
		return nil, err
	}
	driver, err := driverOf(table.CPU())
	if err != nil {
		return nil, err
	}
	c := &catalog{cpu: table.CPU(), table: table, pmu: pmu, driver: driver, opt: opt, byID: map[model.Identity]int{}, general: pmu.general(opt.SMT)}
	if c.without, err = identities(table, opt.Without); err != nil {
		return nil, err
	}
	if opt.Counters > 0 {
		for all := c.general; c.general.len() > opt.Counters; all = c.general {
			highest := counters(1) << (63 - bits.LeadingZeros64(uint64(all)))
			c.general &^= highest
			c.missing |= highest
		}
	}
	return c, nil
}

// identities returns what the spellings of events come to.
func identities(table *model.EventTable, spellings []string) (map[model.Identity]bool, error) {
	all := map[model.Identity]bool{}
	for _, spelling := range spellings {
		ref, err := model.ParseEvent(spelling)
		if err != nil {
			return nil, err
		}
		all[table.Resolve(ref).Event()] = true
	}
	return all, nil
}

// has reports whether an event can be counted on the processor, as far as its
// table tells.
func (c *catalog) has(spelling string) bool {
	ref, err := model.ParseEvent(spelling)
	return err == nil && c.why(ref) == ""
}

// why says why an event cannot be counted, "" if it can.
func (c *catalog) why(ref model.EventRef) string {
	if ref.Latency {
		return "its latency has to be sampled"
	}
	id := c.table.Resolve(ref)
	if id.PMU != "" || ref.HasConfig || len(c.table.Events()) == 0 {
		return ""
	}
	if _, ok := c.table.Find(ref); ok {
		return ""
	}
	if c.base(ref) != nil || slices.ContainsFunc(ref.Terms, func(t model.Term) bool { return t.Key == "event" }) {
		return ""
	}
	return "the processor has no such event"
}

// base returns the event that a spelling with modifiers begins with, nil if
// there is none.
func (c *catalog) base(ref model.EventRef) *model.Event {
	if ref.Name == "" { // a code, which is not that of the event 0
		return nil
	}
	if e, ok := c.table.Find(model.EventRef{PMU: ref.PMU, Name: ref.Name}); ok {
		return e
	}
	return nil
}

// number returns the number of an event, which it gets when it is first asked
// for.
func (c *catalog) number(spelling string) (int, error) {
	ref, err := model.ParseEvent(spelling)
	if err != nil {
		return 0, err
	}
	if why := c.why(ref); why != "" {
		return 0, fmt.Errorf("%s: %s", spelling, why)
	}
	id := c.table.Resolve(ref)
	if c.without[id.Event()] {
		return 0, fmt.Errorf("%s was left out", spelling)
	}
	if i, ok := c.byID[id]; ok {
		return i, nil
	}
	e := Event{Name: spelling, ID: id, Core: id.Hardware()}
	row, listed := c.table.Find(ref)
	base := row
	if listed && id.Privilege == 0 {
		e.Name = row.Name
	} else if !listed {
		base = c.base(ref)
	}
	if listed {
		e.period = row.SampleAfter
	}
	e.Perf = c.spell(id, base, spelling)
	e.Bare = !strings.Contains(e.Perf, "/")
	if e.Core && e.Perf == "" {
		return 0, fmt.Errorf("%s: no counter counts it", spelling)
	}
	if e.Core {
		if e.demand, err = c.demand(id, base, listed); err != nil {
			return 0, fmt.Errorf("%s: %w", spelling, err)
		}
	}
	return c.add(id, e), nil
}

func (c *catalog) add(id model.Identity, e Event) int {
	i := len(c.events)
	c.events = append(c.events, e)
	c.byID[id] = i
	return i
}

// spell returns perf's spelling of an event. One of another PMU that no table
// lists keeps the spelling of the formula, which is perf's already.
func (c *catalog) spell(id model.Identity, base *model.Event, spelling string) string {
	if base == nil && id.PMU != "" {
		return spelling
	}
	e := model.Event{PMU: id.PMU, Config: id.Config, Config1: id.Config1, NoCode: id.Name != ""}
	if base != nil {
		e.Name, e.Flags = base.Name, base.Flags
	}
	s := model.Spell(c.cpu, &e)
	if e.PMU == "" && !e.NoCode && e.Config1 == 0 && c.pmuVaries() {
		s = fmt.Sprintf("r%x", e.Config)
	}
	if p := id.Privilege.String(); p != "" && strings.HasSuffix(s, "/") {
		return s + p
	} else if p != "" {
		return s + ":" + p
	}
	return s
}

// pmuVaries reports whether the name of the core's PMU differs from machine to
// machine. Then only a raw code is understood on all of them.
func (c *catalog) pmuVaries() bool {
	return len(c.cpu.PMUs) > 0 && strings.ContainsAny(c.cpu.PMUs[0], "*?[")
}

// demand returns what counting an event takes. base is the event's row in the table. For
// an event that is not listed it is the row of the event that it modifies.
func (c *catalog) demand(id model.Identity, base *model.Event, listed bool) (demand, error) {
	switch {
	case id.PMU != "" || id.Name != "" && base == nil:
		return demand{can: c.general}, nil
	case base == nil:
		d := demand{can: c.driver.on(id.Config, c.general) & c.general}
		if d.can == 0 {
			return d, errors.New("there is no such counter as its code names")
		}
		return d, c.driver.restrict(&d, id.Config)
	}
	d, err := c.tabled(id, base, listed)
	if err == nil && id.Name == "" {
		err = c.driver.restrict(&d, id.Config)
	}
	return d, err
}

// tabled returns what the table says that an event takes.
func (c *catalog) tabled(id model.Identity, base *model.Event, listed bool) (demand, error) {
	d := demand{can: c.general}
	list := base.Counters
	if c.opt.SMT && base.CountersSMT != "" {
		list = base.CountersSMT
	}
	if list != "" {
		own, err := parseCounters(list)
		if err != nil {
			return d, err
		}
		d.can = c.usable(own, id, listed)
	}
	if also := c.pmu.Also[base.Name]; also != "" {
		more, _ := parseCounters(also) // checked when the list was read
		d.can |= more
	}
	if d.can == 0 {
		return d, fmt.Errorf("it needs one of the counters %s, which are not available", list)
	}
	flags := strings.Fields(base.Flags)
	if id.Config1 != 0 {
		for _, kind := range registerKinds {
			if slices.Contains(flags, kind) {
				d.registers = []register{{kind, id.Config1}}
			}
		}
	}
	d.pair = slices.Contains(flags, "pair")
	d.alone = slices.Contains(flags, "alone") && d.registers == nil
	if e := c.pmu.Erratum; e != nil && c.opt.Errata && c.pmu.divided(c.opt) {
		d.erratum = slices.Contains(e.Codes, id.Config&0xff)
	}
	return d, nil
}

// usable returns the counters that can count an event; own are those of the table. A modified
// event does not fit a fixed counter, which counts one thing only. If an event's fixed counter
// is taken, general counters count it by its code. A pseudo code (event 0) excepts. See
// intel_pmu_check_event_constraints in Linux's arch/x86/events/intel/core.c.
func (c *catalog) usable(own counters, id model.Identity, listed bool) counters {
	f := own.fixed()
	switch {
	case f < 0:
		return own &^ c.missing
	case !listed || f >= c.pmu.Fixed && f < firstMetric:
		return c.general
	case id.Config&0xff != 0:
		return own | c.general
	}
	return own
}
