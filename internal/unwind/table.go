package unwind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// A Section is the contents of a section, and the address that it is loaded at.
type Section struct {
	Data []byte
	Addr uint64
}

// Sections are those of a file that say how to unwind; each may be absent.
type Sections struct {
	Arch    string // Go's name for the instruction set
	Order   binary.ByteOrder
	EHFrame Section
	Header  Section // .eh_frame_hdr
	SFrame  Section
	// Debug returns .debug_frame. It is asked for if the others have nothing for an address:
	// it may have to be decompressed.
	Debug func() []byte
}

// A Table finds the rows of a file's addresses.
type Table struct {
	s       Sections
	machine *Machine
	eh      frameSection
	debug   frameSection
	sframe  *sframe
	rows    map[string]*Row // those that are in use, by their contents
	key     []byte
}

// ErrMachine is the error of a file whose instruction set is not supported.
var ErrMachine = errors.New("stacks of this processor cannot be unwound")

// New returns the table of a file.
func New(s Sections) (*Table, error) {
	k := MachineOf(s.Arch)
	if k == nil || s.Order == nil {
		return nil, ErrMachine
	}
	t := &Table{s: s, machine: k, rows: map[string]*Row{}}
	t.eh = frameSection{t: t, Section: s.EHFrame, isEH: true}
	t.debug = frameSection{t: t}
	t.sframe = openSFrame(s.SFrame, s.Order, k)
	return t, nil
}

// Lacks says what of the file is not used, or "".
func (t *Table) Lacks() string {
	if t.sframe != nil || len(t.s.SFrame.Data) == 0 {
		return ""
	}
	c := cursor{data: t.s.SFrame.Data, order: t.s.Order}
	if c.number(2) == sframeMagic {
		if version := c.u8(); version < 1 || version > 3 {
			return fmt.Sprintf(".sframe has version %d, and is not read: versions 1 to 3 are known", version)
		}
	}
	return ".sframe is damaged, and is not read"
}

// Row returns the row of an address; nil if there is none.
func (t *Table) Row(addr uint64) *Row {
	if row := t.eh.row(addr); row != nil {
		return row
	}
	if row := t.sframe.row(addr, t); row != nil {
		return row
	}
	if t.s.Debug != nil {
		t.debug.Data, t.s.Debug = t.s.Debug(), nil
	}
	return t.debug.row(addr)
}

// mostRows bounds the rows that are shared.
const mostRows = 1 << 16

// share returns a row that is equal to one, and in use.
func (t *Table) share(row *Row) *Row {
	b := appendRule(t.key[:0], uint16(row.column), row.cfa)
	if row.Signal {
		b = append(b, 1)
	}
	for i := range row.rules {
		b = appendRule(b, row.rules[i].register, row.rules[i].rule)
	}
	t.key = b
	if known := t.rows[string(b)]; known != nil {
		return known
	}
	if len(t.rows) >= mostRows {
		clear(t.rows)
	}
	own := *row
	own.rules = slices.Clone(row.rules)
	own.cfa.expr = bytes.Clone(row.cfa.expr) // the file may be closed
	for i := range own.rules {
		own.rules[i].expr = bytes.Clone(own.rules[i].expr)
	}
	t.rows[string(b)] = &own
	return &own
}

func appendRule(b []byte, register uint16, r rule) []byte {
	b = binary.LittleEndian.AppendUint16(b, register)
	b = append(b, byte(r.kind))
	b = binary.LittleEndian.AppendUint16(b, r.reg)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.expr)))
	return append(b, r.expr...)
}

// A frameSection is .eh_frame or .debug_frame.
type frameSection struct {
	Section
	t       *Table
	isEH    bool
	indexed bool
	index   []fdeRange // by address; of .eh_frame only if .eh_frame_hdr has no index
	cies    map[int]*cie
	header  int // entries of the index in .eh_frame_hdr
	entries int // where they begin
}

// A fdeRange is the addresses that an entry is about.
type fdeRange struct {
	low, high uint64
	at        int
}

// Encodings of the index in .eh_frame_hdr that linkers write: offsets of 4 bytes.
const (
	headerCount = 0x03
	headerIndex = 0x3b
)

// row returns the row of an address.
func (f *frameSection) row(addr uint64) *Row {
	if len(f.Data) == 0 {
		return nil
	}
	if !f.indexed {
		f.indexed = true
		if !f.isEH || !f.openHeader() {
			f.walk()
		}
	}
	at, ok := f.find(addr)
	if !ok {
		return nil
	}
	fde, ok := f.fde(at)
	if !ok || addr < fde.low || addr >= fde.high {
		return nil
	}
	return f.execute(fde, addr)
}

// openHeader reads the start of .eh_frame_hdr. It is false if that has no index to use.
func (f *frameSection) openHeader() bool {
	h := f.t.s.Header
	c := cursor{data: h.Data, order: f.t.s.Order}
	if c.u8() != 1 {
		return false
	}
	frame, count, index := c.u8(), c.u8(), c.u8()
	if frame == pointerOmitted || count != headerCount || index != headerIndex {
		return false
	}
	c.pointer(frame, h.Addr, h.Addr, f.t.machine.word)
	n := int(uint32(c.number(4)))
	if c.bad || n == 0 {
		return false
	}
	f.entries, f.header = c.at, min(n, (len(h.Data)-c.at)/8)
	return true
}

// find returns the entry that may be about an address.
func (f *frameSection) find(addr uint64) (int, bool) {
	if f.header > 0 {
		h := f.t.s.Header
		word := func(i int) uint64 {
			return h.Addr + uint64(int64(int32(f.t.s.Order.Uint32(h.Data[f.entries+4*i:]))))
		}
		i := sort.Search(f.header, func(i int) bool { return word(2*i) > addr }) - 1
		if i < 0 {
			return 0, false
		}
		at := word(2*i+1) - f.Addr
		return int(at), at < uint64(len(f.Data))
	}
	i := sort.Search(len(f.index), func(i int) bool { return f.index[i].low > addr }) - 1
	// Ranges overlap in wrong tables only: look at a few.
	for n := 0; i >= 0 && n < 4; i, n = i-1, n+1 {
		if addr < f.index[i].high {
			return f.index[i].at, true
		}
	}
	return 0, false
}

// walk indexes all entries.
func (f *frameSection) walk() {
	for at := 0; at < len(f.Data); {
		e, ok := f.entry(at)
		if !ok || e.end <= at {
			break
		}
		if !e.isCIE {
			if fde, ok := f.fde(at); ok && fde.low < fde.high && fde.low > 0 {
				f.index = append(f.index, fdeRange{fde.low, fde.high, at})
			}
		}
		at = e.end
	}
	// It keeps the program smaller than slices.SortFunc, and the list is mostly sorted.
	sort.Slice(f.index, func(i, j int) bool { return f.index[i].low < f.index[j].low })
}

// An entryHead is the start of an entry of the section.
type entryHead struct {
	body, end int
	cie       int // where the CIE is, of an FDE
	isCIE     bool
}

// entry reads the start of an entry. It is not ok at the end.
func (f *frameSection) entry(at int) (e entryHead, ok bool) {
	c := cursor{data: f.Data, at: at, order: f.t.s.Order}
	length, wide := c.number(4), false
	if length == 0xffffffff {
		length, wide = c.number(8), true
	}
	if c.bad || length == 0 || length > uint64(len(f.Data)-c.at) {
		return e, false
	}
	e.end = c.at + int(length)
	id, own := uint64(0), c.at
	if wide && !f.isEH {
		id = c.number(8)
	} else {
		id = c.number(4)
	}
	e.body = c.at
	switch {
	case f.isEH && id == 0, !f.isEH && (id == 0xffffffff && !wide || id == ^uint64(0)):
		e.isCIE = true
	case f.isEH:
		e.cie = own - int(id)
	default:
		e.cie = int(id)
	}
	return e, !c.bad && e.body <= e.end && e.cie >= 0 && e.cie < len(f.Data)
}
