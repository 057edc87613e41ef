package valgrind

import (
	"cmp"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// fill makes the table.
func (r *Reader) fill() {
	derived, weights := r.weights()
	scopes, sums := r.scopes()
	l := &counts.Layout{}
	shown := r.shown()
	for _, i := range shown {
		l.Columns = append(l.Columns, counts.Column{Event: r.events[i]})
	}
	for _, d := range derived {
		l.Columns = append(l.Columns, counts.Column{Event: d.name})
	}
	exposure, known := r.exposure(r.total())
	if known {
		l.Columns = append(l.Columns, exposure.columns()...)
	}
	rows := r.rows(len(l.Columns))
	if r.places.others >= 0 {
		rows = append(rows, r.places.others)
	}
	t := &r.table
	t.Label, t.CPU, t.NoError, t.Notes = r.header.command, cmp.Or(r.header.cpu, AnyCPU), r.few(), r.notes()
	part := func(rows []int) {
		l := &counts.Layout{Columns: l.Columns, Scopes: slices.Clone(scopes)}
		sums := slices.Clone(sums)
		for _, row := range rows {
			l.Scopes, sums = append(l.Scopes, r.scope(row)), append(sums, r.places.at(row))
		}
		t.Reset(l)
		for i, list := range sums {
			put(t, i, shown, list, weights)
		}
		for i := 0; known && i < len(l.Scopes); i++ {
			cells := t.Row(i)[len(shown)+len(derived):]
			switch {
			case i >= len(scopes):
				row := rows[i-len(scopes)]
				exposure.put(cells, r.places.at(row), r.places.chained[row])
			case len(scopes) == 1:
				exposure.put(cells, sums[i], r.chained)
			default: // the chained loads are not known by task
				exposure.put(cells, sums[i], [2]float64{})
			}
		}
		r.sampled(t, shown, sums)
	}
	if r.opts.Part == nil {
		part(rows)
		return
	}
	for rows := range slices.Chunk(rows, partRows) {
		part(rows)
		r.opts.Part(t)
	}
}

// partRows is how many places Options.Part is given at a time.
const partRows = 1024

// rows returns the rows of places that the table has, if it has so many columns. Others are
// joined to one, or left out if the options say how many there may be.
func (r *Reader) rows(columns int) []int {
	most := max(1, maxCells/max(1, columns)-2)
	if n := r.opts.Rows; n > 0 && n <= most {
		rows, rest := r.places.largest(n, r.cycles())
		if len(rest) > 0 {
			r.places.others = -1
		}
		return rows
	}
	rows, rest := r.places.largest(most, []int{0})
	r.join(rest)
	return rows
}

// cycles are the columns of events that are cycles; the first column if none is.
func (r *Reader) cycles() (columns []int) {
	for i, e := range r.events {
		if slices.Contains(cycleEvents, e) {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 {
		return []int{0}
	}
	return columns
}

// cycleEvents are cycles, and what is estimated in them.
var cycleEvents = []string{"Ct", "Cbt", "C2t", "C3t", "Cmt", pageEvent, untimed}

// join puts rows together with the others.
func (r *Reader) join(rows []int) {
	p := r.places
	if len(rows) > 0 && p.others < 0 {
		p.others = p.add(key{}, &position{})
	}
	for _, row := range rows {
		for i, v := range p.chained[row] {
			p.chained[p.others][i] += v
		}
		for c, v := range p.at(row) {
			p.at(p.others)[c] += v
		}
	}
}

// put writes the counts of a scope, and the derived ones.
func put(t *counts.Table, scope int, shown []int, sums []float64, weights [][]float64) {
	for c, i := range shown {
		*t.Cell(scope, c) = counted(sums[i])
	}
	for d, list := range weights {
		v := 0.0
		for i, w := range list {
			v += w * sums[i]
		}
		*t.Cell(scope, len(shown)+d) = counted(v)
	}
}

func counted(v float64) counts.Cell { return counts.Cell{Value: v, State: counts.Counted} }
