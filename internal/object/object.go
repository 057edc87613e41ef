// Package object reads what an ELF file says about its code: the function of an address,
// its line, its inlined calls, and the code itself.
//
// Files are mapped, and read when a question needs it. A program of a gigabyte costs what is
// asked of it: its symbols with the first wanted symbol, and a compilation unit's line table
// with the first address in it. Parts that a file lacks are looked for in its separate debug
// file.
//
// Addresses are those of the ELF file, as objdump shows them. A running process has the
// file elsewhere; [Object.Addr] takes an offset in the file, as mappings have it.
//
// Input is not trusted: files may be truncated or made to harm. Sizes are checked against
// the file before anything is allocated.
package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/unwind"
)

// Options say where to look for what an object file lacks.
type Options struct {
	// BuildID is the identification that the file must have, in lower-case hexadecimal. A
	// longer or shorter one matches if it has the same start. Empty: any file is accepted.
	BuildID string
	// Debug are directories of separate debug files, such as /usr/lib/debug.
	Debug []string
	// Root is put in front of the paths in debug information that lead to further files.
	Root string
	// Fetch returns the path of the debug file of a build id from elsewhere, or "". It is
	// asked if there is no debug file here; it may be nil.
	Fetch func(id string) string
	// Cache is how many bytes of line tables and inlined calls may be kept.
	// 0: 64 MiB.
	Cache int
	// NoLines says that files and lines are not needed, neither in frames.
	NoLines bool
	// Indexes keep the symbols and an index of the inlined calls; nil for none.
	Indexes Indexes
}

const defaultCache = 64 << 20

// ErrBuildID is in the errors of files that are not those asked for.
var ErrBuildID = errors.New("is another build")

// An Object is an ELF file with its separate debug file. Its methods may be
// used concurrently.
type Object struct {
	Path      string
	DebugPath string // the separate debug file in use, or ""
	BuildID   string // lower-case hexadecimal, or "" if there is none
	Arch      string // Go's name for the instruction set, or "" if unknown

	options  Options
	main     *elfFile
	debug    *elfFile // separate, or nil
	mini     *elfFile // the symbols of .gnu_debugdata, or nil
	segments []segment
	code     []span // sections with instructions, by address

	mu      sync.Mutex
	symbols *symbolData // nil: not read yet
	data    *symbolData // of variables
	dwarf   *dwarfInfo  // nil: not read yet
	slim    *dwarfInfo  // for lines alone; without units these need dwarf
	golang  *goTable    // nil: not read yet
	callers *unwind.Table
	indexes [keptKinds]*inlineIndex // nil: not read yet, or not kept
	dwp     *dwpFile                // nil: not found
	altFile *altFile                // likewise
	// Whether these were looked for.
	searchedDwp, searchedAlt bool
	notes                    []string
}

// A segment is a part of the file that is loaded.
type segment struct {
	offset, addr, size uint64 // size in the file
}

// A span is a range of addresses.
type span struct{ low, high uint64 }

// Open opens an object file.
func Open(path string, options Options) (*Object, error) {
	if options.Cache == 0 {
		options.Cache = defaultCache
	}
	f, err := openELF(path)
	if err != nil {
		return nil, err
	}
	o, err := newObject(f, options)
	if err != nil {
		f.Close()
		return nil, err
	}
	return o, nil
}

// FromMemory opens an object file that is in memory, such as the kernel's vdso.
// The caller must not change data. The name is for messages.
func FromMemory(name string, data []byte, options Options) (*Object, error) {
	if options.Cache == 0 {
		options.Cache = defaultCache
	}
	f, err := newELF(name, data)
	if err != nil {
		return nil, err
	}
	return newObject(f, options)
}

func newObject(f *elfFile, options Options) (*Object, error) {
	o := &Object{Path: f.path, Arch: archOf(f.File), options: options, main: f}
	err := protect(func() error {
		o.BuildID = f.buildID()
		if !SameBuildID(options.BuildID, o.BuildID) {
			return fmt.Errorf("%s: %w: its build id is %s, not %s", f.path, ErrBuildID, orNone(o.BuildID), options.BuildID)
		}
		o.layOut()
		if !f.has(".symtab") || !f.has(".debug_info") && !f.has(".zdebug_info") {
			o.openDebug()
		}
		o.openMini()
		return nil
	})
	return o, err
}

func orNone(id string) string {
	return cmp.Or(id, "absent")
}

// SameBuildID says whether a file with the build id got can be the one wanted.
// Recordings cut ids to 20 bytes, and some pad shorter ones with zeros.
func SameBuildID(want, got string) bool {
	if want == "" || want == got {
		return true
	}
	if len(want) > len(got) {
		want, got = got, want
	}
	if len(want) < 16 { // too short to be the cut of another
		return false
	}
	rest := got[len(want):]
	return got[:len(want)] == want && (len(want) == 40 || allZero(rest))
}

func allZero(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}

// Close unmaps the files. Strings and slices of code that methods have returned
// stay valid.
func (o *Object) Close() error {
	err := errors.Join(distrust("the inlined calls", func() error { o.keepIndexes(); return nil }), o.main.Close())
	if o.debug != nil {
		err = errors.Join(err, o.debug.Close())
	}
	if o.dwp != nil {
		err = errors.Join(err, o.dwp.file.Close())
	}
	if o.altFile != nil {
		err = errors.Join(err, o.altFile.file.Close())
	}
	return errors.Join(err, o.closeUnits())
}

// Release forgets symbols, debug information and the index of inlined calls, which are read again
// if they are asked for. The index is kept first.
func (o *Object) Release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = distrust("the inlined calls", func() error { o.keepIndexes(); return nil })
	_ = o.closeUnits() // they were read, and nothing was written
	o.dwarf, o.slim, o.golang, o.symbols, o.data, o.indexes = nil, nil, nil, nil, nil, [keptKinds]*inlineIndex{}
	o.main.unload()
	o.debug.unload()
}

// closeUnits closes the files that units are described in.
func (o *Object) closeUnits() (err error) {
	if o.dwarf == nil {
		return nil
	}
	for _, u := range o.dwarf.units {
		if u.split != nil && u.split.file != nil {
			err = errors.Join(err, u.split.file.Close())
		}
	}
	return err
}

// Notes are reasons why answers are fewer than the file could give, such as debug information
// in another file.
func (o *Object) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.notes)
}

// mostNotes is how many notes there are of a file: a damaged one may have one for each of its units.
const mostNotes = 100

func (o *Object) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(o.notes) < mostNotes && !slices.Contains(o.notes, text) {
		o.notes = append(o.notes, text)
	}
}

// layOut notes where the file's parts are loaded, and where its code is.
func (o *Object) layOut() {
	for _, p := range o.main.Progs {
		if p.Type == elf.PT_LOAD && p.Filesz > 0 {
			o.segments = append(o.segments, segment{p.Off, p.Vaddr, p.Filesz})
		}
	}
	for _, s := range o.main.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			o.code = append(o.code, span{s.Addr, s.Addr + s.Size})
		}
	}
	if len(o.code) == 0 { // no section headers
		for _, p := range o.main.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr+p.Memsz > p.Vaddr {
				o.code = append(o.code, span{p.Vaddr, p.Vaddr + p.Memsz})
			}
		}
	}
	sorting.Stable(o.code, func(a, b span) int { return compare(a.low, b.low) })
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Addr returns the address that a place in the file is loaded at.
func (o *Object) Addr(offset uint64) (uint64, bool) {
	for _, s := range o.segments {
		if offset >= s.offset && offset-s.offset < s.size {
			return s.addr + (offset - s.offset), true
		}
	}
	// A mapping begins and ends at pages. It may include bytes around a segment in the
	// file; the addresses go on there as well.
	for _, s := range o.segments {
		if offset >= s.offset&^0xfff && offset < s.offset+s.size+0xfff {
			return s.addr + (offset - s.offset), true
		}
	}
	return 0, false
}

// Offset is the reverse of Addr.
func (o *Object) Offset(addr uint64) (uint64, bool) {
	for _, s := range o.segments {
		if addr >= s.addr && addr-s.addr < s.size {
			return s.offset + (addr - s.addr), true
		}
	}
	return 0, false
}

// Code returns up to n bytes of code from an address on: fewer at the end of a
// segment, none where nothing is loaded.
func (o *Object) Code(addr uint64, n int) (code []byte, err error) {
	err = protect(func() error {
		offset, ok := o.Offset(addr)
		if !ok || n <= 0 {
			return nil
		}
		for _, s := range o.segments {
			if addr >= s.addr && addr-s.addr < s.size {
				size := min(uint64(n), s.size-(addr-s.addr))
				part, err := o.main.bytes(offset, size)
				code = slices.Clone(part)
				return err
			}
		}
		return nil
	})
	return code, err
}

// isCode says whether an address is in a section with instructions.
func (o *Object) isCode(addr uint64) bool {
	_, ok := o.codeEnd(addr)
	return ok
}

// codeEnd returns the end of the section with instructions that an address is in.
func (o *Object) codeEnd(addr uint64) (uint64, bool) {
	i := sort.Search(len(o.code), func(i int) bool { return o.code[i].low > addr }) - 1
	if i < 0 || addr >= o.code[i].high {
		return 0, false
	}
	return o.code[i].high, true
}

func archOf(f *elf.File) string {
	little := f.Data == elf.ELFDATA2LSB
	switch {
	case f.Machine == elf.EM_X86_64:
		return "amd64"
	case f.Machine == elf.EM_386:
		return "386"
	case f.Machine == elf.EM_AARCH64:
		return "arm64"
	case f.Machine == elf.EM_PPC64 && little:
		return "ppc64le"
	case f.Machine == elf.EM_PPC64:
		return "ppc64"
	case f.Machine == elf.EM_RISCV && f.Class == elf.ELFCLASS64:
		return "riscv64"
	}
	return ""
}

// buildID returns the build id of a file, from its notes.
func (f *elfFile) buildID() string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_NOTE {
			if data, err := f.bytes(p.Off, p.Filesz); err == nil {
				if id := findBuildID(data, f.ByteOrder, p.Align); id != "" {
					return id
				}
			}
		}
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOTE {
			if data, err := f.raw(s); err == nil {
				if id := findBuildID(data, f.ByteOrder, s.Addralign); id != "" {
					return id
				}
			}
		}
	}
	return ""
}

// noteBuildID is NT_GNU_BUILD_ID.
const noteBuildID = 3

// findBuildID looks for the build id in notes: names and contents padded to 4
// bytes, or to 8 where the segment is aligned so.
func findBuildID(data []byte, order binary.ByteOrder, align uint64) string {
	pad := uint64(4)
	if align == 8 {
		pad = 8
	}
	for uint64(len(data)) >= 12 {
		name, desc, kind := uint64(order.Uint32(data)), uint64(order.Uint32(data[4:])), order.Uint32(data[8:])
		at := (12 + name + pad - 1) &^ (pad - 1)
		end := at + desc
		if end > uint64(len(data)) {
			return ""
		}
		if kind == noteBuildID && string(data[12:12+name]) == "GNU\x00" {
			return hex.EncodeToString(data[at:end])
		}
		data = data[min((end+pad-1)&^(pad-1), uint64(len(data))):]
	}
	return ""
}

// NotesBuildID returns the build id in ELF notes of this machine, such as
// /sys/kernel/notes, or "" if there is none.
func NotesBuildID(notes []byte) string { return findBuildID(notes, binary.NativeEndian, 4) }
