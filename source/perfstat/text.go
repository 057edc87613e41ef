package perfstat

import (
	"bytes"
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// header begins the line above a block of counts.
var header = []byte("Performance counter stats for")

// A textParser reads the lines of perf stat's output for people. A count:
//
//	[time] [scope [cpus]] value [unit] event [cgroup] [# metric] [( +- error% )] [(percent%)]
//
// The percentage of time on a counter was at first "(scaled from 74.98%)", then
// "[17.68%]". Since Linux 4.1 it is "(50.03%)".
type textParser struct {
	reason string // why a line is damaged
}

// A tail is what stands at the end of a line of text, in brackets.
type tail struct {
	share  float64 // NaN if not there
	noise  float64 // NaN if not there
	shared bool    // a share is there, if only as "nan"
	found  bool
}

// cutTail takes the brackets off the end of a line.
func cutTail(line []byte) ([]byte, tail) {
	t := tail{share: math.NaN(), noise: math.NaN()}
	for {
		line = trimBlanks(line)
		open, inner := lastBracket(line)
		if open < 0 {
			return line, t
		}
		switch v, kind := bracket(inner); kind {
		case bracketShare:
			t.share, t.shared = v/100, true
		case bracketNoise:
			t.noise = v / 100
		default:
			return line, t
		}
		t.found = true
		line = line[:open]
	}
}

// lastBracket returns the bracket that ends a line.
func lastBracket(line []byte) (open int, inner []byte) {
	if len(line) == 0 {
		return -1, nil
	}
	var opening byte
	switch line[len(line)-1] {
	case ')':
		opening = '('
	case ']':
		opening = '['
	default:
		return -1, nil
	}
	open = bytes.LastIndexByte(line, opening)
	if open < 0 {
		return -1, nil
	}
	return open, line[open+1 : len(line)-1]
}

type bracketKind uint8

const (
	bracketOther bracketKind = iota
	bracketShare
	bracketNoise
)

// bracket reads what stands in brackets: "50,03%", "scaled from 74.98%",
// " +-  0.12% ".
func bracket(b []byte) (v float64, kind bracketKind) {
	number, found := bytes.CutSuffix(bytes.TrimSpace(b), []byte("%"))
	if !found {
		return 0, bracketOther
	}
	kind = bracketShare
	if rest, ok := bytes.CutPrefix(number, []byte("+-")); ok {
		number, kind = rest, bracketNoise
	} else if rest, ok := bytes.CutPrefix(number, []byte("±")); ok {
		number, kind = rest, bracketNoise
	} else if rest, ok := bytes.CutPrefix(number, []byte("scaled from")); ok {
		number = rest
	}
	v, ok := parsePercent(bytes.TrimSpace(number))
	if !ok {
		return 0, bracketOther
	}
	return v, kind
}

// cutComment splits a line at the '#' that begins its metric.
func cutComment(line []byte) (body, comment []byte) {
	i := bytes.IndexByte(line, '#')
	if i < 0 {
		return line, nil
	}
	return trimBlanks(line[:i]), bytes.TrimSpace(line[i+1:])
}

// parse reads a line of text. A line that carries on the metrics of the line
// before is derived; its tail is that line's.
func (p *textParser) parse(line []byte, r *row) (verdict, tail) {
	line, t := cutTail(line)
	body, comment := cutComment(line)
	body = skipBlanks(body)
	r.comment = comment
	b := p.prefix(body, r)
	if len(b) == 0 {
		if comment != nil || t.found && len(body) == 0 {
			return derived, t
		}
		return foreign, t
	}
	rest, v := p.value(b, r)
	if v == isRow {
		v = p.names(rest, r)
	}
	r.marked = r.marked || t.found || isMetricText(comment)
	r.share, r.shared, r.noise = t.share, t.shared, t.noise
	return v, t
}

// isMetricText reports whether what stands behind the '#' is a number, as of a
// derived metric.
func isMetricText(comment []byte) bool { return len(comment) > 0 && isDigit(comment[0]) }

// prefix reads the fields before the value.
func (p *textParser) prefix(b []byte, r *row) []byte {
	if n := timestamp(b); n > 0 && (n == len(b) || isBlank(b[n])) {
		// Seconds of a clock have nine decimals too: a footer, or a count with
		// a unit, but never one that another number follows.
		if rest := skipBlanks(b[n:]); followsTime(rest) {
			r.time, b = b[:n], rest
		}
	}
	if len(b) == 0 || isDigit(b[0]) || b[0] == '<' || b[0] == '&' || b[0] == '-' {
		return b
	}
	n := scopeLength(b)
	if n == 0 {
		return b
	}
	r.id, b = b[:n], skipBlanks(b[n:])
	if isPlace(r.id) {
		b = p.cpus(b, r)
	}
	return b
}

// followsTime reports whether b can follow an interval's timestamp: a count, a
// scope or nothing.
func followsTime(b []byte) bool {
	if len(b) == 0 || isDigit(b[0]) || b[0] == '<' || b[0] == '&' || b[0] == '-' || b[0] == '#' {
		return true
	}
	return scopeLength(b) > 0
}

// scopeLength returns the length of the scope at the start of b, 0 if there is
// none: a word such as "CPU3", or a thread's name, which may have blanks, and
// its number, before a count.
func scopeLength(b []byte) int {
	for from := 0; from < len(b); {
		end := from
		for end < len(b) && !isBlank(b[end]) {
			end++
		}
		next := skipBlanks(b[end:])
		s, ok := parseScope(b[:end])
		switch {
		case ok && s.Kind != counts.Thread && from == 0:
			return end
		case ok && s.Kind == counts.Thread && startsCount(next):
			return end
		}
		if from = len(b) - len(next); from > maxComm {
			break
		}
	}
	return 0
}

// maxComm bounds the name of a thread (15 bytes in the kernel) with its padding.
const maxComm = 64

// startsCount reports whether b begins with a number or "<not …>".
func startsCount(b []byte) bool {
	if _, n := scanState(b); n > 0 {
		return true
	}
	return len(b) > 0 && isDigit(b[0])
}

// cpus reads the number of logical processors behind a core or socket. Events with the
// percore term have none.
func (p *textParser) cpus(b []byte, r *row) []byte {
	n := digits(b)
	if n == 0 || n >= len(b) || !isBlank(b[n]) {
		return b
	}
	rest := skipBlanks(b[n:])
	gap := len(b) - n - len(rest)
	if !startsCount(rest) || gap == 1 && digits(rest) == 3 {
		return b // the count itself, its groups separated by blanks
	}
	if count, ok := smallNumber(b[:n]); ok {
		r.cpus = count
		return rest
	}
	return b
}

// value reads the count and returns what follows it.
func (p *textParser) value(b []byte, r *row) ([]byte, verdict) {
	if s, n := scanState(b); n > 0 {
		r.state = s
		return b[n:], isRow
	}
	sign := 1.0
	digitsAt := b
	if b[0] == '-' && len(b) > 1 && isDigit(b[1]) {
		sign, digitsAt = -1, b[1:]
	}
	v, n, spelled, ok := scanGrouped(digitsAt)
	if n == 0 {
		if isNaN(firstWord(b)) {
			r.state, r.value = counts.Counted, math.NaN()
			return b[len(firstWord(b)):], isRow
		}
		return b, foreign
	}
	rest := digitsAt[n:]
	if len(rest) > 0 && !isBlank(rest[0]) || !ok {
		return p.badValue(b, r)
	}
	r.state, r.value, r.spelling = counts.Counted, sign*v, spelled
	return rest, isRow
}

// badValue reads a line whose first word begins like a number and is none.
func (p *textParser) badValue(b []byte, r *row) ([]byte, verdict) {
	word := firstWord(b)
	rest := b[len(word):]
	if v := p.names(rest, r); v != isRow || !distinctive(r.event) {
		return b, foreign
	}
	p.reason = "the value " + quote(word) + " is not a count"
	return rest, damaged
}

func firstWord(b []byte) []byte {
	n := 0
	for n < len(b) && !isBlank(b[n]) {
		n++
	}
	return b[:n]
}

// names reads unit, event and cgroup from what stands between the value and
// the metric.
func (p *textParser) names(b []byte, r *row) verdict {
	gap := len(b)
	b = skipBlanks(b)
	gap -= len(b)
	b = trimBlanks(b)
	if len(b) == 0 {
		return foreign
	}
	first := firstWord(b)
	after := skipBlanks(b[len(first):])
	if string(first) == "%" {
		return derived
	}
	if len(after) > 0 && (units()[string(first)] || gap == 1 && !distinctive(first) && distinctive(firstWord(after))) {
		r.unit, b = first, after
	}
	n := eventLength(b)
	r.event = b[:n]
	rest := b[n:]
	gap = len(rest)
	rest = skipBlanks(rest)
	gap -= len(rest)
	switch {
	case len(rest) == 0:
	case string(rest) == "(msec)" || string(rest) == "(msecs)":
		r.unit, r.marked = []byte("msec"), true
	case string(rest) == "(events)":
		r.marked = true
	case isCgroup(rest) && (gap > 1 || n >= eventWidth):
		r.cgroup = rest
	case !isDigit(rest[0]) && (gap > 1 || !isLetter(rest[0])):
		r.remark = rest
	default:
		return foreign
	}
	if !plausible(r.event) {
		return foreign
	}
	return isRow
}

// isCgroup reports whether text can be a cgroup's name: a word or path.
func isCgroup(b []byte) bool {
	for _, c := range b {
		if !isLetter(c) && !isDigit(c) && bytes.IndexByte([]byte("/._-@:\\"), c) < 0 {
			return false
		}
	}
	return isLetter(b[0]) || isDigit(b[0]) || b[0] == '/' || b[0] == '_'
}

// eventWidth is the least width of an event's name. perf pads shorter ones, and puts one
// blank after longer ones. It was 24 and 25 before it became 32.
const eventWidth = 24

// eventLength returns the length of the event at the start of b: a word, or
// one of the names with blanks: "raw 0x400fa", "event [pmu]", those of 2009.
func eventLength(b []byte) int {
	if n := len(blankName(b)); n > 0 {
		return n
	}
	n := len(firstWord(b))
	if n == len(b) {
		return n
	}
	second := firstWord(b[n+1:])
	end := n + 1 + len(second)
	if string(b[:n]) == "raw" && hexNumber(second) {
		return end
	}
	if len(second) > 2 && second[0] == '[' && second[len(second)-1] == ']' && b[n] == ' ' {
		return end
	}
	return n
}

// A footer is the elapsed time under a block.
type footer struct {
	seconds float64
	error   float64 // ±, in seconds; 0 if not given
	point   marks   // between the seconds and their decimals
}

var (
	elapsedText   = []byte("seconds time elapsed")
	wallClockText = []byte("Wall-clock time elapsed:")
)

// parseFooter reads the line with the elapsed time.
func parseFooter(line []byte) (f footer, ok bool) {
	if _, rest, found := bytes.Cut(line, wallClockText); found { // 2.6.30
		v, n, ok := scanPlain(skipBlanks(rest))
		return footer{seconds: v / 1e3}, ok && n > 0
	}
	before, after, found := bytes.Cut(line, elapsedText)
	if !found {
		return f, false
	}
	b := bytes.TrimSpace(before)
	v, n, ok := scanPlain(b)
	if !ok {
		return f, false
	}
	f.seconds = v
	if whole := digits(b); whole < n {
		f.point = markOf(b[whole])
	}
	b = bytes.TrimSpace(b[n:])
	if spread, found := bytes.CutPrefix(b, []byte("+-")); found {
		if f.error, _, ok = scanPlain(bytes.TrimSpace(spread)); !ok {
			f.error = 0
		}
		return f, true
	}
	if _, t := cutTail(after); t.noise > 0 {
		f.error = t.noise * f.seconds
	}
	return f, len(b) == 0
}

// isUsage reports whether a line is one of the two under the elapsed time:
// "seconds user" and "seconds sys".
func isUsage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasSuffix(line, []byte("seconds user")) || bytes.HasSuffix(line, []byte("seconds sys"))
}

// A title is what the line above a block says.
type title struct {
	prefix []byte // what stands before it on the line: a quotation mark of a mail, a comment's sign
	label  string
	runs   int // of -r; 0 if not given
}

// parseTitle reads "Performance counter stats for 'sleep 1' (5 runs):".
func parseTitle(line []byte) (t title, ok bool) {
	i := bytes.Index(line, header)
	if i < 0 {
		return t, false
	}
	t.prefix = bytes.TrimSpace(line[:i])
	for _, c := range t.prefix {
		if isLetter(c) || isDigit(c) || len(t.prefix) > 8 {
			return t, false // a sentence
		}
	}
	b := bytes.TrimSpace(line[i+len(header):])
	b = bytes.TrimSpace(bytes.TrimSuffix(b, []byte(":")))
	if rest, found := bytes.CutSuffix(b, []byte(" runs)")); found {
		if open := bytes.LastIndexByte(rest, '('); open >= 0 {
			if n, ok := smallNumber(rest[open+1:]); ok {
				t.runs = n
				b = bytes.TrimSpace(rest[:open])
			}
		}
	}
	t.label = unquote(b)
	return t, true
}

// unquote takes the quotation marks off what was measured: 'sleep 1', and
// process id '123'.
func unquote(b []byte) string {
	const marks = "'\"‘’`"
	for _, kind := range []string{"process id ", "thread id "} {
		if rest, found := bytes.CutPrefix(b, []byte(kind)); found {
			return kind + string(bytes.Trim(rest, marks))
		}
	}
	return string(bytes.Trim(b, marks))
}

// isIntervalTitle recognises the line above intervals:
//
//	#           time             counts unit events
func isIntervalTitle(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && line[0] == '#' && bytes.HasPrefix(bytes.TrimSpace(line[1:]), []byte("time ")) &&
		bytes.Contains(line, []byte("counts"))
}

// stripEscapes removes the escape sequences of colours, in place.
func stripEscapes(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	out := line[:0]
	for i := 0; i < len(line); i++ {
		if line[i] == 0x1b && i+1 < len(line) && line[i+1] == '[' {
			i += 2
			for i < len(line) && (line[i] < '@' || line[i] > '~') {
				i++
			}
			continue
		}
		out = append(out, line[i])
	}
	return out
}

// stripLogTime removes the time that a log puts before each line:
// "2023-05-04T12:34:56.1234567Z ".
func stripLogTime(line []byte) []byte {
	const form = "0000-00-00T00:00:00"
	if len(line) < len(form) || line[4] != '-' || line[10] != 'T' {
		return line
	}
	for i := range len(form) {
		if isDigit(form[i]) != isDigit(line[i]) || !isDigit(form[i]) && form[i] != line[i] {
			return line
		}
	}
	rest := line[len(form):]
	if len(rest) > 0 && rest[0] == '.' {
		rest = rest[1+digits(rest[1:]):]
	}
	if rest, found := bytes.CutPrefix(rest, []byte("Z ")); found {
		return rest
	}
	return line
}
