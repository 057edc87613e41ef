package account_test

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestReadingErrors checks that the errors of estimated counts become those of a reading. The
// account stays as it was.
func TestReadingErrors(t *testing.T) {
	m, err := account.Load("generic", "simulated-cycles", account.Options{Params: map[string]float64{
		"INSTRUCTIONS_PER_CYCLE": 2, "OVERLAP": 10, "L2_HIT_PENALTY": 10}})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("all")}}
	for _, e := range []string{"Ir", "D1mr", "D1mw", "DLmr", "DLmw", "I1mr", "ILmr", "Bcm", "Bim", "D1mr.exposed", "DLmr.exposed", "DLm.memory", "DLmr.memory.exposed"} {
		l.Columns = append(l.Columns, counts.Column{Event: e})
	}
	table := counts.NewTable(l)
	for c := range l.Columns {
		*table.Cell(0, c) = counts.Cell{State: counts.Counted}
	}
	table.Cell(0, 0).Value, table.Cell(0, 1).Value = 1000, 100
	a := m.Bind(l).Evaluate(table, account.Place{}, nil)
	exact, err := a.Reading(1)
	if err != nil || exact.Errors != nil {
		t.Fatalf("errors of exact counts: %v, %v", exact.Errors, err)
	}
	table.Cell(0, 0).Variance, table.Cell(0, 1).Variance = 60*60, 4*4
	a = m.Bind(l).Evaluate(table, account.Place{}, nil)
	before := a.Nodes[0].Value
	r, err := a.Reading(2)
	if err != nil {
		t.Fatal(err)
	}
	// Two instructions take a cycle, and ten misses at a time take ten.
	if n, want := len(a.Nodes), (60/2.0+4/10.0*10)/2; r.Total != exact.Total/2 || len(r.Errors) != n+1 || math.Abs(r.Errors[n]-want) > 1e-9 {
		t.Errorf("total %v ± %v, want %v ± %v", r.Total, r.Errors, exact.Total/2, want)
	}
	if again, _ := a.Reading(2); a.Nodes[0].Value != before || again.Total != r.Total || again.Errors[len(a.Nodes)] != r.Errors[len(a.Nodes)] {
		t.Error("the account has changed")
	}
}

// TestSimulatedByWindows compares simulations whose figures have errors: what they explain is
// no change, and what exceeds them is one.
func TestSimulatedByWindows(t *testing.T) {
	reading := func(memory, e float64) []account.Reading {
		return []account.Reading{{Total: 0.7 + memory, Nodes: []float64{0.5, 0.2 + memory, memory, 0.2}, Errors: []float64{0, e, e, 0, e}}}
	}
	for _, tt := range []struct {
		memory, e     float64
		total, member account.Verdict
	}{
		{0.302, 0.002, account.Same, account.Same},
		{0.330, 0.002, account.More, account.More},
		{0.330, 0.02, account.CannotTell, account.CannotTell},
		{0.304, 0.0005, account.More, account.Same}, // a node's change counts from 1 % of all
		{0.270, 0.002, account.Less, account.Less},
		{0.304, 0, account.More, account.More},  // exact counts, as before
		{0.3, 0.02, account.Same, account.Same}, // the same simulation
	} {
		d := account.Compare(comparable, reading(0.3, tt.e), reading(tt.memory, tt.e), account.Design{Exact: true})
		if d.Total.Verdict != tt.total || d.Nodes[2].Verdict != tt.member {
			t.Errorf("0.3 and %v ± %v: %v, Memory %v, want %v and %v", tt.memory, tt.e, d.Total.Verdict, d.Nodes[2].Verdict, tt.total, tt.member)
		}
		half := 1.959964 * math.Sqrt2 * tt.e
		if d.Total.Delta == 0 {
			half = 0
		}
		if math.Abs(d.Total.High-d.Total.Delta-half) > 1e-6 || math.Abs(d.Total.Delta-d.Total.Low-half) > 1e-6 {
			t.Errorf("%v ± %v: interval %v … %v of %v", tt.memory, tt.e, d.Total.Low, d.Total.High, d.Total.Delta)
		}

		place := func(memory float64) []account.PlaceReading {
			r := account.PlaceReading{Total: 0.7 + memory, Variance: tt.e * tt.e, Program: "app"}
			r.Add(account.PlaceName{Module: "app", Name: "rest"}, account.Amount{Value: 0.7})
			r.Add(account.PlaceName{Module: "app", Name: "load"}, account.Amount{Value: memory, Variance: tt.e * tt.e})
			return []account.PlaceReading{r}
		}
		p := account.ComparePlaces(place(0.3), place(tt.memory), account.Design{Exact: true})
		if p.Total.Verdict != tt.total || p.Places[0].Name != "load" || p.Places[0].Verdict != tt.member {
			t.Errorf("by place, 0.3 and %v ± %v: %v, %+v", tt.memory, tt.e, p.Total.Verdict, p.Places[0])
		}
	}
}
