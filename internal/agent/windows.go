package agent

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
)

// A windows adds the accounts of intervals to the counters. It is a report.Writer. A window
// is added to a group's nodes and to its whole, or to neither.
type windows struct {
	s      *sink
	method string
	level  int                               // of the nodes that are exported; 0 for all
	plan   func(cpu string) *plan.Plan       // of the counting; nil for recordings
	scope  func(*counts.Scope) [][]string    // labels of the scopes that an account is added to; nil for the host
	bursts bool                              // counted in bursts: results of windows are the host's alone
	busy   func() (seconds float64, ok bool) // processor time since the last call

	head   report.Header
	groups []*group
	scopes map[string]map[*group]*groupSeries
}

// A group is nodes that are counted in the same windows: those of a level.
type group struct {
	name  string
	level int
	unit  series.Unit
	nodes []int // in the model; nil until the first account of a recording
	some  bool  // nodes are known
}

// groupSeries are the series of a group in one scope.
type groupSeries struct {
	whole, instructions, enabled, running *counter
	nodes                                 []*counter
	results                               map[string]*counter
}

// gone reports whether the series were removed.
func (s *groupSeries) gone() bool { return s.whole != nil && s.whole.gone }

// Begin implements [report.Writer].
func (w *windows) Begin(h report.Header) error {
	w.head, w.groups, w.scopes = h, nil, map[string]map[*group]*groupSeries{}
	var counted *plan.Plan
	if w.plan != nil {
		counted = w.plan(h.CPU.Name)
	}
	w.groups = groupsOf(h.Model, counted, w.level)
	if len(w.groups) == 0 {
		return errors.New("the method " + h.Model.Name + " has no nodes that are parts of cycles or slots")
	}
	w.s.r.mu.Lock()
	defer w.s.r.mu.Unlock()
	w.s.describe(h.Model.Name, h.Model.Version, h.CPU.Name, w.method, w.groups[0].unit.Name)
	if counted != nil && (w.scope == nil || w.bursts) {
		for _, g := range w.groups {
			w.seriesOf(w.hostLabels(), g, true, !w.bursts)
		}
	}
	return nil
}

// groupsOf returns the groups of a method's nodes: of one level, or of all if it is 0. With a
// plan they have the nodes that it counts.
func groupsOf(m *model.Model, counted *plan.Plan, level int) (groups []*group) {
	byLevel := map[int]*group{}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		unit, ok := unitOf(m, i)
		if !ok || n.Section != "" || n.Level < 1 || level > 0 && n.Level != level || counted != nil && !countable(counted, i) {
			continue
		}
		g := byLevel[n.Level]
		if g == nil {
			g = &group{name: "l" + strconv.Itoa(n.Level), level: n.Level, unit: unit, some: counted != nil}
			byLevel[n.Level] = g
			groups = append(groups, g)
		}
		if g.unit == unit {
			g.nodes = append(g.nodes, i)
		}
	}
	return groups
}

// unitOf returns what a node is a part of.
func unitOf(m *model.Model, node int) (series.Unit, bool) {
	n := &m.Nodes[node]
	unit := n.Unit
	switch {
	case unit == "":
		unit = m.Unit
	case unit != "cycles" && unit != "slots" && unit != "cycles/instruction":
		return series.Unit{}, false
	}
	if unit == "cycles/instruction" {
		unit = series.Cycles.Name
	}
	for _, u := range series.Units {
		if u.Name == unit {
			return u, true
		}
	}
	return series.Unit{}, false
}

// countable reports whether a plan counts a node.
func countable(p *plan.Plan, node int) bool {
	for i := range p.Nodes {
		if p.Nodes[i].Index == node {
			return p.Nodes[i].Missing == ""
		}
	}
	return false
}

// hostLabels returns those that all series of the host have.
func (w *windows) hostLabels() []string {
	return w.labelsOf([]string{series.Scope, series.Host})
}

// labelsOf returns the labels of a scope with those of the method.
func (w *windows) labelsOf(scope []string) []string {
	cpu, _, _ := strings.Cut(w.head.CPU.Name, ":")
	return append(scope[:len(scope):len(scope)], series.Model, w.head.Model.Name, series.ModelVersion, w.head.Model.Version, series.Processor, cpu,
		series.CoreType, w.head.CPU.CoreType, series.Method, w.method)
}

// seriesOf returns the series of a group, which it makes at 0 if there are none. The caller
// must hold the registry's lock.
func (w *windows) seriesOf(labels []string, g *group, results, nodes bool) *groupSeries {
	key := labelText(labels)
	if w.scopes[key] == nil {
		w.scopes[key] = map[*group]*groupSeries{}
	}
	if s := w.scopes[key][g]; s != nil && !s.gone() {
		return s
	}
	labels = append(labels[:len(labels):len(labels)], series.Group, g.name)
	get := func(f *family, more ...string) *counter {
		return w.s.r.get(f, append(labels[:len(labels):len(labels)], more...)...)
	}
	s := &groupSeries{results: map[string]*counter{}}
	if nodes {
		s.whole, s.instructions = get(w.s.whole(g.unit)), get(w.s.instructions)
		for _, i := range g.nodes {
			s.nodes = append(s.nodes, get(w.s.level(g.unit, g.level), series.Node, w.head.Model.Nodes[i].Name))
		}
	}
	if results {
		s.enabled, s.running = get(w.s.enabled), get(w.s.running)
		for _, result := range []string{series.OK, series.Unscheduled, series.Lost, series.Implausible} {
			s.results[result] = get(w.s.windows, series.Result, result)
		}
	}
	w.scopes[key][g] = s
	return s
}

// Account implements [report.Writer].
func (w *windows) Account(a *account.Account) error {
	busy, known := math.NaN(), false
	if w.busy != nil {
		busy, known = w.busy()
	}
	if !known {
		busy = math.NaN()
	}
	w.s.r.mu.Lock()
	defer w.s.r.mu.Unlock()
	for _, g := range w.groups {
		if !g.some {
			g.settle(a)
		}
		if len(g.nodes) == 0 {
			continue
		}
		w.window(a, g, busy)
	}
	return nil
}

// settle leaves a group the nodes that a recording has.
func (g *group) settle(a *account.Account) {
	var known []int
	for _, i := range g.nodes {
		if !math.IsNaN(a.Part(i)) {
			known = append(known, i)
		}
	}
	g.nodes, g.some = known, true
}

// window adds one window of a group, or counts why not.
func (w *windows) window(a *account.Account, g *group, busy float64) {
	scopes := [][]string{{series.Scope, series.Host}}
	if w.scope != nil {
		scopes = w.scope(&a.Scope)
	}
	host := (*groupSeries)(nil)
	if w.bursts {
		host = w.seriesOf(w.hostLabels(), g, true, false)
	} else {
		host = w.seriesOf(w.labelsOf(scopes[0]), g, true, true)
	}
	whole := wholeOf(a, g.unit.Name)
	covered := 1.0
	for _, i := range g.nodes {
		if c := a.Nodes[i].Coverage; c < covered {
			covered = c
		}
	}
	if d := a.Duration; d > 0 && w.s.r.shown(host.enabled) {
		enabled := d * float64(max(1, a.Scope.CPUs))
		host.enabled.addNanos(nanosOf(enabled))
		host.running.addNanos(nanosOf(enabled * covered))
	}
	result := w.judge(a, g, whole, busy)
	host.results[result].add(1)
	if result != series.OK {
		return
	}
	for _, scope := range scopes {
		s := host
		if w.bursts {
			s = w.seriesOf(w.labelsOf(scope), g, false, true)
		}
		if w.s.r.shown(s.whole) {
			w.add(a, g, s, whole)
		}
	}
}

// add adds a window to the series of a scope.
func (w *windows) add(a *account.Account, g *group, s *groupSeries, whole float64) {
	s.whole.add(w.scaled(g, whole))
	if n := a.Instructions(); n > 0 {
		s.instructions.add(n)
	}
	for k, i := range g.nodes {
		s.nodes[k].add(w.scaled(g, a.Part(i)*whole))
	}
}

// wholeOf returns what the nodes of an account are parts of; NaN if that was not counted. It
// is what account.Binding.Whole returns for a table.
func wholeOf(a *account.Account, unit string) float64 {
	m := a.Model()
	if m.Of != "" && unit == m.Unit {
		most := -1
		for i := range a.Nodes {
			v := &a.Nodes[i]
			if m.Share(i) && m.Nodes[i].Unit == "" && math.Abs(v.Value) > 0 && (most < 0 || math.Abs(v.Value) > math.Abs(a.Nodes[most].Value)) {
				most = i
			}
		}
		if most >= 0 {
			return a.Nodes[most].Amount / a.Nodes[most].Value
		}
	}
	cycles := math.NaN()
	if r, err := a.Reading(1); err == nil {
		cycles = r.Total
	}
	if unit != series.Slots.Name {
		return cycles
	}
	if slots := a.Count("slots"); !math.IsNaN(slots) {
		return slots
	}
	if width := a.CPU().Width; width > 0 {
		return float64(width) * cycles
	}
	return math.NaN()
}

// scaled returns an amount in the family's finest unit.
func (w *windows) scaled(g *group, amount float64) float64 {
	if g.unit == series.CPUSeconds {
		return amount * float64(time.Second)
	}
	return amount
}

// Bounds on what a processor can do. The clocks are far below and above those of all that
// are sold. No processor retires more
// instructions in a cycle, and hardly a program fewer.
const (
	slowest   = 50e6
	fastest   = 12e9
	mostIPC   = 20
	leastIPC  = 0.0005
	leastBusy = 0.05 // seconds; nothing is said of less
	slack     = 0.02 // of the whole: multiplexing may have a node so far outside
)

// judge says whether a window may be added. A virtual PMU may count next to nothing, and
// say that its events were on counters all of the time.
func (w *windows) judge(a *account.Account, g *group, whole, busy float64) string {
	for _, i := range g.nodes {
		if math.IsNaN(a.Part(i)) {
			return series.Unscheduled
		}
	}
	if math.IsNaN(whole) {
		return series.Unscheduled
	}
	cycles, instructions := wholeOf(a, series.Cycles.Name), a.Instructions()
	switch {
	case whole < 0 || math.IsInf(whole, 0):
		return series.Implausible
	case busy >= leastBusy && (cycles < slowest*busy || cycles > fastest*busy*2): // of hyperthreads and ticks
		return series.Implausible
	case cycles > 0 && (instructions > mostIPC*cycles || instructions < leastIPC*cycles && busy >= leastBusy):
		return series.Implausible
	}
	for _, i := range g.nodes {
		part := a.Part(i)
		if part > 1+slack || part < -slack && w.head.Model.Nodes[i].Negative == "" {
			return series.Implausible
		}
	}
	return series.OK
}

// lost counts a window that could not be read, of all groups.
func (w *windows) lost() {
	w.s.r.mu.Lock()
	defer w.s.r.mu.Unlock()
	for _, byGroup := range w.scopes {
		for _, s := range byGroup {
			if c := s.results[series.Lost]; c != nil {
				c.add(1)
			}
		}
	}
}

// End implements [report.Writer].
func (w *windows) End() error { return nil }

// busyTime returns a function for the time that processors ran something since its last
// call.
func busyTime(root fs.FS) func() (float64, bool) {
	machine := ostime.NewMachine(root, nil, nil)
	empty := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})
	return func() (float64, bool) {
		row := machine.Join(empty).Row(0)
		if row[0].State != counts.Counted {
			return 0, false
		}
		return (row[0].Value + row[1].Value) / 1e9, true
	}
}
