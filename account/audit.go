package account

import (
	"cmp"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Side is who is behind the outcome of a check.
type Side uint8

// The two sides.
const (
	Measurement Side = iota // the counts are wrong, or were not taken as they should
	Machine                 // what the program and the processor did
)

func (s Side) String() string { return [...]string{"measurement", "machine"}[s] }

// State is the outcome of a check.
type State uint8

// The outcomes of a check.
const (
	Skipped State = iota // it could not be made; Account.WhySkipped says why
	Holds
	Fails
)

func (s State) String() string { return [...]string{"skipped", "holds", "fails"}[s] }

// A Check is one statement about the counts that holds or does not.
type Check struct {
	Name      string
	Op        string // "=", "<=" or ">=": how Left must stand to Right
	Left      float64
	Right     float64
	Residual  float64 // (Left − Right) relative to the larger of the two in magnitude
	Tolerance float64 // of Residual, as the definition of the events allows
	Slack     string  // why that much; "" where nobody has said
	// Error is by how much more Residual may be off because the counts were not
	// taken together, or were sampled: half the width of its 99 % interval. It is
	// only worked out where the tolerance alone does not decide; 0 otherwise.
	Error    float64
	State    State
	Identity bool     // its failure means that the recording contradicts itself
	Common   bool     // it is of the processor's counts, whatever the model
	Side     Side     // whose outcome it is: for an identity the measurement's, else the machine's
	Events   []string // the counts that it is about; not to be changed
	Text     string   // what the outcome means; "" if skipped
	Source   string   // where that it must hold comes from
	// For is how many events one line stands for, of a relation that is one for
	// each of several: the sides are those of the one that comes closest to not
	// holding. 0 for others.
	For int

	twice bool // it is about readings of one event in several groups
	rule  int  // index of the relation; -1 if it is none
	node  bool
}

// Closure reports whether a check is of the tree: that the parts of a node sum
// to it and fit into it, and that values are possible.
func (c *Check) Closure() bool { return c.node }

// Contradicts reports whether the outcome is that the recording contradicts
// itself.
func (c *Check) Contradicts() bool { return c.State == Fails && c.Identity }

// A wrong is what can be wrong with a node or a count.
type wrong uint8

const (
	parts wrong = iota // they do not make up the whole
	part               // it is larger than the whole
	possible
	negative
	timeless
	foreign
	cycleless
	idle
	still
	twofold
)

// A finding is what is wrong with a node or a column.
type finding struct {
	what  wrong
	about int
}

// words are what is said of a finding. They are kept, so that intervals that all
// fail the same checks cost no more than others.
type words struct {
	name, text string
	events     []string
	balance    balance // of a finding about nodes
}

// say keeps words for the accounts that follow.
func (a *Account) say(f finding, w words) *words {
	if a.said == nil {
		a.said = map[finding]*words{}
	}
	a.said[f] = &w
	return &w
}

// check makes all checks: the tree's, then the relations', then what each count
// must satisfy by itself, and over time.
func (b *Binding) check(a *Account) {
	a.Checks = a.Checks[:0]
	a.sizes = a.sizes[:0]
	b.closeRoots(a)
	for _, i := range b.sums {
		b.closeNode(a, i)
	}
	b.checkNodes(a)
	for i := range b.checks {
		if !b.checks[i].common || a.Scope.Code == nil {
			b.checkRelation(a, i)
		}
	}
	b.checkCounts(a)
	b.checkCourse(a)
	b.checkErrata(a)
}

// checkRelation adds the check of a relation. A relation may be one for each of several
// events. Those that hold have one line together, those that could not be checked have none.
func (b *Binding) checkRelation(a *Account, i int) {
	r := &b.checks[i]
	n := len(a.Checks)
	a.Checks = append(a.Checks, r.check)
	c := &a.Checks[n]
	b.relate(a, r, c)
	if r.Each == nil {
		return
	}
	if c.State == Skipped {
		a.Checks = a.Checks[:n]
		return
	}
	c.For = 1
	for k := n - 1; c.State == Holds && k >= 0 && a.Checks[k].rule >= r.first; k-- {
		if same := &a.Checks[k]; same.State == Holds {
			same.For++
			if math.Abs(c.Residual) < math.Abs(same.Residual) {
				c.For, *same = same.For, *c // the one that comes closest to not holding
			}
			a.Checks = a.Checks[:n]
			return
		}
	}
}

// A testimony is how many checks speak against each event, and for it.
type testimony struct {
	against, inFavour map[string]int
	events            []string // that any speaks against
	list              []string // scratch
}

func (a *Account) testimony() *testimony {
	t := &a.heard
	if t.against == nil {
		t.against, t.inFavour = map[string]int{}, map[string]int{}
	}
	clear(t.against)
	clear(t.inFavour)
	t.events = t.events[:0]
	for i := range a.Checks {
		c := &a.Checks[i]
		for _, e := range c.Events {
			switch {
			case c.Contradicts():
				if t.against[e] == 0 {
					t.events = append(t.events, e)
				}
				t.against[e]++
			case c.Identity && c.State == Holds:
				t.inFavour[e]++
			}
		}
	}
	return t
}

// guilty lists the events of a failing check that can be the wrong ones. Another event may
// be in all the failing checks of one, with far fewer checks in its favour. Then that one
// is cleared.
func (a *Account) guilty(t *testimony, c *Check) []string {
	const witnesses, times = 3, 2
	t.list = t.list[:0]
	for _, e := range c.Events {
		cleared := false
		for _, o := range c.Events {
			cleared = cleared || o != e && t.inFavour[e] >= witnesses && t.inFavour[e] >= times*(t.inFavour[o]+1) && a.explains(o, e)
		}
		if !cleared {
			t.list = append(t.list, e)
		}
	}
	return t.list
}

// explains reports whether an event is in all the failing checks that another is in.
func (a *Account) explains(event, other string) bool {
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.Contradicts() && slices.Contains(c.Events, other) && !slices.Contains(c.Events, event) {
			return false
		}
	}
	return true
}

// Suspects lists the events of the checks that contradict the recording: the one
// that most of them name first. Of several the one that the fewest other checks speak for is
// first. The kernel's own come last, as they are exact.
func (a *Account) Suspects() []string {
	t, b := a.testimony(), a.Binding
	exact := func(event string) int {
		if col := slices.Index(b.Names, event); col >= 0 && b.ids[col].PMU == "software" {
			return 1
		}
		return 0
	}
	sorting.Stable(t.events, func(x, y string) int {
		return cmp.Or(cmp.Compare(t.against[y], t.against[x]), cmp.Compare(exact(x), exact(y)), cmp.Compare(t.inFavour[x], t.inFavour[y]))
	})
	return slices.Clone(t.events)
}

// relate evaluates a relation, whose check so far is one that was skipped.
func (b *Binding) relate(a *Account, r *boundRule, c *Check) {
	if r.dead {
		return
	}
	if r.when != nil {
		if when := r.when.Eval(a.in); math.IsNaN(when) || when == 0 {
			return
		}
	}
	if b.scattered(a, r.live) || r.Times && !b.timed(a, r.deps) {
		return
	}
	c.Left, c.Right = r.left.Eval(a.in), r.right.Eval(a.in)
	if math.IsNaN(c.Left) || math.IsNaN(c.Right) {
		return
	}
	scale := c.scale()
	c.Residual = 0
	if scale > 0 {
		c.Residual = (c.Left - c.Right) / scale
	}
	holds := r.within(c.Residual, c.Tolerance)
	if !holds && !math.IsNaN(c.Residual) {
		c.Error = b.relationError(a, r, c.Left, c.Right) / scale
		holds = r.within(c.Residual, c.Tolerance+c.Error)
	}
	c.State, c.Text = Fails, r.Fails
	if holds {
		c.State, c.Text = Holds, r.Holds
	}
}

// timed reports whether the times of all counts of some slots are known. The time of the
// table itself needs none.
func (b *Binding) timed(a *Account, slots []int) bool {
	return !a.table.Relative && !slices.ContainsFunc(slots, func(at int) bool {
		c, ok := b.cell(a.table, a.place, b.slotAt(at))
		return ok && len(b.columnsOf(b.slotAt(at))) > 0 && !(c.Enabled > 0)
	})
}

// scattered reports whether slots are sums over different numbers of processors: what
// holds on each processor need not hold for these. Their enabled times show it.
func (b *Binding) scattered(a *Account, slots []int) bool {
	const apart = 1.1
	if a.table.Relative {
		return false
	}
	least, most := math.Inf(1), 0.0
	for _, at := range slots {
		if t := a.seen[at].enabled; t > 0 {
			least, most = min(least, t), max(most, t)
		}
	}
	return most > apart*least
}

func side(identity bool) Side {
	if identity {
		return Measurement
	}
	return Machine
}

// scale is what a residual is relative to.
func (c *Check) scale() float64 { return max(math.Abs(c.Left), math.Abs(c.Right)) }

// within reports whether the sides stand to each other as they must, but for what
// is allowed.
func (r *boundRule) within(residual, allowed float64) bool {
	switch {
	case r.sign < 0:
		return residual <= allowed
	case r.sign > 0:
		return residual >= -allowed
	}
	return math.Abs(residual) <= allowed
}

// whySkipped says why a check was skipped.
func (b *Binding) whySkipped(a *Account, c *Check) counts.Note {
	switch {
	case c.State != Skipped:
		return counts.Note{}
	case c.rule < 0:
		return counts.Notef("not all of its nodes are known")
	case b.scattered(a, b.checks[c.rule].live):
		return counts.Notef("its events were counted for different times, or on different processors")
	case b.checks[c.rule].Times && !b.timed(a, b.checks[c.rule].deps):
		return counts.Notef("the recording does not say on how many processors its events were counted")
	case b.checks[c.rule].err != "":
		return counts.Notef("%s", b.checks[c.rule].err)
	}
	for _, side := range b.checks[c.rule].programs() {
		if p := *side; p != nil && math.IsNaN(p.Eval(a.in)) {
			return b.reason(a, p.Why(a.in))
		}
	}
	return counts.Notef("it does not apply here")
}
