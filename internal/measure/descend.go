package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
)

// A Descent follows a bottleneck down the tree: each run of the program counts the nodes
// of the path so far and the children of its last one.
type Descent struct {
	m      *Measurement
	method *resolve.Method
	nodes  []int // that the next run is to count
	seen   []int // that any run has counted
	runs   int
	groups int
	total  *counts.Total // of the current run
	joined *counts.Table // of all runs
	state  *os.ProcessState
	reason string // to stop
}

// Descend begins a descent.
func (m *Measurement) Descend() (*Descent, error) {
	if len(m.parts) > 1 {
		return nil, &CoreTypesError{m.Processors()}
	}
	method, err := m.parts[0].method()
	if err != nil {
		return nil, err
	}
	d := &Descent{m: m, method: method}
	for i := range method.Model.Nodes {
		if n := &method.Model.Nodes[i]; n.Section == "" && n.Level <= 1 {
			d.nodes = append(d.nodes, i)
		}
	}
	return d, nil
}

// More reports whether there is another run to make.
func (d *Descent) More() bool { return d.reason == "" }

// Start starts the next run.
func (d *Descent) Start(ctx context.Context) (*Run, error) {
	m := d.m
	d.runs++
	opt := m.planOptions()
	opt.Nodes = d.nodes
	before := m.parts[0]
	p := &part{method: before.method, pmu: before.pmu, cpu: before.cpu, mode: before.mode}
	m.name(p, "", false)
	var err error
	if p.plan, err = plan.New(d.method.Model, d.method.Events, opt); err != nil {
		return nil, fault.As(fault.Usage, err)
	}
	m.find(p, false)
	m.parts = []*part{p}
	d.groups = max(d.groups, len(p.groups))
	for _, n := range d.nodes {
		if !slices.Contains(d.seen, n) {
			d.seen = append(d.seen, n)
		}
	}
	if tell := m.options.Client.Progress; tell != nil {
		tell(d.runs, 0, nodeNames(d.method.Model, d.nodes))
	}
	run, err := m.Start(ctx)
	if err != nil {
		return nil, err
	}
	d.total = counts.NewTotal(0)
	run.take = func(t *counts.Table) error { return d.total.Add(p.table(t)) }
	return run, nil
}

// Add takes what a run has counted, and decides on the next.
func (d *Descent) Add(run *Run) {
	d.state = run.State()
	switch t := d.total.Table(); {
	case t == nil:
	case d.joined == nil:
		d.joined = t
	default:
		d.joined = join(d.joined, t)
	}
	if !run.failed {
		d.follow()
	}
}

// Stop ends the descent for a reason.
func (d *Descent) Stop(reason string) { d.reason = reason }

// Counted reports whether any run has counted anything.
func (d *Descent) Counted() bool { return d.joined != nil }

// State returns how the last run of the program ended.
func (d *Descent) State() *os.ProcessState { return d.state }

// follow decides on the next step, or says why there is none.
func (d *Descent) follow() {
	if d.state != nil && !d.state.Success() {
		d.reason = fmt.Sprintf("the program ended with %v", d.state)
		return
	}
	if d.joined == nil {
		d.reason = "nothing was counted"
		return
	}
	a := d.method.Evaluate(d.joined, account.Place{})
	path := counted(a.Bottleneck, d.seen)
	if len(path) == 0 {
		d.reason = "no node of the first level is over its threshold"
		return
	}
	m := d.method.Model
	end := path[len(path)-1]
	node := &m.Nodes[end]
	children := uncounted(m, node.Children, d.seen)
	for _, r := range a.Rivals { // their children may show which of the two it is
		if rival := &a.Nodes[r.Node]; r.Of == end && rival.Doubt == account.DoubtNone {
			children = append(children, uncounted(m, m.Nodes[r.Node].Children, d.seen)...)
		}
	}
	switch {
	case a.Nodes[end].Doubt != account.DoubtNone:
		d.reason = fmt.Sprintf("%s is not reliable: %v", node.Name, a.Nodes[end].Doubt)
	case len(node.Children) == 0:
		d.reason = fmt.Sprintf("%s has no parts", node.Name)
	case len(children) == 0:
		d.reason = fmt.Sprintf("no part of %s is over its threshold", node.Name)
	default:
		d.nodes = append(withAncestors(m, end), children...)
	}
}

// counted returns the beginning of a path whose nodes were counted.
func counted(path, seen []int) []int {
	for i, n := range path {
		if !slices.Contains(seen, n) {
			return path[:i]
		}
	}
	return path
}

func uncounted(m *model.Model, nodes, seen []int) []int {
	var list []int
	for _, n := range nodes {
		if m.Nodes[n].Section == "" && !slices.Contains(seen, n) {
			list = append(list, n)
		}
	}
	return list
}

// withAncestors returns a node and those above it, from the top.
func withAncestors(m *model.Model, node int) []int {
	var list []int
	for i := node; i >= 0; i = m.Nodes[i].Above {
		list = append(list, i)
	}
	slices.Reverse(list)
	return list
}

// nodeNames are names of nodes, by commas.
func nodeNames(m *model.Model, nodes []int) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = m.Nodes[n].Name
	}
	return strings.Join(names, ",")
}

// Finish writes the one account of all runs.
func (d *Descent) Finish() error {
	if d.joined == nil {
		return fault.As(fault.Machine, errors.New(d.reason))
	}
	m := d.m
	o := m.options.Client
	p := m.parts[0]
	w, err := o.Writer(report.Options{Level: m.options.Choice.Level, Nodes: nodeNames(d.method.Model, d.seen), All: m.all})
	if err != nil {
		return fault.As(fault.Usage, err)
	}
	options := accounting.Options{Live: true,
		Head: func(h *report.Header, _ *counts.Table) {
			o.head(h)
			h.How = fmt.Sprintf("counted by the PMU in %s of at most %s", number(d.runs, "run"), number(d.groups, "group"))
		},
		Refine: func(a *account.Account) {
			a.Notes = append(a.Notes, counts.Notef("each run counted the parts of the bottleneck found so far; stopped, as %s", d.reason))
			m.judge(p, a)
		}}
	if m.times != nil {
		options.Times = m.times.account
	}
	s := accounting.New(w, options)
	if err := s.Add(d.method, d.joined, accounting.Kind{Name: "perf-event"}, ""); err != nil {
		return err
	}
	return s.Finish()
}

// join puts the columns of two tables next to each other. The tables are of two runs of one
// program, and share no groups. The notes are those of both.
func join(a, b *counts.Table) *counts.Table {
	l := &counts.Layout{Columns: slices.Clone(a.Columns), Scopes: a.Scopes}
	groups := 0
	for _, c := range a.Columns {
		groups = max(groups, c.Group)
	}
	for _, c := range b.Columns {
		if c.Group > 0 {
			c.Group += groups
		}
		l.Columns = append(l.Columns, c)
	}
	t := counts.NewTable(l)
	t.Label, t.Start, t.Duration = b.Label, a.Start, b.Duration
	t.Notes = slices.Clone(a.Notes)
	for _, n := range b.Notes {
		if !slices.Contains(t.Notes, n) {
			t.Notes = append(t.Notes, n)
		}
	}
	for i := range min(len(a.Scopes), len(b.Scopes)) {
		copy(t.Row(i), a.Row(i))
		copy(t.Row(i)[len(a.Columns):], b.Row(i))
	}
	return t
}
