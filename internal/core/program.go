package core

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/source/code"
	"github.com/cyclestack/cyclestack/profile"
)

// IsProgram reports whether a file is an ELF file.
func IsProgram(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, []byte("\x7fELF"))
}

// A Program is a function of a program that is to be analysed.
type Program struct {
	File     string
	Function string // or a part of its name that no other function has
	Loop     int    // the number of one of its loops; 0 is all innermost ones
	Symbols  profile.Config
	Syntax   disasm.Syntax
	Cores    []*simulation.Core
}

// List returns the function's code.
func (p *Program) List() (*code.Listing, error) {
	path, err := filepath.Abs(p.File)
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.File, err)
	}
	symbols := profile.NewSymbolizer(p.Symbols)
	defer symbols.Close()
	f, err := p.find(symbols, &profile.File{Name: path})
	if err != nil {
		return nil, err
	}
	listing, err := code.List(symbols, f, p.Syntax)
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.File, err)
	}
	if !modelled(listing.Arch) {
		return nil, fault.Inputf("%s: instructions of amd64 and arm64 only are modelled, these are of %s", p.File, listing.Arch)
	}
	return listing, nil
}

// modelled reports whether there are cores of an instruction set.
func modelled(a disasm.Arch) bool { return example[a] != "" }

// Analyse analyses the function's loops.
func (p *Program) Analyse() (*Document, error) {
	listing, err := p.List()
	if err != nil {
		return nil, err
	}
	loops := &Loops{Listing: listing}
	pieces := loops.Find()
	if p.Loop > 0 {
		if pieces = only(pieces, p.Loop); len(pieces) == 0 {
			return nil, fault.Usagef("--loop %d: %s", p.Loop, loops.numbers(listing.Function.Name))
		}
	}
	d := &Document{Title: p.File, Again: []string{p.File, p.Function}}
	return d, d.add(pieces, p.Cores)
}

// add analyses pieces.
func (d *Document) add(pieces []*Piece, cores []*simulation.Core) error {
	for _, p := range pieces {
		r, err := Analyse(p, cores)
		if err != nil {
			return err
		}
		d.Pieces = append(d.Pieces, r)
	}
	return nil
}

// only returns the loop with a number.
func only(pieces []*Piece, number int) []*Piece {
	return slices.DeleteFunc(pieces, func(p *Piece) bool { return p.Loop != number })
}

// numbers says which loops there are.
func (l *Loops) numbers(function string) string {
	var list []string
	for _, p := range l.Find() {
		if p.Loop > 0 {
			list = append(list, fmt.Sprint(p.Loop))
		}
	}
	if len(list) == 0 {
		return function + " has no loop"
	}
	return fmt.Sprintf("the innermost loops of %s are %s", function, strings.Join(list, ", "))
}

// find finds the function by its name, or by a part of it.
func (p *Program) find(symbols *profile.Symbolizer, file *profile.File) (*profile.Function, error) {
	o, err := object.Open(p.File, object.Options{})
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.File, err)
	}
	defer o.Close()
	all, err := o.Functions()
	if err != nil {
		return nil, fault.Inputf("%s: %w", p.File, err)
	}
	if p.Function == "" {
		return nil, fault.Usagef("%s: which function? It has %s", p.File, few(all))
	}
	for _, match := range []func(s *object.Symbol) bool{
		func(s *object.Symbol) bool {
			return s.Name == p.Function || object.Demangle(s.Name, false) == p.Function || object.Demangle(s.Name, true) == p.Function
		},
		func(s *object.Symbol) bool { return strings.Contains(object.Demangle(s.Name, false), p.Function) },
	} {
		found := slices.DeleteFunc(slices.Clone(all), func(s object.Symbol) bool { return !match(&s) })
		switch {
		case len(found) == 1:
			list, err := symbols.Lookup(file, object.Named(found[0].Name))
			if err == nil && len(list) == 0 {
				err = errors.New("its code was not found")
			}
			if err != nil {
				return nil, fault.Inputf("%s: %s: %w", p.File, p.Function, err)
			}
			return list[0], nil
		case len(found) > 1:
			return nil, fault.Usagef("%s: %s is a part of several names: %s", p.File, p.Function, few(found))
		}
	}
	return nil, fault.Inputf("%s has no function %s; it has %s", p.File, p.Function, few(all))
}

// few names some functions, the largest first.
func few(list []object.Symbol) string {
	list = slices.Clone(list)
	sorting.Stable(list, func(a, b object.Symbol) int { return cmp.Compare(b.Size, a.Size) })
	const shown = 6
	var names []string
	for _, f := range list[:min(shown, len(list))] {
		names = append(names, object.Demangle(f.Name, false))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return "no symbols"
	}
	return strings.Join(names, ", ")
}
