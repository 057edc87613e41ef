package metric

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A SyntaxError says where and why a formula is not one.
type SyntaxError struct {
	Src string // the formula
	Pos int    // byte offset into Src, from 0
	Msg string
}

// excerpt is how many bytes on either side of a mistake its message shows.
const excerpt = 24

func (e *SyntaxError) Error() string {
	from, to := max(0, e.Pos-excerpt), min(len(e.Src), e.Pos+excerpt)
	for from > 0 && !utf8.RuneStart(e.Src[from]) {
		from--
	}
	for to < len(e.Src) && !utf8.RuneStart(e.Src[to]) {
		to++
	}
	if from == to {
		return fmt.Sprintf("formula: offset %d: %s", e.Pos, e.Msg)
	}
	return fmt.Sprintf("formula: offset %d: %s, near %q", e.Pos, e.Msg, e.Src[from:to])
}

type tokenKind uint8

const (
	tokEnd     tokenKind = iota
	tokNumber            // text as written
	tokName              // text unescaped
	tokLiteral           // text in lower case, with its #
	tokString            // text between the quotes
	tokOp                // an infix operator, in op
	tokPunct             // ( ) , and the words if and else, in text
)

// A token is one word of a formula. For an infix minus, op is opSub.
type token struct {
	kind tokenKind
	op   op
	pos  int
	text string
}

func (t token) is(punct string) bool { return t.kind == tokPunct && t.text == punct }

func (t token) isOp(o op) bool { return t.kind == tokOp && t.op == o }

// String is how messages name the token.
func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end"
	case tokOp:
		return strconv.Quote(ops[t.op].text)
	}
	return strconv.Quote(shorten(t.text))
}

// shorten cuts a text that is too long for a one-line message.
func shorten(s string) string {
	if len(s) <= 2*excerpt {
		return s
	}
	return s[:2*excerpt] + "…"
}

// A lexer splits a formula into tokens.
type lexer struct {
	src string
	pos int
}

func (l *lexer) errorf(pos int, format string, args ...any) error {
	return &SyntaxError{Src: l.src, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// skipBlanks returns the offset of the next byte from pos that is not blank.
func (l *lexer) skipBlanks(pos int) int {
	for pos < len(l.src) && (l.src[pos] == ' ' || l.src[pos] == '\t' || l.src[pos] == '\n' || l.src[pos] == '\r') {
		pos++
	}
	return pos
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	l.pos = l.skipBlanks(l.pos)
	if l.pos == len(l.src) {
		return token{kind: tokEnd, pos: l.pos}, nil
	}
	switch c := l.src[l.pos]; {
	case c == '(' || c == ')' || c == ',':
		l.pos++
		return token{kind: tokPunct, pos: l.pos - 1, text: l.src[l.pos-1 : l.pos]}, nil
	case c == '#':
		return l.literal()
	case c == '"':
		return l.quoted()
	case isWordByte(c) || c == '\\':
		return l.word()
	}
	return l.operator()
}

// longOperators are those of two characters; their spelling in a canonical
// formula is in ops.
var longOperators = []struct {
	text string
	op   op
}{
	{"<<", opShift},
	{"<=", opLessEqual},
	{">=", opGreaterEqual},
	{"==", opEqual},
	{"!=", opNotEqual},
	{"&&", opAnd},
	{"||", opOr},
}

// operator reads an infix operator.
func (l *lexer) operator() (token, error) {
	t := token{kind: tokOp, pos: l.pos}
	rest := l.src[l.pos:]
	for _, long := range longOperators {
		if strings.HasPrefix(rest, long.text) {
			t.op = long.op
			l.pos += len(long.text)
			return t, nil
		}
	}
	for o := opAdd; o <= opOr; o++ {
		if ops[o].text == rest[:1] {
			t.op = o
			l.pos++
			return l.join(t), nil
		}
	}
	if rest[0] == '=' {
		return t, l.errorf(t.pos, `"=" compares nothing: write "==", or "\=" in a name`)
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return t, l.errorf(t.pos, "unexpected character %q", r)
}

// join completes "<" and ">" by an equals sign that stands apart: Intel's files
// print ">=" as "> =".
func (l *lexer) join(t token) token {
	i := l.skipBlanks(l.pos)
	switch {
	case i == len(l.src) || l.src[i] != '=':
		return t
	case t.op == opLess:
		t.op = opLessEqual
	case t.op == opGreater:
		t.op = opGreaterEqual
	default:
		return t
	}
	l.pos = i + 1
	return t
}

// literal reads "#" and the word after it.
func (l *lexer) literal() (token, error) {
	start := l.pos
	for l.pos++; l.pos < len(l.src) && isAlnum(l.src[l.pos]); l.pos++ {
	}
	if l.pos == start+1 {
		return token{}, l.errorf(start, `"#" without a name after it`)
	}
	return token{kind: tokLiteral, pos: start, text: strings.ToLower(l.src[start:l.pos])}, nil
}

// quoted reads a string in double quotes.
func (l *lexer) quoted() (token, error) {
	start := l.pos
	for l.pos++; l.pos < len(l.src) && l.src[l.pos] != '"'; l.pos++ {
		if !isPrintable(l.src[l.pos]) {
			return token{}, l.errorf(l.pos, "unexpected character %q in a string", l.src[l.pos])
		}
	}
	if l.pos == len(l.src) {
		return token{}, l.errorf(start, "the string has no end")
	}
	l.pos++
	return token{kind: tokString, pos: start, text: l.src[start+1 : l.pos-1]}, nil
}

// word reads a number or a name, whichever is longer: 1e9 is a number and 4K a
// name, as for the lexer of perf.
func (l *lexer) word() (token, error) {
	start := l.pos
	end, err := l.nameEnd()
	if err != nil {
		return token{}, err
	}
	if n := numberLen(l.src[start:]); n > 0 && start+n >= end {
		l.pos = start + n
		return token{kind: tokNumber, pos: start, text: l.src[start:l.pos]}, nil
	}
	l.pos = end
	raw := l.src[start:end]
	name := unescape(raw)
	switch {
	case strings.Contains(raw, `\`): // a name, whatever it looks like
	case name == "if" || name == "else":
		return token{kind: tokPunct, pos: start, text: name}, nil
	case !isPlainName(name):
		return token{}, l.errorf(start, "%q is neither a number nor a name", shorten(raw))
	}
	return token{kind: tokName, pos: start, text: name}, nil
}

// nameEnd returns where the name that begins at the current byte ends.
func (l *lexer) nameEnd() (int, error) {
	modifiers := false // those of an event, or its terms, have begun: "=" is part of the name
	i := l.pos
	for i < len(l.src) {
		switch c := l.src[i]; {
		case c == '\\':
			if i+1 == len(l.src) || !isPrintable(l.src[i+1]) {
				return 0, l.errorf(i, "a backslash needs a printable character after it")
			}
			i += 2
		case isWordByte(c):
			modifiers = modifiers || c == ':' || c == '@'
			i++
		case c == '=' && modifiers && i+1 < len(l.src) && isWordByte(l.src[i+1]):
			i++
		default:
			n := suffixLen(l.src[i:])
			if n == 0 {
				return i, nil
			}
			i += n
		}
	}
	return i, nil
}

// unescape returns the name that formulas spell as raw: without the backslashes,
// and with a slash for each @ that has none.
func unescape(raw string) string {
	if !strings.ContainsAny(raw, `\@`) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
			b.WriteByte(raw[i])
		case '@':
			b.WriteByte('/')
		default:
			b.WriteByte(raw[i])
		}
	}
	return b.String()
}

// suffixLen returns the length of what may follow a name without a backslash:
// "(%)", which Intel ends the names of shares with, or an index like "[0]".
func suffixLen(s string) int {
	if strings.HasPrefix(s, "(%)") {
		return 3
	}
	if s[0] != '[' {
		return 0
	}
	i := 1
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == 1 || i == len(s) || s[i] != ']' {
		return 0
	}
	return i + 1
}

// numberLen returns how many bytes of s are a number, 0 if it begins with none.
func numberLen(s string) int {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && isHex(s[2]) {
		i := 3
		for i < len(s) && isHex(s[i]) {
			i++
		}
		return i
	}
	i := digits(s, 0)
	n := i
	if i < len(s) && s[i] == '.' {
		j := digits(s, i+1)
		n += j - (i + 1)
		i = j
	}
	if n == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if k := digits(s, j); k > j {
			return k
		}
	}
	return i
}

// digits returns the end of the decimal digits of s from i.
func digits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// isPlainName reports whether the bytes of a word are a name as they stand. A
// number with a slip of the pen (1.2.3, 0xg, 1e) is none.
func isPlainName(s string) bool {
	letters := 0
	for i := range len(s) {
		if isAlnum(s[i]) && !isDigit(s[i]) {
			letters++
		}
	}
	if letters == 0 {
		return false
	}
	if len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return false
	}
	rest := strings.TrimLeft(s, "0123456789.")
	return len(rest) == len(s) || rest != "e" && rest != "E"
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isAlnum(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func isPrintable(c byte) bool { return ' ' <= c && c <= '~' }

// isWordByte reports whether c is part of a name as it stands.
func isWordByte(c byte) bool { return isAlnum(c) || c == '.' || c == ':' || c == '?' || c == '@' }

// maxHex is the largest hexadecimal number: above it not every whole number is
// a float64.
const maxHex = 1 << 53

// parseNumber returns the value of a number token. What float64 cannot hold
// (1e400, 1e-400) is an error and not infinite or 0.
func parseNumber(s string) (v float64, problem string) {
	if len(s) > 1 && (s[1] == 'x' || s[1] == 'X') {
		n, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil || n > maxHex {
			return 0, "hexadecimal number above 2^53"
		}
		return float64(n), ""
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, "number out of range"
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	if v == 0 && strings.ContainsAny(mantissa, "123456789") {
		return 0, "number too small"
	}
	return v, ""
}
