package perfstat

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"

	"github.com/cyclestack/cyclestack/counts"
)

// Options are what a caller knows of the input.
type Options struct {
	Separator string // of -x's fields; "" to find it out, and to read all forms
}

// An Error says what is wrong with an input, and where.
type Error struct {
	File string
	Line int // from 1; 0 where lines mean nothing
	Msg  string
	Err  error // what the input failed with, nil otherwise
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Unwrap returns the error of the underlying reader.
func (e *Error) Unwrap() error { return e.Err }

// Stats count what a [Reader] has met.
type Stats struct {
	Lines   int // read
	Rows    int // counts
	Derived int // lines with metrics that perf worked out from counts
	Dropped int // counts that could not be used; the tables' notes say why
	Tables  int
}

// A Reader reads the output of perf stat in any of its forms and yields a table
// for each block, and for each interval of -I. It keeps everything that it
// creates: a table is valid until the next call of Next, and its *Layout stays
// the same pointer as long as columns and scopes do. Its memory does not grow
// with the number of intervals.
type Reader struct {
	lines lineReader
	name  string

	csv   csvParser
	text  textParser
	json  jsonParser
	given bool // the separator was given

	row     row
	held    bool // row begins the next table
	asm     assembler
	predict predictor

	cur, ahead block
	split      bool // ahead has begun: the next count belongs to it
	stamp      []byte
	now, then  int64 // end of the current interval and of the one before, in ns
	period     int   // the block seems to be repeated from this record on; -1: it is not
	repeated   bool  // it is

	cpu     string // as the lines so far say
	command []byte // a command line that may go on
	prefix  []byte // of the lines of the block, as of a quotation
	last    int    // index of the record that a line of metrics belongs to, -1 if none
	wrapped bool   // last's line may go on in the next

	table  counts.Table
	kind   form
	notes  notes
	stats  Stats
	hint   hint
	err    error
	opened bool
}

// A form is one of the three that perf stat prints.
type form uint8

const (
	noForm form = iota
	textForm
	csvForm
	jsonForm
)

// evidence is what says that the lines to come are perf stat's.
type evidence uint8

const (
	noEvidence evidence = iota
	commandSeen
	titleSeen
)

// A block is what one run of perf stat printed.
type block struct {
	line     int
	label    string
	repeats  int
	cmd      *command
	evidence evidence
	open     bool // counts follow without a break since the title
	closed   bool // the elapsed time has been read
	sure     bool // a line had what only perf prints, or one of its own event names
	interval bool
	summary  bool
	cgroups  bool // the first line has a cgroup
	form     form
	footer   footer
	cpu      string
	notes    *notes
}

// hint remembers what else was met, for the message that there are no counts.
// Lines are 0 where there is none.
type hint struct {
	metrics   int // the first line with metrics
	title     int // the first title without counts
	bad       int // the first count that was dropped
	why       string
	separator string // by which a line has the form of a count, if not by the one given
	at        int    // that line
}

// NewReader returns a reader of r. The name is for messages.
func NewReader(r io.Reader, name string, opts Options) *Reader {
	p := &Reader{lines: newLineReader(r), name: name, last: -1}
	p.table.Start, p.table.Duration = math.NaN(), math.NaN()
	if opts.Separator != "" {
		p.csv.sep, p.given = []byte(opts.Separator), true
		if opts.Separator == `\t` { // as perf takes it
			p.csv.sep = []byte("\t")
		}
	}
	p.cur = p.newBlock(0)
	p.ahead = p.newBlock(1)
	return p
}

func (r *Reader) newBlock(line int) block { return block{line: line, notes: &r.notes} }

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
func (r *Reader) Notes() []string { return r.notes.list }

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
		if r.held {
			r.held = false
			r.begin()
			r.add()
		}
		line, ok := r.lines.next()
		if !ok {
			return r.finish()
		}
		if n := r.take(line); n > 0 && r.emit(n) {
			return true
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
	return true
}

const byteOrderMark = "\ufeff"

// foreignFormat says what an input is that cannot be text, "" if it can.
func foreignFormat(head []byte) string {
	for _, f := range []struct{ magic, msg string }{
		{"\x1f\x8b", "compressed with gzip: decompress it first (gunzip, or zcat FILE | cyclestack report -)"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first (unzstd, or zstdcat FILE | cyclestack report -)"},
		{"\xfd7zXZ\x00", "compressed with xz: decompress it first (unxz, or xzcat FILE | cyclestack report -)"},
		{"BZh", "compressed with bzip2: decompress it first (bunzip2, or bzcat FILE | cyclestack report -)"},
		{"PERFILE2", "a perf.data file and not the output of perf stat: perf stat report -i FILE prints what perf stat record stored"},
		{"\xff\xfe", "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
		{"\xfe\xff", "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.msg
		}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		if zeros := bytes.Count(head, []byte{0}); i <= 1 && zeros == len(head)/2 {
			return "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"
		}
		return "binary, and not the output of perf stat"
	}
	return ""
}

func (r *Reader) fail(line int, msg string) {
	if r.err == nil {
		r.err = &Error{File: r.name, Line: line, Msg: msg}
	}
}

// take reads a line. It returns the number of records that are now a complete
// table, 0 if there is none yet.
func (r *Reader) take(line []byte) int {
	if r.lines.long {
		r.notes.add("line %d is longer than %d bytes and was skipped", r.lines.num, maxLine)
		return 0
	}
	if r.expected(line) {
		return 0
	}
	line = r.clean(line)
	if len(r.command) > 0 && r.carriesOn(line) || r.meta(line) {
		return 0
	}
	if r.given {
		return r.takeGiven(line)
	}
	if r.json.looksJSON(line) {
		return r.takeJSON(line)
	}
	r.json.forget()
	if r.csv.sep != nil {
		r.row.reset(r.lines.num, csvForm)
		if v := r.csv.parse(line, &r.row); v != foreign && (v != isRow || r.row.marked || r.cur.form == csvForm) {
			return r.use(v, r.csv.reason)
		}
	}
	return r.takeText(line)
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
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 && i+1 < len(line) {
		line = line[i+1:] // what a terminal shows of a progress display
	}
	for {
		rest := bytes.TrimLeft(line, " \t")
		if len(rest) == 0 || rest[0] != '>' {
			break
		}
		line = rest[1:] // a mail's quotation
	}
	if len(r.prefix) > 0 {
		if rest, found := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), r.prefix); found {
			return rest
		}
	}
	return line
}

// meta reads the lines that say something about counts without holding any.
func (r *Reader) meta(line []byte) bool {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		if len(r.asm.recs) > 0 {
			r.cur.open = false
		}
		r.wrapped = false
		return true
	}
	if cpu, found := parseCPU(trimmed); found {
		r.setCPU(cpu)
		return true
	}
	if t, found := parseTitle(line); found {
		r.title(t)
		return true
	}
	if f, found := parseFooter(trimmed); found {
		r.foot(f)
		return true
	}
	if isUsage(trimmed) {
		return true
	}
	if isIntervalTitle(trimmed) {
		r.current().evidence, r.current().open = titleSeen, true
		return true
	}
	if bytes.HasPrefix(trimmed, []byte("# started on ")) {
		r.boundary()
		return true
	}
	if i := commandStart(line); i >= 0 {
		r.boundary()
		r.ahead.evidence = commandSeen
		r.command = append(r.command[:0], line[i:]...)
		return true
	}
	return false
}

// current is the block that the lines being read belong to.
func (r *Reader) current() *block {
	if r.split || len(r.asm.recs) == 0 && !r.cur.interval {
		return &r.ahead
	}
	return &r.cur
}

// boundary says that the next count does not belong to the current block.
func (r *Reader) boundary() {
	r.endCommand()
	if r.ahead.evidence == titleSeen {
		r.notes.add("the block at line %d holds no counts", r.ahead.line)
		if r.hint.title == 0 {
			r.hint.title = r.ahead.line
		}
	}
	r.split = true
	r.ahead = r.newBlock(r.lines.num)
	r.prefix = r.prefix[:0]
	r.last = -1
}

// carriesOn reports whether a line is the continuation of a command line, and
// adds it.
func (r *Reader) carriesOn(line []byte) bool {
	if !continuesCommand(r.command, line) {
		r.endCommand()
		return false
	}
	text := bytes.TrimRight(r.command, " \t")
	if text[len(text)-1] == '\\' {
		text = append(text[:len(text)-1], ' ')
	} else if text[len(text)-1] != ',' {
		text = append(text, ' ')
	}
	r.command = append(text, bytes.TrimSpace(line)...)
	return true
}

// endCommand reads the command line that was gathered.
func (r *Reader) endCommand() {
	if len(r.command) == 0 {
		return
	}
	c := parseCommand(string(r.command))
	r.command = r.command[:0]
	r.ahead.cmd, r.ahead.repeats = c, c.repeats
	r.ahead.label = c.program
}

func (r *Reader) title(t title) {
	r.endCommand()
	cmd := r.ahead.cmd
	if !r.split && r.cur.evidence == commandSeen && !r.cur.sure && !r.cur.closed && len(r.asm.recs) > 0 {
		// What came between the command and the title is the program's.
		r.notes.add("line %d: not under a title of perf stat: ignored", r.asm.recs[0].line)
		cmd = r.cur.cmd
		r.asm.recs = r.asm.recs[:0]
	}
	if r.ahead.evidence != commandSeen {
		r.boundary()
	}
	r.split = true
	b := &r.ahead
	b.line, b.evidence, b.open, b.label, b.cmd = r.lines.num, titleSeen, true, t.label, cmd
	if cmd != nil {
		b.repeats = cmd.repeats
	}
	if t.runs > 0 {
		b.repeats = t.runs
	}
	r.prefix = append(r.prefix[:0], t.prefix...)
}

func (r *Reader) foot(f footer) {
	r.last = -1
	if b := r.current(); b == &r.cur && !b.closed && !b.interval {
		b.footer, b.closed = f, true
	}
}

// setCPU takes a line that names the processor of the counts that follow.
func (r *Reader) setCPU(cpu string) {
	if len(r.asm.recs) > 0 && cpu != r.cur.cpu && !r.split {
		r.boundary()
	}
	r.cpu = cpu
}

// takeGiven reads a line by the separator that the caller gave.
func (r *Reader) takeGiven(line []byte) int {
	r.row.reset(r.lines.num, csvForm)
	v := r.csv.parse(line, &r.row)
	if v == foreign {
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
	return r.use(v, r.csv.reason)
}

// unread notes a line of CSV or JSON that begins like a count and is none, and
// a last line that was cut off.
func (r *Reader) unread(line []byte) {
	if r.cur.form != csvForm && r.cur.form != jsonForm || len(r.asm.recs) == 0 {
		return
	}
	switch {
	case r.lines.cut:
		r.drop("the input ends within this line: dropped")
	case r.cur.form == csvForm && looksLikeCount(line) && bytes.Count(line, r.csv.sep) >= 2 && !isBlank(r.csv.sep[0]):
		r.drop("not understood: " + quote(line))
	}
}

func (r *Reader) takeJSON(line []byte) int {
	r.row.reset(r.lines.num, jsonForm)
	return r.use(r.json.parse(line, &r.row), r.json.reason)
}

func (r *Reader) takeText(line []byte) int {
	r.row.reset(r.lines.num, textForm)
	v, t := r.text.parse(line, &r.row)
	switch v {
	case derived:
		r.stats.Derived++
		r.metrics(t)
		if r.row.comment == nil {
			r.hint.sawMetrics(r.lines.num)
		}
		return 0
	case isRow, damaged:
		if r.accepts(v) {
			r.annotated()
			return r.use(v, r.text.reason)
		}
	}
	if v == foreign {
		return r.other(line, t)
	}
	return 0
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
	case own, w.time != nil, expected && b.evidence == titleSeen && b.open:
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
		r.notes.add("line %d: the text behind the event was ignored: %s", w.line, quote(w.remark))
	}
}

// metrics handles a line that carries on the metrics of a count: the share at
// its end is the count's.
func (r *Reader) metrics(t tail) {
	if r.last < 0 || r.split {
		return
	}
	c := &r.asm.recs[r.last]
	if t.shared && c.cell.State == counts.Counted && c.times == relative && c.cell.Running == c.cell.Enabled {
		c.cell.Running = t.share
	}
	if v := standardError(c.cell.Value, t.noise); v > 0 {
		c.cell.Variance = square(v)
	}
}

// other handles a line that is none of perf stat's text.
func (r *Reader) other(line []byte, t tail) int {
	metric := r.row.comment != nil
	if r.csv.sep == nil || r.cur.form != csvForm {
		probe := r.csv
		r.row.reset(r.lines.num, csvForm)
		if v := probe.detect(line, &r.row); v != foreign {
			r.csv = probe
			return r.use(v, r.csv.reason)
		}
	}
	if r.wrapped && t.found && !metric {
		r.metrics(t) // the end of a line that a mail wrapped
	}
	if isMetricTitle(line) {
		r.hint.sawMetrics(r.lines.num)
	}
	r.last, r.wrapped = -1, false
	r.unread(line)
	if b := r.current(); b.evidence == titleSeen && b.open && !b.closed && looksLikeCount(line) {
		r.drop("not understood: " + quote(bytes.TrimSpace(line)))
	}
	r.cur.open = r.cur.open && len(r.asm.recs) == 0
	return 0
}

// isMetricTitle recognises the line above the numbers of --metric-only and
// --topdown.
func isMetricTitle(line []byte) bool {
	return bytes.Contains(line, []byte("bad speculation")) || bytes.Contains(line, []byte("insn per cycle"))
}

func (h *hint) sawMetrics(line int) {
	if h.metrics == 0 {
		h.metrics = line
	}
}

// looksLikeCount reports whether a line begins as a count does.
func looksLikeCount(line []byte) bool {
	line = bytes.TrimSpace(line)
	if bytes.IndexFunc(line, unicode.IsLetter) < 0 {
		return false
	}
	return len(line) > 0 && (isDigit(line[0]) || line[0] == '<' || line[0] == '-' && len(line) > 1 && isDigit(line[1]))
}

// drop notes a count that cannot be used.
func (r *Reader) drop(why string) {
	r.stats.Dropped++
	r.notes.add("line %d: %s", r.lines.num, why)
	if r.hint.bad == 0 {
		r.hint.bad, r.hint.why = r.lines.num, why
	}
}

// use takes a line that was read into r.row.
func (r *Reader) use(v verdict, reason string) int {
	switch v {
	case derived:
		r.stats.Derived++
		r.hint.sawMetrics(r.lines.num)
		return 0
	case damaged:
		r.drop(reason + ": dropped")
		return 0
	case foreign:
		return 0
	}
	if r.row.state == counts.Counted {
		if why := implausible(r.row.value); why != "" {
			r.drop(fmt.Sprintf("the value of %s %s: dropped", quote(r.row.event), why))
			return 0
		}
	}
	if r.row.share > 1 {
		r.notes.add("line %d: %s was counted for more than 100 %% of the time: its coverage is not known", r.lines.num, quote(r.row.event))
	}
	if r.lines.cut && r.cutShort() {
		r.drop("the input ends within this line: dropped")
		return 0
	}
	r.endCommand()
	if n := len(r.asm.recs); n > 0 && r.begins() {
		r.held = true
		return n
	}
	if len(r.asm.recs) == 0 {
		r.begin()
	}
	return r.add()
}

// cutShort reports whether the last line of an input without a line end cannot
// be trusted: the event's name is only the beginning of one that is known.
func (r *Reader) cutShort() bool {
	name := string(r.row.event)
	if r.row.marked || generic[string(stripModifiers(r.row.event))] {
		return false
	}
	if _, known := r.asm.eventAt[name]; known {
		return false
	}
	for g := range generic {
		if strings.HasPrefix(g, name) {
			return true
		}
	}
	for known := range r.asm.eventAt {
		if strings.HasPrefix(known, name) {
			return true
		}
	}
	return false
}

// begins reports whether the row begins another table than the one that is
// being filled.
func (r *Reader) begins() bool {
	w, b := &r.row, &r.cur
	return r.split || b.closed || w.form != b.form || w.summary != b.summary || (w.time != nil) != b.interval ||
		b.interval && !bytes.Equal(w.time, r.stamp)
}

// begin starts the table of the row.
func (r *Reader) begin() {
	w := &r.row
	now := nanoseconds(w.time)
	if r.cur.interval && !r.split && w.time != nil && now > r.now && w.form == r.cur.form {
		r.then = r.now
	} else {
		r.beginBlock()
		r.then = 0
	}
	r.now = now
	r.stamp = append(r.stamp[:0], w.time...)
	r.last = -1
	if w.form == csvForm && w.time != nil {
		at := bytes.Index(r.csv.line, w.time)
		r.predict.begin(r.csv.line[:at+len(w.time)], r.csv.sep)
	}
}

// beginBlock starts the block of the row: the one that a title or a command
// line announced, or one without.
func (r *Reader) beginBlock() {
	next := r.ahead
	if !r.split && r.cur.form != noForm {
		next = r.newBlock(r.row.line)
		if r.row.summary || r.cur.interval && r.row.time == nil {
			next.cmd, next.label = r.cur.cmd, r.cur.label // the totals behind the intervals
		}
	}
	r.cur = next
	w := &r.row
	r.cur.form, r.cur.summary, r.cur.interval, r.cur.cgroups = w.form, w.summary, w.time != nil, w.cgroup != nil
	r.cur.cpu = r.cpu
	r.ahead = r.newBlock(r.row.line)
	r.split = false
	r.period, r.repeated = 0, false
	r.asm.forget()
	r.predict.forget()
}

// add appends the row to the table. It returns the number of records that are
// now a complete table, when the block turns out to be repeated.
func (r *Reader) add() int {
	if err := r.asm.add(&r.row, &r.cur); err != nil {
		r.fail(r.row.line, err.Error())
		return 0
	}
	r.stats.Rows++
	n := len(r.asm.recs)
	if r.cur.form == csvForm && r.cur.interval {
		r.predict.learn(r.csv.line, &r.row, &r.asm.recs[n-1])
	}
	r.cur.sure = r.cur.sure || r.row.marked || isGeneric(r.row.event)
	r.last = n - 1
	r.wrapped = r.row.form == textForm && r.row.comment != nil && !r.row.shared
	r.comment()
	if r.cur.interval || r.cur.evidence == titleSeen {
		return 0
	}
	return r.watchPeriod()
}

// comment notes the name that someone wrote behind a raw code.
func (r *Reader) comment() {
	c := r.row.comment
	if r.row.form == textForm && len(c) > 0 && isRaw(stripModifiers(r.row.event)) && distinctive(c) {
		r.notes.add("line %d: a comment names %s %s", r.lines.num, r.row.event, quote(c))
	}
}

// watchPeriod finds out whether a block is several runs without anything
// between them, as perf stat -x appends them to a file: the sequence of scopes
// and events begins anew and is repeated to its end.
func (r *Reader) watchPeriod() int {
	recs := r.asm.recs
	n := len(recs) - 1
	switch {
	case r.period < 0:
	case r.period == 0:
		if n >= 2 && sameCount(recs[n], recs[0]) {
			r.period = n
		}
	case !sameCount(recs[n], recs[n-r.period]):
		r.period = -1
	case len(recs) == 2*r.period:
		r.repeated = true
		return r.period
	}
	return 0
}

func sameCount(a, b record) bool { return a.scope == b.scope && a.event == b.event }

// emit makes a table of the first n records. It reports false if they turn out
// not to be perf stat's.
func (r *Reader) emit(n int) bool {
	recs := r.asm.recs[:n]
	b := &r.cur
	if b.form == textForm && b.evidence == noEvidence && !b.interval && !b.closed && (!b.sure || n < 2 && !r.row.marked) {
		r.notes.add("line %d: a number and a name without anything else of perf stat's around them: ignored", recs[0].line)
		r.asm.recs = r.asm.recs[:0]
		b.form = noForm
		return false
	}
	t := &r.table
	t.Label, t.CPU, t.Interval, t.Line = b.label, b.cpu, b.interval, recs[0].line
	t.Start, t.Duration, t.Elapsed = 0, math.NaN(), 0
	switch {
	case b.interval:
		t.Start, t.Duration = float64(r.then)/1e9, float64(r.now-r.then)/1e9
	case b.evidence == titleSeen:
		t.Line = b.line
		fallthrough
	default:
		if b.closed {
			t.Duration, t.Elapsed = b.footer.seconds, b.footer.error
		}
	}
	if err := r.asm.table(t, n, b); err != nil {
		r.fail(recs[0].line, err.Error())
		return false
	}
	r.predict.settle(recs)
	r.warn(recs)
	r.asm.drop(n)
	r.kind = b.form
	t.Notes = r.notes.take(t.Notes)
	r.stats.Tables++
	r.last = -1
	return true
}

// finish makes the tables of what is left at the end of the input, and then
// says what was wrong with it.
func (r *Reader) finish() bool {
	if r.json.pending() && r.cur.form == jsonForm {
		r.drop("the input ends within a JSON object: dropped")
	}
	r.json.forget()
	if r.lines.err == nil {
		for r.err == nil && len(r.asm.recs) > 0 {
			n := len(r.asm.recs)
			if r.repeated && r.period < n {
				n = r.period
			}
			if r.emit(n) {
				return true
			}
		}
	}
	if r.err == nil {
		r.err = r.verdict()
	}
	return false
}

// verdict is the error of an input that was read to its end.
func (r *Reader) verdict() error {
	fault := func(line int, format string, args ...any) error {
		return &Error{File: r.name, Line: max(line, 1), Msg: fmt.Sprintf(format, args...)}
	}
	h := &r.hint
	switch {
	case r.lines.err != nil:
		return &Error{File: r.name, Line: r.lines.num + 1, Msg: r.lines.err.Error(), Err: r.lines.err}
	case r.stats.Tables > 0:
		return nil
	case r.lines.num == 0:
		return fault(1, "empty: nothing to read")
	case h.at > 0:
		return fault(h.at, "the fields are separated by %s and not by %s", quote([]byte(h.separator)), quote(r.csv.sep))
	case h.bad > 0:
		return fault(h.bad, "no usable count: %s", h.why)
	case h.metrics > 0:
		return fault(h.metrics, "only metrics that perf derived (--metric-only, --topdown, -M) and no counts: record the events themselves")
	case r.given:
		return fault(1, "no line with a count of perf stat -x%s found", r.csv.sep)
	case r.ahead.evidence == titleSeen:
		return fault(r.ahead.line, "the block holds no counts")
	case h.title > 0:
		return fault(h.title, "the block holds no counts")
	}
	return fault(1, "no counts of perf stat found: looked for its text, CSV (-x) and JSON (-j) output")
}

// warn adds the notes that only the whole table allows.
func (r *Reader) warn(recs []record) {
	t := &r.table
	if r.cur.interval && len(recs) < r.asm.rows {
		r.notes.add("line %d: incomplete interval: %d of %d counts", recs[0].line, len(recs), r.asm.rows)
	}
	if r.cur.summary {
		r.notes.add("the totals of the intervals before, as perf stat --summary prints them")
	}
	for i := range recs {
		c := t.Cell(int(recs[i].scope), int(recs[i].col))
		if recs[i].times == inVain && c.Ok() && c.Enabled == 0 {
			r.notes.add("line %d: %s was on a counter for less than perf prints: its coverage is not known", recs[i].line, quote([]byte(t.Columns[recs[i].col].Event)))
		}
	}
	if !r.cur.interval {
		r.warnPerCore()
	}
}

// warnPerCore notes events whose counts are those of a whole core, repeated for
// each of its logical processors (--percore-show-thread).
func (r *Reader) warnPerCore() {
	for _, c := range r.table.Columns {
		if strings.Contains(c.Event, "percore") && len(r.table.Scopes) > 0 && r.table.Scopes[0].Kind == counts.CPU {
			r.notes.add("%s counts whole cores: the counts of the logical processors of a core must not be added", quote([]byte(c.Event)))
		}
	}
}
