package account

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/model"
)

// A Reading is what one run adds to a comparison: the cycles that it took for
// each unit of work, in all and by node.
type Reading struct {
	Total float64
	Nodes []float64 // NaN for what is not known, or is no part of the cycles
}

// Reading returns the cycles that the account's run took for each of so many
// units of work. It is an error if its cycles were not counted.
func (a *Account) Reading(work float64) (Reading, error) {
	cycles := a.cycles()
	switch {
	case !(cycles > 0):
		return Reading{}, errors.New("its cycles were not counted")
	case !(work > 0):
		return Reading{}, fmt.Errorf("%g units of work", work)
	}
	m := a.Model()
	r := Reading{Total: cycles / work, Nodes: make([]float64, len(a.Nodes))}
	for i := range a.Nodes {
		r.Nodes[i] = math.NaN()
		switch n := &m.Nodes[i]; {
		case n.Section != "":
		case m.Share(i):
			r.Nodes[i] = a.Nodes[i].Value * cycles / work
		case n.Unit == cyclesPerInstruction || n.Unit == "" && m.Unit == cyclesPerInstruction:
			r.Nodes[i] = a.Nodes[i].Value * a.Instructions() / work
		}
	}
	return r, nil
}

const cyclesPerInstruction = "cycles/instruction"

// cycles are the core's cycles in the account's scope; NaN if they were not
// counted.
func (a *Account) cycles() float64 {
	if of := a.Binding.of; of != nil && a.Model().Unit == "cycles" {
		return of.Eval(a.in)
	}
	if v := a.firstCount("cycles", "PM_RUN_CYC"); !math.IsNaN(v) {
		return v
	}
	return a.firstCount("slots") / float64(a.CPU().Width)
}

// Instructions are the instructions retired in the account's scope; NaN if they
// were not counted.
func (a *Account) Instructions() float64 {
	return a.firstCount("instructions", "PM_RUN_INST_CMPL")
}

// Count returns the count of an event in the account's scope, by any spelling
// that the processor's table knows; NaN if it was not counted.
func (a *Account) Count(spelling string) float64 {
	events := a.Binding.Method.Events
	ref, err := model.ParseEvent(spelling)
	if err != nil {
		return math.NaN()
	}
	id := events.Resolve(ref).Event()
	for col, c := range a.Binding.Layout.Columns {
		other, err := model.ParseEvent(c.Event)
		if err != nil || events.Resolve(other).Event() != id {
			continue
		}
		if cell, ok := a.Binding.scaled(a.table, a.place.Self, col); ok {
			return cell.Estimate()
		}
	}
	return math.NaN()
}

func (a *Account) firstCount(spellings ...string) float64 {
	for _, s := range spellings {
		if v := a.Count(s); !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// A Verdict is what a comparison says of one figure.
type Verdict uint8

// The verdicts. Whether more cycles are worse is for the reader to say.
const (
	CannotTell Verdict = iota // too few runs, or too much between them
	Same                      // a change as large as 1 % of all cycles is ruled out
	More
	Less
)

func (v Verdict) String() string {
	return [...]string{"cannot tell", "no change", "more", "less"}[v]
}

// A Change is how one figure differs between two sets of runs.
type Change struct {
	Old, New  float64 // means, in cycles for each unit of work, so that changes add up; NaN if not known
	Delta     float64 // New − Old
	Low, High float64 // 95 % interval of Delta; NaN if there are too few runs
	P         float64 // of a two-sided Mann–Whitney test, corrected; NaN if there are too few runs, or it was not tested
	Effect    float64 // Cliff's delta: the chance that a new run takes more than an old one, less that of the opposite, −1…1
	Verdict   Verdict
}

// Relative returns the change in parts of the old value.
func (c *Change) Relative() float64 { return c.Delta / c.Old }

// A Difference compares two sets of runs that were accounted for by one method.
type Difference struct {
	Model *model.Model
	Runs  [2]int // old and new
	Total Change
	Nodes []Change // by node of the model
}

const (
	// runsEnough on each side are needed for a p-value below 5 %: with three, the
	// smallest that there can be is 10 %.
	runsEnough = 4
	alpha      = 0.05
	// sameWithin is the part of all cycles that a change must be shown to be
	// smaller than to be called none.
	sameWithin = 0.01
	resamples  = 2000
)

// Compare compares two sets of runs. The total is tested by itself. Nodes are
// tested level by level, the children of a node only if it has changed or stands
// for the whole, with Holm's correction among siblings: so the chance that any
// of a set of siblings is called changed though none is, is at most 5 %.
func Compare(m *model.Model, old, new []Reading) *Difference {
	d := &Difference{Model: m, Runs: [2]int{len(old), len(new)}, Nodes: make([]Change, len(m.Nodes))}
	rng := rand.New(rand.NewPCG(1, 1)) // the same answer each time
	d.Total = newChange(column(old, -1), column(new, -1), rng)
	scale := d.Total.Old * sameWithin
	d.Total.judge(scale)
	var roots []int
	for i := range m.Nodes {
		d.Nodes[i] = newChange(column(old, i), column(new, i), rng)
		if m.Nodes[i].Parent == "" && m.Nodes[i].Section == "" {
			roots = append(roots, i)
		}
	}
	d.test(roots, scale)
	return d
}

// column is a node's reading in each run, or the total for -1; nil if one does
// not have it, as the others could not be compared.
func column(list []Reading, node int) []float64 {
	var values []float64
	for _, r := range list {
		v := r.of(node)
		if math.IsNaN(v) {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// of is the reading of a node, or the total for -1.
func (r *Reading) of(node int) float64 {
	if node < 0 {
		return r.Total
	}
	return r.Nodes[node]
}

// test judges siblings, and below those that have changed their children.
func (d *Difference) test(siblings []int, scale float64) {
	order := slices.DeleteFunc(slices.Clone(siblings), func(i int) bool { return math.IsNaN(d.Nodes[i].P) })
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case d.Nodes[i].P < d.Nodes[j].P:
			return -1
		case d.Nodes[i].P > d.Nodes[j].P:
			return 1
		}
		return 0
	})
	floor := 0.0
	for k, i := range order {
		p := min(1, d.Nodes[i].P*float64(len(order)-k))
		floor = max(floor, p)
		d.Nodes[i].P = floor
	}
	for _, i := range siblings {
		c := &d.Nodes[i]
		c.judge(scale)
		children := d.Model.Nodes[i].Children
		if c.Verdict == More || c.Verdict == Less || d.Model.Nodes[i].Level == 0 {
			d.test(children, scale)
			continue
		}
		d.skip(children, scale)
	}
}

// skip judges nodes that are not tested: no change may still be ruled out.
func (d *Difference) skip(nodes []int, scale float64) {
	for _, i := range nodes {
		d.Nodes[i].P = math.NaN()
		d.Nodes[i].judge(scale)
		d.skip(d.Model.Nodes[i].Children, scale)
	}
}

// newChange compares two samples; its verdict is still open.
func newChange(old, new []float64, rng *rand.Rand) Change {
	nan := math.NaN()
	c := Change{Old: nan, New: nan, Delta: nan, Low: nan, High: nan, P: nan, Effect: nan}
	if len(old) == 0 || len(new) == 0 {
		return c
	}
	c.Old, c.New = mean(old), mean(new)
	c.Delta = c.New - c.Old
	c.Effect = cliff(old, new)
	if min(len(old), len(new)) < runsEnough {
		return c
	}
	if r, err := stats.MannWhitneyUTest(old, new, stats.LocationDiffers); err == nil {
		c.P = r.P
	} else if errors.Is(err, stats.ErrSamplesEqual) {
		c.P = 1
	}
	c.Low, c.High = bootstrap(old, new, rng)
	return c
}

// judge decides, once the p-value has been corrected. scale is the change that
// is too small to matter.
func (c *Change) judge(scale float64) {
	switch {
	case c.P < alpha && c.Delta > 0:
		c.Verdict = More
	case c.P < alpha && c.Delta < 0:
		c.Verdict = Less
	case c.Low >= -scale && c.High <= scale:
		c.Verdict = Same
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// cliff is Cliff's delta (N. Cliff, Psychological Bulletin 114, 1993).
func cliff(old, new []float64) float64 {
	sum := 0
	for _, x := range old {
		for _, y := range new {
			switch {
			case y > x:
				sum++
			case y < x:
				sum--
			}
		}
	}
	return float64(sum) / float64(len(old)*len(new))
}

// bootstrap is the 95 % percentile interval of the difference of the means
// (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, chapter 13).
func bootstrap(old, new []float64, rng *rand.Rand) (low, high float64) {
	deltas := make([]float64, resamples)
	x, y := make([]float64, len(old)), make([]float64, len(new))
	for i := range deltas {
		deltas[i] = mean(draw(y, new, rng)) - mean(draw(x, old, rng))
	}
	slices.Sort(deltas)
	return deltas[resamples*25/1000], deltas[resamples*975/1000-1]
}

// draw fills a sample with values drawn from another, each put back.
func draw(to, from []float64, rng *rand.Rand) []float64 {
	for i := range to {
		to[i] = from[rng.IntN(len(from))]
	}
	return to
}
