// Package published reads what toplev and PerfSpect publish: shares and other figures, in text
// for people or in CSV. Neither has counts, apart from toplev's --valcsv. So the figures are taken
// as they stand. Several rows of one node, of intervals or cores, become their mean: without
// counts no sum can be formed.
//
//	S0-C0    BE/Mem         Backend_Bound.Memory_Bound:     44.59 +-     0.00 % Slots       <==
//	BE       Backend_Bound   % Slots                        53.8   <==
//	0.13,S0-C0,Backend_Bound,10.65,% Slots <,,,0.00,6.84,
//	metric_TMA_..Memory_Bound(%),34.84,48.31,15.66,50.63
//
// The formats are those of toplev's tl_output.py, and of print.go and summary.go in PerfSpect's
// cmd/metrics.
package published

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// Bounds on what a file may make a reader remember.
const (
	lineMost = 1 << 20
	// headingsMost bounds how often a line is split.
	headingsMost = 8
	cellsMost    = 1 << 20
	tableMost    = 1 << 22 // cells of all tables
	namesMost    = 1 << 12 // of nodes and other figures
	nameMost     = 200     // bytes
	linesMost    = 3       // unknown ones that are named
)

// The names of the tools.
const (
	toplev    = "toplev"
	perfspect = "PerfSpect"
)

// summary is the time of rows of the whole run.
const summary = "SUMMARY"

// categories are the first levels of paths that text is recognised by.
var categories = []string{"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"}

// Detect reports whether a file's first bytes are those of such a file.
func Detect(head []byte) bool {
	for line := range bytes.Lines(head) {
		text := strings.TrimRight(string(line), "\r\n")
		if _, ok := headingOf(text); ok {
			return true
		}
		if x, ok := textRow(text); ok && x.share() && slices.Contains(categories, x.path[0]) {
			return true
		}
	}
	return false
}

// Kept reports whether a file with accounts begins like one of what such a tool published.
func Kept(head []byte) bool {
	return bytes.Contains(head, []byte(`"kind":"`+toplev+`"`)) || bytes.Contains(head, []byte(`"kind":"`+strings.ToLower(perfspect)+`"`))
}

// A Reader yields one table, or one for each interval.
type Reader struct {
	src  *bufio.Scanner
	name string
	by   counts.By
	line int
	err  error
	read bool
	out  []*counts.Table
	at   int

	kind, tool, cpu, label string
	// headings are those of tables so far, the last one of each width. Toplev prints rows of
	// several tables alternately: of cores and of the whole.
	headings []heading
	above    []string // the path of the last node of PerfSpect

	columns []counts.Column
	scopes  []counts.Scope
	numbers map[string]int // of columns and scopes, by name
	cells   map[cell]*sum
	times   []float64       // at the end of each interval
	when    string          // the last of them, as the file has it
	mux     float64         // the least part of the time that any event was counted, in percent; NaN where not known
	best    map[string]bool // marks on the way to a bottleneck
	counted bool            // the file has counts
	marks   bool            // nodes below their thresholds are marked
	placed  bool            // a row was placed in a scope that was asked for
	several int             // the most rows that a figure is the mean of

	strange   []string // lines that are not known
	strangers int      // how many
}

// A cell is the place of a figure.
type cell struct{ interval, scope, column int }

// A sum is what the rows of a cell sum to.
type sum struct {
	n              int
	value, squares float64 // of marks the largest; of deviations
	mux            float64 // the least, of counts the sum, in percent; NaN where not known
	rank           int     // of the scope that the rows are of, the coarsest first
}

// NewReader returns a reader of the file that src holds. The name is for messages.
func NewReader(src io.Reader, name string) *Reader {
	r := &Reader{src: bufio.NewScanner(src), name: name, numbers: map[string]int{}, cells: map[cell]*sum{}, best: map[string]bool{}, mux: math.NaN()}
	r.src.Buffer(nil, lineMost)
	return r
}

// Keep says what is kept apart. All else is averaged.
func (r *Reader) Keep(by counts.By) { r.by = by }

// Kind is the tool that wrote the file.
func (r *Reader) Kind() string { return strings.ToLower(r.kind) }

// How says that the tool computed the figures.
func (r *Reader) How() string {
	how := "computed by "
	if r.counted {
		how = "counted by "
	}
	return how + cmp.Or(r.tool, r.kind)
}

// Table returns the current table.
func (r *Reader) Table() *counts.Table { return r.out[r.at-1] }

// Err returns the error that ended the reading.
func (r *Reader) Err() error { return r.err }

// Next advances to the next table.
func (r *Reader) Next() bool {
	if !r.read {
		r.read = true
		r.all()
	}
	if r.err != nil || r.at >= len(r.out) {
		return false
	}
	r.at++
	return true
}

// fail ends the reading at the current line.
func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fault.At(r.name, max(1, r.line), format, args...)
	}
}

// all reads the file.
func (r *Reader) all() {
	for r.err == nil && r.src.Scan() {
		r.line++
		r.take(strings.TrimRight(r.src.Text(), "\r"))
	}
	switch err := r.src.Err(); {
	case r.err != nil:
	case err == bufio.ErrTooLong:
		r.line++
		r.fail("a line of more than %d KiB", lineMost>>10)
	case err != nil:
		r.err = fmt.Errorf("%s: %w", r.name, err)
	case len(r.cells) == 0:
		r.fail("no figures of toplev or PerfSpect are in it%s", r.passedOver("; "))
	default:
		r.make()
	}
}

// version matches toplev's line about itself and the processor.
var version = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#\s+(\d\S*) on [^\[]*(?:\[([^\]/]+)(?:/([^\]]*))?\])?`)
})

// passed are the beginnings of lines that say nothing of the program.
var passed = []string{"\t", "Run toplev ", "Add --", "Using level", "Per thread:", "Per core:", "Per socket:", "Global:", "perf record ", "warning: cannot determine time"}

// take reads a line.
func (r *Reader) take(line string) {
	text := strings.TrimSpace(line)
	switch h, ok := headingOf(line); {
	case ok:
		r.headings = append(sorting.Delete(r.headings, func(o heading) bool { return len(o.names) == len(h.names) }), h)
		r.headings = r.headings[max(0, len(r.headings)-headingsMost):]
		r.kind = cmp.Or(r.kind, h.kind)
		return
	case text == "", slices.ContainsFunc(passed, func(begin string) bool { return strings.HasPrefix(line, begin) }):
		return
	case strings.HasPrefix(text, "$ "):
		r.label = text[2:]
		return
	case strings.HasPrefix(text, "#"):
		if m := version().FindStringSubmatch(text); m != nil && r.kind != perfspect {
			r.tool, r.cpu = toplev+" "+m[1], cpuName(m[2], m[3])
		}
		return
	}
	for i := range r.headings {
		h := &r.headings[i]
		if f := split(line, h.sep); len(f) == len(h.names) && r.row(h, f) {
			return
		}
	}
	if x, ok := textRow(line); ok && len(r.headings) == 0 && (x.share() || len(r.cells) > 0) {
		r.add(x)
		return
	}
	if r.strangers++; len(r.strange) < linesMost {
		r.strange = append(r.strange, fmt.Sprintf("line %d (%s)", r.line, spelling.Clip(text)))
	}
}

// The values of marks.
const (
	below = iota
	over
	best
)

// add takes a figure.
func (r *Reader) add(x figure) {
	r.kind = cmp.Or(r.kind, toplev)
	if r.counted || x.when == summary && r.by.Has(counts.Interval) {
		return
	}
	rank := r.begin(&x)
	if x.path[0] == "MUX" { // of all figures that have none of their own
		if !(r.mux < x.value) {
			r.mux = x.value
		}
		return
	}
	unit, mark := unitOf(x.unit), over
	if x.share() {
		x.value, x.deviation = x.value/100, x.deviation/100
	}
	path := strings.Join(x.path, ".")
	r.put(&x, counts.Column{Event: peers.Published + path, Unit: unit}, rank)
	if r.kind != toplev || !x.share() {
		return
	}
	switch {
	case x.below:
		r.marks, mark = true, below
	case x.best:
		mark = best
	}
	x.mux, x.deviation = math.NaN(), 0
	for i := range x.path {
		if event := peers.Marked + strings.Join(x.path[:i+1], "."); mark == best || i == len(x.path)-1 {
			r.best[event] = r.best[event] || mark == best
			if x.value = float64(mark); i < len(x.path)-1 { // what is above may have another scope
				r.put(&x, counts.Column{Event: event}, -100)
				continue
			}
			r.put(&x, counts.Column{Event: event}, rank)
		}
	}
}

// count takes a count of an event. Counts are summed by who reads the tables.
func (r *Reader) count(x figure, group int, event string) {
	r.counted = true
	r.put(&x, counts.Column{Event: event, Group: group + 1}, r.begin(&x))
}

// begin finds the interval that a figure belongs to, and how coarse its scope is. What is
// coarser replaces what is finer: toplev computes it from sums.
func (r *Reader) begin(x *figure) (rank int) {
	if x.when == summary {
		rank = -10
	} else if x.when != "" && x.when != r.when {
		r.when = x.when
		v, _ := number(x.when)
		r.times = append(r.times, v)
	}
	rank += slices.Index([]counts.Kind{counts.Run, counts.Socket, counts.Core, counts.CPU}, x.scope.Kind)
	if x.idle {
		rank += 10
	}
	return rank
}

// unitOf is the unit of a node for the unit in a file. Of a share whose unit the file does
// not say it is "share".
func unitOf(unit string) string {
	word, share := strings.CutPrefix(unit, "%")
	word = strings.TrimSpace(word)
	lower := strings.ToLower(word)
	switch {
	case !share:
		return cmp.Or(word, "1")
	case word == "":
		return "share"
	case strings.Contains(lower, "slots"):
		return "slots"
	case strings.Contains(lower, "clocks"), strings.Contains(lower, "stalls"):
		return "cycles"
	case strings.Contains(lower, "uops"):
		return "uops"
	}
	return "1"
}

// numberOf returns the number of what has a name: the next one, if it is new.
func (r *Reader) numberOf(name string, next int) (n int, isNew bool) {
	n, ok := r.numbers[name]
	if !ok {
		n = next
		r.numbers[strings.Clone(name)] = n
	}
	return n, !ok
}

// put adds a figure to its cell.
func (r *Reader) put(x *figure, column counts.Column, rank int) {
	c, isNew := cell{}, false
	if c.column, isNew = r.numberOf(fmt.Sprint(column.Event, " ", column.Group), len(r.columns)); isNew {
		r.columns = append(r.columns, column)
	}
	to, ok := r.place(x.scope)
	r.placed = r.placed || ok
	if c.scope, isNew = r.numberOf(fmt.Sprint(to.Kind, "=", to.Label), len(r.scopes)); isNew {
		r.scopes = append(r.scopes, to)
	}
	if r.counted || r.by.Has(counts.Interval) {
		c.interval = max(0, len(r.times)-1)
	}
	s := r.cells[c]
	switch {
	case len(r.columns) > namesMost || len(column.Event) > nameMost:
		r.fail("more than %d nodes and other figures, or a name of more than %d bytes", namesMost, nameMost)
		return
	case s == nil && len(r.cells) >= cellsMost:
		r.fail("more than %d figures", cellsMost)
		return
	case s == nil, rank < s.rank:
		s = &sum{rank: rank, mux: math.NaN()}
		r.cells[c] = s
	case rank > s.rank:
		return
	}
	if s.n++; strings.HasPrefix(column.Event, peers.Marked) {
		s.value = max(s.value, x.value)
		return
	}
	s.value, s.squares = s.value+x.value, s.squares+x.deviation*x.deviation
	switch {
	case r.counted && s.n > 1:
		s.mux += x.mux
	case !math.IsNaN(x.mux) && !(s.mux < x.mux):
		s.mux = x.mux
	}
}

// place returns the scope that rows of a scope are averaged into. It reports whether that was
// asked for. Counts keep their scope.
func (r *Reader) place(s counts.Scope) (counts.Scope, bool) {
	to := counts.RunScope("")
	switch {
	case r.counted:
		return s, true
	case r.by.Has(counts.CPU) && s.CPU != counts.Unknown:
		to.Kind, to.CPU, to.Label = counts.CPU, s.CPU, s.Label
	case r.by.Has(counts.Core) && s.Core != counts.Unknown:
		to.Kind, to.Socket, to.Core = counts.Core, s.Socket, s.Core
		to.Label, _, _ = strings.Cut(s.Label, "-T")
	case r.by.Has(counts.Socket) && s.Socket != counts.Unknown:
		to.Kind, to.Socket, to.Label = counts.Socket, s.Socket, fmt.Sprintf("S%d", s.Socket)
	case r.by.Has(counts.Cgroup) && s.Cgroup != "":
		to.Kind, to.Cgroup, to.Label = counts.Cgroup, s.Cgroup, s.Cgroup
	case r.by&^counts.By(0).With(counts.Interval) != 0:
		return s, false
	}
	return to, true
}

// make makes the tables of what was read.
func (r *Reader) make() {
	l := &counts.Layout{}
	row, column := make([]int, len(r.scopes)), make([]int, len(r.columns)) // of the layout, -1 for nowhere
	for i, s := range r.scopes {
		row[i] = -1
		if _, ok := r.place(s); ok || !r.placed { // what was not asked for is left out, if anything was found
			row[i] = len(l.Scopes)
			l.Scopes = append(l.Scopes, s)
		}
	}
	for i, c := range r.columns {
		column[i] = -1
		// If nothing below its threshold is marked, the file may have all nodes: then only the
		// bottleneck is known to be over its own.
		if r.marks || !strings.HasPrefix(c.Event, peers.Marked) || r.best[c.Event] {
			column[i] = len(l.Columns)
			l.Columns = append(l.Columns, c)
		}
	}
	rows := len(l.Columns)
	if !r.counted {
		l.Columns = append(l.Columns, counts.Column{Event: peers.Rows})
	}
	n, apart := 1, len(r.times) > 0 && (r.counted || r.by.Has(counts.Interval))
	if apart {
		n = len(r.times)
	}
	if n*len(l.Scopes)*len(l.Columns) > tableMost {
		r.fail("%d intervals of %d scopes with %d figures each are too many", n, len(l.Scopes), len(l.Columns))
		return
	}
	for i := range n {
		t := counts.NewTable(l)
		t.Label, t.CPU, t.Line, t.Relative, t.Interval = r.label, r.cpu, 1, true, apart
		r.span(t, i, n)
		if !r.counted {
			t.NoError = r.kind + "'s file has no counts"
		}
		r.out = append(r.out, t)
	}
	for c, s := range r.cells {
		if row[c.scope] >= 0 && column[c.column] >= 0 {
			r.fill(r.out[c.interval], row[c.scope], column[c.column], rows, s)
		}
	}
	r.notes(r.out[0])
}

// span says when a table's interval was. PerfSpect has times of day, and not its beginning.
func (r *Reader) span(t *counts.Table, i, n int) {
	switch {
	case len(r.times) == 0:
	case r.kind == perfspect:
		t.Start = r.times[i] - r.times[0]
	case !t.Interval:
		t.Start, t.Duration = 0, r.times[len(r.times)-1]
	case i == 0:
		t.Start, t.Duration = 0, r.times[0]
	default:
		t.Start, t.Duration = r.times[i-1], r.times[i]-r.times[i-1]
	}
}

// fill puts a sum into its cell.
func (r *Reader) fill(t *counts.Table, row, column, rows int, s *sum) {
	c, n, mux := t.Cell(row, column), float64(s.n), s.mux
	c.State, c.Value, c.Variance = counts.Counted, s.value, s.squares
	switch {
	case r.counted:
		mux /= n
	case strings.HasPrefix(t.Columns[column].Event, peers.Marked):
		return
	default:
		c.Value, c.Variance = s.value/n, s.squares/n/n
		if math.IsNaN(mux) {
			mux = r.mux
		}
		all := t.Cell(row, rows)
		all.State, all.Value = counts.Counted, max(all.Value, n)
		r.several = max(r.several, s.n)
	}
	if mux >= 0 && mux <= 100 {
		c.Enabled, c.Running = 1e9, mux*1e7
		if t.Duration > 0 {
			c.Enabled, c.Running = t.Duration*1e9, mux*1e7*t.Duration
			t.Relative = false
		}
	}
}

// notes says how the figures of a table came about, and what was not read.
func (r *Reader) notes(t *counts.Table) {
	note := func(text string) { t.Notes = append(t.Notes, counts.Notef("%s", text)) }
	switch {
	case r.counted:
	case r.kind == perfspect:
		note("PerfSpect averages ratios: an interval with little work weighs as much as one with much")
	case r.several > 1:
		note(fmt.Sprintf("means of up to %d rows of toplev's file, each with the same weight: it has no counts to sum", r.several))
	}
	if r.strangers > 0 {
		note(r.passedOver(""))
	}
}

// passedOver names the first lines that are not known, after a text; "" if there are none.
func (r *Reader) passedOver(after string) string {
	if r.strangers == 0 {
		return ""
	}
	text := after + "not understood, and passed over: " + strings.Join(r.strange, ", ")
	if more := r.strangers - len(r.strange); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
