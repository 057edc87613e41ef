package profile

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
)

// A Listing is the code of a function: its instructions with their lines, and
// its blocks and loops.
type Listing struct {
	Function *Function
	Insts    []ListedInst
	Graph    *disasm.Graph
	// Cut says that the function is longer than what is listed.
	Cut bool
}

// A ListedInst is an instruction of a listing.
type ListedInst struct {
	disasm.Inst
	Place Place  // to find its samples by
	Text  string // as the assembler writes it
	// Note says where a branch goes, or what data the instruction refers to, as
	// objdump writes it: <main+0x10>.
	Note string
	File string // the source line; "" and 0 if it is not known
	Line int
}

// MaxListing is how many bytes of a function are listed.
const MaxListing = 1 << 20

// List disassembles a function. The addresses in the listing are those of the
// object file.
func (y *Symbolizer) List(f *Function, syntax disasm.Syntax) (*Listing, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if f.Symbol == "" {
		return nil, fmt.Errorf("no function is known in %s", orUnmapped(f.File))
	}
	im := y.image(f.File)
	code, arch, err := im.code(f)
	if err != nil {
		return nil, err
	}
	d, err := disasm.New(disasm.Arch(arch), syntax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.File.Name, err)
	}
	insts := disasm.Instructions(d, code, f.Addr)
	l := &Listing{Function: f, Graph: disasm.NewGraph(insts), Cut: f.Size > MaxListing}
	for _, i := range insts {
		at := i.Addr - f.Addr
		p := Place{f.File, f.start + at}
		file, line := im.line(p)
		l.Insts = append(l.Insts, ListedInst{
			Inst: i, Place: p, Text: d.Text(i, code[at:]), Note: disasm.Annotate(i, y.symbolAt(im)),
			File: file, Line: line,
		})
	}
	return l, nil
}

func orUnmapped(f *File) string {
	if f == nil {
		return "memory that is in no mapping"
	}
	return f.Name
}

// symbolAt names addresses of an image, also those of variables.
func (y *Symbolizer) symbolAt(im *image) disasm.SymbolAt {
	return func(addr uint64) (string, uint64) {
		s, ok := im.symbolOf(addr)
		if !ok {
			return "", 0
		}
		return y.demangle(s.Name), addr - s.Addr
	}
}

// symbolOf returns the symbol at an address of the object.
func (im *image) symbolOf(addr uint64) (object.Symbol, bool) {
	switch {
	case im.object != nil:
		if s, ok := im.object.Symbol(addr); ok {
			return s, true
		}
		return im.object.Data(addr)
	case im.table != nil:
		return im.table.find(addr)
	}
	return object.Symbol{}, false
}

// code returns the machine code of a function and its instruction set.
func (im *image) code(f *Function) (code []byte, arch string, err error) {
	size := int(min(f.Size, MaxListing))
	switch {
	case im.object != nil:
		code, err = im.object.Code(f.Addr, size)
		arch = im.object.Arch
	case im.dump != nil:
		code, err = readAt(im.path, f.start, size)
		arch = im.dump.Arch
	default:
		return nil, "", fmt.Errorf("%s: the code of %s is in no file: only its name is known", f.File.Name, f.Symbol)
	}
	if err == nil && len(code) == 0 {
		err = fmt.Errorf("%s has no code for %s: it is a debug file, or cut off", im.status.Path, f.Symbol)
	}
	return code, arch, err
}
