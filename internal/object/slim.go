package object

import (
	"bytes"
	"container/list"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"sort"
)

// lineInfo returns what lines need. Compressed .debug_info takes long to read. In its place the
// addresses of units come from .debug_aranges, and their files from .debug_line. That needs DWARF
// 5, and one list of addresses for each line program, as gcc writes them.
func (o *Object) lineInfo() *dwarfInfo {
	if o.dwarf != nil {
		return o.dwarf
	}
	if o.slim == nil {
		o.slim = &dwarfInfo{recent: list.New(), limit: o.options.Cache}
		if err := distrust("the line tables", o.readSlim); err != nil {
			o.slim.units = nil
		}
	}
	if len(o.slim.units) > 0 {
		return o.slim
	}
	return o.debugInfo()
}

// errSlim says that lines need .debug_info.
var errSlim = errors.New("lines need all debug information")

func (o *Object) readSlim() error {
	f := o.debugSource()
	if s := f.Section(".debug_info"); s == nil || s.Flags&elf.SHF_COMPRESSED == 0 {
		return errSlim
	}
	part := map[string][]byte{}
	for _, name := range []string{".debug_line", ".debug_line_str", ".debug_aranges"} {
		data, err := f.contents(name)
		if err != nil || len(data) == 0 {
			return errSlim
		}
		part[name] = data
	}
	units := linePrograms(part[".debug_line"], part[".debug_line_str"], f.ByteOrder)
	lists := addressLists(part[".debug_aranges"], f.ByteOrder)
	if len(units) == 0 || len(units) != len(lists) {
		return errSlim
	}
	data, err := dwarf.New(nil, nil, nil, noUnit(f.ByteOrder), part[".debug_line"], nil, nil, nil)
	if err == nil {
		err = data.AddSection(".debug_line_str", part[".debug_line_str"])
	}
	if err != nil {
		return err
	}
	d := o.slim
	d.data, d.units = data, units
	for i, list := range lists {
		for _, s := range list {
			if o.isCode(s.low) {
				d.ranges = append(d.ranges, unitRange{s, units[i]})
			}
		}
	}
	sort.SliceStable(d.ranges, func(i, j int) bool { return d.ranges[i].low < d.ranges[j].low })
	return nil
}

// noUnit is the header of a unit without entries, and the end of its entries. Package dwarf reads
// line tables as parts of a unit.
func noUnit(order binary.ByteOrder) []byte {
	unit := make([]byte, noUnitEntries+1)
	order.PutUint32(unit, uint32(len(unit)-4))
	order.PutUint16(unit[4:], 4) // the version
	unit[10] = 8                 // bytes of an address
	return unit
}

// noUnitEntries is where the entries of that unit are.
const noUnitEntries = 11

// linePrograms returns a unit for each line program. All must be of DWARF 5. Their first directory,
// that of the compiler, must be in .debug_line_str. Source: DWARF 5, 6.2.4.
func linePrograms(line, text []byte, order binary.ByteOrder) (units []*unit) {
	const start, path, stringOffset = 18, 1, 0x1f
	for at := 0; at < len(line); {
		b := line[at:]
		if len(b) < start {
			return nil
		}
		length := uint64(order.Uint32(b)) + 4
		opcodes := int(b[start-1])
		if length > uint64(len(b)) || order.Uint16(b[4:]) != 5 || opcodes == 0 || start+opcodes-1+8 > int(length) {
			return nil
		}
		table := b[start+opcodes-1:]
		if table[0] != 1 || table[1] != path || table[2] != stringOffset || table[3] == 0 || table[3] >= 0x80 {
			return nil
		}
		offset := uint64(order.Uint32(table[4:]))
		if offset >= uint64(len(text)) {
			return nil
		}
		dir, _, _ := bytes.Cut(text[offset:], []byte{0})
		units = append(units, &unit{entry: &dwarf.Entry{Offset: noUnitEntries, Tag: dwarf.TagCompileUnit, Field: []dwarf.Field{
			{Attr: dwarf.AttrStmtList, Val: int64(at), Class: dwarf.ClassLinePtr},
			{Attr: dwarf.AttrCompDir, Val: string(dir), Class: dwarf.ClassString}}}})
		at += int(length)
	}
	return units
}

// addressLists returns the addresses of each unit. Source: DWARF 5, 6.1.2.
func addressLists(b []byte, order binary.ByteOrder) (lists [][]span) {
	const head, pair = 16, 16 // the header is padded to the size of a pair
	for len(b) > 0 {
		if len(b) < head {
			return nil
		}
		length := uint64(order.Uint32(b)) + 4
		if length > uint64(len(b)) || length < head || order.Uint16(b[4:]) != 2 || b[10] != 8 || b[11] != 0 {
			return nil
		}
		var list []span
		for at := head; at+pair <= int(length); at += pair {
			low, size := order.Uint64(b[at:]), order.Uint64(b[at+8:])
			if size > 0 && low+size > low {
				list = append(list, span{low, low + size})
			}
		}
		lists, b = append(lists, list), b[length:]
	}
	return lists
}
