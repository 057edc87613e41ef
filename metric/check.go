package metric

import "fmt"

// A UnitError says that a formula puts values of different units together.
type UnitError struct {
	Left, Right Unit
	Op          string // the operator or function: "+", "max", "if"
	Expr        string // the part of the formula that it joins them in
}

func (e *UnitError) Error() string {
	return fmt.Sprintf("formula: the operands of %s have different units, %s and %s, in %q", e.Op, e.Left, e.Right, shorten(e.Expr))
}

// Unit returns the unit of the formula's value. The function gives the units of names,
// and of literals (with their #). A unit that it does not know fits every other, and the
// result may then be unknown (see [Unit.Known]).
//
// Numbers have the unit 1, but 0 fits every unit. Sums, remainders,
// comparisons, min and max, and the branches of a choice must have equal units;
// otherwise the error is a [*UnitError]. Comparisons, & ^ |, and the calls that
// ask about the machine have the unit 1.
func (e *Expr) Unit(of func(name string) (Unit, bool)) (Unit, error) {
	switch e.op {
	case opTooLarge:
		return Unit{}, errTooLarge
	case opNumber:
		return Unit{any: e.num == 0}, nil
	case opName, opLiteral:
		u, ok := of(e.text)
		return known(u, ok), nil
	case opHasEvent, opSourceCount, opCPUID:
		return Unit{}, nil
	case opNeg:
		return e.x.Unit(of)
	case opIf:
		if _, err := e.y.Unit(of); err != nil {
			return Unit{}, err
		}
		return e.joint(e.x, e.z, of)
	}
	return e.binaryUnit(of)
}

func known(u Unit, ok bool) Unit {
	if !ok {
		return Unit{any: true}
	}
	return u
}

func (e *Expr) binaryUnit(of func(name string) (Unit, bool)) (Unit, error) {
	switch e.op {
	case opAdd, opSub, opMod, opMin, opMax:
		return e.joint(e.x, e.y, of)
	case opLess, opGreater, opLessEqual, opGreaterEqual, opEqual, opNotEqual:
		_, err := e.joint(e.x, e.y, of)
		return Unit{}, err
	}
	x, err := e.x.Unit(of)
	if err != nil {
		return Unit{}, err
	}
	y, err := e.y.Unit(of)
	switch {
	case err != nil:
		return Unit{}, err
	case e.op == opMul:
		return x.product(y), nil
	case e.op == opDiv || e.op == opRatio:
		return x.quotient(y), nil
	}
	return Unit{}, nil // & ^ |
}

// joint returns the unit that x and y, operands of e, have in common.
func (e *Expr) joint(x, y *Expr, of func(name string) (Unit, bool)) (Unit, error) {
	u, err := x.Unit(of)
	if err != nil {
		return Unit{}, err
	}
	v, err := y.Unit(of)
	switch {
	case err != nil:
		return Unit{}, err
	case u.any:
		return v, nil
	case v.any || u.Equal(v):
		return u, nil
	}
	return Unit{}, &UnitError{Left: u, Right: v, Op: ops[e.op].text, Expr: e.String()}
}
