package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/model"
)

// Streams are documents of many accounts, such as those of intervals or of CPUs. What the
// accounts have in common is written once, and each of them as its values alone.

// streamSchema names the schema of streams: schema/stream.v1.json.
const streamSchema = "cyclestack.stream/v1"

// asked says which nodes of a model the user asked for: with a level and no pattern, those
// of the main tree, as far as the model has one.
func (o Options) asked(m *model.Model) []bool {
	shown := o.shown(m)
	if o.All || o.Nodes != "" || o.Level == 0 {
		return shown
	}
	main, any := slices.Clone(shown), false
	for i := range main {
		main[i] = main[i] && m.Nodes[i].Section == ""
		any = any || main[i]
	}
	if !any {
		return shown
	}
	return main
}

// columns are the nodes of one method that have a column.
type columns struct {
	model *model.Model
	nodes []int // indexes of the model's nodes, by column
	at    []int // by node: its column; -1 for none
	asked []bool
}

func newColumns(m *model.Model, asked []bool) *columns {
	c := &columns{model: m, asked: asked, at: make([]int, len(m.Nodes))}
	for i := range c.at {
		c.at[i] = -1
	}
	return c
}

// add gives a node a column, if it was asked for and has none.
func (c *columns) add(node int) (added bool) {
	if !c.asked[node] || c.at[node] >= 0 {
		return false
	}
	c.at[node], c.nodes = len(c.nodes), append(c.nodes, node)
	return true
}

// addKnown gives the known nodes of an account columns.
func (c *columns) addKnown(a *account.Account) (added bool) {
	for i := range a.Nodes {
		if c.at[i] < 0 && a.Nodes[i].Known() {
			added = c.add(i) || added
		}
	}
	return added
}

// order puts columns in the order of the model.
func (c *columns) order() {
	slices.Sort(c.nodes)
	for col, node := range c.nodes {
		c.at[node] = col
	}
}

// computable are the columns of the nodes that the events of an account can make known. It
// also returns why the others are not known.
func computable(a *account.Account, o Options) (*columns, []jsonMissing) {
	c := newColumns(a.Model(), o.asked(a.Model()))
	missing := []jsonMissing{}
	if o.Known { // others were not asked for
		c.addKnown(a)
		return c, missing
	}
	for i, why := range a.Binding.Computable() {
		switch {
		case !c.asked[i]:
		case why.Text == "" || a.Nodes[i].Known():
			c.add(i)
		default:
			missing = append(missing, jsonMissing{a.Model().Nodes[i].Path, o.note(why)})
		}
	}
	return c, missing
}

// streamWriter writes streams as JSON lines.
type streamWriter struct {
	w   io.Writer
	o   Options
	h   Header
	buf []byte

	binding *account.Binding // that the columns are of
	nodes   *columns
	missing []jsonMissing
	further []*columns // of further methods
	times   *columns   // nil for none
	events  []int      // columns of the layout
	eventAt []int      // by column of the layout: its place in events; -1 for none
	written []byte     // the last line of columns

	scopes scopeTexts
	groups grouping
}

func (s *streamWriter) Begin(h Header) error {
	s.h = h
	line, err := json.Marshal(h.Head(streamSchema))
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(line, '\n'))
	return err
}

func (s *streamWriter) End() error { return nil }

// Account writes an account's line, and before it one of the columns if it has others than
// the account before.
func (s *streamWriter) Account(a *account.Account) error {
	b := s.buf[:0]
	if s.prepare(a) {
		line, err := s.columnsLine(a)
		if err != nil {
			return err
		}
		if !bytes.Equal(line, s.written) {
			s.written = line
			b = append(b, line...)
		}
	}
	b, err := s.row(b, a)
	if err != nil {
		return err
	}
	s.buf = b
	_, err = s.w.Write(b)
	return err
}

// prepare finds the columns for an account. It reports whether they changed.
func (s *streamWriter) prepare(a *account.Account) (changed bool) {
	if s.binding != a.Binding {
		s.binding, changed = a.Binding, true
		s.nodes, s.missing = computable(a, s.o)
		s.events = s.askedEvents(a.Binding)
		s.eventAt = make([]int, len(a.Binding.Layout.Columns))
		for col := range s.eventAt {
			s.eventAt[col] = slices.Index(s.events, col)
		}
		s.further, s.times = nil, nil
	}
	if s.nodes.addKnown(a) {
		s.nodes.order()
		s.missing = sorting.Delete(s.missing, func(m jsonMissing) bool {
			return slices.ContainsFunc(s.nodes.nodes, func(i int) bool { return a.Model().Nodes[i].Path == m.Node })
		})
		changed = true
	}
	for _, f := range a.Also {
		c, grown := s.furtherOf(f.Model()), false
		for _, i := range f.Nodes {
			if f.Account.Nodes[i].Known() {
				grown = c.add(i) || grown
			}
		}
		if grown {
			c.order()
			changed = true
		}
		if len(c.nodes) > 0 && !slices.Contains(s.further, c) {
			s.further = append(s.further, c)
		}
	}
	if t := a.Times; t != nil {
		if s.times == nil {
			s.times, changed = newColumns(t.Model(), t.Model().Shown("", s.o.Level)), true
		}
		grown := false
		for i, shown := range timesShown(t) {
			if shown {
				grown = s.times.add(i) || grown
			}
		}
		if grown {
			s.times.order()
			changed = true
		}
	}
	return changed
}

// furtherOf returns the columns of a further method.
func (s *streamWriter) furtherOf(m *model.Model) *columns {
	for _, c := range s.further {
		if c.model == m {
			return c
		}
	}
	return newColumns(m, s.o.asked(m))
}

// askedEvents are the events whose counts are written: those that the nodes rest on, and
// those that the user named. Without a choice of nodes they are all.
func (s *streamWriter) askedEvents(b *account.Binding) (events []int) {
	all := s.o.Level == 0 && s.o.Nodes == ""
	used := make([]bool, len(b.Layout.Columns))
	for _, node := range s.nodes.nodes {
		for _, col := range b.Columns[node] {
			used[col] = true
		}
	}
	for col := range used {
		if all || used[col] || b.Layout.Columns[col].Named {
			events = append(events, col)
		}
	}
	return events
}

type jsonColumns struct {
	Nodes   []jsonColumn   `json:"nodes"`
	Events  []jsonStreamed `json:"events"`
	Missing []jsonMissing  `json:"missing"`
	Unused  []string       `json:"unused,omitempty"`
	Unknown []string       `json:"unknown,omitempty"`
	Other   []string       `json:"other_cores,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
	Also    []jsonSet      `json:"also,omitempty"`
	Times   *jsonSet       `json:"times,omitempty"`
}

// A jsonSet has the columns of a further method.
type jsonSet struct {
	Model jsonModel    `json:"model"`
	Nodes []jsonColumn `json:"nodes"`
}

type jsonColumn struct {
	Path     string        `json:"path"`
	Name     string        `json:"name"`
	Level    int           `json:"level"`
	Section  string        `json:"section,omitempty"`
	Unit     string        `json:"unit"`
	Assumed  []string      `json:"assumed,omitempty"`
	Expected *jsonExpected `json:"expected,omitempty"`
}

type jsonStreamed struct {
	Event string `json:"event"`
	As    string `json:"as,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Named bool   `json:"named,omitempty"`
	Group int    `json:"group,omitempty"`
}

// columnsLine is the line that says what the values of the lines after it are of.
func (s *streamWriter) columnsLine(a *account.Account) ([]byte, error) {
	bound := a.Binding
	out := jsonColumns{Nodes: columnList(a, s.nodes), Events: []jsonStreamed{}, Missing: s.missing, Unused: bound.Unused, Unknown: bound.Unknown, Other: bound.Other}
	for _, col := range s.events {
		e := jsonStreamed{bound.Names[col], bound.Layout.Columns[col].Event, bound.Units[col], bound.Layout.Columns[col].Named, bound.Layout.Columns[col].Group}
		if e.As == e.Event {
			e.As = ""
		}
		out.Events = append(out.Events, e)
	}
	for _, note := range []counts.Note{s.h.Unknown, s.h.Assumed} {
		if note.Text != "" {
			out.Notes = append(out.Notes, "processor: "+s.o.note(note))
		}
	}
	out.Notes = append(out.Notes, s.o.Texts(bound.Notes)...)
	for _, c := range s.further {
		of := a
		for _, f := range a.Also {
			if f.Model() == c.model {
				of = f.Account
			}
		}
		out.Also = append(out.Also, jsonSet{jsonModel{Name: c.model.Name, Version: c.model.Version}, columnList(of, c)})
	}
	if c := s.times; c != nil {
		out.Times = &jsonSet{jsonModel{Name: c.model.Name, Version: c.model.Version}, columnList(a.Times, c)}
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Columns jsonColumns `json:"columns"`
	}{out})
	return line.Bytes(), err
}

// columnList describes columns. The account is one of their method, if there is any.
func columnList(a *account.Account, c *columns) []jsonColumn {
	list := []jsonColumn{}
	for _, i := range c.nodes {
		n := &c.model.Nodes[i]
		j := jsonColumn{Path: n.Path, Name: n.Name, Level: n.Level, Section: n.Section, Unit: page.Unit(c.model, i)}
		if a != nil && a.Model() == c.model {
			j.Assumed = a.Nodes[i].Assumed
			if n.Expected != nil {
				r, _ := a.Expected(i)
				j.Expected = &jsonExpected{Low: page.Number(r.Low), High: page.Number(r.High)}
			}
		}
		list = append(list, j)
	}
	return list
}

// row appends the line of an account.
func (s *streamWriter) row(b []byte, a *account.Account) ([]byte, error) {
	b, err := s.scopes.append(append(b, `{"scope":`...), a)
	if err != nil {
		return b, err
	}
	b = s.set(append(b, ','), a, s.nodes, nil)
	if line := a.Rivals; len(line) > 0 {
		b = s.rivals(b, a)
	}
	b = s.failing(b, a)
	b = s.counts(b, a)
	b = s.notes(b, a)
	if len(s.further) > 0 {
		b = append(b, `,"also":[`...)
		for k, c := range s.further {
			b = comma(b, k)
			of := slices.IndexFunc(a.Also, func(f account.Further) bool { return f.Model() == c.model })
			if of < 0 {
				b = append(b, "null"...)
				continue
			}
			b = append(s.set(append(b, '{'), a.Also[of].Account, c, a.Also[of].Nodes), '}')
		}
		b = append(b, ']')
	}
	if s.times != nil && a.Times != nil {
		b = append(s.set(append(b, `,"times":{`...), a.Times, s.times, nil), '}')
	}
	return append(b, "}\n"...), nil
}

// set appends the values of columns, and what is to be said of them. Without the nodes of
// only, it is all nodes.
func (s *streamWriter) set(b []byte, a *account.Account, c *columns, only []int) []byte {
	value := func(i int) *account.Value {
		if v := &a.Nodes[i]; only == nil || slices.Contains(only, i) {
			return v
		}
		return &unknown
	}
	errors, part := false, false
	b = append(b, `"values":[`...)
	for col, i := range c.nodes {
		v := value(i)
		b = appendNumber(comma(b, col), v.Value)
		errors = errors || !math.IsNaN(v.Error)
		part = part || v.Known() && v.Coverage != 1
	}
	b = append(b, ']')
	if errors {
		b = append(b, `,"errors":[`...)
		for col, i := range c.nodes {
			b = appendNumber(comma(b, col), value(i).Error)
		}
		b = append(b, ']')
	}
	if part {
		b = append(b, `,"coverage":[`...)
		for col, i := range c.nodes {
			b = appendNumber(comma(b, col), math.Round(value(i).Coverage*1e6)/1e6)
		}
		b = append(b, ']')
	}
	g := &s.groups
	g.clear()
	for col, i := range c.nodes {
		v := value(i)
		switch {
		case !v.Known() && v != &unknown:
			g.add(s.o.note(a.Why(i)), col)
		case v.Known() && !v.Together:
			g.apart = append(g.apart, col)
		}
		if v.Flagged {
			g.flagged = append(g.flagged, col)
		}
	}
	b = g.texts(b, "missing")
	b = list(b, "apart", g.apart)
	b = list(b, "flagged", g.flagged)
	for col, i := range c.nodes {
		if v := value(i); v.Known() && v.Doubt != account.DoubtNone {
			g.add(v.Doubt.String(), col)
		}
	}
	b = g.texts(b, "doubt")
	if only == nil {
		for _, i := range a.Bottleneck {
			if c.at[i] >= 0 {
				g.path = append(g.path, c.at[i])
			}
		}
		b = list(b, "bottleneck", g.path)
	}
	return b
}

// unknown is the value of nodes that an account does not have.
var unknown = account.Value{Value: math.NaN(), Error: math.NaN(), Coverage: math.NaN()}

// rivals appends the nodes that the bottleneck path could as well go through.
func (s *streamWriter) rivals(b []byte, a *account.Account) []byte {
	n := 0
	for _, r := range a.Rivals {
		node, of := s.nodes.at[r.Node], s.nodes.at[r.Of]
		if node < 0 || of < 0 {
			continue
		}
		if n == 0 {
			b = append(b, `,"ambiguous":[`...)
		}
		b = strconv.AppendInt(append(comma(b, n), `{"node":`...), int64(node), 10)
		b = strconv.AppendInt(append(b, `,"of":`...), int64(of), 10)
		b = append(appendNumber(append(b, `,"margin":`...), r.Margin), '}')
		n++
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}

// failing appends the names of the checks that fail.
func (s *streamWriter) failing(b []byte, a *account.Account) []byte {
	n := 0
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != account.Fails || c.Common && !c.Contradicts() {
			continue
		}
		if n == 0 {
			b = append(b, `,"fails":[`...)
		}
		b = appendString(comma(b, n), c.Name)
		n++
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}

// counts appends the counts of the events. Those of a core are those of each of its logical
// processors in turn.
func (s *streamWriter) counts(b []byte, a *account.Account) []byte {
	g := &s.groups
	g.clear()
	list := a.Counts()
	part, sampled := false, false
	g.room(len(s.events)-1, len(s.events))
	for _, c := range list {
		at := max(0, c.LP)*len(s.events) + s.eventAt[c.Column]
		if s.eventAt[c.Column] < 0 {
			continue
		}
		g.room(at, len(s.events))
		g.values[at], g.cover[at], g.samples[at] = c.Value, c.Coverage, c.Samples
		if c.State != counts.Counted {
			g.add(c.State.String(), at)
			continue
		}
		part, sampled = part || c.Coverage != 1, sampled || c.Samples != 0
	}
	b = append(b, `,"counts":[`...)
	for i, v := range g.values {
		b = appendNumber(comma(b, i), v)
	}
	b = append(b, ']')
	if part {
		b = append(b, `,"count_coverage":[`...)
		for i, v := range g.cover {
			b = appendNumber(comma(b, i), math.Round(v*1e6)/1e6)
		}
		b = append(b, ']')
	}
	if sampled {
		b = append(b, `,"samples":[`...)
		for i, n := range g.samples {
			b = strconv.AppendInt(comma(b, i), n, 10)
		}
		b = append(b, ']')
	}
	return g.texts(b, "uncounted")
}

// notes appends the notes of an account beyond those of the columns.
func (s *streamWriter) notes(b []byte, a *account.Account) []byte {
	own := a.Notes[min(len(a.Notes), len(a.Binding.Notes)):]
	for i, n := range own {
		if i == 0 {
			b = append(b, `,"notes":[`...)
		}
		b = appendString(comma(b, i), s.o.note(n))
	}
	if len(own) > 0 {
		b = append(b, ']')
	}
	return b
}
