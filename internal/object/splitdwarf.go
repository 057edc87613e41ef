package object

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
)

// A splitUnit is the rest of a compilation unit in another file: a .dwo file, or a piece of
// a .dwp file (DWARF 5, 7.3; GNU's "DebugFission" before).
type splitUnit struct {
	file    *elfFile // nil for a piece of the .dwp file
	data    *dwarf.Data
	order   binary.ByteOrder
	first   dwarf.Offset // of the unit's first entry
	end     dwarf.Offset
	ranges  []byte // lists of ranges, of version 5 or before
	addrs   []byte // of .debug_addr of the object, from the unit's base on
	base    uint64 // what ranges are relative to
	version uint16
	room    [][2]uint64 // for the ranges of an entry
}

// Attributes of split units: GNU's before DWARF 5.
const (
	attrGNUDwoName    = dwarf.Attr(0x2130)
	attrGNUDwoID      = dwarf.Attr(0x2131)
	attrGNURangesBase = dwarf.Attr(0x2132)
	attrGNUAddrBase   = dwarf.Attr(0x2133)
	attrDwoName       = dwarf.Attr(0x76)
)

// dwoName returns the file with the rest of a split unit, or "".
func dwoName(e *dwarf.Entry) string {
	for _, a := range []dwarf.Attr{attrDwoName, attrGNUDwoName} {
		if name, ok := e.Val(a).(string); ok {
			return name
		}
	}
	return ""
}

// errDwoID is the error of a file that has the rest of another unit.
var errDwoID = errors.New("it is of another build")

// splitOf returns the rest of a unit, or nil if it is not found.
func (o *Object) splitOf(u *unit) *splitUnit {
	if u.dwo == "" || u.searched {
		return u.split
	}
	u.searched = true
	err := distrust("a unit's other file", func() (err error) {
		u.split, err = o.openSplit(u)
		return err
	})
	if err != nil {
		u.split = nil
		o.note("functions inlined in some units are described in other files (such as %s): %v", u.dwo, err)
	}
	return u.split
}

// openSplit looks for the rest of a unit: in the .dwp file next to the object, then in the .dwo
// file, where compiled or next to it.
func (o *Object) openSplit(u *unit) (*splitUnit, error) {
	if p := o.package5(); p != nil {
		if parts, ok := p.parts(u.dwoID); ok {
			return o.newSplit(u, parts)
		}
	}
	path := u.dwo
	if dir, _ := u.entry.Val(dwarf.AttrCompDir).(string); !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	err := error(nil)
	for _, path := range []string{o.options.rooted(path), filepath.Join(filepath.Dir(o.Path), filepath.Base(u.dwo))} {
		f, openErr := openELF(path)
		if err = errors.Join(err, openErr); openErr != nil {
			continue
		}
		s, splitErr := o.newSplit(u, fileParts(f))
		if splitErr == nil {
			s.file = f
			return s, nil
		}
		err = fmt.Errorf("%s: %w", path, splitErr)
		f.Close()
		break
	}
	return nil, err
}

// rooted puts Root in front of a path.
func (p *Options) rooted(path string) string {
	if p.Root == "" {
		return path
	}
	return filepath.Join(p.Root, filepath.Clean("/"+path))
}

// splitParts are the sections of split units.
type splitParts struct {
	info, abbrev, str, strOffsets, rngLists []byte
	order                                   binary.ByteOrder
	err                                     error
}

// fileParts reads the sections of a .dwo or .dwp file.
func fileParts(f *elfFile) *splitParts {
	p := &splitParts{order: f.ByteOrder}
	for _, s := range []struct {
		name string
		to   *[]byte
	}{
		{".debug_info.dwo", &p.info}, {".debug_abbrev.dwo", &p.abbrev}, {".debug_str.dwo", &p.str},
		{".debug_str_offsets.dwo", &p.strOffsets}, {".debug_rnglists.dwo", &p.rngLists},
	} {
		data, err := f.contents(s.name)
		*s.to = data
		p.err = errors.Join(p.err, err)
	}
	return p
}

// Headers that version 5 puts in front of the tables, in 32-bit DWARF.
const (
	strOffsetsHeader = 8
	rngListsHeader   = 12
)

// newSplit opens the rest of a unit.
func (o *Object) newSplit(u *unit, p *splitParts) (*splitUnit, error) {
	if p.err != nil {
		return nil, p.err
	}
	first, end, ok := unitHeader(p.info, 0, p.order)
	if !ok {
		return nil, errors.New("its unit is cut off")
	}
	s := &splitUnit{order: p.order, first: dwarf.Offset(first), end: dwarf.Offset(end), version: p.order.Uint16(p.info[4:])}
	s.base, _ = u.entry.Val(dwarf.AttrLowpc).(uint64)
	s.addrs = behind(o.dwarf.parts[".debug_addr"], first5(u.entry, dwarf.AttrAddrBase, attrGNUAddrBase))
	strOffsets := p.strOffsets
	if s.version >= 5 {
		strOffsets, s.ranges = behind(strOffsets, strOffsetsHeader), behind(p.rngLists, rngListsHeader)
	} else {
		s.ranges = behind(o.dwarf.parts[".debug_ranges"], first5(u.entry, attrGNURangesBase))
		p.abbrev = standardForms(p.abbrev)
	}
	err := error(nil)
	if s.data, err = dwarf.New(p.abbrev, nil, nil, p.info, nil, nil, nil, p.str); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{".debug_addr": s.addrs, ".debug_str_offsets": strOffsets, ".debug_rnglists": s.ranges} {
		if data != nil {
			if err := s.data.AddSection(name, data); err != nil {
				return nil, err
			}
		}
	}
	r := s.data.Reader()
	r.Seek(s.first)
	e, err := r.Next()
	if err != nil || e == nil || e.Tag != dwarf.TagCompileUnit {
		return nil, fmt.Errorf("it has no unit: %w", err)
	}
	id := unitID(p.info, 0, p.order)
	if s.version < 5 {
		id = uint64(first5(e, attrGNUDwoID))
	}
	if id != u.dwoID {
		return nil, errDwoID
	}
	return s, nil
}

// first5 returns the first of several attributes that an entry has, as a number.
func first5(e *dwarf.Entry, list ...dwarf.Attr) int64 {
	for _, a := range list {
		switch v := e.Val(a).(type) {
		case int64:
			return v
		case uint64:
			return int64(v)
		}
	}
	return 0
}

// behind returns a section from an offset on.
func behind(data []byte, at int64) []byte {
	if at < 0 || at > int64(len(data)) {
		return nil
	}
	return data[at:]
}

// unitID returns the identification of a skeleton or split unit of DWARF 5.
func unitID(info []byte, at uint64, order binary.ByteOrder) uint64 {
	head := at + 4
	if len(info) >= int(at)+4 && order.Uint32(info[at:]) == 0xffffffff {
		head += 8 + 4
	}
	if at := head + 2 + 1 + 1 + 4; at+8 <= uint64(len(info)) {
		return order.Uint64(info[at:])
	}
	return 0
}

// Forms of indices: GNU's, and those that DWARF 5 made of them.
const (
	formGNUAddrIndex = 0x1f01
	formGNUStrIndex  = 0x1f02
	formStrx         = 0x1a
	formAddrx        = 0x1b
	formImplicit     = 0x21
)

// standardForms returns abbreviations with DWARF 5's forms in place of GNU's, which package
// dwarf does not know. They are as many bytes.
func standardForms(abbrev []byte) []byte {
	out := append([]byte(nil), abbrev...)
	at := 0
	next := func() (v uint64, start int) {
		start = at
		for shift := uint(0); at < len(out); shift += 7 {
			b := out[at]
			at++
			if v |= uint64(b&0x7f) << (shift & 63); b&0x80 == 0 {
				break
			}
		}
		return v, start
	}
	for at < len(out) {
		if code, _ := next(); code == 0 {
			continue
		}
		next() // the tag
		at++   // whether there are children
		for at < len(out) {
			attr, _ := next()
			form, start := next()
			if attr == 0 && form == 0 {
				break
			}
			switch {
			case form == formImplicit:
				next()
			case form == formGNUAddrIndex && at-start == 2:
				out[start], out[start+1] = formAddrx|0x80, 0
			case form == formGNUStrIndex && at-start == 2:
				out[start], out[start+1] = formStrx|0x80, 0
			}
		}
	}
	return out
}

// entryRanges returns the addresses of an entry of a split unit. They are valid until the next call.
func (s *splitUnit) entryRanges(e *dwarf.Entry) ([][2]uint64, error) {
	if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
		switch high := e.Val(dwarf.AttrHighpc).(type) {
		case uint64:
			return [][2]uint64{{low, high}}, nil
		case int64:
			return [][2]uint64{{low, low + uint64(high)}}, nil
		}
	}
	if e.Val(dwarf.AttrRanges) == nil {
		return nil, nil
	}
	list := rangeList{numbers: numbers{data: behind(s.ranges, first5(e, dwarf.AttrRanges))}, unit: s, base: s.base}
	err := error(nil)
	if s.version >= 5 {
		s.room, err = list.version5(s.room[:0])
	} else {
		s.room, err = list.version4(s.room[:0])
	}
	return s.room, err
}

// Kinds of entries in a list of ranges (DWARF 5, 7.25).
const (
	rleEnd = iota
	rleBaseIndex
	rleStartEndIndex
	rleStartLengthIndex
	rleOffsets
	rleBase
	rleStartEnd
	rleStartLength
)

var errRangeList = errors.New("a list of ranges is cut off")

// mostRanges bounds the ranges of an entry.
const mostRanges = 1 << 16

// A rangeList reads ranges.
type rangeList struct {
	numbers
	unit *splitUnit
	base uint64
}

// numbers reads numbers of any length.
type numbers struct {
	data []byte
	bad  bool // a number was cut off
}

func (l *numbers) uleb() uint64 {
	v, n := binary.Uvarint(l.data)
	if n <= 0 {
		l.bad = true
		return 0
	}
	l.data = l.data[n:]
	return v
}

func (l *numbers) sleb() int64 {
	before := l.data
	v := l.uleb()
	if n := len(before) - len(l.data); n > 0 && n < 10 && before[n-1]&0x40 != 0 {
		v |= ^uint64(0) << (7 * n)
	}
	return int64(v)
}

func (l *rangeList) word() uint64 {
	if len(l.data) < 8 {
		l.bad = true
		return 0
	}
	v := l.unit.order.Uint64(l.data)
	l.data = l.data[8:]
	return v
}

// indexed returns an address by its number in .debug_addr.
func (l *rangeList) indexed() uint64 {
	i := l.uleb()
	if i >= uint64(len(l.unit.addrs)/8) {
		l.bad = true
		return 0
	}
	return l.unit.order.Uint64(l.unit.addrs[8*i:])
}

func (l *rangeList) version5(out [][2]uint64) ([][2]uint64, error) {
	for !l.bad && len(l.data) > 0 && len(out) < mostRanges {
		kind := l.data[0]
		l.data = l.data[1:]
		low, high := uint64(0), uint64(0)
		switch kind {
		case rleEnd:
			return out, nil
		case rleBaseIndex:
			l.base = l.indexed()
			continue
		case rleBase:
			l.base = l.word()
			continue
		case rleStartEndIndex:
			low, high = l.indexed(), l.indexed()
		case rleStartLengthIndex:
			low = l.indexed()
			high = low + l.uleb()
		case rleOffsets:
			low, high = l.base+l.uleb(), l.base+l.uleb()
		case rleStartEnd:
			low, high = l.word(), l.word()
		case rleStartLength:
			low = l.word()
			high = low + l.uleb()
		default:
			l.bad = true
		}
		out = append(out, [2]uint64{low, high})
	}
	return nil, errRangeList
}

func (l *rangeList) version4(out [][2]uint64) ([][2]uint64, error) {
	for len(out) < mostRanges {
		low, high := l.word(), l.word()
		switch {
		case l.bad:
			return nil, errRangeList
		case low == 0 && high == 0:
			return out, nil
		case low == ^uint64(0):
			l.base = high
		default:
			out = append(out, [2]uint64{l.base + low, l.base + high})
		}
	}
	return nil, errRangeList
}

// A dwpFile is a package of split units.
type dwpFile struct {
	file    *elfFile
	whole   *splitParts
	version uint32
	columns []uint32
	units   map[uint64]int // rows by the units' identifications
	offsets []byte
	sizes   []byte
}

// package5 returns the .dwp file next to the object or its debug file, or nil.
func (o *Object) package5() *dwpFile {
	if o.searchedDwp {
		return o.dwp
	}
	o.searchedDwp = true
	for _, path := range []string{o.Path + ".dwp", o.DebugPath + ".dwp"} {
		f, err := openELF(path)
		if err != nil {
			continue
		}
		if o.dwp = openDwp(f); o.dwp != nil {
			return o.dwp
		}
		o.note("%s: its index of units cannot be read", path)
		f.Close()
	}
	return nil
}

// Columns of the index that matter.
const (
	dwpInfo       = 1
	dwpAbbrev     = 3
	dwpStrOffsets = 6
	dwpRngLists   = 8
	mostDwpUnits  = 1 << 22
)

// openDwp reads the index of a .dwp file; nil if there is none to use.
func openDwp(f *elfFile) *dwpFile {
	data, err := f.contents(".debug_cu_index")
	if err != nil || len(data) < 16 {
		return nil
	}
	u := f.ByteOrder
	p := &dwpFile{file: f, whole: fileParts(f), version: u.Uint32(data), units: map[uint64]int{}}
	if p.version != 2 {
		p.version = uint32(u.Uint16(data))
	}
	columns, units, slots := uint64(u.Uint32(data[4:])), uint64(u.Uint32(data[8:])), uint64(u.Uint32(data[12:]))
	if p.whole.err != nil || p.version != 2 && p.version != 5 || columns > 16 || units > mostDwpUnits || slots > mostDwpUnits*4 {
		return nil
	}
	ids, rows := uint64(16), 16+8*slots
	heads := rows + 4*slots
	offsets := heads + 4*columns
	sizes := offsets + 4*columns*units
	if sizes+4*columns*units > uint64(len(data)) {
		return nil
	}
	for i := range columns {
		p.columns = append(p.columns, u.Uint32(data[heads+4*i:]))
	}
	for i := range slots {
		if row := u.Uint32(data[rows+4*i:]); row > 0 && uint64(row) <= units {
			p.units[u.Uint64(data[ids+8*i:])] = int(row - 1)
		}
	}
	p.offsets, p.sizes = data[offsets:sizes], data[sizes:]
	return p
}

// parts returns the sections of a unit.
func (p *dwpFile) parts(id uint64) (*splitParts, bool) {
	row, ok := p.units[id]
	if !ok {
		return nil, false
	}
	out := *p.whole
	u := p.file.ByteOrder
	for i, c := range p.columns {
		at := 4 * (row*len(p.columns) + i)
		offset, size := uint64(u.Uint32(p.offsets[at:])), uint64(u.Uint32(p.sizes[at:]))
		for of, part := range map[uint32]*[]byte{dwpInfo: &out.info, dwpAbbrev: &out.abbrev, dwpStrOffsets: &out.strOffsets, dwpRngLists: &out.rngLists} {
			if of != c || of == dwpRngLists && p.version < 5 {
				continue
			}
			if offset > uint64(len(*part)) || size > uint64(len(*part))-offset {
				return nil, false
			}
			*part = (*part)[offset : offset+size]
		}
	}
	return &out, true
}
