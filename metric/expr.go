package metric

import "fmt"

// Limits of a formula. The longest of Intel's files has 34 thousand bytes and
// 17 levels of parentheses.
const (
	maxLength = 1 << 17 // bytes of text
	maxDepth  = 200     // parentheses, calls, signs and else branches inside each other
	maxTerms  = 1 << 17 // operands and operators, after Substitute too
)

// errTooLarge is what Compile and Unit say about a formula that has outgrown
// [maxTerms] by substitution.
var errTooLarge = fmt.Errorf("formula: more than %d terms after substitution", maxTerms)

// op is what a node of the tree is or does.
type op uint8

const (
	opNumber      op = iota
	opName           // text
	opLiteral        // text, with its #
	opHasEvent       // of the event text
	opSourceCount    // of the event text
	opCPUID          // of the identification text
	opTooLarge       // stands for a formula of more than maxTerms terms
	opNeg            // -x

	opAdd // infix operators from here …
	opSub
	opMul
	opDiv
	opMod
	opShift // only in tokens: x << n becomes x * 2^n
	opLess
	opGreater
	opLessEqual
	opGreaterEqual
	opEqual
	opNotEqual
	opAnd
	opXor
	opOr // … to here

	opMin // functions of two operands from here …
	opMax
	opRatio // … to here

	opIf // x if y else z
)

// Precedences, from what binds loosest.
const (
	precIf = iota
	precOr
	precXor
	precAnd
	precCompare
	precShift
	precSum
	precProduct
	precUnary
	precPrimary
)

// ops holds how each operator is written.
var ops = [...]struct {
	text string
	prec int
}{
	opNumber:       {"", precPrimary},
	opName:         {"", precPrimary},
	opLiteral:      {"", precPrimary},
	opHasEvent:     {"has_event", precPrimary},
	opSourceCount:  {"source_count", precPrimary},
	opCPUID:        {"strcmp_cpuid_str", precPrimary},
	opTooLarge:     {"", precPrimary},
	opNeg:          {"-", precUnary},
	opAdd:          {"+", precSum},
	opSub:          {"-", precSum},
	opMul:          {"*", precProduct},
	opDiv:          {"/", precProduct},
	opMod:          {"%", precProduct},
	opShift:        {"<<", precShift},
	opLess:         {"<", precCompare},
	opGreater:      {">", precCompare},
	opLessEqual:    {"<=", precCompare},
	opGreaterEqual: {">=", precCompare},
	opEqual:        {"==", precCompare},
	opNotEqual:     {"!=", precCompare},
	opAnd:          {"&", precAnd},
	opXor:          {"^", precXor},
	opOr:           {"|", precOr},
	opMin:          {"min", precPrimary},
	opMax:          {"max", precPrimary},
	opRatio:        {"d_ratio", precPrimary},
	opIf:           {"if", precIf},
}

func (o op) infix() bool { return opAdd <= o && o <= opOr }

// binary reports whether o has the two operands x and y.
func (o op) binary() bool { return opAdd <= o && o <= opRatio }

// An Expr is a formula, or a part of one. It is immutable, so parts can be
// shared between formulas and goroutines.
type Expr struct {
	op op

	// spills is how many intermediate results must be kept aside while the
	// expression is evaluated in the best order.
	spills uint8

	terms   int32 // nodes, parts that are shared counted each time
	num     float64
	text    string
	x, y, z *Expr
}

func number(v float64) *Expr {
	return &Expr{op: opNumber, terms: 1, num: v + 0} // -0 + 0 is 0
}

func leaf(o op, text string) *Expr {
	return &Expr{op: o, terms: 1, text: text}
}

// tooLarge is what every expression of more than maxTerms terms becomes.
var tooLarge = &Expr{op: opTooLarge, terms: maxTerms + 1}

// node returns an expression of the operands. The last ones may be nil.
func node(o op, x, y, z *Expr) *Expr {
	e := &Expr{op: o, terms: 1, x: x, y: y, z: z}
	for _, operand := range [...]*Expr{x, y, z} {
		if operand == nil {
			continue
		}
		e.terms += operand.terms
		e.spills = max(e.spills, operand.spills)
	}
	if e.terms > maxTerms {
		return tooLarge
	}
	// The harder operand is evaluated first, with nothing kept aside; its result is kept
	// during the other one, unless that is a mere number or input. So each further spill
	// takes twice as many terms and one. See Sethi and Ullman, "The generation of optimal
	// code for arithmetic expressions", 1970. The least without a spill is -a, so n
	// spills take 3 * 2^n - 1 terms. maxTerms has room for 15.
	if o.binary() && !x.simple() && !y.simple() && x.spills == y.spills {
		e.spills++
	}
	return e
}

// simple reports whether the value of e needs no evaluation.
func (e *Expr) simple() bool { return e.op == opNumber || e.op == opName }

// walk calls f for each node of e, operands first, in the order of the text.
func (e *Expr) walk(f func(*Expr)) {
	for _, operand := range [...]*Expr{e.x, e.y, e.z} {
		if operand != nil {
			operand.walk(f)
		}
	}
	f(e)
}

// Names returns the names that e uses, in the order of their first appearance. They are
// unescaped, as events, nodes and parameters are called. What has_event and source_count
// ask about is not among them: their counts are not used.
func (e *Expr) Names() []string {
	return e.collect(func(e *Expr) string {
		if e.op == opName {
			return e.text
		}
		return ""
	})
}

// Literals returns the literals of e, in lower case and with their #, in the order of their
// first appearance. Calls of source_count are among them as written ("source_count(EVENT)").
func (e *Expr) Literals() []string {
	return e.collect(func(e *Expr) string {
		switch e.op {
		case opLiteral:
			return e.text
		case opSourceCount:
			return e.String()
		}
		return ""
	})
}

// collect returns what text says of the nodes of e, without repetition and
// without "".
func (e *Expr) collect(text func(*Expr) string) []string {
	var all []string
	seen := make(map[string]bool)
	e.walk(func(e *Expr) {
		if s := text(e); s != "" && !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	})
	return all
}

// Substitute returns e with names replaced by the expressions that f returns for
// them; nil keeps the name. It does not substitute in these expressions. If the result has
// more than 131,072 terms it cannot be compiled.
func (e *Expr) Substitute(f func(name string) *Expr) *Expr {
	if e.op == opName {
		if s := f(e.text); s != nil {
			return s
		}
		return e
	}
	return e.rebuild(func(operand *Expr) *Expr { return operand.Substitute(f) })
}

// rebuild returns e with f applied to its operands; e itself if that changes
// none.
func (e *Expr) rebuild(f func(*Expr) *Expr) *Expr {
	apply := func(operand *Expr) *Expr {
		if operand == nil {
			return nil
		}
		return f(operand)
	}
	x, y, z := apply(e.x), apply(e.y), apply(e.z)
	if x == e.x && y == e.y && z == e.z {
		return e
	}
	if e.op == opNeg && x.op == opNumber {
		return number(-x.num)
	}
	return node(e.op, x, y, z)
}

// Constants is what [Expr.Fold] knows. A nil function knows nothing.
type Constants struct {
	// Value returns the value of a name, if it is a constant.
	Value func(name string) (float64, bool)
	// Literal returns the value of a literal ("#smt_on", in lower case) or of a
	// call of source_count ("source_count(EVENT)").
	Literal func(name string) (float64, bool)
	// HasEvent reports whether the machine has the event.
	HasEvent func(name string) bool
	// CPUID reports whether the processor's identification matches the pattern.
	CPUID func(pattern string) bool
	// Assumed, if not nil, is called for each event that the machine lacks and that a number
	// stands for: "x if has_event(EVENT) else 1".
	Assumed func(event string, value float64)
}

// missing passes on the events that a condition asks about and the machine lacks.
func (e *Expr) missing(c *Constants, value float64) {
	if e.op == opHasEvent && !c.HasEvent(e.text) {
		c.Assumed(e.text, value)
	}
	for _, operand := range []*Expr{e.x, e.y, e.z} {
		if operand != nil {
			operand.missing(c, value)
		}
	}
}

// Fold returns e with everything worked out that the constants decide: known literals, calls
// and names, operations on numbers, branches that cannot be taken, and & and | that one side
// decides. 0 * x is left as it is, for x may be unknown. So is an operation without a result,
// like 1 / 0. A constant that is infinite or NaN is none.
func (e *Expr) Fold(c Constants) *Expr {
	switch e.op {
	case opName, opLiteral, opSourceCount, opHasEvent, opCPUID:
		if v, ok := c.value(e); ok && isFinite(v) {
			return number(v)
		}
		return e
	}
	folded := e.rebuild(func(operand *Expr) *Expr { return operand.Fold(c) })
	switch {
	case folded.op == opIf && folded.y.op == opNumber:
		if folded.y.num != 0 {
			return folded.x
		}
		if c.Assumed != nil && c.HasEvent != nil && folded.z.op == opNumber {
			e.y.missing(&c, folded.z.num)
		}
		return folded.z
	case folded.op.binary():
		if v := folded.op.decided(folded.x, folded.y); isFinite(v) {
			return number(v)
		}
	}
	return folded
}

// decided returns the value of an operation as far as its operands that are
// numbers decide it, else NaN.
func (o op) decided(x, y *Expr) float64 {
	value := func(e *Expr) float64 {
		if e.op == opNumber {
			return e.num
		}
		return unknown
	}
	return apply(o, value(x), value(y))
}

// value returns the value that the constants give to a leaf.
func (c *Constants) value(e *Expr) (float64, bool) {
	switch {
	case e.op == opName && c.Value != nil:
		return c.Value(e.text)
	case e.op == opLiteral && c.Literal != nil:
		return c.Literal(e.text)
	case e.op == opSourceCount && c.Literal != nil:
		return c.Literal(e.String())
	case e.op == opHasEvent && c.HasEvent != nil:
		return truth(c.HasEvent(e.text)), true
	case e.op == opCPUID && c.CPUID != nil:
		return truth(c.CPUID(e.text)), true
	}
	return 0, false
}
