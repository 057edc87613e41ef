package object

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"sort"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Indexes keep what was read of files for the next time, each by a name. Both methods may
// fail without a word.
type Indexes interface {
	Read(name string, at int64, most int) []byte
	Write(name string, data []byte)
}

// An inlineIndex says which function is inlined innermost at an address. It has the units
// that were asked for here, or by processes before. Others have frames and lines, as texts in
// place of names, of the addresses that were asked for.
type inlineIndex struct {
	kept   indexData
	fresh  []freshPiece
	names  []string // of those
	number map[string]uint32
}

// A freshPiece is an indexPiece by the number of its name.
type freshPiece struct {
	span
	name uint32
}

// An indexPiece is the addresses of a name.
type indexPiece struct {
	span
	name string // "" for code that is not inlined
}

// indexData is an index as it is kept: a header, the first addresses of pieces, the numbers
// of their names, where names begin, and the names. Numbers are little-endian.
type indexData struct {
	pieces, names int
	addrs, number []byte
	begins, text  []byte
}

// The header of an index: the mark with its version, a checksum of what follows it, and the
// numbers of pieces and names.
const (
	indexMark   = "cyclestack inl 2"
	indexHeader = len(indexMark) + 12
	mostPieces  = 1 << 22
	mostIndex   = 64 << 20 // bytes
)

// Numbers of names.
const (
	indexUnknown = iota // the unit was not read
	indexNone           // nothing is inlined
	indexFirst
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseIndex reads an index. It is empty if the data is damaged.
func parseIndex(data []byte) (x indexData) {
	if len(data) < indexHeader || len(data) > mostIndex || string(data[:len(indexMark)]) != indexMark {
		return x
	}
	le, head, rest := binary.LittleEndian, data[len(indexMark):], data[indexHeader:]
	pieces, names := uint64(le.Uint32(head[4:])), uint64(le.Uint32(head[8:]))
	if !Sealed(data, len(indexMark)) || pieces > mostPieces || names > pieces ||
		uint64(len(rest)) < pieces*12+(names+1)*4 {
		return x
	}
	x.pieces, x.names = int(pieces), int(names)
	x.addrs, rest = rest[:8*pieces], rest[8*pieces:]
	x.number, rest = rest[:4*pieces], rest[4*pieces:]
	x.begins, x.text = rest[:4*(names+1)], rest[4*(names+1):]
	return x
}

// piece returns a piece, and whether anything is known of it.
func (x *indexData) piece(i int) (p indexPiece, known bool) {
	le := binary.LittleEndian
	p.low, p.high = le.Uint64(x.addrs[8*i:]), math.MaxUint64
	if i+1 < x.pieces {
		p.high = le.Uint64(x.addrs[8*i+8:])
	}
	if n := int(le.Uint32(x.number[4*i:])); n < indexFirst+x.names {
		p.name, known = x.name(n)
	}
	return p, known
}

// lookup returns the number of the name at an address: indexUnknown, indexNone, or one from
// indexFirst on.
func (x *indexData) lookup(addr uint64) int {
	i := lastAt(x.addrs, addr)
	if i < 0 {
		return indexUnknown
	}
	if n := int(binary.LittleEndian.Uint32(x.number[4*i:])); n < indexFirst+x.names {
		return n
	}
	return indexUnknown
}

// name returns a name by its number.
func (x *indexData) name(n int) (name string, ok bool) {
	if n < indexFirst {
		return "", n == indexNone
	}
	le, at := binary.LittleEndian, 4*(n-indexFirst)
	begin, end := le.Uint32(x.begins[at:]), le.Uint32(x.begins[at+4:])
	if begin > end || uint64(end) > uint64(len(x.text)) {
		return "", false
	}
	return string(x.text[begin:end]), true
}

// add adds what is known at an address: the functions of its unit, or that no unit has it.
func (x *inlineIndex) add(o *Object, addr uint64, u *unit) {
	d := o.dwarf
	if u == nil {
		x.put(indexPiece{span: d.gap(addr)})
		return
	}
	if u.indexed {
		return
	}
	u.indexed = true
	if d.byUnit == nil {
		d.byUnit = map[*unit][]span{}
		for _, r := range d.ranges {
			d.byUnit[r.unit] = append(d.byUnit[r.unit], r.span)
		}
	}
	t := o.inlinesOf(u)
	for _, r := range d.byUnit[u] {
		i := sort.Search(len(t.pieces), func(i int) bool { return t.pieces[i].addr > r.low }) - 1
		for at := r.low; at < r.high; i++ {
			p, unnamed := indexPiece{span: span{at, r.high}}, false
			if i+1 < len(t.pieces) {
				p.high = min(p.high, t.pieces[i+1].addr)
			}
			if i >= 0 && t.pieces[i].entry >= 0 {
				if n := t.nodes[t.pieces[i].entry]; n.parent >= 0 {
					p.name = o.functionName(t.data, n.origin)
					unnamed = p.name == ""
				}
			}
			if !unnamed { // a call without a name is no code without a call
				x.put(p)
			}
			at = p.high
		}
	}
}

// put adds a piece.
func (x *inlineIndex) put(p indexPiece) {
	if n := len(x.fresh); n > 0 && x.fresh[n-1].high == p.low && x.names[x.fresh[n-1].name] == p.name {
		x.fresh[n-1].high = p.high
	} else if n < mostPieces && p.low < p.high {
		name, ok := x.number[p.name]
		if !ok {
			if x.number == nil {
				x.number = map[string]uint32{}
			}
			name = uint32(len(x.names))
			x.number[p.name], x.names = name, append(x.names, p.name)
		}
		if n == cap(x.fresh) {
			x.fresh = slices.Grow(x.fresh, n+1) // a quarter, as of append, would be more garbage
		}
		x.fresh = append(x.fresh, freshPiece{p.span, name})
	}
}

// gap returns the addresses around one that no unit has; none if there are no units.
func (d *dwarfInfo) gap(addr uint64) span {
	if len(d.ranges) == 0 {
		return span{}
	}
	i := sort.Search(len(d.ranges), func(i int) bool { return d.ranges[i].low > addr })
	s := span{0, math.MaxUint64}
	if i < len(d.ranges) {
		s.high = d.ranges[i].low
	}
	for n := i - 1; n >= 0 && n >= i-nearUnits; n-- {
		s.low = max(s.low, d.ranges[n].low, d.ranges[n].high)
	}
	return s
}

// data returns the index with what was added, which is not needed again.
func (x *inlineIndex) data() []byte {
	for i := range x.kept.pieces {
		if p, known := x.kept.piece(i); known {
			x.put(p)
		}
	}
	le := binary.LittleEndian
	list := sorting.Merged(x.fresh, func(a, b *freshPiece) bool { return a.low < b.low })
	each := func(add func(addr uint64, name int)) {
		end := uint64(0)
		for i, p := range list {
			if p.low = max(p.low, end); p.low >= p.high {
				continue
			}
			if i > 0 && p.low > end {
				add(end, -1)
			}
			add(p.low, int(p.name))
			end = p.high
		}
		add(end, -1)
	}
	pieces, size, used := 0, 0, 0
	numbers := make([]uint32, len(x.names)) // in the order of their first pieces
	each(func(_ uint64, name int) {
		if pieces++; name >= 0 && numbers[name] == 0 {
			if numbers[name] = indexNone; x.names[name] != "" {
				numbers[name] = uint32(indexFirst + used)
				used++
				size += len(x.names[name])
			}
		}
	})
	text := indexHeader + 12*pieces + 4*(used+1)
	out := make([]byte, text, text+size)
	le.PutUint32(out[copy(out, indexMark)+4:], uint32(pieces))
	le.PutUint32(out[len(indexMark)+8:], uint32(used))
	addrs := out[indexHeader:]
	number, begins := addrs[8*pieces:], addrs[12*pieces:]
	i, used := 0, 0
	each(func(addr uint64, name int) {
		n := uint32(indexUnknown)
		if name >= 0 {
			if n = numbers[name]; n == uint32(indexFirst+used) {
				used++
				out = append(out, x.names[name]...)
				le.PutUint32(begins[4*used:], uint32(len(out)-text))
			}
		}
		le.PutUint64(addrs[8*i:], addr)
		le.PutUint32(number[4*i:], n)
		i++
	})
	return Seal(out, len(indexMark))
}

// Seal puts the checksum of what follows it into data at an offset, if there is room.
func Seal(data []byte, at int) []byte {
	if len(data) >= at+4 {
		binary.LittleEndian.PutUint32(data[at:], crc32.Checksum(data[at+4:], castagnoli))
	}
	return data
}

// Sealed reports whether Seal has put the checksum into data.
func Sealed(data []byte, at int) bool {
	return len(data) >= at+4 && binary.LittleEndian.Uint32(data[at:]) == crc32.Checksum(data[at+4:], castagnoli)
}

// keptName is the name of what is kept of an object: its build id, or the state of its file.
func (o *Object) keptName() string { return cmp.Or(o.BuildID, o.main.state) }

// Kinds of indexes.
const (
	inlineKept = iota
	framesKept
	linesKept
	namesKept // frames without lines
	keptKinds
)

// mostFrames is how many addresses an index of frames or lines has.
const mostFrames = 1 << 18

// indexName is the name of an index. Names and lines are others if a debug file is there, or if
// the program was stripped.
func (o *Object) indexName(kind int) string {
	if kind == inlineKept {
		return o.keptName()
	}
	n := kind<<2 | truth(o.debug != nil)<<1 | truth(o.main.has(".symtab"))
	return o.keptName() + "." + "0123456789abcdef"[n:n+1]
}

// index returns an index of an object; nil if none can be kept.
func (o *Object) index(kind int) *inlineIndex {
	x := &o.indexes[kind]
	if *x == nil && o.options.Indexes != nil && o.keptName() != "" {
		*x = &inlineIndex{kept: parseIndex(o.options.Indexes.Read(o.indexName(kind), 0, math.MaxInt))}
	}
	return *x
}

// keepIndexes keeps the indexes, unless something that a unit needed was missing.
func (o *Object) keepIndexes() {
	for kind, x := range o.indexes {
		if x != nil && len(x.fresh) > 0 && len(o.notes) == 0 {
			if data := x.data(); len(data) <= mostIndex {
				o.options.Indexes.Write(o.indexName(kind), data)
			}
		}
	}
}

// known returns what an index has of an address as text. It adds what it lacks.
func (o *Object) known(kind int, addr uint64, find func() string) (text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.index(kind)
	if x != nil {
		if n := x.kept.lookup(addr); n != indexUnknown {
			text, _ = x.kept.name(n)
			return text
		}
	}
	_ = protect(func() error { // what cannot be read has no text
		text = find()
		if x != nil && len(x.fresh)+x.kept.pieces/2 < mostFrames {
			x.put(indexPiece{span{addr, addr + 1}, text})
		}
		return nil
	})
	return text
}
