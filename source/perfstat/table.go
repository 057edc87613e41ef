package perfstat

import (
	"bytes"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// end says that there are no more lines.
func (r *Reader) end() {
	if r.forms.json.pending() && r.cur.form == jsonForm {
		r.drop("the input ends within a JSON object: dropped")
	}
	r.forms.json.forget()
	if r.lines.err != nil {
		r.asm.recs = r.asm.recs[:0] // what is left of a table that was not read to its end
	}
	r.complete = true
}

// portion returns how many of the records are the next table. A block without a title can
// be several runs, which perf stat -x appends to a file: then the sequence of scopes and
// events is the same over and over.
func (r *Reader) portion() int {
	n := len(r.asm.recs)
	if r.span.period == 0 {
		r.span.period = n
		if !r.cur.interval && r.cur.evidence != titleSeen {
			r.span.period = period(r.asm.recs)
		}
	}
	n = min(n, r.span.period)
	if n == len(r.asm.recs) {
		r.span.period = 0
	}
	return n
}

// period returns the length of the sequence of scopes and events that records repeat at
// least once as a whole. If there is none, it is the length of all. A sequence of one
// event is none: that is an event counted more than once.
func period(recs []record) int {
	same := func(i, j int) bool { return recs[i].scope == recs[j].scope && recs[i].event == recs[j].event }
	border := make([]int, len(recs)) // of each beginning: the longest that is also its end
	for i := 1; i < len(recs); i++ {
		k := border[i-1]
		for k > 0 && !same(i, k) {
			k = border[k-1]
		}
		if same(i, k) {
			k++
		}
		border[i] = k
	}
	p := len(recs)
	if p > 0 {
		p -= border[p-1]
	}
	if 2*p > len(recs) {
		return len(recs)
	}
	for i := range p {
		if recs[i].event != recs[0].event {
			return p
		}
	}
	return len(recs)
}

// emit makes a table of the first n records. It reports false if they turn out
// not to be perf stat's.
func (r *Reader) emit(n int) bool {
	recs := r.asm.recs[:n]
	b := &r.cur
	if !b.believable(n) {
		b.notes.add("line %d: a number and a name without anything else of perf stat's around them: ignored", recs[0].line)
		r.asm.recs = r.asm.recs[:0]
		b.form = noForm
		return false
	}
	t := &r.table
	t.Label, t.CPU, t.Interval, t.Line = b.label, b.cpu, b.interval, recs[0].line
	t.Start, t.Duration, t.Elapsed = 0, math.NaN(), 0
	switch {
	case b.interval:
		t.Start, t.Duration = float64(r.span.start)/1e9, float64(r.span.end-r.span.start)/1e9
	case b.closed:
		t.Duration, t.Elapsed = b.footer.seconds, b.footer.error
	}
	if b.evidence == titleSeen && !b.interval {
		t.Line = b.line
	}
	decimals(recs, b)
	if err := r.asm.table(t, n, b); err != nil {
		r.fail(recs[0].line, err.Error())
		return false
	}
	r.predict.settle(recs)
	r.warn(recs)
	r.joinCores()
	r.asm.drop(n)
	r.kind = b.form
	t.Notes = b.notes.take(t.Notes)
	r.stats.Tables++
	r.metric.record = -1
	return true
}

// decimals mends the values whose point was taken for a mark between thousands. The other
// numbers of the block show that.
func decimals(recs []record, b *block) {
	if b.form != textForm {
		return
	}
	for i := range recs {
		if r := &recs[i]; b.spelling.isPoint(r.lone) {
			r.cell.Value /= 1e3
			r.cell.Variance /= 1e6
			r.lone = 0
		}
	}
}

// warn adds the notes that only the whole table allows.
func (r *Reader) warn(recs []record) {
	t := &r.table
	if r.cur.interval && len(recs) < r.asm.rows && t.Scopes[0].Kind != counts.Thread {
		r.cur.notes.add("line %d: incomplete interval: %d of %d counts", recs[0].line, len(recs), r.asm.rows)
	}
	if r.cur.totals {
		r.cur.notes.add("the totals of the intervals before, as perf stat --summary prints them")
	}
	for i := range recs {
		c := t.Cell(int(recs[i].scope), int(recs[i].col))
		if recs[i].times == inVain && c.Ok() && c.Enabled == 0 {
			r.cur.notes.add("line %d: %s was on a counter for less than perf prints: its coverage is not known", recs[i].line, quote([]byte(t.Columns[recs[i].col].Event)))
		}
	}
}

// cutShort reports whether the last line of an input without a line end is unreliable.
// The event's name may be only the beginning of one, or the text after it may be
// incomplete.
func (r *Reader) cutShort() bool {
	w := &r.row
	if w.form == csvForm && !r.forms.csv.modern || w.remark != nil || w.cgroup != nil && !w.marked {
		return true
	}
	if w.marked || generic()[string(stripModifiers(w.event))] {
		return false
	}
	name := string(w.event)
	if _, known := r.asm.eventAt[name]; known {
		return false
	}
	for g := range generic() {
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

// doubtShare marks the share of a last line as unknown if the input ends within its
// bracket.
func (r *Reader) doubtShare(line []byte) {
	open := bytes.LastIndexAny(line, "([")
	if open > 0 && bytes.LastIndexAny(line, ")]") < open && isBlank(line[open-1]) {
		r.row.shared = true
		r.row.note("the input ends within this line: its share is not known")
	}
}
