package perfstat

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/counts"
)

// maxObject bounds a JSON object that goes on over several lines.
const maxObject = 64 << 10

// A jsonParser reads the objects of perf stat -j, one on each line:
//
//	{"interval" : 1.0, "cpu" : "0", "counter-value" : "12.0", "unit" : "", "event" : "cycles", "event-runtime" : 100, "pcnt-running" : 100.00}
//
// It reads them leniently, because perf has written numbers with a decimal
// comma and objects without their braces.
type jsonParser struct {
	object []byte // an object that goes on in the next line
	id     []byte // memory of row.id
	reason string
}

// looksJSON reports whether a line can be a part of a JSON object.
func (p *jsonParser) looksJSON(line []byte) bool {
	line = bytes.TrimLeft(line, " \t[,")
	if len(line) == 0 {
		return false
	}
	if len(p.object) > 0 {
		return line[0] == '"' || line[0] == '}' || line[0] == '{'
	}
	return line[0] == '{' && (len(line) == 1 || bytes.IndexByte(line, '"') > 0 || line[1] == '}')
}

// parse reads a line. An object that is not closed on its line is kept and
// read with the lines that follow.
func (p *jsonParser) parse(line []byte, r *row) verdict {
	line = bytes.Trim(line, " \t[],")
	if len(p.object) > 0 && line[0] != '{' {
		p.object = append(append(p.object, ' '), line...)
		if line[len(line)-1] != '}' && len(p.object) < maxObject {
			return foreign
		}
		return p.take(p.object, r)
	}
	p.object = p.object[:0]
	if line[len(line)-1] != '}' {
		p.object = append(p.object, line...)
		return foreign
	}
	return p.take(line, r)
}

// pending reports whether an object has been begun and not closed.
func (p *jsonParser) pending() bool { return len(p.object) > 0 }

// forget drops an object that has been begun.
func (p *jsonParser) forget() { p.object = p.object[:0] }

// take reads an object's members into the row.
func (p *jsonParser) take(object []byte, r *row) verdict {
	defer p.forget()
	var value []byte
	for b := object; ; {
		key, val, rest, ok := member(b)
		if !ok {
			break
		}
		b = rest
		if string(key) == "counter-value" {
			value = val
		} else {
			p.member(key, val, r)
		}
	}
	switch {
	case value == nil && len(r.event) == 0 && !bytes.Contains(object, []byte("metric-value")) &&
		!bytes.Contains(object, []byte("metricgroup")):
		return foreign
	case value == nil || len(r.event) == 0:
		return derived
	}
	if !plausible(r.event) {
		return foreign
	}
	r.marked = true
	return p.value(value, r)
}

func (p *jsonParser) value(b []byte, r *row) verdict {
	b = bytes.TrimSpace(b)
	if s, n := scanState(b); n == len(b) && n > 0 {
		r.state = s
		return isRow
	}
	v, ok := parsePlain(bytes.TrimPrefix(b, []byte("-")))
	switch {
	case isNaN(b):
		v = math.NaN()
	case !ok:
		p.reason = "the value " + quote(b) + " is not a count"
		return damaged
	case b[0] == '-':
		v = -v
	}
	r.state, r.value = counts.Counted, v
	return isRow
}

// member puts one member of an object into the row.
func (p *jsonParser) member(key, val []byte, r *row) {
	number := func() float64 {
		if v, ok := parsePlain(val); ok {
			return v
		}
		return math.NaN()
	}
	switch string(key) {
	case "event":
		r.event = val
	case "unit":
		r.unit = val
	case "interval":
		r.time = val
	case "cpu":
		if len(val) > 0 && isDigit(val[0]) {
			p.id = append(append(p.id[:0], "CPU"...), val...)
			val = p.id
		}
		r.id = val
	case "core", "cache", "cluster", "die", "socket", "node", "thread":
		r.id = val
	case "aggregate-number", "counters":
		if n, ok := smallNumber(val); ok {
			r.cpus = n
		}
	case "cgroup":
		r.cgroup = val
	case "variance":
		r.noise = number() / 100
	case "event-runtime":
		r.run = number()
	case "pcnt-running":
		r.share, r.shared = number()/100, true
	}
}

// member returns the first member of what is left of an object: its key, and
// its value without quotation marks.
func member(b []byte) (key, val, rest []byte, ok bool) {
	open := bytes.IndexByte(b, '"')
	if open < 0 {
		return nil, nil, nil, false
	}
	key, b, ok = jsonString(b[open:])
	if !ok {
		return nil, nil, nil, false
	}
	b = skipBlanks(b)
	if len(b) == 0 || b[0] != ':' {
		return key, nil, b, true
	}
	b = skipBlanks(b[1:])
	if len(b) > 0 && b[0] == '"' {
		val, b, ok = jsonString(b)
		return key, val, b, ok
	}
	end := bareLength(b)
	return key, trimBlanks(b[:end]), b[end:], true
}

// bareLength returns the length of a value without quotation marks. A comma
// ends it unless it is a decimal comma, which a digit follows.
func bareLength(b []byte) int {
	for i, c := range b {
		if c == '}' || c == '{' || c == '"' || c == ',' && !(i+1 < len(b) && isDigit(b[i+1])) {
			return i
		}
	}
	return len(b)
}

// jsonString reads the string at the start of b.
func jsonString(b []byte) (s, rest []byte, ok bool) {
	escaped := false
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			if s = b[1:i]; escaped {
				s = unescape(s)
			}
			return s, b[i+1:], true
		}
	}
	return nil, nil, false
}

// unescape resolves the escapes of a JSON string.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			out = append(out, '\t')
		case 'n', 'r', 'b', 'f':
			out = append(out, ' ')
		case 'u':
			if i+5 <= len(s) {
				if n, err := strconv.ParseUint(string(s[i+1:i+5]), 16, 16); err == nil {
					out = utf8.AppendRune(out, rune(n))
				}
				i += 4
			}
		default:
			out = append(out, s[i])
		}
	}
	return out
}
