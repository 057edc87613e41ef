package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// A Ratio is a node's share of its whole, with its standard error from the spread over hosts.
type Ratio struct {
	Value   float64
	Error   float64 // one standard error; NaN with fewer than two hosts
	Hosts   float64
	Freedom float64 // degrees of freedom of the error; NaN without one
}

// effective is how many hosts of the same size have as much to say as those of a whole:
// (ΣQ)²/ΣQ² (L. Kish, Survey Sampling, section 11.7). Rounding may take it beyond 1 and H.
func (w *Whole) effective() float64 { return max(1+1e-6, min(w.Q*w.Q/w.QQ, w.Hosts)) }

// Ratio forms the share from sums. Hosts are clusters: with E effective hosts, the variance
// of R = ΣN/ΣQ is E/(E−1) (ΣN² − 2R ΣNQ + R² ΣQ²)/(ΣQ)². It has E − 1 degrees of freedom, and
// at least one. With hosts of one size E is their number H, and the formula that of W. G. Cochran, Sampling
// Techniques, section 6.8. Parts may be of the same hosts, so their standard errors add up,
// which holds for any correlation.
func (n *Node) Ratio() Ratio {
	sum, of, hosts := 0.0, 0.0, 0.0
	for _, p := range n.Parts {
		sum, of, hosts = sum+p.N, of+p.Of.Q, max(hosts, p.Of.Hosts)
	}
	r := Ratio{Value: math.NaN(), Error: math.NaN(), Hosts: hosts, Freedom: math.NaN()}
	if !(of > 0) || !(sum >= 0) || math.IsInf(sum, 0) || math.IsInf(of, 0) {
		return r
	}
	r.Value = sum / of
	if hosts < 2 {
		return r
	}
	r.Error, r.Freedom = 0, math.Inf(1)
	for _, p := range n.Parts {
		r.Error += math.Sqrt(max(p.spread(r.Value), 0)) / of
		r.Freedom = min(r.Freedom, max(p.Of.effective()-1, 1))
	}
	return r
}

// spread is the variance of a part's sum around a share of its whole.
func (p *Part) spread(share float64) float64 {
	e := p.Of.effective()
	return e / (e - 1) * (p.NN - 2*share*p.NQ + share*share*p.Of.QQ)
}

// student is the 97.5 % quantile of Student's distribution.
func student(freedom float64) float64 {
	return stats.InvCDF(stats.TDist{V: freedom})(0.975)
}

// An Account is a row as an account.
type Account struct {
	*Row
	*account.Account
	Ratios []Ratio // by node of the account's model
	// Lost is the share of the nodes of the first level that do no useful work; NaN if not known.
	Lost float64
	// Saved is what the bottleneck takes: busy processors if they are known, else parts
	// of the row's whole. At most that can be saved there.
	Saved float64
}

// A Set is accounts of one model for one processor.
type Set struct {
	Model    *model.Model
	CPU      *model.CPU
	Key      // without By
	Accounts []*Account
	Notes    []string
}

// Accounts makes accounts of an answer's rows, by the model that their hosts counted with. A
// row has several methods where hosts have: the best is taken.
func Accounts(a *Answer, cat *model.Catalogue) ([]*Set, error) {
	if len(a.Rows) == 0 {
		return nil, fault.Inputf("the store has no counters of cyclestack with scope %s in this range: are agents scraped, and do the labels of %s exist?", a.scope(), fault.Name("where"))
	}
	var sets []*Set
	rows := map[Key][]*Row{}
	var order []Key
	for _, r := range a.best() {
		k := r.Key
		k.By = ""
		if rows[k] == nil {
			order = append(order, k)
		}
		rows[k] = append(rows[k], r)
	}
	slices.SortFunc(order, Key.compare)
	for _, k := range order {
		s, err := newSet(k, rows[k], a, cat)
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// best are the rows by the best method that the hosts of each have.
func (a *Answer) best() []*Row {
	of := func(r *Row) Key { return Key{By: r.By, CPU: r.CPU, CoreType: r.CoreType} }
	best := map[Key]int{}
	for _, r := range a.Rows {
		if at, ok := best[of(r)]; !ok || rank(r.Unit) < at {
			best[of(r)] = rank(r.Unit)
		}
	}
	var list []*Row
	for _, r := range a.Rows {
		if rank(r.Unit) == best[of(r)] {
			list = append(list, r)
		}
	}
	return list
}

// rank orders the units of accounts: slots say more than cycles, and both more than times.
func rank(u series.Unit) int { return slices.Index(series.Units, u) }

func newSet(k Key, rows []*Row, a *Answer, cat *model.Catalogue) (*Set, error) {
	s := &Set{Key: k}
	cpu, err := cat.CPU(k.processor())
	if err != nil {
		if cpu, err = cat.CPU("generic"); err != nil {
			return nil, err
		}
		s.Notes = append(s.Notes, fmt.Sprintf("the catalogue here has no processor %s", cut(k.processor())))
	}
	base, err := cat.Model(k.Model, cpu.Name)
	if err != nil {
		base, err = cat.Model(k.Model, "generic")
	}
	if err != nil {
		return nil, fault.Inputf("hosts count by %s on %s, which the catalogue here does not have: update cyclestack", cut(k.Model), cut(k.CPU))
	}
	if k.Version != "" && k.Version != base.Version {
		s.Notes = append(s.Notes, fmt.Sprintf("hosts count by %s %s; titles and thresholds are those of %s", k.Model, cut(k.Version), base.Version))
	}
	events, err := cat.Events(cpu)
	if err != nil {
		return nil, err
	}
	var unknown []string
	s.CPU = cpu
	s.Model, unknown = shares(base, k, rows)
	if len(unknown) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("left out, as %s %s has no such nodes: %s", base.Name, base.Version, cut(strings.Join(unknown, ", "))))
	}
	method, err := account.Compile(s.Model, cpu, events, account.Options{})
	if err != nil {
		return nil, err
	}
	columns := []counts.Column{{Event: wholeEvent}}
	for i := range s.Model.Nodes {
		columns = append(columns, counts.Column{Event: event(s.Model.Nodes[i].Name)})
	}
	layout := &counts.Layout{Columns: columns, Scopes: []counts.Scope{counts.RunScope("")}}
	binding := method.Bind(layout)
	for _, r := range rows {
		s.Accounts = append(s.Accounts, s.account(r, a, layout, binding))
	}
	return s, nil
}

// The names of a row's sums, as events.
const wholeEvent = "whole"

func event(node string) string { return "in_" + node }

// shares is a model whose nodes are given as amounts of the whole. It has those of a base
// model that any row has, with their titles, thresholds and advice.
func shares(base *model.Model, k Key, rows []*Row) (m *model.Model, unknown []string) {
	level := map[string]int{}
	for _, r := range rows {
		for _, n := range r.Nodes {
			level[n.Name] = n.Level
		}
	}
	m = &model.Model{Name: base.Name, Version: k.Version, Title: base.Title, About: base.About, Source: base.Source, CPUs: base.CPUs,
		Unit: base.Unit, Of: "WHOLE", Mode: base.Mode, File: base.File, Parameters: base.Parameters,
		Inputs: []model.Input{{Name: "WHOLE", Events: []string{wholeEvent}}}}
	if m.Version == "" {
		m.Version = base.Version
	}
	if k.Unit == series.CPUSeconds {
		m.Unit = "CPU time"
	}
	at := map[string]int{}
	add := func(n *model.Node, share bool) {
		name := "IN_" + n.Name
		c := model.Node{Name: n.Name, Formula: name, Domain: n.Domain, Title: n.Title, About: n.About, Causes: n.Causes, Try: n.Try,
			Source: n.Source, Sample: n.Sample, Overlap: n.Overlap, Negative: n.Negative, Expected: n.Expected, File: n.File, Line: n.Line,
			Level: level[n.Name], Path: n.Name, Above: -1}
		if share { // and so is the threshold
			c.Threshold, c.Standalone, c.Min, c.Max = n.Threshold, n.Standalone, n.Min, n.Max
		}
		for j := n.Above; j >= 0 && c.Above < 0; j = base.Nodes[j].Above {
			if i, ok := at[base.Nodes[j].Name]; ok {
				c.Above, c.Parent, c.Path = i, m.Nodes[i].Name, m.Nodes[i].Path+"."+n.Name
				m.Nodes[i].Children = append(m.Nodes[i].Children, len(m.Nodes))
			}
		}
		at[n.Name] = len(m.Nodes)
		m.Nodes = append(m.Nodes, c)
		m.Inputs = append(m.Inputs, model.Input{Name: name, Events: []string{event(n.Name)}})
	}
	for i := range base.Nodes {
		if _, ok := level[base.Nodes[i].Name]; ok {
			add(&base.Nodes[i], base.Share(i))
		}
	}
	for name := range level {
		if _, ok := at[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	known := func(text string) bool {
		x, err := metric.Parse(text)
		return err == nil && !slices.ContainsFunc(x.Names(), func(name string) bool {
			_, ok := at[name]
			return !ok && !slices.ContainsFunc(base.Parameters, func(p model.Parameter) bool { return p.Name == name })
		})
	}
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Threshold != "" && !known(n.Threshold) {
			n.Threshold = ""
		}
	}
	return m, unknown
}

// account evaluates the model over a row's sums.
func (s *Set) account(r *Row, a *Answer, layout *counts.Layout, binding *account.Binding) *Account {
	t := counts.NewTable(layout)
	t.Start, t.Duration, t.Label = 0, a.Range.Seconds(), r.By
	whole := r.first()
	put := func(column int, c counts.Cell) {
		c.State, c.Repeats = counts.Counted, int32(max(r.Hosts(), 1))
		if !math.IsNaN(r.Cover) {
			c.Enabled = a.Range.Seconds() * 1e9 * float64(max(r.Hosts(), 1))
			c.Running = r.Cover * c.Enabled
		}
		*t.Cell(0, column) = c
	}
	put(0, counts.Cell{Value: whole})
	out := &Account{Row: r, Ratios: make([]Ratio, len(s.Model.Nodes)), Lost: math.NaN(), Saved: math.NaN()}
	for i := range out.Ratios {
		out.Ratios[i] = Ratio{Value: math.NaN(), Error: math.NaN(), Freedom: math.NaN()}
	}
	for i := range s.Model.Nodes {
		k := slices.IndexFunc(r.Nodes, func(n Node) bool { return n.Name == s.Model.Nodes[i].Name })
		if k < 0 {
			continue
		}
		ratio := r.Nodes[k].Ratio()
		out.Ratios[i] = ratio
		if math.IsNaN(ratio.Value) {
			continue
		}
		c := counts.Cell{Value: ratio.Value * whole}
		if e := ratio.Error * whole; e > 0 { // as wide as Student's distribution has it
			e *= student(ratio.Freedom) / counts.Confidence
			c.Variance = e * e
		}
		put(i+1, c)
	}
	out.Account = binding.Evaluate(t, account.Place{}, nil).Clone()
	out.Runs = 1 // hosts are no repeats
	out.judge(s)
	return out
}

// first is the whole of the group that the first level is in.
func (r *Row) first() float64 {
	for _, n := range r.Nodes {
		sum := 0.0
		for _, p := range n.Parts {
			sum += p.Of.Q
		}
		if sum > 0 && !math.IsInf(sum, 0) {
			return sum
		}
	}
	return math.NaN()
}

// judge finds what is lost, and what could be saved. Idle processors are no loss: accounts by
// the operating system have none.
func (a *Account) judge(s *Set) {
	if s.Key.Unit == series.CPUSeconds {
		return
	}
	a.Lost = 0
	for i := range s.Model.Nodes {
		if n := &s.Model.Nodes[i]; n.Above < 0 && !n.Useful() {
			a.Lost += a.Account.Nodes[i].Value
		}
	}
	if n := len(a.Bottleneck); n > 0 && !a.useful(s, a.Bottleneck[n-1]) {
		a.Saved = a.Account.Nodes[a.Bottleneck[n-1]].Value
		if !math.IsNaN(a.CPUs) {
			a.Saved *= a.CPUs
		}
	}
}

// useful reports whether a node is useful work, or part of it.
func (a *Account) useful(s *Set, i int) bool {
	for ; i >= 0; i = s.Model.Nodes[i].Above {
		if s.Model.Nodes[i].Useful() {
			return true
		}
	}
	return false
}

// bottleneck is the index of the deepest node of the bottleneck path, -1 for none.
func (a *Account) bottleneck() int {
	if n := len(a.Bottleneck); n > 0 {
		return a.Bottleneck[n-1]
	}
	return -1
}

// Values are the account's values, by node of the set's model.
func (a *Account) Values() []account.Value { return a.Account.Nodes }
