package metric

// Kind is why a value is unknown.
type Kind string

// The kinds of [Reason].
const (
	None         Kind = "" // it is known
	Missing      Kind = "missing input"
	ZeroDivision Kind = "division by zero"
	Overflow     Kind = "overflow" // something is infinite
)

// A Reason says why a value is unknown. Of several kinds of reason, Kind is the
// first in the order Missing, ZeroDivision, Overflow; Slots and Text have the
// details.
type Reason struct {
	Kind  Kind
	Slots []int  // the missing inputs that matter, in the order of the formula
	Text  string // the division by 0, else the part that is infinite; "" if neither
}

// Why says why Eval(in) is NaN; its Kind is None if it is not. It is much slower
// than Eval.
func (p *Program) Why(in []float64) Reason {
	w := &inquiry{program: p, in: in, values: make(map[*Expr]float64), seen: make(map[int]bool)}
	if v := w.value(p.expr); v == v {
		return Reason{}
	}
	w.blame(p.expr)
	r := Reason{Slots: w.missing}
	for _, part := range []*Expr{w.division, w.overflow} {
		if part != nil {
			r.Text = part.String()
			break
		}
	}
	switch {
	case w.missing != nil:
		r.Kind = Missing
	case w.division != nil:
		r.Kind = ZeroDivision
	default:
		r.Kind = Overflow
	}
	return r
}

// An inquiry looks for what makes a value unknown.
type inquiry struct {
	program *Program
	in      []float64
	values  map[*Expr]float64 // of the operations that were evaluated
	seen    map[int]bool      // slots in missing

	missing            []int
	division, overflow *Expr // the first of each
}

// value evaluates e as Eval does, but each part by itself.
func (w *inquiry) value(e *Expr) float64 {
	switch e.op {
	case opNumber:
		return e.num
	case opName:
		return finite(w.in[w.program.slot[e.text]])
	}
	v, ok := w.values[e]
	if !ok {
		v = w.operation(e)
		w.values[e] = v
	}
	return v
}

func (w *inquiry) operation(e *Expr) float64 {
	switch e.op {
	case opNeg:
		return -w.value(e.x)
	case opIf:
		return w.value(w.decisive(e)) // of an unknown condition: itself, unknown
	}
	return apply(e.op, w.value(e.x), w.value(e.y))
}

// blame notes what makes e unknown, which it is.
func (w *inquiry) blame(e *Expr) {
	switch {
	case e.op == opName:
		w.blameInput(e)
		return
	case e.op == opIf:
		w.blame(w.decisive(e))
		return
	}
	innocent := true // of the operands, none is unknown
	for _, operand := range []*Expr{e.x, e.y} {
		if operand == nil {
			continue
		}
		if v := w.value(operand); v != v {
			innocent = false
			w.blame(operand)
		}
	}
	if !innocent {
		return
	}
	dividing := e.op == opDiv || e.op == opRatio || e.op == opMod
	if dividing && (e.op == opMod || w.value(e.y) == 0) {
		first(&w.division, e)
	} else {
		first(&w.overflow, e)
	}
}

// decisive returns the part that makes a choice unknown: the condition, or the
// branch that it takes.
func (w *inquiry) decisive(e *Expr) *Expr {
	switch cond := w.value(e.y); {
	case cond != cond:
		return e.y
	case cond != 0:
		return e.x
	}
	return e.z
}

func (w *inquiry) blameInput(e *Expr) {
	slot := w.program.slot[e.text]
	switch v := w.in[slot]; {
	case v == v:
		first(&w.overflow, e)
	case !w.seen[slot]:
		w.seen[slot] = true
		w.missing = append(w.missing, slot)
	}
}

// first sets *at to e unless it is set.
func first(at **Expr, e *Expr) {
	if *at == nil {
		*at = e
	}
}
