package samples_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
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

// callSums are the samples by function of a table of calls, and of its own samples.
func callSums(t *testing.T, r *recording, o samples.Options) (sums, self map[string]int64, notes []counts.Note) {
	t.Helper()
	s := stacksOf(t, r, o)
	table, own, err := s.CallTable()
	if err != nil {
		t.Fatal(err)
	}
	sums, self = map[string]int64{}, map[string]int64{}
	for i := range table.Scopes {
		name := ""
		if table.Scopes[i].Code != nil {
			name = table.Scopes[i].Code.Function
		}
		sums[name] += table.Cell(i, 0).Samples
		self[name] += own.Cell(i, 0).Samples
	}
	return sums, self, s.Notes()
}

// TestCallsInParts: callchains that exceed the memory for stacks are summed while the recording is
// read. The table has all of them, and no other stacks.
func TestCallsInParts(t *testing.T) {
	r, _ := manyStacks(t, 20000)
	for _, c := range []samples.Calls{{View: samples.Children}, {View: samples.Callers, Function: "work"}, {View: samples.Callees, Function: "main"}} {
		want, own, _ := callSums(t, r, samples.Options{Calls: c})
		sums, self, notes := callSums(t, r, samples.Options{Calls: c, StackMemory: 1})
		if len(sums) < 2 || len(notes) > 0 {
			t.Errorf("%+v: %v, notes %v", c, sums, notes)
		}
		if !maps.Equal(sums, want) || !maps.Equal(self, own) {
			t.Errorf("%+v: in parts %v, self %v; at once %v, self %v", c, sums, self, want, own)
		}
	}
}

// TestCallsAreFolded: of stacks that end early, a note says what share of all samples they are.
func TestCallsAreFolded(t *testing.T) {
	r, _ := manyStacks(t, 20000)
	sums, self, notes := callSums(t, r, samples.Options{Calls: samples.Calls{View: samples.Children}, StackMemory: 1, StackCalls: 1000})
	folded := self["[other stacks]"]
	own := self["main"] + self["work"] + self["leaf"] + self["last"]
	if folded == 0 || folded > 10000 || sums["[other stacks]"] != folded || folded+own != sums[""] {
		t.Errorf("%v, self %v", sums, self)
	}
	want := fmt.Sprintf("%.2g %% of the samples are in [other stacks]", 100*float64(folded)/float64(sums[""]))
	if len(notes) != 1 || !strings.HasPrefix(notes[0].Text, want) {
		t.Errorf("notes %v, want %s", notes, want)
	}
}
