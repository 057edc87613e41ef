package account_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// TestCourse checks what is said of recordings in intervals: who is behind a
// counter that stands still, one that stops, rates that rise, and an interval that
// stands out.
func TestCourse(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const intervals = 30
	noise := rand.New(rand.NewPCG(7, 8))
	for _, tt := range []struct {
		name  string
		of    func(i int) float64 // instructions in an interval
		check string
		side  account.Side
		wrong bool // the recording contradicts itself
	}{
		{"steady", func(int) float64 { return 2e8 * (1 + 0.05*noise.Float64()) }, "", account.Machine, false},
		{"still", func(i int) float64 { return 2e8 }, "counts change from interval to interval", account.Measurement, true},
		{"stopped", func(i int) float64 {
			if i > 20 {
				return 0
			}
			return 2e8 * (1 + 0.05*noise.Float64())
		}, "counters count to the end", account.Measurement, false},
		{"rising", func(i int) float64 { return 1e8 * (1 + float64(i)/30 + 0.02*noise.Float64()) }, "the rates stay the same over the recording", account.Machine, false},
		{"one peak", func(i int) float64 {
			if i == 12 {
				return 2e9
			}
			return 2e8 * (1 + 0.05*noise.Float64())
		}, "no interval stands out", account.Machine, false},
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}}}
		total := counts.NewTotal(0)
		for i := range intervals {
			one := counts.NewTable(l)
			one.Start, one.Duration, one.Interval = float64(i), 1, true
			*one.Cell(0, 0) = all(4e8 * (1 + 0.05*noise.Float64()))
			*one.Cell(0, 1) = all(tt.of(i))
			if err := total.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		table := total.Table()
		a := bindBest(t, cat, tt.name, "skylake", table).audit(table)
		if a.Contradicted() != tt.wrong {
			t.Errorf("%s: contradicted %v, by %v", tt.name, a.Contradicted(), a.Suspects())
		}
		failing := 0
		for i := range a.Checks {
			c := &a.Checks[i]
			if c.State != account.Fails {
				continue
			}
			failing++
			if c.Name != tt.check || c.Side != tt.side || !slices.ContainsFunc(c.Events, func(e string) bool { return e != "" && e[0] == 'I' }) {
				t.Errorf("%s: %s fails, by the %v: %v", tt.name, c.Name, c.Side, c.Events)
			}
		}
		if (failing > 0) != (tt.check != "") {
			t.Errorf("%s: %d checks fail", tt.name, failing)
		}
	}
}

// TestCourseLimits checks the least amounts that findings about intervals and repeats need.
func TestCourseLimits(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const trend = "the rates stay the same over the recording"
	noise := rand.New(rand.NewPCG(9, 9))
	noisy := func(v float64) float64 { return v * (1 + 0.02*noise.Float64()) }
	for _, tt := range []struct {
		name  string
		of    func(i int) (cycles, misses float64) // in an interval
		check string                               // that fails; "" for none
	}{
		{"the same small count", func(int) (float64, float64) { return noisy(4e8), 900 }, ""},
		{"the same count four times", func(i int) (float64, float64) {
			if i > 10 && i < 15 {
				return noisy(4e8), 1e6
			}
			return noisy(4e8), noisy(1e6)
		}, ""},
		{"the same count five times", func(i int) (float64, float64) {
			if i > 10 && i < 16 {
				return noisy(4e8), 1e6
			}
			return noisy(4e8), noisy(1e6)
		}, "counts change from interval to interval"},
		{"what is rare stops", func(i int) (float64, float64) {
			if i > 20 {
				return noisy(4e8), 0
			}
			return noisy(4e8), noisy(900)
		}, ""},
		{"all stop", func(i int) (float64, float64) {
			if i > 20 {
				return 0, 0
			}
			return noisy(4e8), noisy(1e6)
		}, ""}, // the program ended: no counter stopped by itself
		{"a rise by a twentieth", func(i int) (float64, float64) { return noisy(4e8), 1e6 * (1 + 0.05*float64(i)/29) }, ""},
		{"a rise by a fifth", func(i int) (float64, float64) { return noisy(4e8), 1e6 * (1 + 0.2*float64(i)/29) }, trend},
		{"a rise that may be chance", func(i int) (float64, float64) { return noisy(4e8), 1e6 * (1 + 0.1*float64(i)/29 + 0.9*noise.Float64()) }, ""},
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "branch-misses"}}}
		total := counts.NewTotal(0)
		for i := range 30 {
			one := counts.NewTable(l)
			one.Start, one.Duration, one.Interval = float64(i), 1, true
			cycles, misses := tt.of(i)
			*one.Cell(0, 0), *one.Cell(0, 1) = all(cycles), all(misses)
			if err := total.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		checkFailing(t, cat, tt.name, total.Table(), tt.check)
	}
	for _, tt := range []struct {
		sd    float64 // of the mean of repeats, relative to it
		check string
	}{{0.04, ""}, {0.06, "repeats agree"}} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "page-faults"}}}
		table := counts.NewTable(l)
		table.Duration = 1
		for col := range l.Columns {
			*table.Cell(0, col) = all(4e8)
		}
		c := table.Cell(0, 0)
		c.Repeats, c.Variance = 5, tt.sd*tt.sd*c.Value*c.Value
		c = table.Cell(0, 1) // of the kernel's, which differ as the program does
		c.Repeats, c.Variance = 5, c.Value*c.Value
		checkFailing(t, cat, "repeats", table, tt.check)
	}
}

// checkFailing checks which check fails, and that it is the only one.
func checkFailing(t *testing.T, cat *model.Catalogue, name string, table *counts.Table, want string) {
	t.Helper()
	var failing []string
	a := bindBest(t, cat, name, "skylake", table).audit(table)
	for i := range a.Checks {
		if a.Checks[i].State == account.Fails && !slices.Contains(failing, a.Checks[i].Name) {
			failing = append(failing, a.Checks[i].Name)
		}
	}
	if want == "" && len(failing) > 0 || want != "" && !slices.Equal(failing, []string{want}) {
		t.Errorf("%s: %q fail, want %q", name, failing, want)
	}
}

// TestCourseOfRuns: runs that count the same each time are no counter that stands still.
// Rates that rise from run to run are noted.
func TestCourseOfRuns(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	noise := rand.New(rand.NewPCG(3, 3))
	for _, tt := range []struct {
		name  string
		of    func(i int) float64
		check string
	}{
		{"the same", func(int) float64 { return 2e8 }, ""},
		{"rising", func(i int) float64 { return 2e8 * (1 + 0.02*float64(i) + 0.001*noise.Float64()) }, "later runs count at the rates of earlier ones"},
		{"one peak", func(i int) float64 {
			if i == 7 {
				return 9e8
			}
			return 2e8 * (1 + 0.01*noise.Float64())
		}, "no run stands out"},
	} {
		l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}, Columns: []counts.Column{{Event: "cycles"}, {Event: "instructions"}}}
		var runs counts.Runs
		mean := counts.NewTable(l)
		mean.Duration = 1
		for i := range 20 {
			one := counts.NewTable(l)
			one.Duration = 1
			*one.Cell(0, 0), *one.Cell(0, 1) = all(4e8), all(tt.of(i))
			runs.Add(one)
		}
		*mean.Cell(0, 0), *mean.Cell(0, 1) = all(4e8), all(2e8)
		runs.Put(mean)
		checkFailing(t, cat, tt.name, mean, tt.check)
	}
}
