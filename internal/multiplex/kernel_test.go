package multiplex

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/plan"
)

// A Setting is how a program is counted.
type Setting struct {
	CPU       string
	Level     int     // of the method's nodes
	Turn      float64 // seconds that a group is on the counters at a time
	Interval  float64 // seconds
	Intervals int
	// Vary disables a group at random moments for a random time, as package perfevent
	// does with perfevent.Spec.Vary.
	Vary bool
}

// A Counting counts programs as a kernel does that multiplexes groups of events.
type Counting struct {
	Setting
	Method  *account.Method
	Groups  int
	Binding *account.Binding
	sums    *account.Binding // of the sums of intervals
	columns []column
	rates   []float64 // of the events, in counts per step
	rng     *rand.Rand
}

// A column is one column of the counts.
type column struct{ event, group int }

// NewCounting returns the counting of the plan for the first levels of a processor's
// first method. The same seed gives the same rates and the same trials.
func NewCounting(s Setting, seed uint64) (*Counting, error) {
	method, err := account.Load(s.CPU, "", account.Options{})
	if err != nil {
		return nil, err
	}
	p, err := plan.New(method.Model, method.Events, plan.Options{Level: s.Level})
	if err != nil {
		return nil, err
	}
	c := &Counting{Setting: s, Method: method, Groups: len(p.Groups), rng: rand.New(rand.NewPCG(seed, seed))}
	layout := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("simulated")}}
	index := map[string]int{}
	for g := range p.Groups {
		for _, e := range p.Groups[g].Events {
			if _, ok := index[e.Name]; !ok {
				index[e.Name] = len(c.rates)
				c.rates = append(c.rates, 2.5e6*math.Exp(-4*c.rng.Float64()))
			}
			layout.Columns = append(layout.Columns, counts.Column{Event: e.Name, Group: g + 1})
			c.columns = append(c.columns, column{index[e.Name], g})
		}
	}
	c.Binding = method.Bind(layout)
	return c, nil
}

// turns yields which group is on the counters, step by step: the kernel moves the group on them
// to the end of its list, and takes the first enabled one.
type turns struct {
	*Counting
	order []int
	now   int // the group on the counters
	off   int // the group that is disabled, -1 for none
	tick  int // steps until the kernel rotates
	kick  int // steps until another group is disabled
}

func (c *Counting) turns() *turns {
	t := &turns{Counting: c, order: c.rng.Perm(c.Groups), off: -1}
	t.now = t.order[0]
	t.tick = 1 + c.rng.IntN(t.length())
	t.kick = t.pause()
	return t
}

// length is that of a turn in steps.
func (t *turns) length() int { return max(1, int(t.Turn/stepSeconds+0.5)) }

// pause is the time until a group is disabled, or enabled again, in steps: on average two
// turns, and a rotation of the others. Exponential times keep no loop in step.
func (t *turns) pause() int {
	mean := 2 * float64(t.length())
	if t.off >= 0 {
		mean = float64((t.Groups - 1) * t.length())
	}
	return max(1, int(mean*min(3, t.rng.ExpFloat64())+t.rng.Float64()))
}

func (t *turns) next() int {
	if t.tick == 0 {
		t.tick = t.length()
		i := slices.Index(t.order, t.now)
		t.order = append(slices.Delete(t.order, i, i+1), t.now)
		t.schedule()
	}
	if t.Vary && t.Groups > 1 && t.kick == 0 {
		t.vary()
		t.kick = t.pause()
	}
	t.tick--
	t.kick--
	return t.now
}

// schedule takes the first group of the list that is enabled.
func (t *turns) schedule() {
	t.now = t.order[0]
	if t.now == t.off { // it is one of several
		t.now = t.order[1]
	}
}

// vary disables a group at random, or enables the one that was. The kernel then takes the
// first of its list at once.
func (t *turns) vary() {
	if t.off >= 0 {
		t.off = -1
	} else {
		t.off = t.rng.IntN(t.Groups)
	}
	t.schedule()
}

// Tables calls do with the kernel's counts of a program in each interval, and returns the table
// of all.
func (c *Counting) Tables(k Kind, do func(*counts.Table) error) (*counts.Table, error) {
	layout := c.Binding.Layout
	truth, table := counts.NewTable(layout), counts.NewTable(layout)
	steps := int(c.Interval/stepSeconds + 0.5)
	truth.Duration = float64(steps*c.Intervals) * stepSeconds
	for i := range c.columns {
		truth.Cell(0, i).State = counts.Counted
	}
	p, turns := newProgram(k, c.rates, c.rng), c.turns()
	for i := range c.Intervals {
		table.Reset(layout)
		table.Interval, table.Start, table.Duration = true, float64(i*steps)*stepSeconds, float64(steps)*stepSeconds
		for range steps {
			happened, group := p.next(), turns.next()
			for k, column := range c.columns {
				v := happened[column.event]
				truth.Cell(0, k).Value += v
				if column.group == group {
					cell := table.Cell(0, k)
					cell.Value += v
					cell.Running += stepSeconds * 1e9
				}
			}
		}
		for k := range c.columns {
			cell := table.Cell(0, k)
			cell.Enabled = table.Duration * 1e9
			if cell.State = counts.NotCounted; cell.Running > 0 {
				cell.State = counts.Counted
				cell.Value *= cell.Enabled / cell.Running
			}
		}
		if err := do(table); err != nil {
			return nil, err
		}
	}
	return truth, nil
}

// Run returns the account of the sums of the intervals, and the true one.
func (c *Counting) Run(k Kind) (counted, truth *account.Account, err error) {
	total := counts.NewTotal(0)
	all, err := c.Tables(k, total.Add)
	if err != nil {
		return nil, nil, err
	}
	sum := total.Table()
	if c.sums == nil || !reflect.DeepEqual(c.sums.Layout, sum.Layout) {
		c.sums = c.Method.Bind(sum.Layout)
	}
	sum.Layout = c.sums.Layout
	return c.sums.Evaluate(sum, account.Place{}, nil), c.Binding.Evaluate(all, account.Place{}, nil), nil
}
