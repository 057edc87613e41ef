package profile

import (
	"debug/elf"

	"github.com/cyclestack/cyclestack/internal/object"
)

// Mapped returns the place of a process's address in its mapping of code or data, and the
// mapping's bounds. It is not ok if there is no mapping. Then the bounds are those of the
// addresses around it that have none. Without a mode the address is the program's, or else the
// kernel's.
func (s *Spaces) Mapped(time uint64, pid int, addr uint64, mode Mode) (at Place, first, last uint64, ok bool) {
	last = ^uint64(0)
	var n *node
	if mode == User || mode == 0 {
		n, first, last = s.processes[pid].at(time).around(addr, first, last)
	}
	if n == nil && mode != User {
		n, first, last = s.kernel.at(time).around(addr, first, last)
	}
	if n == nil {
		return Place{}, first, last, false
	}
	return placeIn(n, nil, addr), n.start, n.end - 1, true
}

// Data returns the section (".data", ".bss") and the variable at a place in a file's data, each
// "" if unknown. The place may be behind the end of the file, since .bss goes on there. It is
// not ok if the file cannot be read, or has no data there.
func (y *Symbolizer) Data(p Place) (section, variable string, ok bool) {
	if p.File == nil || p.File.kind != kindBinary {
		return "", "", false
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	im := y.image(p.File)
	if im.data == nil {
		im.data = openData(im.status.Path)
	}
	at, ok := im.data.addr(p.Offset)
	if !ok {
		return "", "", false
	}
	if im.object != nil {
		if s, ok := im.object.Data(at); ok {
			variable = y.demangle(s.Name)
		}
	}
	return im.data.section(at), variable, true
}

// A dataFile is the layout of a file in memory.
type dataFile struct {
	segments []elf.ProgHeader
	sections []elf.SectionHeader
}

// openData reads the layout of a file. A file that cannot be read has none. Neither has a
// debug file: its offsets are not those of the program.
func openData(path string) *dataFile {
	d := &dataFile{}
	if path == "" || object.Regular(path) != nil {
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

// addr returns the address that is linked at an offset in the file. Offsets in .bss are
// behind the end of the file. Contents of the file precede what follows a segment.
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
