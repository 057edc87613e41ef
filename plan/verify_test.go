package plan_test

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// This file checks plans independently of the code that makes them. It reads the
// event tables' constraints itself, and works out the events of the nodes anew. It
// tries all ways of putting a group's events on counters.

// A verifier checks the plans for one model and processor.
type verifier struct {
	p      *plan.Plan
	events *model.EventTable
	rows   map[model.Identity][]*model.Event
	names  map[string]model.Identity
}

func newVerifier(events *model.EventTable) *verifier {
	v := &verifier{events: events, rows: map[model.Identity][]*model.Event{}, names: map[string]model.Identity{}}
	for i := range events.Events() {
		if row := &events.Events()[i]; !row.NoCode {
			v.rows[v.identity(row.Name)] = append(v.rows[v.identity(row.Name)], row)
		}
	}
	return v
}

// verify returns what is wrong with a plan.
func (v *verifier) verify(p *plan.Plan) (faults []string) {
	v.p = p
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for i := range p.Groups {
		for _, f := range v.group(&p.Groups[i]) {
			fault("group %d: %s", i+1, f)
		}
	}
	for i := range p.Nodes {
		for _, f := range v.node(&p.Nodes[i]) {
			fault("node %s: %s", p.Model.Nodes[p.Nodes[i].Index].Name, f)
		}
	}
	if p.LowerBound > len(p.Groups) {
		fault("%d groups, but proved to need %d", len(p.Groups), p.LowerBound)
	}
	return append(faults, v.rotation()...)
}

// rotation checks that each group is in the rotation as often as it says.
func (v *verifier) rotation() (faults []string) {
	turns := make([]int, len(v.p.Groups))
	for _, g := range v.p.Rotation {
		turns[g]++
	}
	for i := range v.p.Groups {
		if turns[i] != v.p.Groups[i].Turns || turns[i] < 1 {
			faults = append(faults, fmt.Sprintf("group %d has %d turns of %d", i+1, turns[i], v.p.Groups[i].Turns))
		}
	}
	return faults
}

// A claim is what an event needs, as the table says.
type claim struct {
	name     string
	on       uint64 // counters: general ones by number, fixed ones from 32 on
	pair     bool
	alone    bool
	register string
	value    uint64
	erratum  bool
}

// group checks that a group's events can be counted at one time, and are where the plan
// puts them.
func (v *verifier) group(g *plan.Group) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var claims []claim
	registers := map[string]map[uint64]bool{}
	seen := map[model.Identity]bool{}
	slots, aux := false, false
	for k := range g.Events {
		e := &g.Events[k]
		if seen[e.ID] {
			fault("%s twice", e.Name)
		}
		seen[e.ID] = true
		c := v.claim(e)
		slots = slots || e.Name == v.p.PMU.Slots && k == 0
		if c.on>>48 != 0 && !slots {
			fault("%s without slots at the head", e.Name)
		}
		aux = aux || v.p.PMU.LdlatAux != nil && e.Name == v.p.PMU.LdlatAux.Event
		if c.register == "ldlat" && v.p.PMU.LdlatAux != nil && !aux {
			fault("%s without %s before it", e.Name, v.p.PMU.LdlatAux.Event)
		}
		if c.register != "" {
			if registers[c.register] == nil {
				registers[c.register] = map[uint64]bool{}
			}
			registers[c.register][c.value] = true
		}
		claims = append(claims, c)
	}
	for kind, values := range registers {
		if len(values) > max(1, v.p.PMU.Registers[kind]) {
			fault("%d values for %s", len(values), kind)
		}
	}
	if faults2 := v.placed(g, claims); len(faults2) > 0 {
		faults = append(faults, faults2...)
	}
	claims = append(claims, v.watchdog()...)
	if !v.fits(claims) {
		fault("no way to put its events on the counters")
	}
	if why := v.linuxRefuses(g.Events, claims); why != "" {
		fault("Linux does not open it: %s", why)
	}
	return faults
}

// watchdog returns what the watchdog needs, if anything. A watchdog that is on needs a
// fixed counter, or a general one. The number of free general counters, if given,
// already leaves that one out.
func (v *verifier) watchdog() []claim {
	if !v.p.Options.Watchdog || v.p.PMU.Watchdog == "" {
		return nil
	}
	e, _ := v.events.Lookup(v.p.PMU.Watchdog)
	c := v.claim(&plan.Event{Name: "watchdog", ID: v.identity(e.Name)})
	if v.without(e.Name) {
		c.on = v.generalCounters()
	}
	if v.p.Options.Counters > 0 && c.on>>32 == 0 {
		return nil
	}
	return []claim{c}
}

// placed checks the counters that the plan names.
func (v *verifier) placed(g *plan.Group, claims []claim) (faults []string) {
	var used uint64
	general, alone, erratum := 0, false, false
	for k, c := range claims {
		name := g.Counters[k]
		if name == "" {
			if c.on>>48 == 0 {
				faults = append(faults, c.name+" is on no counter")
			}
			continue
		}
		var counter uint64
		if n, ok := strings.CutPrefix(name, "fixed "); ok {
			i, _ := strconv.Atoi(n)
			counter = 1 << (32 + i)
		} else {
			i, _ := strconv.Atoi(name)
			counter = 1 << i
			general++
		}
		if c.on&counter == 0 {
			faults = append(faults, fmt.Sprintf("%s cannot be on counter %s", c.name, name))
		}
		if c.pair {
			counter |= counter << 1
		}
		if used&counter != 0 {
			faults = append(faults, fmt.Sprintf("%s is on counter %s, which is taken", c.name, name))
		}
		used |= counter
		alone, erratum = alone || c.alone, erratum || c.erratum
	}
	if alone && general > 1 {
		faults = append(faults, "an event that must be alone is not")
	}
	if erratum && general > v.p.PMU.Erratum.Counters {
		faults = append(faults, "more general counters than an erratum leaves")
	}
	return faults
}

// claim reads what an event needs from its row of the table.
func (v *verifier) claim(e *plan.Event) claim {
	p := v.p
	c := claim{name: e.Name, on: v.generalCounters()}
	if aux := p.PMU.LdlatAux; aux != nil && e.Name == aux.Event {
		c.on = list(aux.Counters)
		return c
	}
	var row *model.Event
	modified := false
	for _, r := range v.rows[e.ID.Event()] {
		if r.PMU == e.ID.PMU && (row == nil || r.Name == e.Name) {
			row = r
		}
	}
	if row == nil { // a modified event: the row is that of the name before the first colon or slash
		ref, err := model.ParseEvent(e.Name)
		if err == nil {
			row, _ = v.events.Lookup(ref.Name)
		}
		modified = true
	}
	if row == nil || e.ID.PMU != "" {
		return c
	}
	counters := row.Counters
	if p.Options.SMT && row.CountersSMT != "" {
		counters = row.CountersSMT
	}
	if counters != "" {
		c.on = list(counters)
		if fixed := c.on >> 32; fixed != 0 && fixed>>16 == 0 {
			n := bits.TrailingZeros64(fixed)
			switch {
			case modified || n >= p.PMU.Fixed:
				c.on = v.generalCounters()
			case e.ID.Config&0xff != 0:
				c.on |= v.generalCounters()
			}
		} else if fixed == 0 {
			c.on &^= v.allGeneral() &^ v.generalCounters()
		}
	}
	if also := p.PMU.Also[row.Name]; also != "" {
		c.on |= list(also)
	}
	flags := strings.Fields(row.Flags)
	for _, kind := range []string{"offcore_rsp", "frontend", "ldlat", "omr"} {
		if e.ID.Config1 != 0 && slices.Contains(flags, kind) {
			c.register, c.value = kind, e.ID.Config1
		}
	}
	c.pair = slices.Contains(flags, "pair")
	c.alone = slices.Contains(flags, "alone") && c.register == ""
	if p.PMU.Erratum != nil && p.Options.Errata && v.divided() {
		c.erratum = slices.Contains(p.PMU.Erratum.Codes, e.ID.Config&0xff)
	}
	return c
}

// without reports whether the plan was to leave an event out.
func (v *verifier) without(spelling string) bool {
	return slices.ContainsFunc(v.p.Options.Without, func(w string) bool { return v.identity(w).Event() == v.identity(spelling).Event() })
}

func (v *verifier) identity(spelling string) model.Identity {
	if id, ok := v.names[spelling]; ok {
		return id
	}
	id := model.Identity{Name: "?" + spelling}
	if ref, err := model.ParseEvent(spelling); err == nil {
		id = v.events.Resolve(ref)
	}
	v.names[spelling] = id
	return id
}

// allGeneral are the general counters that there are.
func (v *verifier) allGeneral() uint64 {
	if v.p.Options.SMT && v.p.PMU.CountersSMT != "" {
		return list(v.p.PMU.CountersSMT)
	}
	return list(v.p.PMU.Counters)
}

// divided reports whether a core's counters are divided between its logical
// processors, as far as the options tell.
func (v *verifier) divided() bool {
	few := v.p.Options.Counters
	return v.p.Options.SMT || v.p.PMU.CountersSMT != "" && few > 0 && few <= bits.OnesCount64(list(v.p.PMU.CountersSMT))
}

// generalCounters are those that can be had.
func (v *verifier) generalCounters() uint64 {
	c := v.allGeneral()
	for v.p.Options.Counters > 0 && bits.OnesCount64(c) > v.p.Options.Counters {
		c &^= 1 << (63 - bits.LeadingZeros64(c))
	}
	return c
}

// list reads "0,1,2", "0-7" and "fixed3".
func list(s string) (c uint64) {
	if n, ok := strings.CutPrefix(s, "fixed"); ok {
		i, _ := strconv.Atoi(n)
		return 1 << (32 + i)
	}
	for _, part := range strings.Split(s, ",") {
		low, high, _ := strings.Cut(part, "-")
		from, _ := strconv.Atoi(low)
		to := from
		if high != "" {
			to, _ = strconv.Atoi(high)
		}
		for i := from; i <= to; i++ {
			c |= 1 << i
		}
	}
	return c
}

// fits reports whether every claim can have counters of its own. Of the general ones it
// takes what its companions allow.
func (v *verifier) fits(claims []claim) bool {
	most := 64
	for _, c := range claims {
		if c.alone {
			most = 1
		} else if c.erratum {
			most = min(most, v.p.PMU.Erratum.Counters)
		}
	}
	const general = 1<<32 - 1
	for used := range ways(claims) {
		if bits.OnesCount64(used&general) <= most {
			return true
		}
	}
	return false
}

// ways returns the sets of counters that the claims can take, each its own: all that
// there are.
func ways(claims []claim) map[uint64]bool {
	reached := map[uint64]bool{0: true}
	for _, c := range claims {
		next := map[uint64]bool{}
		for used := range reached {
			for on := c.on; on != 0; on &= on - 1 {
				counter := on & -on
				if c.pair {
					counter |= counter << 1
				}
				if used&counter == 0 {
					next[used|counter] = true
				}
			}
		}
		reached = next
	}
	return reached
}

// node checks that a node's events are where the plan says.
func (v *verifier) node(n *plan.Node) (faults []string) {
	if n.Missing != "" {
		if n.Together || len(n.Groups) > 0 {
			faults = append(faults, "missing, but planned for")
		}
		if v.countedAlone(n.Index) {
			faults = append(faults, "missing, but all its events can be counted")
		}
		return faults
	}
	needed, _ := v.needed(n.Index)
	read := map[model.Identity]bool{}
	for _, g := range n.Groups {
		for k := range v.p.Groups[g].Events {
			read[v.p.Groups[g].Events[k].ID] = true
		}
	}
	for i := range v.p.Always {
		read[v.p.Always[i].ID] = true
	}
	for id := range needed {
		if !read[id] {
			faults = append(faults, fmt.Sprintf("event %+v is not in its groups %v", id, n.Groups))
		}
	}
	if n.Together && len(n.Groups) > 1 || !n.Together && len(n.Groups) < 2 {
		faults = append(faults, fmt.Sprintf("together %t, but in groups %v", n.Together, n.Groups))
	}
	if n.Together != (n.Parts == nil) {
		faults = append(faults, fmt.Sprintf("together %t with %d parts", n.Together, len(n.Parts)))
	}
	faults = append(faults, v.parts(n, needed)...)
	if !n.Together && v.couldBeTogether(needed) {
		faults = append(faults, "its events would fit one group")
	}
	return faults
}

// countedAlone reports whether each of a node's events can be counted at some time. It is
// false for processors without a table of events.
func (v *verifier) countedAlone(index int) bool {
	if len(v.events.Events()) == 0 {
		return false
	}
	needed, all := v.needed(index)
	for id := range needed {
		e := plan.Event{ID: id}
		for _, row := range v.rows[id.Event()] {
			e.Name = row.Name
		}
		c := v.claim(&e)
		all = all && v.linuxRefuses([]plan.Event{e}, []claim{c}) == "" && (c.on>>48 == 0 || !v.without(v.p.PMU.Slots))
	}
	return all
}

// parts checks that the parts of a split node have all its multiplexed events. Each
// part is in the groups that it names, and in one otherwise.
func (v *verifier) parts(n *plan.Node, needed map[model.Identity]bool) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	covered := map[model.Identity]bool{}
	for i := range v.p.Always {
		covered[v.p.Always[i].ID] = true
	}
	for _, part := range n.Parts {
		if len(part.Groups) != 1 && !part.Loose {
			fault("a part in groups %v is not said to be loose", part.Groups)
		}
		missing := map[string]bool{}
		for _, name := range part.Events {
			missing[name] = true
		}
		for _, g := range part.Groups {
			if !slices.Contains(n.Groups, g) {
				fault("a part is in group %d, the node in %v", g, n.Groups)
			}
			for k := range v.p.Groups[g].Events {
				if e := &v.p.Groups[g].Events[k]; slices.Contains(part.Events, e.Name) {
					covered[e.ID] = true
					delete(missing, e.Name)
				}
			}
		}
		if len(missing) > 0 {
			fault("%v of a part are not in its groups %v", missing, part.Groups)
		}
	}
	for id := range needed {
		if len(n.Parts) > 0 && !covered[id] {
			fault("event %+v is in none of its parts", id)
		}
	}
	return faults
}

// couldBeTogether reports whether events fit one group.
func (v *verifier) couldBeTogether(needed map[model.Identity]bool) bool {
	g := plan.Group{}
	for _, group := range v.p.Groups {
		for k, e := range group.Events {
			if needed[e.ID] {
				delete(needed, e.ID)
				g.Events = append(g.Events, e)
				g.Counters = append(g.Counters, group.Counters[k])
			}
		}
	}
	for _, f := range v.group(&g) {
		// The counters of other groups are no matter here, nor their leaders.
		if strings.Contains(f, "no way") || strings.Contains(f, "values for") || strings.Contains(f, "Linux") {
			return false
		}
	}
	return true
}

// needed returns the events that a node's value is computed from, and whether all of
// them can be counted.
func (v *verifier) needed(index int) (need map[model.Identity]bool, all bool) {
	need, all = map[model.Identity]bool{}, true
	visited := map[string]bool{}
	m := v.p.Model
	var visit func(name string)
	formula := func(text string) {
		e, err := metric.Parse(text)
		if err != nil {
			return
		}
		for _, name := range v.fold(e).Names() {
			visit(name)
		}
	}
	visit = func(name string) {
		if visited[name] {
			return
		}
		visited[name] = true
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if n.Name != name {
				continue
			}
			if m.Of != "" && n.Unit == "" {
				formula(m.Of)
			}
			if n.Rest {
				visit(n.Parent)
				for j := range m.Nodes {
					if s := &m.Nodes[j]; s.Parent != n.Parent || s.Name == name {
						continue
					}
					if part, known := v.needed(j); known { // what is not stays in the rest
						maps.Copy(need, part)
					}
				}
			}
			formula(n.Formula)
			return
		}
		for i := range m.Inputs {
			if m.Inputs[i].Name == name {
				for _, spelling := range m.Inputs[i].Events {
					if v.countable(spelling) && !v.without(spelling) {
						need[v.identity(spelling)] = true
						return
					}
				}
				all = false
				return
			}
		}
		for i := range m.Parameters {
			if m.Parameters[i].Name == name {
				return
			}
		}
		if _, ok := v.p.CPU.Params[name]; !ok {
			need[v.identity(name)] = true
			all = all && v.countable(name) && !v.without(name)
		}
	}
	visit(m.Nodes[index].Name)
	return need, all
}

func (v *verifier) fold(e *metric.Expr) *metric.Expr {
	return e.Fold(metric.Constants{
		Literal: func(name string) (float64, bool) {
			if v.p.Options.SMT {
				return 1, name == "#smt_on"
			}
			return 0, name == "#smt_on"
		},
		HasEvent: func(name string) bool {
			for i := range v.p.Model.Inputs {
				if v.p.Model.Inputs[i].Name == name {
					return slices.ContainsFunc(v.p.Model.Inputs[i].Events, v.has)
				}
			}
			return v.has(name)
		},
	})
}

// countable reports whether the processor has an event, and a counter for it that can
// be had.
func (v *verifier) countable(spelling string) bool {
	return v.has(spelling) && v.claim(&plan.Event{Name: spelling, ID: v.identity(spelling)}).on != 0
}

// has reports whether the processor has an event, or one that it modifies.
func (v *verifier) has(spelling string) bool {
	ref, err := model.ParseEvent(spelling)
	if err != nil || ref.Latency {
		return false
	}
	if _, ok := v.events.Lookup(spelling); ok {
		return true
	}
	if ref.HasConfig || v.events.Resolve(ref).PMU != "" || len(v.events.Events()) == 0 {
		return true
	}
	if slices.ContainsFunc(ref.Terms, func(t model.Term) bool { return t.Key == "event" }) {
		return true
	}
	_, ok := v.events.Lookup(ref.Name)
	return ok && ref.Name != ""
}
