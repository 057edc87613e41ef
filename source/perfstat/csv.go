package perfstat

import (
	"bytes"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// maxFields bounds the fields of a CSV line. perf prints at most ten; an event
// whose terms contain the separator has more.
const maxFields = 64

// A csvParser reads the lines of perf stat -x. Their fields, in perf's order:
//
//	[time] ["summary"] [scope [cpus]] value [unit] event [cgroup] [error%] [running percent [metric unit]]
//
// Units came with Linux 3.14, running and percent with 4.1, metrics with 4.6. The separator is any string, and perf does not quote: an event's
// terms may contain it, and so do numbers in a locale with a decimal comma.
type csvParser struct {
	sep    []byte // nil: not known yet
	modern bool   // a line with a running time has been read: the others have one too
	line   []byte
	fields []span
	shaped bool   // the line has a running time and its percentage, as only a count has
	reason string // why a line is damaged
}

// A span is a part of a line.
type span struct{ from, to int }

func (c *csvParser) text(s span) []byte { return c.line[s.from:s.to] }

// parse reads a line by the parser's separator.
func (c *csvParser) parse(line []byte, r *row) verdict {
	c.split(line)
	c.shaped = false
	if len(c.fields) < 2 {
		return foreign
	}
	i := c.prefix(r)
	if i >= len(c.fields) {
		return foreign
	}
	value := c.fields[i]
	rest := c.fields[i+1:]
	if value.from == value.to {
		if c.isMetric(rest) {
			return derived
		}
		return foreign
	}
	value, rest, ok := c.value(value, rest, r)
	at := c.findRunning(rest)
	names := rest
	why := ""
	if c.shaped = at.run >= 0; c.shaped {
		names = rest[:at.run]
		why = c.setRunning(rest, at, r)
	}
	names = c.noise(names, r)
	if !c.names(names, at.run >= 0, r) {
		return foreign
	}
	r.valueAt, r.valueEnd = value.from, value.to
	switch {
	case at.run < 0 && !distinctive(r.event):
		return foreign
	case at.run < 0 && c.modern:
		c.reason = "the line is cut short: it has no running time"
		return damaged
	case !ok:
		c.reason = "the value " + quote(c.text(value)) + " is not a count"
		return damaged
	case why != "":
		c.reason = quote(r.event) + " has " + why
		return damaged
	}
	c.modern = c.modern || at.run >= 0
	return isRow
}

// split cuts a line at the separator.
func (c *csvParser) split(line []byte) {
	c.line, c.fields = line, c.fields[:0]
	from := 0
	for from < len(line) && line[from] == ' ' {
		from++ // before an interval's timestamp and before "summary"
	}
	for len(c.fields) < maxFields-1 {
		n := bytes.Index(line[from:], c.sep)
		if n < 0 {
			break
		}
		c.fields = append(c.fields, span{from, from + n})
		from += n + len(c.sep)
	}
	c.fields = append(c.fields, span{from, len(line)})
	if c.sep[0] == ' ' {
		c.joinState()
	}
}

// joinState puts "<not counted>" together again, which a blank cuts in two.
func (c *csvParser) joinState() {
	for i := 0; i+1 < len(c.fields); i++ {
		f := c.line[c.fields[i].from:c.fields[i+1].to]
		if _, n := scanState(f); n > 0 && n == len(f) {
			c.fields[i].to = c.fields[i+1].to
			c.fields = append(c.fields[:i+1], c.fields[i+2:]...)
			return
		}
	}
}

// prefix reads the fields before the value and returns the value's index.
func (c *csvParser) prefix(r *row) int {
	i := 0
	field := func() []byte {
		if i < len(c.fields) {
			return c.text(c.fields[i])
		}
		return nil
	}
	if f := field(); len(f) > 0 && timestamp(f) == len(f) {
		r.time = f
		i++
	}
	if string(field()) == "summary" {
		r.summary = true
		i++
	}
	id := bytes.TrimSpace(field())
	if len(id) == 0 || isNumeric(id) {
		return i
	}
	if _, ok := parseScope(id); !ok || i+1 >= len(c.fields) || !c.isValue(i+1) {
		return i
	}
	r.id = id
	i++
	if isPlace(id) && i+1 < len(c.fields) && c.isValue(i+1) && !c.isUnitNext(i) {
		if n, ok := smallNumber(c.text(c.fields[i])); ok {
			r.cpus = n
			i++
		}
	}
	return i
}

// isNumeric reports whether a field is a number in any notation, exponents included. A
// thread's name and number is none.
func isNumeric(b []byte) bool {
	n := digits(b)
	if n == 0 {
		return false
	}
	return !slices.ContainsFunc(b[n:], func(c byte) bool {
		return !isDigit(c) && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-'
	})
}

// isValue reports whether field i can be a count, or stand empty for one.
func (c *csvParser) isValue(i int) bool {
	f := c.text(c.fields[i])
	if len(f) == 0 {
		return true
	}
	_, n := scanState(f)
	return n > 0 || isDigit(f[0]) || f[0] == '-' && len(f) > 1 && isDigit(f[1]) || isNaN(f)
}

// isUnitNext tells a core's count without the number of logical processors from one with
// it. Events with the percore term lack it. Behind the count stand an empty unit and an
// event's name, behind the number stands the count.
func (c *csvParser) isUnitNext(i int) bool {
	return i+2 < len(c.fields) && len(c.text(c.fields[i+1])) == 0 && plausible(c.text(c.fields[i+2]))
}

// isMetric reports whether the fields behind an empty value are those of a line
// with only derived metrics.
func (c *csvParser) isMetric(rest []span) bool {
	if len(rest) < 3 {
		return false
	}
	filled := 0
	for _, f := range rest {
		if f.from < f.to {
			filled++
		}
	}
	return filled > 0 && filled < len(rest)
}

// value reads the value. In a locale with a decimal comma, separated by commas,
// it is two fields; only values with a unit have decimals.
func (c *csvParser) value(v span, rest []span, r *row) (span, []span, bool) {
	b := c.text(v)
	if s, n := scanState(b); n == len(b) && n > 0 {
		r.state = s
		return v, rest, true
	}
	r.state = counts.Counted
	if c.sep[0] == ',' && len(c.sep) == 1 && len(rest) >= 2 && digits(b) == len(b) &&
		c.isDecimals(rest[0]) && units()[string(c.text(rest[1]))] {
		v.to, rest = rest[0].to, rest[1:]
		b = c.text(v)
	}
	b = ungrouped(b)
	var ok bool
	if r.value, ok = parsePlain(b); !ok && len(b) > 1 && b[0] == '-' {
		r.value, ok = parsePlain(b[1:])
		r.value = -r.value
	}
	return v, rest, ok
}

// ungrouped takes the commas out of a number whose thousands they separate. perf prints
// no such number, but tools that edit its files do. Decimals are never three digits.
func ungrouped(b []byte) []byte {
	first, rest, ok := bytes.Cut(b, []byte(","))
	if !ok || len(first) > 3 || len(first) == 0 || digits(first) != len(first) {
		return b
	}
	out := append(make([]byte, 0, len(b)), first...)
	for ok {
		var group []byte
		group, rest, ok = bytes.Cut(rest, []byte(","))
		if n := digits(group); n != 3 || len(group) > n && (ok || group[n] != '.') {
			return b
		}
		out = append(out, group...)
	}
	return out
}

// isDecimals reports whether a field is the decimals of a number that a decimal
// comma cut in two: perf prints two, before 3.14 six.
func (c *csvParser) isDecimals(f span) bool {
	n := f.to - f.from
	return (n == 2 || n == 6) && digits(c.text(f)) == n
}

// A runningFields is where the running time and its percentage are among fields.
type runningFields struct {
	run     int  // index of the running time; -1: there is none
	percent span // the percentage
}

// findRunning finds the two fields behind the event: nanoseconds, and a
// percentage with two decimals.
func (c *csvParser) findRunning(f []span) runningFields {
	for i := 1; i+1 < len(f); i++ {
		run := c.text(f[i])
		if n := len(unsigned(run)); n == 0 || digits(unsigned(run)) != n {
			continue
		}
		p := c.text(f[i+1])
		if isPercentage(unsigned(p)) {
			return runningFields{i, f[i+1]}
		}
		if i+2 < len(f) && len(c.sep) == 1 && c.sep[0] == ',' && len(p) <= 3 && len(p) > 0 && digits(p) == len(p) &&
			c.isDecimals(f[i+2]) {
			return runningFields{i, span{f[i+1].from, f[i+2].to}}
		}
	}
	return runningFields{run: -1}
}

// isPercentage reports whether a field is a number with two decimals, or what
// perf printed where it divided by zero.
func isPercentage(b []byte) bool {
	n := digits(b)
	if n == 0 {
		return isNaN(b)
	}
	return len(b) == n+3 && (b[n] == '.' || b[n] == ',') && digits(b[n+1:]) == 2
}

// setRunning takes the running time and its percentage, or says why they cannot
// be.
func (c *csvParser) setRunning(f []span, at runningFields, r *row) (why string) {
	r.marked, r.shared = true, true
	r.runAt = f[at.run].from
	run, percent := c.text(f[at.run]), c.text(at.percent)
	switch {
	case run[0] == '-':
		return "the negative running time " + quote(run)
	case percent[0] == '-' && !isNaN(percent):
		return "the negative running percentage " + quote(percent)
	}
	if v, ok := parsePlain(run); ok {
		r.run = v
	}
	if v, ok := parsePercent(percent); ok {
		r.share = v / 100
	}
	return ""
}

// unsigned returns a number without its sign.
func unsigned(b []byte) []byte { return bytes.TrimPrefix(b, []byte("-")) }

// noise takes the error of repeats, "0.12%", from the end of the fields that
// stand between value and running time.
func (c *csvParser) noise(f []span, r *row) []span {
	if len(f) < 2 {
		return f
	}
	last := len(f) - 1
	number, found := bytes.CutSuffix(c.text(f[last]), []byte("%"))
	if !found {
		return f
	}
	v, ok := parsePercent(number)
	if !ok {
		return f
	}
	if c.sep[0] == ',' && len(c.sep) == 1 && last >= 2 && digits(number) == 2 && len(number) == 2 {
		// the decimals of a percentage with a decimal comma
		if w, ok := parsePlain(c.line[f[last-1].from : f[last].to-1]); ok {
			v, last = w, last-1
		}
	}
	r.noise, r.marked = v/100, true
	return f[:last]
}

// names reads unit, event and cgroup from the fields between value and running
// time.
func (c *csvParser) names(f []span, modern bool, r *row) bool {
	if len(f) == 0 {
		return false
	}
	first := c.text(f[0])
	blank := isBlank(c.sep[0])
	switch {
	case len(f) == 1:
	case len(first) == 0, units()[string(first)], modern && !blank:
		r.unit = first
		f = f[1:]
	}
	n := c.eventFields(f)
	r.event = c.line[f[0].from:f[n-1].to]
	if blank {
		r.event = bytes.TrimSpace(r.event)
	}
	switch f = f[n:]; {
	case len(f) == 1:
		r.cgroup = c.text(f[0])
	case len(f) > 1:
		return false
	}
	return plausible(r.event)
}

// eventFields returns how many fields the event takes: its terms may contain
// the separator.
func (c *csvParser) eventFields(f []span) int {
	n := 1
	if slashes := bytes.Count(c.text(f[0]), []byte("/")); slashes%2 == 1 {
		for n < len(f) {
			k := bytes.Count(c.text(f[n]), []byte("/"))
			n++
			if k%2 == 1 {
				break
			}
		}
		if n == len(f) && bytes.Count(c.line[f[0].from:f[n-1].to], []byte("/"))%2 == 1 {
			n = 1 // never closed: not terms
		}
	}
	for n < len(f) && c.continues(f[n-1], f[n]) {
		n++
	}
	return n
}

// continues reports whether an event goes on in the next field: a separator of
// ":" also stands before modifiers and within tracepoints, one of a blank
// within "raw 0x1a8" and before "[pmu]".
func (c *csvParser) continues(field, next span) bool {
	b := c.text(next)
	if len(b) == 0 {
		return false
	}
	switch c.sep[0] {
	case ':':
		return len(c.sep) == 1 && b[0] != '/'
	case ' ', '\t':
		return b[0] == '[' || string(c.text(field)) == "raw" && hexNumber(b)
	}
	return false
}

// detect looks for a separator that makes the line one of perf stat -x, and keeps it.
// The text between the first two fields must occur again.
func (c *csvParser) detect(line []byte, r *row) verdict {
	start := 0
	for start < len(line) && line[start] == ' ' {
		start++
	}
	b := line[start:]
	for _, first := range firstFields(b) {
		gap := gapLength(b[first:])
		if gap == 0 {
			continue
		}
		for n := 1; n <= gap; n++ {
			c.sep = b[first : first+n]
			if gap%n != 0 || !repeats(b[first:first+gap], n) {
				continue
			}
			saved := *r
			v := c.parse(line, r)
			if (v == isRow || v == damaged) && (r.marked || c.oldStyle(r)) {
				c.sep = bytes.Clone(c.sep)
				return v
			}
			*r = saved
		}
	}
	c.sep = nil
	return foreign
}

// oldStyle reports whether a line without a running time is as Linux before 4.1
// printed it: by its separator, and by an event that is perf's own.
func (c *csvParser) oldStyle(r *row) bool {
	return !isBlank(c.sep[0]) && len(c.sep) <= 2 && isGeneric(r.event)
}

// firstFields returns the lengths that the first field of a line can have: a
// number (with a comma for its point), a word in angle brackets, or a scope.
func firstFields(b []byte) []int {
	if _, n := scanState(b); n > 0 {
		return []int{n}
	}
	n := digits(b)
	if n == 0 {
		for n < len(b) && (isLetter(b[n]) || isDigit(b[n]) || b[n] == '-' || b[n] == '/' || b[n] == '_') {
			n++
		}
		return []int{n}
	}
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
		return []int{n, n + 1 + digits(b[n+1:])}
	}
	whole := n
	for whole < len(b) && (isLetter(b[whole]) || isDigit(b[whole])) {
		whole++ // no number, but in a number's place
	}
	return []int{whole}
}

// gapLength returns the length of what stands between two fields: no letters,
// digits or brackets.
func gapLength(b []byte) int {
	const most = 16
	n := 0
	for n < len(b) && n < most && !isLetter(b[n]) && !isDigit(b[n]) && b[n] != '<' && b[n] != '/' && b[n] != '-' {
		n++
	}
	return n
}

// repeats reports whether b is its first n bytes over and over.
func repeats(b []byte, n int) bool {
	for i := n; i < len(b); i++ {
		if b[i] != b[i-n] {
			return false
		}
	}
	return true
}
