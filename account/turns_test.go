package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/plan"
)

// A simulation counts a program whose every time slice is known, as a kernel
// does that multiplexes groups of events.
type simulation struct {
	method  *account.Method
	binding *account.Binding
	columns []simulated
	groups  int
	rates   []float64 // of the program's events, in counts per turn
	rng     *rand.Rand
}

// simulated is one column of the counts.
type simulated struct{ event, group int }

const turnSeconds = 0.004

// newSimulation returns a program that runs on a processor and is counted by the
// plan for the first levels of its first method.
func newSimulation(t *testing.T, cpu string, level int, seed uint64) *simulation {
	t.Helper()
	method, err := account.Load(cpu, "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(method.Model, method.Events, plan.Options{Level: level})
	if err != nil {
		t.Fatal(err)
	}
	s := &simulation{method: method, groups: len(p.Groups), rng: rand.New(rand.NewPCG(seed, seed))}
	layout := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("simulated")}}
	index := map[string]int{}
	for g := range p.Groups {
		for _, e := range p.Groups[g].Events {
			if _, ok := index[e.Name]; !ok {
				index[e.Name] = len(s.rates)
				s.rates = append(s.rates, 1e7*math.Exp(-4*s.rng.Float64()))
			}
			layout.Columns = append(layout.Columns, counts.Column{Event: e.Name, Group: g + 1})
			s.columns = append(s.columns, simulated{index[e.Name], g})
		}
	}
	s.binding = method.Bind(layout)
	return s
}

// A behaviour is how a program's counts vary from slice to slice, in addition to
// the noise that all of its events share and that of each.
type behaviour struct {
	phase float64 // chance that a turn begins a phase, with rates of its own
	burst float64 // chance that a turn has five times as many of some events
}

// program yields the counts of each event in each turn.
func (s *simulation) program(turns int, b behaviour) [][]float64 {
	list := make([][]float64, turns)
	rates := make([]float64, len(s.rates))
	for i := range list {
		if i == 0 || s.rng.Float64() < b.phase {
			for e := range rates {
				rates[e] = s.rates[e] * math.Exp(0.5*s.rng.NormFloat64())
			}
		}
		shared := math.Exp(0.2 * s.rng.NormFloat64())
		burst := s.rng.Float64() < b.burst
		list[i] = make([]float64, len(rates))
		for e := range rates {
			list[i][e] = rates[e] * shared * math.Exp(0.3*s.rng.NormFloat64())
			if burst && e%3 == 0 {
				list[i][e] *= 5
			}
		}
	}
	return list
}

// tables calls do with what the kernel would count in each interval of whole
// rotations, and returns the table of all that happened.
func (s *simulation) tables(program [][]float64, do func(*counts.Table)) *counts.Table {
	layout := s.binding.Layout
	interval := s.groups * max(1, 5/s.groups)
	first := s.rng.IntN(s.groups)
	truth, table := counts.NewTable(layout), counts.NewTable(layout)
	truth.Duration = float64(len(program)) * turnSeconds
	for c := range s.columns {
		truth.Cell(0, c).State = counts.Counted
	}
	for at := 0; at+interval <= len(program); at += interval {
		table.Reset(layout)
		table.Interval, table.Start, table.Duration = true, float64(at)*turnSeconds, float64(interval)*turnSeconds
		for c, column := range s.columns {
			cell := table.Cell(0, c)
			cell.State, cell.Enabled = counts.Counted, table.Duration*1e9
			for i := at; i < at+interval; i++ {
				v := program[i][column.event]
				truth.Cell(0, c).Value += v
				if (first+i)%s.groups == column.group {
					cell.Value += v
					cell.Running += turnSeconds * 1e9
				}
			}
			cell.Value *= cell.Enabled / cell.Running
		}
		do(table)
	}
	return truth
}

// run returns the account of the sums of the intervals, and the true one.
func (s *simulation) run(t *testing.T, turns int, b behaviour) (counted, truth *account.Account) {
	t.Helper()
	total := counts.NewTotal(0)
	all := s.tables(s.program(turns, b), func(table *counts.Table) {
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	})
	sum := total.Table()
	return s.method.Bind(sum.Layout).Evaluate(sum, account.Place{}, nil), s.binding.Evaluate(all, account.Place{}, nil)
}

// nodes are the nodes of the first two levels that have an error.
func (s *simulation) nodes(a *account.Account) []int {
	var list []int
	for i := range a.Nodes {
		if n := &s.method.Model.Nodes[i]; n.Section == "" && n.Level <= 2 && a.Nodes[i].Error > 0 {
			list = append(list, i)
		}
	}
	return list
}

// TestTurnsCoverTruth checks that the 95 % interval of multiplexed counts holds the
// truth in 92 to 98 of 100 runs. It is no less for nodes whose counts are of several
// groups, as it is a bound there.
func TestTurnsCoverTruth(t *testing.T) {
	least, most := 0.92, 0.98
	if !testlong.Enabled() {
		least, most = 0.84, 1
	}
	for _, tt := range []struct {
		name   string
		trials int
		cpu    string
		level  int
		behaviour
	}{
		{"noise", 1000, "skylakex", 2, behaviour{}},
		{"phases and bursts", 2000, "skylakex", 2, behaviour{0.02, 0.05}},
		{"phases and bursts, many groups", 2000, "skylakex", 3, behaviour{0.02, 0.05}},
		{"phases and bursts, slots", 1000, "icelakex", 2, behaviour{0.02, 0.05}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trials := testlong.Size(60, tt.trials)
			s := newSimulation(t, tt.cpu, tt.level, 7)
			covered, of, together := map[int]int{}, map[int]int{}, map[int]bool{}
			for range trials {
				counted, truth := s.run(t, 1050, tt.behaviour)
				for _, i := range s.nodes(counted) {
					of[i]++
					together[i] = counted.Nodes[i].Together
					if math.Abs(counted.Nodes[i].Value-truth.Nodes[i].Value) <= counted.Nodes[i].Error {
						covered[i]++
					}
				}
			}
			if len(of) < 6 {
				t.Fatalf("%d nodes have an error", len(of))
			}
			for i, n := range of {
				if n < trials/2 {
					continue // it is mostly 0
				}
				share := float64(covered[i]) / float64(n)
				node := &s.method.Model.Nodes[i]
				t.Logf("%-20s %.1f %% of %d, together: %v", node.Name, 100*share, n, together[i])
				if share < least || together[i] && share > most {
					t.Errorf("%s: the interval holds the truth in %.1f %% of %d runs, want %.0f to %.0f %%", node.Name, 100*share, n, 100*least, 100*most)
				}
			}
		})
	}
}

// TestTurnsErrorShrinks checks that four times the time halves the error.
func TestTurnsErrorShrinks(t *testing.T) {
	s := newSimulation(t, "skylakex", 2, 7)
	mean := func(turns int) (sum float64) {
		for range 50 {
			a, _ := s.run(t, turns, behaviour{0.02, 0.05})
			for _, i := range s.nodes(a) {
				sum += a.Nodes[i].Error
			}
		}
		return sum
	}
	if ratio := mean(1000) / mean(4000); ratio < 1.7 || ratio > 2.3 {
		t.Errorf("the error of a run is %.2f times that of one four times as long, want 2", ratio)
	}
}
