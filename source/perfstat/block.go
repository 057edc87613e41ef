package perfstat

import (
	"bytes"
	"fmt"
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
	marked   bool // a line had what only perf prints
	sure     bool // the same, or one of its own event names
	interval bool
	summary  bool // -x --summary
	totals   bool // of the intervals before
	cgroups  bool // the first line has a cgroup
	form     form
	footer   footer
	cpu      string
	spelling spelling // of the numbers so far
	notes    notes
}

// believable reports whether n records are a block of perf stat's: a number
// and a name can stand in any text.
func (b *block) believable(n int) bool {
	if b.form != textForm || b.evidence != noEvidence || b.closed {
		return true
	}
	return b.marked || b.sure && (n > 1 || b.interval)
}

// meta reads the lines that say something about counts without holding any.
func (r *Reader) meta(line []byte) bool {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		if len(r.asm.recs) > 0 {
			r.cur.open = false
		}
		r.metric.record, r.metric.wrapped = -1, false
		return true
	}
	if cpu, own, found := parseCPU(trimmed); found {
		r.setCPU(cpu, own)
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
		if len(r.asm.recs) > 0 && !r.cur.interval && !r.split {
			r.boundary()
		}
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
		r.around.command = append(r.around.command[:0], line[i:]...)
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
		r.cur.notes.add("the block at line %d holds no counts", r.ahead.line)
		r.around.cpuLine = 0
		if r.hint.title == 0 {
			r.hint.title = r.ahead.line
		}
	}
	r.split = true
	r.ahead = block{line: r.lines.num}
	r.around.prefix = r.around.prefix[:0]
	r.metric.record = -1
}

// carriesOn reports whether a line is the continuation of a command line, and
// adds it.
func (r *Reader) carriesOn(line []byte) bool {
	if !continuesCommand(r.around.command, line) {
		r.endCommand()
		return false
	}
	text := trimBlanks(r.around.command)
	if text[len(text)-1] == '\\' {
		text = append(text[:len(text)-1], ' ')
	} else if text[len(text)-1] != ',' {
		text = append(text, ' ')
	}
	r.around.command = append(text, bytes.TrimSpace(line)...)
	return true
}

// endCommand reads the command line that was gathered.
func (r *Reader) endCommand() {
	if len(r.around.command) == 0 {
		return
	}
	c := parseCommand(string(r.around.command))
	r.around.command = r.around.command[:0]
	r.ahead.cmd, r.ahead.repeats = c, c.repeats
	r.ahead.label = c.program
}

func (r *Reader) title(t title) {
	r.endCommand()
	cmd := r.ahead.cmd
	if !r.split && r.cur.evidence == commandSeen && !r.cur.sure && !r.cur.closed && len(r.asm.recs) > 0 {
		// What came between the command and the title is the program's.
		r.cur.notes.add("line %d: not under a title of perf stat: ignored", r.asm.recs[0].line)
		cmd = r.cur.cmd
		r.asm.recs = r.asm.recs[:0]
	}
	totals := r.cur.interval && !r.split // --summary
	if r.ahead.evidence != commandSeen {
		r.boundary()
	}
	r.split = true
	b := &r.ahead
	b.totals = totals
	b.line, b.evidence, b.open, b.label, b.cmd = r.lines.num, titleSeen, true, t.label, cmd
	if cmd != nil {
		b.repeats = cmd.repeats
	}
	if t.runs > 0 {
		b.repeats = t.runs
	}
	r.around.prefix = append(r.around.prefix[:0], t.prefix...)
}

func (r *Reader) foot(f footer) {
	r.metric.record = -1
	if b := r.current(); b == &r.cur && !b.closed && !b.interval {
		b.footer, b.closed = f, true
		b.spelling.point |= f.point
	}
}

// setCPU takes a line that names the processor of the counts that follow. Two
// that someone wrote, "# cpu:", must not contradict each other; what perf
// printed spells the same processor in another way.
func (r *Reader) setCPU(cpu string, own bool) {
	if own {
		if r.around.cpuLine > 0 && cpu != r.around.cpu {
			r.fail(r.lines.num, fmt.Sprintf("%q is named as the processor, and %q in line %d: leave the one that the counts below are from", cpu, r.around.cpu, r.around.cpuLine))
			return
		}
		r.around.cpuLine = r.lines.num
	} else {
		r.around.cpuLine = 0
	}
	if len(r.asm.recs) > 0 && cpu != r.cur.cpu && !r.split {
		r.boundary()
	}
	r.around.cpu = cpu
}

// begins reports whether the row begins another table than the one that is
// being filled.
func (r *Reader) begins() bool {
	w, b := &r.row, &r.cur
	return r.split || b.closed || w.form != b.form || w.summary != b.summary || (w.time != nil) != b.interval ||
		b.interval && !bytes.Equal(w.time, r.span.stamp)
}

// begin starts the table of the row.
func (r *Reader) begin() {
	w := &r.row
	now := nanoseconds(w.time)
	if r.cur.interval && !r.split && w.time != nil && now > r.span.end && w.form == r.cur.form {
		r.span.start = r.span.end
	} else {
		r.beginBlock()
		r.span.start = 0
	}
	r.span.end = now
	r.span.stamp = append(r.span.stamp[:0], w.time...)
	r.metric.record = -1
	if w.form == csvForm && w.time != nil {
		at := bytes.Index(r.forms.csv.line, w.time)
		r.predict.begin(r.forms.csv.line[:at+len(w.time)], r.forms.csv.sep)
	}
}

// beginBlock starts the block of the row: the one that a title or a command
// line announced, or one without.
func (r *Reader) beginBlock() {
	w := &r.row
	next := r.ahead
	if !r.split && r.cur.form != noForm {
		next = block{line: w.line}
		if w.summary || r.cur.interval && w.time == nil && w.form == r.cur.form {
			next.cmd, next.label, next.totals = r.cur.cmd, r.cur.label, true
		}
	}
	next.notes.prepend(&r.cur.notes)
	r.cur = next
	r.cur.form, r.cur.summary, r.cur.interval, r.cur.cgroups = w.form, w.summary, w.time != nil, w.cgroup != nil
	r.cur.cpu = r.around.cpu
	r.ahead = block{line: w.line}
	r.split = false
	r.asm.forget()
	r.cores.source = nil
	r.predict.forget()
}
