package object

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// readPLT adds a symbol name@plt for every stub of the procedure linkage table. A stub
// jumps through a slot of the global offset table, and the relocation of that slot names
// the function. So stubs are found by their code, whatever the linker's layout is (.plt,
// .plt.sec, .plt.got).
func (o *Object) readPLT(t *symbolTable) {
	slot := stubReader(o.Arch)
	if slot == nil {
		return
	}
	names, resolved := o.slotNames()
	t.nameResolvers(names, resolved)
	if len(names) == 0 {
		return
	}
	for _, s := range o.main.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS || !strings.HasPrefix(s.Name, ".plt") {
			continue
		}
		code, err := o.main.raw(s)
		if err != nil {
			o.note("%v", err)
			continue
		}
		size := stubSize(o.Arch, s)
		for at := uint64(0); at+size <= uint64(len(code)); at += size {
			got, ok := slot(o, code[at:at+size], s.Addr+at)
			if name := names[got]; ok && name != "" {
				t.addNamed(s.Addr+at, size, name+"@plt")
			}
		}
	}
}

// addNamed adds a symbol whose name is in no string table.
func (t *symbolTable) addNamed(addr, size uint64, name string) {
	t.entries = append(t.entries, entry{addr: addr, size: size, name: uint32(len(t.extra)), flags: named})
	t.extra = append(t.extra, name)
}

// stubSize returns the size of a stub, or of the step that finds every stub.
func stubSize(arch string, s *elf.Section) uint64 {
	switch {
	case arch == "amd64" || arch == "386":
		if s.Name == ".plt.got" && s.Entsize == 8 {
			return 8
		}
		return 16
	}
	// The header has 32 bytes, and stubs 16: on Arm, 24 where they start with BTI.
	if s.Entsize == 24 {
		return 8
	}
	return 16
}

// A slotReader returns the address of the slot that a stub jumps through.
type slotReader func(o *Object, code []byte, addr uint64) (uint64, bool)

func stubReader(arch string) slotReader {
	switch arch {
	case "amd64":
		return slotAMD64
	case "386":
		return slot386
	case "arm64":
		return slotARM64
	case "riscv64":
		return slotRISCV
	}
	return nil
}

// slotAMD64 looks for JMP *disp(%rip). The header of .plt has one as well, to a
// slot without a relocation.
func slotAMD64(_ *Object, code []byte, addr uint64) (uint64, bool) {
	for i := 0; i+6 <= len(code); i++ {
		if code[i] == 0xff && code[i+1] == 0x25 {
			disp := int64(int32(binary.LittleEndian.Uint32(code[i+2:])))
			return addr + uint64(i) + 6 + uint64(disp), true
		}
	}
	return 0, false
}

// slot386 looks for JMP *address, or JMP *disp(%ebx) in position-independent code: %ebx
// holds the address of .got.plt then.
func slot386(o *Object, code []byte, _ uint64) (uint64, bool) {
	for i := 0; i+6 <= len(code); i++ {
		if code[i] != 0xff {
			continue
		}
		disp := binary.LittleEndian.Uint32(code[i+2:])
		switch code[i+1] {
		case 0x25:
			return uint64(disp), true
		case 0xa3:
			base := o.main.Section(".got.plt")
			if base == nil {
				base = o.main.Section(".got")
			}
			if base != nil {
				return uint64(uint32(base.Addr) + disp), true
			}
		}
	}
	return 0, false
}

// slotARM64 looks for ADRP x16, page and LDR x17, [x16, #offset].
func slotARM64(_ *Object, code []byte, addr uint64) (uint64, bool) {
	for i := 0; i+8 <= len(code); i += 4 {
		adrp, ldr := binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(code[i+4:])
		if adrp&0x9f00001f != 0x90000010 || ldr&0xffc003ff != 0xf9400211 {
			continue
		}
		pages := int64(int32(adrp<<8)>>13<<2 | int32(adrp>>29&3))
		return (addr+uint64(i))&^0xfff + uint64(pages<<12) + uint64(ldr>>10&0xfff)*8, true
	}
	return 0, false
}

// slotRISCV looks for AUIPC t3, page and LD t3, offset(t3).
func slotRISCV(_ *Object, code []byte, addr uint64) (uint64, bool) {
	if len(code) < 8 {
		return 0, false
	}
	auipc, ld := binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[4:])
	if auipc&0xfff != 0xe17 || ld&0xfffff != 0xe3e03 {
		return 0, false
	}
	return addr + uint64(int64(int32(auipc&^0xfff))) + uint64(int64(int32(ld)>>20)), true
}

// slotNames returns the names of functions by slot, from the relocations that refer to
// dynamic symbols. Some slots are filled by a resolver function of the file itself:
// resolved has its address, by slot.
func (o *Object) slotNames() (names map[uint64]string, resolved map[uint64]uint64) {
	names, resolved = map[uint64]string{}, map[uint64]uint64{}
	symbols, strings := o.dynamicSymbols()
	for _, s := range o.main.Sections {
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL {
			continue
		}
		data, err := o.main.raw(s)
		if err != nil {
			continue
		}
		o.main.relocations(s.Type, data, func(r relocation) {
			switch {
			case r.symbol != 0:
				if name := o.main.symbolName(symbols, strings, r.symbol); name != "" {
					names[r.slot] = name
				}
			case r.kind == irelative[o.Arch]:
				resolved[r.slot] = r.addend
			}
		})
	}
	return names, resolved
}

// dynamicSymbols returns the dynamic symbol table and its names.
func (o *Object) dynamicSymbols() (symbols, strings []byte) {
	s := o.main.Section(".dynsym")
	if s == nil || int(s.Link) >= len(o.main.Sections) {
		return nil, nil
	}
	symbols, err := o.main.raw(s)
	if err != nil {
		return nil, nil
	}
	strings, err = o.main.raw(o.main.Sections[s.Link])
	if err != nil {
		return nil, nil
	}
	return symbols, strings
}

// nameResolvers names slots that a resolver function fills. Resolvers have the name of the
// function that they choose a version of.
func (t *symbolTable) nameResolvers(names map[uint64]string, resolved map[uint64]uint64) {
	if len(resolved) == 0 {
		return
	}
	best := map[uint64]*entry{}
	for _, addr := range resolved {
		best[addr] = nil
	}
	for i := range t.entries {
		e := &t.entries[i]
		if old, ok := best[e.addr]; ok && (old == nil || t.better(*e, *old)) {
			best[e.addr] = e
		}
	}
	for slot, addr := range resolved {
		if e := best[addr]; e != nil && names[slot] == "" {
			names[slot] = t.name(*e)
		}
	}
}

// irelative are the relocations R_…_IRELATIVE.
var irelative = map[string]uint32{"amd64": 37, "arm64": 1032, "riscv64": 58}

// A relocation is an entry of a relocation table.
type relocation struct {
	slot, addend uint64
	symbol, kind uint32
}

// relocations calls do for each relocation.
func (f *elfFile) relocations(section elf.SectionType, data []byte, do func(relocation)) {
	u, size := f.ByteOrder, 8
	if f.Class == elf.ELFCLASS64 {
		size = 16
	}
	step := size
	if section == elf.SHT_RELA {
		step += size / 2
	}
	for ; len(data) >= step; data = data[step:] {
		var r relocation
		if f.Class == elf.ELFCLASS64 {
			info := u.Uint64(data[8:])
			r = relocation{slot: u.Uint64(data), symbol: uint32(info >> 32), kind: uint32(info)}
			if step > size {
				r.addend = u.Uint64(data[16:])
			}
		} else {
			info := u.Uint32(data[4:])
			r = relocation{slot: uint64(u.Uint32(data)), symbol: info >> 8, kind: info & 0xff}
		}
		do(r)
	}
}

// symbolName returns the name of an entry of a symbol table.
func (f *elfFile) symbolName(symbols, strings []byte, index uint32) string {
	size := uint64(entrySize64)
	if f.Class == elf.ELFCLASS32 {
		size = entrySize32
	}
	at := uint64(index) * size
	if at+size > uint64(len(symbols)) {
		return ""
	}
	return cString(strings, uint64(f.ByteOrder.Uint32(symbols[at:])))
}
