package code

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/profile"
)

// A Listing is the code of a function: its instructions with their lines, its blocks and
// its loops.
type Listing struct {
	Function *profile.Function
	Arch     disasm.Arch
	Insts    []Inst
	Graph    *disasm.Graph
	Cut      bool // the function is longer than the listing

	describe func(*Inst)
}

// An Inst is an instruction of a listing.
type Inst struct {
	disasm.Inst
	Code []byte // its own
	Text string // as the assembler writes it
	// Note is the target of a branch, or the data that the instruction refers to, as
	// objdump writes it: <main+0x10>.
	Note string
	File string // of the source line; "" and 0 if it is not known
	Line int
	// OuterFile and OuterLine are where the function itself calls what was inlined here; ""
	// and 0 if nothing was.
	OuterFile string
	OuterLine int
}

// MaxListing is how many bytes of a function are listed.
const MaxListing = 1 << 20

// List disassembles a function. The addresses in the listing are those of the object file.
func (r *Reader) List(f *profile.Function, syntax disasm.Syntax) (*Listing, error) {
	return List(r.symbols, f, syntax)
}

// List disassembles a function of a file.
func List(symbols *profile.Symbolizer, f *profile.Function, syntax disasm.Syntax) (*Listing, error) {
	l, err := Bare(symbols, f, syntax)
	if err != nil {
		return nil, err
	}
	for i := range l.Insts {
		l.Describe(&l.Insts[i])
	}
	return l, nil
}

// Bare is List without texts, notes and lines: Describe adds them.
func Bare(symbols *profile.Symbolizer, f *profile.Function, syntax disasm.Syntax) (*Listing, error) {
	code, arch, err := symbols.Code(f, MaxListing)
	if err != nil {
		return nil, err
	}
	d, err := disasm.New(disasm.Arch(arch), syntax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.File.Name, err)
	}
	insts := disasm.Instructions(d, code, f.Addr)
	l := &Listing{Function: f, Arch: disasm.Arch(arch), Graph: disasm.NewGraph(insts), Cut: f.Size > MaxListing, Insts: make([]Inst, len(insts))}
	for i, in := range insts {
		at := in.Addr - f.Addr
		l.Insts[i] = Inst{Inst: in, Code: code[at : at+uint64(in.Len)]}
	}
	symbol := func(addr uint64) (string, uint64) { return symbols.Symbol(f.File, addr) }
	l.describe = func(i *Inst) {
		at := i.Addr - f.Addr
		place := profile.Place{File: f.File, Offset: f.Offset + at}
		i.File, i.Line = symbols.Line(place)
		i.Text, i.Note = d.Text(i.Inst, code[at:]), disasm.Annotate(i.Inst, symbol)
		if frames := symbols.Frames(place); len(frames) > 1 {
			i.OuterFile, i.OuterLine = frames[len(frames)-1].File, frames[len(frames)-1].Line
		}
	}
	return l, nil
}

// Describe adds the text, note and lines of an instruction that has none.
func (l *Listing) Describe(i *Inst) {
	if i.Text == "" && l.describe != nil {
		l.describe(i)
	}
}
