package object

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"math"
)

// An entryReader reads entries, as a [dwarf.Reader] does.
type entryReader interface {
	Next() (*dwarf.Entry, error)
	SkipChildren()
}

// A skimmer reads the entries of a unit. Entries without addresses of code have no fields, which
// saves most of the time. An entry is valid until the next.
type skimmer struct {
	full    *dwarf.Reader // for entries with code
	data    []byte        // up to the end of the unit
	at      int
	abbrevs []abbrev // by code; the first one is 0
	addr    int      // bytes of an address, and of an offset
	offset  int
	entry   dwarf.Entry
}

// An abbrev is the form of entries.
type abbrev struct {
	tag      dwarf.Tag
	children bool
	code     bool   // it has an address
	forms    []byte // of its attributes
}

var errSkim = errors.New("an entry is damaged")

// skimmer returns a reader at the first entry of a unit; nil if another one is needed.
func (o *Object) skimmer(u *unit) *skimmer {
	d, order := o.dwarf, o.debugSource().ByteOrder
	head := d.info[u.start:u.position]
	s := &skimmer{full: d.data.Reader(), data: d.info[:u.end], at: int(u.position), offset: 4}
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
		if table < uint64(len(d.abbrev)) {
			s.abbrevs = readAbbrevs(d.abbrev[table:])
		}
		d.tables[table] = s.abbrevs
	}
	if s.abbrevs == nil {
		return nil
	}
	return s
}

// readAbbrevs reads a table of abbreviations. It is nil unless these are numbered from 1 on, and
// have known forms.
func readAbbrevs(data []byte) []abbrev {
	list, in := []abbrev{{}}, numbers{data: data}
	for id := in.uleb(); id != 0; id = in.uleb() {
		a := abbrev{tag: dwarf.Tag(in.uleb()), children: in.uleb() != 0} // a byte, 0 or 1
		for attr, form := in.uleb(), in.uleb(); form != 0; attr, form = in.uleb(), in.uleb() {
			if form == formImplicitConst {
				in.uleb()
			}
			if form >= uint64(len(formSizes)) || formSizes[form] == formUnknown {
				return nil
			}
			a.code = a.code || dwarf.Attr(attr) == dwarf.AttrLowpc || dwarf.Attr(attr) == dwarf.AttrRanges
			a.forms = append(a.forms, byte(form))
		}
		if id != uint64(len(list)) {
			return nil
		}
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
	if a.code {
		s.full.Seek(dwarf.Offset(begin))
		return s.full.Next()
	}
	s.entry = dwarf.Entry{Offset: dwarf.Offset(begin), Tag: a.tag, Children: a.children}
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
	data := s.data[s.at:]
	id, n := binary.Uvarint(data)
	if n <= 0 || id >= uint64(len(s.abbrevs)) {
		return nil
	}
	a := &s.abbrevs[id]
	for _, form := range a.forms {
		if n >= len(data) {
			n = len(data) // a field without content may follow
		}
		size := uint64(formSizes[form])
		switch size {
		case formAddr:
			size = uint64(s.addr)
		case formOffset:
			size = uint64(s.offset)
		case formLEB:
			for size = 1; n+int(size) <= len(data) && data[n+int(size)-1] >= 0x80; {
				size++
			}
		case formText:
			i := bytes.IndexByte(data[n:], 0)
			if i < 0 {
				return nil
			}
			size = uint64(i) + 1
		case formBlock:
			v, more := binary.Uvarint(data[n:])
			if more <= 0 || v > uint64(len(data)) {
				return nil
			}
			size = uint64(more) + v
		case formBlock1:
			if n == len(data) {
				return nil
			}
			size = 1 + uint64(data[n])
		}
		if size > uint64(len(data)-n) {
			return nil
		}
		n += int(size)
	}
	s.at += n
	return a
}

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

const formImplicitConst = 0x21

// formSizes are the bytes of fields by their form (DWARF 5, 7.5.6).
var formSizes = [...]uint8{
	0x00: formUnknown, formAddr, formUnknown, formUnknown, formUnknown, 2, 4, 8,
	0x08: formText, formBlock, formBlock1, 1, 1, formLEB, formOffset, formLEB,
	0x10: formOffset, 1, 2, 4, 8, formLEB, formUnknown, formOffset,
	0x18: formBlock, 0, formLEB, formLEB, 4, formOffset, 16, formOffset,
	0x20: 8, 0, formLEB, formLEB, 8, 1, 2, 3,
	0x28: 4, 1, 2, 3, 4,
}
