package core

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/profile"
)

// EachBlock is the Loop of a request without a number.
const EachBlock = "each"

// A Request says what to analyse: a function of a program, blocks or assembly.
type Request struct {
	Args     []string // program and function
	Hex      string   // a file of blocks; "-" is In
	Assembly string   // a file of assembly; "-" is In
	Loop     string   // a number, or EachBlock
	Unrolled bool
	Same     bool   // blocks start with equal registers
	Measured string // a file of measured cycles by function; "-" is In
	In       io.Reader
	Symbols  profile.Config
	Syntax   disasm.Syntax
	Cores    []*simulation.Core
	Table    bool // one row for each block
}

// A Found is the answer to a request: blocks that are still to be read, or a document.
type Found struct {
	Blocks   *Blocks
	Document *Document
	Inputs   []string // files that were read
	close    func() error
}

// Close closes the file of the blocks.
func (f *Found) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// Analyse analyses what was asked for.
func (r *Request) Analyse(ctx context.Context) (*Found, error) {
	switch {
	case r.Hex != "" && r.Assembly != "" || len(r.Args) > 0 && r.Hex+r.Assembly != "":
		return nil, fault.Usagef("a program's function, %s or %s: one of them", fault.Name("hex"), fault.Name("asm"))
	case r.Unrolled && r.Loop != "":
		return nil, fault.Usagef("%s and %s: one of them", fault.Name("loop"), fault.Name("unrolled"))
	case r.Same && r.Hex == "":
		return nil, fault.Usagef("%s is for %s", fault.Name("same-registers"), fault.Name("hex"))
	case r.Hex != "":
		return r.blocks()
	case r.Assembly != "":
		a := &Assembly{Name: r.Assembly, In: r.In, Loop: r.Loop == EachBlock, Unroll: r.Unrolled, Syntax: r.Syntax, Cores: r.Cores}
		d, err := a.Analyse(ctx)
		return &Found{Document: d, Inputs: []string{r.Assembly}}, err
	case len(r.Args) == 0:
		return nil, fault.Usagef("what to analyse: PROGRAM FUNCTION, %s FILE or %s FILE", fault.Name("hex"), fault.Name("asm"))
	}
	return r.program()
}

// blocks opens a file of blocks.
func (r *Request) blocks() (*Found, error) {
	if (r.Loop == EachBlock) == r.Unrolled {
		return nil, fault.Usagef("%s or %s says how the blocks are executed", fault.Name("loop"), fault.Name("unrolled"))
	}
	b := &Blocks{Same: r.Same, Cores: r.Cores, Loop: !r.Unrolled, Source: r.In, Name: "standard input"}
	found := &Found{Inputs: []string{r.Hex}}
	if r.Hex != "-" {
		f, err := os.Open(r.Hex)
		if err != nil {
			return nil, unopened(r.Hex, err)
		}
		b.Source, b.Name, found.close = f, r.Hex, f.Close
	}
	if r.Table {
		found.Blocks = b
		return found, nil
	}
	d, err := b.Bytes(r.Syntax)
	found.Document = d
	return found, err
}

// unopened names a file that cannot be opened, and the reason.
func unopened(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fault.Inputf("%s: %w", name, err)
}

// Number returns the number of the loop that was asked for, 0 for none. It may be among the
// arguments, behind --loop: it is taken from there.
func (r *Request) Number() (int, error) {
	for i, arg := range r.Args {
		if _, err := strconv.Atoi(arg); err == nil && i > 0 && r.Loop == EachBlock {
			r.Loop, r.Args = arg, slices.Delete(slices.Clone(r.Args), i, i+1)
			break
		}
	}
	if len(r.Args) > 2 {
		return 0, fault.Usagef("%q is one argument too many", r.Args[2])
	}
	if r.Loop == "" || r.Loop == EachBlock {
		return 0, nil
	}
	n, err := strconv.Atoi(r.Loop)
	if err != nil || n < 1 {
		return 0, fault.Usagef("--loop %s: must be the number of a loop", r.Loop)
	}
	return n, nil
}

// program analyses a function of a program.
func (r *Request) program() (*Found, error) {
	p := &Program{File: r.Args[0], Symbols: r.Symbols, Syntax: r.Syntax, Cores: r.Cores}
	n, err := r.Number()
	if err != nil {
		return nil, err
	}
	if p.Loop = n; len(r.Args) > 1 {
		p.Function = r.Args[1]
	}
	if r.Measured != "" {
		d, err := r.compare(p)
		return &Found{Document: d, Inputs: append(r.Args[:1:1], r.Measured)}, err
	}
	d, err := p.Analyse()
	return &Found{Document: d, Inputs: r.Args[:1]}, err
}
