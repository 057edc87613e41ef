package account_test

import (
	"math"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// A readout is a column of a table and its cell.
type readout struct {
	event string
	group int
	cell  counts.Cell
}

// all is a count that was taken all of the time.
func all(v float64) counts.Cell {
	return counts.Cell{Value: v, Enabled: 1e9, Running: 1e9, State: counts.Counted}
}

// part is a count that was taken for a part of a second.
func part(v, share float64) counts.Cell {
	return counts.Cell{Value: v, Enabled: 1e9, Running: share * 1e9, State: counts.Counted}
}

// TestCounts checks what each count must satisfy by itself.
func TestCounts(t *testing.T) {
	never := counts.Cell{State: counts.NotCounted, Enabled: 1e9}
	refused := counts.Cell{State: counts.NotSupported}
	for _, tt := range []struct {
		name, cpu string
		seconds   float64
		readings  []readout
		want      string // the failing check; "" for none
		events    []string
	}{
		{"sound", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"instructions", 0, all(4e9)}}, "", nil},
		{"below zero", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"l1d.replacement", 0, all(-5)}}, "counts are numbers from 0 up", []string{"L1D.REPLACEMENT"}},
		{"no number", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"l1d.replacement", 0, all(math.Inf(1))}}, "counts are numbers from 0 up", []string{"L1D.REPLACEMENT"}},
		{"more than the time allows", "skylake", 1e-6, []readout{{"cycles", 0, all(3e9)}}, "counts fit into the time", []string{"CPU_CLK_UNHALTED.THREAD"}},
		{"more than the cycles allow", "skylake", 1, []readout{{"cycles", 0, all(3e6)}, {"l1d.replacement", 0, all(3e9)}}, "counts fit into the cycles", []string{"L1D.REPLACEMENT"}},
		{"wrapped", "skylake", 100, []readout{{"cycles", 0, all(3e10)}, {"l1d.replacement", 0, all(1<<48 - 5)}}, "counts are of one run", []string{"L1D.REPLACEMENT"}},
		{"never ran", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"l1d.replacement", 0, never}}, "each event had a counter", []string{"L1D.REPLACEMENT"}},
		{"never ran, shown as 0", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"l1d.replacement", 0, part(0, 0)}}, "each event had a counter", []string{"L1D.REPLACEMENT"}},
		{"never ran, but elsewhere", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"instructions", 1, never}, {"instructions", 2, part(3e9, 0.5)}}, "", nil},
		{"too short for a turn", "skylake", 1, []readout{{"task-clock", 0, all(1e6)}, {"cycles", 0, all(3e6)}, {"l1d.replacement", 0, never}}, "", nil},
		{"long enough by its clock", "skylake", 1, []readout{{"task-clock", 0, all(3e8)}, {"cycles", 0, all(3e6)}, {"l1d.replacement", 0, never}}, "each event had a counter", []string{"L1D.REPLACEMENT"}},
		{"refused by the kernel", "skylake", 1, []readout{{"cycles", 0, all(3e9)}, {"l1d.replacement", 0, refused}}, "", nil},
		{"on the other type of core", "alderlake:core", 1, []readout{{"cpu_core/cycles/", 0, all(3e9)}, {"cpu_atom/instructions/", 0, never}}, "", nil},
		{"readings that agree", "skylake", 1, []readout{{"cycles", 1, all(3e9)}, {"cycles", 2, all(3.01e9)}}, "", nil},
		{"readings that do not", "skylake", 1, []readout{{"cycles", 1, all(3e9)}, {"instructions", 1, all(3e9)}, {"cycles", 2, all(9e9)}}, "readings of one event agree", []string{"CPU_CLK_UNHALTED.THREAD"}},
		{"readings that took turns", "skylake", 1, []readout{{"cycles", 1, part(3e9, 0.5)}, {"instructions", 1, part(3e9, 0.5)}, {"cycles", 2, part(3.6e9, 0.5)}}, "", nil},
		{"readings that took turns, too far apart", "skylake", 100, []readout{{"cycles", 1, part(3e9, 0.5)}, {"instructions", 1, part(3e9, 0.5)}, {"cycles", 2, part(9e9, 0.5)}}, "readings of one event agree", []string{"CPU_CLK_UNHALTED.THREAD"}},
		{"one event of places without names", "skylake", 1, []readout{{"instructions", 0, all(3e9)}, {"instructions", 0, all(5e9)}}, "", nil},
	} {
		cat, err := model.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}}
		for _, r := range tt.readings {
			l.Columns = append(l.Columns, counts.Column{Event: r.event, Group: r.group})
		}
		table := counts.NewTable(l)
		table.Duration = tt.seconds
		for col, r := range tt.readings {
			*table.Cell(0, col) = r.cell
		}
		a := bindBest(t, cat, tt.name, tt.cpu, table).audit(table)
		i := slices.IndexFunc(a.Checks, func(c account.Check) bool { return c.Contradicts() && c.Name == tt.want })
		switch {
		case tt.want == "" && a.Contradicted():
			t.Errorf("%s: contradicted, by %v", tt.name, a.Suspects())
		case tt.want != "" && i < 0:
			t.Errorf("%s: %q does not fail: %v", tt.name, tt.want, a.Suspects())
		case tt.want != "" && (!slices.Equal(a.Checks[i].Events, tt.events) || a.Checks[i].Side != account.Measurement || a.Checks[i].Text == ""):
			t.Errorf("%s: %+v", tt.name, a.Checks[i])
		}
	}
}

// TestSlackOfTurns checks that multiplexed counts have more room the fewer time slices they
// had. Those of one group have none.
func TestSlackOfTurns(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		seconds, share, over float64
		groups               [2]int
		want                 bool // contradicted
	}{
		{1, 1, 1.1, [2]int{0, 0}, true},        // all of the time
		{1, 0.5, 1.1, [2]int{1, 1}, true},      // together
		{1, 0.5, 1.1, [2]int{1, 2}, false},     // 125 time slices
		{1, 0.5, 3, [2]int{1, 2}, true},        // too far for that
		{1000, 0.5, 1.1, [2]int{1, 2}, true},   // many time slices
		{1000, 0.5, 1.02, [2]int{1, 2}, false}, // within the tolerance
		{0.02, 0.5, 3, [2]int{1, 2}, false},    // two time slices or three
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")},
			Columns: []counts.Column{{Event: "uops_issued.any", Group: tt.groups[0]}, {Event: "uops_retired.retire_slots", Group: tt.groups[1]}}}
		table := counts.NewTable(l)
		table.Duration = tt.seconds
		for col, v := range []float64{1e9, tt.over * 1e9} {
			ns := tt.seconds * 1e9
			*table.Cell(0, col) = counts.Cell{Value: v, Enabled: ns, Running: tt.share * ns, State: counts.Counted}
		}
		if a := bindBest(t, cat, "turns", "skylake", table).audit(table); a.Contradicted() != tt.want {
			t.Errorf("%+v: contradicted %v, by %v", tt, a.Contradicted(), a.Suspects())
		}
	}
}

// TestCountsInTime: how much fits into the time depends on how many logical
// processors counted.
func TestCountsInTime(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cpus   int
		cycles float64
		want   bool // contradicted
	}{{1, 6e9, false}, {1, 7e9, true}, {2, 7e9, false}, {0, 7e9, false}, {0, 4097 * 6.5e9, true}} {
		scope := counts.RunScope("test")
		scope.CPUs = tt.cpus
		l := &counts.Layout{Scopes: []counts.Scope{scope}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}}}
		table := counts.NewTable(l)
		table.Duration = 1
		*table.Cell(0, 0), *table.Cell(0, 1) = all(tt.cycles), all(tt.cycles)
		if a := bindBest(t, cat, "time", "skylake", table).audit(table); a.Contradicted() != tt.want {
			t.Errorf("%g cycles in a second of %d processors: contradicted %v", tt.cycles, tt.cpus, a.Contradicted())
		}
	}
}
