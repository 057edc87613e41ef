package account

import (
	"cmp"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// smallest is the least part of the whole that is worth a line below the first level.
const smallest = 0.005

// Essential returns the nodes that matter most, at most so many, in the order of the
// tree: the first level, the bottleneck with its siblings, what is flagged, and then the
// largest. A node comes with those above it. Shown says which may be among them. If the main
// tree is not known, they are of the other sections.
func (a *Account) Essential(shown []bool, most int) []int {
	m := a.Model()
	main := false
	for i := range m.Nodes {
		main = main || m.Nodes[i].Section == "" && m.Nodes[i].Level > 0 && a.Nodes[i].Known()
	}
	type candidate struct {
		node, rank int
		part       float64
	}
	var list []candidate
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if !shown[i] || !a.Nodes[i].Known() || main && n.Section != "" {
			continue
		}
		c := candidate{i, a.rank(i), a.partOfWhole(i)}
		if c.rank >= rankFlagged && a.hangs(i) {
			continue
		}
		if c.rank == rankOther && main && math.Abs(c.part) < smallest {
			continue
		}
		list = append(list, c)
	}
	sorting.Stable(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(math.Abs(y.part), math.Abs(x.part)))
	})
	chosen := map[int]bool{}
	for _, c := range list {
		var missing []int
		for i := c.node; i >= 0 && !chosen[i]; i = m.Nodes[i].Above {
			missing = append(missing, i)
		}
		if len(chosen)+len(missing) > most {
			continue
		}
		for _, i := range missing {
			chosen[i] = true
		}
	}
	var nodes []int
	for i := range m.Nodes {
		if chosen[i] {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// hangs reports whether a node above another is not known.
func (a *Account) hangs(i int) bool {
	m := a.Model()
	for i = m.Nodes[i].Above; i >= 0; i = m.Nodes[i].Above {
		if !a.Nodes[i].Known() {
			return true
		}
	}
	return false
}

// The ranks of nodes, most important first.
const (
	rankFirst   = iota // the bottleneck path, and the first level
	rankSibling        // of the path
	rankFlagged
	rankOther
)

func (a *Account) rank(i int) int {
	n := &a.Model().Nodes[i]
	rival := slices.ContainsFunc(a.Rivals, func(r Rival) bool { return r.Node == i })
	switch {
	case n.Section == "" && n.Level <= 1, slices.Contains(a.Bottleneck, i), rival:
		return rankFirst
	case n.Above >= 0 && slices.Contains(a.Bottleneck, n.Above):
		return rankSibling
	case a.Nodes[i].Flagged && a.Nodes[i].Reliable():
		return rankFlagged
	}
	return rankOther
}

// partOfWhole is a node's part of the whole, or its value if it has none.
func (a *Account) partOfWhole(i int) float64 {
	m := a.Model()
	root := i
	for root >= 0 && m.Nodes[root].Above >= 0 {
		root = m.Nodes[root].Above
	}
	switch v := a.Nodes[i].Value; {
	case m.Share(i):
		return v
	case m.Nodes[i].Section == "" && a.Nodes[root].Known() && a.Nodes[root].Value != 0:
		return v / a.Nodes[root].Value
	default:
		return v
	}
}
