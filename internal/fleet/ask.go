package fleet

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// instance is the label that names a host, as the scrape sets it.
const instance = "instance"

// window is that of the recording rules, in their names too. They have squares and products
// of at least one window in spreadEvery.
const (
	window      = 5 * time.Minute
	spreadEvery = 15 * time.Minute
)

// levelsMost are the levels of a tree that the exporter has counters for.
const levelsMost = 3

// A Match is a condition on a label.
type Match struct {
	Label, Value string
	Not          bool
}

func (m Match) String() string {
	op := "="
	if m.Not {
		op = "!="
	}
	return m.Label + op + strconv.Quote(m.Value)
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ParseMatch reads LABEL=VALUE or LABEL!=VALUE.
func ParseMatch(option, text string) (Match, error) {
	label, value, ok := strings.Cut(text, "=")
	label, not := strings.CutSuffix(label, "!")
	if !ok || !labelName.MatchString(label) {
		return Match{}, fault.Optionf(option, text, "not LABEL=VALUE, such as service=search")
	}
	return Match{label, value, not}, nil
}

// A Question is what is asked of a store.
type Question struct {
	By    string // the label that accounts are split by
	At    time.Time
	Range time.Duration
	Where []Match
	Level int  // the deepest of the tree
	Raw   bool // recording rules are not used
	// Earlier asks for products with what each host counted so much earlier; 0 for none.
	// Recording rules have no hosts, and so no such products.
	Earlier time.Duration
}

// scope is that of the series for a label: a host's series have no services.
func (q *Question) scope() string {
	for _, m := range q.Where {
		if m.Label == series.Scope {
			return m.Value
		}
	}
	labels := []string{q.By}
	for _, m := range q.Where {
		labels = append(labels, m.Label)
	}
	scope := series.Host
	for _, l := range labels {
		switch l {
		case series.Pod, series.Container:
			return series.ByContainer
		case series.Service, series.Namespace:
			scope = series.Workload
		}
	}
	return scope
}

// check refuses a question that means nothing.
func (q *Question) check() error {
	switch {
	case !labelName.MatchString(q.By):
		return fault.Optionf("by", q.By, "not the name of a label, such as service")
	case slices.Contains([]string{series.Node, series.Group, series.Mode, series.Scope}, q.By):
		return fault.Optionf("by", q.By, "an account needs all of it: name another label, such as service")
	case q.Range < time.Second:
		return fault.Optionf("range", q.Range.String(), "not a time of at least a second, such as 1h")
	case q.Level < 0 || q.Level > levelsMost:
		return fault.Optionf("level", strconv.Itoa(q.Level), "the counters have levels 1 to %d", levelsMost)
	}
	return nil
}

// A Key says what one account is about. Accounts of different keys but By are never summed.
type Key struct {
	By, CPU, CoreType, Model, Version, Method string
	Unit                                      series.Unit
}

// compare orders keys by name.
func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.By, o.By), cmp.Compare(k.CPU, o.CPU), cmp.Compare(k.CoreType, o.CoreType),
		cmp.Compare(k.Model, o.Model), cmp.Compare(k.Version, o.Version), cmp.Compare(k.Method, o.Method), cmp.Compare(k.Unit.Name, o.Unit.Name))
}

// processor is the catalogue's name of the processor.
func (k Key) processor() string {
	if k.CoreType == "" || strings.Contains(k.CPU, ":") {
		return k.CPU
	}
	return k.CPU + ":" + k.CoreType
}

// A Whole is the denominator of a group of counters: its sum over hosts, and the sum of
// its squares. Means over windows of recording rules are written as sums over the range.
type Whole struct {
	Q, QQ, Hosts float64
	QEarlier     float64 // the sum of products with the host's whole in an earlier range
}

// A Part is what one group of counters adds to a node: its sum over hosts, the sum of its
// squares, and that of its products with the whole.
type Part struct {
	N, NN, NQ float64
	Of        *Whole
	// Sums of products with the earlier range: of numerators; of the numerator with the
	// earlier whole; and of the whole with the earlier numerator.
	NEarlier, NQEarlier, QNEarlier float64
}

// A Node is the sums of one node.
type Node struct {
	Name  string
	Level int
	Parts []Part
}

// A Row is what the store has for one account.
type Row struct {
	Key
	CPUs   float64 // busy on average, by the operating system; NaN if not known
	Cover  float64 // of the counters, running/enabled; NaN if not known
	Wholes map[string]*Whole
	Nodes  []Node
}

// Hosts is the number of hosts that the row is of.
func (r *Row) Hosts() int {
	most := 0.0
	for _, w := range r.Wholes {
		most = max(most, w.Hosts)
	}
	return int(most)
}

// An Answer is what a store knows.
type Answer struct {
	Question
	Rows     []*Row
	Rules    bool // from recording rules
	Windows  int  // of these
	Seen     int  // hosts with counters in the range
	Expected int  // hosts that the store was to scrape; 0 if not known
	Queries  []string
	Notes    []string
}

// asking gathers an answer.
type asking struct {
	store *Store
	ctx   context.Context
	a     *Answer
	rows  map[Key]*Row
	nodes map[nodeKey]*Part
	bad   int // sums that are no numbers

	mu  sync.Mutex
	err error
}

type nodeKey struct {
	key         Key
	node, group string
	level       int
}

// Ask asks the store for sums over hosts. Recording rules answer if the store has them for
// these times, else the counters do.
func Ask(ctx context.Context, s *Store, q Question) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Level == 0 {
		q.Level = levelsMost
	}
	g := &asking{store: s, ctx: ctx, a: &Answer{Question: q}, rows: map[Key]*Row{}, nodes: map[nodeKey]*Part{}}
	if !q.Raw && q.By != instance && !slices.ContainsFunc(q.Where, func(m Match) bool { return !ruled(m.Label) }) && ruled(q.By) {
		g.a.Rules = true
		g.wholes()
	}
	if len(g.rows) == 0 && g.err == nil {
		g.a.Rules = false
		g.wholes()
	}
	g.parts()
	g.times()
	if g.err == nil {
		g.err = g.coverage()
	}
	if g.err == nil {
		g.err = g.hosts()
	}
	if g.err != nil {
		return nil, g.err
	}
	for _, r := range g.rows {
		g.a.Rows = append(g.a.Rows, r)
	}
	slices.SortFunc(g.a.Rows, func(x, y *Row) int { return x.compare(y.Key) })
	if g.bad > 0 {
		g.a.Notes = append(g.a.Notes, fmt.Sprintf("%d sums are not numbers: some host exports NaN; their nodes are left out", g.bad))
	}
	return g.a, g.versions()
}

// ruled reports whether series of recording rules have a label.
func ruled(label string) bool {
	return !slices.Contains([]string{instance, series.Pod, series.Container, series.Socket, "job"}, label)
}

// kept are the labels that sums are split by. Recording rules have squares of each service of
// a host, so that services stay apart until their errors are known.
func (g *asking) kept(more ...string) string {
	list := []string{g.a.By}
	if g.a.Rules && g.a.scope() == series.Workload {
		more = append(more, series.Namespace, series.Service)
	}
	for _, l := range append([]string{series.Processor, series.CoreType, series.Model, series.ModelVersion, series.Method, series.Group}, more...) {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return strings.Join(list, ", ")
}

// selector is the conditions on the series of a metric.
func (g *asking) selector(drop func(label string) bool, more ...string) string {
	list := slices.Clone(more)
	for _, m := range g.a.Where {
		if m.Label != series.Scope && (drop == nil || !drop(m.Label)) {
			list = append(list, m.String())
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// inScope is the selector of series of the account.
func (g *asking) inScope() string {
	return g.selector(nil, Match{Label: series.Scope, Value: g.a.scope()}.String())
}

// duration is a time as PromQL has it.
func duration(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// increase is the growth of a counter in the range.
func (g *asking) increase(metric string) string {
	return "increase(" + metric + g.inScope() + "[" + duration(g.a.Range) + "])"
}

// earlier is the growth in the earlier range.
func (g *asking) earlier(metric string) string {
	return strings.TrimSuffix(g.increase(metric), ")") + " offset " + duration(g.a.Earlier) + ")"
}

// each is growth by host.
func (g *asking) each(increase string, more ...string) string {
	return "sum by (" + g.kept(append(more, instance)...) + ") (" + increase + ")"
}

// rule is the mean of a recording rule's results over the range.
func (g *asking) rule(metric, kind string) string { return g.mean(metric, kind, g.a.Range) }

// spread is the same of squares or products, over a range that has some.
func (g *asking) spread(metric, kind string) string {
	return g.mean(metric, kind, max(g.a.Range, spreadEvery))
}

// mean is the mean of a recording rule's results over a time.
func (g *asking) mean(metric, kind string, over time.Duration) string {
	name := strings.Replace(strings.TrimSuffix(metric, "_total"), "cyclestack_", "cyclestack:", 1) + ":" + kind
	return "avg_over_time(" + name + g.inScope() + "[" + duration(over) + "])"
}

// A wanted is an expression and what is done with its elements.
type wanted struct {
	expr string
	take func(Sample)
}

// atOnce is how many questions a store gets at a time.
const atOnce = 4

// ask evaluates expressions, several at a time, and takes what they give one by one.
func (g *asking) ask(list []wanted) {
	if g.err != nil {
		return
	}
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for _, w := range list {
		g.a.Queries = append(g.a.Queries, w.expr)
		slots <- struct{}{}
		wait.Add(1)
		go func() {
			defer func() { <-slots; wait.Done() }()
			samples, err := g.store.Query(g.ctx, w.expr, g.a.At)
			g.mu.Lock()
			defer g.mu.Unlock()
			if err != nil {
				g.err = cmp.Or(g.err, err)
				return
			}
			for _, s := range samples {
				if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
					g.bad++
				}
				w.take(s)
			}
		}()
	}
	wait.Wait()
}

// key is what an element is about.
func (g *asking) key(s *Sample, u series.Unit) Key {
	return Key{By: s.Labels[g.a.By], CPU: s.Labels[series.Processor], CoreType: s.Labels[series.CoreType], Model: s.Labels[series.Model],
		Version: s.Labels[series.ModelVersion], Method: s.Labels[series.Method], Unit: u}
}

// whole is the denominator that an element is about.
func (g *asking) whole(s *Sample, u series.Unit) *Whole {
	k := g.key(s, u)
	r := g.rows[k]
	if r == nil {
		r = &Row{Key: k, CPUs: math.NaN(), Cover: math.NaN(), Wholes: map[string]*Whole{}}
		g.rows[k] = r
	}
	group := g.group(s)
	w := r.Wholes[group]
	if w == nil {
		w = &Whole{}
		r.Wholes[group] = w
	}
	return w
}

// group is what has one denominator: a group of counters, of one service if these are apart.
func (g *asking) group(s *Sample) string {
	if !g.a.Rules || g.a.scope() != series.Workload {
		return s.Labels[series.Group]
	}
	return strings.Join([]string{s.Labels[series.Group], s.Labels[series.Namespace], s.Labels[series.Service]}, "\x00")
}

// wholes asks for the denominators.
func (g *asking) wholes() {
	var list []wanted
	scale := g.scale()
	for _, u := range series.Units {
		add := func(expr string, take func(w *Whole, v float64)) {
			list = append(list, wanted{expr, func(s Sample) { take(g.whole(&s, u), s.Value) }})
		}
		by := "sum by (" + g.kept() + ") "
		sum, squares := func(w *Whole, v float64) { w.Q += v * scale }, func(w *Whole, v float64) { w.QQ += v * scale * scale }
		hosts := func(w *Whole, v float64) { w.Hosts += v }
		if g.a.Rules {
			add(by+"("+g.rule(u.Whole, "sum_increase5m")+")", sum)
			add(by+"("+g.spread(u.Whole, "sumsq_increase5m")+")", squares)
			add(by+"("+g.rule(u.Whole, "hosts")+")", hosts)
			continue
		}
		each := g.each(g.increase(u.Whole))
		add(by+"("+g.increase(u.Whole)+")", sum)
		add(by+"("+each+" ^ 2)", squares)
		add("count by ("+g.kept()+") ("+each+" > 0)", hosts)
		if g.a.Earlier > 0 {
			add(by+"("+each+" * "+g.each(g.earlier(u.Whole))+")", func(w *Whole, v float64) { w.QEarlier += v })
		}
	}
	g.ask(list)
}

// scale is what a rule's mean window is multiplied by to be of the whole range.
func (g *asking) scale() float64 {
	if g.a.Rules {
		return g.a.Range.Seconds() / window.Seconds()
	}
	return 1
}

// parts asks for the nodes.
func (g *asking) parts() {
	units := map[series.Unit]bool{}
	for k := range g.rows {
		units[k.Unit] = true
	}
	var list []wanted
	scale := g.scale()
	for _, u := range series.Units {
		if !units[u] {
			continue
		}
		for level := 1; level <= g.a.Level; level++ {
			add := func(expr string, take func(p *Part, v float64)) {
				list = append(list, wanted{expr, func(s Sample) {
					if p := g.part(&s, u, level); p != nil {
						take(p, s.Value)
					}
				}})
			}
			sum, squares := func(p *Part, v float64) { p.N += v * scale }, func(p *Part, v float64) { p.NN += v * scale * scale }
			products := func(p *Part, v float64) { p.NQ += v * scale * scale }
			by, metric := "sum by ("+g.kept(series.Node)+") ", u.Node(level)
			if g.a.Rules {
				add(by+"("+g.rule(metric, "sum_increase5m")+")", sum)
				add(by+"("+g.spread(metric, "sumsq_increase5m")+")", squares)
				add(by+"("+g.spread(metric, "sumprod_increase5m")+")", products)
				continue
			}
			each, whole := g.each(g.increase(metric), series.Node), g.each(g.increase(u.Whole))
			const times = " * ignoring (" + series.Node + ") group_left () "
			add(by+"("+g.increase(metric)+")", sum)
			add(by+"("+each+" ^ 2)", squares)
			add(by+"("+each+times+whole+")", products)
			if g.a.Earlier == 0 {
				continue
			}
			eachEarlier, wholeEarlier := g.each(g.earlier(metric), series.Node), g.each(g.earlier(u.Whole))
			add(by+"("+each+" * "+eachEarlier+")", func(p *Part, v float64) { p.NEarlier += v })
			add(by+"("+each+times+wholeEarlier+")", func(p *Part, v float64) { p.NQEarlier += v })
			add(by+"("+eachEarlier+times+whole+")", func(p *Part, v float64) { p.QNEarlier += v })
		}
	}
	g.ask(list)
	g.gather()
}

// part is the numerator that an element is about, nil if it has no denominator.
func (g *asking) part(s *Sample, u series.Unit, level int) *Part {
	k := nodeKey{g.key(s, u), s.Labels[series.Node], g.group(s), level}
	r := g.rows[k.key]
	if r == nil || r.Wholes[k.group] == nil || k.node == "" {
		return nil
	}
	p := g.nodes[k]
	if p == nil {
		p = &Part{Of: r.Wholes[k.group]}
		g.nodes[k] = p
	}
	return p
}

// gather puts the numerators to their nodes.
func (g *asking) gather() {
	type name struct {
		node  string
		level int
	}
	at := map[*Row]map[name]int{}
	keys := make([]nodeKey, 0, len(g.nodes))
	for k := range g.nodes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y nodeKey) int {
		return cmp.Or(x.key.compare(y.key), cmp.Compare(x.level, y.level), cmp.Compare(x.node, y.node), cmp.Compare(x.group, y.group))
	})
	for _, k := range keys {
		r := g.rows[k.key]
		if at[r] == nil {
			at[r] = map[name]int{}
		}
		i, ok := at[r][name{k.node, k.level}]
		if !ok {
			i = len(r.Nodes)
			at[r][name{k.node, k.level}] = i
			r.Nodes = append(r.Nodes, Node{Name: k.node, Level: k.level})
		}
		r.Nodes[i].Parts = append(r.Nodes[i].Parts, *g.nodes[k])
	}
}

// times asks for the processors that were busy.
func (g *asking) times() {
	by := "sum by (" + strings.Join(slices.Compact([]string{g.a.By, series.Processor, series.CoreType}), ", ") + ") "
	expr := by + "(" + g.rule(series.CPU, "sum_increase5m") + ")"
	if !g.a.Rules {
		busy := g.selector(nil, Match{Label: series.Scope, Value: g.a.scope()}.String(), series.Mode+`=~"user|system"`)
		expr = by + "(increase(" + series.CPU + busy + "[" + duration(g.a.Range) + "]))"
	}
	seconds := g.a.Range.Seconds()
	if g.a.Rules {
		seconds = window.Seconds()
	}
	g.ask([]wanted{{expr, func(s Sample) {
		for k, r := range g.rows {
			cpu, ok := s.Labels[series.Processor]
			if k.By == s.Labels[g.a.By] && (!ok || cpu == k.CPU) && k.CoreType == s.Labels[series.CoreType] {
				r.CPUs = s.Value / seconds
			}
		}
	}}})
}
