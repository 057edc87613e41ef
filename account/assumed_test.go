package account_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestAssumed checks that a number in place of an event is said, and doubted where it
// matters: not where it is 0 or the value small, and not where another formula stands.
func TestAssumed(t *testing.T) {
	text := "name = \"assumes\"\nunit = \"slots\"\ncpus = [\"toy\"]\n"
	for _, node := range [][2]string{
		{"One", "STALL / CYC * (HIT / MISS if has_event(HIT) else 1)"},
		{"Zero", "(MISS + (HIT if has_event(HIT) else 0)) / CYC"},
		{"Other", "(HIT if has_event(HIT) else MISS) / CYC"},
		{"Named", "One / 2"},
	} {
		text += fmt.Sprintf("[[node]]\nname = %q\nformula = %q\n", node[0], node[1])
	}
	own := maps.Clone(files)
	delete(own, "models/toy.toml")
	own["models/assumes.toml"] = &fstest.MapFile{Data: []byte(text)}
	method := compile(t, own, account.Options{})
	readings := func(stall float64, more ...reading) []reading {
		return append([]reading{{event: "CYC", value: 1000}, {event: "STALL", value: stall}, {event: "MISS", value: 100}}, more...)
	}
	const doubt = "a number stands for an event that was not counted"
	for _, tt := range []struct {
		name     string
		readings []reading
		assumed  map[string]int
		reliable map[string]bool
	}{
		{"without the event", readings(300), map[string]int{"One": 1, "Zero": 1, "Named": 1}, map[string]bool{"Zero": true, "Other": true}},
		{"of next to nothing", readings(5), map[string]int{"One": 1, "Zero": 1, "Named": 1}, map[string]bool{"One": true, "Zero": true, "Other": true, "Named": true}},
		{"with it", readings(300, reading{event: "HIT", value: 200}), nil, map[string]bool{"One": true, "Zero": true, "Other": true, "Named": true}},
	} {
		a := run(t, method, 1, tt.readings...)
		for i := range a.Nodes {
			v, name := &a.Nodes[i], a.Model().Nodes[i].Name
			if len(v.Assumed) != tt.assumed[name] || (v.Doubt.String() == doubt) == tt.reliable[name] {
				t.Errorf("%s: %s = %v assumes %v, reliable %v (%v)", tt.name, name, v.Value, v.Assumed, v.Reliable(), v.Doubt)
			}
		}
	}
}

// TestCountsExact checks that a conversion of units leaves integers, and that counts have
// units.
func TestCountsExact(t *testing.T) {
	l := &counts.Layout{Columns: []counts.Column{{Event: "task-clock", Unit: "msec"}, {Event: "CYC"}}, Scopes: []counts.Scope{counts.RunScope("")}}
	table := counts.NewTable(l)
	*table.Cell(0, 0) = counts.Cell{State: counts.Counted, Value: 8286.88}
	*table.Cell(0, 1) = counts.Cell{State: counts.Counted, Value: 3}
	a := toy(t, account.Options{}).Bind(l).Evaluate(table, account.Place{}, nil)
	for i, want := range []struct {
		value float64
		unit  string
	}{{8286880000, "ns"}, {3, "cycles"}} {
		if c := a.Counts()[i]; c.Value != want.value || c.Unit != want.unit {
			t.Errorf("%s: %v %s, want %v %s", c.Event, c.Value, c.Unit, want.value, want.unit)
		}
	}
}
