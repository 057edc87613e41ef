package limits_test

import (
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/limits"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func analyse(t testing.TB, cpu, code string, o limits.Options) *limits.Analysis {
	t.Helper()
	bytes, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	b, err := pipeline.NewBlock(bytes, true)
	if err != nil {
		t.Fatal(err)
	}
	return limits.Analyse(pipeline.CoreOf(cpu), b, o)
}

// back is dec %r15; jne to the beginning: the limits do not depend on where it goes.
const back = "49ffcf 75f0"

// TestLimits compares limits with what the processors' manuals say of these instructions.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name, cpu, code string
		kind            limits.Kind
		cycles          float64 // of the limit
		chain           []int   // instructions
	}{
		{"multiplication by the result before", "skylake", "480fafc7", limits.Chain, 3, []int{0}},
		{"two chains, one slower", "skylake", "4801f8 f20f59c8 f20f59c8", limits.Chain, 8, []int{1, 2}},
		{"the same value twice in an iteration", "skylake", "480fafc7 4801d0", limits.Chain, 4, []int{0, 1}},
		{"a pointer that is loaded", "skylake", "488b00", limits.Chain, 4, []int{0}},
		{"an addition from memory, by the sum", "skylake", "f20f5807", limits.Chain, 4, []int{0}},
		{"shuffles: one port", "skylake", "660f70c811 660f70d011 660f70d811", limits.Ports, 3, nil},
		{"loads: two ports", "skylake", "488b07 488b4f08 488b5710 488b5f18 488b7720", limits.Ports, 2.5, nil},
		{"divisions of numbers that are ready", "skylake", "0f28c8 f30f5eca 0f28d8 f30f5eda", limits.Divider, 6, nil},
		{"more micro-ops than four in a cycle", "skylake", "4801c1 4801c2 4801c3 4801c6 4801c7 4901c0 4901c1 4901c2 4901c3", limits.Dispatch, 2.5, nil},
		{"bytes that are read together", "skylake", "c60700 c6470100 0fb707 88c1 668907", limits.Forwarding, math.NaN(), nil},
	} {
		a := analyse(t, tt.cpu, tt.code+back, limits.Options{Explain: true})
		l := a.Limits[0]
		if l.Kind != tt.kind || !math.IsNaN(tt.cycles) && math.Abs(l.Cycles-tt.cycles) > 0.01 {
			t.Errorf("%s: %v, want %s %.2f; %.2f cycles, all limits %v", tt.name, l, tt.kind, tt.cycles, a.Cycles, a.Limits)
		}
		if a.Cycles < l.Cycles-0.02 {
			t.Errorf("%s: %.2f cycles, less than the limit of %.2f", tt.name, a.Cycles, l.Cycles)
		}
		var chain []int
		for _, link := range a.Chain {
			chain = append(chain, link.Instruction)
		}
		slices.Sort(chain)
		if tt.chain != nil && !slices.Equal(chain, tt.chain) {
			t.Errorf("%s: the chain goes through %v, want %v", tt.name, chain, tt.chain)
		}
	}
}

// TestWithoutDependence removes links of chains: what remains limits next.
func TestWithoutDependence(t *testing.T) {
	const code = "480fafc7 4801f6" + back // imul %rdi,%rax; add %rsi,%rsi
	a := analyse(t, "skylake", code, limits.Options{})
	if len(a.Chain) != 1 || a.Cycles < 2.9 {
		t.Fatalf("%.2f cycles, chain %v", a.Cycles, a.Chain)
	}
	b := analyse(t, "skylake", code, limits.Options{Freedom: pipeline.Freedom{Dependence: a.Chain[0].Dependence}})
	if math.Abs(b.Cycles-1) > 0.02 {
		t.Errorf("%.2f cycles without the chain, want 1", b.Cycles)
	}
}

// TestMorePorts gives shuffles a second port.
func TestMorePorts(t *testing.T) {
	code, err := hex.DecodeString("660f70c811660f70d011660f70d811660f70e01149ffcf75e7")
	if err != nil {
		t.Fatal(err)
	}
	b, err := pipeline.NewBlock(code, true)
	if err != nil {
		t.Fatal(err)
	}
	core := pipeline.CoreOf("skylake")
	one := limits.Analyse(core, b, limits.Options{})
	port := slices.Index(one.Ports, one.Limits[0].Ports[0])
	two := limits.Analyse(core.WithPort(1<<port, "p5'"), b, limits.Options{})
	if math.Abs(one.Cycles-4) > 0.05 || math.Abs(two.Cycles-2) > 0.05 {
		t.Errorf("%.2f cycles with one port, %.2f with two; want 4 and 2", one.Cycles, two.Cycles)
	}
}
