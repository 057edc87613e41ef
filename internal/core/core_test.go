package core_test

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// solve returns the program of the examples.
func solve() core.Program {
	return core.Program{File: "../../examples/annotate/bin/solve", Function: "solve", Cores: []*simulation.Core{simulation.ModelledCore("skylake")}}
}

// TestCauses names what limits the list of solve, with its line. The loop around another
// one has no cause of its own.
func TestCauses(t *testing.T) {
	p := solve()
	l, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	cause := core.Causes(func() (string, []string) { return "skylakex", nil })
	got := cause(l, 0, map[uint64]int64{0x4000f6: 10})
	if got == nil || got.Kind != core.InCore || !strings.Contains(got.Text, "each address comes from the load before") || !strings.Contains(got.Text, "line 13: mov (%rdi),%rdi") {
		t.Errorf("the list: %+v", got)
	}
	if got := cause(l, 1, nil); got != nil {
		t.Errorf("the outer loop: %+v", got)
	}
}

// TestProgram checks loops and messages of a program.
func TestProgram(t *testing.T) {
	p := solve()
	d, err := p.Analyse()
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Pieces) != 2 || d.Pieces[0].Loop != 1 || d.Pieces[1].Loop != 3 || d.Pieces[1].First != 19 || d.Pieces[1].Last != 20 {
		t.Fatalf("%d loops", len(d.Pieces))
	}
	for _, tt := range []struct {
		function string
		loop     int
		want     string
	}{
		{"solve", 2, "the innermost loops of solve are 1, 3"},
		{"", 0, "which function? It has solve"},
		{"nosuch", 0, "has no function nosuch"},
	} {
		p := solve()
		p.Function, p.Loop = tt.function, tt.loop
		if _, err := p.Analyse(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, loop %d: error %v, want %q", tt.function, tt.loop, err, tt.want)
		}
	}
}

// TestBlocks reads a file of blocks with headings, remarks and other columns.
func TestBlocks(t *testing.T) {
	b := core.Blocks{Cores: []*simulation.Core{simulation.ModelledCore("skylake"), simulation.ModelledCore("amdzen4")}, Loop: true, Name: "blocks",
		Source: strings.NewReader("block,cycles\n# a remark\n\n480fafc7 49ffcf75f7,3.0\nc5\n")}
	var cycles []float64
	problems := 0
	for row, err := range b.All {
		if err != nil {
			t.Fatal(err)
		}
		if row.Problem != "" {
			problems++
			continue
		}
		cycles = append(cycles, row.Analysis.Cycles)
	}
	if len(cycles) != 2 || cycles[0] < 2.9 || cycles[0] > 3.1 || cycles[1] < 2.9 || cycles[1] > 3.1 || problems != 2 {
		t.Errorf("cycles %v, %d problems", cycles, problems)
	}
	b.Source = strings.NewReader("90\nxyz\n")
	var last error
	for _, err := range b.All {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "blocks:2: ") {
		t.Errorf("error %v", last)
	}
}

// TestPageAlias has a chain of loads, each next to a store. On Redwood Cove a store to the same
// place of another page makes each load later, and is named. One 64 bytes on does not.
func TestPageAlias(t *testing.T) {
	for _, tt := range []struct {
		code  string // mov %rcx,(%rsi,%rax); mov 0x1000(%rsi,%rax),%rax; and $0,%eax; dec %r15; jne
		fault core.Fault
	}{
		{"48890c06488b84060010000083e00049ffcf75ee", core.PageAlias},
		{"48890c06488b84064010000083e00049ffcf75ee", core.PointerChase},
	} {
		b := core.Blocks{Name: "blocks", Source: strings.NewReader(tt.code), Loop: true, Cores: []*simulation.Core{simulation.ModelledCore("graniterapids")}}
		d, err := b.Bytes(disasm.ATT)
		if err != nil {
			t.Fatal(err)
		}
		if r := d.Pieces[0]; len(r.Advice) == 0 || r.Advice[0].Fault != tt.fault || r.Advice[0].At != 1 {
			t.Errorf("%s: advice %+v, want %s", tt.code, r.Advice, tt.fault)
		}
	}
}
