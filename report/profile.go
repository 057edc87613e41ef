package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// A Profile says what a report's accounts are parts of, if samples were divided into them:
// places in the code, threads, intervals. The first account is then that of the whole, and
// those of the parts follow, the largest first.
type Profile struct {
	By      []counts.Kind // what samples are split by, in the order of --by
	Event   string        // that parts are compared by, as the recording spells it
	What    string        // that the event counts, in words: "time", "cycles"; "" is the event
	Samples int64         // of the event; 0 if it was not sampled

	Places    int     // parts there are in all
	Left      int     // parts that are not in the report
	LeftShare float64 // of the event's total, that they have together

	// Flat says why there is nothing but the shares: no method fits. It is "" if
	// one does.
	Flat string

	// Calls says how callchains were summed; nil if samples count where they were taken.
	Calls *Calls

	Next Step // a command that says more; its zero value for none
}

// Calls are accounts of functions with what they called, or of the callers or callees of
// one function. Of these the whole is that function with what it called.
type Calls struct {
	View string // "children", "callers" or "callees"
	Of   string // the function; "" for children
	// Self is by account, in their order: the part of the whole that was sampled in the
	// function itself.
	Self []float64
}

// A parts is what a writer knows of the parts that its accounts are of.
type parts struct {
	*Profile
	total float64 // of the event, by the first account
	n     int     // accounts so far

	// skidding has the events of each node that skid. They are the same at all places of a
	// recording, and take longer to find than a line to write.
	skidding [][]string
	of       *account.Binding // that they were found with
}

// partsOf returns the parts of a header's profile; nil without one.
func partsOf(h Header) *parts {
	if h.Profile == nil {
		return nil
	}
	return &parts{Profile: h.Profile}
}

// A portion is an account's part of the whole.
type portion struct {
	counts.Estimate         // NaN where it is not known
	samples         int64   // that it rests on; 0 if the event was not sampled
	self            float64 // of Calls.Self; NaN without
}

// share returns the part of the whole that an account with some counts has. The first
// account is the whole.
func (p *parts) share(a *account.Account, list []account.Count) portion {
	c, ok := countOf(list, p.Event)
	if ok && a.Scope.Kind == counts.Run {
		p.total = c.Value
	}
	out := portionOf(&c, ok, p.total)
	if out.self = math.NaN(); p.Calls != nil && p.n < len(p.Calls.Self) {
		out.self = p.Calls.Self[p.n]
	}
	p.n++
	return out
}

// countOf finds the count of an event as the recording spells it.
func countOf(list []account.Count, event string) (account.Count, bool) {
	for i := range list {
		if cmp.Or(list[i].As, list[i].Event) == event {
			return list[i], true
		}
	}
	return account.Count{}, false
}

// portionOf returns the part that a count is of a total, if there is the count.
func portionOf(c *account.Count, ok bool, total float64) portion {
	if !ok {
		return portion{Estimate: counts.Estimate{Value: math.NaN(), Error: math.NaN()}}
	}
	return portion{Estimate: c.Share(total), samples: c.Samples}
}

// hot reports whether an account with a share of the whole is that of a hotspot.
func (p *parts) hot(a *account.Account, s *portion) bool {
	return a.Scope.Kind != counts.Run && !p.timeline() && account.IsHotspot(s.Value)
}

// timeline reports whether the parts are nothing but intervals.
func (p *Profile) timeline() bool { return slices.Equal(p.By, []counts.Kind{counts.Interval}) }

// what says what the shares are of.
func (p *Profile) what() string {
	if p.What != "" {
		return p.What
	}
	return briefEvent(p.Event)
}

// briefEvent is an event in a sentence: without the modifiers that make it long.
func briefEvent(event string) string {
	const most = 40
	if at := strings.LastIndexByte(event[:min(len(event), most)], ':'); len(event) > most && at > 0 {
		return event[:at]
	}
	return event
}

// title says what is shared out, and between what.
func (p *Profile) title() string {
	switch c := p.Calls; {
	case c == nil:
		return fmt.Sprintf("%s by %s", p.what(), p.by())
	case c.Of == "":
		return fmt.Sprintf("%s by function with what it calls", p.what())
	case c.View == "callers":
		return fmt.Sprintf("%s of %s and what it calls, by its caller", p.what(), c.Of)
	default:
		return fmt.Sprintf("%s of %s and what it calls, by what it calls", p.what(), c.Of)
	}
}

// by names what samples are split by.
func (p *Profile) by() string {
	var names []string
	for _, k := range p.By {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// noun is what one part is called.
func (p *Profile) noun() string {
	if len(p.By) == 1 {
		return p.By[0].String()
	}
	return "part"
}

// code returns the finest kind of place in the code, Run for none.
func (p *Profile) code() counts.Kind {
	finest := counts.Run
	for _, k := range p.By {
		if k >= counts.Module {
			finest = max(finest, k)
		}
	}
	return finest
}

// labels returns the kinds that have a column of their own: of several kinds of places
// in the code the finest one, whose labels have the others.
func (p *Profile) labels() []counts.Kind {
	var list []counts.Kind
	for _, k := range p.By {
		if k < counts.Module || k == p.code() {
			list = append(list, k)
		}
	}
	return list
}

// partLabel says what an account's scope is of one kind.
func partLabel(s *counts.Scope, k counts.Kind) string {
	number := func(letter string, n int) string {
		if n == counts.Unknown {
			return unknownPart
		}
		return letter + strconv.Itoa(n)
	}
	switch k {
	case counts.Interval:
		return page.Trim(s.Start) + " s"
	case counts.Cgroup:
		return s.Cgroup
	case counts.Process:
		return s.Process
	case counts.Comm:
		return s.Comm
	case counts.Thread:
		return s.Thread
	case counts.Node:
		return number("N", s.Node)
	case counts.Socket:
		return number("S", s.Socket)
	case counts.Die:
		return number("S", s.Socket) + number("-D", s.Die)
	case counts.Core:
		return number("S", s.Socket) + number("-D", s.Die) + number("-C", s.Core)
	case counts.CPU:
		return number("CPU", s.CPU)
	}
	return s.Label
}

// label divides what a scope is into columns, and the module that its place is in.
func (p *Profile) label(s *counts.Scope) (labels []string, module string) {
	kinds := p.labels()
	if s.Code == nil && !slices.ContainsFunc(kinds, func(k counts.Kind) bool { return k != counts.Interval && partLabel(s, k) != "" }) && !(s.Duration > 0) {
		return []string{s.Label}, "" // the combined others
	}
	for _, k := range kinds {
		text := partLabel(s, k)
		if k >= counts.Module && s.Code != nil {
			if len(kinds) > 1 {
				text = s.Code.Label(k)
			}
			text, module = splitModule(text, k)
		}
		labels = append(labels, text)
	}
	return labels, module
}

// skids lists the events of a node that make a difference for parts as small as these.
func (p *parts) skids(a *account.Account, node int) []string {
	if p.code() < counts.Line {
		return nil
	}
	if p.of != a.Binding {
		p.of, p.skidding = a.Binding, make([][]string, len(a.Nodes))
		for i := range a.Nodes {
			p.skidding[i] = a.Skids(i)
		}
	}
	return p.skidding[node]
}

// unknownPart stands for what is not known of a scope.
const unknownPart = "[unknown]"

// profile is the writer for people where accounts are of parts: one line for each, with
// its share of the whole, one column for each node. Lines are kept until the end, so
// as to be aligned.
type profile struct {
	rows
	parts      *parts
	lines      []profileLine
	skids      []bool          // by node's column: its samples stand behind the instruction that caused them
	events     []account.Count // of the whole: those that have columns, behind the nodes'
	grey       bool            // a value is unreliable
	notes      []string
	incomplete bool // one of the notes says so
	whole      *account.Account
}

type profileLine struct {
	labels         []string // by Profile.labels
	module         string
	share, samples string
	part           portion
	start, end     float64 // seconds, of an interval
	hot            bool
	caller         string
	cells          []profileCell
}

type profileCell struct {
	text  string
	st    style
	value float64
	high  bool // above the threshold of a node that is judged by place
}

func newProfile(w io.Writer, o Options) *profile {
	return &profile{rows: rows{tree: *newTree(w, o)}}
}

func (p *profile) Begin(h Header) error {
	p.parts = partsOf(h)
	return p.rows.Begin(h)
}

func (p *profile) Account(a *account.Account) error {
	h := p.parts
	list := a.Counts()
	s := h.share(a, list)
	l := profileLine{share: page.PercentOf(s.Value), part: s, samples: page.Trim(float64(s.samples)), hot: h.hot(a, &s),
		start: a.Start, end: a.Start + a.Duration}
	p.grey = p.grey || !s.Reliable()
	if p.n == 0 {
		p.begin(a)
		p.incomplete = incomplete(a)
		for _, n := range p.h.withMeasured(p.o.Texts(a.Notes)) {
			p.notes = append(p.notes, strings.Clone(n))
		}
		l.labels = append(l.labels, "all")
	} else {
		l.labels, l.module = h.label(&a.Scope)
		l.caller = callerText(a.Scope.Caller, a.Scope.CallerShare)
	}
	p.n++
	for _, i := range p.columns {
		l.cells = append(l.cells, p.cell(a, i))
	}
	for i := range p.events {
		l.cells = append(l.cells, p.eventCell(list, &p.events[i]))
	}
	p.lines = append(p.lines, l)
	return nil
}

// splitModule divides the label of a place into what it is and the module that it is in.
func splitModule(label string, k counts.Kind) (text, module string) {
	if k == counts.Module {
		return label, ""
	}
	if at := strings.LastIndex(label, "  ("); at >= 0 {
		return label[:at], strings.TrimSuffix(label[at+len("  ("):], ")")
	}
	return label, ""
}

// tells reports whether a node says more of a part than its share does. Cycles by
// themselves do not, nor does the time of the recording.
func (p *profile) tells(a *account.Account, i int) bool {
	return p.o.All || p.o.Nodes != "" || a.Model().Nodes[i].Section == "" || a.Relates(i)
}

// begin chooses the columns by the account of the whole.
func (p *profile) begin(a *account.Account) {
	h := p.parts
	m := a.Model()
	p.whole = a.Clone()
	level := max(1, p.o.Level)
	for i := range m.Nodes {
		byPlace := m.Nodes[i].Places && h.code() != counts.Run && p.o.Nodes == ""
		if h.Flat == "" && a.Nodes[i].Known() && (byPlace || p.wanted(a, i, level) && p.tells(a, i) || p.expanded(a, i)) {
			p.columns = append(p.columns, i)
			p.skids = append(p.skids, len(h.skids(a, i)) > 0)
		}
	}
	if h.Flat != "" {
		p.chooseEvents(a)
	}
	parts := []string{h.title()}
	if a.Label != "" {
		parts = append(parts, a.Label)
	}
	if !math.IsNaN(a.Duration) {
		d := page.Duration(a.Duration)
		if h.Flat != "" { // the shares are of processor time
			d += " elapsed"
		}
		parts = append(parts, d)
	}
	if h.Flat == "" {
		parts = append(parts, "on "+p.h.CPU.Name, m.Name+" "+m.Version)
	}
	if h.Samples > 0 {
		parts = append(parts, fmt.Sprintf("from %s samples of %s", page.Trim(float64(h.Samples)), briefEvent(h.Event)))
	} else {
		parts = append(parts, p.h.source())
	}
	p.Paragraph("", strings.Join(parts, ", "), 0, bold)
	why := h.Flat
	if why == "" && len(p.columns) == 0 {
		why = p.o.Hint(fmt.Sprintf("the samples say nothing else of %s", m.Name), counts.Fix{Action: counts.ListEvents, Name: p.h.CPU.Name})
	}
	if why != "" {
		p.Paragraph("", why, 0, faint)
	}
	p.Out.WriteByte('\n')
}

// eventColumns is how many events have columns.
const eventColumns = 12

// chooseEvents chooses the events whose shares have columns, where nothing is known of
// any node: those with samples, besides the one that parts are compared by.
func (p *profile) chooseEvents(a *account.Account) {
	for _, c := range a.Counts() {
		if c.Samples > 0 && c.Value > 0 && cmp.Or(c.As, c.Event) != p.parts.Event && len(p.events) < eventColumns {
			p.events = append(p.events, c)
		}
	}
}

// eventCell is a part's share of an event.
func (p *profile) eventCell(list []account.Count, whole *account.Count) profileCell {
	c, ok := countOf(list, cmp.Or(whole.As, whole.Event))
	s := portionOf(&c, ok, whole.Value)
	switch {
	case math.IsNaN(s.Value):
		return profileCell{text: "–", st: dim, value: s.Value}
	case s.Value > 0 && !s.Reliable():
		p.grey = true
		return profileCell{text: page.PercentOf(s.Value) + "?", st: dim, value: s.Value}
	}
	return profileCell{text: page.PercentOf(s.Value), value: s.Value}
}

func (p *profile) cell(a *account.Account, i int) profileCell {
	v := &a.Nodes[i]
	c := profileCell{text: page.Figure(a.Model(), i, v.Value), value: v.Value, high: v.Flagged && a.Model().Nodes[i].Places}
	switch {
	case !v.Known():
		return profileCell{text: "–", st: dim, value: math.NaN()}
	case !v.Reliable():
		p.grey = true
		c.text, c.st = c.text+"?", dim
	case onPath(a, i) || c.high:
		c.st = hot
	}
	return c
}

// End writes the lines.
func (p *profile) End() error {
	if p.n > 0 {
		p.write()
	}
	return p.Flush()
}

// leaveZeros leaves out columns where nothing is above 0. A node that is judged by place must
// be above its threshold. Columns that were asked for stay.
func (p *profile) leaveZeros() {
	if p.o.Nodes != "" || p.o.All || p.o.Expand != "" {
		return
	}
	for k := len(p.columns) - 1; k >= 0; k-- {
		zero := func(l profileLine) bool {
			c := l.cells[k]
			return math.IsNaN(c.value) || math.Abs(c.value) < 0.0005 || p.whole.Model().Nodes[p.columns[k]].Places && !c.high
		}
		if slices.ContainsFunc(p.lines, func(l profileLine) bool { return !zero(l) }) {
			continue
		}
		p.columns, p.skids = slices.Delete(p.columns, k, k+1), slices.Delete(p.skids, k, k+1)
		for i := range p.lines {
			p.lines[i].cells = slices.Delete(p.lines[i].cells, k, k+1)
		}
	}
}

// partsOnScreen is how many parts a screen has room for.
const partsOnScreen = 10

// partsLeast is how many parts a screen has at least.
const partsLeast = 3

// screen leaves out all parts but the largest, so that the page is one screen. Intervals
// have bounds of their own.
func (p *profile) screen(most int) {
	h := p.parts
	if p.o.Lines == 0 || p.o.Top || h.timeline() || len(p.lines) <= most+1 {
		return
	}
	for _, l := range p.lines[most+1:] {
		h.Left++
		h.LeftShare += l.part.Value
	}
	p.lines = p.lines[:most+1]
}

func (p *profile) write() {
	p.leaveZeros()
	head := p.Out.String()
	p.screen(partsOnScreen)
	p.body()
	// What is left out takes lines to say, too: a second time is enough for that.
	for range 2 {
		over, most := p.tree.lines()-p.o.Lines, len(p.lines)-1
		if p.o.Lines == 0 || over <= 0 || p.parts.timeline() || most <= partsLeast {
			return
		}
		p.screen(max(partsLeast, most-over))
		p.Out.Reset()
		p.Out.WriteString(head)
		p.body()
	}
}

// body writes what is below the heading.
func (p *profile) body() {
	if p.parts.timeline() && len(p.lines) > sparksFrom {
		p.sparks()
	}
	if !p.parts.timeline() || len(p.lines) <= rowsMost || p.o.Top {
		p.table()
	} else {
		p.notes = append(p.notes, p.o.Hint(fmt.Sprintf("there are %s intervals", page.Trim(float64(len(p.lines)-1))), counts.Fix{Action: counts.ShowRows}))
	}
	p.foot()
}

// foot says what was left out, and how far to trust the rest.
func (p *profile) foot() {
	h := p.parts
	p.Out.WriteByte('\n')
	if h.Left > 0 {
		left := fmt.Sprintf("%s more of %s %s", page.Trim(float64(h.Left)), page.Trim(float64(h.Places)), plural(h.noun()))
		if h.Calls == nil { // with what they call, functions have the same time several times
			left += fmt.Sprintf(", %s of %s together", page.PercentOf(h.LeftShare), h.what())
		}
		p.Paragraph("left out", p.o.Hint(left, counts.Fix{Action: counts.ShowRows, Number: h.Places}), 12, plain)
	}
	if slices.ContainsFunc(p.lines, func(l profileLine) bool { return l.hot }) {
		p.Paragraph("*", fmt.Sprintf("a hotspot: %g %% of %s or more", 100*account.Hotspot, h.what()), 12, plain)
	}
	if p.grey {
		p.Paragraph("?", "unreliable: the error exceeds the value, mostly for too few samples", 12, plain)
	}
	if slices.Contains(p.skids, true) {
		p.Paragraph(skidMark, "from samples that stand behind the instruction that caused them", 12, plain)
	}
	p.called()
	p.high()
	if p.left > 0 {
		p.Paragraph("note", p.o.Hint(fmt.Sprintf("%d more nodes do not fit in %d columns", p.left, p.Width), counts.Fix{Action: counts.ShowColumns}), 12, plain)
	}
	if others := p.samples(); others != "" {
		p.Paragraph("samples", others, 12, plain)
	}
	if n := len(p.notes); p.o.Lines > 0 && !p.o.Notes && n > 0 {
		text := fmt.Sprint(n)
		if p.incomplete {
			text += notRead
		}
		p.Paragraph("notes", p.o.Hint(text, counts.Fix{Action: counts.ShowNotes}), 12, plain)
	} else {
		for _, n := range p.notes {
			p.Paragraph("note", n, 12, plain)
		}
	}
	if h.Next.Command != "" {
		p.step("next", h.Next)
	}
}

// called names the lines that call hotspots of libraries.
func (p *profile) called() {
	for _, l := range p.lines {
		if l.hot && l.caller != "" {
			p.Paragraph("called", page.Cut(l.labels[len(l.labels)-1], functionMost)+" "+l.caller, 12, plain)
		}
	}
}

// high names the places where a node that is judged by place is above its threshold.
func (p *profile) high() {
	for k, i := range p.columns {
		var at []string
		for _, l := range p.lines {
			if l.cells[k].high && l.cells[k].st == hot {
				at = append(at, l.labels[len(l.labels)-1])
			}
		}
		if more := len(at) - highMost; more > 0 {
			at = append(at[:highMost], fmt.Sprintf("%d more", more))
		}
		if n := &p.whole.Model().Nodes[i]; len(at) > 0 {
			p.Paragraph("high", n.Name+" of "+strings.Join(at, ", ")+": "+n.Title, 12, plain)
		}
	}
}

// highMost is how many places are named with a node that is above its threshold there.
const highMost = 5

// plural puts a noun into the plural.
func plural(noun string) string {
	if noun == counts.Process.String() {
		return noun + "es"
	}
	return noun + "s"
}

// eventsMost is how many events have their samples listed.
const eventsMost = 6

// samples says how many samples there are of each event, if of several.
func (p *profile) samples() string {
	var list []string
	var all, least, most int64
	for _, c := range p.whole.Counts() {
		if c.Samples == 0 {
			continue
		}
		list = append(list, fmt.Sprintf("%s of %s", page.Trim(float64(c.Samples)), cmp.Or(c.As, c.Event)))
		if least == 0 || c.Samples < least {
			least = c.Samples
		}
		all, most = all+c.Samples, max(most, c.Samples)
	}
	switch {
	case len(list) < 2:
		return ""
	case len(list) > eventsMost:
		return p.o.Hint(fmt.Sprintf("%s of %d events, %s to %s of each", page.Trim(float64(all)), len(list), page.Trim(float64(least)), page.Trim(float64(most))), counts.Fix{Action: counts.ShowData})
	}
	return strings.Join(list, ", ")
}
