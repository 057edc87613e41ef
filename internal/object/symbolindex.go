package object

import (
	"encoding/binary"
	"math"
	"strings"
)

// symbolData is a settled table of symbols as it is kept: a header, the first addresses of
// pieces, the numbers of their symbols, the symbols, and names. Numbers are little-endian.
type symbolData struct {
	pieces, symbols int
	addrs, number   []byte // by piece: 8 bytes, and 4 of the symbol and 1; 0 for none
	list            []byte // by symbol: address, size, and where the name is
	text            []byte // names that are not in the string table
	names           []byte // the string table of the file
}

// The header of a kept table: the mark with its version, and a checksum of what follows it. Then
// come the origin, the size of its string table, and the numbers of pieces and symbols.
const (
	symbolMark   = "cyclestack sym 1"
	symbolHeader = len(symbolMark) + 24
	symbolSize   = 8 + 8 + 4
	symbolSuffix = ".s"    // of the name
	ownText      = 1 << 31 // in the place of a name: it is in text
)

// A symbolOrigin says where the symbols of a table are from, and what the object lacks.
type symbolOrigin struct {
	file    uint8 // 0 for none, 1 the object, 2 its debug file, 3 .gnu_debugdata
	dynamic bool  // the dynamic symbol table
	lack    lack
	names   []byte // the string table
}

// A lack says why functions are not known.
type lack uint8

const (
	lacksNothing lack = iota
	lacksNames        // functions have addresses as names
	lacksLocal        // only exported functions are known
)

// lacks notes why functions are not known.
func (o *Object) lacks(what lack) {
	switch what {
	case lacksNames:
		o.note("%s has no symbol table, and no debug file was found: functions that are not exported are named by their addresses", o.Path)
	case lacksLocal:
		o.note("%s has no symbol table, and no debug file was found: only exported functions are known", o.Path)
	}
}

// number is the origin in a header.
func (s symbolOrigin) number() uint32 {
	return uint32(s.file) | uint32(truth(s.dynamic))<<8 | uint32(s.lack)<<16
}

// origin returns where the functions of an object are from.
func (o *Object) origin() symbolOrigin {
	f, name := o.symbolSource()
	s := symbolOrigin{dynamic: name == ".dynsym"}
	switch f {
	case nil:
		return s
	case o.main:
		s.file = 1
	case o.debug:
		s.file = 2
	case o.mini:
		s.file = 3
		return s // its names are not in a file
	}
	if at := f.Section(name); int(at.Link) < len(f.Sections) {
		if names, err := f.raw(f.Sections[at.Link]); err == nil {
			s.names = names
		}
	}
	return s
}

// packed returns a settled table as it is kept.
func (t *symbolTable) packed(from symbolOrigin) []byte {
	le := binary.LittleEndian
	out := make([]byte, 0, symbolHeader+12*len(t.pieces)+symbolSize*len(t.entries))
	out = append(append(out, symbolMark...), 0, 0, 0, 0)
	out = le.AppendUint32(out, from.number())
	out = le.AppendUint64(out, uint64(len(from.names)))
	out = le.AppendUint32(out, uint32(len(t.pieces)))
	out = le.AppendUint32(out, uint32(len(t.entries)))
	for _, p := range t.pieces {
		out = le.AppendUint64(out, p.addr)
	}
	for _, p := range t.pieces {
		out = le.AppendUint32(out, uint32(p.entry+1))
	}
	var text []byte
	for _, e := range t.entries {
		at := e.name
		if e.flags&named != 0 || from.names == nil || at >= ownText {
			at = ownText | uint32(len(text))
			if name := t.name(e); len(text)+len(name) < ownText-1 {
				text = append(append(text, strings.ReplaceAll(name, "\x00", "")...), 0)
			}
		}
		out = le.AppendUint32(le.AppendUint64(le.AppendUint64(out, e.addr), e.size), at)
	}
	return append(out, text...)
}

// parseSymbols reads a table that was kept. It is nil if the data is damaged, or if the
// symbols are now to be had from elsewhere.
func parseSymbols(data []byte, from symbolOrigin) *symbolData {
	le := binary.LittleEndian
	if len(data) < symbolHeader || string(data[:len(symbolMark)]) != symbolMark {
		return nil
	}
	head, rest := data[len(symbolMark):], data[symbolHeader:]
	pieces, symbols := uint64(le.Uint32(head[16:])), uint64(le.Uint32(head[20:]))
	if le.Uint32(head[4:]) != from.number() || le.Uint64(head[8:]) != uint64(len(from.names)) ||
		uint64(len(rest)) < 12*pieces+symbolSize*symbols {
		return nil
	}
	t := &symbolData{pieces: int(pieces), symbols: int(symbols), names: from.names}
	t.addrs, rest = rest[:8*pieces], rest[8*pieces:]
	t.number, rest = rest[:4*pieces], rest[4*pieces:]
	t.list, t.text = rest[:symbolSize*symbols], rest[symbolSize*symbols:]
	return t
}

// lookup returns the number of the symbol that an address is in, or -1.
func (t *symbolData) lookup(addr uint64) int {
	i := lastAt(t.addrs, addr)
	if i < 0 {
		return -1
	}
	n := int(binary.LittleEndian.Uint32(t.number[4*i:])) - 1
	if n >= t.symbols {
		return -1
	}
	return n
}

// lastAt returns the index of the last of sorted numbers of 8 bytes that does not exceed one,
// or -1.
func lastAt(sorted []byte, n uint64) int {
	low, high := 0, len(sorted)/8
	for low < high {
		if mid := int(uint(low+high) / 2); binary.LittleEndian.Uint64(sorted[8*mid:]) > n {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low - 1
}

// extent returns where a symbol begins, and its size.
func (t *symbolData) extent(i int) (start, size uint64) {
	b := t.list[symbolSize*i : symbolSize*(i+1)]
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
}

// symbol returns a symbol by its number.
func (t *symbolData) symbol(i int) Symbol {
	start, size := t.extent(i)
	at := binary.LittleEndian.Uint32(t.list[symbolSize*i+16:])
	s := Symbol{Addr: start, Size: min(size, math.MaxUint64-start)}
	if at&ownText != 0 {
		s.Name = cString(t.text, uint64(at&^ownText))
	} else {
		s.Name = cString(t.names, uint64(at))
	}
	return s
}

// keptSymbols returns the functions that were kept; nil if there are none.
func (o *Object) keptSymbols() *symbolData {
	if o.options.Indexes == nil || o.keptName() == "" {
		return nil
	}
	data := o.options.Indexes.Read(o.keptName()+symbolSuffix, 0, math.MaxInt)
	if len(data) < symbolHeader || len(data) > mostIndex || !Sealed(data, len(symbolMark)) {
		return nil
	}
	from := o.origin()
	from.lack = lack(data[len(symbolMark)+6])
	t := parseSymbols(data, from)
	if t != nil {
		o.lacks(from.lack)
	}
	return t
}

// keepSymbols keeps the functions of a file that has a name for it.
func (o *Object) keepSymbols(data []byte) {
	if o.options.Indexes != nil && o.keptName() != "" && len(data) <= mostIndex {
		o.options.Indexes.Write(o.keptName()+symbolSuffix, Seal(data, len(symbolMark)))
	}
}
