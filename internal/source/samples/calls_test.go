package samples_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// TestCalls: children count once in each function of their stack, callers and callees at the
// outermost and innermost of recursive calls.
func TestCalls(t *testing.T) {
	const main, work, leaf, last = 0x10010, 0x10110, 0x10210, 0x10310
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.program()
	for i, c := range []struct {
		period uint64
		stack  []uint64 // the innermost first
	}{
		{1, []uint64{main}},
		{2, []uint64{work, main}},
		{4, []uint64{leaf, work, main}},
		{8, []uint64{leaf, work, work, main}}, // recursion
		{16, []uint64{work, last, main}},
		{32, []uint64{last, main}},
	} {
		chain := []uint64{perffile.ContextUser}
		for k, a := range c.stack {
			if k > 0 {
				a++ // returns behind the call
			}
			chain = append(chain, a)
		}
		r.chain(perfdata.ModeUser, uint64(10+i), c.period, chain)
	}
	for _, test := range []struct {
		calls      samples.Calls
		want, self map[string]float64
	}{
		{samples.Calls{View: samples.Children},
			map[string]float64{"": 63, "main": 63, "work": 30, "leaf": 12, "last": 48},
			map[string]float64{"": 0, "main": 1, "work": 18, "leaf": 12, "last": 32}},
		{samples.Calls{View: samples.Callers, Function: "work"},
			map[string]float64{"": 30, "main": 14, "last": 16}, map[string]float64{"": 18, "main": 0, "last": 0}},
		{samples.Calls{View: samples.Callees, Function: "work"},
			map[string]float64{"": 30, "work": 18, "leaf": 12}, map[string]float64{"": 18, "work": 18, "leaf": 12}},
		{samples.Calls{View: samples.Callers, Function: "main"},
			map[string]float64{"": 63, "[thread prog]": 63}, map[string]float64{"": 1, "[thread prog]": 0}},
	} {
		table, self, err := stacksOf(t, r, samples.Options{By: counts.Function, Calls: test.calls}).CallTable()
		if err != nil {
			t.Fatal(err)
		}
		values := func(t *counts.Table) map[string]float64 {
			out := map[string]float64{}
			for i := range t.Scopes {
				name := ""
				if t.Scopes[i].Code != nil {
					name = t.Scopes[i].Code.Function
				}
				out[name] = t.Cell(i, 0).Value
			}
			return out
		}
		if got := values(table); !maps.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.calls, got, test.want)
		}
		if got := values(self); !maps.Equal(got, test.self) {
			t.Errorf("%+v: self %v, want %v", test.calls, got, test.self)
		}
	}
	s := stacksOf(t, r, samples.Options{By: counts.Function, Calls: samples.Calls{View: samples.Callees, Function: "lost"}})
	if _, _, err := s.CallTable(); !errors.As(err, new(*samples.NoMatchError)) {
		t.Errorf("a function that is not there: %v", err)
	}
}
