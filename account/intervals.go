package account

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// What single intervals are judged by.
const (
	apartSeconds = 0.002 // between the readings of two counters, at least
	readSeconds  = 5e-6  // a reading takes: one counter of one processor after the other is read
	intervalsBad = 2     // one alone may be a pause of the machine
	chanceWrong  = 0.01  // that one interval of all appears to break a relation by multiplexing
)

// CheckIntervals adds the checks of identities in each interval that the sum has kept, and in
// blocks of neighbours. What holds at each moment holds in each interval, so the one that is
// nearest to the bound decides. Relations with a condition are about whole programs. Counters
// are read one after the other, so a failure is suspect, and contradicts nothing.
func (b *Binding) CheckIntervals(a *Account) {
	blocks := a.table.Kept(a.place.Self)
	if len(blocks) == 0 || a.Scope.Code != nil || len(a.place.LP) > 0 {
		return
	}
	failing := map[int]bool{}
	for i := range a.Checks {
		failing[a.Checks[i].rule] = a.Checks[i].State == Fails
	}
	w := b.newWindows(a)
	for i := range b.checks {
		if r := &b.checks[i]; r.common && r.Identity && r.when == nil && !r.dead && r.err == "" && !failing[i] {
			w.rules = append(w.rules, i)
		}
	}
	single, joined := make([]broken, len(w.rules)), make([]broken, len(w.rules))
	for _, rows := range blocks {
		w.many += (len(rows) + 1) * len(w.rules)
	}
	for _, rows := range blocks {
		apart := w.readApart(rows)
		for k := range rows {
			w.try(rows[k:k+1], max(apart[max(k-1, 0)], apart[k], apart[min(k+1, len(rows)-1)]), single)
		}
		most := 0.0
		for _, x := range apart {
			most = max(most, x)
		}
		w.try(rows, most, joined)
	}
	for k, i := range w.rules {
		of, parts := &single[k], "intervals"
		if joined[k].failing > of.failing {
			of, parts = &joined[k], "blocks of intervals"
		}
		if of.failing >= intervalsBad {
			c := of.worst
			c.Name, c.Identity, c.Error, c.rule = "in each interval: "+c.Name, false, of.error, -1
			c.Text = fmt.Sprintf("It holds in the sum, and fails in %d of %d %s. %s", of.failing, of.tried, parts, b.checks[i].Fails)
			a.Checks = append(a.Checks, c)
		}
	}
}

// A broken relation fails in some windows.
type broken struct {
	failing, tried int
	worst          Check
	by, error      float64 // of the worst
}

// windows evaluates relations over some intervals of an account.
type windows struct {
	b     *Binding
	of, a *Account // a is of the window
	rules []int
	many  int // times that a relation is tried
}

func (b *Binding) newWindows(of *Account) *windows {
	n := len(of.in)
	a := &Account{Binding: b, Scope: of.Scope, Duration: math.NaN(), workings: workings{seen: make([]observation, n), in: make([]float64, n)}}
	for i := range a.in {
		a.in[i], a.seen[i] = math.NaN(), unseen
	}
	a.table = counts.NewTable(&counts.Layout{Columns: b.Layout.Columns, Scopes: []counts.Scope{of.Scope}})
	a.table.Relative = of.table.Relative
	return &windows{b: b, of: of, a: a}
}

// readApart is how far apart the counters were read in each interval, in nanoseconds: their
// enabled times differ by it.
func (w *windows) readApart(rows [][]counts.Cell) []float64 {
	list := make([]float64, len(rows))
	for k, row := range rows {
		least, most := math.Inf(1), 0.0
		for i := range row {
			if e := row[i].Enabled; e > 0 && w.b.core[i] {
				least, most = min(least, e), max(most, e)
			}
		}
		list[k] = max(most-least, 0)
	}
	return list
}

// try evaluates the relations over the sum of some intervals.
func (w *windows) try(rows [][]counts.Cell, apart float64, into []broken) {
	a := w.a
	sum := a.table.Row(0)
	clear(sum)
	for _, row := range rows {
		for i := range row {
			sum[i].Add(&row[i])
		}
	}
	a.sizes = a.sizes[:0]
	w.b.readSlots(a.table, a.place, a)
	apart += 1e9 * (apartSeconds + readSeconds*float64(len(sum))) * float64(max(1, w.of.Scope.CPUs))
	certainty := math.Sqrt(2*math.Log(2*float64(w.many)/chanceWrong)) / certain // as many normal deviates are at most
	for k, i := range w.rules {
		r := &w.b.checks[i]
		c := r.check
		w.b.relate(a, r, &c)
		if c.State == Skipped {
			continue
		}
		f := &into[k]
		f.tried++
		if c.State == Holds {
			continue
		}
		allowed := certainty*c.Error + w.shifted(r, apart)
		by := math.Abs(c.Residual) - c.Tolerance - allowed
		if math.IsNaN(by) || by <= 0 {
			continue
		}
		if f.failing++; by > f.by {
			f.worst, f.by, f.error = c, by, allowed
		}
	}
}

// shifted is how much the counts of a relation can differ because they were read apart: the
// part of a count that its highest rate makes in that time.
func (w *windows) shifted(r *boundRule, apart float64) (most float64) {
	for _, at := range r.deps {
		for _, col := range w.b.columnsOf(w.b.slotAt(at)) {
			c, ok := w.b.scaled(w.a.table, 0, col)
			if course := w.of.table.Course(w.of.place.Self, col); ok && course != nil && c.Estimate() > 0 {
				most = max(most, course.Peak*w.b.scale[col]*apart/c.Estimate())
			}
		}
	}
	return most
}
