package account

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// Accounts of the same binding that follow each other, as those of intervals, have much in
// common. What does not change from one to the next is found here, once.

// Computable says of each node why no counts of the layout's events can make it known: the
// zero Note for a node that they may make known.
func (b *Binding) Computable() []counts.Note {
	t := counts.NewTable(b.Layout)
	a := b.prepare(t, Place{}, nil)
	can := make([]bool, len(b.nodes))
	// Formulas choose among their parts by the counts, so several kinds of counts are tried.
	for _, step := range []float64{0, 1, -1, 17} {
		for n, k := range b.live {
			at := b.slotIndex(k)
			a.in[at], a.seen[at] = 1e6+step*1e4*float64(n), observation{cover: 1}
		}
		b.compute(a)
		b.judgeCoverage(a)
		for i := range can {
			can[i] = can[i] || a.Nodes[i].Known()
		}
	}
	why := make([]counts.Note, len(b.nodes))
	for i := range why {
		if !can[i] {
			why[i] = b.why(a, i)
		}
	}
	return why
}

// nodeColumns lists the columns of the layout that each node's value may rest on.
func (b *Binding) nodeColumns() [][]int {
	list := make([][]int, len(b.nodes))
	for i := range list {
		for _, input := range b.nodes[i].inputs {
			for _, alternative := range b.columns[input] {
				list[i] = union(list[i], alternative)
			}
		}
	}
	return list
}

// A reasoned is why a node was not known, and the inputs that say so.
type reasoned struct {
	in  []float64
	why counts.Note
}

// reason says why a node is not known. Neighbouring accounts often have the same inputs
// where nothing is known, such as those of idle processors. So the last reason is kept.
func (a *Account) reason(node int) counts.Note {
	b := a.Binding
	if len(a.whys) != len(b.nodes) {
		a.whys = make([]reasoned, len(b.nodes))
	}
	last := &a.whys[node]
	n, same := 0, last.in != nil
	look := func(slots []int) {
		for _, at := range slots {
			v := a.in[at]
			if n == len(last.in) {
				last.in, same = append(last.in, v), false
			} else if math.Float64bits(last.in[n]) != math.Float64bits(v) {
				last.in[n], same = v, false
			}
			n++
		}
	}
	look(b.nodes[node].deps)
	look(b.ofDeps)
	for above := node; b.Method.Model.Nodes[above].Rest; { // its reason is that of its parent
		above = b.Method.Model.Nodes[above].Above
		look(b.nodes[above].deps)
	}
	if !same {
		last.why = b.why(a, node)
	}
	return last.why
}
