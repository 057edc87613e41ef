package counts

import (
	"maps"
	"math"
	"testing"
)

// interval makes a table of two CPUs and two events with different values.
func interval(l *Layout, start float64, base float64) *Table {
	t := NewTable(l)
	t.Start, t.Duration, t.Interval = start, 1, true
	for i := range l.Scopes {
		for j := range l.Columns {
			*t.Cell(i, j) = Cell{Value: base + 10*float64(i) + float64(j), Enabled: 100, Running: 50, State: Counted}
		}
	}
	return t
}

func perCPU() *Layout {
	l := &Layout{Columns: []Column{{Event: "a"}, {Event: "b"}}}
	for cpu := range 2 {
		s := RunScope("")
		s.Kind, s.CPU, s.Label = CPU, cpu, "CPU"
		l.Scopes = append(l.Scopes, s)
	}
	return l
}

func TestTotalRun(t *testing.T) {
	l := perCPU()
	total := NewTotal(0)
	for i := range 3 {
		if err := total.Add(interval(l, float64(i), 100)); err != nil {
			t.Fatal(err)
		}
	}
	got := total.Table()
	if len(got.Scopes) != 1 || got.Scopes[0].CPUs != 2 || got.Duration != 3 || got.Interval {
		t.Fatalf("%+v, duration %v", got.Scopes, got.Duration)
	}
	// 3 intervals of (100 + 110) and (101 + 111).
	if a, b := got.Cell(0, 0).Value, got.Cell(0, 1).Value; a != 630 || b != 636 {
		t.Errorf("a = %v, b = %v", a, b)
	}
	if c := got.Cell(0, 0).Coverage(); c != 0.5 {
		t.Errorf("coverage = %v", c)
	}
}

func TestTotalByIntervalKeepsLayout(t *testing.T) {
	l := perCPU()
	total := NewTotal(By(0).With(Interval).With(CPU))
	var layout *Layout
	for i := range 3 {
		if err := total.Add(interval(l, float64(i), float64(i))); err != nil {
			t.Fatal(err)
		}
		got := total.Table()
		if layout != nil && got.Layout != layout {
			t.Fatal("the layout changed between equal intervals")
		}
		layout = got.Layout
		if len(got.Scopes) != 2 || got.Cell(1, 0).Value != float64(i)+10 || got.Start != float64(i) {
			t.Fatalf("interval %d: %v scopes, %v", i, len(got.Scopes), got.Cell(1, 0).Value)
		}
		total.Reset()
		if total.Table() != nil {
			t.Fatal("something is left after a reset")
		}
	}
	table := interval(l, 9, 1)
	if n := testing.AllocsPerRun(100, func() {
		_ = total.Add(table)
		total.Reset()
	}); n != 0 {
		t.Errorf("%v allocations for an interval", n)
	}
}

func TestTotalBegins(t *testing.T) {
	l := perCPU()
	total := NewTotal(0)
	first := interval(l, 5, 0)
	if total.Begins(first) {
		t.Error("the first table begins another recording")
	}
	_ = total.Add(first)
	if total.Begins(interval(l, 6, 0)) {
		t.Error("the next interval begins another recording")
	}
	if !total.Begins(interval(l, 0, 0)) {
		t.Error("time that goes back does not begin another recording")
	}
	whole := NewTable(l)
	if !total.Begins(whole) {
		t.Error("a table that is no interval does not begin another recording")
	}
	for _, duration := range []float64{math.NaN(), 1} {
		whole.Start, whole.Duration = 0, duration
		total.Reset()
		_ = total.Add(whole)
		if !total.Begins(interval(l, 1, 0)) {
			t.Errorf("an interval continues a whole run of %v s", duration)
		}
	}
}

// TestTotalLost checks an interval that never counted an event: the count is
// extrapolated over it, and the coverage shows it.
func TestTotalLost(t *testing.T) {
	l := &Layout{Columns: []Column{{Event: "a"}}, Scopes: []Scope{RunScope("")}}
	total := NewTotal(0)
	for i, c := range []Cell{
		{Value: 100, Enabled: 10, Running: 10, State: Counted},
		{Enabled: 10, State: NotCounted},
	} {
		table := NewTable(l)
		table.Start, table.Duration, table.Interval = float64(i), 1, true
		*table.Cell(0, 0) = c
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	c := total.Table().Cell(0, 0)
	if c.Estimate() != 200 || c.Coverage() != 0.5 || c.Value != 100 {
		t.Errorf("estimate %v, coverage %v, value %v; want 200, 0.5, 100", c.Estimate(), c.Coverage(), c.Value)
	}
}

func TestTotalGrows(t *testing.T) {
	total := NewTotal(0)
	a := &Layout{Columns: []Column{{Event: "a"}}, Scopes: []Scope{RunScope("")}}
	ab := &Layout{Columns: []Column{{Event: "b"}, {Event: "a"}, {Event: "a"}}, Scopes: []Scope{RunScope("")}}
	_ = total.Add(interval(a, 0, 1))
	_ = total.Add(interval(ab, 1, 10))
	got := total.Table()
	values := map[string][]float64{}
	for i, c := range got.Columns {
		values[c.Event] = append(values[c.Event], got.Cell(0, i).Value)
	}
	if v := values["a"]; len(v) != 2 || v[0] != 12 || v[1] != 12 {
		t.Errorf("a = %v, want 1+11 and 12", v)
	}
	if v := values["b"]; len(v) != 1 || v[0] != 10 {
		t.Errorf("b = %v", v)
	}
	if len(got.Notes) != 1 {
		t.Errorf("notes: %q", got.Notes)
	}
}

func TestByCannotTell(t *testing.T) {
	total := NewTotal(By(0).With(CPU))
	err := total.Add(interval(&Layout{Columns: []Column{{Event: "a"}}, Scopes: []Scope{RunScope("")}}, 0, 0))
	if want := "the counts are by run: they cannot be split by cpu"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCellUnknown(t *testing.T) {
	var c Cell
	if !math.IsNaN(c.Estimate()) || !math.IsNaN(c.Coverage()) {
		t.Error("an absent cell has a value")
	}
	c.Add(&Cell{State: NotSupported, Enabled: 5})
	if c.State != NotSupported || !math.IsNaN(c.Estimate()) {
		t.Errorf("%+v", c)
	}
}

// TestTotalGap checks that a cell that is missing from an interval is not taken
// for 0.
func TestTotalGap(t *testing.T) {
	l := &Layout{Columns: []Column{{Event: "a"}, {Event: "b"}}, Scopes: []Scope{RunScope("")}}
	total := NewTotal(0)
	whole := interval(l, 0, 100)
	cut := interval(l, 1, 100)
	*cut.Cell(0, 1) = Cell{}
	for _, table := range []*Table{whole, cut} {
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	a, b := total.Table().Cell(0, 0), total.Table().Cell(0, 1)
	if a.Estimate() != 200 || b.Estimate() != 202 || b.Coverage() != 0.25 {
		t.Errorf("a %v, b %v with coverage %v; want 200, 202, 0.25", a.Estimate(), b.Estimate(), b.Coverage())
	}
}

// TestTotalByComm sums threads by their names: of labels, whose last number is the
// thread's.
func TestTotalByComm(t *testing.T) {
	l := &Layout{Columns: []Column{{Event: "cycles"}}}
	for i, label := range []string{"go-build-7", "go-build-8", "7-9", "10"} {
		s := RunScope(label)
		s.Kind, s.TID = Thread, 7+i
		l.Scopes = append(l.Scopes, s)
	}
	table := NewTable(l)
	for i := range l.Scopes {
		*table.Cell(i, 0) = Cell{State: Counted, Value: float64(i + 1)}
	}
	total := NewTotal(By(0).With(Comm))
	if err := total.Add(table); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for i, s := range total.Table().Scopes {
		got[s.Comm] = total.Table().Cell(i, 0).Value
	}
	if want := map[string]float64{"go-build": 3, "7": 3, "10": 4}; !maps.Equal(got, want) {
		t.Errorf("by comm %v, want %v", got, want)
	}
	cpu := RunScope("CPU0")
	cpu.Kind, cpu.CPU = CPU, 0
	if err := NewTotal(By(0).With(Comm)).Add(NewTable(&Layout{Columns: l.Columns, Scopes: []Scope{cpu}})); err == nil {
		t.Error("counts of a processor were split by comm")
	}
}
