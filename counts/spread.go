package counts

import "math"

// A Spread is the error of multiplexing of one group of events: how much the sums
// would differ if the group had been counted at other moments of the same time. It
// follows from the changes of the counts from one interval to the next.
type Spread struct {
	Columns []int   // of the table
	Share   float64 // of the time during which the group was counted
	Steps   int     // triples of neighbouring intervals that it rests on
	// Group reports whether the columns are known to have been counted together.
	// A column whose group is not known has a spread for itself.
	Group bool

	first, second []float64   // len(Columns)²: covariances of the sums by two estimators
	exclusive     bool        // no other multiplexed group was counted at the same time
	shared        float64     // the mean correlation of two events of one group
	known         [][]float64 // the same of what other intervals and other events do not predict
}

// Spreads returns the variation of a scope's counts, one for each multiplexed group
// of events; nil if the table is no sum of intervals.
func (t *Table) Spreads(scope int) []Spread {
	if scope >= len(t.spreads) {
		return nil
	}
	return t.spreads[scope]
}

// Variance returns the variance of a weighted sum of the columns' counts. It assumes that
// the counts of each moment are independent. The part 1 − Share of it is the error of
// counting for that share only (W. G. Cochran, Sampling Techniques, section 2.6). freedom is
// how many independent values would know it as well, less one: by simulation.
//
// Let N be the variance from moment to moment, and J the square of each jump between phases.
// First differences find N and half of J, second differences N and a third of J. The error of
// regular multiplexing has N, but a twelfth of J: a jump falls anywhere into a rotation. One
// and a half times the second less half of the first has a quarter of J, which is safe. It is
// kept at a third of the second at least. If there are few intervals, the first alone are used.
// What other groups predict is no error, so the least is taken of all that is known.
func (s *Spread) Variance(weights []float64) (variance, freedom float64) {
	first, second := quadratic(s.first, weights), quadratic(s.second, weights)
	variance, freedom = max(1.5*second-0.5*first, second/3, 0), 0.3*float64(s.Steps)
	if s.Steps < fewSteps {
		variance, freedom = max(first, 0), 2.0/3*float64(s.Steps+1)
	}
	for _, m := range s.known {
		variance = min(variance, max(quadratic(m, weights), 0))
	}
	return variance, freedom
}

// fewSteps is how many triples second differences need.
const fewSteps = 20

// Covariance returns the covariance of the errors of two groups' weighted sums, at least 0.
// Errors of two disjoint shares f of one time have the covariance −f C; C is that of counts of
// one moment. Its size is at most √(V V'). Nothing shows C itself, as no moment has counts of
// both. It is taken to be as that of events of one group: what all of them share.
func (s *Spread) Covariance(o *Spread, weights, others []float64) float64 {
	v, _ := s.Variance(weights)
	w, _ := o.Variance(others)
	f, g := s.Share, o.Share
	if !s.exclusive || !o.exclusive { // part of their time may be the same
		f, g = max(f, 1-f), max(g, 1-g)
		return math.Sqrt(f * v * g * w)
	}
	return min(max(-math.Sqrt(f*g)*s.shared*s.common(weights)*o.common(others), 0), math.Sqrt(f*v*g*w))
}

// common is the standard error of a weighted sum of columns that vary together, with the
// weights' sign.
func (s *Spread) common(weights []float64) float64 {
	m, sum := s.latest(), 0.0
	for i, w := range weights {
		sum += w * math.Sqrt(max(m[i*len(weights)+i], 0))
	}
	return sum
}

// latest are the covariances that the most is taken from.
func (s *Spread) latest() []float64 {
	if n := len(s.known); n > 0 {
		return s.known[n-1]
	}
	return s.second
}

// share gives some spreads the mean correlation of two events that were counted together.
func share(spreads []Spread) {
	sum, pairs := 0.0, 0
	for k := range spreads {
		s := &spreads[k]
		m, n := s.latest(), len(s.Columns)
		for i := range n {
			for j := range i {
				if v := m[i*n+i] * m[j*n+j]; v > 0 {
					sum += m[i*n+j] / math.Sqrt(v)
					pairs++
				}
			}
		}
	}
	for k := range spreads {
		spreads[k].shared = 1
		if pairs > 0 {
			spreads[k].shared = min(max(sum/float64(pairs), 0), 1)
		}
	}
}

// quadratic is the quadratic form wᵀ m w.
func quadratic(m, w []float64) float64 {
	sum := 0.0
	for i := range w {
		if w[i] == 0 {
			continue
		}
		for j := range w {
			sum += w[i] * w[j] * m[i*len(w)+j]
		}
	}
	return sum
}

// A drift follows the counts of one group in one scope from interval to interval. Let r be the
// rates of neighbouring intervals, t the times they were counted, and s² the variance per time.
// Then (r' − r)² has the mean s² (1/t + 1/t'). So each pair of intervals estimates s², and each
// triple does by (r − 2 r' + r″)². Slow changes of the program hardly count, and they do not
// harm multiplexed groups. These are the estimators of the variance of a systematic sample by
// successive differences (J. von Neumann and others, Annals of Mathematical Statistics 12,
// 1941; K. M. Wolter, Introduction to Variance Estimation, chapter 8), for all pairs of
// columns.
type drift struct {
	columns []int
	group   bool

	seen          int          // intervals that counted the group
	rates         [3][]float64 // of the last of them, the latest first, per nanosecond enabled
	times         [3]float64   // ns of counting
	enabled       float64      // ns of the intervals that counted the group
	scale         float64      // of a variance per time counted to that of the sum of scaled counts
	first, second []float64    // sums of products of differences
	change        []float64    // scratch
}

func newDrift(group bool, columns ...int) *drift {
	n := len(columns)
	d := &drift{columns: columns, group: group, first: make([]float64, n*n), second: make([]float64, n*n), change: make([]float64, n)}
	for i := range d.rates {
		d.rates[i] = make([]float64, n)
	}
	return d
}

// step takes the counts of the next interval. It skips an interval if any of the
// columns was not counted.
func (d *drift) step(row []Cell) {
	time := math.Inf(1)
	for _, c := range d.columns {
		if !row[c].Ok() || row[c].Enabled <= 0 {
			return
		}
		time = min(time, row[c].Running)
	}
	if time <= 0 {
		return
	}
	d.rates[0], d.rates[1], d.rates[2] = d.rates[2], d.rates[0], d.rates[1]
	d.times[0], d.times[1], d.times[2] = time, d.times[0], d.times[1]
	for k, c := range d.columns {
		d.rates[0][k] = row[c].Estimate() / row[c].Enabled
	}
	enabled := row[d.columns[0]].Enabled
	d.scale += enabled * (enabled / time)
	d.enabled += enabled
	d.seen++
	r := &d.rates
	if d.seen > 1 {
		for k := range d.change {
			d.change[k] = r[0][k] - r[1][k]
		}
		d.add(d.first, 1/(1/d.times[0]+1/d.times[1]))
	}
	if d.seen > 2 {
		for k := range d.change {
			d.change[k] = r[0][k] - 2*r[1][k] + r[2][k]
		}
		d.add(d.second, 1/(1/d.times[0]+4/d.times[1]+1/d.times[2]))
	}
}

// add adds the products of the changes.
func (d *drift) add(sums []float64, weight float64) {
	for i, x := range d.change {
		row := sums[i*len(d.change) : (i+1)*len(d.change)]
		for j, y := range d.change {
			row[j] += x * y * weight
		}
	}
}

// spread is what has been found out, for the row of the sums; false if nothing.
func (d *drift) spread(row []Cell, p *prediction) (Spread, bool) {
	s := Spread{Columns: d.columns, Share: 1, Steps: d.seen - 2, Group: d.group, exclusive: d.group && p.exclusive}
	for _, c := range d.columns {
		if share := row[c].Coverage(); share < s.Share {
			s.Share = share
		}
	}
	c := &row[d.columns[0]]
	if s.Steps <= 0 || s.Share == 1 || c.Running <= 0 {
		return s, false
	}
	// An interval's count is scaled from the time counted to the time enabled. Their sum is
	// scaled to include the intervals without the group.
	whole := c.Enabled / d.enabled
	scale := d.scale * whole * whole
	s.first = scaledBy(d.first, scale/float64(d.seen-1))
	s.second = scaledBy(d.second, scale/float64(d.seen-2))
	for _, m := range p.residuals(d, s.Share) {
		s.known = append(s.known, scaledBy(m, scale))
	}
	return s, true
}

func scaledBy(m []float64, k float64) []float64 {
	out := make([]float64, len(m))
	for i := range m {
		out[i] = m[i] * k
	}
	return out
}

// driftsOf are the drifts to follow for a layout: one for each group, and one
// for each column whose group is not known.
func driftsOf(l *Layout) []*drift {
	groups := map[int][]int{}
	var order []int
	var list []*drift
	for i, c := range l.Columns {
		if c.Group <= 0 {
			list = append(list, newDrift(false, i))
			continue
		}
		if groups[c.Group] == nil {
			order = append(order, c.Group)
		}
		groups[c.Group] = append(groups[c.Group], i)
	}
	for _, g := range order {
		list = append(list, newDrift(true, groups[g]...))
	}
	return list
}
