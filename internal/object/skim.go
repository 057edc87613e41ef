package object

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// An entryReader reads entries, as a [dwarf.Reader] does.
type entryReader interface {
	Next() (*dwarf.Entry, error)
	SkipChildren()
}

// A skimmer reads the entries of a unit, with the fields that inlined calls need. Entries without
// addresses of code have no fields, which saves most of the time. An entry is valid until the next.
type skimmer struct {
	full    *dwarf.Reader // for entries with other forms
	data    []byte        // up to the end of the unit
	at      int
	start   uint64   // of the unit
	abbrevs []abbrev // by code; the first one is 0
	addr    int      // bytes of an address, and of an offset
	offset  int
	unit    splitUnit // where addresses and ranges are
	lists   uint64    // what numbers of ranges are relative to
	fields  []dwarf.Field
	entry   dwarf.Entry
}

// An abbrev is the form of entries.
type abbrev struct {
	tag      dwarf.Tag
	children bool
	code     bool // it has an address
	fields   []abbrevField
}

// An abbrevField is the form of an attribute.
type abbrevField struct {
	attr     dwarf.Attr
	form     byte
	wanted   bool
	constant int64 // the value, if the form is formImplicit
}

// wantedFields are the attributes that inlined calls need.
var wantedFields = []dwarf.Attr{dwarf.AttrLowpc, dwarf.AttrHighpc, dwarf.AttrRanges, dwarf.AttrAbstractOrigin, dwarf.AttrCallFile, dwarf.AttrCallLine}

var errSkim = errors.New("an entry is damaged")

// skimmer returns a reader at the first entry of a unit; nil if another one is needed.
func (o *Object) skimmer(u *unit) *skimmer {
	d, order := o.dwarf, o.debugSource().ByteOrder
	head := d.info[u.start:u.position]
	s := &skimmer{full: d.data.Reader(), data: d.info[:u.end], at: int(u.position), start: u.start, offset: 4}
	if order.Uint32(head) == math.MaxUint32 {
		s.offset, head = 8, head[8:]
	}
	version, head := order.Uint16(head[4:]), head[6:]
	if version < 3 || version > 5 {
		return nil
	}
	if version == 5 {
		s.addr, head = int(head[1]), head[2:]
	} else {
		s.addr = int(head[s.offset])
	}
	table := uint64(order.Uint32(head))
	if s.offset == 8 {
		table = order.Uint64(head)
	}
	if d.tables == nil {
		d.tables = map[uint64][]abbrev{}
	}
	ok := false
	if s.abbrevs, ok = d.tables[table]; !ok {
		if all := d.parts[".debug_abbrev"]; table < uint64(len(all)) {
			s.abbrevs = readAbbrevs(all[table:])
		}
		d.tables[table] = s.abbrevs
	}
	if s.abbrevs == nil || s.addr != 8 {
		return nil
	}
	s.unit = splitUnit{order: order, version: version, ranges: d.parts[".debug_ranges"], addrs: behind(d.parts[".debug_addr"], first5(u.entry, dwarf.AttrAddrBase))}
	if version >= 5 {
		s.unit.ranges, s.lists = d.parts[".debug_rnglists"], uint64(first5(u.entry, dwarf.AttrRnglistsBase))
	}
	for _, a := range []dwarf.Attr{dwarf.AttrLowpc, dwarf.AttrEntrypc} { // as package dwarf has it
		if base, ok := u.entry.Val(a).(uint64); ok {
			s.unit.base = base
		}
	}
	return s
}

// readAbbrevs reads a table of abbreviations. It is nil unless these are numbered from 1 on, and
// have known forms.
func readAbbrevs(data []byte) []abbrev {
	list, in, fields := []abbrev{{}}, numbers{data: data}, []abbrevField(nil)
	for id := in.uleb(); id != 0; id = in.uleb() {
		if cap(fields) < cap(list) {
			fields = make([]abbrevField, 0, 2*cap(list)) // for several entries
		}
		a := abbrev{tag: dwarf.Tag(in.uleb()), children: in.uleb() != 0} // a byte, 0 or 1
		for attr, form := in.uleb(), in.uleb(); form != 0; attr, form = in.uleb(), in.uleb() {
			f := abbrevField{attr: dwarf.Attr(attr), form: byte(form)}
			if form == formImplicit {
				f.constant = in.sleb()
			}
			if form >= uint64(len(formSizes)) || formSizes[form] == formUnknown {
				return nil
			}
			f.wanted = slices.Contains(wantedFields, f.attr)
			a.code = a.code || f.attr == dwarf.AttrLowpc || f.attr == dwarf.AttrRanges
			fields = append(fields, f)
		}
		if id != uint64(len(list)) {
			return nil
		}
		a.fields, fields = fields, fields[len(fields):]
		list = append(list, a)
	}
	if in.bad {
		return nil
	}
	return list
}

// Next returns the next entry, nil at the end of the unit.
func (s *skimmer) Next() (e *dwarf.Entry, err error) {
	if s.at >= len(s.data) {
		return nil, nil
	}
	begin := s.at
	a := s.skip()
	if a == nil {
		return nil, errSkim
	}
	s.entry = dwarf.Entry{Offset: dwarf.Offset(begin), Tag: a.tag, Children: a.children}
	if !a.code {
		return &s.entry, nil
	}
	s.fields, s.at = s.fields[:0], begin
	_, n := binary.Uvarint(s.data[begin:])
	s.at += n
	for i := range a.fields {
		f := &a.fields[i]
		size, ok := s.size(f.form)
		if ok && f.wanted {
			ok = s.field(f, s.data[s.at:][:size])
		}
		if s.at += size; !ok {
			s.at = begin
			s.skip()
			s.full.Seek(dwarf.Offset(begin))
			return s.full.Next()
		}
	}
	s.entry.Field = s.fields
	return &s.entry, nil
}

// SkipChildren goes behind the children of the entry that was read last.
func (s *skimmer) SkipChildren() {
	for depth := 1; depth > 0 && s.at < len(s.data); {
		a := s.skip()
		switch {
		case a == nil:
			s.at = len(s.data)
		case a.tag == 0:
			depth--
		case a.children:
			depth++
		}
	}
}

// skip goes behind an entry, and returns its form; nil if it is damaged.
func (s *skimmer) skip() *abbrev {
	id, n := binary.Uvarint(s.data[s.at:])
	if n <= 0 || id >= uint64(len(s.abbrevs)) {
		return nil
	}
	s.at += n
	a := &s.abbrevs[id]
	for i := range a.fields {
		size, ok := s.size(a.fields[i].form)
		if !ok {
			return nil
		}
		s.at += size
	}
	return a
}

// size returns the bytes of a field; false if it is damaged.
func (s *skimmer) size(form byte) (size int, ok bool) {
	data := s.data[s.at:]
	size = int(formSizes[form])
	switch size {
	case formAddr:
		size = s.addr
	case formOffset:
		size = s.offset
	case formLEB:
		for size = 1; size <= len(data) && data[size-1] >= 0x80; {
			size++
		}
	case formText:
		size = bytes.IndexByte(data, 0) + 1
		return size, size > 0
	case formBlock:
		v, more := binary.Uvarint(data)
		if more <= 0 || v > uint64(len(data)) {
			return 0, false
		}
		size = more + int(v)
	case formBlock1:
		if len(data) == 0 {
			return 0, false
		}
		size = 1 + int(data[0])
	}
	return size, size <= len(data)
}

// field reads a field. It returns false if that takes another reader.
func (s *skimmer) field(f *abbrevField, data []byte) bool {
	v, order := uint64(0), s.unit.order
	if formSizes[f.form] == formLEB {
		v, _ = binary.Uvarint(data)
	} else {
		for i := range data {
			at := i
			if order == binary.BigEndian {
				at = len(data) - 1 - i
			}
			v |= uint64(data[at]) << (8 * i)
		}
	}
	out := dwarf.Field{Attr: f.attr, Val: int64(v)}
	switch f.form {
	case formData1, formData2, formData4, formData8, formUdata, formSecOffset:
	case formImplicit:
		out.Val = f.constant
	case formAddress:
		out.Val = v
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4:
		if v >= uint64(len(s.unit.addrs)/8) {
			return false
		}
		out.Val = order.Uint64(s.unit.addrs[8*v:])
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		out.Val = dwarf.Offset(s.start + v)
	case formRefAddr:
		out.Val = dwarf.Offset(v)
	case formRnglistx:
		table := behind(s.unit.ranges, int64(s.lists))
		if s.offset != 4 || v >= uint64(len(table)/4) {
			return false
		}
		out.Val = s.lists + uint64(order.Uint32(table[4*v:]))
	default:
		return false
	}
	s.fields = append(s.fields, out)
	return true
}

// Forms of the fields that are read (DWARF 5, 7.5.6).
const (
	formAddress   = 0x01
	formData2     = 0x05
	formData4     = 0x06
	formData8     = 0x07
	formData1     = 0x0b
	formUdata     = 0x0f
	formRefAddr   = 0x10
	formRef1      = 0x11
	formRef2      = 0x12
	formRef4      = 0x13
	formRef8      = 0x14
	formRefUdata  = 0x15
	formSecOffset = 0x17
	formRnglistx  = 0x23
	formAddrx1    = 0x29
	formAddrx2    = 0x2a
	formAddrx3    = 0x2b
	formAddrx4    = 0x2c
)

// What formSizes has in place of a size.
const (
	formUnknown = 0xff - iota
	formAddr
	formOffset // in a section
	formLEB
	formText
	formBlock  // a number of bytes, and these
	formBlock1 // the number is one byte
)

// formSizes are the bytes of fields by their form (DWARF 5, 7.5.6).
var formSizes = [...]uint8{
	0x00: formUnknown, formAddr, formUnknown, formUnknown, formUnknown, 2, 4, 8,
	0x08: formText, formBlock, formBlock1, 1, 1, formLEB, formOffset, formLEB,
	0x10: formOffset, 1, 2, 4, 8, formLEB, formUnknown, formOffset,
	0x18: formBlock, 0, formLEB, formLEB, 4, formOffset, 16, formOffset,
	0x20: 8, 0, formLEB, formLEB, 8, 1, 2, 3,
	0x28: 4, 1, 2, 3, 4,
}
