package account_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A course constructs recordings in intervals: a Skylake runs a program whose phases are
// planted, and groups of events are multiplexed step by step.
type course struct {
	phases   int
	interval int // steps
	groups   int // 1: all is counted all of the time
	apart    float64
}

const (
	stepTime      = 4e6 // ns
	courseSteps   = 1500
	cyclesPerStep = 3 * stepTime
)

// record returns the intervals of a recording.
func (c course) record(rng *rand.Rand) []*counts.Table {
	var mixes []plant
	for range c.phases {
		p, i := quiet(), rng.IntN(len(planted))
		planted[i].set(&p, 0.2+0.45*rng.Float64())
		if planted[i].cause {
			p.cause[planted[i].node] = 0.3 + 0.4*rng.Float64()
		}
		mixes = append(mixes, p)
	}
	names := sorted(quiet().counts())
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	late := make([]float64, len(names)) // part of the step after the interval
	for g, event := range names {
		column := counts.Column{Event: event}
		if c.groups > 1 {
			column.Group = 1 + g%c.groups
		}
		l.Columns = append(l.Columns, column)
		late[g] = c.apart * rng.Float64()
	}
	var tables []*counts.Table
	now, phase := counts.NewTable(l), 0
	for step := range courseSteps {
		if rng.Float64() < 0.01 {
			phase = rng.IntN(len(mixes))
		}
		p := mixes[phase]
		for _, share := range []*float64{&p.latency, &p.bandwidth, &p.mispredicts, &p.clears, &p.memory, &p.core, &p.heavy} {
			*share *= 0.8 + 0.4*rng.Float64()
		}
		if sum := p.latency + p.bandwidth + p.mispredicts + p.clears + p.memory + p.core; sum > 0.95 {
			p = mixes[phase]
		}
		load := 0.2 + 0.8*rng.Float64() // of the step that the program runs
		list, next := p.counts(), now
		list["BACLEARS.ANY"] = 1e4 // every program has some
		if step%c.interval == 0 && step > 0 {
			next = counts.NewTable(l)
		}
		for col, event := range names {
			add := func(to *counts.Table, part float64) {
				cell := counts.Cell{State: counts.Counted, Enabled: part * stepTime}
				if c.groups == 1 || l.Columns[col].Group == 1+step%c.groups {
					cell.Running = part * stepTime
					cell.Value = part * load * list[event] * cyclesPerStep / 1e9
				}
				to.Cell(0, col).Add(&cell)
			}
			before := 0.0
			if next != now {
				before = late[col]
				add(now, before)
			}
			add(next, 1-before)
		}
		if next != now {
			tables, now = append(tables, now), next
		}
	}
	tables = append(tables, now)
	for i, t := range tables {
		t.Interval, t.Start, t.Duration = true, float64(i*c.interval)*stepTime/1e9, float64(c.interval)*stepTime/1e9
	}
	return tables
}

// TestMultiplexedSound checks that constructed recordings in few groups and many, short ones and
// long ones, are not contradicted: neither as one block nor as the sum of intervals.
func TestMultiplexedSound(t *testing.T) {
	method, err := account.Load("skylake", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, groups := range []int{2, 3, 4, 7} {
		for _, intervals := range []int{1, 3, 10, 60} {
			for seed := range testlong.Size(1, 8) {
				c := course{phases: 1 + seed%6, interval: 25, groups: groups, apart: 0.5}
				tables := c.record(rand.New(rand.NewPCG(uint64(100*groups+intervals), uint64(seed))))[:intervals]
				sum, _ := spoiltIntervals(t, method, tables, -1, 1)
				block := tables[0].Clone()
				block.Interval = false
				for _, x := range tables[1:] {
					if err := block.Add(x); err != nil {
						t.Fatal(err)
					}
				}
				for _, a := range []*account.Account{sum, method.Bind(block.Layout).Evaluate(block, account.Place{}, nil)} {
					if a.Contradicted() {
						t.Errorf("%d groups, %d intervals, program %d: %v", groups, intervals, seed, a.Suspects())
					}
				}
			}
		}
	}
}

// spoiltIntervals audits a recording whose counts of a column are multiplied; -1 is of none.
func spoiltIntervals(t *testing.T, method *account.Method, tables []*counts.Table, col int, by float64) (sum, intervals *account.Account) {
	t.Helper()
	total := counts.NewTotal(0)
	for _, table := range tables {
		table = table.Clone()
		if col >= 0 {
			table.Cell(0, col).Value *= by
		}
		if err := total.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	b := method.Bind(total.Table().Layout)
	a := b.Evaluate(total.Table(), account.Place{}, nil)
	sum = a.Clone()
	b.CheckIntervals(a)
	return sum, a
}

// TestIntervals triples and halves the counts of constructed recordings in intervals.
// docs/audit.md has how many are noticed in the sum, and in the intervals. What is not changed
// is never suspect, although its counters are read up to two milliseconds apart.
func TestIntervals(t *testing.T) {
	testlong.Alone(t)
	method, err := account.Load("skylake", "", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| counted | kinds of phases | tripled: in the sum | in intervals too | halved | in intervals too | of those that matter: tripled | in intervals too | halved | in intervals too |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		name string
		course
	}{
		{"all of the time, `-I 100`", course{phases: 2, interval: 25, groups: 1, apart: 0.5}},
		{"all of the time, `-I 100`", course{phases: 5, interval: 25, groups: 1, apart: 0.5}},
		{"all of the time, `-I 100`", course{phases: 10, interval: 25, groups: 1, apart: 0.5}},
		{"in four groups, `-I 100`", course{phases: 5, interval: 25, groups: 4, apart: 0.5}},
		{"in four groups, `-I 1000`", course{phases: 5, interval: 250, groups: 4, apart: 0.5}},
	} {
		var all, matter [4]tally
		for n := range testlong.Size(1, 5) {
			tables := c.record(rand.New(rand.NewPCG(uint64(c.phases), uint64(n))))
			was, a := spoiltIntervals(t, method, tables, -1, 1)
			before := suspected(was)
			for name := range suspected(a) {
				if before[name] != nil {
					continue // of what is made up
				}
				t.Errorf("%s, %d phases, program %d: %s fails as it is", c.name, c.phases, n, name)
			}
			r := &recording{table: tables[0], binding: a.Binding}
			for col := range levels(r) {
				event := a.Binding.Name(col)
				for k, by := range []float64{3, 0.5} {
					sum, a := spoiltIntervals(t, method, tables, col, by)
					_, first, _ := found(sum, event, before)
					_, second, _ := found(a, event, before)
					all[2*k].add(first)
					all[2*k+1].add(second)
					if moved(r, was, sum) >= 0.05 {
						matter[2*k].add(first)
						matter[2*k+1].add(second)
					}
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", c.name, c.phases)
		for _, list := range [][4]tally{all, matter} {
			for _, s := range list {
				fmt.Fprintf(&b, " %v |", s)
			}
		}
		b.WriteString("\n")
	}
	if testlong.Enabled() {
		golden(t, "../docs/audit.md", "intervals", b.String())
	} else {
		t.Log(b.String())
	}
}
