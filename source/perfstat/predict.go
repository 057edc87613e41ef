package perfstat

import (
	"bytes"

	"github.com/cyclestack/cyclestack/counts"
)

// A predictor reads the CSV lines of an interval by those of the interval before. perf
// prints the same scopes and events in the same order each time. Only the timestamp, the
// value and the running time change. The text between them is compared, not parsed.
type predictor struct {
	stamp    []byte // the line's beginning up to the end of the timestamp
	expected []expectation
	texts    []byte // memory of the expectations' texts
	next     int    // the expectation for the next line
	learning bool   // the interval is being learnt
	missed   bool   // a line of the interval was not among the expectations
	sep      []byte
}

// An expectation is a line's constant parts and the place of its count.
type expectation struct {
	head, middle span // of texts: between timestamp and value, between value and running time
	scope, event int32
	col          int32 // -1: not known yet
}

// begin starts an interval whose lines begin with stamp. If the one before had
// lines that were not expected, or nothing is known, the interval is learnt.
func (p *predictor) begin(stamp []byte, sep []byte) {
	p.stamp = append(p.stamp[:0], stamp...)
	p.sep = sep
	p.learning = len(p.expected) == 0 || p.missed
	p.next, p.missed = 0, false
	if p.learning {
		p.forget()
	}
}

func (p *predictor) forget() { p.expected, p.texts, p.next = p.expected[:0], p.texts[:0], 0 }

func (p *predictor) text(s span) []byte { return p.texts[s.from:s.to] }

// learn adds an expectation for a line that was read in full. If the line was not as
// expected, it looks for its place among the expectations.
func (p *predictor) learn(line []byte, r *row, rec *record) {
	if !p.learning {
		p.resume(rec)
		return
	}
	stamp := len(p.stamp)
	e := expectation{scope: rec.scope, event: rec.event, col: -1}
	if r.runAt > 0 && r.valueAt >= stamp {
		e.head = p.keep(line[stamp:r.valueAt])
		e.middle = p.keep(line[r.valueEnd:r.runAt])
	}
	p.expected = append(p.expected, e)
}

func (p *predictor) keep(b []byte) span {
	from := len(p.texts)
	p.texts = append(p.texts, b...)
	return span{from, len(p.texts)}
}

// resume goes on behind the expectation of a line that came otherwise than
// expected: a count that is missing this time, or a line left out.
func (p *predictor) resume(rec *record) {
	const ahead = 32
	for i := p.next; i < len(p.expected) && i < p.next+ahead; i++ {
		if p.expected[i].scope == rec.scope && p.expected[i].event == rec.event {
			rec.col = p.expected[i].col
			p.next = i + 1
			return
		}
	}
	p.missed = true
}

// settle keeps the columns that the learnt lines' counts were given.
func (p *predictor) settle(recs []record) {
	if !p.learning || len(recs) != len(p.expected) {
		return
	}
	for i := range recs {
		p.expected[i].scope, p.expected[i].col = recs[i].scope, recs[i].col
	}
}

// read reads a line as expected. It reports false if the line is another, or is unusual:
// it must then be read in full.
func (p *predictor) read(line []byte, rec *record) bool {
	if p.learning || p.next >= len(p.expected) || !bytes.HasPrefix(line, p.stamp) {
		return false
	}
	e := &p.expected[p.next]
	b := line[len(p.stamp):]
	if head := p.text(e.head); e.middle.to == 0 || e.col < 0 || !bytes.HasPrefix(b, head) {
		return false
	} else {
		b = b[len(head):]
	}
	value, n, ok := quickNumber(b)
	middle := p.text(e.middle)
	if !ok || !bytes.HasPrefix(b[n:], middle) {
		return false
	}
	b = b[n+len(middle):]
	run, n, ok := quickNumber(b)
	if !ok || !bytes.HasPrefix(b[n:], p.sep) {
		return false
	}
	percent, ok := p.percent(b[n+len(p.sep):])
	if !ok {
		return false
	}
	rec.scope, rec.event, rec.col, rec.times = e.scope, e.event, e.col, exact
	rec.cell = counts.Cell{State: counts.Counted, Value: value, Running: run, Enabled: run}
	if percent != 100_00 {
		rec.cell.Enabled = run / (float64(percent) / 100 / 100) // rounded as the full reading does
	}
	p.next++
	return true
}

// percent reads the percentage behind the running time, in hundredths of a
// percent: digits, a point or comma, two digits, separator or end. One that
// rounds to nothing is left to the full reading.
func (p *predictor) percent(b []byte) (int, bool) {
	n, v := 0, 0
	for n < len(b) && n < 3 && isDigit(b[n]) {
		v = v*10 + int(b[n]-'0')
		n++
	}
	if n == 0 || n+3 > len(b) || b[n] != '.' && b[n] != ',' || !isDigit(b[n+1]) || !isDigit(b[n+2]) {
		return 0, false
	}
	v = v*100 + int(b[n+1]-'0')*10 + int(b[n+2]-'0')
	b = b[n+3:]
	return v, v > 0 && v <= 100_00 && (len(b) == 0 || bytes.HasPrefix(b, p.sep))
}

// quickNumber reads digits, and decimals behind a point, of numbers that
// float64 holds exactly or nearly: up to 18 digits, 15 with decimals.
func quickNumber(b []byte) (v float64, n int, ok bool) {
	var m uint64
	for n < len(b) && isDigit(b[n]) {
		m = m*10 + uint64(b[n]-'0')
		n++
	}
	if n == 0 || n > 18 {
		return 0, n, false
	}
	if n == len(b) || b[n] != '.' {
		return float64(m), n, true
	}
	point := n
	n++
	for n < len(b) && isDigit(b[n]) {
		m = m*10 + uint64(b[n]-'0')
		n++
	}
	if frac := n - point - 1; frac > 0 && n <= 16 {
		return float64(m) / pow10[frac], n, true
	}
	return 0, n, false
}
