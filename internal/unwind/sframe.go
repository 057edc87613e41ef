package unwind

import (
	"encoding/binary"
	"sort"
)

// An sframe is a section .sframe: for each function the places where its frame changes, in
// few bytes. Versions 1 (binutils 2.40), 2 and 3 (2.46) are known.
type sframe struct {
	Section
	order   binary.ByteOrder
	machine *Machine
	version byte
	size    int // of an entry of a function
	count   int
	fdes    int // where the functions are
	fres    int // where the changes are
	behind  int // the end of the changes
	fixedRA int64
	fixedFP int64
	own     bool // addresses are relative to where they stand
	sorted  bool
}

// Parts of the format.
const (
	sframeMagic  = 0xdee2
	sframeSorted = 0x1
	sframeOwn    = 0x4
	sframeHeader = 28
	mostUnsorted = 1 << 12 // functions that are looked through one by one
)

// openSFrame reads the header of a section. It returns nil for one of another version.
func openSFrame(s Section, order binary.ByteOrder, k *Machine) *sframe {
	c := cursor{data: s.Data, order: order}
	magic, version, flags := c.number(2), c.u8(), c.u8()
	arch := c.u8()
	f := &sframe{Section: s, order: order, machine: k, version: version, sorted: flags&sframeSorted != 0, own: flags&sframeOwn != 0}
	f.fixedFP, f.fixedRA = c.signed(1), c.signed(1)
	extra := int(c.u8())
	f.count = int(uint32(c.number(4)))
	c.number(4)
	length := int(uint32(c.number(4)))
	fdes, fres := int(uint32(c.number(4))), int(uint32(c.number(4)))
	switch {
	case c.bad || magic != sframeMagic || (arch == 3) != !k.arm64 || arch < 2 || arch > 3: // 2 is Arm's, little endian
		return nil
	case version == 1:
		f.size = 17
	case version == 2:
		f.size = 20
	case version == 3:
		f.size = 16
	default:
		return nil
	}
	if !f.sorted && f.count > mostUnsorted {
		return nil
	}
	begin := sframeHeader + extra
	f.fdes, f.fres = begin+fdes, begin+fres
	f.behind = f.fres + length
	if f.fdes > len(s.Data) || f.fres > len(s.Data) || f.behind > len(s.Data) || f.count > (len(s.Data)-f.fdes)/f.size {
		return nil
	}
	return f
}

// start returns where a function starts.
func (f *sframe) start(i int) uint64 {
	at := f.fdes + i*f.size
	start := f.Addr
	if f.version < 3 {
		start += uint64(int64(int32(f.order.Uint32(f.Data[at:]))))
	} else {
		start += f.order.Uint64(f.Data[at:])
	}
	if f.own {
		start += uint64(at)
	}
	return start
}

// row returns the row of an address.
func (f *sframe) row(addr uint64, t *Table) *Row {
	if f == nil {
		return nil
	}
	i := -1
	if f.sorted {
		i = sort.Search(f.count, func(i int) bool { return f.start(i) > addr }) - 1
	} else {
		for n := range f.count {
			if start := f.start(n); start <= addr && (i < 0 || start > f.start(i)) {
				i = n
			}
		}
	}
	if i < 0 {
		return nil
	}
	fn, changes, ok := f.function(i)
	offset := addr - f.start(i)
	if !ok || offset >= fn.size {
		return nil
	}
	if fn.info>>4&1 == 1 && fn.repeat > 0 { // the same for each piece of so many bytes, as of .plt
		offset %= fn.repeat
	}
	return f.change(&changes, &fn, offset, t)
}

// An sframeFunction is what is said of a function.
type sframeFunction struct {
	size, count, repeat uint64
	info                byte
	flexible            bool // rows name registers; see flexible
}

// function reads what is said of a function, and returns where its changes begin.
func (f *sframe) function(i int) (fn sframeFunction, changes cursor, ok bool) {
	c := cursor{data: f.Data, at: f.fdes + i*f.size + 4, order: f.order}
	if f.version == 3 {
		c.at += 4
	}
	fn.size = c.number(4)
	first := c.number(4)
	if c.bad || first > uint64(f.behind-f.fres) {
		return fn, c, false
	}
	changes = cursor{data: f.Data[:f.behind], at: f.fres + int(first), order: f.order}
	switch f.version {
	case 3: // they stand before the changes
		fn.count, fn.info = changes.number(2), changes.u8()
		kind := changes.u8() & 0x1f
		fn.flexible, fn.repeat = kind == 1, uint64(changes.u8())
		return fn, changes, !changes.bad && kind <= 1
	case 2:
		fn.count, fn.info, fn.repeat = c.number(4), c.u8(), uint64(c.u8())
	default:
		fn.count, fn.info = c.number(4), c.u8()
	}
	return fn, changes, !c.bad && fn.count <= uint64(f.behind-f.fres)
}

// change returns the row of the last change up to an offset.
func (f *sframe) change(c *cursor, fn *sframeFunction, offset uint64, t *Table) *Row {
	var row *Row
	width := 1 << (fn.info & 3)
	for range fn.count {
		start, info := c.number(width), c.u8()
		n, size := int(info>>1&0xf), 1<<(info>>5&3)
		var values [6]int64
		for i := range n {
			if v := c.signed(size); i < len(values) {
				values[i] = v
			}
		}
		if c.bad || width > 4 || size > 4 || n > len(values) {
			return nil
		}
		if start > offset {
			break
		}
		switch {
		case n == 0 && f.version > 1:
			row = Outermost(f.machine)
		case fn.flexible:
			row = f.flexible(values[:n], 1<<(8*size)-1)
		default:
			row = f.rowOf(info, values[:n])
		}
		if row == nil {
			return nil
		}
	}
	if row == nil {
		return nil
	}
	row.Signal = f.version == 3 && fn.info>>7 == 1
	return t.share(row)
}

// rowOf makes a row of a change. Its offsets are those of the CFA, the return address and the
// frame pointer. The second is absent where its place is fixed.
func (f *sframe) rowOf(info byte, values []int64) *Row {
	k := f.machine
	if len(values) == 0 || len(values) > 3 {
		return nil
	}
	row := &Row{machine: k, column: k.Return, cfa: rule{kind: ruleRegister, reg: uint16(k.FP), offset: values[0]}}
	if info&1 != 0 {
		row.cfa.reg = uint16(k.SP)
	}
	saved := values[1:]
	switch {
	case f.fixedRA != 0:
		row.add(k.Return, rule{kind: ruleOffset, offset: f.fixedRA})
	case len(saved) > 0:
		row.add(k.Return, rule{kind: ruleOffset, offset: saved[0]})
		saved = saved[1:]
	}
	switch {
	case f.fixedFP != 0:
		row.add(k.FP, rule{kind: ruleOffset, offset: f.fixedFP})
	case len(saved) > 0:
		row.add(k.FP, rule{kind: ruleOffset, offset: saved[0]})
	}
	return row
}

func (row *Row) add(register int, r rule) {
	row.rules = append(row.rules, registerRule{uint16(register), r})
}

// Outermost returns the row of a function without a caller.
func Outermost(k *Machine) *Row {
	row := &Row{machine: k, column: k.Return, cfa: rule{kind: ruleRegister, reg: uint16(k.SP)}}
	row.add(k.Return, rule{kind: ruleUndefined})
	return row
}

// flexible makes a row of a change that names registers. The CFA, the return address and the
// frame pointer have two words each: the register with what is done, and the offset. A word of
// 0 stands alone: the value is fixed or stays the same, as if there were no word. Mask has the
// bits of a word. Source: the SFrame format, version 3, flexible FDE type.
func (f *sframe) flexible(words []int64, mask uint64) *Row {
	k := f.machine
	if len(words) < 2 {
		return nil
	}
	row := &Row{machine: k, column: k.Return}
	cfa, ok := sframeRule(uint64(words[0])&mask, words[1])
	switch {
	case !ok || uint64(words[0])&1 == 0:
		return nil // it cannot be relative to itself
	case cfa.kind == ruleExpression:
		cfa.kind, cfa.expr = ruleComputed, append(cfa.expr, opDeref)
	}
	row.cfa = cfa
	words = words[2:]
	for _, of := range []struct {
		register int
		fixed    int64
	}{{k.Return, f.fixedRA}, {k.FP, f.fixedFP}} {
		switch {
		case len(words) >= 2 && words[0] != 0:
			r, ok := sframeRule(uint64(words[0])&mask, words[1])
			if !ok {
				return nil
			}
			row.add(of.register, r)
			words = words[2:]
			continue
		case len(words) > 0 && words[0] == 0:
			words = words[1:]
		}
		if of.fixed != 0 {
			row.add(of.register, rule{kind: ruleOffset, offset: of.fixed})
		}
	}
	if len(words) > 0 {
		return nil
	}
	return row
}

// sframeRule makes a rule of a word and an offset. With bit 0 the base is a register, else the
// CFA. With bit 1 the value is in memory there. The register is above bit 2.
func sframeRule(word uint64, offset int64) (rule, bool) {
	register, memory, number := word&1 != 0, word&2 != 0, word>>3
	switch {
	case !register && memory:
		return rule{kind: ruleOffset, offset: offset}, true
	case !register:
		return rule{kind: ruleValue, offset: offset}, true
	case number >= registers:
		return rule{}, false
	case !memory:
		return rule{kind: ruleRegister, reg: uint16(number), offset: offset}, true
	}
	expr := append([]byte{opBregx, byte(number)}, sleb(offset)...)
	return rule{kind: ruleExpression, expr: expr}, true
}

// sleb is a number in signed LEB128.
func sleb(v int64) (out []byte) {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
