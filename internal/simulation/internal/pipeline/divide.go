package pipeline

import "math/bits"

// divided returns the cost of an integer division. Its divider works the longer, the more
// bits the quotient has. If the operands are not known, the quotient has half of the bits.
func (m *Machine) divided(op *Op, k *cost) cost {
	d := *k
	width := 8 * int(op.Width)
	n := width / 2
	if m.values.same != 0 {
		n = min(m.values.quotientBits(op), width)
	}
	between := func(least, most uint8) uint8 { return least + uint8((int(most)-int(least))*n/width) }
	d.latency, d.hold = between(k.leastLatency, k.latency), between(k.leastHold, k.hold)
	return d
}

// quotientBits returns how many bits the quotient of a division has.
func (v *values) quotientBits(op *Op) int {
	divisor := v.registers[op.reads[0]]
	if op.Loads {
		divisor = v.registers[inMemory]
	}
	mask := low(op.Width)
	high, dividend := v.registers[RDX]&mask, v.registers[RAX]&mask
	if divisor &= mask; op.Class >= IDiv8 && high == mask {
		high, dividend = 0, -dividend&mask
	}
	n := bits.Len64(dividend)
	if high != 0 && op.Width > 1 {
		n = 8*int(op.Width) + bits.Len64(high)
	}
	return max(n-bits.Len64(divisor), 0)
}
