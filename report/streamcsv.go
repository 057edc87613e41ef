package report

import (
	"cmp"
	"io"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// streamCSV writes streams as CSV: a row for each account. A node has three columns: its
// value, its error and its flags. Behind them are columns of the account as a whole.
type streamCSV struct {
	w   io.Writer
	o   Options
	buf []byte

	begun  bool
	nodes  *columns
	times  *columns // nil for none
	names  []string // of the user's events
	groups grouping

	reasons []byte // of the account: why nodes are not known, or not reliable
}

// Begin writes nothing: the first account decides which columns there are.
func (c *streamCSV) Begin(Header) error { return nil }

func (c *streamCSV) End() error { return nil }

// What the columns of a node hold, besides its value.
const (
	errorColumn = " error"
	flagsColumn = " flags"
)

// The flags of a node: words by blanks.
const (
	flagFlagged    = "flagged"
	flagBottleneck = "bottleneck"
	flagApart      = "apart"      // its events were not counted at the same times
	flagUnreliable = "unreliable" // the last column but one says why
)

// begin chooses the columns and appends their names.
func (c *streamCSV) begin(b []byte, a *account.Account) []byte {
	c.begun = true
	c.nodes, _ = computable(a, c.o)
	b = append(b, "scope,label,start_s,duration_s"...)
	name := func(name string) {
		for _, behind := range []string{"", errorColumn, flagsColumn} {
			b = append(append(b, ','), field(name+behind)...)
		}
	}
	for _, i := range c.nodes.nodes {
		name(c.nodes.model.Nodes[i].Name)
	}
	if t := a.Times; t != nil {
		c.times = newColumns(t.Model(), t.Model().Shown("", c.o.Level))
		for i, shown := range timesShown(t) {
			if shown && c.times.add(i) {
				name(t.Model().Name + ":" + t.Model().Nodes[i].Name)
			}
		}
	}
	for _, r := range named(a) {
		c.names = append(c.names, cmp.Or(r.As, r.Event))
		name(cmp.Or(r.As, r.Event))
	}
	return append(b, ",coverage,why,more\n"...)
}

func (c *streamCSV) Account(a *account.Account) error {
	b := c.buf[:0]
	if !c.begun {
		b = c.begin(b, a)
	}
	b = append(append(b, a.Scope.Kind.String()...), ',')
	if label := scopeLabel(a); label != "" {
		b = append(b, field(label)...)
	}
	b = page.AppendDecimal(append(b, ','), a.Start)
	b = page.AppendDecimal(append(b, ','), a.Duration)
	g := &c.groups
	g.clear()
	g.cover = append(g.cover[:0], math.NaN())
	c.reasons = c.reasons[:0]
	b = c.set(b, a, c.nodes)
	if c.times != nil && a.Times != nil {
		b = c.set(b, a.Times, c.times)
	} else if c.times != nil {
		b = append(b, strings.Repeat(",,,", len(c.times.nodes))...)
	}
	if len(c.names) > 0 {
		b = c.own(b, a)
	}
	b = page.AppendDecimal(append(b, ','), math.Round(g.cover[0]*1e6)/1e6)
	b = append(append(b, ','), field(string(c.reasons))...)
	b = c.more(append(b, ','), a)
	c.buf = append(b, '\n')
	_, err := c.w.Write(c.buf)
	return err
}

// set appends the columns of nodes.
func (c *streamCSV) set(b []byte, a *account.Account, of *columns) []byte {
	g := &c.groups
	for _, i := range of.nodes {
		v := &a.Nodes[i]
		b = page.AppendDecimal(append(b, ','), v.Value)
		b = page.AppendDecimal(append(b, ','), v.Error)
		b = append(b, ',')
		if !v.Known() {
			g.add(c.o.note(a.Why(i)), i)
			continue
		}
		if !(g.cover[0] <= v.Coverage) {
			g.cover[0] = v.Coverage
		}
		start := len(b)
		flag := func(is bool, word string) {
			if is && len(b) > start {
				b = append(b, ' ')
			}
			if is {
				b = append(b, word...)
			}
		}
		flag(v.Flagged, flagFlagged)
		flag(onPath(a, i), flagBottleneck)
		flag(!v.Together, flagApart)
		flag(v.Doubt != account.DoubtNone, flagUnreliable)
		if v.Doubt != account.DoubtNone {
			g.add(v.Doubt.String(), i)
		}
	}
	c.explain(of)
	return b
}

// explain adds what was said of columns to the reasons: each with the names of its nodes.
func (c *streamCSV) explain(of *columns) {
	g, r := &c.groups, c.reasons
	for k, text := range g.said {
		if len(r) > 0 {
			r = append(r, "; "...)
		}
		r = append(append(r, text...), ':')
		for _, i := range g.columns[k] {
			r = append(append(r, ' '), of.model.Nodes[i].Name...)
		}
	}
	c.reasons, g.said = r, g.said[:0]
}

// more appends the known nodes that have no column, because the recording had other events
// at first: names and values.
func (c *streamCSV) more(b []byte, a *account.Account) []byte {
	n := 0
	for i := range a.Nodes {
		if c.nodes.at[i] >= 0 || !c.nodes.asked[i] || !a.Nodes[i].Known() {
			continue
		}
		if n > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, c.nodes.model.Nodes[i].Name...), '=')
		b = page.AppendDecimal(b, a.Nodes[i].Value)
		n++
	}
	return b
}

// own appends the columns of the events that the user named.
func (c *streamCSV) own(b []byte, a *account.Account) []byte {
	list := named(a)
	for _, name := range c.names {
		var r *account.Rate
		for i := range list {
			if cmp.Or(list[i].As, list[i].Event) == name {
				r = &list[i]
			}
		}
		if r == nil {
			b = append(b, ",,,"...)
			continue
		}
		e := r.Estimate()
		b = page.AppendDecimal(append(b, ','), e.Value)
		b = append(page.AppendDecimal(append(b, ','), e.Error), ',')
		if r.State != counts.Counted {
			b = append(b, r.State.String()...)
		}
	}
	return b
}
