package unwind

import (
	"encoding/binary"
	"sort"
)

// An sframe is a section .sframe: for each function the places where its frame changes, in
// few bytes. Versions 1 (binutils 2.40) and 2 are known.
type sframe struct {
	Section
	order   binary.ByteOrder
	machine *Machine
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
	f := &sframe{Section: s, order: order, machine: k, sorted: flags&sframeSorted != 0, own: flags&sframeOwn != 0}
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
	start := f.Addr + uint64(int64(int32(f.order.Uint32(f.Data[at:]))))
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
	c := cursor{data: f.Data, at: f.fdes + i*f.size + 4, order: f.order}
	size, first, count, info := c.number(4), c.number(4), c.number(4), c.u8()
	repeat := uint64(0)
	if f.size == 20 {
		repeat = uint64(c.u8())
	}
	offset := addr - f.start(i)
	if c.bad || offset >= size || first > uint64(f.behind-f.fres) || count > uint64(f.behind-f.fres) {
		return nil
	}
	if info>>4&1 == 1 && repeat > 0 { // the same for each piece of so many bytes, as of .plt
		offset %= repeat
	}
	changes := cursor{data: f.Data[:f.behind], at: f.fres + int(first), order: f.order}
	return f.change(&changes, int(count), 1<<(info&3), offset, t)
}

// change returns the row of the last change up to an offset.
func (f *sframe) change(c *cursor, count, width int, offset uint64, t *Table) *Row {
	var row *Row
	for range count {
		start, info := c.number(width), c.u8()
		n, size := int(info>>1&0xf), 1<<(info>>5&3)
		var values [3]int64
		for i := range n {
			if v := c.signed(size); i < len(values) {
				values[i] = v
			}
		}
		if c.bad || width > 4 || size > 4 {
			return nil
		}
		if start > offset {
			break
		}
		if row = f.rowOf(info, n, values); row == nil {
			return nil
		}
	}
	if row == nil {
		return nil
	}
	return t.share(row)
}

// rowOf makes a row of a change. Its offsets are those of the CFA, the return address and the
// frame pointer. The second is absent where its place is fixed.
func (f *sframe) rowOf(info byte, n int, values [3]int64) *Row {
	k := f.machine
	if n == 0 || n > len(values) {
		return nil // the outermost function, in newer versions
	}
	row := &Row{machine: k, column: k.Return, cfa: rule{kind: ruleRegister, reg: uint16(k.FP), offset: values[0]}}
	if info&1 != 0 {
		row.cfa.reg = uint16(k.SP)
	}
	saved := values[1:n]
	add := func(register int, offset int64) {
		row.rules = append(row.rules, registerRule{uint16(register), rule{kind: ruleOffset, offset: offset}})
	}
	switch {
	case f.fixedRA != 0:
		add(k.Return, f.fixedRA)
	case len(saved) > 0:
		add(k.Return, saved[0])
		saved = saved[1:]
	}
	switch {
	case f.fixedFP != 0:
		add(k.FP, f.fixedFP)
	case len(saved) > 0:
		add(k.FP, saved[0])
	}
	return row
}
