package perfstat

import (
	"bytes"
	"math"
	"strconv"
)

// pow10 holds the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// maxDigits bounds the length of a number: a 64-bit counter has 20 digits.
const maxDigits = 48

func isDigit(c byte) bool { return c-'0' < 10 }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// skipBlanks returns b from its first byte that is neither blank nor tab on.
func skipBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	return b
}

// trimBlanks returns b up to its last byte that is neither blank nor tab.
func trimBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// digits returns the number of digits at the start of b.
func digits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

// decimal returns the value of digits with frac of them behind the point.
func decimal(mantissa uint64, frac int) float64 {
	if frac == 0 {
		return float64(mantissa)
	}
	return float64(mantissa) / pow10[frac]
}

// parsePlain reads a field that is a number without thousands separators, as
// -x and -j print it: digits, and decimals behind a point or comma.
func parsePlain(b []byte) (v float64, ok bool) {
	v, n, ok := scanPlain(b)
	return v, ok && n == len(b)
}

// scanPlain reads the plain number at the start of b and returns its length.
// Both quotients of exactly known numbers and strconv round correctly, so the
// two ways give the same result.
func scanPlain(b []byte) (v float64, n int, ok bool) {
	var m uint64
	for n < len(b) && isDigit(b[n]) {
		m = m*10 + uint64(b[n]-'0')
		n++
	}
	whole := n
	if whole == 0 {
		return 0, 0, false
	}
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
		n++
		for n < len(b) && isDigit(b[n]) {
			m = m*10 + uint64(b[n]-'0')
			n++
		}
	}
	frac := max(0, n-whole-1)
	if whole+frac <= 15 || frac == 0 && whole <= 19 {
		return decimal(m, frac), n, true
	}
	v, ok = parseLong(b[:whole], b[n-frac:n])
	return v, n, ok
}

// parseLong is the slow way, for numbers that decimal cannot do exactly.
func parseLong(whole, frac []byte) (float64, bool) {
	if len(whole)+len(frac) > maxDigits {
		return 0, false
	}
	text := make([]byte, 0, maxDigits+1)
	text = append(text, whole...)
	if len(frac) > 0 {
		text = append(append(text, '.'), frac...)
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}

// separators are what locales put between groups of digits, longest first.
var separators = [][]byte{
	[]byte("\u202f"), // narrow no-break space: French and others
	[]byte("\u2009"), // thin space
	[]byte("\u2019"), // right single quotation mark: Swiss
	[]byte("\u00a0"), // no-break space
	{0xa0},           // the same in ISO 8859-1
	[]byte(","), []byte("."), []byte("'"), []byte(" "),
}

// separator returns the separator at the start of b, provided a digit follows.
func separator(b []byte) []byte {
	for _, s := range separators {
		if bytes.HasPrefix(b, s) {
			if len(b) > len(s) && isDigit(b[len(s)]) {
				return s
			}
			return nil
		}
	}
	return nil
}

// A groupedNumber is a number in the spelling of a locale, taken apart: runs of
// digits with separators between them.
type groupedNumber struct {
	text [maxDigits]byte // all digits
	size int
	run  [maxDigits]int // lengths of the runs of digits
	sep  [maxDigits][]byte
	seps int // there is one run more than separators
}

// scanGrouped reads the number at the start of b as perf prints it in text, with or
// without thousands separators. It returns its length, and what it says of the
// spelling.
func scanGrouped(b []byte) (v float64, n int, s spelling, ok bool) {
	var g groupedNumber
	n, ok = g.scan(b)
	if !ok {
		return 0, n, s, false
	}
	frac, ok := g.decimals()
	if !ok {
		return 0, n, s, false
	}
	v, ok = parseDigits(g.text[:g.size-frac], g.text[g.size-frac:g.size])
	return v, n, g.spelling(frac), ok
}

// marks is a set of what stands between digits.
type marks uint8

const (
	comma marks = 1 << iota
	dot
	otherMark // a blank or apostrophe, which only groups
)

// markOf returns the mark that begins with a byte.
func markOf(c byte) marks {
	switch c {
	case ',':
		return comma
	case '.':
		return dot
	}
	return otherMark
}

// A spelling is what numbers reveal about their locale.
type spelling struct {
	group marks // what stands between groups of digits
	point marks // decimal points
	lone  marks // of one number: that between its digits, which may be the one or the other, "1.234"
}

// learn adds what another number of the same block tells.
func (s *spelling) learn(o spelling) {
	s.group |= o.group
	s.point |= o.point
}

// isPoint decides what a lone mark is by the other numbers of the block: a
// point if it is one elsewhere, or if something else groups.
func (s *spelling) isPoint(lone marks) bool {
	return lone&s.group == 0 && (lone&s.point != 0 || lone != 0 && s.group != 0)
}

// spelling returns what a number tells with frac of its digits behind the point.
func (g *groupedNumber) spelling(frac int) (s spelling) {
	if g.seps == 0 {
		return s
	}
	first, last := markOf(g.sep[0][0]), markOf(g.sep[g.seps-1][0])
	switch {
	case frac > 0 && g.seps > 1:
		s.group, s.point = first, last
	case frac > 0:
		s.point = last
	case g.seps == 1 && last != otherMark:
		s.lone = last
	default:
		s.group = first
	}
	return s
}

// scan takes the number at the start of b apart and returns its length.
func (g *groupedNumber) scan(b []byte) (n int, ok bool) {
	for {
		k := digits(b[n:])
		if k == 0 || g.size+k > maxDigits {
			return n + k, false
		}
		g.size += copy(g.text[g.size:], b[n:n+k])
		g.run[g.seps] = k
		n += k
		s := separator(b[n:])
		if s == nil || s[0] == ' ' && !g.blankGroups(b[n+1:]) {
			return n, true
		}
		g.sep[g.seps] = s
		g.seps++
		n += len(s)
	}
}

// blankGroups decides whether a blank between digits groups them, or stands
// between two numbers.
func (g *groupedNumber) blankGroups(rest []byte) bool {
	if digits(rest) != 3 || g.run[0] > 3 {
		return false
	}
	return g.seps == 0 || g.sep[g.seps-1][0] == ' '
}

// decimals returns how many digits are behind the decimal point, and whether some locale
// spells so.
//
// A single point or comma followed by exactly three digits groups, unless the
// other numbers of the block say otherwise: perf prints counts without decimals,
// and clocks and scaled counts with two or six.
func (g *groupedNumber) decimals() (n int, ok bool) {
	if g.seps == 0 {
		return 0, true
	}
	last := g.sep[g.seps-1]
	point := last[0] == '.' || last[0] == ','
	lone := g.seps == 1 || !bytes.Equal(g.sep[g.seps-2], last)
	if lone && point && !(g.seps == 1 && g.run[1] == 3 && g.run[0] <= 3 && g.text[0] != '0') {
		return g.run[g.seps], g.regular(g.seps - 1)
	}
	return 0, g.regular(g.seps)
}

// regular reports whether the first n separators group digits as locales do:
// by threes, or by twos and at last by three as in India.
func (g *groupedNumber) regular(n int) bool {
	if n == 0 {
		return true
	}
	for i := 1; i <= n; i++ {
		if !bytes.Equal(g.sep[i-1], g.sep[0]) || g.run[i] != 3 && (g.run[i] != 2 || i == n) {
			return false
		}
	}
	return g.run[0] <= 3
}

// parseDigits returns the value of digits before and behind the point.
func parseDigits(whole, frac []byte) (float64, bool) {
	if len(whole)+len(frac) > 15 {
		return parseLong(whole, frac)
	}
	var m uint64
	for _, c := range whole {
		m = m*10 + uint64(c-'0')
	}
	for _, c := range frac {
		m = m*10 + uint64(c-'0')
	}
	return decimal(m, len(frac)), true
}

// parsePercent reads the digits of a percentage in either locale's spelling.
// perf prints "nan" where it divided by zero: that is a percentage, and not
// known.
func parsePercent(b []byte) (v float64, ok bool) {
	b = bytes.TrimLeft(b, " ")
	if isNaN(b) {
		return math.NaN(), true
	}
	return parsePlain(b)
}

func isNaN(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("-"))
	return string(b) == "nan"
}

// wrapped is the smallest number that only a negative difference of counters,
// printed as unsigned, reaches: 2⁶⁴ − 2⁴⁸.
const wrapped = 1<<64 - 1<<48

// implausible says why a value cannot be a count, "" if it can.
func implausible(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "is not a number"
	case v < 0:
		return "is negative"
	case v > 1<<64:
		return "is more than a 64-bit counter holds"
	case v >= wrapped:
		return "is a negative difference wrapped around 2⁶⁴"
	}
	return ""
}
