package metric

import (
	"math"
	"strconv"
	"strings"
)

// String returns the formula in its canonical form: one blank around operators,
// no parentheses but those that are needed, numbers and names in one spelling.
// It parses back to the same tree, if it is not longer than [maxLength].
func (e *Expr) String() string {
	var b strings.Builder
	e.print(&b, precIf)
	return b.String()
}

// print writes e, in parentheses if it binds looser than prec.
func (e *Expr) print(b *strings.Builder, prec int) {
	own := ops[e.op].prec
	if own < prec {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch {
	case e.op == opNumber:
		b.WriteString(formatNumber(e.num))
	case e.op == opName:
		b.WriteString(escapeName(e.text))
	case e.op == opLiteral:
		b.WriteString(e.text)
	case e.op == opTooLarge:
		b.WriteString("(" + errTooLarge.Error() + ")")
	case e.op == opNeg:
		b.WriteByte('-')
		e.x.print(b, precUnary)
	case e.op == opIf:
		e.x.print(b, precOr)
		b.WriteString(" if ")
		e.y.print(b, precOr)
		b.WriteString(" else ")
		e.z.print(b, precIf)
	case e.op.infix():
		e.x.print(b, own)
		b.WriteString(" " + ops[e.op].text + " ")
		e.y.print(b, own+1)
	default:
		e.printCall(b)
	}
}

func (e *Expr) printCall(b *strings.Builder) {
	b.WriteString(ops[e.op].text)
	b.WriteByte('(')
	switch {
	case e.op == opCPUID && numberLen(e.text) == len(e.text):
		b.WriteString(e.text)
	case e.x == nil:
		b.WriteString(escapeName(e.text))
	default:
		e.x.print(b, precIf)
		b.WriteString(", ")
		e.y.print(b, precIf)
	}
	b.WriteByte(')')
}

// formatNumber writes a number so that it reads back as the same float64:
// without an exponent where that is not too long.
func formatNumber(v float64) string {
	if a := math.Abs(v); a == 0 || 1e-6 <= a && a < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'e', -1, 64)
}

// escapeName writes a name as formulas spell it: @ for a slash, a backslash before what would
// end the name, start a number or make a keyword.
func escapeName(name string) string {
	guard := name == "if" || name == "else" || numberLen(name) == len(name) || !isPlainName(name)
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case i == 0 && guard:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('@')
		case c == '@' || !isWordByte(c):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
