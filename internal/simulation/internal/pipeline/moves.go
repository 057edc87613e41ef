package pipeline

// Intel's cores since Ivy Bridge do moves between registers while they rename: both registers
// name one value then. Four values of general registers, and four of vectors, can have
// several names at a time. A further move is executed on a port. A value has one name again
// as soon as the others are overwritten. Source: A. Abel and J. Reineke, "uiCA" (ICS 2022),
// section on move elimination. How many become free in a cycle is not modelled.

// aliases are the values with several names.
type aliases struct {
	value [registers]uint8  // by register: the number of the value that it shares, or 0
	names [maxAliases]uint8 // of each value; 0 is no value
	used  [2]int            // values with several names: of general registers, of vectors
	moved [2]cost           // a move that is executed, of each kind
}

// maxAliases is one more than the values that may have several names.
const maxAliases = 33

// overwrite notes that a register has a value of its own.
func (a *aliases) overwrite(r Register) {
	v := a.value[r]
	if v == 0 {
		return
	}
	a.value[r] = 0
	if a.names[v]--; a.names[v] > 1 {
		return
	}
	kind := kindOf(r)
	for other := range a.value {
		if a.value[other] == v {
			a.value[other] = 0
		}
	}
	a.names[v] = 0
	a.used[kind]--
}

// kindOf returns 0 for a general register and 1 for a vector.
func kindOf(r Register) int {
	if r >= XMM0 {
		return 1
	}
	return 0
}

// eliminate reports whether a move is done while it is renamed.
func (a *aliases) eliminate(to, from Register, slots int) bool {
	if to == from {
		return false
	}
	a.overwrite(to)
	v := a.value[from]
	if v == 0 {
		kind := kindOf(from)
		if a.used[kind] >= slots {
			return false
		}
		v = 1
		for int(v) < maxAliases-1 && a.names[v] != 0 {
			v++
		}
		a.used[kind]++
		a.value[from], a.names[v] = v, 1
	}
	a.value[to] = v
	a.names[v]++
	return true
}

// costOf returns what an op costs. Moves that find no free place are executed.
func (m *Machine) costOf(op *Op) *cost {
	k := &m.core.costs[op.form]
	if m.core.moves == 0 {
		return k
	}
	if (op.Class == Move || op.Class == VecMove) && k.ops == 0 && k.ports != 0 && op.writes[0] != NoRegister {
		if m.aliases.eliminate(op.writes[0], op.second, m.core.moves) {
			return k
		}
		e := &m.aliases.moved[kindOf(op.writes[0])]
		*e = *k
		e.ops, e.latency = 1, 1
		return e
	}
	if m.aliases.used == [2]int{} {
		return k
	}
	for _, r := range op.writes {
		if r == NoRegister {
			break
		}
		m.aliases.overwrite(r)
	}
	return k
}
