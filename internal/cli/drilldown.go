package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
)

// A descent follows a bottleneck down the tree: each run of the program counts
// the nodes of the path so far and the parts of its last one.
type descent struct {
	j      *job
	part   *part
	nodes  []int // that the next run is to count
	seen   []int // that any run has counted
	runs   int
	groups int
	joined *counts.Table // of all runs
	state  *os.ProcessState
	reason string // to stop
}

// drillDown runs the program until the bottleneck is found, and prints one
// account of all runs.
func (j *job) drillDown(ctx context.Context) error {
	if len(j.parts) > 1 {
		return usageError("--drilldown: the machine has several types of cores; choose one with --cpu %s", j.parts[0].cpu)
	}
	d := &descent{j: j, part: j.parts[0]}
	if err := j.ready(); err != nil {
		return err
	}
	m := d.part.s.model
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Section == "" && n.Level <= 1 {
			d.nodes = append(d.nodes, i)
		}
	}
	for d.reason == "" {
		err := d.run(ctx)
		var ended *failure
		if errors.As(err, &ended) && ended.status > exitSignal && d.joined != nil {
			d.reason = ended.Error()
			return errors.Join(d.print(), err)
		}
		if err != nil {
			return err
		}
		d.follow()
	}
	if err := d.print(); err != nil {
		return err
	}
	return j.status(d.state)
}

// run runs the program once, counting the nodes of this step.
func (d *descent) run(ctx context.Context) (err error) {
	j := d.j
	d.runs++
	opt := j.options()
	opt.Nodes = d.nodes
	s := d.part.s
	p := &part{find: func() (*session, error) { return s, nil }, pmu: d.part.pmu, cpu: d.part.cpu, mode: d.part.mode}
	j.name(p, "", false)
	if p.plan, err = plan.New(s.model, s.events, opt); err != nil {
		return usageError("%v", err)
	}
	j.resolve(p, false)
	j.parts, d.part = []*part{p}, p
	d.groups = max(d.groups, len(p.groups))
	d.seen = union(d.seen, d.nodes)
	j.say("run %d: %s", d.runs, nodeNames(s.model, d.nodes))
	total := counts.NewTotal(0)
	d.state, err = j.run(ctx, func(run counting) error { return total.Add(p.table(j.labelled(run.Table()))) })
	switch t := total.Table(); {
	case t == nil:
	case d.joined == nil:
		d.joined = t
	default:
		d.joined = join(d.joined, t)
	}
	return err
}

// say tells how far things are to somebody who watches.
func (j *job) say(format string, args ...any) {
	if f := file(j.err); f != nil && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(f, format+"\n", args...)
	}
}

// union adds to a list what it does not have.
func union(list, more []int) []int {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// follow decides on the next step, or says why there is none.
func (d *descent) follow() {
	if d.state != nil && !d.state.Success() {
		d.reason = fmt.Sprintf("the program ended with %v", d.state)
		return
	}
	if d.joined == nil {
		d.reason = "nothing was counted"
		return
	}
	s := d.part.s
	a := s.method.Bind(d.joined.Layout).Evaluate(d.joined, account.Place{}, nil)
	path := counted(a.Bottleneck, d.seen)
	if len(path) == 0 {
		d.reason = "no node of the first level is over its threshold"
		return
	}
	end := path[len(path)-1]
	node := &s.model.Nodes[end]
	children := uncounted(s.model, node.Children, d.seen)
	for _, r := range a.Rivals { // which of the two it is may show below
		if rival := &a.Nodes[r.Node]; r.Of == end && rival.Doubt == account.DoubtNone {
			children = append(children, uncounted(s.model, s.model.Nodes[r.Node].Children, d.seen)...)
		}
	}
	switch {
	case a.Nodes[end].Doubt != account.DoubtNone:
		d.reason = fmt.Sprintf("%s is not to be relied upon: %v", node.Name, a.Nodes[end].Doubt)
	case len(node.Children) == 0:
		d.reason = fmt.Sprintf("%s has no parts", node.Name)
	case len(children) == 0:
		d.reason = fmt.Sprintf("no part of %s is over its threshold", node.Name)
	default:
		d.nodes = append(ancestors(s.model, end), children...)
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

// ancestors returns a node and those above it, from the top.
func ancestors(m *model.Model, node int) []int {
	list := []int{node}
	for name := m.Nodes[node].Parent; name != ""; {
		i := slices.IndexFunc(m.Nodes, func(n model.Node) bool { return n.Name == name })
		list = append([]int{i}, list...)
		name = m.Nodes[i].Parent
	}
	return list
}

// print prints the account of all runs.
func (d *descent) print() error {
	if d.joined == nil {
		return machineError(errors.New(d.reason))
	}
	return d.j.writeTo(d.j.stream, d.j.c, func(out io.Writer) error {
		o := d.j.c.options(d.j.terminal(d.j.c, d.j.stream))
		o.Nodes = nodeNames(d.part.s.model, d.seen)
		w, err := report.New(d.j.c.format, out, o)
		if err != nil {
			return usageError("%v", err)
		}
		r := newReporter(d.part.s, w, 0)
		r.again = d.j.f.sameAgain(d.j.program)
		r.how = func(*counts.Table) string {
			return fmt.Sprintf("counted by the PMU in %s of at most %s", several(d.runs, "run"), several(d.groups, "group"))
		}
		r.judge = func(a *account.Account) {
			a.Notes = append(a.Notes, counts.Notef("each run counted the parts of the bottleneck found so far; stopped, as %s", d.reason))
			d.j.judge(d.part, a)
		}
		if d.j.times != nil {
			r.times = d.j.times.account
		}
		if err := r.add(d.joined, "perf-event"); err != nil {
			return err
		}
		return r.finish()
	})
}

// several is a number of things in words.
func several(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// join puts the columns of two tables beside each other: of two runs of one
// program, of which no group was counted together with another's. Its notes are
// both tables'.
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
