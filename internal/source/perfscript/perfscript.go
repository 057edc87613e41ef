// Package perfscript reads the text that perf script prints of samples, alone or with their
// callchains:
//
//	bash 4152 [001] 75695.008865:    1001001 cycles:u:
//	           6f1 gamma+0x10 (/home/ann/forks)
//	           789 main+0x6 (/home/ann/forks)
//
// The heading (perf script --header) tells the processor, the command and how many events
// each sample stands for. Without that and without periods in the text, samples are counted and
// not events. The fields and their order are those of perf's Documentation/perf-script.txt.
package perfscript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Bounds on what a text may make a reader remember.
const (
	lineMost   = 1 << 20
	eventsMost = 1000
	scopesMost = 1 << 18
	nameMost   = 4096
)

// expressions match the lines.
var expressions = sync.OnceValue(func() (x struct{ sample, heading, event *regexp.Regexp }) {
	// Name of the thread, process and thread, processor, flags, time, period, event, the rest.
	x.sample = regexp.MustCompile(`^\s*(\S.*?)\s+(-?\d+)(?:/(-?\d+))?(?:\s+\[(\d+)\])?(?:\s+[.a-zA-Z]{4,5})?(?:\s+(\d+\.\d+):)?(?:\s+(\d+))?\s+([^\s\d(]\S*?):(?:\s+(.*))?$`)
	x.heading = regexp.MustCompile(`^#\s*(cpuid|cmdline|event)\s+:\s*(.*?)\s*$`)
	x.event = regexp.MustCompile(`^name = (\S+?),.*\{ sample_period, sample_freq \} = (\d+)`)
	return x
})

// Detect reports whether a file's first bytes look like the text of samples: after comments
// and other records a sample, with a place in the code on its line or the next.
func Detect(head []byte) bool {
	begun := false
	for line := range bytes.Lines(head) {
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case text == "":
			begun = false
		case strings.HasPrefix(text, "#"), strings.Contains(text, otherRecord):
		case begun:
			_, ok := frameOf(text)
			return ok
		default:
			m := expressions().sample.FindStringSubmatch(text)
			if m == nil {
				return false
			}
			if _, ok := frameOf(" " + m[restPart]); ok {
				return true
			}
			begun = true
		}
	}
	return false
}

// otherRecord begins the name of a record that is no sample.
const otherRecord = "PERF_RECORD_"

// The parts of a sample's line.
const (
	commPart = iota + 1
	pidPart
	tidPart
	cpuPart
	timePart
	periodPart
	eventPart
	restPart
)

// A frame is a call of a callchain.
type frame struct {
	module, function string
	inlined          bool // into the next outer one, which names the module
}

// frameOf reads an indented line: an address, a symbol with an offset, a module in parentheses.
func frameOf(line string) (f frame, ok bool) {
	text := strings.TrimLeft(line, " \t")
	addr, rest, ok := strings.Cut(text, " ")
	if !ok || text == line || strings.Trim(addr, "0123456789abcdef") != "" || !strings.HasSuffix(rest, ")") {
		return f, false
	}
	rest = strings.TrimSuffix(strings.Replace(rest, " (deleted))", ")", 1), ")")
	at := strings.LastIndex(rest, "(")
	if at < 0 || at > 0 && rest[at-1] != ' ' {
		return f, false
	}
	f.function, f.module = strings.TrimSpace(rest[:at]), rest[at+1:]
	if at := strings.LastIndex(f.function, "+0x"); at > 0 && strings.Trim(f.function[at+3:], "0123456789abcdef") == "" {
		f.function = f.function[:at]
	}
	if f.function == "[unknown]" {
		f.function = ""
	}
	if f.module == "[unknown]" {
		f.module = ""
	}
	if strings.HasPrefix(f.module, "/") { // the name that it has in other reports
		f.module = path.Base(f.module)
	}
	f.inlined = f.module == "inlined"
	return f, true
}

// A Reader yields one table. Its first scope is the whole run.
type Reader struct {
	src   *bufio.Scanner
	name  string
	by    counts.Kind // Module or Function; Run for none
	split counts.By   // Comm, Process, Thread, CPU
	line  int
	table *counts.Table
	done  bool
	err   error

	label, cpu       string
	fixed            map[string]float64 // events for a sample, as the heading says
	events           []event
	scopes           []counts.Scope
	sums             [][]sum // by scope and event
	at               map[counts.Scope]int
	codes            map[counts.Code]*counts.Code
	first, last      float64 // times of samples, NaN before one
	sample           *sample // being read; nil between them
	dropped          int     // samples that there was no room for
	unnumbered       bool    // processes have no numbers
	strange, example int     // lines that are neither a sample nor a call, and the first of them
}

// An event is a column of the table.
type event struct {
	name   string
	period float64 // of each sample; 0 if the text gives it, NaN if nothing does
}

// A sum is what samples count at a place.
type sum struct {
	samples        int64
	value, squares float64
}

// A sample is one that was read, but perhaps not all of its callchain.
type sample struct {
	scope counts.Scope
	event int
	value float64
	at    frame
	found bool // where it was taken
}

// NewReader returns a reader of the counts of a run. The name is for messages.
func NewReader(src io.Reader, name string) *Reader {
	r := &Reader{src: bufio.NewScanner(src), name: name, first: math.NaN(), last: math.NaN(),
		fixed: map[string]float64{}, at: map[counts.Scope]int{}, codes: map[counts.Code]*counts.Code{}}
	r.src.Buffer(make([]byte, 0, 4096), lineMost)
	r.scopeOf(counts.RunScope(""))
	return r
}

// NewPlaceReader returns a reader of samples by module or function (Run for neither), within
// processes, threads, their names or processors.
func NewPlaceReader(src io.Reader, name string, by counts.Kind, split counts.By) *Reader {
	r := NewReader(src, name)
	r.by, r.split = by, split
	return r
}

// Close does nothing.
func (r *Reader) Close() error { return nil }

// Kind is "perf-script".
func (r *Reader) Kind() string { return "perf-script" }

// Err returns the error that ended the reading.
func (r *Reader) Err() error { return r.err }

// Table returns the table.
func (r *Reader) Table() *counts.Table { return r.table }

// Next reads the text, and reports whether it has samples.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	r.done = true
	for r.err == nil && r.src.Scan() {
		r.line++
		r.read(strings.TrimRight(r.src.Text(), "\r"))
	}
	r.end()
	switch err := r.src.Err(); {
	case r.err != nil:
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		r.fail("a line of more than %d bytes", lineMost)
	case err != nil:
		r.err = fmt.Errorf("%s: %w", r.name, err)
	case len(r.events) == 0:
		r.fail("no samples")
	}
	if r.err != nil {
		return false
	}
	r.table = r.make()
	return true
}

func (r *Reader) fail(format string, args ...any) {
	r.err = fault.At(r.name, max(r.line, 1), format, args...)
}

// read takes a line.
func (r *Reader) read(text string) {
	if text == "" {
		r.end()
		return
	}
	if text[0] == '#' {
		r.heading(text)
		return
	}
	if s := r.sample; s != nil && s.found && !s.at.inlined && text[0] == '\t' {
		return // a caller
	}
	if f, ok := frameOf(text); ok && r.sample != nil {
		r.call(f)
		return
	}
	m := expressions().sample.FindStringSubmatch(text)
	switch {
	case strings.Contains(text, otherRecord):
		r.end()
	case m == nil && r.sample != nil && (text[0] == ' ' || text[0] == '\t'): // a line of the source, or a call without a place
	case m == nil:
		if r.strange++; r.strange == 1 {
			r.example = r.line
		}
	default:
		r.end()
		r.begin(m)
	}
}

// heading takes what a comment says.
func (r *Reader) heading(text string) {
	m := expressions().heading.FindStringSubmatch(text)
	if m == nil {
		return
	}
	switch value := counts.Name(m[2][:min(len(m[2]), nameMost)]); m[1] {
	case "cmdline":
		r.label = value
	case "cpuid":
		r.cpu = (&perfdata.Features{CPUID: value}).CPUIDString()
	case "event":
		e := expressions().event.FindStringSubmatch(m[2])
		if e == nil || strings.Contains(m[2], ", freq = 1,") || len(r.fixed) >= eventsMost {
			return
		}
		if v, err := strconv.ParseUint(e[2], 10, 63); err == nil && v > 0 {
			r.fixed[e[1]] = float64(v)
		}
	}
}

// begin takes the line of a sample.
func (r *Reader) begin(m []string) {
	s := &sample{scope: counts.RunScope(""), value: 1}
	if s.event = r.eventOf(m[eventPart], m[periodPart] != ""); r.err != nil {
		return
	}
	var err error
	switch e := r.events[s.event]; {
	case e.period > 0:
		s.value = e.period
	case m[periodPart] != "":
		var n uint64 // as the kernel has it
		n, err = strconv.ParseUint(m[periodPart], 10, 64)
		s.value = float64(n)
	case e.period == 0:
		r.fail("a sample of %s without its period, which others have", spelling.Clip(e.name))
		return
	}
	if err == nil && m[timePart] != "" {
		var t float64
		if t, err = strconv.ParseFloat(m[timePart], 64); err == nil {
			r.first, r.last = least(r.first, t), -least(-r.last, -t)
		}
	}
	if err == nil {
		err = r.place(&s.scope, m)
	}
	if err != nil {
		r.fail("a number of this sample is too large: %q", spelling.Clip(strings.TrimSpace(m[0])))
		return
	}
	r.sample = s
	if f, ok := frameOf(" " + m[restPart]); ok {
		r.call(f)
		r.end()
	}
}

// least is the smaller number, or the only one.
func least(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return min(a, b)
}

// eventOf returns the number of a sample's event.
func (r *Reader) eventOf(name string, period bool) int {
	for i := range r.events {
		if r.events[i].name == name {
			return i
		}
	}
	if len(r.events) >= eventsMost || len(name) > nameMost {
		r.fail("more than %d events, or one with more than %d characters", eventsMost, nameMost)
		return 0
	}
	e := event{name: strings.Clone(name), period: math.NaN()}
	if period {
		e.period = 0
	} else if v, ok := r.fixed[name]; ok {
		e.period = v
	}
	r.events = append(r.events, e)
	return len(r.events) - 1
}

// place puts into a scope what samples are split by, apart from the code.
func (r *Reader) place(s *counts.Scope, m []string) (err error) {
	number := func(text string) int {
		v, bad := strconv.ParseInt(text, 10, 32)
		if bad != nil {
			err = bad
		}
		return int(v)
	}
	comm, parts := counts.Name(m[commPart][:min(len(m[commPart]), nameMost)]), []string(nil)
	part := func(k counts.Kind, label string) {
		s.Kind = k
		parts = append(parts, label)
	}
	tid := m[tidPart]
	if tid == "" {
		tid = m[pidPart]
	}
	if r.split.Has(counts.Comm) {
		s.Comm = comm
		part(counts.Comm, comm)
	}
	if r.split.Has(counts.Process) {
		if s.Process = comm; m[tidPart] == "" {
			r.unnumbered = true
		} else {
			s.PID, s.Process = number(m[pidPart]), comm+"-"+m[pidPart]
		}
		part(counts.Process, s.Process)
	}
	if r.split.Has(counts.Thread) {
		s.TID, s.Thread = number(tid), comm+"-"+tid
		part(counts.Thread, s.Thread)
	}
	if r.split.Has(counts.CPU) && m[cpuPart] != "" {
		s.CPU = number(m[cpuPart])
		part(counts.CPU, fmt.Sprintf("CPU%d", s.CPU))
	}
	s.Label = strings.Join(parts, " ")
	return err
}

// call takes a call of the sample's callchain, the innermost first. Of inlined ones the next
// that is not tells the module.
func (r *Reader) call(f frame) {
	s := r.sample
	switch {
	case !s.found:
		s.at, s.found = f, true
	case s.at.inlined && !f.inlined:
		s.at.module, s.at.inlined = f.module, false
	}
}

// end counts the sample that was read.
func (r *Reader) end() {
	s := r.sample
	if r.sample = nil; s == nil || r.err != nil {
		return
	}
	r.add(0, s)
	if r.by == counts.Run && r.split == 0 {
		return
	}
	if r.by != counts.Run {
		c := r.codeOf(s.at)
		if c == nil {
			r.dropped++
			return
		}
		s.scope.Kind, s.scope.Code = r.by, c
		s.scope.Label = strings.TrimSpace(s.scope.Label + " " + c.Label(r.by))
	}
	if row := r.scopeOf(s.scope); row > 0 {
		r.add(row, s)
	} else {
		r.dropped++
	}
}

// codeOf returns the one value of a place in the code; nil if there are too many.
func (r *Reader) codeOf(f frame) *counts.Code {
	key := counts.Code{}
	if !f.inlined {
		key.Module = f.module
	}
	if r.by == counts.Function {
		key.Function = f.function
	}
	c, ok := r.codes[key]
	if !ok && len(r.codes) < scopesMost {
		c = &counts.Code{Module: counts.Name(key.Module[:min(len(key.Module), nameMost)]), Function: counts.Name(object.Demangle(key.Function[:min(len(key.Function), nameMost)], false))}
		key.Module, key.Function = strings.Clone(key.Module), strings.Clone(key.Function)
		r.codes[key] = c
	}
	return c
}

// scopeOf returns the row of a scope; -1 if there are too many.
func (r *Reader) scopeOf(s counts.Scope) int {
	row, ok := r.at[s]
	if ok {
		return row
	}
	if len(r.scopes) >= scopesMost {
		return -1
	}
	r.at[s] = len(r.scopes)
	r.scopes, r.sums = append(r.scopes, s), append(r.sums, nil)
	return len(r.scopes) - 1
}

// add adds a sample to a row.
func (r *Reader) add(row int, s *sample) {
	for len(r.sums[row]) <= s.event {
		r.sums[row] = append(r.sums[row], sum{})
	}
	to := &r.sums[row][s.event]
	to.samples++
	to.value += s.value
	to.squares += s.value * s.value
}

// make is the table of what was read.
func (r *Reader) make() *counts.Table {
	l := &counts.Layout{Scopes: r.scopes}
	var bare []string
	for _, e := range r.events {
		c := counts.Column{Event: e.name}
		switch base, _, _ := strings.Cut(e.name, ":"); {
		case math.IsNaN(e.period):
			bare = append(bare, e.name)
			c.Event = "sampled " + e.name
		case base == "cpu-clock", base == "task-clock":
			c.Unit = "ns"
		}
		l.Columns = append(l.Columns, c)
	}
	t := counts.NewTable(l)
	t.Label, t.CPU, t.Duration, t.Line = r.label, r.cpu, math.NaN(), 1
	if r.last > r.first {
		t.Duration = r.last - r.first
	}
	for row, list := range r.sums {
		for i := range r.events {
			c, s := t.Cell(row, i), sum{}
			if i < len(list) {
				s = list[i]
			}
			c.State, c.Samples, c.Value = counts.Counted, s.samples, s.value
			if row > 0 {
				if c.Variance = s.squares; s.samples == 0 { // there might have been one
					c.Variance = r.sums[0][i].squares / float64(r.sums[0][i].samples)
				}
			}
		}
	}
	if len(bare) > 0 {
		t.Notes = append(t.Notes, counts.Notef("the text does not say how many events a sample of %s stands for, so its samples are counted: print it with perf script --header -F +period", strings.Join(bare[:min(len(bare), 3)], ", ")))
	}
	if r.unnumbered {
		t.Notes = append(t.Notes, counts.Notef("the text has no numbers of processes, so those of one name are together: print them with perf script -F +pid"))
	}
	if r.dropped > 0 {
		t.Notes = append(t.Notes, counts.Notef("%d samples are in too many places, and count for the whole alone", r.dropped))
	}
	if r.strange > 0 {
		t.Notes = append(t.Notes, counts.Notef("%d lines are no samples, and were passed over; the first is line %d", r.strange, r.example))
	}
	return t
}
