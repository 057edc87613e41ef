package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// repeatedRun is a run whose counts vary with each other: slots that were retired
// are a part of the slots that there were, which vary by a tenth.
func repeatedRun(rng *rand.Rand) *counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	cycles := 1e9 * (1 + 0.1*rng.NormFloat64())
	values := []float64{cycles, cycles * 0.8, cycles * 1.2, cycles * (1 + 0.02*rng.NormFloat64()), cycles * 0.01}
	for _, event := range []string{"cycles", "idq_uops_not_delivered.core", "uops_issued.any", "uops_retired.retire_slots", "int_misc.recovery_cycles"} {
		l.Columns = append(l.Columns, counts.Column{Event: event})
	}
	t := counts.NewTable(l)
	t.Start, t.Duration = 0, 1
	for i, v := range values {
		*t.Cell(0, i) = counts.Cell{Value: v, Enabled: 1e9, Running: 1e9, State: counts.Counted}
	}
	return t
}

// TestAggregate checks that runs are taken together by their sums. In 95 % of the trials, the
// intervals hold the value of endless runs: Retiring is the ratio of two counts that vary by a
// tenth together, and by 2 % apart.
func TestAggregate(t *testing.T) {
	testlong.Alone(t)
	m, err := account.Load("skylakex", "tma", account.Options{Params: map[string]float64{"#smt_on": 0}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const runs = 6
	trials, least, most := testlong.Size(60, 400), testlong.Size(52, 362), testlong.Size(60, 396)
	held, width := 0, 0.0
	for range trials {
		var list []*counts.Table
		retired, cycles := 0.0, 0.0
		for range runs {
			r := repeatedRun(rng)
			list = append(list, r)
			cycles += r.Cell(0, 0).Value
			retired += r.Cell(0, 3).Value
		}
		a, err := m.Aggregate(list)
		if err != nil {
			t.Fatal(err)
		}
		i, _ := a.Node("Retiring")
		v := a.Nodes[i]
		if want := retired / (4 * cycles); math.Abs(v.Value-want) > 1e-12 || a.Runs != runs || a.Duration != 1 {
			t.Fatalf("Retiring = %g of %d runs of %g s, want %g of %d runs of 1 s", v.Value, a.Runs, a.Duration, want, runs)
		}
		if math.Abs(v.Value-0.25) <= v.Error {
			held++
		}
		width += v.Error / float64(trials)
	}
	// 380 of 400 are expected, and by chance 13 more or fewer in 19 of 20 cases. Of 60
	// they are 57, and fewer than 52 in 1 of 100 cases.
	if held < least || held > most {
		t.Errorf("the interval held the truth in %d of %d trials", held, trials)
	}
	// With the counts' errors taken apart it would be more than five times as wide.
	if want := 0.25 * 0.02 / math.Sqrt(runs) * 2.57; width < want*0.8 || width > want*1.2 {
		t.Errorf("the interval is ±%g on the average, want ±%g", width, want)
	}
	if one, err := m.Aggregate([]*counts.Table{repeatedRun(rng)}); err != nil || one.Runs != 1 {
		t.Errorf("a single run: %v, of %d runs", err, one.Runs)
	}
	if _, err := m.Aggregate(nil); err == nil {
		t.Error("no runs: no error")
	}
}

// stalledRuns are runs of 1000 cycles each with so many stalled.
func stalledRuns(stalled ...float64) []*counts.Table {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}, Columns: []counts.Column{{Event: "CYC"}, {Event: "STALL"}}}
	var list []*counts.Table
	for _, v := range stalled {
		t := counts.NewTable(l)
		t.Start, t.Duration = 0, 2
		for col, v := range []float64{1000, v} {
			*t.Cell(0, col) = counts.Cell{Value: v, Enabled: 2e9, Running: 2e9, State: counts.Counted}
		}
		list = append(list, t)
	}
	return list
}

// TestAggregateMean: where the runs' wholes are equal the error is that of a mean,
// by Student's distribution. Of many runs it is found from groups of them.
func TestAggregateMean(t *testing.T) {
	method := toy(t, account.Options{})
	stalled := func(runs []*counts.Table) account.Value {
		a, err := method.Aggregate(runs)
		if err != nil {
			t.Fatal(err)
		}
		if a.Duration != 2 || a.Runs != len(runs) || a.Count("CYC") != 1000 {
			t.Errorf("%d runs of %v s with %v cycles", a.Runs, a.Duration, a.Count("CYC"))
		}
		i, _ := a.Node("Stalled")
		return a.Nodes[i]
	}
	v := stalled(stalledRuns(400, 420, 380, 410, 390))
	if want := 2.776445 * math.Sqrt(250.0/5) / 1000; !near(v.Value, 0.4) || math.Abs(v.Error/want-1) > 1e-6 || v.Doubt != account.DoubtNone {
		t.Errorf("%v ± %v (%v), want 0.4 ± %v", v.Value, v.Error, v.Doubt, want)
	}
	if v := stalled(stalledRuns(10, 0, 20, 0, 30)); v.Doubt != account.DoubtError {
		t.Errorf("%v ± %v is not in doubt", v.Value, v.Error)
	}
	half := stalledRuns(200, 210, 190) // of the time, and nothing in the rest
	for _, run := range half {
		c := run.Cell(0, 1)
		c.Running, c.Lost = 1e9, 1e9
	}
	if v := stalled(half); !near(v.Value, 0.4) || v.Coverage != 0.5 {
		t.Errorf("counted half of the time: %v, covered %v, want 0.4, covered 0.5", v.Value, v.Coverage)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	many := make([]float64, 120)
	for i := range many {
		many[i] = 400 + 20*rng.NormFloat64()
	}
	if v, want := stalled(stalledRuns(many...)), 2.01*20/math.Sqrt(120)/1000; v.Error < 0.8*want || v.Error > 1.2*want {
		t.Errorf("of 120 runs: ± %v, want about %v", v.Error, want)
	}
}
