package export_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
)

// sampledTable is a table of places, with counts of samples of a thousand events each.
func sampledTable(events []string, places map[string][]float64) *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, e := range events {
		l.Columns = append(l.Columns, counts.Column{Event: e})
	}
	var names []string
	for name := range places {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s := counts.RunScope(name)
		s.Kind, s.Code = counts.Function, &counts.Code{Function: name}
		l.Scopes = append(l.Scopes, s)
	}
	t := counts.NewTable(l)
	for row, name := range names {
		for col, n := range places[name] {
			*t.Cell(1+row, col) = cell(n)
			whole := t.Cell(0, col)
			*whole = cell(whole.Value/1000 + n)
			whole.Variance = 0
		}
	}
	return t
}

func cell(samples float64) counts.Cell {
	return counts.Cell{State: counts.Counted, Value: 1000 * samples, Variance: 1e6 * max(samples, 1), Samples: int64(samples)}
}

func cells(samples ...float64) []counts.Cell {
	var list []counts.Cell
	for _, n := range samples {
		list = append(list, cell(n))
	}
	return list
}

var topdown = []string{"CPU_CLK_UNHALTED.THREAD", "IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS", "INT_MISC.RECOVERY_CYCLES"}

func amountsOf(t *testing.T, cpu, model string, table *counts.Table, names ...string) *export.Amounts {
	t.Helper()
	method, err := account.Load(cpu, model, account.Options{Params: map[string]float64{"#smt_on": 0}})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []int
	for i := range method.Model.Nodes {
		if slices.Contains(names, method.Model.Nodes[i].Name) {
			nodes = append(nodes, i)
		}
	}
	known := export.Known(method, table, nodes)
	if len(known) != len(names) {
		t.Fatalf("%d of %d nodes are known", len(known), len(names))
	}
	return export.NewAmounts(method, table, known)
}

// TestAmounts: a stack has of its own slots the part that its place has.
func TestAmounts(t *testing.T) {
	table := sampledTable(topdown, map[string][]float64{"run": {1000, 400, 3000, 3000, 0}, "wait": {1000, 200, 400, 400, 0}})
	a := amountsOf(t, "skylakex", "tma", table, "Retiring", "Backend_Bound")
	if types := a.Types(); len(types) != 2 || types[0].Unit != "slots" || types[0].Path == "" {
		t.Errorf("types %+v", types)
	}
	for _, tt := range []struct {
		place int
		cells []counts.Cell
		want  []float64 // Backend_Bound, Retiring
	}{
		{1, table.Row(1), []float64{600_000, 3_000_000}},
		{2, table.Row(2), []float64{3_400_000, 400_000}},
		// Two stacks of wait, however the other events are spread over them.
		{2, cells(250, 0, 400, 0, 0), []float64{850_000, 100_000}},
		{2, cells(750, 200, 0, 400, 0), []float64{2_550_000, 300_000}},
		{2, cells(0, 7, 7, 7, 7), []float64{0, 0}},
	} {
		got := a.Of(tt.place, tt.cells, nil)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.want))
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 1e-6) {
				t.Errorf("place %d, %v cycles: %v, want %v", tt.place, tt.cells[0].Value, got, want)
				break
			}
		}
	}
	if b := a.Bottleneck(2); b != "Backend_Bound" {
		t.Errorf("wait's bottleneck is %q", b)
	}
	if n := a.Notes(); len(n) != 0 {
		t.Errorf("notes %q", n)
	}
}

// TestAmountsThatAreUnknown: a place without cycles has no shares, and a node that rests
// on what was not sampled is not known.
func TestAmountsThatAreUnknown(t *testing.T) {
	table := sampledTable(topdown, map[string][]float64{"few": {5, 1, 2, 1, 0}, "wait": {15, 3, 6, 6, 0}})
	a := amountsOf(t, "skylakex", "tma", table, "Retiring")
	found := false
	for _, n := range a.Notes() {
		found = found || strings.Contains(n, "uncertain at places with") && strings.HasPrefix(n, "Retiring: ")
	}
	if !found {
		t.Errorf("notes %q", a.Notes())
	}
	// Without cycles there are no slots to have a part of.
	idle := sampledTable(topdown, map[string][]float64{"few": {0, 0, 0, 0, 0}, "wait": {1500, 300, 600, 600, 0}})
	for place, want := range map[int]float64{1: 0, 2: 600_000} {
		a := amountsOf(t, "skylakex", "tma", idle, "Retiring")
		if got := a.Of(place, idle.Row(place), nil); len(got) != 1 || !(math.Abs(got[0]-want) <= 1e-6) {
			t.Errorf("place %d: %v, want %v", place, got, want)
		}
	}
	none := sampledTable(topdown[1:], map[string][]float64{"wait": {3, 6, 6, 0}})
	method, err := account.Load("skylakex", "tma", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if known := export.Known(method, none, []int{0, 1, 2, 3}); len(known) != 0 {
		t.Errorf("%d nodes are known without cycles", len(known))
	}
}

// TestAmountsOfCycles: nodes that are shares of cycles, and cycles per instruction.
func TestAmountsOfCycles(t *testing.T) {
	cpi := sampledTable([]string{"PM_RUN_CYC", "PM_RUN_INST_CMPL", "PM_CMPLU_STALL"}, map[string][]float64{"f": {1000, 500, 800}})
	a := amountsOf(t, "power7", "power7-cpi", cpi, "STALL_CPI")
	if got := a.Of(1, cells(100, 1, 1), nil); !(math.Abs(got[0]-80_000) <= 1e-6) || a.Types()[0].Unit != "cycles" {
		t.Errorf("STALL_CPI of 100,000 cycles: %v %s, want 80000 cycles", got, a.Types()[0].Unit)
	}
	// In cycles without retired instructions it is not known what each instruction took.
	stuck := sampledTable([]string{"PM_RUN_CYC", "PM_RUN_INST_CMPL", "PM_CMPLU_STALL"}, map[string][]float64{"f": {600, 500, 300}, "g": {400, 0, 400}})
	if got, want := amountsOf(t, "power7", "power7-cpi", stuck, "STALL_CPI").Notes(), "not known at places with 40.0 % of the whole"; len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("notes %q, want %q", got, want)
	}
	of := sampledTable([]string{"cycles", "stalled-cycles-backend", "stalled-cycles-frontend", "instructions"}, map[string][]float64{"f": {1000, 300, 100, 500}})
	method, err := account.Load("generic", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for i := range method.Model.Nodes {
		all = append(all, i)
	}
	known := export.Known(method, of, all)
	if len(known) == 0 {
		t.Fatal("nothing of the generic method is known")
	}
	g := export.NewAmounts(method, of, known)
	for i, typ := range g.Types() {
		got := g.Of(1, cells(100, 0, 0, 0), nil)[i]
		if typ.Unit != "cycles" || !(got >= 0 && got <= 100_000) {
			t.Errorf("%s: %v %s of 100,000 cycles", typ.Name, got, typ.Unit)
		}
	}
}

func TestEventValue(t *testing.T) {
	for _, tt := range []struct {
		column counts.Column
		cell   counts.Cell
		typ    export.Type
		want   float64
	}{
		{counts.Column{Event: "cycles"}, cell(2), export.Type{Name: "cycles", Unit: "count"}, 2000},
		{counts.Column{Event: "cpu-clock", Unit: "msec"}, counts.Cell{State: counts.Counted, Value: 0.25}, export.Type{Name: "cpu-clock", Unit: "nanoseconds"}, 250_000},
		{counts.Column{Event: "cycles"}, counts.Cell{}, export.Type{Name: "cycles", Unit: "count"}, math.NaN()},
	} {
		typ, got := export.EventType(&tt.column), export.EventValue(&tt.column, &tt.cell)
		if typ != tt.typ || got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%+v: %v %+v, want %v %+v", tt.column, got, typ, tt.want, tt.typ)
		}
	}
}
