package annotate

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/source/code"
)

// NewListing makes a listing from the code of a function: of the instructions from one
// address up to another, or of all with 0 and 0.
func NewListing(l *code.Listing, from, to uint64) *Listing {
	f := l.Function
	out := &Listing{Function: f.Name, Symbol: f.Symbol, Module: f.File.Base(), BuildID: f.File.BuildID, Start: f.Addr, End: f.Addr + f.Size}
	if to > 0 {
		out.Start, out.End, out.Part = from, to, true
	}
	var insts []disasm.Inst
	callees := map[uint64]string{}
	for _, i := range l.Insts {
		if to > 0 && (i.Next() <= from || i.Addr >= to) {
			continue
		}
		insts = append(insts, i.Inst)
		out.Insts = append(out.Insts, Inst{Inst: i.Inst, Text: i.Text, Note: i.Note, File: i.File, Line: i.Line})
		if name, ok := strings.CutPrefix(i.Note, "<"); ok && i.Flow == disasm.Call {
			callees[i.Target] = strings.TrimSuffix(name, ">")
		}
	}
	out.Graph = flow.NewGraph(insts, func(addr uint64) string { return callees[addr] })
	out.Notes = notesOf(l, out.Graph)
	return out
}

// notesOf says what the listing lacks.
func notesOf(l *code.Listing, g *disasm.Graph) []string {
	var out []string
	if l.Cut {
		out = append(out, fmt.Sprintf("the function has %d bytes: the first %d are listed", l.Function.Size, code.MaxListing))
	}
	indirect := 0
	for i := range g.Blocks {
		if g.Blocks[i].Indirect {
			indirect++
		}
	}
	if indirect > 0 {
		out = append(out, fmt.Sprintf("%d indirect jumps: their targets are guessed, as are the loops through them", indirect))
	}
	if g.Irreducible {
		out = append(out, "a cycle is entered at more than one place: it is no loop with a header, and not among the loops")
	}
	if g.Partial {
		out = append(out, "the function is too large for all of its loops to be found")
	}
	return out
}
