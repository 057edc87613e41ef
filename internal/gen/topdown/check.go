package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/metric"
)

// How the models are checked: nodes against the vendor's expanded formulas.
const (
	draws       = 8    // of random counts, each with SMT on and off
	closeEnough = 1e-9 // relative
)

// An evaluator evaluates all nodes of a model, and the vendor's own formulas,
// over one vector: the counts and parameters, then the nodes.
type evaluator struct {
	m     *topdown
	slots map[string]int
	order []int
	first map[string]string // by input: the event that it is if all were counted
	progs []*metric.Program // by node
	named [][]int           // by node: the nodes that it names
	in    []float64
}

// check makes sure that every node has the value of the vendor's expanded formula for random
// counts. It marks nodes whose children overlap.
func (m *topdown) check(c *converter) error {
	var errs []error
	tested := make([]int, len(m.nodes))
	var values [][]float64
	for smt := range 2 {
		ev, err := newEvaluator(m, float64(smt))
		if err != nil {
			return err
		}
		theirs, err := ev.vendor(c, float64(smt))
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(1, uint64(smt))) // the same counts in every run
		for range draws {
			ours := ev.draw(random)
			values = append(values, ours)
			for i, p := range theirs {
				if p == nil {
					tested[i]++
					continue
				}
				want := p.Eval(ev.in) / c.scale(m.nodes[i].metric)
				if math.IsNaN(want) && math.IsNaN(ours[i]) {
					continue
				}
				tested[i]++
				if !(math.Abs(ours[i]-want) <= closeEnough*max(math.Abs(want), ev.magnitude(i))) {
					errs = append(errs, fmt.Errorf("%s: %v, where the vendor's Formula gives %v (SMT %d)", m.nodes[i].Name, ours[i], want, smt))
				}
			}
		}
	}
	for i, n := range tested {
		if n == 0 {
			errs = append(errs, fmt.Errorf("%s: no random counts give it a value", m.nodes[i].Name))
		}
	}
	m.markOverlaps(values)
	return errors.Join(errs...)
}

// magnitude is the size of the numbers that a node's value is computed from, as
// far as they are shares: of what is left of a sum of large ones, the last
// digits mean nothing.
func (ev *evaluator) magnitude(i int) float64 {
	largest := math.Abs(ev.in[i])
	for _, j := range ev.named[i] {
		if !ev.m.nodes[j].metric.isInfo() {
			largest = max(largest, math.Abs(ev.in[j]))
		}
	}
	return largest
}

// scale is how many times as large the value of the vendor's Formula is: it
// gives percentages where the models have shares.
func (c *converter) scale(m *vendorMetric) float64 {
	if m.isTree() || c.percent(m.MetricName) {
		return 100
	}
	return 1
}

// markOverlaps marks the nodes whose children need not sum to them. Those of level 1 are
// divided exactly, unless a formula keeps a small difference of large counts above zero; and
// all children of an efficient core's nodes are disjoint sets of slots, which the formulas do
// not show.
func (m *topdown) markOverlaps(values [][]float64) {
	children := map[string][]int{}
	for i := range m.nodes {
		if p := m.nodes[i].Parent; p != "" {
			children[p] = append(children[p], i)
		}
	}
	for i := range m.nodes {
		if of := children[m.nodes[i].Name]; len(of) > 1 && m.nodes[i].Level > 1 && !m.p.atom {
			m.nodes[i].Overlap = !isClosed(i, of, values)
		}
	}
}

func newEvaluator(m *topdown, smt float64) (*evaluator, error) {
	ev := &evaluator{m: m, slots: map[string]int{}, first: map[string]string{}, progs: make([]*metric.Program, len(m.nodes)), named: make([][]int, len(m.nodes))}
	for _, in := range m.inputs {
		ev.first[in.Name] = in.Events[0]
	}
	exprs := make([]*metric.Expr, len(m.nodes))
	index := map[string]int{}
	for i := range m.nodes {
		index[m.nodes[i].Name] = i
		ev.slots[m.nodes[i].Name] = i
	}
	for i := range m.nodes {
		e, err := metric.Parse(m.nodes[i].Formula)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.nodes[i].Name, err)
		}
		exprs[i] = ev.fold(e, smt)
		if ev.progs[i], err = metric.Compile(exprs[i], ev.slot); err != nil {
			return nil, fmt.Errorf("%s: %w", m.nodes[i].Name, err)
		}
		for _, name := range exprs[i].Names() {
			if j, ok := index[name]; ok {
				ev.named[i] = append(ev.named[i], j)
			}
		}
	}
	var err error
	ev.order, err = sortNodes(exprs, index)
	if err != nil {
		return nil, err
	}
	ev.in = make([]float64, len(ev.slots))
	return ev, nil
}

// sortNodes orders nodes so that each comes after those it names.
func sortNodes(exprs []*metric.Expr, index map[string]int) ([]int, error) {
	var order []int
	open := map[int]bool{}
	var visit func(i int) error
	visit = func(i int) error {
		if slices.Contains(order, i) {
			return nil
		}
		if open[i] {
			return fmt.Errorf("the formula leads back to itself: %s", exprs[i])
		}
		open[i] = true
		for _, name := range exprs[i].Names() {
			if j, ok := index[name]; ok {
				if err := visit(j); err != nil {
					return err
				}
			}
		}
		order = append(order, i)
		return nil
	}
	for i := range exprs {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// slot gives every name a place of its own, the nodes' first.
func (ev *evaluator) slot(name string) int {
	if event, ok := ev.first[name]; ok {
		name = event
	}
	if i, ok := ev.slots[name]; ok {
		return i
	}
	i := len(ev.slots)
	ev.slots[name] = i
	return i
}

// fold puts in what a machine with or without SMT says of itself, with all
// events counted.
func (ev *evaluator) fold(e *metric.Expr, smt float64) *metric.Expr {
	known := map[string]float64{"#smt_on": smt, "#num_cpus_online": 8, pipelineWidth: float64(ev.m.p.width)}
	for _, p := range ev.m.params {
		if p.known {
			known[p.Name] = *p.Value
		}
	}
	value := func(name string) (float64, bool) {
		v, ok := known[name]
		return v, ok
	}
	return e.Fold(metric.Constants{Value: value, Literal: value, HasEvent: func(string) bool { return true }})
}

// draw evaluates the nodes over random counts.
func (ev *evaluator) draw(random *rand.Rand) []float64 {
	for len(ev.in) < len(ev.slots) {
		ev.in = append(ev.in, 0)
	}
	for i := range ev.in {
		ev.in[i] = math.Exp(random.Float64()*14 + 7) // 1e3 … 1e9
	}
	for _, i := range ev.order {
		ev.in[i] = ev.progs[i].Eval(ev.in)
	}
	return slices.Clone(ev.in[:len(ev.progs)])
}

// vendor compiles the vendor's expanded formulas, with its aliases replaced by the models'
// names; nil where the vendor has none, or where a fix changes the value or one that it is
// computed from.
func (ev *evaluator) vendor(c *converter, smt float64) ([]*metric.Program, error) {
	progs := make([]*metric.Program, len(ev.m.nodes))
	mended := make([]bool, len(ev.m.nodes))
	for _, i := range ev.order {
		n := &ev.m.nodes[i]
		mended[i] = n.metric.addition != nil || c.fixes.unchecked(c.p.stem, n.Name) || slices.ContainsFunc(ev.named[i], func(j int) bool { return mended[j] })
		if mended[i] {
			continue
		}
		e, err := c.expanded(n.metric)
		if err == nil {
			progs[i], err = metric.Compile(ev.fold(e, smt), ev.slot)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: Formula: %w", n.Name, err)
		}
	}
	return progs, nil
}

// expanded returns a metric's Formula over the models' names.
func (c *converter) expanded(m *vendorMetric) (*metric.Expr, error) {
	meaning := map[string]string{}
	for _, ev := range m.Events {
		event, err := c.event(ev.Name)
		if err != nil {
			return nil, err
		}
		meaning[ev.Alias] = event
	}
	for _, k := range m.Constants {
		text, err := constant(k.Name)
		if err != nil {
			return nil, err
		}
		meaning[k.Alias] = text
	}
	// Two formulas begin with a choice that cannot be: "#NA if 0 > 2 else x".
	e, err := metric.Parse(strings.TrimPrefix(m.Formula, "#NA if 0 > 2 else "))
	if err != nil {
		return nil, err
	}
	return substitute(e, func(name string) (string, error) {
		if text, ok := meaning[name]; ok {
			return text, nil
		}
		return "", fmt.Errorf("nothing has the alias %q", name)
	})
}

// constant returns what a constant of an expanded formula is in the models.
func constant(name string) (string, error) {
	switch name {
	case "HYPERTHREADING_ON":
		return "#smt_on", nil
	case "THREADS_PER_CORE":
		return "(2 if #smt_on else 1)", nil
	case "DURATIONTIMEINMILLISECONDS":
		return "(duration_time / 1000000)", nil
	case "SYSTEM_TSC_FREQ": // by its units a count over the interval, and no frequency
		return "TSC", nil
	case "system.sockets[0].cpus.count * system.socket_count":
		return "#num_cpus_online", nil
	case "20": // weight of dependent loads
		return "20", nil
	}
	return "", fmt.Errorf("the constant %q is not known", name)
}
