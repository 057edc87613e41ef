package metric

import "math"

// Parse reads a formula. The error is a [*SyntaxError].
func Parse(src string) (*Expr, error) {
	p := &parser{lexer: lexer{src: src}}
	if len(src) > maxLength {
		return nil, p.errorf(maxLength, "longer than %d bytes", maxLength)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.unexpected("an operator")
	}
	return e, nil
}

// A parser reads tokens by recursive descent, one ahead. As every term has at
// least one byte, what it reads is within maxTerms.
type parser struct {
	lexer
	tok   token // the next one
	depth int
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

func (p *parser) unexpected(want string) error {
	return p.errorf(p.tok.pos, "expected %s, found %s", want, p.tok)
}

// expect skips the given punctuation.
func (p *parser) expect(punct string) error {
	if !p.tok.is(punct) {
		return p.unexpected(`"` + punct + `"`)
	}
	return p.advance()
}

// deeper counts a level of nesting; the caller undoes it.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return p.errorf(p.tok.pos, "nested more than %d deep", maxDepth)
	}
	return nil
}

// expr reads "x", or "x if y else z", where z may be another such choice.
func (p *parser) expr() (*Expr, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	x, err := p.infix(precOr)
	if err != nil || !p.tok.is("if") {
		return x, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	y, err := p.infix(precOr)
	if err != nil {
		return nil, err
	}
	if err := p.expect("else"); err != nil {
		return nil, err
	}
	z, err := p.expr()
	if err != nil {
		return nil, err
	}
	return node(opIf, x, y, z), nil
}

// infix reads operators that bind at least as tight as prec, and their
// operands. Those of equal precedence are grouped from the left.
func (p *parser) infix(prec int) (*Expr, error) {
	x, err := p.unary()
	if err != nil {
		return nil, err
	}
	for p.tok.kind == tokOp && ops[p.tok.op].prec >= prec {
		o, pos := p.tok.op, p.tok.pos
		if err := p.advance(); err != nil {
			return nil, err
		}
		y, err := p.infix(ops[o].prec + 1)
		if err != nil {
			return nil, err
		}
		if o == opShift {
			if !y.isShift() {
				return nil, p.errorf(pos, `"<<" needs a whole number up to %d after it`, maxShift)
			}
			o, y = opMul, number(math.Ldexp(1, int(y.num)))
		}
		x = node(o, x, y, nil)
	}
	return x, nil
}

// maxShift is how many bits a value can be shifted by: those of a counter.
const maxShift = 63

// isShift reports whether e is a number of bits.
func (e *Expr) isShift() bool {
	return e.op == opNumber && e.num == math.Trunc(e.num) && 0 <= e.num && e.num <= maxShift
}

// unary reads an operand with its signs. A number takes its sign in.
func (p *parser) unary() (*Expr, error) {
	if !p.tok.isOp(opSub) {
		return p.primary()
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.unary()
	if err != nil {
		return nil, err
	}
	if x.op == opNumber {
		return number(-x.num), nil
	}
	return node(opNeg, x, nil, nil), nil
}

func (p *parser) primary() (*Expr, error) {
	t := p.tok
	switch {
	case t.kind == tokNumber:
		v, problem := parseNumber(t.text)
		if problem != "" {
			return nil, p.errorf(t.pos, "%s: %s", problem, shorten(t.text))
		}
		return number(v), p.advance()
	case t.kind == tokLiteral:
		return leaf(opLiteral, t.text), p.advance()
	case t.kind == tokName:
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.tok.is("(") {
			return p.call(t)
		}
		return leaf(opName, t.text), nil
	case t.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	}
	return nil, p.unexpected("a number, a name or an expression")
}

// call reads the arguments of a function; its name has been read.
func (p *parser) call(name token) (*Expr, error) {
	o, ok := function(name.text)
	if !ok {
		return nil, p.errorf(name.pos, "unknown function %q", shorten(name.text))
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !o.binary() {
		return p.callOnWord(o)
	}
	x, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	y, err := p.expr()
	if err != nil {
		return nil, err
	}
	return node(o, x, y, nil), p.expect(")")
}

// callOnWord reads the argument of a function that takes no value: the name of
// an event, or an identification, which may look like a number or be quoted.
func (p *parser) callOnWord(o op) (*Expr, error) {
	t := p.tok
	switch {
	case t.kind == tokName:
	case o == opCPUID && t.kind == tokNumber:
	case o == opCPUID && t.kind == tokString && t.text != "":
	case o == opCPUID:
		return nil, p.unexpected("an identification of a processor")
	default:
		return nil, p.unexpected("the name of an event")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return leaf(o, t.text), p.expect(")")
}

// function returns the function of a name.
func function(name string) (o op, ok bool) {
	for _, o := range [...]op{opHasEvent, opSourceCount, opCPUID, opMin, opMax, opRatio} {
		if ops[o].text == name {
			return o, true
		}
	}
	return o, false
}
