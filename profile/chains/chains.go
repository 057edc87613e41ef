// Package chains finds loads whose address comes out of other loads in a cycle, as
// when a list or a tree is followed: each has to wait for the one before, however
// many loads a processor can have under way.
//
//	f := chains.NewFinder(object.Options{})
//	defer f.Close()
//	if f.Chained("/usr/bin/app", 0x1149) { … }
//
// It follows values backwards through registers and the function's own variables on
// the stack, within one function and through its calls of itself. What goes through
// other memory or other functions it does not see, so that a load may be one of a
// chain though it says no.
package chains

import (
	"github.com/cyclestack/cyclestack/profile/disasm"
	"github.com/cyclestack/cyclestack/profile/object"
)

// Limits of what is looked at: larger functions and searches have no chains.
const (
	maxCode    = 1 << 18 // bytes of a function
	maxSearch  = 1 << 14 // instructions passed over in looking for where a value comes from
	maxObjects = 1 << 10 // files
)

// A Finder finds chains in the code of files. It keeps what it has found.
type Finder struct {
	options object.Options
	files   map[string]*file
}

// NewFinder returns a finder.
func NewFinder(options object.Options) *Finder {
	return &Finder{options: options, files: map[string]*file{}}
}

// Close closes the files.
func (f *Finder) Close() error {
	for _, file := range f.files {
		if file != nil {
			_ = file.object.Close() // it was read only
		}
	}
	clear(f.files)
	return nil
}

type file struct {
	object    *object.Object
	decoder   disasm.Decoder
	functions map[uint64]map[uint64]bool // chained loads, by start of the function
}

// Chained reports whether the instruction at an address of a file, as objdump shows
// it, is a load of a chain. It is false for a file that cannot be read, and on
// instruction sets other than amd64.
func (f *Finder) Chained(path string, addr uint64) bool {
	file := f.file(path)
	if file == nil {
		return false
	}
	start, size, ok := file.object.Extent(addr)
	if !ok || size > maxCode {
		return false
	}
	chained, ok := file.functions[start]
	if !ok {
		chained = file.analyse(start, int(size))
		file.functions[start] = chained
	}
	return chained[addr]
}

// file returns a file, nil if it cannot be read.
func (f *Finder) file(path string) *file {
	if known, ok := f.files[path]; ok {
		return known
	}
	if len(f.files) >= maxObjects {
		return nil
	}
	f.files[path] = nil
	o, err := object.Open(path, f.options)
	if err != nil {
		return nil
	}
	d, err := disasm.New(disasm.Arch(o.Arch), disasm.ATT)
	if err != nil || readers[disasm.Arch(o.Arch)] == nil {
		_ = o.Close()
		return nil
	}
	f.files[path] = &file{o, d, map[uint64]map[uint64]bool{}}
	return f.files[path]
}

// analyse finds the chained loads of a function.
func (f *file) analyse(start uint64, size int) map[uint64]bool {
	code, err := f.object.Code(start, size)
	if err != nil {
		return nil
	}
	return Loads(disasm.Arch(f.object.Arch), disasm.Instructions(f.decoder, code, start), func(i disasm.Inst) string {
		return f.decoder.Text(i, code[i.Addr-start:])
	})
}

// Loads returns the addresses of a function's chained loads, given its instructions
// and what they say, on amd64 in AT&T's syntax.
func Loads(arch disasm.Arch, insts []disasm.Inst, text func(disasm.Inst) string) map[uint64]bool {
	read := readers[arch]
	if read == nil || len(insts) == 0 {
		return nil
	}
	g := newGraph(insts)
	for i := range insts {
		g.steps = append(g.steps, read(text(insts[i])))
	}
	chained := map[uint64]bool{}
	for i := range g.steps {
		if g.steps[i].load && g.endless(i) {
			chained[insts[i].Addr] = true
		}
	}
	return chained
}
