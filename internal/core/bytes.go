package core

import (
	"bytes"
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/profile"
)

// Bytes analyses each block of a file of blocks in full.
func (b *Blocks) Bytes(syntax disasm.Syntax) (*Document, error) {
	const most = 1000 // of such screens nobody reads more
	d := &Document{Title: b.Name}
	for row, err := range b.blocks() {
		switch {
		case err != nil:
			return nil, err
		case len(d.Pieces) == most:
			d.More++
			continue
		}
		p, err := blockPiece(row.code, syntax, !b.Loop)
		if err != nil {
			return nil, fault.Inputf("%s:%d: %w", b.Name, row.line, err)
		}
		p.Block, p.Same = row.text, b.Same
		if err := d.add([]*Piece{p}, b.Cores); err != nil {
			return nil, err
		}
	}
	if len(d.Pieces) == 0 {
		return nil, fault.Inputf("%s has no block", b.Name)
	}
	return d, nil
}

// blockPiece decodes a block.
func blockPiece(bytes []byte, syntax disasm.Syntax, unrolled bool) (*Piece, error) {
	const at = 0x10000
	d, err := disasm.New(disasm.AMD64, syntax)
	if err != nil {
		return nil, err
	}
	p := &Piece{Unrolled: unrolled}
	for from := 0; from < len(bytes); {
		in := d.Decode(bytes[from:], at+uint64(from))
		if in.Bad {
			return nil, fmt.Errorf("byte %d is not an instruction", from)
		}
		p.Insts = append(p.Insts, code.Inst{Inst: in, Code: bytes[from : from+in.Len], Text: d.Text(in, bytes[from:])})
		p.Taken = append(p.Taken, false)
		from += in.Len
	}
	if len(p.Insts) == 0 {
		return nil, errors.New("the block has no instruction")
	}
	p.Taken[len(p.Taken)-1] = !unrolled
	return p, nil
}

// An Assembly is a file of assembly, in GNU's syntax, that is to be analysed: its loops, or
// without labels all of it.
type Assembly struct {
	Name   string // of the file; "-" is In
	In     io.Reader
	Loop   bool // it is one loop, whose last instruction jumps back
	Unroll bool // copies of it follow each other
	Syntax disasm.Syntax
	Cores  []*simulation.Core
}

// longestAssembly bounds a file of assembly.
const longestAssembly = 16 << 20

// Analyse assembles the file with GNU's assembler and analyses it.
func (a *Assembly) Analyse(ctx context.Context) (*Document, error) {
	as, err := exec.LookPath("as")
	if err != nil {
		return nil, fault.Machinef("assembly needs GNU's assembler, as, which is not installed (Debian's package is binutils); %s takes machine code", fault.Name("hex"))
	}
	in := a.In
	if a.Name != "-" {
		f, err := os.Open(a.Name)
		if err != nil {
			return nil, unopened(a.Name, err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, longestAssembly+1))
	if err != nil {
		return nil, fault.Inputf("%s: %w", a.Name, err)
	}
	if len(text) > longestAssembly {
		return nil, fault.Inputf("%s: longer than %d bytes", a.Name, longestAssembly)
	}
	dir, err := os.MkdirTemp("", "cyclestack-as-")
	if err != nil {
		return nil, fault.As(fault.Machine, err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "code.o")
	cmd := exec.CommandContext(ctx, as, "--64", "-gdwarf-4", "-o", out, "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fault.Inputf("%s", firstError(string(said), a.name()))
	}
	return a.object(out)
}

// firstError returns the first error that the assembler reports.
func firstError(said, name string) string {
	for line := range strings.Lines(said) {
		if _, text, ok := strings.Cut(line, "Error: "); ok {
			number, _, _ := strings.Cut(strings.TrimPrefix(line, "{standard input}:"), ":")
			return fmt.Sprintf("%s:%s: %s", name, number, strings.TrimSpace(text))
		}
	}
	return strings.TrimSpace(said)
}

// name names the file in messages.
func (a *Assembly) name() string {
	if a.Name == "-" {
		return "standard input"
	}
	return a.Name
}

// object analyses the code of an object file.
func (a *Assembly) object(file string) (*Document, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fault.Inputf("%s: %w", a.Name, err)
	}
	defer f.Close()
	section := f.Section(".text")
	if section == nil || section.Size == 0 {
		return nil, fault.Inputf("%s has no instructions", a.Name)
	}
	bytes, err := section.Data()
	if err != nil {
		return nil, fault.Inputf("%s: %w", a.Name, err)
	}
	p, err := blockPiece(bytes, a.Syntax, a.Unroll)
	if err != nil {
		return nil, fault.Inputf("%s: %w", a.Name, err)
	}
	p.Module = a.name()
	a.lines(f, p)
	d := &Document{Title: a.name()}
	pieces := []*Piece{p}
	if !a.Loop && !a.Unroll {
		l := &Loops{Listing: &code.Listing{Function: &profile.Function{File: &profile.File{Name: a.name()}}, Arch: disasm.AMD64, Insts: p.Insts, Graph: disasm.NewGraph(bare(p.Insts))}}
		pieces = l.Find()
	}
	return d, d.add(pieces, a.Cores)
}

// bare returns instructions without their texts.
func bare(list []code.Inst) []disasm.Inst {
	out := make([]disasm.Inst, len(list))
	for i := range list {
		out[i] = list[i].Inst
	}
	return out
}

// lines finds the lines of the assembly, if the assembler has written them.
func (a *Assembly) lines(f *elf.File, p *Piece) {
	data, err := f.DWARF()
	if err != nil {
		return // addresses remain
	}
	unit, err := data.Reader().Next()
	if err != nil || unit == nil {
		return
	}
	rows, err := data.LineReader(unit)
	if err != nil || rows == nil {
		return
	}
	at := map[uint64]int{}
	var e dwarf.LineEntry
	for rows.Next(&e) == nil && len(at) <= longestAssembly {
		at[e.Address] = e.Line
	}
	start := p.Insts[0].Addr
	for i := range p.Insts {
		in := &p.Insts[i]
		if in.Line = at[in.Addr-start]; in.Line > 0 {
			in.File = a.name()
		}
	}
	p.place()
}
