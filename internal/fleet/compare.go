package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/model"
)

// alpha is the level of all tests of a comparison together.
const alpha = 0.05

// power is the 80 % quantile of the normal distribution.
const power = 0.842

// A Change is how a node's share differs between two sides, over the processors that both
// have. Each processor weighs the same on both sides, as another mix would look like a change.
type Change struct {
	By    string
	Node  string
	Level int
	CPUs  []string // models of processors
	Old   float64
	New   float64
	Delta float64
	Error float64 // half-width of the 95 % interval of Delta; NaN with too few hosts
	P     float64 // corrected for all tests of the comparison; NaN with too few hosts
	// Seen is the least change that four of five such comparisons would find; NaN with too
	// few hosts.
	Seen   float64
	Useful bool
	Weight float64 // busy processors on the new side, or parts of all work
	// Hosts and Load are of each side: hosts, and busy processors on each of them.
	Hosts [2]float64
	Load  [2]float64

	se, freedom float64
}

// Changed reports whether the change is beyond chance.
func (c Change) Changed() bool { return c.P < alpha }

// Worse reports whether it is so, and to the worse: useful work fell, or something else grew.
func (c Change) Worse() bool { return c.Changed() && (c.Delta > 0) != c.Useful }

// A Comparison is all changes between two sides.
type Comparison struct {
	Old, New *Answer
	What     [2]string // the sides in words
	Changes  []Change  // the surest first
	Tests    int
	Notes    []string
	Broken   string // the changes beyond Options.FailOn; "" for none
}

// subject is what may be compared: shares of one node by one model, of one value of By.
type subject struct {
	by, node, model, version, method string
	unit                             series.Unit
}

// pair are the same node of both sides on one processor.
type pair struct {
	cpu      string
	old, new Ratio
	joint    float64 // covariance of both: 0 unless their hosts are the same
	level    int
	weight   float64 // the same on both sides
	share    float64 // of the new side
	cpus     [2]float64
}

// Compare compares two answers node by node. P-values are corrected by Holm's method for all
// of their tests.
func Compare(old, new *Answer, what [2]string) *Comparison {
	c := &Comparison{Old: old, New: new, What: what}
	before := map[Key]*Row{}
	for _, r := range old.Rows {
		before[r.Key] = r
	}
	pairs := map[subject][]pair{}
	alone, versions := 0, 0
	for _, r := range new.best() {
		o := before[r.Key]
		if o == nil {
			alone++
			if slices.ContainsFunc(old.Rows, func(x *Row) bool {
				k := x.Key
				k.Version = r.Version
				return k == r.Key
			}) {
				versions++
			}
			continue
		}
		weight, total := o.first()+r.first(), r.first()
		if !math.IsNaN(o.CPUs + r.CPUs) {
			weight, total = o.CPUs+r.CPUs, r.CPUs
		}
		for i := range r.Nodes {
			n := &r.Nodes[i]
			k := slices.IndexFunc(o.Nodes, func(x Node) bool { return x.Name == n.Name && x.Level == n.Level })
			if k < 0 {
				continue
			}
			id := subject{r.By, n.Name, r.Model, r.Version, r.Method, r.Unit}
			pairs[id] = append(pairs[id], pair{r.processor(), o.Nodes[k].Ratio(), n.Ratio(), n.joint(&o.Nodes[k]), n.Level, weight, total, [2]float64{o.CPUs, r.CPUs}})
		}
	}
	short := false
	for id, list := range pairs {
		short = short || slices.ContainsFunc(list, func(p pair) bool { return math.IsNaN(p.old.Error + p.new.Error) })
		if ch, ok := change(id, list); ok {
			c.Changes = append(c.Changes, ch)
		}
	}
	c.test()
	if alone > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("left out: %d of %d accounts of one side only", alone, len(new.Rows)))
	}
	if versions > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("left out: %d accounts by another version of the model", versions))
	}
	if short {
		c.Notes = append(c.Notes, "left out of tests: processors with a single host on a side, whose spread is not known")
	}
	return c
}

// joint is the covariance of a node's share with that of the same hosts in an earlier range.
// Hosts that have only one of the ranges add nothing to it.
func (n *Node) joint(old *Node) float64 {
	if len(n.Parts) != 1 || len(old.Parts) != 1 {
		return 0
	}
	p, o := &n.Parts[0], &old.Parts[0]
	share, before := p.N/p.Of.Q, o.N/o.Of.Q
	sum := p.NEarlier - before*p.NQEarlier - share*p.QNEarlier + share*before*p.Of.QEarlier
	v := sum / (p.Of.Q * o.Of.Q)
	for _, w := range []*Whole{p.Of, o.Of} {
		e := w.effective()
		v *= math.Sqrt(e / (e - 1))
	}
	return v
}

// change is the change of a node over processors, whose hosts are different ones, so that
// their variances add up. The degrees of freedom are Welch's and Satterthwaite's. Where
// both sides have the same hosts, the covariance makes the variance smaller.
func change(id subject, list []pair) (Change, bool) {
	c := Change{By: id.by, Node: id.node, Useful: (&model.Node{Name: id.node}).Useful(), Error: math.NaN(), P: math.NaN(), Seen: math.NaN()}
	slices.SortFunc(list, func(x, y pair) int { return cmp.Compare(x.cpu, y.cpu) })
	few := func(p pair) bool { return math.IsNaN(p.old.Error + p.new.Error) }
	if !slices.ContainsFunc(list, func(p pair) bool { return !few(p) }) {
		few = func(pair) bool { return false } // nothing can be tested
	}
	list = slices.DeleteFunc(slices.Clone(list), few)
	total, variance, denominator := 0.0, 0.0, 0.0
	var cpus [2]float64
	for _, p := range list {
		total += p.weight
	}
	for _, p := range list {
		w := p.weight / total
		c.Level = p.level
		c.CPUs = append(c.CPUs, p.cpu)
		c.Old, c.New, c.Weight = c.Old+w*p.old.Value, c.New+w*p.new.Value, c.Weight+p.share
		for side, r := range []Ratio{p.old, p.new} {
			v := w * w * r.Error * r.Error
			if p.joint == 0 {
				variance += v
				denominator += v * v / r.Freedom
			}
			c.Hosts[side] += r.Hosts
			cpus[side] += p.cpus[side]
		}
		if p.joint != 0 {
			v := w * w * max(p.old.Error*p.old.Error+p.new.Error*p.new.Error-2*p.joint, 0)
			variance += v
			denominator += v * v / min(p.old.Freedom, p.new.Freedom)
		}
	}
	c.Load = [2]float64{cpus[0] / c.Hosts[0], cpus[1] / c.Hosts[1]}
	c.Delta = c.New - c.Old
	if math.IsNaN(c.Delta) {
		return c, false
	}
	if !math.IsNaN(variance) {
		c.se, c.freedom = math.Sqrt(variance), math.Inf(1)
		if denominator > 0 {
			c.freedom = variance * variance / denominator
		}
		c.P = chance(c.Delta, c.se, c.freedom)
	}
	return c, true
}

// chance is the two-sided p-value of a difference.
func chance(delta, se, freedom float64) float64 {
	switch {
	case delta == 0:
		return 1
	case se == 0:
		return 0
	case math.IsInf(freedom, 0):
		return math.Erfc(math.Abs(delta/se) / math.Sqrt2)
	}
	return min(2*stats.TDist{V: freedom}.CDF(-math.Abs(delta/se)), 1)
}

// test corrects the p-values by Holm's method.
func (c *Comparison) test() {
	slices.SortFunc(c.Changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(orWorst(x.P), orWorst(y.P)), cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)), cmp.Compare(x.By, y.By), cmp.Compare(x.Node, y.Node))
	})
	for i := range c.Changes {
		if !math.IsNaN(c.Changes[i].P) {
			c.Tests++
		}
	}
	last := 0.0
	for i := range c.Changes {
		x := &c.Changes[i]
		if math.IsNaN(x.P) {
			continue
		}
		last = max(last, min(x.P*float64(c.Tests-i), 1))
		x.P = last
		quantile := func(p float64) float64 {
			if math.IsInf(x.freedom, 0) || x.freedom > 1e6 {
				return stats.StdNormal.InvCDF(p)
			}
			return stats.InvCDF(stats.TDist{V: x.freedom})(p)
		}
		x.Error = quantile(1-alpha/2) * x.se
		x.Seen = (quantile(1-alpha/2/float64(c.Tests)) + power) * x.se
	}
	slices.SortStableFunc(c.Changes, Change.before)
}

// before orders changes: those beyond chance first, of these the largest. Useful work comes
// behind the nodes that it gave way to.
func (c Change) before(o Change) int {
	switch {
	case !c.Changed() || !o.Changed():
		return cmp.Compare(orWorst(c.P), orWorst(o.P))
	case c.Useful != o.Useful && c.Useful:
		return 1
	case c.Useful != o.Useful:
		return -1
	}
	return cmp.Compare(math.Abs(o.Delta), math.Abs(c.Delta))
}

// orWorst puts what was not tested behind everything.
func orWorst(p float64) float64 {
	if math.IsNaN(p) {
		return 2
	}
	return p
}
