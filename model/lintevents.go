package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/metric"
)

// constants is what lint takes for known in a formula.
type constants struct {
	hasEvent func(name string) bool
	smt      float64
}

// metric returns the constants as folding takes them. Nothing is known of the
// machine, so that a literal has some likely value.
func (c constants) metric() metric.Constants {
	return metric.Constants{
		HasEvent: c.hasEvent,
		Literal: func(name string) (float64, bool) {
			switch {
			case name == "#smt_on":
				return c.smt, true
			case strings.HasPrefix(name, "#has_"), name == "#core_wide":
				return 0, true
			}
			return 4, true
		},
	}
}

// onCPU checks the model against one of its processors.
func (l *linter) onCPU(p *CPU) {
	table, err := l.cat.Events(p)
	if err != nil {
		found, _ := faultFindings(err)
		l.found = append(l.found, found...)
		return
	}
	if l.table == nil || len(l.table.events) == 0 {
		l.table = table
	}
	if len(table.events) == 0 {
		if p.Events != "" {
			l.report(l.m.pos.at("cpus"), SevWarning, "processor %s has no event table: the model's events are not checked there", p.Name)
		} else if p.Layout == layoutNone {
			l.onAny(p)
		}
		return
	}
	l.events(table)
	l.counters(table)
}

// simulatedKey is the key of the events that simulators count, in the event tables.
const simulatedKey = "simulated"

// onAny checks the events of a model for any processor: they are the kernel's, those that
// simulators count, or given by their codes.
func (l *linter) onAny(p *CPU) {
	simulated, err := l.cat.lib.events(&CPU{Name: simulatedKey, Layout: layoutNone, Events: simulatedKey})
	if err != nil {
		found, _ := faultFindings(err)
		l.found = append(l.found, found...)
		return
	}
	for use := range l.m.mentions {
		ref, err := ParseEvent(use.event)
		if err != nil || ref.Name == "" || ref.PMU != "" || ref.HasConfig || simulated.byName(ref.Name, "") != nil {
			continue // ParseEvent's errors are reported when the model is read
		}
		if other, _ := l.cat.lib.knownElsewhere(l.m, p, ref); !other && !l.said(use.at, use.event) {
			l.report(use.at, SevError, "%s: %s has no event %q", use.what, p.Name, spelling.Clip(use.event))
		}
	}
}

// events checks that the processor has the events that the model names.
func (l *linter) events(t *EventTable) {
	for _, f := range l.formulas() {
		for _, name := range l.eventsOf(f.expr, t) {
			l.event(t, name, f.what, f.at, SevError)
		}
	}
	for i := range l.m.Inputs {
		in := &l.m.Inputs[i]
		at := place{file: in.File, line: in.Line}
		if slices.ContainsFunc(in.Events, func(e string) bool { return t.has(e) }) {
			continue
		}
		for _, e := range in.Events {
			l.event(t, e, subject{"input", in.Name, ""}, at, SevError)
		}
	}
	for i := range l.m.EventSets {
		s := &l.m.EventSets[i]
		for _, e := range s.Events {
			l.event(t, e.Event, subject{"event-set", s.Name, ""}, place{file: s.File, line: s.Line}, SevError)
		}
	}
	for i := range l.m.Nodes {
		n := &l.m.Nodes[i]
		for _, e := range n.Sample {
			l.event(t, e, subject{"node", n.Name, "sample"}, n.pos.at("sample"), SevWarning)
		}
	}
}

// has reports whether the processor has an event, as far as its table tells.
func (t *EventTable) has(spelling string) bool {
	ref, err := ParseEvent(spelling)
	return err == nil && t.knows(ref)
}

// eventsOf returns the events that a formula needs on a processor: not those in
// branches that are for processors with other events.
func (l *linter) eventsOf(e *metric.Expr, t *EventTable) []string {
	var names []string
	for _, counted := range []bool{true, false} { // of the inputs that has_event asks about
		folded := e.Fold(constants{hasEvent: func(name string) bool {
			if l.declared[name] {
				return counted
			}
			return t.has(name)
		}}.metric())
		for _, name := range folded.Names() {
			if !l.declared[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// event checks one event on a processor.
func (l *linter) event(t *EventTable, spelled string, what subject, at place, severity string) {
	ref, err := ParseEvent(spelled)
	if err != nil {
		l.report(at, SevError, "%s: %v", what, err)
		return
	}
	if t.pmuClass(ref.PMU) != "" {
		return // of another PMU: its events are not known here
	}
	switch id := t.Resolve(ref); {
	case !t.knows(ref) && l.said(at, spelled):
	case !t.knows(ref):
		l.report(at, severity, "%s: %s has no event %q", what, t.cpu.Name, spelling.Clip(spelled))
	case id.Name != "" && len(ref.Terms) > 0:
		l.report(at, severity, "%s: %q has a term that is no field of the event codes of %s", what, spelling.Clip(spelled), t.cpu.Name)
	case ref.Name == "":
		if _, ok := t.Find(ref); !ok {
			l.report(at, SevWarning, "%s: no event of %s has the code of %q", what, t.cpu.Name, spelling.Clip(spelled))
		}
	}
}

// counters checks that the events of each set fit on the counters in the stated number of
// runs. It notes the nodes whose events cannot be counted together.
func (l *linter) counters(t *EventTable) {
	for i := range l.m.EventSets {
		s := &l.m.EventSets[i]
		if s.Runs == 0 {
			continue
		}
		var events []*Event
		for _, e := range s.Events {
			if found, ok := t.Lookup(e.Event); ok {
				events = append(events, found)
			}
		}
		if left := t.fit(events, s.Runs); left != nil {
			l.report(place{file: s.File, line: s.Line}, SevError, "event-set %s: with runs = %d, %s finds no free counter on %s", s.Name, s.Runs, left.Name, t.cpu.Name)
		}
	}
	for i := range l.m.Nodes {
		n := &l.m.Nodes[i]
		if n.expr == nil {
			continue
		}
		var events []*Event
		for _, name := range l.eventsOf(n.expr, t) {
			if e, ok := t.Lookup(name); ok && !slices.Contains(events, e) {
				events = append(events, e)
			}
		}
		if left := t.fit(events, 1); left != nil {
			l.report(n.pos.at("formula"), SevNote, "node %s: its events cannot be counted together on %s: %s finds no free counter", n.Name, t.cpu.Name, left.Name)
		}
	}
}

// fit puts events on counters: each counter takes one event in each run. It returns an
// event that finds no counter, nil if all fit. Events that can use any counter, those of
// fixed counters and those of other PMUs do not compete.
func (t *EventTable) fit(events []*Event, runs int) (left *Event) {
	taken := map[string][]*Event{} // by counter
	var place func(e *Event, tried map[string]bool) bool
	place = func(e *Event, tried map[string]bool) bool {
		for _, c := range t.countersOf(e) {
			if tried[c] {
				continue
			}
			tried[c] = true
			if len(taken[c]) < runs {
				taken[c] = append(taken[c], e)
				return true
			}
			for i, other := range taken[c] { // move one elsewhere
				if place(other, tried) {
					taken[c][i] = e
					return true
				}
			}
		}
		return false
	}
	for _, e := range events {
		if e.PMU != "" || e.Counters == "" || strings.HasPrefix(e.Counters, "fixed") {
			continue
		}
		if !place(e, map[string]bool{}) {
			return e
		}
	}
	return nil
}

// countersOf returns the counters that can count an event. On POWER the code
// says which, and an alias may be the code for another one.
func (t *EventTable) countersOf(e *Event) []string {
	counters := strings.Split(e.Counters, ",")
	if t.cpu.Layout != layoutPower {
		return counters
	}
	for _, alias := range e.Aliases {
		if raw, ok := rawCode(alias); ok && raw>>16&0xf != 0 {
			counters = append(counters, strconv.FormatUint(raw>>16&0xf, 10))
		}
	}
	return counters
}
