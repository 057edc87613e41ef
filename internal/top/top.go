// Package top is a live view for terminals: the tree of what is counted now, or its parts,
// with their course over the last minutes. A part can be opened: its tree, its functions,
// and their lines.
//
// It draws with tcell, which waits for events. So an idle view costs no processor time,
// unlike libraries that draw at a fixed rate.
package top

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// history is the number of intervals whose values are kept.
const history = 120

// usualLevel is the depth of the tree at first.
const usualLevel = 3

// A View is the state of what is shown.
type View struct {
	options report.Options
	Name    string // of what is counted
	// Feed makes the accounts of a scope, until the context or what is counted ends.
	Feed Feed
	Keep func(print func(io.Writer) error) (name string, err error)

	mu     sync.Mutex
	header report.Header
	head   []byte           // of the document in JSON
	now    []part           // of the newest interval
	past   map[string][]row // by part: the values of its nodes, the newest last
	wake   func()
	feed   *feeding

	scopes   []Scope // the last is shown, those before it are where Escape leads
	paused   bool
	ended    bool
	selected int
	pointed  string // the part that is selected in a list
	level    int
	of       string // the part whose tree is shown
	message  string
	failed   error // there is nothing to show
}

// A Scope is what is watched: all that the user named or a part of it, and what it is
// divided by.
type Scope struct {
	By    counts.Kind   // Run is the tree of the whole
	Part  *counts.Scope // a processor, process, thread or cgroup; nil for all
	Code  counts.Code   // whose samples count, by Module and Function; "" is all of them
	Level int           // the deepest that is counted; 0 is the user's
}

// Sampled reports whether samples tell the scope: counters cannot be divided by code.
func (s *Scope) Sampled() bool {
	return s.Code != (counts.Code{}) || slices.Contains([]counts.Kind{counts.Module, counts.Function, counts.Line}, s.By)
}

// A Feed writes the accounts of a scope. A document is that of a window of time if it ends,
// else its accounts are of intervals.
type Feed func(context.Context, Scope, report.Writer) error

// Views are what can be watched, in their order.
var Views = []counts.Kind{counts.Run, counts.CPU, counts.Process, counts.Thread, counts.Cgroup, counts.Module, counts.Function}

// names are those of the views.
var names = map[counts.Kind]string{counts.Run: "tree", counts.CPU: "CPUs", counts.Process: "processes", counts.Thread: "threads", counts.Cgroup: "cgroups",
	counts.Module: "modules", counts.Function: "functions", counts.Line: "lines"}

// A part is the account of a scope, copied.
type part struct {
	key   string
	label string
	scope counts.Scope
	share float64 // of the samples; NaN without
	nodes []node
	line  []byte // as JSON
}

type node struct {
	path, name, value, err   string
	share                    float64 // that its bar shows; NaN for none
	reliable, flagged, onWay bool
}

// A row has the values of a part's nodes at one time.
type row map[string]float64

// shareKey is the key in a row of a part's share of the samples.
const shareKey = "share"

// New returns a view of accounts with so many levels, divided by a kind of scope.
func New(name string, by counts.Kind, o report.Options) *View {
	return &View{Name: name, options: o, level: cmp.Or(o.Level, usualLevel), past: map[string][]row{}, wake: func() {}, scopes: []Scope{{By: by}}}
}

// A writer takes the accounts of one scope. When another is watched, it takes no more.
type writer struct {
	v       *View
	feeding *feeding
	json    report.Writer
	buf     bytes.Buffer
	header  report.Header
	next    []part
	values  []row
	start   float64
	whole   float64 // count of samples of all parts
}

// Begin implements [report.Writer].
func (w *writer) Begin(h report.Header) (err error) {
	w.header, w.next, w.values, w.whole, w.start = h, nil, nil, math.NaN(), math.Inf(-1)
	w.buf.Reset()
	if w.json, err = report.New("json", &w.buf, w.v.options); err != nil {
		return err
	}
	if err := w.json.Begin(h); err != nil {
		return err
	}
	return w.v.with(w, func() { w.v.header, w.v.head = h, bytes.Clone(w.buf.Bytes()) })
}

// Account implements [report.Writer].
func (w *writer) Account(a *account.Account) error {
	w.buf.Reset()
	if err := w.json.Account(a); err != nil {
		return err
	}
	p := copied(a)
	p.share = w.share(a)
	p.line = bytes.Clone(bytes.TrimSpace(bytes.TrimPrefix(w.buf.Bytes(), []byte(","))))
	values := row{shareKey: p.share}
	for i, n := range a.Model().Nodes {
		values[n.Path] = a.Nodes[i].Value
	}
	if a.Start != w.start {
		w.next, w.values, w.start = nil, nil, a.Start
	}
	w.next, w.values = append(w.next, p), append(w.values, values)
	if w.header.Profile != nil { // complete at the end
		return nil
	}
	n := len(w.next) - 1
	return w.v.with(w, func() { w.v.take(w.next[:n+1:n+1], w.next[n:], w.values[n:]) })
}

// End implements [report.Writer].
func (w *writer) End() error {
	if w.header.Profile == nil {
		return nil
	}
	return w.v.with(w, func() { w.v.take(w.next, w.next, w.values) })
}

// share is the part of all samples that an account has.
func (w *writer) share(a *account.Account) float64 {
	if w.header.Profile == nil {
		return math.NaN()
	}
	for _, c := range a.Counts() {
		if cmp.Or(c.As, c.Event) != w.header.Profile.Event {
			continue
		}
		if a.Scope.Kind == counts.Run {
			w.whole = c.Value
		}
		return c.Share(w.whole).Value
	}
	return math.NaN()
}

// take shows parts, and remembers the values of those that are new.
func (v *View) take(all, fresh []part, values []row) {
	for i := range fresh {
		list := append(v.past[fresh[i].key], values[i])
		v.past[fresh[i].key] = list[max(0, len(list)-history):]
	}
	if len(v.past) > partsMost { // of processes that have ended
		v.past = map[string][]row{}
	}
	if v.paused {
		return
	}
	v.now = all
	v.wake()
}

// partsMost bounds the parts whose course is remembered.
const partsMost = 20000

// with changes the view for a writer, unless another scope is watched meanwhile.
func (v *View) with(w *writer, change func()) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.feed == w.feeding {
		change()
	}
	return nil
}

// copied copies what is shown of an account, which is reused.
func copied(a *account.Account) part {
	m := a.Model()
	p := part{label: page.Printable(a.Scope.Label), key: key(a), scope: a.Scope}
	if c := a.Scope.Code; c != nil {
		p.scope.Code = new(counts.Code)
		*p.scope.Code = *c
		if a.Scope.Kind == counts.Function && c.Function != "" { // its module has a column
			p.label = page.Printable(c.Function)
		} else {
			p.label = page.Printable(cmp.Or(c.Label(a.Scope.Kind), p.label))
		}
	}
	switch a.Scope.Kind {
	case counts.Interval:
		p.label = ""
	case counts.Run:
		p.label = "all"
	}
	section := tree(a)
	for i := range m.Nodes {
		n, val := &m.Nodes[i], &a.Nodes[i]
		if n.Section != section {
			continue
		}
		out := node{path: n.Path, name: n.Name, value: "–", share: math.NaN(), reliable: val.Reliable(), flagged: val.Flagged, onWay: slices.Contains(a.Bottleneck, i)}
		if val.Known() {
			out.value = page.Figure(m, i, val.Value)
			root := i
			for !m.Share(i) && m.Nodes[root].Above >= 0 {
				root = m.Nodes[root].Above
			}
			out.share = val.Value
			if !m.Share(i) { // of the highest node
				out.share /= a.Nodes[root].Value
			}
			if !math.IsNaN(val.Error) {
				out.err = page.Figure(m, i, val.Error)
			}
		}
		p.nodes = append(p.nodes, out)
	}
	return p
}

// tree is the section of the nodes that are shown: that of the main tree if a node of it is
// known, else the first with a known node. Threads of the whole machine are not known.
func tree(a *account.Account) string {
	first := ""
	for i := range a.Nodes {
		switch s := a.Model().Nodes[i].Section; {
		case !a.Nodes[i].Known():
		case s == "":
			return ""
		case first == "" && a.Model().Nodes[i].Above >= 0: // of a tree, no single figure
			first = s
		}
	}
	return first
}

// key identifies a scope over intervals.
func key(a *account.Account) string {
	s := &a.Scope
	if s.Kind == counts.Interval {
		return ""
	}
	code := counts.Code{}
	if s.Code != nil {
		code = *s.Code
	}
	return fmt.Sprint(s.Kind, s.Label, s.CPU, s.PID, s.TID, s.Cgroup, s.Process, s.Thread, code.Module, code.Function, code.File, code.Line)
}

// keep writes what is seen as a document of accounts.
func (v *View) keep() string {
	if len(v.now) == 0 || v.Keep == nil {
		return "there is nothing to keep yet"
	}
	name, err := v.Keep(func(w io.Writer) error {
		b := bytes.NewBuffer(bytes.Clone(v.head))
		for i, p := range v.now {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(p.line)
			b.WriteByte('\n')
		}
		b.WriteString("]}\n")
		_, err := b.WriteTo(w)
		return err
	})
	if err != nil {
		return err.Error()
	}
	return "kept as " + name
}
