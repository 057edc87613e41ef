package object

import (
	"container/list"
	"debug/dwarf"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
)

// A Frame is a place in the source: the function that the place belongs to, and
// the line. An address in an inlined call has a frame for the inlined function
// and one for each function around it.
type Frame struct {
	// Func is the function as in the symbol table. A function that is inlined everywhere
	// has the name in the debug information; "" if there is none.
	Func string
	File string // as the compiler wrote it; "" if unknown
	Line int    // 0 if unknown
	// Inlined says that the function is part of the code of the next frame's function.
	Inlined bool
}

// dwarfInfo is the debug information of an object. Units are read when an address in them
// is asked for, and forgotten if they become too many.
type dwarfInfo struct {
	data  *dwarf.Data
	units []*unit
	// ranges are the addresses of units, by address.
	ranges []unitRange
	byUnit map[*unit][]span // the same by unit; nil: not asked for yet
	recent *list.List       // of *unit with tables, the last used first
	size   int              // bytes of the tables
	limit  int
	names  map[entryKey]string // of functions, where they were looked up
	rows   []lineRow           // room to read line tables into
	found  []nodeRange         // likewise inlined calls
	nodes  []inlineNode
	pieces []piece

	info   []byte              // what the entries are in
	parts  map[string][]byte   // the other sections
	tables map[uint64][]abbrev // of abbreviations, by where they begin
}

// A unit is a compilation unit.
type unit struct {
	entry    *dwarf.Entry
	lines    *lineTable  // nil: not read
	inlines  *inlineTree // nil: not read
	dwo      string      // the file that its functions are described in, or ""
	dwoID    uint64      // what that file must have
	searched bool        // for that file
	indexed  bool        // it is in the index of inlined calls
	split    *splitUnit  // in that file; nil if it is not found
	element  *list.Element
	start    uint64       // of the unit
	position dwarf.Offset // of the unit's first entry
	end      dwarf.Offset // behind its last
}

// An entryKey identifies an entry.
type entryKey struct {
	data *dwarf.Data
	at   dwarf.Offset
}

type unitRange struct {
	span
	unit *unit
}

// sectionsV5 are sections that dwarf.New does not take.
var sectionsV5 = []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"}

// debugInfo returns the debug information of an object, which is read once, or
// nil if there is none.
func (o *Object) debugInfo() *dwarfInfo {
	if o.dwarf == nil {
		o.dwarf = &dwarfInfo{recent: list.New(), limit: o.options.Cache, names: map[entryKey]string{}}
		if err := distrust("the debug information", o.readDebug); err != nil {
			o.note("%s: %v", o.debugSource().path, err)
			o.dwarf.ranges = nil
		}
	}
	return o.dwarf
}

// debugSource returns the file that has the debug information.
func (o *Object) debugSource() *elfFile {
	if o.debug != nil && (o.debug.has(".debug_info") || o.debug.has(".zdebug_info")) {
		return o.debug
	}
	return o.main
}

func (o *Object) readDebug() error {
	f := o.debugSource()
	info, err := f.contents(".debug_info")
	if err != nil {
		return err
	}
	if len(info) == 0 {
		if o.goSection() == nil {
			o.note("%s has no debug information, and no debug file was found: lines and inlined calls are not known", o.Path)
		}
		return nil
	}
	o.dwarf.info = info
	if o.dwarf.data, o.dwarf.parts, err = f.dwarfData(info, !o.options.NoLines); err != nil {
		return err
	}
	return o.indexUnits(info, f.ByteOrder)
}

// dwarfData opens the debug information of a file, and returns its other sections as well.
func (f *elfFile) dwarfData(info []byte, lines bool) (d *dwarf.Data, part map[string][]byte, err error) {
	part = map[string][]byte{}
	for _, name := range append([]string{".debug_abbrev", ".debug_line", ".debug_ranges", ".debug_str"}, sectionsV5...) {
		if name == ".debug_line" && !lines {
			continue
		}
		if part[name], err = f.contents(name); err != nil {
			return nil, nil, err
		}
	}
	d, err = dwarf.New(part[".debug_abbrev"], nil, nil, info, part[".debug_line"], nil, part[".debug_ranges"], part[".debug_str"])
	for _, name := range sectionsV5 {
		if err == nil && part[name] != nil {
			err = d.AddSection(name, part[name])
		}
	}
	return d, part, err
}

// indexUnits finds the compilation units and the addresses of each, from its
// first entry. (.debug_aranges says the same, but not every compiler writes it.)
func (o *Object) indexUnits(info []byte, order binary.ByteOrder) error {
	d := o.dwarf
	r := d.data.Reader()
	for at := uint64(0); at < uint64(len(info)); {
		start := at
		first, next, ok := unitHeader(info, at, order)
		if !ok {
			return fmt.Errorf("the unit at %#x is cut off", at)
		}
		at = next
		r.Seek(dwarf.Offset(first))
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagSkeletonUnit {
			continue
		}
		o.resolveTexts(e)
		u := &unit{entry: e, start: start, position: dwarf.Offset(first), end: dwarf.Offset(next)}
		if u.dwo = dwoName(e); u.dwo != "" {
			u.dwoID = uint64(first5(e, attrGNUDwoID))
			if e.Tag == dwarf.TagSkeletonUnit {
				u.dwoID = unitID(info, start, order)
			}
		}
		o.addUnit(u)
	}
	sort.SliceStable(d.ranges, func(i, j int) bool { return d.ranges[i].low < d.ranges[j].low })
	return nil
}

// addUnit notes the addresses of a unit. Code that the linker left out has no addresses in
// a section of code.
func (o *Object) addUnit(u *unit) {
	ranges, err := o.dwarf.data.Ranges(u.entry)
	if err != nil {
		o.note("%s: the unit at %#x: %v", o.debugSource().path, u.position, err)
		return
	}
	o.dwarf.units = append(o.dwarf.units, u)
	for _, r := range ranges {
		if r[0] < r[1] && o.isCode(r[0]) {
			o.dwarf.ranges = append(o.dwarf.ranges, unitRange{span{r[0], r[1]}, u})
		}
	}
}

// unitHeader returns where the first entry of a unit and the next unit are.
// Source: DWARF 5, 7.5.1.
func unitHeader(info []byte, at uint64, order binary.ByteOrder) (first, next uint64, ok bool) {
	b := info[at:]
	if len(b) < 12 {
		return 0, 0, false
	}
	length, head, word := uint64(order.Uint32(b)), uint64(4), uint64(4)
	if length == 0xffffffff {
		length, head, word = order.Uint64(b[4:]), 12, 8
	}
	if length > uint64(len(b)) || length+head > uint64(len(b)) || uint64(len(b)) < head+4 {
		return 0, 0, false
	}
	version, kind := order.Uint16(b[head:]), b[head+2]
	first = at + head + 2 + 1 + word // version, address size, abbreviations
	if version >= 5 {
		first++ // the unit's type
		switch kind {
		case 2, 6: // type units: signature and offset
			first += 8 + word
		case 4, 5: // skeleton and split units: id
			first += 8
		}
	}
	next = at + head + length
	return first, next, first < next
}

// nearUnits is how many ranges before an address are looked at.
const nearUnits = 4

// unitAt returns the unit that an address belongs to.
func (d *dwarfInfo) unitAt(addr uint64) *unit {
	u, _ := d.unitTo(addr)
	return u
}

// unitTo returns the unit of an address, and up to where that is so.
func (d *dwarfInfo) unitTo(addr uint64) (u *unit, until uint64) {
	i := sort.Search(len(d.ranges), func(i int) bool { return d.ranges[i].low > addr })
	if until = math.MaxUint64; i < len(d.ranges) {
		until = d.ranges[i].low
	}
	// Ranges of units overlap only in wrong debug information: look at a few before the
	// nearest.
	for n := 0; i > 0 && n < nearUnits; n++ {
		if i--; addr < d.ranges[i].high {
			return d.ranges[i].unit, min(until, d.ranges[i].high)
		}
	}
	return nil, until
}

// use notes that a unit was used, and that its tables have grown by some bytes. If there
// are too many units it forgets those that were not used for longest.
func (d *dwarfInfo) use(u *unit, grown int) {
	d.size += grown
	if u.element == nil {
		u.element = d.recent.PushFront(u)
	} else {
		d.recent.MoveToFront(u.element)
	}
	for d.size > d.limit && d.recent.Len() > 1 {
		last := d.recent.Back()
		old := d.recent.Remove(last).(*unit)
		d.size -= old.lines.size() + old.inlines.size()
		old.lines, old.inlines, old.element = nil, nil, nil
	}
}
