package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// sampled is a method over counts that were sampled.
type sampled struct {
	binding *account.Binding
	table   *counts.Table
	events  []string
}

func newSampled(t *testing.T) *sampled {
	t.Helper()
	method, err := account.Load("skylakex", "tma", account.Options{Params: map[string]float64{"#smt_on": 0}})
	if err != nil {
		t.Fatal(err)
	}
	s := &sampled{events: []string{"CPU_CLK_UNHALTED.THREAD", "IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_ISSUED.ANY",
		"UOPS_RETIRED.RETIRE_SLOTS", "INT_MISC.RECOVERY_CYCLES"}}
	scope := counts.RunScope("f")
	scope.Kind = counts.Function
	layout := &counts.Layout{Scopes: []counts.Scope{scope}}
	for _, e := range s.events {
		layout.Columns = append(layout.Columns, counts.Column{Event: e})
	}
	s.binding, s.table = method.Bind(layout), counts.NewTable(layout)
	return s
}

// set makes the count of an event that of samples of a period.
func (s *sampled) set(event int, samples, period float64) {
	*s.table.Cell(0, event) = counts.Cell{State: counts.Counted, Value: samples * period, Variance: samples * period * period, Samples: int64(samples)}
}

func (s *sampled) node(t *testing.T, a *account.Account, name string) account.Value {
	t.Helper()
	i, ok := a.Node(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return a.Nodes[i]
}

// TestErrorOfSamples compares the error of a ratio of two sampled counts with the
// formula for it: relative variances add up, 1/n each.
func TestErrorOfSamples(t *testing.T) {
	for _, tt := range []struct {
		cycles, slots float64 // samples
		doubt         string
	}{
		{10000, 9000, ""},
		{400, 100, ""},
		{50, 8, ""},
		{50, 3, "rests on too few samples"},
		{2, 1, "rests on too few samples"},
	} {
		s := newSampled(t)
		for e := range s.events {
			s.set(e, tt.cycles, 1000)
		}
		s.set(3, tt.slots, 1000)
		got := s.node(t, s.binding.Evaluate(s.table, account.Place{}, nil), "Retiring")
		want := tt.slots / (4 * tt.cycles)
		wantErr := 1.959964 * want * math.Sqrt(1/tt.slots+1/tt.cycles)
		if math.Abs(got.Value-want) > 1e-12 || math.Abs(got.Error/wantErr-1) > 0.02 || got.Doubt.String() != tt.doubt {
			t.Errorf("%v of %v samples: %v ± %v (%v), want %v ± %v (%v)", tt.slots, tt.cycles, got.Value, got.Error, got.Doubt, want, wantErr, tt.doubt)
		}
		if c := s.table.Cell(0, 3); c.Value != tt.slots*1000 {
			t.Errorf("the evaluation left a count of %v, want %v", c.Value, tt.slots*1000)
		}
	}
}

// TestErrorOfSamplesShrinks has an error half as large with four times as many
// samples.
func TestErrorOfSamplesShrinks(t *testing.T) {
	before := math.NaN()
	for n := 100.0; n <= 6400; n *= 4 {
		s := newSampled(t)
		for e := range s.events {
			s.set(e, n, 1000)
		}
		got := s.node(t, s.binding.Evaluate(s.table, account.Place{}, nil), "Frontend_Bound").Error
		if !(got > 0) || math.Abs(before/got-2) > 0.01 {
			if !math.IsNaN(before) || !(got > 0) {
				t.Errorf("%v samples: error %v, after %v", n, got, before)
			}
		}
		before = got
	}
}

// TestErrorOfSamplesCovers samples a function of known behaviour again and again:
// the 95 % intervals must hold what is true about as often as they say.
func TestErrorOfSamplesCovers(t *testing.T) {
	const runs, period = 2000, 1e5
	rng := rand.New(rand.NewPCG(1, 2))
	means := []float64{400, 300, 900, 700, 40} // samples of each event
	truth := newSampled(t)
	for e, n := range means {
		truth.set(e, n, period)
	}
	nodes := []string{"Retiring", "Frontend_Bound", "Bad_Speculation", "Backend_Bound"}
	ref := truth.binding.Evaluate(truth.table, account.Place{}, nil).Clone()
	covered := map[string]int{}
	s := newSampled(t)
	var a *account.Account
	for range runs {
		for e, n := range means {
			s.set(e, poisson(rng, n), period)
		}
		a = s.binding.Evaluate(s.table, account.Place{}, a)
		for _, name := range nodes {
			if v := s.node(t, a, name); math.Abs(v.Value-ref.Value(name)) <= v.Error {
				covered[name]++
			}
		}
	}
	for _, name := range nodes {
		if share := float64(covered[name]) / runs; share < 0.93 || share > 0.97 {
			t.Errorf("%s: %.1f %% of the intervals hold the value, want 95 %%", name, 100*share)
		}
	}
}

// poisson draws how many events arrive in a time if mean are expected: as many
// as there are before their distances, which are exponential, exceed it.
func poisson(rng *rand.Rand, mean float64) float64 {
	n := -1.0
	for at := 0.0; at < mean; n++ {
		at += rng.ExpFloat64()
	}
	return max(n, 0)
}
