package report

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// csvHeader names the columns of the csv format: one row for each node of each
// account. Fields that are not known are empty. The standing is how the value lies to what
// is expected of the kind of program: "below", "within" or "above". Accounts of parts, as
// of Header.Profile, have further columns: see [Profile.header].
var csvHeader = []string{"scope", "label", "start_s", "duration_s", "node", "level", "value", "unit", "error",
	"coverage", "together", "reliable", "flagged", "standing", "why"}

// csvWriter writes rows from parts: what all rows of an account or a node have in common is put
// into CSV's form once.
type csvWriter struct {
	w     io.Writer
	o     Options
	shown []bool
	nodes []string // by node: path and level
	units []string // by node
	buf   []byte
	scope []byte
	parts *parts // nil if accounts are not of parts
}

func (c *csvWriter) Begin(h Header) error {
	m := h.Model
	c.shown = c.o.shown(m)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		c.nodes = append(c.nodes, field(n.Path)+","+strconv.Itoa(n.Level)+",")
		c.units = append(c.units, field(page.Unit(m, i)))
	}
	header := csvHeader
	if c.parts = partsOf(h); c.parts != nil {
		header = c.parts.header()
	}
	_, err := io.WriteString(c.w, strings.Join(header, ",")+"\n")
	return err
}

// header is csvHeader with the columns of parts. Behind the label are what the part is of
// each kind, and the module of its place. Then come its share of the whole with its error,
// the samples of that, and whether it is a hotspot. With callchains its own share follows.
// Before the reason is which events skid.
func (p *Profile) header() []string {
	var more []string
	for _, k := range p.labels() {
		more = append(more, k.String())
	}
	if p.code() > counts.Module {
		more = append(more, counts.Module.String())
	}
	at := slices.Index(csvHeader, "label") + 1
	more = append(more, "share", "share_error", "samples", "hotspot")
	if p.Calls != nil {
		more = append(more, "self")
	}
	last := len(csvHeader) - 1
	return slices.Concat(csvHeader[:at], more, csvHeader[at:last], []string{"skids", csvHeader[last]})
}

// part appends what header names behind the label.
func (p *parts) part(b []byte, a *account.Account, list []account.Count) []byte {
	kinds := p.labels()
	whole := a.Scope.Kind == counts.Run
	labels, module := p.label(&a.Scope)
	for i := range kinds {
		if !whole && i < len(labels) {
			b = append(b, field(labels[i])...)
		}
		b = append(b, ',')
	}
	if p.code() > counts.Module {
		b = append(append(b, field(module)...), ',')
	}
	s := p.share(a, list)
	b = append(page.AppendDecimal(b, s.Value), ',')
	b = append(page.AppendDecimal(b, s.Error), ',')
	b = append(strconv.AppendInt(b, s.samples, 10), ',')
	b = append(strconv.AppendBool(b, p.hot(a, &s)), ',')
	if p.Calls != nil {
		b = append(page.AppendDecimal(b, s.self), ',')
	}
	return b
}

// field puts a text into CSV's form (RFC 4180).
func field(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimLeft(s, " ") == s {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func (c *csvWriter) Account(a *account.Account) error {
	c.scope = append(c.scope[:0], a.Scope.Kind.String()...)
	c.scope = append(c.scope, ',')
	if label := scopeLabel(a); label != "" {
		c.scope = append(c.scope, field(label)...)
	}
	c.scope = append(c.scope, ',')
	var list []account.Count
	if c.parts != nil {
		list = a.Counts()
		c.scope = c.parts.part(c.scope, a, list)
	}
	c.scope = append(page.AppendDecimal(c.scope, a.Start), ',')
	c.scope = append(page.AppendDecimal(c.scope, a.Duration), ',')

	b := c.buf[:0]
	if c.parts != nil && c.parts.Flat != "" {
		c.buf = c.events(b, a, list)
		_, err := c.w.Write(c.buf)
		return err
	}
	for i := range a.Nodes {
		if c.shown[i] && (!c.o.Known || a.Nodes[i].Known()) {
			b = c.row(b, a, i, c.nodes[i], c.units[i])
		}
	}
	b = c.timesRows(b, a.Times)
	b = c.own(b, a)
	c.buf = b
	_, err := c.w.Write(b)
	return err
}

// events appends rows of the events' counts, which stand for the nodes where nothing is
// known of these.
func (c *csvWriter) events(b []byte, a *account.Account, list []account.Count) []byte {
	for _, n := range list {
		spelled := cmp.Or(n.As, n.Event)
		e := n.Estimate()
		b = c.event(b, a, spelled, e, n.Coverage, c.parts.Flat)
	}
	return b
}

// event appends the row of an event.
func (c *csvWriter) event(b []byte, a *account.Account, spelled string, e counts.Estimate, coverage float64, why string) []byte {
	b = append(b, c.scope...)
	b = append(append(b, field(spelled)...), ",,"...)
	b = append(page.AppendDecimal(b, e.Value), ',')
	b = append(append(b, field(countUnit(a, spelled))...), ',')
	b = append(page.AppendDecimal(b, e.Error), ',')
	b = append(page.AppendDecimal(b, math.Round(coverage*1e6)/1e6), ",,"...)
	b = append(strconv.AppendBool(b, e.Reliable()), ",,,"...)
	if c.parts != nil { // the events that skid
		b = append(b, ',')
	}
	return append(append(b, field(why)...), '\n')
}

// countUnit is the unit of an event's counts, as [account.Count] has them.
func countUnit(a *account.Account, event string) string {
	for _, col := range a.Binding.Layout.Columns {
		switch {
		case col.Event != event:
		case col.Unit == "msec":
			return "ns"
		case col.Unit != "":
			return col.Unit
		}
	}
	return "events"
}

// timesRows appends the rows of what the threads did. The model's name before their nodes' sets
// them off: os-time:Threads.Blocked.
func (c *csvWriter) timesRows(b []byte, a *account.Account) []byte {
	if a == nil {
		return b
	}
	m := a.Model()
	for i, shown := range timesShown(a) {
		if n := &m.Nodes[i]; shown {
			b = c.row(b, a, i, field(m.Name+":"+n.Path)+","+strconv.Itoa(n.Level)+",", field(page.Unit(m, i)))
		}
	}
	return b
}

// row appends the row of a node. node and unit are in CSV's form already.
func (c *csvWriter) row(b []byte, a *account.Account, i int, node, unit string) []byte {
	v := &a.Nodes[i]
	b = append(b, c.scope...)
	b = append(b, node...)
	b = append(page.AppendDecimal(b, v.Value), ',')
	b = append(append(b, unit...), ',')
	b = append(page.AppendDecimal(b, v.Error), ',')
	b = append(page.AppendDecimal(b, math.Round(v.Coverage*1e6)/1e6), ',')
	b = append(strconv.AppendBool(b, v.Together), ',')
	b = append(strconv.AppendBool(b, v.Reliable()), ',')
	b = append(strconv.AppendBool(b, v.Flagged), ',')
	_, standing := a.Expected(i)
	b = append(append(b, standing.String()...), ',')
	if c.parts != nil {
		b = append(append(b, field(strings.Join(c.parts.skids(a, i), " "))...), ',')
	}
	switch {
	case !v.Known():
		b = append(b, field(c.o.note(a.Why(i)))...)
	case v.Doubt != account.DoubtNone:
		b = append(b, field(v.Doubt.String())...)
	case len(v.Assumed) > 0:
		b = append(b, field(assumedText(v.Assumed))...)
	}
	return append(b, '\n')
}

func (c *csvWriter) End() error { return nil }

// scopeLabel is what the account is about: the CPU, the thread, else what was
// measured.
func scopeLabel(a *account.Account) string {
	if a.Scope.Kind != counts.Run && a.Scope.Label != "" {
		return a.Scope.Label
	}
	return a.Label
}
