package counts

import "math"

// A history keeps a scope's intervals, in blocks of neighbours. If there are too many,
// every second block goes, so that the rest stands for all of the recording.
type history struct {
	blocks []block
	number int // of the block that the next interval belongs to
	at     int // place of the next interval in it
	stride int // one block of so many is kept
	most   int // blocks; 0 if nothing is kept
}

// A block is some neighbouring intervals: by interval and column the rate per
// nanosecond enabled, NaN if nothing was counted, and the times counted and enabled.
type block struct {
	number                int
	rows                  int
	rates, times, enabled []float64
}

const (
	blockRows   = 16
	blocksMost  = 16      // of a scope
	historyMost = 4 << 20 // numbers, of all scopes
)

// newHistory returns the history of one of the scopes of a table with so many cells.
func newHistory(cells int) history {
	return history{stride: 1, most: min(blocksMost, historyMost/(3*blockRows*max(cells, 1)))}
}

// step adds an interval.
func (h *history) step(row []Cell) {
	if h.most < 2 {
		return
	}
	if h.number%h.stride == 0 {
		if h.at == 0 {
			h.begin(len(row))
		}
		h.blocks[len(h.blocks)-1].add(row)
	}
	if h.at++; h.at == blockRows {
		h.at = 0
		h.number++
	}
}

// begin begins a block, after every second one has gone if there are too many.
func (h *history) begin(columns int) {
	if len(h.blocks) == h.most {
		h.stride *= 2
		var kept, gone []block
		for _, b := range h.blocks {
			if b.number%h.stride == 0 {
				kept = append(kept, b)
			} else {
				gone = append(gone, b)
			}
		}
		h.blocks = kept
		if h.number%h.stride != 0 {
			h.number += h.stride - h.number%h.stride
		}
		gone[0].number, gone[0].rows = h.number, 0
		h.blocks = append(h.blocks, gone[0])
		return
	}
	n := blockRows * columns
	h.blocks = append(h.blocks, block{number: h.number, rates: make([]float64, n), times: make([]float64, n), enabled: make([]float64, n)})
}

func (b *block) add(row []Cell) {
	at := b.rows * len(row)
	b.rows++
	for k := range row {
		c := &row[k]
		b.rates[at+k], b.times[at+k], b.enabled[at+k] = math.NaN(), 0, 0
		if c.Ok() && c.Enabled > 0 && c.Running > 0 {
			b.rates[at+k], b.times[at+k], b.enabled[at+k] = c.Estimate()/c.Enabled, c.Running, c.Enabled
		}
	}
}

// Kept returns the intervals of a scope that were kept while they were summed, in blocks of
// neighbours: the cells of each by column. It is nil unless the table sums intervals.
func (t *Table) Kept(scope int) [][][]Cell {
	if scope >= len(t.histories) {
		return nil
	}
	n := len(t.Columns)
	var blocks [][][]Cell
	for _, b := range t.histories[scope].blocks {
		cells := make([]Cell, b.rows*n)
		var rows [][]Cell
		for i := range b.rows {
			for k := i * n; k < (i+1)*n; k++ {
				cells[k] = Cell{State: NotCounted}
				if !math.IsNaN(b.rates[k]) {
					cells[k] = Cell{State: Counted, Value: b.rates[k] * b.times[k], Enabled: b.enabled[k], Running: b.times[k]}
				}
			}
			rows = append(rows, cells[i*n:(i+1)*n])
		}
		blocks = append(blocks, rows)
	}
	return blocks
}

// A Spread of a group is narrowed by what else is known of its intervals. The error of
// multiplexing does not show in what other groups counted, which is of other moments. So what
// they predict of a group's counts is no error. What they do not predict is at least the error
// (of regression estimators: W. G. Cochran, Sampling Techniques, section 7).
const (
	components  = 4    // principal components of the other groups' rates that predict
	squaresOf   = 2    // components whose products do, too
	freedomLeft = 8    // that a prediction must leave
	mostlySeen  = 0.95 // of the intervals, for a column to predict with
	differences = 1    // the highest order of differences
)

// A prediction predicts the counts of groups in the intervals of a history.
type prediction struct {
	layout    *Layout
	sums      []Cell
	instants  []instant
	exclusive bool // no two multiplexed groups are counted at one time
}

// An instant is an interval in a history.
type instant struct {
	rates, times []float64 // by column
	first        bool      // it does not follow the one before
}

func newPrediction(t *Table, scope int, h *history) *prediction {
	p := &prediction{layout: t.Layout, sums: t.Row(scope), exclusive: exclusive(t.Layout, t.Row(scope))}
	n := len(t.Columns)
	for i := range h.blocks {
		b := &h.blocks[i]
		for k := range b.rows {
			p.instants = append(p.instants, instant{b.rates[k*n : (k+1)*n], b.times[k*n : (k+1)*n],
				k == 0 && (i == 0 || h.blocks[i-1].number+1 != b.number)})
		}
	}
	return p
}

// exclusive reports whether no two multiplexed groups of a row are counted at one time:
// their shares add up to no more than all of it.
func exclusive(l *Layout, row []Cell) bool {
	const rounding = 0.02
	shares := map[int]float64{}
	sum := 0.0
	for i, c := range l.Columns {
		share := row[i].Coverage()
		if !row[i].Ok() || share >= always {
			continue
		}
		if c.Group <= 0 || math.IsNaN(share) {
			return false
		}
		shares[c.Group] = max(shares[c.Group], share)
	}
	for _, s := range shares {
		sum += s
	}
	return sum <= 1+rounding
}

const always = 0.9999 // of the time: perf prints two decimals of a percentage

// predictors are the columns that can predict those of a group: what was always
// counted and what other groups counted. whole reports whether there is any of the first.
func (p *prediction) predictors(group int) (columns []int, whole bool) {
	for i, c := range p.layout.Columns {
		cell := &p.sums[i]
		full := cell.Ok() && cell.Coverage() >= always
		if !full && !(p.exclusive && group > 0 && c.Group > 0 && c.Group != group) {
			continue
		}
		seen := 0
		for _, at := range p.instants {
			if !math.IsNaN(at.rates[i]) {
				seen++
			}
		}
		if float64(seen) >= mostlySeen*float64(len(p.instants)) {
			columns, whole = append(columns, i), whole || full
		}
	}
	return columns, whole
}

// residuals returns what is left of the covariances of a drift's columns as more predicts them,
// per time counted.
func (p *prediction) residuals(d *drift, share float64) [][]float64 {
	others, whole := p.predictors(p.layout.Columns[d.columns[0]].Group)
	rows := p.complete(d.columns, others)
	if len(rows) < freedomLeft {
		return nil
	}
	var basis [][]float64
	for _, c := range others {
		if x := standardised(rows, c); x != nil {
			basis = append(basis, x)
		}
	}
	basis = withSquares(principal(basis))
	times := make([]float64, len(rows))
	for i, at := range rows {
		times[i] = math.Inf(1)
		for _, c := range d.columns {
			times[i] = min(times[i], at.times[c])
		}
	}
	var list [][]float64
	for order := 0; order <= differences; order++ {
		target := make([][]float64, len(d.columns))
		for k, c := range d.columns {
			target[k] = difference(rows, times, order, func(i int) float64 { return rows[i].rates[c] })
		}
		r := regression{target: target, free: len(target[0])}
		if order == 0 {
			r.add(difference(rows, times, order, func(int) float64 { return 1 }))
			list = r.put(list, 1)
		}
		for _, x := range basis {
			r.add(difference(rows, times, order, func(i int) float64 { return x[i] }))
			// What was always counted also predicts part of the noise that the group missed.
			// The share must not take that off again.
			by := 1.0
			if whole {
				by = 1 / (1 - share)
			}
			list = r.put(list, by)
		}
	}
	return list
}

// complete returns the intervals with counts of all columns.
func (p *prediction) complete(columns, others []int) []instant {
	var rows []instant
	gap := true
	for _, at := range p.instants {
		ok := true
		for _, list := range [][]int{columns, others} {
			for _, c := range list {
				ok = ok && !math.IsNaN(at.rates[c])
			}
		}
		if gap = gap || at.first; ok {
			at.first, gap = gap, false
			rows = append(rows, at)
		} else {
			gap = true
		}
	}
	return rows
}

// standardised are the rates of a column with a mean of 0 and a length of 1; nil if they
// are constant.
func standardised(rows []instant, column int) []float64 {
	x := make([]float64, len(rows))
	mean := 0.0
	for i := range x {
		x[i] = rows[i].rates[column]
		mean += x[i] / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
	}
	if !(dot(x, x) > 1e-18*mean*mean) {
		return nil
	}
	scale(x, 1/math.Sqrt(dot(x, x)))
	return x
}

// principal are the first principal components of some series, by the power method.
func principal(xs [][]float64) [][]float64 {
	const rounds, least = 40, 1e-6
	n := len(xs)
	m := make([]float64, n*n)
	for a := range xs {
		for b := range xs {
			m[a*n+b] = dot(xs[a], xs[b])
		}
	}
	var list [][]float64
	for len(list) < min(components, n) {
		v, w, length := make([]float64, n), make([]float64, n), 0.0
		for i := range v {
			v[i] = 1 + float64(i)/float64(n)
		}
		for range rounds {
			for i := range w {
				w[i] = dot(m[i*n:(i+1)*n], v)
			}
			if length = math.Sqrt(dot(w, w)); !(length > least) {
				return list
			}
			for i := range w {
				v[i] = w[i] / length
			}
		}
		x := make([]float64, len(xs[0]))
		for i := range v {
			addTimes(x, xs[i], v[i])
		}
		list = append(list, x)
		for a := range v {
			addTimes(m[a*n:(a+1)*n], v, -length*v[a])
		}
	}
	return list
}

// withSquares adds the products of the first components, for what does not change in
// proportion.
func withSquares(xs [][]float64) [][]float64 {
	for a := range min(squaresOf, len(xs)) {
		for b := range a + 1 {
			x := make([]float64, len(xs[a]))
			for i := range x {
				x[i] = xs[a][i] * xs[b][i] * float64(len(x))
			}
			xs = append(xs, x)
		}
	}
	return xs
}

// difference is a series, or its first differences, in units of their size for noise of
// variance 1 per time.
func difference(rows []instant, times []float64, order int, value func(i int) float64) []float64 {
	list := make([]float64, 0, len(rows))
	for i := range rows {
		switch {
		case order == 0:
			list = append(list, value(i)*math.Sqrt(times[i]))
		case !rows[i].first:
			list = append(list, (value(i)-value(i-1))/math.Sqrt(1/times[i-1]+1/times[i]))
		}
	}
	return list
}

// A regression takes from some series what others predict.
type regression struct {
	target [][]float64
	basis  [][]float64 // orthogonal, of length 1
	free   int         // degrees of freedom that are left
}

// add predicts with one more series.
func (r *regression) add(x []float64) {
	before := dot(x, x)
	for range 2 { // the second time takes off what rounding left
		for _, o := range r.basis {
			addTimes(x, o, -dot(x, o))
		}
	}
	after := dot(x, x)
	if !(after > 1e-12*before) {
		return
	}
	scale(x, 1/math.Sqrt(after))
	r.basis = append(r.basis, x)
	r.free--
	for _, y := range r.target {
		addTimes(y, x, -dot(y, x))
	}
}

// put adds the covariances of what is left to a list, unless too little is left to
// know them. As the least of a list is used, one with many predictors counts for more: as
// much as predicting anew would be wrong (P. Craven and G. Wahba, Smoothing noisy data
// with spline functions, 1979).
func (r *regression) put(list [][]float64, by float64) [][]float64 {
	if r.free < freedomLeft {
		return list
	}
	n := len(r.target)
	free := float64(r.free)
	by *= float64(len(r.target[0])) / (free * free)
	m := make([]float64, n*n)
	for a := range r.target {
		for b := range r.target {
			m[a*n+b] = dot(r.target[a], r.target[b]) * by
		}
	}
	return append(list, m)
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func addTimes(x, y []float64, k float64) {
	for i := range x {
		x[i] += k * y[i]
	}
}

func scale(x []float64, k float64) {
	for i := range x {
		x[i] *= k
	}
}
