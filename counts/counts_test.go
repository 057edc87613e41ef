package counts

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestCoverageAndEstimate(t *testing.T) {
	for _, tt := range []struct {
		name               string
		cell               Cell
		coverage, estimate float64
	}{
		{"absent", Cell{}, math.NaN(), math.NaN()},
		{"not supported", Cell{State: NotSupported}, math.NaN(), math.NaN()},
		{"not counted", Cell{State: NotCounted, Enabled: 10, Lost: 10}, 0, math.NaN()},
		{"counted", Cell{State: Counted, Value: 7, Enabled: 10, Running: 10}, 1, 7},
		{"in part", Cell{State: Counted, Value: 7, Enabled: 10, Running: 4}, 0.4, 7},
		{"unknown times", Cell{State: Counted, Value: 7}, math.NaN(), 7},
		{"lost in part", Cell{State: Counted, Value: 6, Enabled: 30, Running: 10, Lost: 10}, 1.0 / 3, 9},
		{"zero", Cell{State: Counted, Enabled: 10, Running: 10}, 1, 0},
	} {
		if got := tt.cell.Coverage(); got != tt.coverage && !(math.IsNaN(got) && math.IsNaN(tt.coverage)) {
			t.Errorf("%s: coverage %v, want %v", tt.name, got, tt.coverage)
		}
		if got := tt.cell.Estimate(); got != tt.estimate && !(math.IsNaN(got) && math.IsNaN(tt.estimate)) {
			t.Errorf("%s: estimate %v, want %v", tt.name, got, tt.estimate)
		}
		if got, want := tt.cell.Ok(), tt.cell.State == Counted; got != want {
			t.Errorf("%s: ok %v", tt.name, got)
		}
	}
}

func TestCellAdd(t *testing.T) {
	counted := Cell{State: Counted, Value: 6, Enabled: 10, Running: 5, Variance: 4, Samples: 2, Repeats: 3}
	notCounted := Cell{State: NotCounted, Enabled: 8, Lost: 8}
	notSupported := Cell{State: NotSupported}
	for _, tt := range []struct {
		name       string
		a, b, want Cell
	}{
		{"nothing to nothing", Cell{}, Cell{}, Cell{}},
		{"a count to nothing", Cell{}, counted, counted},
		{"nothing to a count", counted, Cell{}, counted},
		{"two counts", counted, counted, Cell{State: Counted, Value: 12, Enabled: 20, Running: 10, Variance: 8, Samples: 4, Repeats: 3}},
		{"a part not counted", counted, notCounted, Cell{State: Counted, Value: 6, Enabled: 18, Running: 5, Lost: 8, Variance: 4, Samples: 2, Repeats: 3}},
		{"a part not supported", counted, notSupported, counted},
		{"never counted", notCounted, notCounted, Cell{State: NotCounted, Enabled: 16, Lost: 16}},
		{"refused on some", notSupported, notCounted, notCounted},
		{"refused on all", notSupported, notSupported, notSupported},
		{"not counted to nothing, its loss not filled in", Cell{}, Cell{State: NotCounted, Enabled: 8}, notCounted},
	} {
		for order, pair := range map[string][2]Cell{"a+b": {tt.a, tt.b}, "b+a": {tt.b, tt.a}} {
			got := pair[0]
			got.Add(&pair[1])
			if got != tt.want {
				t.Errorf("%s, %s:\ngot  %+v\nwant %+v", tt.name, order, got, tt.want)
			}
		}
	}
}

// drawCell draws a cell as sources write them. Its numbers are whole, so that
// float64 adds them exactly in any order.
func drawCell(t *rapid.T, name string) Cell {
	number := func(what string) float64 { return float64(rapid.IntRange(0, 1<<40).Draw(t, name+" "+what)) }
	c := Cell{State: State(rapid.IntRange(0, 3).Draw(t, name+" state"))}
	switch c.State {
	case Counted:
		c.Value, c.Variance = number("value"), number("variance")
		c.Samples, c.Repeats = int64(number("samples")), int32(rapid.IntRange(0, 9).Draw(t, name+" repeats"))
		c.Lost, c.Running = number("lost"), number("running")
		c.Enabled = c.Running + c.Lost + number("idle")
	case NotCounted:
		c.Enabled = number("enabled")
		if rapid.Bool().Draw(t, name+" filled in") {
			c.Lost = c.Enabled
		}
	}
	return c
}

func plus(cells ...Cell) (sum Cell) {
	for i := range cells {
		sum.Add(&cells[i])
	}
	return sum
}

// The sum of cells does not depend on their order or grouping.
func TestAddIsCommutativeAndAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawCell(t, "a"), drawCell(t, "b"), drawCell(t, "c")
		if x, y := plus(a, b), plus(b, a); x != y {
			t.Fatalf("a+b = %+v, b+a = %+v", x, y)
		}
		x, y := plus(plus(a, b), c), plus(a, plus(b, c))
		if x != y {
			t.Fatalf("(a+b)+c = %+v, a+(b+c) = %+v", x, y)
		}
		if got := plus(a, Cell{}); got != plus(a) {
			t.Fatalf("a+0 = %+v, want %+v", got, plus(a))
		}
		if x.Running > x.Enabled || x.Lost > x.Enabled {
			t.Fatalf("the parts %+v exceed the whole", x)
		}
	})
}

// drawTable draws an interval of some logical processors and events, without absent
// cells: how gaps add depends on the intervals before (TestTotalGap).
func drawTable(t *rapid.T, l *Layout, name string) *Table {
	table := NewTable(l)
	table.Interval = true
	for s := range l.Scopes {
		for c := range l.Columns {
			cell := drawCell(t, name)
			if cell.State == Absent {
				cell = Cell{State: NotSupported}
			}
			*table.Cell(s, c) = cell
		}
	}
	return table
}

// Intervals can be summed before scopes or after them. Both give the sums of the cells.
func TestSumsOfScopesAndIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Layout{Columns: []Column{{Event: "a"}, {Event: "b", Unit: "ns"}}}
		for cpu := range rapid.IntRange(1, 4).Draw(t, "cpus") {
			s := RunScope("")
			s.Kind, s.CPU, s.Socket, s.CPUs = CPU, cpu, cpu/2, 1
			l.Scopes = append(l.Scopes, s)
		}
		n := rapid.IntRange(1, 3).Draw(t, "intervals")
		run, sockets := NewTotal(0), NewTotal(By(0).With(Socket))
		over := NewTable(l)
		want := make([]Cell, len(l.Columns))
		for i := range n {
			table := drawTable(t, l, "cell")
			table.Start, table.Duration = float64(i), 1
			if err := errors.Join(run.Add(table), sockets.Add(table), over.Add(table)); err != nil {
				t.Fatal(err)
			}
			for s := range l.Scopes {
				for c := range want {
					want[c].Add(table.Cell(s, c))
				}
			}
		}
		bySocket := NewTotal(0)
		overSum := NewTotal(0)
		if err := errors.Join(bySocket.Add(sockets.Table()), overSum.Add(over)); err != nil {
			t.Fatal(err)
		}
		for c := range want {
			for name, total := range map[string]*Total{"at once": run, "sockets first": bySocket, "intervals first": overSum} {
				if got := *total.Table().Cell(0, c); got != want[c] {
					t.Fatalf("%s: %+v, want %+v", name, got, want[c])
				}
			}
		}
		if over.Duration != float64(n) {
			t.Fatalf("%v s, want %d", over.Duration, n)
		}
	})
}

func TestTable(t *testing.T) {
	l := &Layout{Columns: []Column{{Event: "a"}, {Event: "b"}}, Scopes: []Scope{RunScope("x"), RunScope("y")}}
	table := NewTable(l)
	if !math.IsNaN(table.Start) || !math.IsNaN(table.Duration) {
		t.Errorf("a new table knows its time: %v, %v", table.Start, table.Duration)
	}
	*table.Cell(1, 0) = Cell{State: Counted, Value: 5}
	table.Notes = []Note{Notef("note")}
	if row := table.Row(1); len(row) != 2 || row[0].Value != 5 || row[1].State != Absent {
		t.Errorf("row 1: %+v", row)
	}
	clone := table.Clone()
	table.Notes[0] = Notef("another")
	table.Reset(&Layout{Columns: l.Columns[:1], Scopes: l.Scopes[:1]})
	if c := table.Cell(0, 0); c.State != Absent {
		t.Errorf("after a reset: %+v", *c)
	}
	if got := clone.Cell(1, 0).Value; got != 5 || clone.Notes[0] != Notef("note") || clone.Layout != l {
		t.Errorf("the clone changed: %v, %q", got, clone.Notes)
	}
	if err := clone.Add(table); !errors.Is(err, ErrLayout) {
		t.Errorf("adding a table of another layout: %v", err)
	}
	same := &Layout{Columns: []Column{{Event: "a"}, {Event: "b"}}, Scopes: []Scope{RunScope("x"), RunScope("y")}}
	other := NewTable(same)
	*other.Cell(1, 0) = Cell{State: Counted, Value: 6}
	if err := clone.Add(other); err != nil || clone.Cell(1, 0).Value != 11 {
		t.Errorf("adding a table of an equal layout: %v, %v", err, clone.Cell(1, 0).Value)
	}
	if !math.IsNaN(clone.Duration) {
		t.Errorf("the sum of unknown times is %v", clone.Duration)
	}
}

func TestNames(t *testing.T) {
	for kind, want := range map[Kind]string{Run: "run", CPU: "cpu", Cgroup: "cgroup", Instruction: "instruction", 99: "Kind(99)"} {
		if got := kind.String(); got != want {
			t.Errorf("Kind %d: %q, want %q", kind, got, want)
		}
	}
	for state, want := range map[State]string{Absent: "absent", Counted: "counted", NotCounted: "not counted", NotSupported: "not supported", 9: "State(9)"} {
		if got := state.String(); got != want {
			t.Errorf("State %d: %q, want %q", state, got, want)
		}
	}
}
