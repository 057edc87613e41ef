package unwind

import "bytes"

// A cie is what entries have in common.
type cie struct {
	code       uint64 // alignment factors
	data       int64
	column     int
	encoding   byte // of addresses
	augmented  bool // entries have augmentation data
	signal     bool
	start, end int  // of the initial instructions
	size       int  // of addresses
	ok         bool // it was understood
}

// An fde is an entry for a range of addresses.
type fde struct {
	low, high  uint64
	cie        *cie
	start, end int // of the instructions
}

// mostCIEs bounds those that are remembered.
const mostCIEs = 1 << 12

// common returns the CIE at a place.
func (f *frameSection) common(at int) *cie {
	if k, ok := f.cies[at]; ok {
		return k
	}
	if f.cies == nil || len(f.cies) >= mostCIEs {
		f.cies = map[int]*cie{}
	}
	k := f.readCIE(at)
	f.cies[at] = k
	return k
}

func (f *frameSection) readCIE(at int) *cie {
	k := &cie{size: f.t.machine.word}
	e, ok := f.entry(at)
	if !ok || !e.isCIE {
		return k
	}
	c := cursor{data: f.Data[:e.end], at: e.body, order: f.t.s.Order}
	version := c.u8()
	augmentation := c.text()
	if bytes.HasPrefix([]byte(augmentation), []byte("eh")) || version != 1 && version != 3 && version != 4 {
		return k
	}
	if version == 4 {
		k.size = int(c.u8())
		if segment := c.u8(); segment != 0 || k.size != f.t.machine.word {
			return k
		}
	}
	k.code, k.data = c.uleb(), c.sleb()
	if version == 1 {
		k.column = int(c.u8())
	} else {
		k.column = int(min(c.uleb(), registers))
	}
	k.ok = f.augment(k, augmentation, &c) && !c.bad && k.column < registers
	k.start, k.end = c.at, e.end
	return k
}

// augment reads the augmentation of a CIE. It is false for one that is not known.
func (f *frameSection) augment(k *cie, augmentation string, c *cursor) bool {
	if augmentation == "" {
		return true
	}
	if augmentation[0] != 'z' {
		return false
	}
	k.augmented = true
	size := c.uleb()
	if size > uint64(len(c.data)-c.at) {
		return false
	}
	behind := c.at + int(size)
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'R':
			k.encoding = c.u8()
		case 'L':
			c.u8()
		case 'P': // the address of the personality routine, which may be indirect
			encoding := c.u8()
			if encoding != pointerOmitted {
				c.pointer(encoding&^pointerIndirect, f.Addr, 0, k.size)
			}
		case 'S':
			k.signal = true
		case 'B', 'G': // Arm's key of signatures, and tagged stacks
		}
	}
	c.at = behind
	return true
}

// fde reads the entry at a place.
func (f *frameSection) fde(at int) (d fde, ok bool) {
	e, ok := f.entry(at)
	if !ok || e.isCIE {
		return d, false
	}
	d.cie = f.common(e.cie)
	if !d.cie.ok {
		return d, false
	}
	c := cursor{data: f.Data[:e.end], at: e.body, order: f.t.s.Order}
	d.low = c.pointer(d.cie.encoding, f.Addr, f.t.s.Header.Addr, d.cie.size)
	size := c.pointer(d.cie.encoding&0x0f, f.Addr, 0, d.cie.size)
	d.high = d.low + size
	if d.cie.augmented {
		n := c.uleb()
		if n > uint64(len(c.data)-c.at) {
			return d, false
		}
		c.at += int(n)
	}
	d.start, d.end = c.at, e.end
	return d, !c.bad && d.high >= d.low
}

// Instructions of call frame information (DWARF 5, 7.24), with GNU's and Arm's.
const (
	cfaAdvance         = 0x40 // in the two high bits
	cfaOffset          = 0x80
	cfaRestore         = 0xc0
	cfaNop             = 0x00
	cfaSetLoc          = 0x01
	cfaAdvance1        = 0x02
	cfaAdvance2        = 0x03
	cfaAdvance4        = 0x04
	cfaOffsetExtended  = 0x05
	cfaRestoreExtended = 0x06
	cfaUndefined       = 0x07
	cfaSameValue       = 0x08
	cfaRegister        = 0x09
	cfaRememberState   = 0x0a
	cfaRestoreState    = 0x0b
	cfaDefCFA          = 0x0c
	cfaDefCFARegister  = 0x0d
	cfaDefCFAOffset    = 0x0e
	cfaDefExpression   = 0x0f
	cfaExpression      = 0x10
	cfaOffsetSigned    = 0x11
	cfaDefCFASigned    = 0x12
	cfaDefOffsetSigned = 0x13
	cfaValOffset       = 0x14
	cfaValOffsetSigned = 0x15
	cfaValExpression   = 0x16
	cfaNegateRA        = 0x2d // of Arm; GNU's window save of Sparc
	cfaArgsSize        = 0x2e
	cfaNegativeOffset  = 0x2f
)

// Bounds of an entry: states that are remembered at a time, instructions, and bytes of an
// expression.
const (
	mostStates       = 64
	mostInstructions = 1 << 17
	mostBlock        = 1 << 12
)

// A program is the instructions of an entry at work.
type program struct {
	cursor
	f       *frameSection
	cie     *cie
	addr    uint64 // of the row that is being made
	target  uint64
	row     Row
	initial []registerRule
	states  []Row
	done    bool // the row of the target is complete
}

// execute returns the row of an address of an entry.
func (f *frameSection) execute(d fde, addr uint64) *Row {
	p := program{f: f, cie: d.cie, addr: d.low, target: addr, row: Row{machine: f.t.machine, column: d.cie.column, Signal: d.cie.signal}}
	for _, part := range [2][2]int{{d.cie.start, d.cie.end}, {d.start, d.end}} {
		p.cursor = cursor{data: f.Data[:part[1]], at: part[0], order: f.t.s.Order}
		for n := 0; p.at < len(p.data) && !p.bad && !p.done; n++ {
			p.instruction(p.u8())
			p.bad = p.bad || n > mostInstructions
		}
		if p.bad {
			return nil
		}
		if p.initial == nil {
			p.initial = append([]registerRule{}, p.row.rules...)
		}
	}
	return f.t.share(&p.row)
}

// set gives a register a rule.
func (p *program) set(register uint64, r rule) {
	if register > 1<<15 {
		p.bad = true
		return
	}
	for i := range p.row.rules {
		if uint64(p.row.rules[i].register) == register {
			p.row.rules[i].rule = r
			return
		}
	}
	if register < registers { // of others nothing depends
		p.row.rules = append(p.row.rules, registerRule{uint16(register), r})
	}
}

// restore gives a register the rule of the CIE.
func (p *program) restore(register uint64) {
	for i := range p.initial {
		if uint64(p.initial[i].register) == register {
			p.set(register, p.initial[i].rule)
			return
		}
	}
	for i := range p.row.rules {
		if uint64(p.row.rules[i].register) == register {
			p.row.rules = append(p.row.rules[:i:i], p.row.rules[i+1:]...)
			return
		}
	}
}

// advance goes to the next row.
func (p *program) advance(delta uint64) {
	p.addr += delta * p.cie.code
	p.done = p.addr > p.target
}

func (p *program) factored() int64 { return int64(p.uleb()) * p.cie.data }

func (p *program) block() []byte {
	n := p.uleb()
	p.bad = p.bad || n > mostBlock
	return p.take(int(min(n, mostBlock)))
}

// instruction executes one instruction.
func (p *program) instruction(op byte) {
	low := uint64(op & 0x3f)
	switch op & 0xc0 {
	case cfaAdvance:
		p.advance(low)
		return
	case cfaOffset:
		p.set(low, rule{kind: ruleOffset, offset: p.factored()})
		return
	case cfaRestore:
		p.restore(low)
		return
	}
	switch op {
	case cfaNop, cfaNegateRA:
	case cfaArgsSize:
		p.uleb()
	case cfaSetLoc:
		p.addr = p.pointer(p.cie.encoding, p.f.Addr, p.f.t.s.Header.Addr, p.cie.size)
		p.done = p.addr > p.target
	case cfaAdvance1:
		p.advance(p.number(1))
	case cfaAdvance2:
		p.advance(p.number(2))
	case cfaAdvance4:
		p.advance(p.number(4))
	case cfaRememberState:
		if p.bad = p.bad || len(p.states) >= mostStates; !p.bad {
			s := p.row
			s.rules = append([]registerRule{}, p.row.rules...)
			p.states = append(p.states, s)
		}
	case cfaRestoreState:
		if p.bad = p.bad || len(p.states) == 0; !p.bad {
			p.row = p.states[len(p.states)-1]
			p.states = p.states[:len(p.states)-1]
		}
	default:
		if op >= cfaDefCFA && op <= cfaDefExpression || op == cfaDefCFASigned || op == cfaDefOffsetSigned {
			p.define(op)
			return
		}
		p.registerRule(op)
	}
}

// define executes an instruction about the CFA.
func (p *program) define(op byte) {
	cfa := &p.row.cfa
	if op != cfaDefExpression && op != cfaDefCFA && op != cfaDefCFASigned && cfa.kind != ruleRegister {
		p.bad = true
	}
	switch op {
	case cfaDefCFA:
		*cfa = rule{kind: ruleRegister, reg: uint16(min(p.uleb(), registers)), offset: int64(p.uleb())}
	case cfaDefCFASigned:
		*cfa = rule{kind: ruleRegister, reg: uint16(min(p.uleb(), registers)), offset: p.sleb() * p.cie.data}
	case cfaDefCFARegister:
		cfa.reg = uint16(min(p.uleb(), registers))
	case cfaDefCFAOffset:
		cfa.offset = int64(p.uleb())
	case cfaDefOffsetSigned:
		cfa.offset = p.sleb() * p.cie.data
	case cfaDefExpression:
		*cfa = rule{kind: ruleComputed, expr: p.block()}
	}
}

// registerRule executes an instruction about one register.
func (p *program) registerRule(op byte) {
	register := p.uleb()
	switch op {
	case cfaOffsetExtended:
		p.set(register, rule{kind: ruleOffset, offset: p.factored()})
	case cfaOffsetSigned:
		p.set(register, rule{kind: ruleOffset, offset: p.sleb() * p.cie.data})
	case cfaNegativeOffset:
		p.set(register, rule{kind: ruleOffset, offset: -p.factored()})
	case cfaValOffset:
		p.set(register, rule{kind: ruleValue, offset: p.factored()})
	case cfaValOffsetSigned:
		p.set(register, rule{kind: ruleValue, offset: p.sleb() * p.cie.data})
	case cfaRestoreExtended:
		p.restore(register)
	case cfaUndefined:
		p.set(register, rule{kind: ruleUndefined})
	case cfaSameValue:
		p.set(register, rule{kind: ruleRegister, reg: uint16(min(register, registers))})
	case cfaRegister:
		p.set(register, rule{kind: ruleRegister, reg: uint16(min(p.uleb(), registers))})
	case cfaExpression:
		p.set(register, rule{kind: ruleExpression, expr: p.block()})
	case cfaValExpression:
		p.set(register, rule{kind: ruleComputed, expr: p.block()})
	default:
		p.bad = true
	}
}
