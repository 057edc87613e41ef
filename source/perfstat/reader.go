package perfstat

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/counts"
)

// Options are what a caller knows of the input.
type Options struct {
	Separator string // of -x's fields; "" to find it out, and to read all forms
}

// Stats count what a [Reader] has met.
type Stats struct {
	Lines   int // read
	Rows    int // counts
	Derived int // lines with metrics that perf worked out from counts
	Dropped int // counts that could not be used; the tables' notes say why
	Tables  int
}

// A Reader reads the output of perf stat in any of its forms. It yields a table for each block,
// and for each interval of -I. It keeps everything that it creates: a table is valid until the
// next call of Next. Its *Layout stays the same pointer as long as columns and scopes do. Its
// memory does not grow with the number of intervals.
type Reader struct {
	lines lineReader
	name  string

	forms parsers

	row      row
	complete bool // no more records join those of asm; row begins the next table, unless the input is at its end
	asm      assembler
	predict  predictor
	cores    perCore

	cur, ahead block
	split      bool // ahead has begun: the next count belongs to it
	span       timeSpan
	around     around
	metric     metric

	table  counts.Table
	kind   form
	stats  Stats
	hint   hint
	err    error
	opened bool
}

// parsers read lines of the three forms.
type parsers struct {
	csv   csvParser
	text  textParser
	json  jsonParser
	given bool // the separator was given
}

// A timeSpan is the current interval.
type timeSpan struct {
	stamp      []byte // as printed
	start, end int64  // ns
	period     int    // records of one round of scopes and events, 0 if not known
}

// around is what the lines between the counts say.
type around struct {
	cpu     string
	cpuLine int    // of a "# cpu:" without a count after it so far, 0 if none
	command []byte // a command line that may go on
	prefix  []byte // of the lines of the block, as of a quotation
}

// A metric is the count that a line of metrics belongs to.
type metric struct {
	record  int  // its index, -1 if none
	wrapped bool // its line may go on in the next
}

// A form is one of the three that perf stat prints.
type form uint8

const (
	noForm form = iota
	textForm
	csvForm
	jsonForm
)

// NewReader returns a reader of r. The name is for messages.
func NewReader(r io.Reader, name string, opts Options) *Reader {
	p := &Reader{lines: newLineReader(r), name: name, metric: metric{record: -1}}
	p.table.Start, p.table.Duration = math.NaN(), math.NaN()
	if opts.Separator != "" {
		p.forms.csv.sep, p.forms.given = []byte(opts.Separator), true
		if opts.Separator == `\t` { // as perf takes it
			p.forms.csv.sep = []byte("\t")
		}
	}
	p.ahead.line = 1
	return p
}

// Table returns the current table, which is valid until the next call of Next.
func (r *Reader) Table() *counts.Table { return &r.table }

// Err returns the error that ended the reading, nil at the end of the input.
func (r *Reader) Err() error { return r.err }

// Stats returns what has been read so far.
func (r *Reader) Stats() Stats {
	r.stats.Lines = r.lines.num
	return r.stats
}

// Notes returns what was met behind the last table. What concerns a table is in
// its own notes.
func (r *Reader) Notes() []counts.Note { return r.ahead.notes.all(r.cur.notes.all(nil)) }

// Kind says which form the current table was read from: "perf-stat-text",
// "perf-stat-csv" or "perf-stat-json".
func (r *Reader) Kind() string {
	switch r.kind {
	case csvForm:
		return "perf-stat-csv"
	case jsonForm:
		return "perf-stat-json"
	}
	return "perf-stat-text"
}

// Next advances to the next table. It returns false at the end of the input and
// at an error.
func (r *Reader) Next() bool {
	if r.err != nil || !r.open() {
		return false
	}
	for r.err == nil {
		if r.complete {
			if n := r.portion(); n > 0 {
				if r.emit(n) {
					return true
				}
				continue
			}
			if r.lines.done() {
				r.err = r.outcome()
				break
			}
			r.complete = false
			r.begin()
			r.add()
		}
		line, ok := r.lines.next()
		if ok {
			r.take(line)
		} else {
			r.end()
		}
	}
	return false
}

// open looks at the beginning of the input once.
func (r *Reader) open() bool {
	if r.opened {
		return true
	}
	r.opened = true
	head := r.lines.head(8)
	if msg := foreignFormat(head); msg != "" {
		r.fail(1, msg)
		return false
	}
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		r.lines.skip(len(byteOrderMark))
	}
	r.lines.loneCR = endsWithCR(head)
	return true
}

const byteOrderMark = "\ufeff"

func (r *Reader) fail(line int, msg string) {
	if r.err == nil {
		r.err = &Error{File: r.name, Line: line, Msg: msg}
	}
}

// take reads a line.
func (r *Reader) take(line []byte) {
	switch {
	case r.lines.long:
		r.note("line %d is longer than %d bytes and was skipped", r.lines.num, maxLine)
		return
	case r.expected(line):
		return
	}
	line = r.clean(line)
	switch {
	case len(r.around.command) > 0 && r.carriesOn(line):
	case !r.forms.given && r.forms.json.looksJSON(line):
		r.row.reset(r.lines.num, jsonForm)
		r.use(r.forms.json.parse(line, &r.row), r.forms.json.reason)
	case r.meta(line):
	case r.forms.given:
		r.takeGiven(line)
	case r.forms.csv.sep == nil || !r.takeCSV(line):
		r.forms.json.forget()
		r.takeText(line)
	}
}

// takeCSV reads a line by the separator that was found.
func (r *Reader) takeCSV(line []byte) bool {
	r.row.reset(r.lines.num, csvForm)
	v := r.forms.csv.parse(line, &r.row)
	if v == foreign && r.cur.form == csvForm {
		r.otherSeparator(line)
	}
	if v == foreign || v == isRow && !r.row.marked && r.cur.form != csvForm {
		return false
	}
	r.use(v, r.forms.csv.reason)
	return true
}

// otherSeparator notes a line that is a count by another separator than the
// recording's: it is left out, but not in silence.
func (r *Reader) otherSeparator(line []byte) {
	var probe csvParser
	var other row
	other.reset(r.lines.num, csvForm)
	if probe.detect(line, &other) == isRow {
		r.note("line %d: a count separated by %q where the others have %q: left out", r.lines.num, probe.sep, r.forms.csv.sep)
	}
}

// expected reads a line of an interval that is as predicted.
func (r *Reader) expected(line []byte) bool {
	if r.cur.form != csvForm || !r.cur.interval || r.split {
		return false
	}
	n := len(r.asm.recs)
	r.asm.recs = append(r.asm.recs, record{line: r.lines.num})
	if !r.predict.read(line, &r.asm.recs[n]) {
		r.asm.recs = r.asm.recs[:n]
		return false
	}
	r.stats.Rows++
	return true
}

// clean takes off a line what terminals, mails and comments put around it.
func (r *Reader) clean(line []byte) []byte {
	line = stripLogTime(stripEscapes(line))
	for i := bytes.IndexByte(line, '\r'); i >= 0 && i+1 < len(line); i = bytes.IndexByte(line, '\r') {
		line = line[i+1:] // what a terminal shows of a progress display
	}
	for {
		rest := skipBlanks(line)
		if len(rest) == 0 || rest[0] != '>' {
			break
		}
		line = rest[1:] // a mail's quotation
	}
	if len(r.around.prefix) > 0 {
		if rest, found := bytes.CutPrefix(skipBlanks(line), r.around.prefix); found {
			return rest
		}
	}
	return line
}

// takeGiven reads a line by the separator that the caller gave.
func (r *Reader) takeGiven(line []byte) {
	r.row.reset(r.lines.num, csvForm)
	v := r.forms.csv.parse(line, &r.row)
	if v != foreign {
		r.use(v, r.forms.csv.reason)
		return
	}
	r.unread(line)
	if r.hint.at == 0 && r.stats.Rows == 0 {
		var probe csvParser
		var other row
		other.reset(r.lines.num, csvForm)
		if probe.detect(line, &other) == isRow {
			r.hint.separator, r.hint.at = string(probe.sep), r.lines.num
		}
	}
}

// unread notes a line of CSV or JSON that only begins like a count, and a cut last line.
func (r *Reader) unread(line []byte) {
	if r.cur.form != csvForm && r.cur.form != jsonForm || len(r.asm.recs) == 0 {
		return
	}
	switch {
	case r.lines.cut:
		r.drop("the input ends within this line: dropped")
	case r.cur.form == csvForm && (looksLikeCount(line) || r.forms.csv.shaped) && bytes.Contains(line, r.forms.csv.sep) && !isBlank(r.forms.csv.sep[0]):
		r.drop("not understood: " + quote(line))
	}
}

// takeText reads a line of text, or finds the separator of one that is not.
func (r *Reader) takeText(line []byte) {
	r.row.reset(r.lines.num, textForm)
	v, t := r.forms.text.parse(line, &r.row)
	switch v {
	case derived:
		r.stats.Derived++
		r.metrics(t)
		if r.row.comment == nil && t.shared {
			r.hint.sawMetrics(r.lines.num)
		}
	case isRow, damaged:
		if r.accepts(v) {
			if r.lines.cut {
				r.doubtShare(line)
			}
			r.annotated()
			r.use(v, r.forms.text.reason)
		}
	case foreign:
		if !r.detect(line) {
			r.other(line, t)
		}
	}
}

// detect reads a line that is not text by the separator that it shows.
func (r *Reader) detect(line []byte) bool {
	if r.forms.csv.sep != nil && r.cur.form == csvForm {
		return false
	}
	probe, saved := r.forms.csv, r.row
	r.row.reset(r.lines.num, csvForm)
	v := probe.detect(line, &r.row)
	if v == foreign {
		r.row = saved
		return false
	}
	r.forms.csv = probe
	r.use(v, r.forms.csv.reason)
	return true
}

// accepts decides whether a line that has the form of a count is one.
func (r *Reader) accepts(v verdict) bool {
	b, w := r.current(), &r.row
	own := distinctive(w.event)
	expected := b.evidence >= commandSeen && !b.closed
	if v == damaged || w.remark != nil {
		return own && (expected || b == &r.cur && b.sure && !b.closed)
	}
	switch {
	case own, expected && (w.time != nil || b.evidence == titleSeen && b.open):
		return true
	case expected:
		return w.marked || w.id != nil || b.cmd.asksFor(string(w.event))
	}
	return w.marked && (w.share >= 0 || w.noise >= 0 || w.id != nil)
}

// annotated handles what stands behind an event in a line of text and is not
// perf stat's: cgroups stand in all lines of a block or in none.
func (r *Reader) annotated() {
	w := &r.row
	if w.cgroup != nil && len(r.asm.recs) > 0 && !r.cur.cgroups && !r.begins() {
		w.remark, w.cgroup = w.cgroup, nil
	}
	if w.remark != nil {
		w.note("the text behind the event was ignored: " + quote(w.remark))
	}
}

// metrics handles a line that carries on the metrics of a count: the share at
// its end is the count's.
func (r *Reader) metrics(t tail) {
	if r.metric.record < 0 || r.split {
		return
	}
	c := &r.asm.recs[r.metric.record]
	if t.shared && c.cell.State == counts.Counted && c.times == relative && c.cell.Running == c.cell.Enabled {
		c.cell.Enabled, c.cell.Running = relativeTimes(t.share)
	}
	if v := standardError(c.cell.Value, t.noise); v > 0 {
		c.cell.Variance = square(v)
	}
}

// other handles a line that is none of perf stat's counts.
func (r *Reader) other(line []byte, t tail) {
	if r.metric.wrapped && t.found && r.row.comment == nil {
		r.metrics(t) // the end of a line that a mail wrapped
	}
	if isMetricTitle(line) {
		r.hint.sawMetrics(r.lines.num)
	}
	r.metric.record, r.metric.wrapped = -1, false
	r.unread(line)
	trimmed := bytes.TrimSpace(line)
	if b := r.current(); b.evidence == titleSeen && b.open && !b.closed && (looksLikeCount(trimmed) || r.lines.cut && startsCount(trimmed)) {
		r.drop("not understood: " + quote(trimmed))
		return
	}
	r.cur.open = r.cur.open && len(r.asm.recs) == 0
}

// looksLikeCount reports whether a line begins as a count does.
func looksLikeCount(line []byte) bool {
	if bytes.IndexFunc(line, unicode.IsLetter) < 0 {
		return false
	}
	if first, _ := utf8.DecodeRune(line); unicode.IsDigit(first) {
		return true // of any script: perf prints none but ASCII's, a page may
	}
	return len(line) > 0 && (line[0] == '<' || line[0] == '-' && len(line) > 1 && isDigit(line[1]))
}

// note adds a note to the block that the lines being read belong to.
func (r *Reader) note(format string, args ...any) { r.current().notes.add(format, args...) }

// drop notes a count that cannot be used.
func (r *Reader) drop(why string) {
	r.stats.Dropped++
	r.note("line %d: %s", r.lines.num, why)
	if r.hint.bad == 0 {
		r.hint.bad, r.hint.why = r.lines.num, why
	}
}

// use takes a line that was read into r.row.
func (r *Reader) use(v verdict, reason string) {
	w := &r.row
	if v != foreign {
		r.around.cpuLine = 0
	}
	switch v {
	case foreign:
		return
	case derived:
		r.stats.Derived++
		r.hint.sawMetrics(r.lines.num)
		return
	case damaged:
		r.drop(reason + ": dropped")
		return
	}
	if why := implausible(w.value); why != "" {
		r.drop(fmt.Sprintf("the value of %s %s: dropped", quote(w.event), why))
		return
	}
	if r.lines.cut && r.cutShort() {
		r.drop("the input ends within this line: dropped")
		return
	}
	if w.share > 1 {
		w.note(string(w.event) + " was counted for more than 100 % of the time: its coverage is not known")
	}
	if w.shared && math.IsNaN(w.share) && w.state == counts.Counted && !r.lines.cut {
		w.note("the coverage of " + string(w.event) + " is not a number")
	}
	r.endCommand()
	switch {
	case len(r.asm.recs) == 0:
		r.begin()
		r.add()
	case r.begins():
		r.complete = true
	default:
		r.add()
	}
}

// add appends the row to the table.
func (r *Reader) add() {
	w, b := &r.row, &r.cur
	if err := r.asm.add(w, b); err != nil {
		r.fail(w.line, err.Error())
		return
	}
	r.stats.Rows++
	n := len(r.asm.recs)
	if b.form == csvForm && b.interval {
		r.predict.learn(r.forms.csv.line, w, &r.asm.recs[n-1])
	}
	b.marked = b.marked || w.marked
	b.spelling.learn(w.spelling)
	b.sure = b.sure || w.marked || isGeneric(w.event)
	r.metric.record = n - 1
	r.metric.wrapped = w.form == textForm && w.comment != nil && !w.shared
	r.comment()
	for _, text := range w.notes {
		b.notes.add("line %d: %s", w.line, text)
	}
}

// comment notes the name that someone wrote behind a raw code.
func (r *Reader) comment() {
	c := r.row.comment
	if r.row.form == textForm && len(c) > 0 && isRaw(stripModifiers(r.row.event)) && distinctive(c) {
		r.row.note(fmt.Sprintf("a comment names %s %s", r.row.event, quote(c)))
	}
}
