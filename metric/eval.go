package metric

import "math"

var unknown = math.NaN()

// isFinite reports whether v is a number: neither unknown nor infinite.
// The obvious v-v == 0 is wrong for a product: where the compiler fuses the
// multiplication and the subtraction, their difference is the rounding error.
func isFinite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// finite returns v, or unknown in place of what is infinite.
func finite(v float64) float64 {
	if isFinite(v) {
		return v
	}
	return unknown
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// less is x < y, unknown where one of them is.
func less(x, y float64) float64 {
	if x != x || y != y {
		return unknown
	}
	return truth(x < y)
}

// and is x & y: 0 where one of them is, whatever the other.
func and(x, y float64) float64 {
	switch {
	case x == 0 || y == 0:
		return 0
	case x != x || y != y:
		return unknown
	}
	return 1
}

// not is 1 where x is 0, and 0 where it is another number.
func not(x float64) float64 {
	if x != x {
		return unknown
	}
	return truth(x == 0)
}

// apply is the operator o on two values that are finite or unknown.
func apply(o op, x, y float64) float64 {
	switch o {
	case opAnd:
		return and(x, y)
	case opOr:
		return not(and(not(x), not(y)))
	}
	if x != x || y != y {
		return unknown
	}
	switch o {
	case opAdd:
		return finite(x + y)
	case opSub:
		return finite(x - y)
	case opMul:
		return finite(x * y)
	case opDiv, opRatio:
		return finite(x / y) // unknown if y is 0: the quotient is infinite or NaN
	case opMod:
		return math.Mod(math.Trunc(x), math.Trunc(y)) // NaN if the whole part of y is 0
	case opMin:
		return min(x, y)
	case opMax:
		return max(x, y)
	case opLess:
		return truth(x < y)
	case opGreater:
		return truth(x > y)
	case opLessEqual:
		return truth(x <= y)
	case opGreaterEqual:
		return truth(x >= y)
	case opEqual:
		return truth(x == y)
	case opNotEqual:
		return truth(x != y)
	case opXor:
		return truth((x != 0) != (y != 0))
	}
	return unknown
}

// Eval evaluates the program. in holds the value of each slot, NaN where it is missing.
// It must be longer than the highest of [Program.Slots]. The result is NaN where it is
// unknown, and never infinite. Eval does not allocate, and may be called from several
// goroutines at once.
func (p *Program) Eval(in []float64) float64 {
	if p.alone {
		return finite(in[p.slots[0]]) + 0
	}
	return p.run(in)
}

// run executes the program's steps.
func (p *Program) run(in []float64) float64 {
	var kept [maxSpills]float64 // intermediate results put aside
	var n uint                  // how many
	var a, b float64            // the one being worked on, and what it meets
	code := p.code
	for pc := 0; pc < len(code); pc++ {
		c := &code[pc]
		switch c.from {
		case fromSlot:
			b = finite(in[c.slot])
		case fromNum:
			b = c.num
		case fromKept:
			n--
			b = kept[n%maxSpills]
		}
		switch c.do {
		case load:
			a = b
		case keepLoad:
			kept[n%maxSpills] = a
			n++
			a = b
		case add:
			a = finite(a + b)
		case sub:
			a = finite(a - b)
		case subFrom:
			a = finite(b - a)
		case mul:
			a = finite(a * b)
		case div:
			a = finite(a / b)
		case over:
			a = finite(b / a)
		case lessThan:
			a = less(a, b)
		case greater:
			a = less(b, a)
		case both:
			a = and(a, b)
		case applyLeft:
			a = apply(c.op, a, b)
		case applyRight:
			a = apply(c.op, b, a)
		case negate:
			a = -a
		case branch:
			switch {
			case a == 0:
				pc = int(c.to)
			case a != a:
				pc = int(c.end)
			}
		case jump:
			pc = int(c.to)
		}
	}
	return a + 0 // never -0
}
