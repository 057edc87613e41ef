package recorded

import (
	"errors"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// calls reads a recording's callchains as a table by function.
func (p *placeReport) calls(rec *source.Recording) (t *counts.Table, err error) {
	if rec.Simulated() {
		return nil, fault.Inputf("%s: a simulation has no callchains", p.file)
	}
	s, err := rec.Stacks(samples.Options{By: counts.Function, Calls: p.o.Calls, NoLines: true, NoInline: p.o.NoInline, Waits: p.waits(), Filter: p.o.Filter.Filter, Symbols: p.o.Symbols})
	switch {
	case errors.Is(err, perfdata.ErrFormat):
		return nil, needsSamples(err, "a report of calls")
	case err != nil:
		return nil, p.unread(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !s.Callchains() {
		return nil, fault.Inputf("%s: it has no callchains; record -g, or perf record -g, has them", p.file)
	}
	t, p.self, err = s.CallTable()
	if none := (*samples.NoMatchError)(nil); errors.As(err, &none) {
		return nil, fault.Inputf("%s: no callchain has a function %s%s", p.file, p.o.Calls.Function, nearest(p.o.Calls.Function, none.Names))
	}
	if err != nil {
		return nil, fault.As(fault.Input, err)
	}
	p.kind = accounting.KindOf(s)
	t.Notes = append(t.Notes, s.Notes()...)
	return t, nil
}

// shown returns what the report says of calls.
func (p *placeReport) shown() *accounting.Calls {
	names := map[samples.View]string{samples.Children: "children", samples.Callers: "callers", samples.Callees: "callees"}
	return &accounting.Calls{View: names[p.o.Calls.View], Of: p.o.Calls.Function, Self: p.self}
}
