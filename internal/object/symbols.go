package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A Symbol is a function, or a variable, of an object.
type Symbol struct {
	Name string // as in the symbol table; see Demangle
	Addr uint64
	// Size is how many bytes belong to the symbol. A symbol that states none
	// extends to the next one, or to the end of its section.
	Size uint64
}

// End returns the address behind the symbol.
func (s Symbol) End() uint64 { return s.Addr + s.Size }

// An entry is a symbol before its name is read.
type entry struct {
	addr, size uint64
	name       uint32 // offset in the string table, or an index into extra names
	flags      entryFlags
}

type entryFlags uint8

const (
	weak entryFlags = 1 << iota
	global
	label // has no type
	named // the name is in symbolTable.extra
)

// A symbolTable is the making of a table that finds symbols by address.
type symbolTable struct {
	entries []entry // by address; of several at one address, the best
	// pieces are the ranges of addresses without the nested symbols, by address,
	// so that one search finds the innermost symbol.
	pieces []piece
	names  []byte   // the string table
	extra  []string // names that are in no string table
}

// A piece is a range of addresses, up to the next piece, and its symbol.
type piece struct {
	addr  uint64
	entry int32 // into entries, or -1
}

// maxName is the longest symbol name. What compilers make of nested templates
// is some ten times shorter.
const maxName = 1 << 16

func (t *symbolTable) name(e entry) string {
	if e.flags&named != 0 {
		return t.extra[e.name]
	}
	return cString(t.names, uint64(e.name))
}

// cString returns the text at an offset up to its zero byte.
func cString(data []byte, at uint64) string {
	if at >= uint64(len(data)) {
		return ""
	}
	data = data[at:min(uint64(len(data)), at+maxName)]
	if end := bytes.IndexByte(data, 0); end >= 0 {
		data = data[:end]
	}
	return string(data)
}

// Symbol returns the function that an address is in.
func (o *Object) Symbol(addr uint64) (Symbol, bool) { return o.find(addr, (*Object).functions) }

// Extent returns where the function starts that an address is in, and its size.
// It is Symbol without the cost of the name.
func (o *Object) Extent(addr uint64) (start, size uint64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.table()
	i := t.lookup(addr)
	if i < 0 {
		return 0, 0, false
	}
	start, size = t.extent(i)
	return start, size, true
}

// Number returns the number of the function that an address is in, from 0 on, and where it
// starts; -1 if there is none.
func (o *Object) Number(addr uint64) (n int, start uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.table()
	if n = t.lookup(addr); n >= 0 {
		start, _ = t.extent(n)
	}
	return n, start
}

// Until returns where the next function starts, or the one that an address is in ends: the
// addresses between have the same symbol, or none.
func (o *Object) Until(addr uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.table()
	if next := lastAt(t.addrs, addr) + 1; next < len(t.addrs)/8 {
		return binary.LittleEndian.Uint64(t.addrs[8*next:])
	}
	return math.MaxUint64
}

// table is functions, and is empty if the file has changed.
func (o *Object) table() *symbolData {
	t := o.symbols
	if t == nil {
		if err := protect(func() error { t = o.functions(); return nil }); err != nil {
			return &symbolData{}
		}
	}
	return t
}

// Data returns the variable that an address is in.
func (o *Object) Data(addr uint64) (Symbol, bool) { return o.find(addr, (*Object).variables) }

func (o *Object) find(addr uint64, table func(*Object) *symbolData) (s Symbol, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := protect(func() error {
		t := table(o)
		if i := t.lookup(addr); i >= 0 {
			s, ok = t.symbol(i), true
		}
		return nil
	})
	return s, ok && err == nil
}

// Functions returns the functions by address, one for each address.
func (o *Object) Functions() ([]Symbol, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []Symbol
	err := protect(func() error {
		t := o.functions()
		list = make([]Symbol, t.symbols)
		for i := range list {
			list[i] = t.symbol(i)
		}
		return nil
	})
	return list, err
}

// Lookup returns the functions whose names in the symbol table match, by address.
func (o *Object) Lookup(matches func(symbol string) bool) ([]Symbol, error) {
	all, err := o.Functions()
	return sorting.Delete(all, func(s Symbol) bool { return !matches(s.Name) }), err
}

// Named returns a test whether a symbol has a name, as it is in the symbol table or demangled.
func Named(name string) func(symbol string) bool {
	part := identifier(name)
	return func(symbol string) bool { // demangling takes long, and large programs have many symbols
		return symbol == name || strings.Contains(symbol, part) && (Demangle(symbol, true) == name || Demangle(symbol, false) == name)
	}
}

// abbreviated are identifiers that manglings abbreviate.
var abbreviated = []string{"std", "string", "basic_string", "allocator", "istream", "ostream", "iostream", "basic_istream", "basic_ostream", "basic_iostream",
	"char_traits", "operator", "unsigned", "const", "volatile", "double", "float", "short", "signed", "char", "long", "bool", "void", "int", "wchar_t",
	"usize", "isize", "anonymous", "namespace", "closure", "lambda", "impl", "noexcept", "decltype", "auto", "nullptr_t"}

// identifier returns the longest identifier of a demangled name that is part of the mangled
// one too; "" if there is none.
func identifier(name string) string {
	longest := ""
	for _, word := range strings.FieldsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		if len(word) > len(longest) && (word[0] < '0' || word[0] > '9') && !slices.Contains(abbreviated, word) {
			longest = word
		}
	}
	return longest
}

// InMangled reports whether a part of a demangled name is a part of the mangled one too. In doubt it says
// that it is not.
func InMangled(part string) bool {
	return identifier(part) == part && !slices.ContainsFunc(abbreviated, func(word string) bool { return strings.Contains(word, part) })
}

// Value returns the value of the symbol of a name, whatever it names.
func (o *Object) Value(name string) (value uint64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := protect(func() error {
		f, table := o.symbolSource()
		if f == nil {
			return nil
		}
		t := &symbolTable{}
		o.readTable(t, f, table, func(f *elfFile, r rawSymbol) bool {
			if !ok && r.section != uint16(elf.SHN_UNDEF) && cString(t.names, uint64(r.name)) == name {
				value, ok = r.value, true
			}
			return false
		})
		return nil
	})
	return value, ok && err == nil
}

// functions returns the table of functions, which is read once.
func (o *Object) functions() *symbolData {
	if o.symbols != nil {
		return o.symbols
	}
	if o.symbols = o.keptSymbols(); o.symbols != nil {
		return o.symbols
	}
	t, from, notes := &symbolTable{}, o.origin(), len(o.notes)
	from.lack = o.readFunctions(t)
	whole := len(o.notes) == notes
	o.lacks(from.lack)
	t.settle(o)
	data := t.packed(from)
	if o.symbols = parseSymbols(data, from); whole {
		o.keepSymbols(data)
	}
	return o.symbols
}

// variables returns the table of variables.
func (o *Object) variables() *symbolData {
	if o.data == nil {
		t, from := &symbolTable{}, o.origin()
		if f, name := o.symbolSource(); f != nil {
			o.readTable(t, f, name, isVariable)
		}
		t.settle(o)
		o.data = parseSymbols(t.packed(from), from)
	}
	return o.data
}

// symbolSource returns the fullest symbol table of an object.
func (o *Object) symbolSource() (*elfFile, string) {
	switch {
	case o.main.has(".symtab"):
		return o.main, ".symtab"
	case o.debug != nil && o.debug.has(".symtab"):
		return o.debug, ".symtab"
	case o.mini != nil:
		return o.mini, ".symtab"
	case o.main.has(".dynsym"):
		return o.main, ".dynsym"
	}
	return nil, ""
}

// readFunctions reads the functions, and returns what is missing.
func (o *Object) readFunctions(t *symbolTable) (missing lack) {
	f, name := o.symbolSource()
	if f != nil {
		o.readTable(t, f, name, o.isFunction)
	}
	if f != nil && f == o.mini {
		o.addExported(t)
	}
	if name != ".symtab" {
		switch {
		case o.goFunctions(t):
		case o.unwound(t):
			missing = lacksNames
		default:
			missing = lacksLocal
		}
	}
	o.readPLT(t)
	return missing
}

// A rawSymbol is an entry of an ELF symbol table.
type rawSymbol struct {
	name    uint32
	info    byte
	other   byte
	section uint16
	value   uint64
	size    uint64
}

func (r rawSymbol) kind() elf.SymType { return elf.ST_TYPE(r.info) }
func (r rawSymbol) bind() elf.SymBind { return elf.ST_BIND(r.info) }

// entries64 and entries32 are the sizes of a symbol table's entries.
const (
	entrySize64 = 24
	entrySize32 = 16
)

// readTable adds the symbols of an ELF symbol table that are wanted. Tables are
// read in place, without a string for each symbol.
func (o *Object) readTable(t *symbolTable, f *elfFile, name string, wanted func(*elfFile, rawSymbol) bool) {
	s := f.Section(name)
	if s.Flags&elf.SHF_COMPRESSED != 0 || int(s.Link) >= len(f.Sections) {
		o.note("%s: %s cannot be read", f.path, name)
		return
	}
	data, err := f.raw(s)
	if err == nil {
		t.names, err = f.raw(f.Sections[s.Link])
	}
	if err != nil {
		o.note("%v", err)
		return
	}
	size := entrySize64
	if f.Class == elf.ELFCLASS32 {
		size = entrySize32
	}
	for ; len(data) >= size; data = data[size:] {
		r := f.rawSymbol(data)
		if r.name == 0 || !wanted(f, r) {
			continue
		}
		if prefix := t.names[min(int(r.name), len(t.names)):]; o.mappingSymbol(prefix) {
			continue
		}
		t.entries = append(t.entries, entry{addr: o.symbolAddr(r), size: r.size, name: r.name, flags: flagsOf(r)})
	}
}

func (f *elfFile) rawSymbol(b []byte) rawSymbol {
	u := f.ByteOrder
	if f.Class == elf.ELFCLASS32 {
		return rawSymbol{u.Uint32(b), b[12], b[13], u.Uint16(b[14:]), uint64(u.Uint32(b[4:])), uint64(u.Uint32(b[8:]))}
	}
	return rawSymbol{u.Uint32(b), b[4], b[5], u.Uint16(b[6:]), u.Uint64(b[8:]), u.Uint64(b[16:])}
}

func flagsOf(r rawSymbol) (f entryFlags) {
	switch r.bind() {
	case elf.STB_WEAK:
		f = weak
	case elf.STB_GLOBAL:
		f = global
	}
	if r.kind() == elf.STT_NOTYPE {
		f |= label
	}
	return f
}

// isFunction says whether a symbol names code: a function, or a label without a type in a
// section of code, as assembler code has. See perf's elf_sym__filter and elf_sym__is_label.
func (o *Object) isFunction(f *elfFile, r rawSymbol) bool {
	defined := r.section != uint16(elf.SHN_UNDEF)
	switch r.kind() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return defined && (o.isCode(r.value) || o.opd() != nil)
	case elf.STT_NOTYPE:
		hidden := elf.ST_VISIBILITY(r.other) == elf.STV_HIDDEN || elf.ST_VISIBILITY(r.other) == elf.STV_INTERNAL
		return defined && !hidden && r.section < uint16(elf.SHN_LORESERVE) && o.isCode(r.value)
	}
	return false
}

func isVariable(_ *elfFile, r rawSymbol) bool {
	return r.section != uint16(elf.SHN_UNDEF) && r.kind() == elf.STT_OBJECT && r.size > 0
}

// mappingSymbol says whether a name is a mark between code and data of Arm's and RISC-V's
// compilers ($x, $d, …).
func (o *Object) mappingSymbol(name []byte) bool {
	return (o.Arch == "arm64" || o.Arch == "riscv64") && len(name) > 0 && name[0] == '$'
}

// opd returns the section with the function descriptors of the first ABI of
// 64-bit Power, or nil.
func (o *Object) opd() *elf.Section {
	if o.Arch != "ppc64" {
		return nil
	}
	return o.main.Section(".opd")
}

// symbolAddr returns the address of a symbol: its value, or the address in the function
// descriptor at its value.
func (o *Object) symbolAddr(r rawSymbol) uint64 {
	s := o.opd()
	if s == nil || r.value < s.Addr || r.value-s.Addr > s.Size-8 || s.Size < 8 {
		return r.value
	}
	b, err := o.main.bytes(s.Offset+(r.value-s.Addr), 8)
	if err != nil {
		return r.value
	}
	return o.main.ByteOrder.Uint64(b)
}

// settle sorts the table, keeps one symbol for each address, and extends those
// without a size.
func (t *symbolTable) settle(o *Object) {
	t.entries = sorting.Merged(t.entries, func(a, b *entry) bool { return a.addr < b.addr }) // linkers sort some tables
	kept := t.entries[:0]
	for _, e := range t.entries {
		if n := len(kept); n > 0 && kept[n-1].addr == e.addr {
			if t.better(e, kept[n-1]) {
				kept[n-1] = e
			}
			continue
		}
		kept = append(kept, e)
	}
	t.entries = slices.Clip(kept)
	for i := range t.entries {
		t.extend(o, i)
	}
	t.cut()
}

// better says whether symbol a is shown rather than b, which has the same address and came
// first. The order is that of perf's choose_best_symbol: with a size, with a type, not weak,
// global, fewer leading underscores, longer name, first in the table.
func (t *symbolTable) better(a, b entry) bool {
	for _, rule := range []func(entry) int{
		func(e entry) int { return -truth(e.size == 0) },
		func(e entry) int { return -truth(e.flags&label != 0) },
		func(e entry) int { return -truth(e.flags&weak != 0) },
		func(e entry) int { return truth(e.flags&global != 0) },
		func(e entry) int { return -underscores(t.name(e)) },
		func(e entry) int { return len(t.name(e)) },
	} {
		if x, y := rule(a), rule(b); x != y {
			return x > y
		}
	}
	return false
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// extend gives a symbol without a size the bytes up to the next one, and cuts
// sizes that wrap around.
func (t *symbolTable) extend(o *Object, i int) {
	e := &t.entries[i]
	if e.size == 0 {
		end := uint64(math.MaxUint64)
		if high, ok := o.codeEnd(e.addr); ok {
			end = high
		}
		if i+1 < len(t.entries) {
			end = min(end, t.entries[i+1].addr)
		}
		e.size = end - e.addr
	}
	e.size = min(e.size, math.MaxUint64-e.addr)
}

// cut makes the pieces: where symbols overlap, the one that starts last counts.
func (t *symbolTable) cut() {
	var open []int32 // symbols that contain the current address, outer ones first
	t.pieces = make([]piece, 0, 2*len(t.entries))
	add := func(addr uint64, e int32) {
		if n := len(t.pieces); n > 0 && t.pieces[n-1].addr == addr {
			t.pieces[n-1].entry = e
			return
		}
		t.pieces = append(t.pieces, piece{addr, e})
	}
	closeUntil := func(addr uint64) {
		for len(open) > 0 {
			end := t.end(open[len(open)-1])
			if end > addr {
				return
			}
			// Symbols that end before the one inside them have ended as well.
			for len(open) > 0 && t.end(open[len(open)-1]) <= end {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				add(end, open[len(open)-1])
			} else {
				add(end, -1)
			}
		}
	}
	for i, e := range t.entries {
		closeUntil(e.addr)
		add(e.addr, int32(i))
		open = append(open, int32(i))
	}
	closeUntil(math.MaxUint64)
}

func (t *symbolTable) end(i int32) uint64 { return t.entries[i].addr + t.entries[i].size }
