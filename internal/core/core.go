// Package core says why a piece of code is slow in a processor's core, with perfect caches and
// branch prediction. It gives the loops of a program's function, raw bytes or an assembly file
// to models of cores: package simulation.
//
// [Blocks] reads one block of machine code from each line of a file:
//
//	rows := core.Blocks{Cores: cores, Loop: true, Source: f, Name: "blocks.txt"}
//	for row, err := range rows.All { … }
package core

import (
	"bufio"
	"encoding/hex"
	"io"
	"iter"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// CoreFor returns the model of the core of a processor of the catalogue. Of this machine's
// processor the features are known, flags as /proc/cpuinfo has them.
func CoreFor(p resolve.Processor, features []string) (*simulation.Core, error) {
	if p.CPU == nil {
		return nil, fault.Usagef("the processor is not known: %s names one, such as amdzen4 or skylakex", fault.Name("cpu"))
	}
	switch c := HostCore(p.CPU.Name, features); {
	case p.CPU.Layout == "arm" && c.Name == simulation.TypicalCore:
		return nil, fault.Usagef("%s: of arm64 only Neoverse N1, V1 and V2 are modelled", p.CPU.Name)
	case p.CPU.Layout != "intel" && p.CPU.Layout != "amd" && p.CPU.Layout != "arm":
		return nil, fault.Usagef("%s: cores of x86-64 and arm64 processors only are modelled", p.CPU.Name)
	default:
		return c, nil
	}
}

// HostCore returns the model of the core of this machine's processor, by its name in the
// catalogue and its features.
func HostCore(cpu string, features []string) *simulation.Core {
	if c := simulation.HostCoreOf(cpu, features); c != nil {
		return c
	}
	return simulation.ModelledCore(cpu)
}

// Blocks are blocks of machine code, one in hexadecimal on each line of a file. Of a line
// with commas the first field counts. Empty lines, lines that begin with # and the heading
// "block" of a table are skipped.
type Blocks struct {
	Cores  []*simulation.Core
	Loop   bool // each block jumps back to its beginning; otherwise copies follow each other
	Same   bool // all registers and all memory hold one number at first
	Source io.Reader
	Name   string // of the source
}

// A Row is the result for a block on a core.
type Row struct {
	Line     int
	Block    string // as it was read
	Analysis *simulation.Analysis
	Problem  string // why there is no analysis
}

// longestBlock bounds the length of a line.
const longestBlock = 1 << 20

// A hexBlock is a line of a file of blocks.
type hexBlock struct {
	line int
	text string
	code []byte
}

// blocks yields the blocks of the file. An error ends it.
func (b *Blocks) blocks() iter.Seq2[hexBlock, error] {
	return func(yield func(hexBlock, error) bool) {
		s := bufio.NewScanner(b.Source)
		s.Buffer(make([]byte, 1<<16), longestBlock)
		line := 1
		for ; s.Scan(); line++ {
			text, _, _ := strings.Cut(s.Text(), ",")
			text = strings.TrimSpace(text)
			if text == "" || text[0] == '#' || line == 1 && text == "block" {
				continue
			}
			code, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
			if err != nil {
				yield(hexBlock{}, fault.Inputf("%s:%d: %q is not code: two hexadecimal digits for each byte", b.Name, line, spelling.Clip(text)))
				return
			}
			if !yield(hexBlock{line, text, code}, nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(hexBlock{}, fault.Inputf("%s:%d: %w", b.Name, line, err))
		}
	}
}

// All yields the result of each block on each core, in their order. An error ends it.
func (b *Blocks) All(yield func(Row, error) bool) {
	var analysers []*simulation.Analyser
	for _, c := range b.Cores {
		analysers = append(analysers, simulation.NewAnalyser(c))
	}
	for block, err := range b.blocks() {
		if err != nil {
			yield(Row{}, err)
			return
		}
		for _, a := range analysers {
			if !yield(b.row(Row{Line: block.line, Block: block.text}, block.code, a), nil) {
				return
			}
		}
	}
}

// row analyses a block.
func (b *Blocks) row(r Row, code []byte, a *simulation.Analyser) Row {
	block, err := simulation.NewBlock(code, b.Loop)
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	if b.Same {
		block.Same()
	}
	r.Analysis = a.Analyse(block, simulation.AnalysisOptions{})
	return r
}

// Say names a limit in a few words.
func Say(l simulation.Limit) string {
	switch {
	case len(l.Ports) > 0 && l.Kind != simulation.Divider:
		return string(l.Kind) + " " + strings.Join(l.Ports, " ")
	case l.Queue != "":
		return l.Queue + " full"
	}
	return string(l.Kind)
}
