// Package chains finds loads whose address comes from other loads in a cycle, as in walks along
// a list. Each has to wait for the one before, however many loads a processor can have in
// flight.
//
//	f := chains.NewFinder(object.Options{})
//	defer f.Close()
//	if f.Chained("/usr/bin/app", 0x1149) { … }
//
// It follows values backwards through registers and variables on the stack, within one function
// and its calls of itself. It does not follow them through other memory or other functions, and
// so may miss chains.
package chains

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
)

// Limits of the analysis: larger functions and searches have no chains.
const (
	maxCode    = 1 << 18 // bytes of a function
	maxSearch  = 1 << 14 // instructions that a search for a value may pass
	maxObjects = 1 << 10 // files
	maxKnown   = 1 << 12 // functions that are remembered
	window     = 1 << 10 // bytes of code on each side, if no function is known
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
	windows   map[uint64]map[uint64]bool // the same by number of a piece of code of no known function
}

// Chained reports whether the instruction at a file's address, as in objdump, is a load of a
// chain. In a file without symbols the code around it stands for the function. It is false for
// a file that cannot be read, and on instruction sets other than amd64.
func (f *Finder) Chained(path string, addr uint64) bool {
	file := f.file(path)
	if file == nil {
		return false
	}
	start, size, ok := file.object.Extent(addr)
	switch {
	case !ok:
		return file.nameless(addr)[addr]
	case size > maxCode:
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
	if err != nil || readerOf(disasm.Arch(o.Arch)) == nil {
		_ = o.Close()
		return nil
	}
	f.files[path] = &file{o, d, map[uint64]map[uint64]bool{}, map[uint64]map[uint64]bool{}}
	return f.files[path]
}

// nameless finds the chained loads of the code around an address of no known function. The
// starts of instructions are not known either. Decoding from a wrong byte meets them after
// a few instructions, so that one of the first bytes will do.
func (f *file) nameless(addr uint64) map[uint64]bool {
	number := addr / window
	if chained, ok := f.windows[number]; ok {
		return chained
	}
	start := (max(number, 1) - 1) * window
	if code, err := f.object.Code(start, 1); err != nil || len(code) == 0 {
		start = number * window // the code begins here
	}
	for shift := range uint64(16) {
		code, err := f.object.Code(start+shift, 3*window)
		if err != nil || len(code) == 0 {
			break
		}
		insts := disasm.Instructions(f.decoder, code, start+shift)
		if slices.ContainsFunc(insts, func(i disasm.Inst) bool { return i.Addr == addr }) {
			f.windows[number] = f.loads(insts, code, start+shift)
			return f.windows[number]
		}
	}
	f.windows[number] = nil
	return nil
}

// analyse finds the chained loads of a function.
func (f *file) analyse(start uint64, size int) map[uint64]bool {
	code, err := f.object.Code(start, size)
	if err != nil {
		return nil
	}
	id := codeID{f.object.Arch, start, sha256.Sum256(code)}
	known.Lock()
	chained, ok := known.loads[id]
	known.Unlock()
	if ok {
		return chained
	}
	chained = f.loads(disasm.Instructions(f.decoder, code, start), code, start)
	known.Lock()
	defer known.Unlock()
	if len(known.loads) >= maxKnown {
		clear(known.loads)
	}
	known.loads[id] = chained
	return chained
}

// A codeID says which code it is, in whatever file.
type codeID struct {
	arch  string
	start uint64
	hash  [sha256.Size]byte
}

// known are the chained loads of functions that were analysed last: a report reads the same
// recording several times.
var known = struct {
	sync.Mutex
	loads map[codeID]map[uint64]bool
}{loads: map[codeID]map[uint64]bool{}}

// loads finds the chained loads of instructions, given their code.
func (f *file) loads(insts []disasm.Inst, code []byte, start uint64) map[uint64]bool {
	return Loads(disasm.Arch(f.object.Arch), insts, func(i disasm.Inst) string { return f.decoder.Text(i, code[i.Addr-start:]) })
}

// Loads returns the addresses of a function's chained loads, given its instructions and
// their texts, on amd64 in AT&T's syntax.
func Loads(arch disasm.Arch, insts []disasm.Inst, text func(disasm.Inst) string) map[uint64]bool {
	read := readerOf(arch)
	if read == nil || len(insts) == 0 {
		return nil
	}
	g := newGraph(insts)
	for i := range insts {
		g.add(read(text(insts[i])))
	}
	chained := map[uint64]bool{}
	for i := range g.steps {
		if g.steps[i].load && g.endless(i) {
			chained[insts[i].Addr] = true
		}
	}
	return chained
}
