package plan

import (
	"math"
	"slices"
)

// Weights are integers. groupWeight is the weight of a group in the linear
// programme's solution. A group that is heavier by at most slack does not disprove
// the solution.
const (
	groupWeight = 1 << 20
	slack       = groupWeight >> 12
)

// lowerBound returns a lower bound on the number of groups for the units. It stops
// when it has found enough. It starts from groups, and effort limits the number of
// candidates.
//
// Give every unit a weight. If no group is heavier than W, there are at least as many
// groups as the weights' sum has W. The best weights solve a linear programme, the dual
// of choosing fractions of groups that cover the units. Its columns are generated one by
// one, each the heaviest group for the weights so far. That is Gilmore and Gomory's
// method for cutting stock. The bound does not depend on the programme's arithmetic:
// weights are rounded to integers, and a complete search shows that no group is heavier
// than W.
func lowerBound(s *space, units []set, groups, more [][]int, effort int) int {
	enough := len(groups)
	best := counting(s, units)
	if best >= enough {
		return best
	}
	p := newPricer(s, units)
	lp := newMaster(len(units), groups)
	pool := slices.Concat(groups, more)
	for effort > 0 {
		effort -= len(units) * len(units) / 16 // what the programme takes
		y := lp.duals()
		if column := violated(pool, y); column != nil {
			if !lp.enter(column) {
				break
			}
			continue
		}
		weight := make([]int64, len(y))
		sum := int64(0)
		for i, v := range y {
			weight[i] = int64(max(v, 0) * groupWeight)
			sum += weight[i]
		}
		group, most := p.heaviest(weight, groupWeight+slack, &effort)
		best = max(best, int((sum+most-1)/most))
		if best >= enough || group == nil || !lp.enter(group) {
			break
		}
		pool = append(pool, group)
	}
	return best
}

// violated returns the column with the largest gain for duals y, nil if none
// has any.
func violated(pool [][]int, y []float64) []int {
	const eps = 1e-6
	var column []int
	most := 1 + eps
	for _, group := range pool {
		sum := 0.0
		for _, u := range group {
			sum += max(y[u], 0)
		}
		if sum > most {
			most, column = sum, group
		}
	}
	if column == nil {
		return nil
	}
	var gaining []int
	for _, u := range column {
		if y[u] > 0 {
			gaining = append(gaining, u)
		}
	}
	return gaining
}

// counting returns the bound that counting gives: of the events of each limit a
// group takes so many.
func counting(s *space, units []set) int {
	if len(units) == 0 {
		return 0
	}
	all := newSet(len(s.demands))
	for _, u := range units {
		all.join(u)
	}
	best := 1
	for i := range s.limits {
		l := &s.limits[i]
		best = max(best, ceilDiv(all.common(l.events)+all.common(l.paired), l.most))
	}
	for i := range s.kinds {
		r := &s.kinds[i]
		n := 0
		for _, v := range r.values {
			if all.meets(v) {
				n++
			}
		}
		best = max(best, ceilDiv(n, r.most))
	}
	return best
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// A master is a linear programme: to cover every unit once by fractions of groups, as few
// in all as can be: a revised simplex method that keeps the inverse of the basis. That
// each is covered once, and not more often, is no restriction: what is left of a group
// without a unit is a group.
type master struct {
	inverse [][]float64
	x       []float64
}

// newMaster begins with the groups given, and each of their units alone.
func newMaster(units int, groups [][]int) *master {
	lp := &master{x: make([]float64, units)}
	for i := range units {
		row := make([]float64, units)
		row[i] = 1
		lp.inverse = append(lp.inverse, row)
		lp.x[i] = 1
	}
	for _, g := range groups {
		lp.enter(g)
	}
	return lp
}

// duals returns what covering each unit is worth.
func (lp *master) duals() []float64 {
	y := make([]float64, len(lp.x))
	for _, row := range lp.inverse {
		for j, v := range row {
			y[j] += v
		}
	}
	return y
}

// enter brings a group into the basis, and reports whether it could. Products
// are rounded before they are subtracted, on processors too that could do both at
// once: a plan is to be the same wherever it is made.
func (lp *master) enter(group []int) bool {
	const eps = 1e-9
	d := make([]float64, len(lp.x))
	for i, row := range lp.inverse {
		for _, u := range group {
			d[i] += row[u]
		}
	}
	leave, ratio := -1, math.Inf(1)
	for i := range d {
		if d[i] <= eps {
			continue
		}
		if r := lp.x[i] / d[i]; r < ratio-eps || r < ratio+eps && leave >= 0 && d[i] > d[leave] {
			leave, ratio = i, r
		}
	}
	if leave < 0 {
		return false
	}
	pivot := lp.inverse[leave]
	for j := range pivot {
		pivot[j] /= d[leave]
	}
	lp.x[leave] = ratio
	for i, row := range lp.inverse {
		if i == leave || d[i] == 0 {
			continue
		}
		for j := range row {
			row[j] -= float64(d[i] * pivot[j])
		}
		lp.x[i] = max(0, lp.x[i]-float64(d[i]*ratio))
	}
	return true
}
