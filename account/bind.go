package account

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// A Binding is a method bound to the columns of one layout: every input knows
// its columns, every formula is compiled. It is immutable.
type Binding struct {
	Method *Method
	Layout *counts.Layout

	// Unused are the recording's events that the model does not use. Unknown are those that the
	// processor's table lacks. Other are those counted on the other core type of a hybrid
	// processor.
	Unused, Unknown, Other []string

	Names []string // by column: the event's name in the processor's table, else its spelling
	Units []string // by column: of what it counts in the base unit; "" if not known

	Notes   []counts.Note // that all accounts begin with
	Columns [][]int       // by node: the columns of the layout that its value may rest on

	columnFacts
	programs
}

// columnFacts is what a binding knows of the recording's columns.
type columnFacts struct {
	ids       []model.Identity // by column
	core      []bool           // by column: an event of the core's own counters
	cycles    []bool           // by column: the core's cycles
	otherCore []bool           // by column: counted on the other core type of a hybrid processor
	taskClock []bool           // by column: the time that threads ran
	unclear   []bool           // by column: its spelling says something twice, and may mean another event
	used      []bool           // by column
	scale     []float64        // by column: what its counts are multiplied by to be in the base unit
	earlier   []int            // by column: the last one before it that is a reading of the same event; -1 for none
	columns   [][][]int        // by input, by alternative: the columns that carry it
	errata    []string         // events that may count wrongly by the vendor's own account, with their numbers
	published bool             // columns hold what another tool computed
	alone     bool             // the recording has but one event: several columns of it are places whose names were lost
}

// programs are a binding's formulas, and the vector that they are evaluated over: the
// inputs, the nodes' amounts, then particular readings of inputs.
type programs struct {
	slots  []slot    // the inputs, then the readings that coherent formulas ask for
	live   []int     // those of slots that the recording may have a count of
	groups []int     // by place in the vector: the group a slot was counted in, 0 if not known
	parts  []float64 // by place in the vector: of how many runs one counted a slot

	nodes    []program
	order    []int // nodes that may be known, each after those that it refers to
	alive    []int // the same, in the model's order
	of       *metric.Program
	ofDeps   []int
	limits   []*metric.Program // thresholds, by node; nil for none
	ofParts  []bool            // by node: its threshold is about other nodes, such as its parts
	checks   []boundRule
	measured []bool // by node: its value is measured, and no estimate
	sums     []int  // nodes whose children must sum to them
	roots    []int  // of the main tree, if they must sum to the whole
}

// A slot is one place in the vector that formulas are evaluated over: an input
// as a whole, or one particular reading of it.
type slot struct {
	input  int
	column int  // -1: whatever the input's columns give together
	only   int  // the one column that it is always read from, in the scope's own row; -1 if there are several, or none
	time   bool // the elapsed time, which every table with a duration has
}

// A program is a node's formula, compiled.
type program struct {
	rest bool            // it is what its siblings leave of its parent
	prog *metric.Program // nil for a rest, or if it could not be compiled
	err  string          // why not
	deps []int           // slots of inputs that the value rests on, through other nodes too
	live []int           // those of deps that the recording may have a count of
	// inputs are the inputs behind deps, whichever of their readings were taken.
	inputs []int
	// coherent programs do not refer to other nodes' values: they were written
	// out so that all events can be read from one group.
	coherent bool
	of       *metric.Program // the whole, read from the same group; nil for the common one
	assumed  []string        // see assumptions
	invented bool
}

// Bind binds the method to a layout.
func (c *Method) Bind(layout *counts.Layout) *Binding {
	b := &Binding{Method: c, Layout: layout, Notes: slices.Clone(c.notes)}
	b.matchColumns()
	b.slots = make([]slot, len(c.inputs))
	for i := range b.slots {
		b.slots[i] = b.slot(i, -1)
	}
	b.compileWhole()
	b.compileNodes()
	b.order = c.order
	b.alive = slices.Sorted(slices.Values(b.order))
	b.compileChecks()
	b.prepareClosures()
	b.Columns = b.nodeColumns()
	b.groups = make([]int, len(b.slots)+len(b.nodes))
	b.parts = make([]float64, len(b.groups))
	for k := range b.slots {
		s := &b.slots[k]
		b.groups[b.slotIndex(k)], b.parts[b.slotIndex(k)] = b.group(s), 1
		if cols := b.columnsOf(s); len(cols) > 0 { // several runs counted more than one part
			b.parts[b.slotIndex(k)] = max(1, float64(b.Layout.Columns[cols[0]].Parts)/float64(len(cols)))
		}
		if s.time || len(b.columnsOf(s)) > 0 {
			b.live = append(b.live, k)
		}
	}
	b.keepLive()
	return b
}

// keepLive finds the slots that nodes and checks rest on and that may have a count: the
// others need no look in each account.
func (b *Binding) keepLive() {
	live := make([]bool, len(b.groups))
	for _, k := range b.live {
		live[b.slotIndex(k)] = true
	}
	of := func(slots []int) (list []int) {
		for _, at := range slots {
			if live[at] {
				list = append(list, at)
			}
		}
		return list
	}
	for i := range b.nodes {
		b.nodes[i].live = of(b.nodes[i].deps)
	}
	for i := range b.checks {
		b.checks[i].live = of(b.checks[i].deps)
	}
	b.order = nil
	for _, i := range b.Method.order {
		at := len(b.Method.inputs) + i
		p := &b.nodes[i]
		if p.rest {
			live[at] = live[len(b.Method.inputs)+b.Method.Model.Nodes[i].Above]
		} else {
			live[at] = p.prog != nil && reachable(p.prog, live)
		}
		if live[at] {
			b.order = append(b.order, i)
		}
	}
	b.alive = slices.Sorted(slices.Values(b.order))
	for i := range b.checks {
		r := &b.checks[i]
		r.dead = r.err != "" || !reachable(r.left, live) || !reachable(r.right, live)
	}
}

// reachable reports whether a formula may be known, if only live slots are.
func reachable(p *metric.Program, live []bool) bool {
	return !p.Strict || !slices.ContainsFunc(p.Slots(), func(at int) bool { return !live[at] })
}

// slot makes the slot of an input, or of one particular reading of it.
func (b *Binding) slot(input, column int) slot {
	in := &b.Method.inputs[input]
	s := slot{input: input, column: column, only: column, time: in.name == "duration_time"}
	if column < 0 {
		if cols := slices.Concat(b.columns[input]...); len(cols) == 1 {
			s.only = cols[0]
		}
	}
	if in.lp >= 0 || in.anyLP {
		s.only = -1
	}
	return s
}

// group returns the group over whose windows a slot is read, 0 if there are
// several or none is known.
func (b *Binding) group(s *slot) int {
	if s.column >= 0 {
		return b.Layout.Columns[s.column].Group
	}
	if cols := b.readings(s.input); len(cols) == 1 {
		return b.Layout.Columns[cols[0]].Group
	}
	return 0
}

// compileWhole compiles the formula of the whole.
func (b *Binding) compileWhole() {
	if b.Method.of == nil {
		return
	}
	e := b.fold(b.Method.of)
	b.of, _ = metric.Compile(e, b.slotIn)
	b.ofDeps = b.inputSlots(e)
}

// matchColumns finds the columns of every input.
func (b *Binding) matchColumns() {
	c := b.Method
	ids := make([]model.Identity, len(b.Layout.Columns))
	refs := make([]model.EventRef, len(b.Layout.Columns))
	for i := range b.Layout.Columns {
		spelling := b.Layout.Columns[i].Event
		ref, err := model.ParseEvent(spelling)
		if err != nil {
			ids[i] = model.Identity{Name: spelling}
			continue
		}
		refs[i] = ref
		ids[i] = c.Events.Resolve(ref)
	}
	filter := b.commonFilter(ids)
	b.ids = ids
	b.classify(refs)
	b.used = make([]bool, len(ids))
	b.Names = make([]string, len(ids))
	b.scale, b.Units = make([]float64, len(ids)), make([]string, len(ids))
	known := make([]bool, len(ids))
	for col := range ids {
		b.Names[col] = b.Layout.Columns[col].Event
		b.published = b.published || strings.HasPrefix(b.Names[col], peers.Published)
		b.scale[col] = toBase(b.Layout.Columns[col].Unit)
		b.Units[col] = b.Layout.Columns[col].Unit
		if b.scale[col] != 1 || b.taskClock[col] || b.Names[col] == "duration_time" {
			b.Units[col] = "ns"
		}
		if ev, ok := c.Events.Find(refs[col]); ok {
			b.Units[col] = cmp.Or(b.Units[col], ev.Unit, "events")
			b.noteErrata(ev.Name)
			b.Names[col] = ev.Name + restriction(ids[col].Privilege)
			known[col] = true
		}
	}
	b.columns = make([][][]int, len(c.inputs))
	for i := range c.inputs {
		b.columns[i] = make([][]int, len(c.inputs[i].any))
		for k, want := range c.inputs[i].any {
			for col := range ids {
				if !matches(want.id, ids[col], filter) {
					continue
				}
				b.columns[i][k] = append(b.columns[i][k], col)
				b.used[col] = b.used[col] || i < c.own
			}
		}
	}
	for col, u := range b.used {
		if u {
			continue
		}
		name := b.Layout.Columns[col].Event
		if known := b.Names[col]; known != name {
			name += " (" + known + ")"
		}
		switch {
		case strings.HasPrefix(name, modelled), strings.HasPrefix(name, peers.Published): // no processor's
		case slices.Contains(b.Unused, name) || slices.Contains(b.Unknown, name) || slices.Contains(b.Other, name):
		case c.CPU.CoreType != "" && strings.HasPrefix(refs[col].PMU, "cpu_"):
			b.Other = append(b.Other, name)
		case known[col]:
			b.Unused = append(b.Unused, name)
		default:
			b.Unknown = append(b.Unknown, name)
		}
	}
}

// modelled begins the names of the counts that are a model's of the core, and no processor's.
const modelled = "core."

// classify finds out what the checks of single counts need to know of columns.
func (b *Binding) classify(refs []model.EventRef) {
	n := len(b.ids)
	flags := make([]bool, 5*n)
	b.core, b.cycles, b.otherCore, b.taskClock, b.unclear = flags[:n], flags[n:2*n], flags[2*n:3*n], flags[3*n:4*n], flags[4*n:]
	clock, tasks := b.Method.identify("cycles").Event(), b.Method.identify("task-clock").Event()
	b.alone = true
	for col, id := range b.ids {
		b.otherCore[col] = strings.HasPrefix(refs[col].PMU, "cpu_") && !id.Hardware()
		b.core[col] = id.Hardware() || b.otherCore[col] || id.PMU == "msr"
		b.cycles[col] = id.Event() == clock
		b.taskClock[col] = id.Event() == tasks
		b.alone = b.alone && id == b.ids[0]
		for i, term := range refs[col].Terms {
			b.unclear[col] = b.unclear[col] || slices.ContainsFunc(refs[col].Terms[:i], func(t model.Term) bool { return t.Key == term.Key })
		}
	}
	b.findReadings()
}

// findReadings finds the columns that are readings of one event. They are in the
// same unit, and it is clear of each what it is.
func (b *Binding) findReadings() {
	type event struct {
		id   model.Identity
		unit string
	}
	last := map[event]int{}
	b.earlier = make([]int, len(b.ids))
	for col, id := range b.ids {
		b.earlier[col] = -1
		if b.unclear[col] {
			continue
		}
		e := event{id, b.Layout.Columns[col].Unit}
		if k, ok := last[e]; ok {
			b.earlier[col] = k
		}
		last[e] = col
	}
}

// noteErrata notes what the vendor says is wrong with an event.
func (b *Binding) noteErrata(event string) {
	numbers, err := b.Method.Events.Errata(event)
	if text := event + " (" + strings.Join(numbers, ", ") + ")"; err == nil && len(numbers) > 0 && !slices.Contains(b.errata, text) {
		b.errata = append(b.errata, text)
	}
}

// toBase has the factors from the units that perf prints to those of formulas: nanoseconds for
// times.
func toBase(unit string) float64 {
	switch unit {
	case "msec", "ms":
		return 1e6
	case "usec", "us":
		return 1e3
	case "sec", "s", "seconds":
		return 1e9
	}
	return 1
}

// restriction is a privilege filter as a modifier.
func restriction(p model.Privilege) string {
	if p == 0 {
		return ""
	}
	return ":" + p.String()
}

// commonFilter returns the privilege filter that all of the recording's
// hardware events share. A recording made with :u throughout is an account of
// user mode. If only some events are filtered, the others are for the inputs without
// a filter.
func (b *Binding) commonFilter(ids []model.Identity) model.Privilege {
	var common model.Privilege
	first := true
	for _, id := range ids {
		if !id.Hardware() {
			continue
		}
		if first {
			common, first = id.Privilege, false
		} else if id.Privilege != common {
			return 0
		}
	}
	if common != 0 {
		b.Notes = append(b.Notes, counts.Notef("all events were counted with :%s, so this is the account of that mode only", common))
	}
	return common
}

// matches says whether a column's event is what an input wants, under the
// recording's common privilege filter. Clocks and other events that are not the
// core's know no modes: whatever filter they were given, they count the same.
func matches(want, have model.Identity, common model.Privilege) bool {
	switch {
	case want.Privilege != 0:
	case have.Hardware():
		want.Privilege = common
	default:
		have.Privilege = 0
	}
	return want == have
}

// fold puts in what is known of the recording: which events it has.
func (b *Binding) fold(e *metric.Expr) *metric.Expr {
	return e.Fold(metric.Constants{HasEvent: b.has})
}

// Has reports whether the recording has any column for an input or event.
func (b *Binding) Has(name string) bool { return b.has(name) }

// has is Has.
func (b *Binding) has(name string) bool {
	i, ok := b.Method.inputIndex[name]
	if !ok {
		id := b.Method.identify(name)
		for col := range b.Layout.Columns {
			if b.Method.identify(b.Layout.Columns[col].Event) == id {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(b.columns[i], func(cols []int) bool { return len(cols) > 0 })
}

// slotIn places a name in the vector that formulas are evaluated over: the
// inputs, then the nodes' amounts, then particular readings of inputs.
func (b *Binding) slotIn(name string) int {
	if i, ok := b.Method.inputIndex[name]; ok {
		return i
	}
	if i, ok := b.Method.nodeIndex[name]; ok {
		return len(b.Method.inputs) + i
	}
	return -1
}

func (b *Binding) compileNodes() {
	c := b.Method
	b.nodes = make([]program, len(c.formulas))
	b.limits, b.ofParts = make([]*metric.Program, len(c.formulas)), make([]bool, len(c.formulas))
	for _, i := range c.order {
		p := &b.nodes[i]
		if p.rest = c.Model.Nodes[i].Rest; p.rest {
			for _, j := range c.nodesBefore(i) {
				p.deps = union(p.deps, b.nodes[j].deps)
				p.inputs = union(p.inputs, b.nodes[j].inputs)
			}
			continue
		}
		p.assumed, p.invented = b.assumptions(i)
		e := b.fold(c.formulas[i])
		p.deps, p.inputs = b.allDeps(e), b.allInputs(e)
		if c.shares[i] {
			p.deps, p.inputs = union(p.deps, b.ofDeps), union(p.inputs, b.ofDeps)
		}
		if group := b.coherentGroup(p.inputs); group != 0 {
			b.compileCoherent(i, group)
			continue
		}
		var err error
		if p.prog, err = metric.Compile(e, b.slotIn); err != nil {
			p.err = err.Error()
		}
	}
	for i, e := range c.thresholds {
		if e == nil {
			continue
		}
		e = b.fold(e)
		if prog, err := metric.Compile(e, b.slotIn); err == nil {
			b.limits[i], b.ofParts[i] = prog, !slices.Contains(e.Names(), c.Model.Nodes[i].Name)
		}
	}
}

// assumptions lists the numbers that stand for uncounted events in a node's formula, and in
// those of nodes it names. invented reports whether any is not 0.
func (b *Binding) assumptions(i int) (list []string, invented bool) {
	add := func(text string) {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	folded := b.Method.formulas[i].Fold(metric.Constants{HasEvent: b.has, Assumed: func(event string, value float64) {
		add(fmt.Sprintf("%g for %s", value, event))
		invented = invented || value != 0
	}})
	for _, name := range folded.Names() {
		if j, ok := b.Method.nodeIndex[name]; ok {
			for _, text := range b.nodes[j].assumed {
				add(text)
			}
			invented = invented || b.nodes[j].invented
		}
	}
	return list, invented
}

// allDeps lists the input slots a formula rests on, those of the nodes it
// names included.
func (b *Binding) allDeps(e *metric.Expr) []int {
	deps := b.inputSlots(e)
	for _, name := range e.Names() {
		if j, ok := b.Method.nodeIndex[name]; ok {
			deps = union(deps, b.nodes[j].deps)
		}
	}
	return deps
}

// allInputs lists the inputs a formula rests on, those of the nodes it names
// included.
func (b *Binding) allInputs(e *metric.Expr) []int {
	inputs := b.inputSlots(e)
	for _, name := range e.Names() {
		if j, ok := b.Method.nodeIndex[name]; ok {
			inputs = union(inputs, b.nodes[j].inputs)
		}
	}
	return inputs
}

func (b *Binding) inputSlots(e *metric.Expr) []int {
	var deps []int
	for _, name := range e.Names() {
		if i, ok := b.Method.inputIndex[name]; ok {
			deps = union(deps, []int{i})
		}
	}
	return deps
}

func union(a, b []int) []int {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// coherentGroup returns the group whose readings a node should use: where an event was
// counted in several groups, the readings that were counted together belong together.
// It is the group with the most of the node's inputs, the first of equals; 0 if every
// input has one reading.
func (b *Binding) coherentGroup(inputs []int) int {
	several := false
	votes := map[int]int{}
	var order []int
	for _, s := range inputs {
		cols := b.readings(s)
		several = several || len(cols) > 1
		seen := map[int]bool{}
		for _, col := range cols {
			g := b.Layout.Columns[col].Group
			if g == 0 || seen[g] {
				continue
			}
			seen[g] = true
			if votes[g] == 0 {
				order = append(order, g)
			}
			votes[g]++
		}
	}
	if !several {
		return 0
	}
	best := 0
	for _, g := range order {
		if best == 0 || votes[g] > votes[best] {
			best = g
		}
	}
	return best
}

// readings are the columns of an input's first alternative that has any.
func (b *Binding) readings(input int) []int {
	for _, cols := range b.columns[input] {
		if len(cols) > 0 {
			return cols
		}
	}
	return nil
}

// compileCoherent writes out a node's formula down to events and reads every
// event that the group has from the group.
func (b *Binding) compileCoherent(i, group int) {
	c := b.Method
	p := &b.nodes[i]
	p.coherent = true
	p.deps = nil
	e, err := b.expand(c.formulas[i], 0)
	if err == nil {
		p.prog, err = b.compileIn(e, group, &p.deps)
	}
	if err == nil && c.shares[i] {
		p.of, err = b.compileIn(b.fold(c.of), group, &p.deps)
	}
	if err != nil {
		p.err = err.Error()
	}
}

// compileIn compiles a formula of inputs only. It reads from the group what that has, and adds
// those slots to deps.
func (b *Binding) compileIn(e *metric.Expr, group int, deps *[]int) (*metric.Program, error) {
	return metric.Compile(e, func(name string) int {
		input, ok := b.Method.inputIndex[name]
		if !ok {
			return -1
		}
		s := input
		for _, col := range b.readings(input) {
			if b.Layout.Columns[col].Group == group {
				s = b.reading(input, col)
				break
			}
		}
		*deps = union(*deps, []int{s})
		return s
	})
}

// reading returns the slot of one particular reading of an input.
func (b *Binding) reading(input, column int) int {
	for k := len(b.Method.inputs); k < len(b.slots); k++ {
		if b.slots[k].input == input && b.slots[k].column == column {
			return b.slotIndex(k)
		}
	}
	b.slots = append(b.slots, b.slot(input, column))
	return b.slotIndex(len(b.slots) - 1)
}

// slotIndex places the k-th slot in the vector: inputs, nodes, readings.
func (b *Binding) slotIndex(k int) int {
	if k < len(b.Method.inputs) {
		return k
	}
	return k + len(b.Method.Model.Nodes)
}

// slotAt is the inverse of slotIndex.
func (b *Binding) slotAt(index int) *slot {
	if index < len(b.Method.inputs) {
		return &b.slots[index]
	}
	return &b.slots[index-len(b.Method.Model.Nodes)]
}

// expandMost bounds how deep nodes may refer to nodes.
const expandMost = 64

// expand replaces the nodes that a formula names by their formulas.
func (b *Binding) expand(e *metric.Expr, depth int) (*metric.Expr, error) {
	c := b.Method
	if depth > expandMost {
		return nil, fmt.Errorf("nodes refer to nodes more than %d deep", expandMost)
	}
	e = b.fold(e)
	var failed error
	out := e.Substitute(func(name string) *metric.Expr {
		j, ok := c.nodeIndex[name]
		if !ok {
			return nil
		}
		if c.formulas[j] == nil {
			failed = fmt.Errorf("%s is a rest and cannot be written out", name)
			return nil
		}
		sub, err := b.expand(c.formulas[j], depth+1)
		if err != nil {
			failed = err
			return nil
		}
		return sub
	})
	return out, failed
}
