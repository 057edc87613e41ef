package metric

import (
	"fmt"
	"slices"
)

// A Program is a compiled formula. It is immutable and may be used by several
// goroutines at once.
type Program struct {
	// Strict says that the result is unknown wherever one of the slots is. Conditions and
	// logical operators may do without some.
	Strict bool

	expr  *Expr
	slot  map[string]int // of each name in expr
	slots []int          // those, once each
	code  []instr
	alone bool // the formula is a name by itself
}

// An unresolvedError is what [Compile] says about a part of a formula that has
// no value: a name without a slot, or a literal or call that was not folded.
type unresolvedError struct {
	Part string // as formulas spell it
}

func (e *unresolvedError) Error() string {
	return fmt.Sprintf("formula: %s is not known here", e.Part)
}

// maxSpills is a power of two. It is more than the intermediate results that a formula of
// maxTerms terms keeps aside (see node).
const maxSpills = 16

// An instr is one step of a program. The machine works on one value, a, and keeps others
// aside on a stack.
type instr struct {
	do   do
	from from
	op   op      // of applyLeft and applyRight
	to   int32   // where a branch on 0 and a jump go: the step before
	end  int32   // where a branch on unknown goes: the step before
	slot int     // the input of fromSlot
	num  float64 // the number of fromNum
}

// from is where the other operand of an instr comes from.
type from uint8

const (
	fromSlot from = iota // an input
	fromNum              // a number
	fromKept             // the value that was kept aside last, which is thereby used up
)

// do is what an instr does with a and its other operand, b.
type do uint8

const (
	load       do = iota // a = b
	keepLoad             // keep a, then a = b
	add                  // a + b
	sub                  // a - b
	subFrom              // b - a
	mul                  // a * b
	div                  // a / b
	over                 // b / a
	lessThan             // a < b
	greater              // b < a
	both                 // a & b
	applyLeft            // a op b
	applyRight           // b op a

	negate // -a
	branch // on the condition a: 0 goes to the other branch, unknown to the end
	jump
)

// steps returns what an operator does, for a as its left operand and for a as its
// right one.
func (o op) steps() (left, right do) {
	switch o {
	case opAdd:
		return add, add
	case opSub:
		return sub, subFrom
	case opMul:
		return mul, mul
	case opDiv, opRatio:
		return div, over
	case opLess:
		return lessThan, greater
	case opGreater:
		return greater, lessThan
	case opAnd:
		return both, both
	}
	return applyLeft, applyRight
}

// Compile turns a formula into a program. It takes the value of each name from the slot
// that the function gives; a negative slot means that there is none. Names without a
// slot, literals and calls that [Expr.Fold] left are an [*unresolvedError].
func Compile(e *Expr, slot func(name string) int) (*Program, error) {
	if e.op == opTooLarge {
		return nil, errTooLarge
	}
	p := &Program{expr: e, slot: make(map[string]int)}
	seen := make(map[int]bool)
	for _, name := range e.Names() {
		s := slot(name)
		if s < 0 {
			return nil, &unresolvedError{Part: escapeName(name)}
		}
		p.slot[name] = s
		if !seen[s] {
			seen[s] = true
			p.slots = append(p.slots, s)
		}
	}
	if err := p.emit(e, false); err != nil {
		return nil, err
	}
	p.Strict = !slices.ContainsFunc(p.code, func(c instr) bool {
		return c.do == branch || c.do == jump || c.do == both || c.op == opAnd || c.op == opOr
	})
	p.alone = len(p.code) == 1 && p.code[0].do == load && p.code[0].from == fromSlot
	return p, nil
}

// Slots returns the slots that the program may read, in the order of their names'
// first appearance in the formula. The caller must not change it.
func (p *Program) Slots() []int { return p.slots }

// emit appends the steps that evaluate e, after keeping the current value aside
// if keep is set.
func (p *Program) emit(e *Expr, keep bool) error {
	switch {
	case e.simple():
		p.load(e, keep)
	case e.op == opNeg:
		if err := p.emit(e.x, keep); err != nil {
			return err
		}
		p.add(instr{do: negate, from: fromNum})
	case e.op == opIf:
		return p.emitIf(e, keep)
	case e.op.binary():
		return p.emitBinary(e, keep)
	default:
		return &unresolvedError{Part: e.String()}
	}
	return nil
}

func (p *Program) add(i instr) { p.code = append(p.code, i) }

// load appends the step that fetches a number or an input.
func (p *Program) load(e *Expr, keep bool) {
	do := load
	if keep {
		do = keepLoad
	}
	p.add(p.with(do, e))
}

// with returns the step that does something with e, a name or a number; nil stands
// for the value kept aside.
func (p *Program) with(do do, e *Expr) instr {
	switch {
	case e == nil:
		return instr{do: do, from: fromKept}
	case e.op == opNumber:
		return instr{do: do, from: fromNum, num: e.num}
	}
	return instr{do: do, slot: p.slot[e.text]}
}

// emitBinary evaluates the operand first that is harder, then the other with
// the result kept aside; what is simple needs no step of its own.
func (p *Program) emitBinary(e *Expr, keep bool) error {
	left, right := e.op.steps()
	var last instr
	var err error
	switch {
	case e.y.simple():
		last = p.with(left, e.y)
		err = p.emit(e.x, keep)
	case e.x.simple():
		last = p.with(right, e.x)
		err = p.emit(e.y, keep)
	case e.x.spills >= e.y.spills:
		last = p.with(right, nil)
		err = p.emitBoth(e.x, e.y, keep)
	default:
		last = p.with(left, nil)
		err = p.emitBoth(e.y, e.x, keep)
	}
	last.op = e.op
	p.add(last)
	return err
}

// emitBoth evaluates first and keeps it aside while it evaluates second.
func (p *Program) emitBoth(first, second *Expr, keep bool) error {
	if err := p.emit(first, keep); err != nil {
		return err
	}
	return p.emit(second, true)
}

// emitIf evaluates the condition, then one of the branches.
func (p *Program) emitIf(e *Expr, keep bool) error {
	if err := p.emit(e.y, keep); err != nil {
		return err
	}
	test := len(p.code)
	p.add(instr{do: branch, from: fromNum})
	if err := p.emit(e.x, false); err != nil {
		return err
	}
	skip := len(p.code)
	p.code[test].to = int32(skip)
	p.add(instr{do: jump, from: fromNum})
	if err := p.emit(e.z, false); err != nil {
		return err
	}
	p.code[test].end = int32(len(p.code) - 1)
	p.code[skip].to = p.code[test].end
	return nil
}
