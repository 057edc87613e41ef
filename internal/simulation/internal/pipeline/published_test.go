package pipeline

import (
	"math"
	"strings"
	"testing"
)

// cyclesOn returns what a loop of some code takes on a core, without the values of memory.
func cyclesOn(t *testing.T, cpu, code string) float64 {
	t.Helper()
	b, err := NewBlock(bytesOf(t, code+" 49ffcf 75e0"), true) // dec %r15; jne
	if err != nil {
		t.Fatal(err)
	}
	return NewMachine(CoreOf(cpu)).Cycles(b)
}

// TestQueueOfLoops has loops of nops. Haswell's queue unrolls them: micro-ops divided by four.
// Sandy Bridge's does not: the last micro-ops of an iteration leave alone.
func TestQueueOfLoops(t *testing.T) {
	for nops := 3; nops <= 12; nops++ {
		code, uops := strings.Repeat("90", nops), float64(nops+1)
		if got, want := cyclesOn(t, "haswell", code), uops/4; math.Abs(got/want-1) > 0.02 {
			t.Errorf("Haswell, %d nops: %.2f cycles, want %.2f", nops, got, want)
		}
		if got, want := cyclesOn(t, "sandybridge", code), math.Ceil(uops/4); math.Abs(got/want-1) > 0.02 {
			t.Errorf("Sandy Bridge, %d nops: %.2f cycles, want %.2f", nops, got, want)
		}
	}
}

// TestCrowded has exchanges of three micro-ops. A line of the cache of decoded micro-ops holds two
// of them, and 32 bytes of code have three lines. Six exchanges and the jump need four lines. So
// all come from the legacy decoders, one exchange in a cycle.
func TestCrowded(t *testing.T) {
	const five, six = "4887d8 4887ca 4887f7 4d87c1 4d87d3", "4887d8 4887ca 4887f7 4d87c1 4d87d3 4d87e5" // xchg %rbx,%rax …
	core := *CoreOf("skylake")
	core.lines = 0
	b, err := NewBlock(bytesOf(t, six+" 49ffcf 75e0"), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := NewMachine(&core).Cycles(b); math.Abs(got-19.0/4) > 0.3 {
		t.Errorf("six exchanges from a larger cache: %.2f cycles, want 4.75", got)
	}
	m := NewMachine(CoreOf("skylake"))
	if got := m.Cycles(b); len(m.crowded) != 1 || got < 6 {
		t.Errorf("six exchanges: %.2f cycles, windows %v are not cached; want at least 6, one", got, m.crowded)
	}
	if got := cyclesOn(t, "skylake", five); math.Abs(got-4) > 0.3 {
		t.Errorf("five exchanges: %.2f cycles, want 4", got)
	}
	for nops, lines := range map[int]int{1: 1, 5: 1, 6: 2, 17: 3, 18: 4} {
		var fill lineFill
		for range nops {
			fill.add(1, false, 6)
		}
		if fill.add(1, true, 6); fill.lines != lines {
			t.Errorf("%d nops and a jump: %d lines, want %d", nops, fill.lines, lines)
		}
	}
}

// TestBanks has eight loads, two in a cycle. On Sandy Bridge those of one bank and different sets
// do not go together: they take half as long again at least. Those of one set do, those of
// different banks, and all on Haswell.
func TestBanks(t *testing.T) {
	const same, set, bank = "8b4640 8b5e00", "8b4600 8b5e00", "8b4644 8b5e00" // 0x40(%rsi), 0(%rsi), 0x44(%rsi) and 0(%rsi)
	for _, test := range []struct {
		cpu, code   string
		least, most float64
	}{
		{"sandybridge", strings.Repeat(same, 4), 6, 8}, {"sandybridge", strings.Repeat(set, 4), 4, 4},
		{"sandybridge", strings.Repeat(bank, 4), 4, 4}, {"haswell", strings.Repeat(same, 4), 4, 4},
	} {
		if got := cyclesOn(t, test.cpu, test.code); got < test.least-0.1 || got > test.most+0.1 {
			t.Errorf("%s, %s: %.2f cycles, want %g to %g", test.cpu, test.code, got, test.least, test.most)
		}
	}
}

// TestSlotsOfMoves lets values have several names. Four do at a time on Skylake: a fifth move is
// executed. Copies that are overwritten at once make room for the next ones.
func TestSlotsOfMoves(t *testing.T) {
	const chain = "4889d8 4889c3" // mov %rbx,%rax; mov %rax,%rbx
	if got := cyclesOn(t, "skylake", chain); got > 1.05 {
		t.Errorf("a chain through two moves: %.2f cycles, want 1: both are eliminated", got)
	}
	copies := "4989c0 4989d9 4989ca 4989d3 4989f4" // mov %rax,%r8; %rbx,%r9; %rcx,%r10; %rdx,%r11; %rsi,%r12
	m := NewMachine(CoreOf("skylake"))
	b, err := NewBlock(bytesOf(t, copies), false)
	if err != nil {
		t.Fatal(err)
	}
	m.begin(b)
	executed := 0
	for i := range b.ops {
		if m.costOf(&b.ops[i]).ops > 0 {
			executed++
		}
	}
	if executed != 1 {
		t.Errorf("%d of five moves are executed, want 1", executed)
	}
	again, err := NewBlock(bytesOf(t, "4d31c0 4889de"), false) // xor %r8,%r8 ends a second name; mov %rbx,%rsi shares %rbx's
	if err != nil {
		t.Fatal(err)
	}
	for i := range again.ops {
		if m.costOf(&again.ops[i]).ops > 0 {
			t.Errorf("instruction %d is executed", i)
		}
	}
	if got := m.aliases.used[0]; got != 3 {
		t.Errorf("%d values have several names, want 3", got)
	}
	if CoreOf("sandybridge").costs[b.ops[0].form].ops != 1 {
		t.Error("Sandy Bridge executes all moves")
	}
}
