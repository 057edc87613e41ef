package object

// A lzmaDecoder decodes LZMA2 chunks. Source of the formats: the xz-file-format and the LZMA
// specification of Igor Pavlov's LZMA SDK.
type lzmaDecoder struct {
	in    []byte
	out   []byte // it is the dictionary as well
	start int    // of the block in out
	limit int    // of out

	// The range coder.
	code   []byte // of the chunk
	value  uint32
	width  uint32
	bad    bool
	lc, lp uint
	pb     uint

	state    int
	distance [4]uint32 // the last ones, less 1
	probs    lzmaProbs
	literals []uint16
}

// Sizes of LZMA's tables.
const (
	lzmaStates    = 12
	lzmaHalf      = 1 << 10
	lzmaTop       = 1 << 24
	lzmaMatchLeft = 2 // the shortest match
	lzmaLenStates = 4
	lzmaEndModel  = 14
)

// A lzmaLength has the probabilities of lengths.
type lzmaLength struct {
	choice, choice2 uint16
	low, mid        [16][8]uint16
	high            [256]uint16
}

type lzmaProbs struct {
	match      [lzmaStates][16]uint16
	rep        [lzmaStates]uint16
	repG0      [lzmaStates]uint16
	repG1      [lzmaStates]uint16
	repG2      [lzmaStates]uint16
	rep0Long   [lzmaStates][16]uint16
	slots      [lzmaLenStates][64]uint16
	special    [128]uint16
	align      [16]uint16
	length     lzmaLength
	repeatedly lzmaLength
}

func fill(list []uint16) {
	for i := range list {
		list[i] = lzmaHalf
	}
}

func (l *lzmaLength) reset() {
	l.choice, l.choice2 = lzmaHalf, lzmaHalf
	for i := range l.low {
		fill(l.low[i][:])
		fill(l.mid[i][:])
	}
	fill(l.high[:])
}

// reset begins a new state of the coder.
func (d *lzmaDecoder) reset() {
	p := &d.probs
	d.state, d.distance = 0, [4]uint32{}
	for i := range lzmaStates {
		fill(p.match[i][:])
		fill(p.rep0Long[i][:])
	}
	for _, list := range [][]uint16{p.rep[:], p.repG0[:], p.repG1[:], p.repG2[:], p.special[:], p.align[:]} {
		fill(list)
	}
	for i := range p.slots {
		fill(p.slots[i][:])
	}
	p.length.reset()
	p.repeatedly.reset()
	d.literals = make([]uint16, 0x300<<(d.lc+d.lp))
	fill(d.literals)
}

// lzma2 decodes the chunks of a block.
func (d *lzmaDecoder) lzma2() bool {
	known := false // the properties
	for {
		if len(d.in) == 0 {
			return false
		}
		control := d.in[0]
		switch {
		case control == 0:
			d.in = d.in[1:]
			return true
		case control == 1 || control == 2:
			if len(d.in) < 3 {
				return false
			}
			n := int(d.in[1])<<8 + int(d.in[2]) + 1
			if n > len(d.in)-3 || len(d.out)+n > d.limit {
				return false
			}
			if control == 1 {
				d.start = len(d.out)
			}
			d.out = append(d.out, d.in[3:3+n]...)
			d.in = d.in[3+n:]
			continue
		case control < 0x80 || len(d.in) < 6:
			return false
		}
		size := int(control&0x1f)<<16 + int(d.in[1])<<8 + int(d.in[2]) + 1
		packed := int(d.in[3])<<8 + int(d.in[4]) + 1
		at := 5
		mode := control >> 5 & 3 // what begins anew: nothing, state, and properties, and dictionary
		if mode == 3 {
			d.start = len(d.out)
		}
		if mode >= 2 {
			if !d.properties(d.in[5]) {
				return false
			}
			at, known = 6, true
		}
		if !known || packed > len(d.in)-at || packed < 5 || len(d.out)+size > d.limit {
			return false
		}
		if mode >= 1 {
			d.reset()
		}
		d.code = d.in[at : at+packed]
		d.in = d.in[at+packed:]
		if !d.chunk(len(d.out) + size) {
			return false
		}
	}
}

// properties sets the numbers of bits of contexts.
func (d *lzmaDecoder) properties(b byte) bool {
	if b >= 9*5*5 {
		return false
	}
	d.lc, d.lp, d.pb = uint(b%9), uint(b/9%5), uint(b/45)
	return d.lc+d.lp <= 4
}

// bit decodes a bit.
func (d *lzmaDecoder) bit(p *uint16) uint32 {
	bound := d.width >> 11 * uint32(*p)
	bit := uint32(0)
	if d.value < bound {
		d.width = bound
		*p += (1<<11 - *p) >> 5
	} else {
		d.width -= bound
		d.value -= bound
		*p -= *p >> 5
		bit = 1
	}
	d.normalise()
	return bit
}

func (d *lzmaDecoder) normalise() {
	if d.width >= lzmaTop {
		return
	}
	d.width <<= 8
	d.value <<= 8
	if len(d.code) == 0 {
		d.bad = true
		return
	}
	d.value |= uint32(d.code[0])
	d.code = d.code[1:]
}

// direct decodes bits of equal probability.
func (d *lzmaDecoder) direct(n uint) (v uint32) {
	for range n {
		d.width >>= 1
		bit := uint32(0)
		if d.value >= d.width {
			d.value -= d.width
			bit = 1
		}
		v = v<<1 | bit
		d.normalise()
	}
	return v
}

// tree decodes a number of so many bits, the highest first.
func (d *lzmaDecoder) tree(probs []uint16, bits uint) uint32 {
	m := uint32(1)
	for range bits {
		m = m<<1 | d.bit(&probs[m])
	}
	return m - 1<<bits
}

// reverse is tree with the lowest bit first.
func (d *lzmaDecoder) reverse(probs []uint16, bits uint) (v uint32) {
	m := uint32(1)
	for i := range bits {
		b := d.bit(&probs[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

func (d *lzmaDecoder) lengthOf(l *lzmaLength, position uint32) int {
	switch {
	case d.bit(&l.choice) == 0:
		return int(d.tree(l.low[position][:], 3))
	case d.bit(&l.choice2) == 0:
		return 8 + int(d.tree(l.mid[position][:], 3))
	}
	return 16 + int(d.tree(l.high[:], 8))
}

// chunk decodes up to the end of a chunk.
func (d *lzmaDecoder) chunk(end int) bool {
	if d.code[0] != 0 {
		return false
	}
	d.width, d.value, d.bad = 1<<32-1, 0, false
	for _, b := range d.code[1:5] {
		d.value = d.value<<8 | uint32(b)
	}
	d.code = d.code[5:]
	for len(d.out) < end && !d.bad {
		position := uint32(len(d.out)-d.start) & (1<<d.pb - 1)
		if d.bit(&d.probs.match[d.state][position]) == 0 {
			d.literal()
			continue
		}
		length, ok := d.match(position)
		if !ok {
			return false
		}
		if length > 0 && !d.repeat(length, end) {
			return false
		}
	}
	return !d.bad
}

// literal decodes a byte.
func (d *lzmaDecoder) literal() {
	before := uint32(0)
	if len(d.out) > d.start {
		before = uint32(d.out[len(d.out)-1])
	}
	at := uint32(len(d.out)-d.start)&(1<<d.lp-1)<<d.lc | before>>(8-d.lc)
	probs := d.literals[0x300*at:][:0x300]
	m := uint32(1)
	if d.state >= 7 {
		from := len(d.out) - 1 - int(d.distance[0])
		if from < d.start {
			d.bad = true
			return
		}
		match := uint32(d.out[from])
		for m < 0x100 {
			expected := match >> 7 & 1
			match <<= 1
			b := d.bit(&probs[(1+expected)<<8+m])
			if m = m<<1 | b; b != expected {
				break
			}
		}
	}
	for m < 0x100 {
		m = m<<1 | d.bit(&probs[m])
	}
	d.out = append(d.out, byte(m))
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
}

// match decodes a match, and returns its length; 0 for one of a byte, which it adds. It is
// not ok at a mark of the end, which LZMA2 does not have.
func (d *lzmaDecoder) match(position uint32) (length int, ok bool) {
	p, s := &d.probs, d.state
	after := func(match, other int) {
		if d.state = match; s >= 7 {
			d.state = other
		}
	}
	if d.bit(&p.rep[s]) == 0 {
		d.distance[3], d.distance[2], d.distance[1] = d.distance[2], d.distance[1], d.distance[0]
		length = d.lengthOf(&p.length, position)
		after(7, 10)
		d.distance[0] = d.far(length)
		return length + lzmaMatchLeft, d.distance[0] != 1<<32-1
	}
	if d.bit(&p.repG0[s]) == 0 {
		if d.bit(&p.rep0Long[s][position]) == 0 {
			after(9, 11)
			return 0, d.repeat(1, len(d.out)+1)
		}
	} else {
		i := 1
		if d.bit(&p.repG1[s]) != 0 {
			i = 2 + int(d.bit(&p.repG2[s]))
		}
		of := d.distance[i]
		copy(d.distance[1:i+1], d.distance[:i])
		d.distance[0] = of
	}
	length = d.lengthOf(&p.repeatedly, position)
	after(8, 11)
	return length + lzmaMatchLeft, true
}

// far decodes a distance.
func (d *lzmaDecoder) far(length int) uint32 {
	slot := d.tree(d.probs.slots[min(length, lzmaLenStates-1)][:], 6)
	if slot < 4 {
		return slot
	}
	bits := uint(slot>>1 - 1)
	v := (2 | slot&1) << bits
	if slot < lzmaEndModel {
		return v + d.reverse(d.probs.special[v-slot:], bits)
	}
	v += d.direct(bits-4) << 4
	return v + d.reverse(d.probs.align[:], 4)
}

// repeat copies bytes from the last distance. It is false if that is before the start, or if
// the copy exceeds the chunk.
func (d *lzmaDecoder) repeat(length, end int) bool {
	from := len(d.out) - 1 - int(d.distance[0])
	if from < d.start || len(d.out)+length > end {
		return false
	}
	for i := range length {
		d.out = append(d.out, d.out[from+i])
	}
	return true
}
