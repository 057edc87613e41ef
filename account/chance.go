package account

import (
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// A Design says how the runs of a comparison were taken, and so which test
// applies to them.
type Design struct {
	// Paired says that each new run was taken next to the old run of the same
	// number, alternating: what disturbed the one disturbed the other.
	Paired bool
	// Exact says that the counts follow from the program and its input alone, as
	// a simulator's do: what differs between two runs is then no chance.
	Exact bool
}

// A Basis is what a comparison tells changes from chance by.
type Basis uint8

// The bases, from none to the strongest.
const (
	NoBasis       Basis = iota // too few runs: nothing says how runs differ by chance
	BySampling                 // too few runs: but what sampling adds by chance is known
	ByRuns                     // how runs of one side differ
	ByPairs                    // how neighbours differ
	ByExactCounts              // nothing in the counts is chance
)

func (b Basis) String() string {
	return [...]string{"none", "sampling", "runs", "pairs", "exact counts"}[b]
}

const (
	// RunsEnough on each side are needed for a p-value below 5 %: with three, the
	// smallest that there can be is 10 %, and with four 2.9 %, among any number of figures.
	RunsEnough = 4
	// PairsEnough is the same for pairs: with five, it is 1 in 16.
	PairsEnough = 6
	alpha       = 0.05
	// sameWithin is a part of all cycles: a change that is shown to be smaller is called none.
	sameWithin = 0.01
	// negligible is the smallest part of all cycles that counts as a change, however
	// sure; negligibleExact is the same for the whole and nodes of exact counts.
	negligible      = 1e-3
	negligibleExact = 1e-4
	resamples       = 4000
	// shuffles is how many ways of exchanging runs are looked at, if there are
	// more than that.
	shuffles = 10000
)

// basis returns what tells changes from chance, with so many runs of each side.
func (d Design) basis(old, new int) Basis {
	switch {
	case d.Paired && old == new && old >= PairsEnough:
		return ByPairs
	case !d.Paired && min(old, new) >= RunsEnough:
		return ByRuns
	case d.Exact && min(old, new) > 0:
		return ByExactCounts
	}
	return NoBasis
}

// holm corrects p-values of one family (S. Holm, Scandinavian Journal of
// Statistics 6, 1979). Those that are NaN are not part of it.
func holm(ps []float64) {
	order := ordered(ps, func(p float64) bool { return !math.IsNaN(p) })
	floor := 0.0
	for k, i := range order {
		floor = max(floor, min(1, ps[i]*float64(len(order)-k)))
		ps[i] = floor
	}
}

// ordered returns the indexes of the values that are kept, the smallest first.
func ordered(values []float64, keep func(float64) bool) []int {
	var order []int
	for i, v := range values {
		if keep(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case values[i] < values[j]:
			return -1
		case values[i] > values[j]:
			return 1
		}
		return 0
	})
	return order
}

// sampledLeast is the least part of the sampling variance that runs are assumed to have, if
// samples arrive independently: so that a few runs do not agree too well by chance. Samplers
// with a fixed rate are more regular than that, so that all of it would be too much.
const sampledLeast = 0.25

// A family is figures that are tested together: of each, what every run read, and
// what sampling contributes to the variance of that.
type family struct {
	old, new       [][]float64  // by figure and run
	oldVar, newVar [][]float64  // nil if nothing was sampled
	whole          [2][]float64 // by side and run: the whole that figures are parts of
	design         Design
}

// test returns the p-values of the figures, corrected for there being several: by the step-down
// maxT procedure of P. H. Westfall and S. S. Young (Resampling-Based Multiple Testing, 1993,
// algorithm 4.1). Runs are exchanged between the sides, or within pairs, in all ways or in
// many; a figure's p-value is how often the largest statistic of the undecided figures is as
// large as its own. So figures that vary together count as one, and nothing is assumed about
// how they vary. With few runs a large change is found even among many figures; the test of
// Mann and Whitney with a correction for several could not find it.
func (f *family) test() []float64 {
	if f.design.Paired {
		return stepDown(f.pairs())
	}
	return stepDown(f.exchanges())
}

// stepDown turns statistics, of the runs as they are and then of the runs
// exchanged, into corrected p-values.
func stepDown(draws iter.Seq[[]float64]) []float64 {
	var observed, p []float64
	var order []int // the largest last
	n := 0.0
	for t := range draws {
		n++
		if observed == nil {
			observed, p = slices.Clone(t), make([]float64, len(t))
			order = ordered(observed, func(float64) bool { return true })
		}
		most := 0.0
		for _, i := range order {
			most = max(most, t[i])
			if most >= observed[i]*(1-1e-9) {
				p[i]++
			}
		}
	}
	floor := 0.0
	for _, i := range slices.Backward(order) {
		floor = max(floor, p[i]/n)
		p[i] = floor
	}
	return p
}

// exchanges yields the figures' statistics: the difference of the sides by its standard
// error. The first is that of the runs as they are. The others are those of all or many ways
// of calling as many of them new. The slice is used again.
func (f *family) exchanges() iter.Seq[[]float64] {
	old, new := float64(len(f.whole[0])), float64(len(f.whole[1]))
	figures := make([]pairFigure, len(f.old))
	for i := range figures {
		x := &figures[i]
		x.values = centred(f.old[i], f.new[i])
		for _, v := range x.values {
			x.squares += v * v
		}
		if f.oldVar == nil {
			continue
		}
		x.variances = slices.Concat(f.oldVar[i], f.newVar[i])
		for _, v := range x.variances {
			x.sampled += v
		}
	}
	t, level := make([]float64, len(figures)), mean(f.whole[0])
	return func(yield func([]float64) bool) {
		for chosen := range choices(len(f.whole[0])+len(f.whole[1]), len(f.whole[1])) {
			for i := range t {
				delta, variance := figures[i].difference(chosen, old, new)
				t[i] = studentised(delta, variance, level)
			}
			if !yield(t) {
				return
			}
		}
	}
}

// A pairFigure is a figure whose runs are exchanged between the sides.
type pairFigure struct {
	values    []float64 // of all runs, less their mean
	squares   float64   // sum of their squares
	variances []float64 // that sampling adds to each; nil if nothing was sampled
	sampled   float64   // their sum
}

// difference is that of the sides' means, if the chosen runs are the new ones. Its variance
// is by how the runs of a side differ, or the least by sampling.
func (x *pairFigure) difference(chosen []int, old, new float64) (delta, variance float64) {
	sum := 0.0
	for _, r := range chosen {
		sum += x.values[r]
	}
	sampled := x.sampled / (old * old)
	if x.variances != nil && old != new {
		for _, r := range chosen {
			sampled += x.variances[r] * (1/(new*new) - 1/(old*old))
		}
	}
	// The values' sum is 0, so that of the others is −sum.
	within := (x.squares - sum*sum*(1/old+1/new)) / (old + new - 2)
	return sum * (1/old + 1/new), max(within*(1/old+1/new), sampledLeast*sampled)
}

// pairs yields the same for pairs: the mean difference of neighbours, each relative to its
// pair's whole. It is taken as the runs are, then exchanged within all or many pairs.
func (f *family) pairs() iter.Seq[[]float64] {
	figures, n := len(f.old), len(f.old[0])
	deltas, sampled, squares := make([][]float64, figures), make([]float64, figures), make([]float64, figures)
	for i := range deltas {
		deltas[i] = make([]float64, n)
		for r := range deltas[i] {
			whole := (f.whole[0][r] + f.whole[1][r]) / 2
			deltas[i][r] = (f.new[i][r] - f.old[i][r]) / whole
			squares[i] += deltas[i][r] * deltas[i][r]
			if f.oldVar != nil {
				sampled[i] += (f.newVar[i][r] + f.oldVar[i][r]) / (whole * whole)
			}
		}
		sampled[i] /= float64(n * n)
	}
	t := make([]float64, figures)
	return func(yield func([]float64) bool) {
		for flips := range signs(n) {
			for i := range t {
				sum := 0.0
				for r, d := range deltas[i] {
					sum += d * flips[r]
				}
				within := (squares[i] - sum*sum/float64(n)) / float64(n-1)
				t[i] = studentised(sum/float64(n), max(within/float64(n), sampledLeast*sampled[i]), 1)
			}
			if !yield(t) {
				return
			}
		}
	}
}

// studentised is the magnitude of a difference by its standard error, which is at
// least that of numbers: a part of the whole.
func studentised(delta, variance, whole float64) float64 {
	const precision = 1e-9
	return math.Abs(delta) / math.Sqrt(max(variance, precision*precision*whole*whole))
}

// centred joins two samples, less their common mean.
func centred(old, new []float64) []float64 {
	all := slices.Concat(old, new)
	m := mean(all)
	for i := range all {
		all[i] -= m
	}
	return all
}

// choices yields ways of choosing so many of n things: first the last ones, then
// all ways if there are not too many, else the same random ones each time. The
// slice is used again.
func choices(n, of int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		chosen := make([]int, of)
		for i := range chosen {
			chosen[i] = n - of + i
		}
		if !yield(chosen) {
			return
		}
		if math.Exp(logChoose(n, of)) <= shuffles {
			for i := range chosen {
				chosen[i] = i
			}
			for chosen[0] < n-of { // up to the way that came first
				if !yield(chosen) {
					return
				}
				nextChoice(chosen, n)
			}
			return
		}
		rng := rand.New(rand.NewPCG(1, 2))
		all := make([]int, n)
		for range shuffles {
			copy(chosen, permute(all, rng))
			if !yield(chosen) {
				return
			}
		}
	}
}

// nextChoice advances to the next in the order of a dictionary.
func nextChoice(chosen []int, n int) {
	i := len(chosen) - 1
	for chosen[i] == n-len(chosen)+i {
		i--
	}
	chosen[i]++
	for i++; i < len(chosen); i++ {
		chosen[i] = chosen[i-1] + 1
	}
}

// permute fills a slice with its indexes in random order.
func permute(all []int, rng *rand.Rand) []int {
	for i := range all {
		all[i] = i
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// logChoose is the logarithm of a binomial coefficient.
func logChoose(n, k int) float64 {
	lg := func(v int) float64 { x, _ := math.Lgamma(float64(v + 1)); return x }
	return lg(n) - lg(k) - lg(n-k)
}

// signs yields ways of giving n things signs: first all plus, then all ways if
// there are not too many, else the same random ones each time. As a statistic's
// magnitude does not change if all signs do, the last thing keeps its own. The
// slice is used again.
func signs(n int) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		flips := make([]float64, n)
		rng := rand.New(rand.NewPCG(1, 3))
		ways, all := uint64(shuffles), false
		if n-1 < bits.Len(shuffles) {
			ways, all = 1<<(n-1), true
		}
		for way := range ways {
			w := way
			if !all && way > 0 {
				w = rng.Uint64()
			}
			for i := range flips {
				flips[i] = 1
				switch {
				case i == n-1:
				case i < 64 && w>>i&1 == 1, i >= 64 && way > 0 && rng.IntN(2) == 1:
					flips[i] = -1
				}
			}
			if !yield(flips) {
				return
			}
		}
	}
}

// A bootstrap draws as many runs of both sides as there are, at random and with replacement,
// many times: the same ones for all figures.
type bootstrap struct {
	old, new [][]int32 // the runs that were drawn
	deltas   []float64 // scratch
}

func newBootstrap(old, new int, d Design) *bootstrap {
	rng := rand.New(rand.NewPCG(1, 1)) // the same answer each time
	b := &bootstrap{old: make([][]int32, resamples), new: make([][]int32, resamples), deltas: make([]float64, resamples)}
	for i := range b.old {
		b.old[i] = drawn(old, rng)
		if b.new[i] = b.old[i]; !d.Paired {
			b.new[i] = drawn(new, rng)
		}
	}
	return b
}

// drawn is n of n runs, with replacement.
func drawn(n int, rng *rand.Rand) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = rng.Int32N(int32(n))
	}
	return list
}

// interval is the 95 % percentile interval of the difference of the means
// (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, chapter 13),
// with its percentiles expanded for small samples as Student's distribution
// would (T. C. Hesterberg, The American Statistician 69, 2015, section 5.3).
func (b *bootstrap) interval(old, new []float64) (low, high float64) {
	for i := range b.deltas {
		b.deltas[i] = meanOf(new, b.new[i]) - meanOf(old, b.old[i])
	}
	slices.Sort(b.deltas)
	k := int(expanded(min(len(old), len(new))) * resamples)
	return b.deltas[k], b.deltas[resamples-1-k]
}

// meanOf is the mean of the values that were drawn.
func meanOf(values []float64, drawn []int32) float64 {
	sum := 0.0
	for _, r := range drawn {
		sum += values[r]
	}
	return sum / float64(len(drawn))
}

// expanded is the part of a bootstrap's results beyond each end of a 95 % interval, for samples
// of n.
func expanded(n int) float64 {
	t := studentQuantile(float64(n - 1))
	return stats.StdNormal.CDF(-t * math.Sqrt(float64(n)/float64(n-1)))
}

// studentQuantile is the point beyond which 2.5 % of Student's distribution lie.
func studentQuantile(freedom float64) float64 {
	low, high := 0.0, 13.0 // 12.7 for one degree of freedom
	for range 50 {
		mid := (low + high) / 2
		if (stats.TDist{V: freedom}).CDF(mid) < 0.975 {
			low = mid
		} else {
			high = mid
		}
	}
	return high
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
