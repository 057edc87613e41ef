package account

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// An Amount is what was counted of something in one run, for each unit of work.
type Amount struct {
	Value    float64
	Variance float64 // that sampling adds; 0 if nothing was sampled
	Samples  int64
}

func (a *Amount) add(b Amount) {
	a.Value += b.Value
	a.Variance += b.Variance
	a.Samples += b.Samples
}

// A PlaceName names a place in the code such that it is found again in another
// build of the program.
type PlaceName struct {
	Module string
	Name   string // of the function or line; "" for the module as a whole
}

// A PlaceReading is what one run adds to a comparison by places in the code.
type PlaceReading struct {
	Total float64 // of the run
	// Variance is that of the total if it was estimated without samples, as a simulator's windows
	// are; 0 otherwise.
	Variance float64
	Program  string // module of the program that was run; "" if not known
	Places   map[PlaceName]Amount
}

// Add adds an amount to that of a place: several places may have one name.
func (r *PlaceReading) Add(at PlaceName, a Amount) {
	if r.Places == nil {
		r.Places = map[PlaceName]Amount{}
	}
	sum := r.Places[at]
	sum.add(a)
	r.Places[at] = sum
}

// Per returns the reading for each of so many units of work, of one for the run.
func (r PlaceReading) Per(work float64) PlaceReading {
	out := PlaceReading{Total: r.Total / work, Variance: r.Variance / (work * work), Program: r.Program, Places: make(map[PlaceName]Amount, len(r.Places))}
	for at, a := range r.Places {
		out.Places[at] = Amount{a.Value / work, a.Variance / (work * work), a.Samples}
	}
	return out
}

// A PlaceChange is how the amount of one place differs.
type PlaceChange struct {
	PlaceName
	OldModule string // as it was called in the old runs, if otherwise; ""
	Change
	Samples [2]int64 // of old and new runs together
}

// Appeared reports whether the old runs have nothing of the place.
func (c *PlaceChange) Appeared() bool { return c.Old == 0 && c.New != 0 }

// Gone reports whether the new runs have nothing of the place.
func (c *PlaceChange) Gone() bool { return c.New == 0 && c.Old != 0 }

// A PlaceDifference compares two sets of runs by places in the code. The changes
// of the places add up to that of the total, as far as the amounts do.
type PlaceDifference struct {
	Runs   [2]int // old and new
	Basis  Basis
	Total  Change
	Places []PlaceChange // those with the largest change first
}

// testedFrom is the smallest part of all runs' total that a tested place has. It does
// not depend on how the sides differ.
const testedFrom = 1e-3

// ComparePlaces compares two sets of runs by places in the code. The total and all places with
// 0.1 % of all runs or more are tested together. The test exchanges runs between the sides, or
// within pairs (Westfall and Young): the chance that any is called changed though nothing is,
// is at most 5 %. With too few runs for that a place is compared with what sampling adds by
// chance. Nothing is known then of how runs differ. A place is changed if both its amount and
// its share of the run are, by 1 % of all.
func ComparePlaces(old, new []PlaceReading, design Design) *PlaceDifference {
	runs := [2][]PlaceReading{old, new}
	d := &PlaceDifference{Runs: [2]int{len(old), len(new)}, Basis: design.basis(len(old), len(new))}
	if d.Basis == NoBasis && sampled(old) && sampled(new) {
		d.Basis = BySampling
	}
	c := newComparison(design, d.Basis, totals(old), totals(new))
	p := newPlaceTester(c, runs)
	d.Total, d.Places = c.total, make([]PlaceChange, len(p.names))
	for i := range p.names {
		d.Places[i] = p.change(i)
	}
	p.test(&d.Total, d.Places)
	sorting.Stable(d.Places, func(a, b PlaceChange) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta)),
			cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return d
}

func sampled(runs []PlaceReading) bool {
	for i := range runs {
		for _, a := range runs[i].Places {
			if a.Variance > 0 {
				return true
			}
		}
	}
	return false
}

func totals(runs []PlaceReading) []float64 {
	list := make([]float64, len(runs))
	for i := range runs {
		list[i] = runs[i].Total
	}
	return list
}

// A placeTester compares the places of two sets of runs.
type placeTester struct {
	*comparison
	runs   [2][]PlaceReading
	called map[string]string // what modules of the old runs are called in the new ones
	was    map[string]string // the opposite
	names  []PlaceName
	least  float64 // of the sum over all runs, to be tested
}

func newPlaceTester(c *comparison, runs [2][]PlaceReading) *placeTester {
	p := &placeTester{comparison: c, runs: runs, called: renamed(runs), was: map[string]string{}}
	for old, new := range p.called {
		p.was[new] = old
	}
	seen := map[PlaceName]bool{}
	for side := range runs {
		for i := range runs[side] {
			p.least += testedFrom * runs[side][i].Total
			for name := range runs[side][i].Places {
				if now, ok := p.called[name.Module]; ok && side == 0 {
					name.Module = now
				}
				seen[name] = true
			}
		}
	}
	p.names = slices.Collect(maps.Keys(seen))
	sort.Slice(p.names, func(i, j int) bool {
		a, b := &p.names[i], &p.names[j]
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name)) < 0
	})
	return p
}

// amounts returns what a place had in each run of a side.
func (p *placeTester) amounts(i, side int) []Amount {
	name := p.names[i]
	if was, ok := p.was[name.Module]; ok && side == 0 {
		name.Module = was
	}
	list := make([]Amount, len(p.runs[side]))
	for r := range list {
		list[r] = p.runs[side][r].Places[name]
	}
	return list
}

// values are the amounts as plain numbers, and variances what sampling adds to each.
func values(list []Amount) []float64 {
	v := make([]float64, len(list))
	for i := range list {
		v[i] = list[i].Value
	}
	return v
}

func variances(list []Amount) []float64 {
	v := make([]float64, len(list))
	for i := range list {
		v[i] = list[i].Variance
	}
	return v
}

// change compares a place; its verdict is still open. Those that are too small to
// be tested have no interval.
func (p *placeTester) change(i int) PlaceChange {
	old, new := p.amounts(i, 0), p.amounts(i, 1)
	out := PlaceChange{PlaceName: p.names[i], OldModule: p.was[p.names[i].Module]}
	for side, list := range [][]Amount{old, new} {
		for r := range list {
			out.Samples[side] += list[r].Samples
		}
	}
	nan := math.NaN()
	o, n := values(old), values(new)
	if !p.tested(o, n) {
		out.Change = Change{Old: mean(o), New: mean(n), Low: nan, High: nan, P: nan, Effect: nan, Seen: nan}
		out.Delta = out.New - out.Old
		if p.basis == ByExactCounts {
			out.Low, out.High = out.Delta, out.Delta
		}
		if p.basis == BySampling {
			return out
		}
	} else {
		out.Change = p.comparison.change(o, n)
	}
	p.widen(&out.Change, ofMean(old)+ofMean(new))
	return out
}

// tested reports whether readings are large enough to be tested.
func (p *placeTester) tested(old, new []float64) bool {
	return mean(old)*float64(len(old))+mean(new)*float64(len(new)) >= p.least
}

// ofMean is the variance that sampling adds to the mean of runs.
func ofMean(list []Amount) float64 {
	sum := 0.0
	for _, a := range list {
		sum += a.Variance
	}
	return sum / float64(len(list)*len(list))
}

// test judges the total and the places.
func (p *placeTester) test(total *Change, places []PlaceChange) {
	switch p.basis {
	case ByRuns, ByPairs:
		p.testTogether(total, places)
		return
	case BySampling:
		p.testShares(places)
	case ByExactCounts:
		variance := 0.0
		for _, list := range p.runs {
			for i := range list {
				variance += list[i].Variance / float64(len(list)*len(list))
			}
		}
		p.widen(&p.total, variance)
		p.judge(&p.total)
		*total = p.total
	default:
		return
	}
	list := make([]*Change, len(places))
	for i := range places {
		list[i] = &places[i].Change
	}
	p.adjust(list)
	for i, x := range list {
		p.judgeFrom(x, p.leastOf(places[i].Module))
	}
}

// leastOf is the part of all cycles that a change of a place must exceed. If counts are exact,
// any change in the program itself is one. Elsewhere the loader and libraries do more or less
// as the environment has it.
func (p *placeTester) leastOf(module string) float64 {
	const notable = 1e-3 * (1 + 1e-9) // unlike negligible, which judge replaces
	if p.basis == BySampling {
		return negligible
	}
	if program := p.runs[1][0].Program; program == "" || program == module {
		return 0
	}
	return notable
}

// testTogether tests the total and the places as one family.
func (p *placeTester) testTogether(total *Change, places []PlaceChange) {
	f := family{old: [][]float64{p.whole[0]}, new: [][]float64{p.whole[1]}, whole: p.whole, design: p.design,
		oldVar: [][]float64{make([]float64, len(p.whole[0]))}, newVar: [][]float64{make([]float64, len(p.whole[1]))}}
	list := []*Change{total}
	for i := range places {
		if math.IsNaN(places[i].Low) {
			continue
		}
		old, new := p.amounts(i, 0), p.amounts(i, 1)
		f.old, f.oldVar = append(f.old, values(old)), append(f.oldVar, variances(old))
		f.new, f.newVar = append(f.new, values(new)), append(f.newVar, variances(new))
		list = append(list, &places[i].Change)
	}
	for i, value := range f.test() {
		list[i].P = value
		p.judge(list[i])
	}
}

// testShares tests places against what sampling adds, in amount and in their part
// of the run: the larger p-value counts.
func (p *placeTester) testShares(places []PlaceChange) {
	var spread [2]float64 // that sampling adds to all places together
	for side := range p.runs {
		for i := range places {
			spread[side] += ofMean(p.amounts(i, side))
		}
	}
	for i := range places {
		c := &places[i].Change
		if c.P = math.NaN(); math.IsNaN(c.Low) {
			continue
		}
		old, new := ofMean(p.amounts(i, 0)), ofMean(p.amounts(i, 1))
		share := c.New/p.total.New - c.Old/p.total.Old
		variance := ofShare(c.Old, p.total.Old, old, spread[0]) + ofShare(c.New, p.total.New, new, spread[1])
		c.P = 1
		if share*c.Delta > 0 && math.Abs(c.Delta) >= sameWithin*p.total.Old {
			c.P = max(twoSided(c.Delta, old+new), twoSided(share, variance))
		}
	}
}

// ofShare is the variance of value/total, given those of the value and of all
// values together.
func ofShare(value, total, variance, all float64) float64 {
	s := value / total
	return ((1-s)*(1-s)*variance + s*s*(all-variance)) / (total * total)
}

// twoSided is the p-value of a difference that is normally distributed.
func twoSided(delta, variance float64) float64 {
	if delta == 0 {
		return 1
	}
	return 2 * stats.StdNormal.CDF(-math.Abs(delta)/math.Sqrt(variance))
}

// renamed finds modules that are called otherwise in the new runs: the program
// that was run, and those that have half of their time at places of the same
// names.
func renamed(runs [2][]PlaceReading) map[string]string {
	var modules [2]map[string]map[string]float64
	for side := range runs {
		modules[side] = modulesOf(runs[side])
	}
	gone, come := without(modules[0], modules[1]), without(modules[1], modules[0])
	out := map[string]string{}
	if len(runs[0]) > 0 && len(runs[1]) > 0 {
		old, new := runs[0][0].Program, runs[1][0].Program
		if slices.Contains(gone, old) && slices.Contains(come, new) {
			out[old] = new
		}
	}
	taken := map[string]bool{}
	for _, new := range out {
		taken[new] = true
	}
	for _, old := range gone {
		if _, ok := out[old]; ok {
			continue
		}
		best, at := 0.5, ""
		for _, new := range come {
			if o := overlap(modules[0][old], modules[1][new]); !taken[new] && o >= best {
				best, at = o, new
			}
		}
		if at != "" {
			out[old], taken[at] = at, true
		}
	}
	return out
}

// modulesOf sums amounts by module and name.
func modulesOf(runs []PlaceReading) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for i := range runs {
		for at, a := range runs[i].Places {
			if out[at.Module] == nil {
				out[at.Module] = map[string]float64{}
			}
			out[at.Module][at.Name] += a.Value
		}
	}
	return out
}

// without lists the modules that are not among the others, in order.
func without(modules, others map[string]map[string]float64) []string {
	var names []string
	for name := range modules {
		if _, ok := others[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// overlap is the part of the smaller module's amount that both have at places of
// the same names.
func overlap(old, new map[string]float64) float64 {
	var sum, oldSum, newSum float64
	for _, v := range new {
		newSum += v
	}
	for name, v := range old {
		oldSum += v
		if name != "" {
			sum += min(v, new[name])
		}
	}
	return sum / min(oldSum, newSum)
}
