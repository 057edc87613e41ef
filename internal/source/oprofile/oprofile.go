// Package oprofile reads what oprofile prints: the table of ocount, with counts of events,
// and the table of opreport, with samples by program or function.
//
//	Event counts (scaled) for the whole system:
//	    Event                       Count                    % time counted
//	    PM_RUN_CYC                  5,854,287,084            42.87
//
// opreport --xml has the same in XML. A file becomes one table of the run. Samples count for the events between two of them.
// POWER's events have the number of their group behind their names
// (PM_DATA_FROM_L2MISS_GRP16), which is left out.
package oprofile

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// Bounds on what a table may hold.
const (
	lineMost   = 64 << 10
	eventsMost = 1000
)

// expressions match the lines of both programs.
var expressions = sync.OnceValue(func() (x struct{ counted, period, group, power, active, begins, row *regexp.Regexp }) {
	x.counted = regexp.MustCompile(`^Counted (\S+) events\b`)
	x.period = regexp.MustCompile(`\bcount (\d+)\s*$`)
	x.group = regexp.MustCompile(`_GRP\d+$`)
	x.power = regexp.MustCompile(`^CPU:.*\bPOWER(\d+)\b`)
	x.active = regexp.MustCompile(`^Events were actively counted for ([\d.,]+) (seconds|milliseconds)`)
	x.begins = regexp.MustCompile(`^Event counts(?: \(\w+\))? for (.*?):\s*$`)
	x.row = regexp.MustCompile(`^\d+\s+\d+\.\d+\s+\S`)
	return x
})

// Detect reports whether a file's first bytes look like a table of ocount or opreport. Rows
// alone are taken as well, and refused with a reason: they do not say what they count.
func Detect(head []byte) bool {
	if isXML(head) {
		return true
	}
	events, columns, rows, others := false, false, false, false
	for line := range bytes.Lines(head) {
		text := strings.TrimSpace(string(line))
		switch {
		case strings.HasPrefix(text, "Event counts") && expressions().begins.MatchString(text),
			strings.HasPrefix(text, "Counted ") && expressions().counted.MatchString(text):
			events = true
		case strings.HasPrefix(text, "Event ") && strings.Contains(text, "% time counted"),
			strings.HasPrefix(text, "samples") && strings.Contains(text, "%"):
			columns = true
		case expressions().row.MatchString(text):
			rows = true
		default:
			others = others || text != "" && bytes.HasSuffix(line, []byte("\n"))
		}
	}
	return events && (columns || rows) || rows && !columns && !others
}

// A Reader yields one table.
type Reader struct {
	src   *bufio.Reader
	name  string
	kind  string
	line  int
	table *counts.Table
	done  bool
	err   error

	label   string
	cpu     string
	seconds float64
	events  []event
	begun   bool        // a row of samples was read
	symbols bool        // the rows have no images, but symbols alone
	indent  int         // column where the first word of the line begins
	column  int         // where it ends
	right   int         // where the numbers of samples end; 0 if not known, -1 if they begin the line
	last    []int64     // samples of the last row that is not indented
	lastOwn []int64     // where these were counted by place
	by      counts.Kind // of the places: Module or Function; Run for none
	places  []placed    // in the order of the rows
	at      map[counts.Code]int
	percent float64 // of the samples of the first event
}

// An event is a column of the table.
type event struct {
	name    string
	value   float64
	cover   float64 // NaN if not known
	period  float64 // events for a sample; 0 for counts
	samples int64
}

// A placed is a module or function of opreport's rows.
type placed struct {
	code    *counts.Code
	samples []int64 // by event
}

// NewPlaceReader returns a reader of opreport's samples by place: of rows of the same image
// (Module), or of the same function. The first scope of its table is the whole.
func NewPlaceReader(src io.Reader, name string, by counts.Kind) *Reader {
	r := NewReader(src, name)
	r.by = by
	return r
}

// Close does nothing.
func (r *Reader) Close() error { return nil }

// NewReader returns a reader of a file with that name.
func NewReader(src io.Reader, name string) *Reader {
	return &Reader{src: bufio.NewReader(src), name: name, seconds: math.NaN()}
}

// Kind is "ocount" or "opreport".
func (r *Reader) Kind() string { return r.kind }

// Err returns the error that ended the reading.
func (r *Reader) Err() error { return r.err }

// Table returns the table.
func (r *Reader) Table() *counts.Table { return r.table }

// Next reads the file, and reports whether it has a table.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	r.done = true
	if head, _ := r.src.Peek(1024); isXML(head) {
		r.readXML(r.src)
	} else {
		r.readLines()
	}
	if r.err == nil && r.kind == "" && len(r.events) == 0 && r.begun {
		r.fail("rows of opreport without their head do not say what they count: give all that opreport prints")
	}
	if r.err == nil && (len(r.events) == 0 || r.kind == "opreport" && !r.begun) {
		r.fail("no counts and no samples")
	}
	if r.err != nil {
		return false
	}
	r.table = r.make()
	return true
}

// readLines reads the tables of text.
func (r *Reader) readLines() {
	scan := bufio.NewScanner(r.src)
	scan.Buffer(make([]byte, 0, 4096), lineMost)
	for r.err == nil && scan.Scan() {
		r.line++
		r.indent, r.column = word(scan.Text())
		r.read(strings.TrimSpace(scan.Text()))
	}
	if err := scan.Err(); r.err == nil && err != nil {
		r.fail("%v", err)
	}
}

// word returns where the first word of a line begins and ends. Tabs are 8 columns.
func word(line string) (begin, end int) {
	text := strings.TrimLeft(line, " \t")
	blank := line[:len(line)-len(text)]
	begin = len(blank) + 7*strings.Count(blank, "\t")
	if at := strings.IndexAny(text, " \t|"); at >= 0 {
		text = text[:at]
	}
	return begin, begin + len(text)
}

// aligned takes where numbers of samples end from the heading, or else from the first row.
func (r *Reader) aligned(text string) {
	if r.right == 0 {
		if r.right = r.column; r.indent == 0 || !isDigit(text) && !strings.HasPrefix(text, "samples|") {
			r.right = -1
		}
	}
}

func (r *Reader) fail(format string, args ...any) {
	r.err = fault.At(r.name, max(r.line, 1), format, args...)
}

// read takes a line.
func (r *Reader) read(text string) {
	switch m, x := (match{text}), expressions(); {
	case m.of(x.power) != nil:
		r.cpu = "power" + m.of(x.power)[1]
	case m.of(x.active) != nil:
		v, err := strconv.ParseFloat(strings.ReplaceAll(m.of(x.active)[1], ",", ""), 64)
		if err != nil {
			r.fail("%q is not a time", spelling.Clip(text))
			return
		}
		if r.seconds = v; m.of(x.active)[2] == "milliseconds" {
			r.seconds = v / 1000
		}
	case m.of(x.begins) != nil:
		r.kind, r.label = "ocount", m.of(x.begins)[1]
	case m.of(x.counted) != nil:
		r.kind = "opreport"
		r.add(event{name: m.of(x.counted)[1], cover: math.NaN(), period: 1})
		r.sampling(text)
	case r.kind == "opreport" && !r.begun && m.of(x.period) != nil && !isDigit(text):
		r.sampling(text) // the line was wrapped
	case strings.HasPrefix(text, "samples"):
		r.aligned(text)
		r.symbols = strings.Contains(text, "symbol name") && !strings.Contains(text, "image name") && !strings.Contains(text, "app name")
	case text == "" || strings.HasPrefix(text, "Event ") || strings.HasPrefix(text, "-") || !isDigit(text) && r.kind != "ocount":
	case r.kind == "ocount":
		r.count(strings.Fields(text))
	case r.kind == "opreport":
		r.aligned(text)
		r.samples(strings.Fields(text))
	default:
		r.begun = true
	}
}

// A match tries expressions on a text.
type match struct{ text string }

func (m match) of(re *regexp.Regexp) []string { return re.FindStringSubmatch(m.text) }

func isDigit(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }

// sampling takes how many events a sample stands for.
func (r *Reader) sampling(text string) {
	if m := expressions().period.FindStringSubmatch(text); m != nil && len(r.events) > 0 {
		v, err := strconv.ParseUint(m[1], 10, 63)
		if err != nil || v == 0 {
			r.fail("%q is not a number of events for a sample", spelling.Clip(m[1]))
			return
		}
		r.events[len(r.events)-1].period = float64(v)
	}
}

func (r *Reader) add(e event) {
	if len(r.events) >= eventsMost {
		r.fail("more than %d events", eventsMost)
		return
	}
	e.name = expressions().group.ReplaceAllString(e.name, "")
	r.events = append(r.events, e)
}

// count takes a row of ocount: the event, its count, and how much of the time it was
// counted. What is no such row is a remark.
func (r *Reader) count(f []string) {
	if len(f) < 2 || !isDigit(f[1]) {
		return
	}
	v, err := strconv.ParseUint(strings.ReplaceAll(f[1], ",", ""), 10, 63)
	if err != nil {
		r.fail("%q is not a count", spelling.Clip(f[1]))
		return
	}
	e := event{name: f[0], value: float64(v), cover: math.NaN()}
	if len(f) > 2 {
		share, err := strconv.ParseFloat(f[2], 64)
		if err != nil || !(share >= 0 && share <= 100) {
			r.fail("%q is not a percentage of the time", spelling.Clip(f[2]))
			return
		}
		e.cover = share / 100
	}
	r.add(e)
}

// placesMost bounds the places of a file; the rows of others count for the whole alone.
const placesMost = 100_000

// place returns the code that a row of text is about.
func (r *Reader) place(f []string) *counts.Code {
	f = f[min(len(f), 2*len(r.events)):]
	var c counts.Code
	if !r.symbols && len(f) > 0 {
		c.Module, f = f[0], f[1:]
	}
	if len(f) > 0 && f[0] == "(deleted)" {
		f = f[1:]
	}
	if r.by == counts.Function {
		c.Function = strings.Join(f, " ")
	}
	return &c
}

// placeOf returns where the samples of a row are counted by place; nil if that is not asked
// for, or the row does not say.
func (r *Reader) placeOf(c *counts.Code) []int64 {
	if r.by == counts.Run || *c == (counts.Code{}) {
		return nil
	}
	i, ok := r.at[*c]
	if !ok {
		if len(r.places) >= placesMost {
			return nil
		}
		if r.at == nil {
			r.at = map[counts.Code]int{}
		}
		i = len(r.places)
		r.at[*c] = i
		r.places = append(r.places, placed{c, make([]int64, len(r.events))})
	}
	return r.places[i].samples
}

// samples takes a row of opreport: for each event samples and a percentage. An indented row is
// a part of the row above, such as a library of the program, and replaces it.
func (r *Reader) samples(f []string) {
	own := r.placeOf(r.place(f))
	part := r.right > 0 && r.column > r.right
	if part {
		for i, n := range r.last {
			r.events[i].samples -= n
			if r.lastOwn != nil {
				r.lastOwn[i] -= n
			}
		}
	}
	r.last, r.lastOwn = r.last[:0], own
	for i := range r.events {
		if 2*i+1 >= len(f) || !isDigit(f[2*i]) {
			return // the row lacks the other events
		}
		n, err := strconv.ParseInt(f[2*i], 10, 63)
		share, bad := strconv.ParseFloat(f[2*i+1], 64)
		if err != nil || bad != nil || !(share >= 0 && share <= 100.5) {
			r.fail("%q is not a number of samples with a percentage", spelling.Clip(strings.Join(f[2*i:2*i+2], " ")))
			return
		}
		r.begun = true
		r.events[i].samples += n
		if own != nil {
			own[i] += n
		}
		if !part {
			r.last = append(r.last, n)
		}
		if i == 0 && !part {
			r.percent += share
		}
	}
}

// sampled is a cell of samples, each for so many events.
func sampled(n int64, period float64) counts.Cell {
	return counts.Cell{State: counts.Counted, Samples: n, Value: float64(n) * period, Variance: period * period * float64(n)}
}

// make is the table of what was read.
func (r *Reader) make() *counts.Table {
	const all = 99.0 // percent of the samples: rows are rounded
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope(r.label)}}
	for _, p := range r.places {
		l.Scopes = append(l.Scopes, counts.Scope{Kind: r.by, Label: p.code.Label(r.by), Code: p.code, CPU: counts.Unknown, Core: counts.Unknown, Die: counts.Unknown, Socket: counts.Unknown, Node: counts.Unknown})
	}
	for _, e := range r.events {
		l.Columns = append(l.Columns, counts.Column{Event: e.name})
	}
	t := counts.NewTable(l)
	t.Label, t.CPU, t.Duration, t.Line = r.label, r.cpu, r.seconds, 1
	for i, e := range r.events {
		c := t.Cell(0, i)
		c.State, c.Value = counts.Counted, e.value
		if e.period > 0 {
			*c = sampled(e.samples, e.period)
			for k := range r.places {
				*t.Cell(k+1, i) = sampled(r.places[k].samples[i], e.period)
			}
			continue
		}
		ns := 1e9
		if t.Relative = math.IsNaN(r.seconds) || r.seconds <= 0; !t.Relative {
			ns = r.seconds * 1e9
		}
		if !math.IsNaN(e.cover) {
			c.Enabled, c.Running = ns, ns*e.cover
			if e.cover == 0 {
				c.State = counts.NotCounted
			}
		}
	}
	if r.kind == "opreport" && r.percent < all {
		t.Notes = append(t.Notes, counts.Notef("the rows have %.3g %% of the samples: counts are of these alone", r.percent))
	}
	return t
}
