package plan

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cyclestack/cyclestack/metric"
)

// A wish is what one node asks of a plan: that the events of each part share a
// group. Most nodes have one part, with all their events.
type wish struct {
	parts []set
	loose []bool // by part: a ratio is formed of its counts and those of others
}

func (w *wish) add(part set, loose bool) {
	w.parts = append(w.parts, part)
	w.loose = append(w.loose, loose)
}

// wish returns what a node asks for. Where its events cannot share a group the formula is
// taken apart where that hurts least: ratios that it is made of can come from other
// groups: what changes all counts of a group alike leaves them as they are.
func (in *inputs) wish(s *space, node int) wish {
	var w wish
	in.ask(s, &w, node)
	return w.tidy()
}

func (in *inputs) ask(s *space, w *wish, node int) {
	need := in.node(node)
	all := in.set(need.events)
	if all.empty() {
		return
	}
	if s.fits(all) {
		w.add(all, false)
		return
	}
	first := len(w.parts)
	for _, j := range need.shares {
		in.ask(s, w, j)
	}
	for i := first; need.mixed && i < len(w.parts); i++ {
		w.loose[i] = true
	}
	direct := need.direct
	if !s.fits(in.set(direct)) {
		var blocks [][]int
		blocks, direct = in.ratios(s, need)
		for _, b := range blocks {
			w.add(in.set(b), false)
		}
	}
	for whole := true; len(direct) > 0; whole = false {
		n := in.prefix(s, direct)
		whole = whole && n == len(direct)
		w.add(in.set(direct[:n]), !whole)
		direct = direct[n:]
	}
}

// tidy returns a wish without the parts that are within others.
func (w wish) tidy() wish {
	var out wish
	for i, part := range w.parts {
		if !slices.ContainsFunc(out.parts, func(p set) bool { return part.within(p) }) &&
			!slices.ContainsFunc(w.parts[i+1:], func(p set) bool { return part.within(p) && !p.within(part) }) && !part.empty() {
			out.add(part, w.loose[i])
		}
	}
	return out
}

// set returns events as a set, without those that take no counter.
func (in *inputs) set(events []int) set {
	s := newSet(len(in.events))
	for _, e := range events {
		if in.events[e].demand.can != 0 {
			s.add(e)
		}
	}
	return s
}

// prefix returns how many of the events, from the first on, can share a group;
// at least one.
func (in *inputs) prefix(s *space, events []int) int {
	for n := len(events); n > 1; n-- {
		if s.fits(in.set(events[:n])) {
			return n
		}
	}
	return 1
}

// largest drops the sets that are within others.
func largest(sets []set) []set {
	var out []set
	for i, s := range sets {
		dominated := slices.ContainsFunc(out, func(t set) bool { return s.within(t) }) ||
			slices.ContainsFunc(sets[i+1:], func(t set) bool { return s.within(t) && !t.within(s) })
		if !dominated && !s.empty() {
			out = append(out, s)
		}
	}
	return out
}

// maxBlock is the largest number of events of a formula whose subsets are all tried
// for being ratios in themselves.
const maxBlock = 12

// ratios takes sets of events out of a formula that can be counted at another time
// than the rest. Scaling all counts of such a set leaves the value as it is. It stops
// when the rest fits a group, and returns the sets and the rest.
func (in *inputs) ratios(s *space, need *needs) (blocks [][]int, rest []int) {
	rest = need.direct
	t := in.scaling(need)
	for t != nil && len(rest) <= maxBlock && !s.fits(in.set(rest)) {
		block := in.ratio(s, t, rest)
		if block == nil {
			break
		}
		blocks = append(blocks, block)
		rest = slices.DeleteFunc(slices.Clone(rest), func(e int) bool { return slices.Contains(block, e) })
	}
	return blocks, rest
}

// ratio returns the smallest set of events that is a ratio in itself and fits a group. It
// is nil if only all are one.
func (in *inputs) ratio(s *space, t *scaling, events []int) []int {
	for size := 2; size < len(events); size++ {
		for mask := uint(1)<<size - 1; mask < 1<<len(events); mask = nextOfSize(mask) {
			var block []int
			for m := mask; m != 0; m &= m - 1 {
				block = append(block, events[bits.TrailingZeros(m)])
			}
			if t.leaves(block) && s.fits(in.set(block)) {
				return block
			}
		}
	}
	return nil
}

// nextOfSize returns the next larger number with as many bits set.
func nextOfSize(x uint) uint {
	low := x & -x
	ripple := x + low
	return ripple | (x^ripple)>>2/low
}

// scaling tries what scaling some counts does to a formula.
type scaling struct {
	prog  *metric.Program
	slots []int // by slot: the event, -1 for what is not scaled
	tries [][]float64
	at    []float64 // the values of prog there
}

// scaling returns the trial of a formula. Nodes that are ratios in themselves stay
// as they are. It is nil for a formula that cannot be evaluated.
func (in *inputs) scaling(need *needs) *scaling {
	if need.expr == nil {
		return nil
	}
	e := need.expr.Substitute(func(name string) *metric.Expr {
		j, ok := in.index[name]
		if !ok || slices.Contains(need.shares, j) {
			return nil
		}
		sub, err := in.writtenOut(j, 0)
		if err != nil {
			return nil
		}
		return sub
	})
	t := &scaling{}
	names := e.Names()
	for _, name := range names {
		event, found, _ := in.event(name)
		if _, isNode := in.index[name]; isNode || !found {
			event = -1
		}
		t.slots = append(t.slots, event)
	}
	var err error
	t.prog, err = metric.Compile(e, func(name string) int { return slices.Index(names, name) })
	if err != nil {
		return nil
	}
	for try := range trials {
		x, _ := trial(names, in.params, try)
		if v := t.prog.Eval(x); !math.IsNaN(v) && v != 0 { // a limit such as max(0, …) may hide the formula
			t.tries, t.at = append(t.tries, x), append(t.at, v)
		}
	}
	if len(t.tries) == 0 {
		return nil
	}
	return t
}

// leaves reports whether the value stays as it is if the counts of some events
// are scaled.
func (t *scaling) leaves(events []int) bool {
	for i, x := range t.tries {
		y := slices.Clone(x)
		for slot, e := range t.slots {
			if e >= 0 && slices.Contains(events, e) {
				y[slot] *= 1.5
			}
		}
		if v := t.prog.Eval(y); !(math.Abs(v-t.at[i]) <= 1e-9*math.Abs(t.at[i])) {
			return false
		}
	}
	return true
}
