package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// A generator makes the models of one copy of the perfmon repository.
type generator struct {
	dir     string
	commit  string
	fixes   fixes
	infos   map[string]info
	spelled spellings
	latency map[string]latencies // by stem, where the vendor has none
	atom    map[string]string    // thresholds of efficient cores, by node
	costs   *costs
	models  map[string]*topdown // made so far, by stem

	additions []*addition
}

// A topdown is one model, complete: what it extends is merged in.
type topdown struct {
	p       *processor
	version string
	params  []parameter
	inputs  []model.Input
	nodes   []node
}

type parameter struct {
	model.Parameter
	known bool // a number in the vendor's formulas: they are checked with this value
}

type node struct {
	model.Node        // its Level is the vendor's
	full       string // the threshold with what its ancestors' say
	metric     *vendorMetric
}

func newGenerator(dir string) (*generator, error) {
	g := &generator{
		dir: dir, models: map[string]*topdown{},
		infos: map[string]info{}, spelled: spellings{}, latency: map[string]latencies{}, atom: map[string]string{},
	}
	commit, err := os.ReadFile(filepath.Join(dir, "COMMIT"))
	if err != nil {
		return nil, fmt.Errorf("%w: write the commit of the perfmon repository there", err)
	}
	if g.commit = strings.TrimSpace(string(commit)); len(g.commit) != 40 {
		return nil, fmt.Errorf("%s: %q is no commit", filepath.Join(dir, "COMMIT"), g.commit)
	}
	var errs [3]error
	g.fixes, errs[0] = parseFixes(own("fixes.toml"))
	g.costs, errs[1] = parseCosts(own("costs.toml"))
	g.additions, errs[2] = parseAdditions(own("additions.toml"))
	return g, errors.Join(errs[0], errs[1], errs[2], g.readInfos(), g.readSpellings(), g.readLatencies(), g.readThresholds())
}

// converter returns the converter for a processor's metric file, which is of
// the given version.
func (g *generator) converter(p *processor, version string) (*converter, error) {
	c := &converter{
		p: p, fixes: g.fixes, infos: g.infos, spelled: g.spelled, costs: g.costs, version: version,
		names: map[string]string{}, tree: map[string]bool{},
	}
	var err error
	if c.events, err = readEventNames(filepath.Join(g.dir, p.events)); err != nil {
		return nil, err
	}
	if c.latency = g.latency[p.stem]; p.latency != "" {
		if c.latency, err = readLatencies(filepath.Join(g.dir, p.latency)); err != nil {
			return nil, err
		}
	}
	if p.atom {
		c.atom = g.atom
	}
	return c, nil
}

// model makes one model and checks it.
func (g *generator) model(p *processor) (*topdown, error) {
	f, err := readMetrics(filepath.Join(g.dir, p.metrics))
	if err != nil {
		return nil, err
	}
	c, err := g.converter(p, f.Header.TmaVersion)
	if err != nil {
		return nil, err
	}
	m := &topdown{p: p, version: f.Header.TmaVersion}
	if m.nodes, err = c.nodes(g.added(p.stem, f.Metrics)); err != nil {
		return nil, err
	}
	m.params, m.inputs = append([]parameter{c.width()}, c.params...), c.inputs
	if err := m.order(g.infos); err != nil {
		return nil, err
	}
	m.shortenThresholds()
	if err := m.domains(); err != nil {
		return nil, err
	}
	return m, m.check(c)
}

// nodes makes nodes of the metrics that are kept. The error is of all that
// cannot be made.
func (c *converter) nodes(all []*vendorMetric) ([]node, error) {
	kept, err := c.keep(all)
	if err != nil {
		return nil, err
	}
	var nodes []node
	var errs []error
	for _, m := range kept {
		n, err := c.node(m)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.MetricName, err))
		}
		nodes = append(nodes, n)
	}
	return nodes, errors.Join(errs...)
}

// width is the parameter for the number of slots in a cycle.
func (c *converter) width() parameter {
	return parameter{Parameter: model.Parameter{Name: pipelineWidth, Value: gen.Number(float64(c.p.width)), Min: gen.Number(1), Unit: "slots/cycle",
		About: "slots that the pipeline has in a cycle: uops it can take in"}}
}

// keep returns the metrics that become nodes, and notes their names.
func (c *converter) keep(all []*vendorMetric) ([]*vendorMetric, error) {
	var kept []*vendorMetric
	for _, m := range all {
		if len(c.fixes.find(c.p.stem, m.MetricName, "drop")) > 0 {
			continue
		}
		lower := strings.ToLower(m.MetricName)
		if c.names[lower] != "" {
			return nil, fmt.Errorf("there are two metrics %s", m.MetricName)
		}
		if _, ok := c.infos[m.MetricName]; m.isInfo() != ok {
			return nil, fmt.Errorf("%s: info.csv says nothing about it", m.MetricName)
		}
		c.names[lower] = m.MetricName
		c.tree[m.MetricName] = m.isTree()
		kept = append(kept, m)
	}
	return kept, nil
}

// bottlenecks is the heading of the view that divides the slots by what to do
// about them.
const bottlenecks = "Bottlenecks"

// node makes a node of a metric.
func (c *converter) node(m *vendorMetric) (node, error) {
	n := node{Node: model.Node{Name: m.MetricName, Level: m.Level}, metric: m}
	if m.addition != nil {
		n.Optional, n.Source = m.addition.Optional, m.addition.Source
	}
	var err error
	if n.Parent, err = c.fixes.replace(c.p.stem, m.MetricName, "parent", m.ParentCategory); err != nil {
		return n, err
	}
	if n.Formula, err = c.formula(m); err != nil {
		return n, err
	}
	if n.full, err = c.threshold(m); err != nil {
		return n, err
	}
	if n.Sample, err = c.sample(m); err != nil {
		return n, err
	}
	for _, x := range c.fixes.find(c.p.stem, m.MetricName, "about") {
		n.About = strings.Join(strings.Fields(x.To), " ")
	}
	switch {
	case m.isTree():
		n.Unit, err = domainUnit(m.CountDomain)
		if m.Level <= 2 { // an exact share of the slots, but for what counting at different times does
			n.Min, n.Max = gen.Number(-0.05), gen.Number(1.05)
		}
	case m.isBottleneck():
		n.Section = bottlenecks
	default:
		i := c.infos[m.MetricName]
		n.Section, n.Unit, n.Optional = i.section, i.unit, true
	}
	switch m.CountDomain {
	case "Core_Clocks", "Core_Execution", "Core_Utilization":
		n.Domain = "core"
	}
	return n, err
}

// domainUnit returns the unit of the shares of a count domain, "" for the
// model's own.
func domainUnit(domain string) (string, error) {
	switch domain {
	case "Slots", "Slots_Estimated":
		return "", nil
	case "Clocks", "Clocks_Calculated", "Clocks_Estimated", "Clocks_Retired", "Stalls", "Core_Clocks", "Core_Execution", "Core_Utilization":
		return "cycles", nil
	case "Uops":
		return "uops", nil
	}
	return "", fmt.Errorf("the count domain %q is not known", domain)
}

// sample returns the events that locate a node in the code.
func (c *converter) sample(m *vendorMetric) ([]string, error) {
	var events []string
	for name := range strings.SplitSeq(m.LocateWith, ";") {
		name = strings.TrimSpace(name)
		if name == "" || name == "#NA" {
			continue
		}
		event, err := c.event(name)
		if err != nil {
			return nil, fmt.Errorf("sampling: %w", err)
		}
		if !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return events, nil
}

// order puts the nodes in the order of display: the tree depth first, siblings
// as the vendor has them, then the bottlenecks and the rest by section.
func (m *topdown) order(infos map[string]info) error {
	byName := map[string]*node{}
	for i := range m.nodes {
		byName[m.nodes[i].Name] = &m.nodes[i]
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		switch p := byName[n.Parent]; {
		case n.Parent != "" && p == nil:
			return fmt.Errorf("%s: there is no metric %q to be its parent", n.Name, n.Parent)
		case p != nil && p.Level != n.Level-1, p == nil && n.Level != 1:
			return fmt.Errorf("%s: it is of level %d, its parent %q is not of the one above", n.Name, n.Level, n.Parent)
		case n.Section != "" && n.Parent != "":
			return fmt.Errorf("%s: it is not of the tree but has the parent %q", n.Name, n.Parent)
		}
	}
	var ordered []node
	var below func(parent string)
	below = func(parent string) {
		for _, n := range m.nodes {
			if n.Section == "" && n.Parent == parent {
				ordered = append(ordered, n)
				below(n.Name)
			}
		}
	}
	below("")
	others := slices.DeleteFunc(slices.Clone(m.nodes), func(n node) bool { return n.Section == "" })
	slices.SortStableFunc(others, func(a, b node) int { return a.rank(infos) - b.rank(infos) })
	m.nodes = append(ordered, others...)
	return nil
}

// rank is the place of a node's section.
func (n *node) rank(infos map[string]info) int {
	if n.Section == bottlenecks {
		return -1
	}
	return infos[n.Name].order
}

// shortenThresholds leaves out of each threshold what its parent's says. Those
// of the efficient cores are not the vendor's and never say what a parent's do.
func (m *topdown) shortenThresholds() {
	full := map[string]string{}
	for _, n := range m.nodes {
		full[n.Name] = n.full
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		n.Threshold, n.Standalone = withoutParent(n.full, full[n.Parent])
		n.Standalone = n.Standalone && !m.p.atom
	}
}

// domains marks the nodes whose values are those of a core with all its threads, or of a
// package: shares of a core's cycles, formulas for SMT alone, events outside the cores, and all
// that is computed from them.
func (m *topdown) domains() error {
	byName := map[string]*node{}
	for i := range m.nodes {
		byName[m.nodes[i].Name] = &m.nodes[i]
	}
	outside := map[string]bool{}
	for _, in := range m.inputs {
		outside[in.Name] = strings.Contains(in.Events[0], "/")
	}
	done := map[string]bool{}
	var visit func(n *node) error
	visit = func(n *node) error {
		if done[n.Name] {
			return nil
		}
		done[n.Name] = true
		e, err := metric.Parse(n.Formula)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if n.Domain == "" && withSMT(e, 0) != withSMT(e, 1) {
			n.Domain = "core"
		}
		for _, name := range e.Names() {
			if outside[name] {
				n.Domain = "package"
			}
			other, ok := byName[name]
			if !ok {
				continue
			}
			if err := visit(other); err != nil {
				return err
			}
			if other.Domain == "package" || n.Domain == "" {
				n.Domain = other.Domain
			}
		}
		return nil
	}
	for i := range m.nodes {
		if err := visit(&m.nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// withSMT returns a formula as it is with SMT on (1) or off (0).
func withSMT(e *metric.Expr, on float64) string {
	return e.Fold(metric.Constants{Literal: func(name string) (float64, bool) { return on, name == "#smt_on" }}).String()
}

// isClosed reports whether children sum to their parent for every draw of
// random counts, whose values by node are given: then the sum is an identity.
func isClosed(parent int, children []int, draws [][]float64) bool {
	tested := false
	for _, values := range draws {
		sum := 0.0
		for _, i := range children {
			sum += values[i]
		}
		if math.IsNaN(sum) || math.IsNaN(values[parent]) {
			continue
		}
		tested = true
		if math.Abs(sum-values[parent]) > closeEnough*max(math.Abs(sum), math.Abs(values[parent])) {
			return false
		}
	}
	return tested
}
