package profile

import "debug/elf"

// A Mapped is the mapping that an address is in.
type Mapped struct {
	File       *File
	Start, End uint64 // addresses; End is behind the last
	Offset     uint64 // of Start; see [Place]
}

// Mapped returns the mapping that an address of a process is in, of code or data, and
// whether there is one. Without a mode it is the program's, or else the kernel's.
func (s *Spaces) Mapped(time uint64, pid int, addr uint64, mode Mode) (Mapped, bool) {
	var n *node
	if mode == User || mode == AnyMode {
		n = s.processes[pid].at(time).find(addr)
	}
	if n == nil && mode != User {
		n = s.kernel.at(time).find(addr)
	}
	if n == nil {
		return Mapped{}, false
	}
	return Mapped{n.file, n.start, n.end, n.offset}, true
}

// A Datum says what of a program's or library's data an address is in.
type Datum struct {
	Section  string // ".data", ".bss", …; "" if it is not known
	Variable string // demangled; "" if it is not known
}

// A DataFinder finds variables in the files that a Symbolizer knows. It is not for use
// by several goroutines at once.
type DataFinder struct {
	symbols *Symbolizer
	files   map[*File]*dataFile
}

// NewDataFinder returns a finder that uses a symbolizer's files.
func NewDataFinder(y *Symbolizer) *DataFinder {
	return &DataFinder{symbols: y, files: map[*File]*dataFile{}}
}

// Find returns what is at an address in the data of a file. The mapping is the file's,
// and the address may be in it or behind it: what is zero at the start of the program
// (.bss) goes on where the file ends. It is not ok if the file cannot be read, or has
// nothing there.
func (f *DataFinder) Find(m Mapped, addr uint64) (d Datum, ok bool) {
	if m.File == nil || m.File.Kind != Binary {
		return d, false
	}
	file := f.files[m.File]
	if file == nil {
		file = openData(f.symbols.Status(m.File).Path)
		f.files[m.File] = file
	}
	at, ok := file.addr(m.Offset + (addr - m.Start))
	if !ok {
		return d, false
	}
	d.Section = file.section(at)
	d.Variable = f.symbols.variable(m.File, at)
	return d, true
}

// variable returns the name of the variable at an address of a file, or "".
func (y *Symbolizer) variable(f *File, addr uint64) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(f)
	if im.object == nil {
		return ""
	}
	s, ok := im.object.Data(addr)
	if !ok {
		return ""
	}
	return y.demangle(s.Name)
}

// A dataFile is how a file is laid out in memory.
type dataFile struct {
	segments []elf.ProgHeader
	sections []elf.SectionHeader
}

// openData reads the layout of a file. One that cannot be read has none, and nor has a
// debug file, whose offsets are not those of the program.
func openData(path string) *dataFile {
	d := &dataFile{}
	if path == "" || regular(path) != nil {
		return d
	}
	f, err := elf.Open(path)
	if err != nil {
		return d
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			d.segments = append(d.segments, p.ProgHeader)
		}
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type == elf.SHT_NOBITS {
			return &dataFile{}
		}
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_TLS == 0 && s.Size > 0 {
			d.sections = append(d.sections, s.SectionHeader)
		}
	}
	return d
}

// addr returns the address that is linked at an offset in the file, which for .bss is
// one that the file has not. What the file has goes before what follows a segment.
func (d *dataFile) addr(offset uint64) (uint64, bool) {
	for _, size := range []func(elf.ProgHeader) uint64{
		func(p elf.ProgHeader) uint64 { return p.Filesz },
		func(p elf.ProgHeader) uint64 { return p.Memsz },
	} {
		for _, p := range d.segments {
			if offset >= p.Off && offset-p.Off < size(p) {
				return p.Vaddr + (offset - p.Off), true
			}
		}
	}
	return 0, false
}

func (d *dataFile) section(addr uint64) string {
	for _, s := range d.sections {
		if addr >= s.Addr && addr-s.Addr < s.Size {
			return s.Name
		}
	}
	return ""
}
