package pace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/profile/disasm"
	"github.com/cyclestack/cyclestack/profile/pipeline"
	"github.com/cyclestack/cyclestack/source/valgrind"
)

// code is what the tests execute, and its addresses.
const (
	code = "\x83\xe8\x01" + // 1000 sub $1,%eax
		"\x75\xfb" + // 1003 jne 1000
		"\xe8\x06\x00\x00\x00" + // 1005 call 1010
		"\xff\xe0" + // 100a jmp *%rax
		"\xff\xd0" + // 100c call *%rax
		"\xeb\xee" + // 100e jmp 0ffe
		"\x90" + // 1010 nop
		"\xf3\xa4" + // 1011 rep movsb
		"\x0f\x05" + // 1013 syscall
		"\x90" + // 1015 nop
		"\xc3" // 1016 ret
	codeAt  = 0x1000
	codeEnd = codeAt + uint64(len(code))
)

// made is a file with that code, and nops before it.
type made struct{}

func (made) Close() error { return nil }

func (made) Offset(addr uint64) (uint64, bool) {
	return addr - codeAt + 0x100, addr >= codeAt-0x100 && addr < codeEnd
}

func (m made) Code(addr uint64, n int) ([]byte, error) {
	if _, ok := m.Offset(addr); !ok {
		return nil, nil
	}
	all := strings.Repeat("\x90", 0x100) + code
	rest := all[addr-(codeAt-0x100):]
	return []byte(rest[:min(n, len(rest))]), nil
}

// A witness is a predictor that writes down what it is told, and mispredicts every
// branch whose number in the order is given.
type witness struct {
	said  []string
	wrong map[int]bool
	n     int
}

func (w *witness) note(format string, args ...any) bool {
	w.said = append(w.said, fmt.Sprintf(format, args...))
	w.n++
	return w.wrong[w.n-1]
}

func (w *witness) Conditional(addr uint64, taken bool) bool {
	return w.note("%x?%v", addr, taken)
}
func (w *witness) Indirect(addr, target uint64) bool { return w.note("%x*%x", addr, target) }
func (w *witness) Jump(addr, target uint64) {
	w.said = append(w.said, fmt.Sprintf("%x>%x", addr, target))
}
func (w *witness) Call(addr, next uint64)          { w.said = append(w.said, fmt.Sprintf("(%x", next)) }
func (w *witness) Return(addr, target uint64) bool { return w.note("%x)%x", addr, target) }

// A clock is a machine that takes a cycle for each instruction, and ten more for those
// behind a mispredicted one.
type clock struct{ missed, resets int }

func (c *clock) Reset() { *c = clock{resets: c.resets + 1} }

func (c *clock) Execute(_ *pipeline.Op, _, mispredicted bool) float64 {
	cycles := 1.0
	if c.missed > 0 {
		cycles += 10
		c.missed--
	}
	if mispredicted {
		c.missed = 1
	}
	return cycles
}

const bias = 0x400000

// walk follows a process that executes the code, mapped bias higher than in the file.
func walk(t *testing.T, w *witness, addrs ...uint64) (*Paces, *process) {
	t.Helper()
	i, err := newImage("made", made{}, disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	p := &Paces{code: newLibrary()}
	p.code.images["made"] = i
	run := newProcess(p, models{predictor: func() predictor { return w }, machine: func() machine { return &clock{} }})
	run.Mapped("made", bias)
	blocks := make([]uint64, len(addrs))
	for n, a := range addrs {
		blocks[n] = a + bias
	}
	run.Blocks(blocks)
	return p, run
}

// TestPaths checks what branches do, as it follows from the order of blocks.
func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		name     string
		addrs    []uint64
		branches string
		executed string // addresses and how often
		unknown  int64
	}{
		{"a loop", []uint64{0x1000, 0x1000, 0x1000, 0x1005}, "401003?true 401003?true 401003?false", "1000×3 1003×3", 0},
		{"a call and a return", []uint64{0x1005, 0x1010, 0x1011, 0x1013, 0x1015, 0x100a, 0x1000}, "401005>401010 (40100a 401016)40100a 40100a*401000",
			"1005×1 100a×1 1010×1 1011×2 1013×1 1015×1 1016×1", 0},
		{"calls and jumps that are computed", []uint64{0x100c, 0x1000, 0x1005}, "40100c*401000 (40100e 401003?false", "1000×1 1003×1 100c×1", 0},
		{"a jump", []uint64{0x100e, 0xffe, 0x1000}, "40100e>400ffe 401003?true", "ffe×1 fff×1 1000×1 1003×1 100e×1", 0},
		{"turns", []uint64{0x1010, 0x1011, 0x1011, 0x1011, 0x1013}, "", "1010×1 1011×4", 0},
		{"no turn", []uint64{0x1010, 0x1013}, "", "1010×1 1011×1", 0},
		{"a system call", []uint64{0x1013, 0x1015, 0x100c}, "401016)40100c", "1013×1 1015×1 1016×1", 0},
		{"a long block", []uint64{0xf80, 0xf80 + valgrind.MaxInstructions}, "", "", 0},
		{"another thread", []uint64{0x1000, 0x1010, 0x1005, 0x1000}, "", "1000×1 1003×1 1005×1 1010×1 1011×1", 0},
		{"unknown code", []uint64{0x1000, 0x1000, 0x9000, 0x9004, 0x1000, 0x1000}, "401003?true 401003?true", "1000×3 1003×3", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &witness{}
			p, run := walk(t, w, tt.addrs...)
			run.End()
			if got := strings.Join(w.said, " "); got != tt.branches {
				t.Errorf("branches %q, want %q", got, tt.branches)
			}
			var executed []string
			for _, in := range p.code.images["made"].sorted() {
				if in.executed > 0 && tt.executed != "" {
					executed = append(executed, fmt.Sprintf("%x×%d", in.addr, in.executed))
				}
			}
			if got := strings.Join(executed, " "); got != tt.executed {
				t.Errorf("executed %q, want %q", got, tt.executed)
			}
			if p.Unknown != tt.unknown {
				t.Errorf("%d blocks unknown, want %d", p.Unknown, tt.unknown)
			}
		})
	}
}

// TestRates checks what comes out of windows: with machines for which it is known.
func TestRates(t *testing.T) {
	const n = 200_000
	w := &witness{wrong: map[int]bool{}}
	random := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for i := range n {
		if w.wrong[i] = random.IntN(50) == 0; w.wrong[i] {
			missed++
		}
	}
	p, run := walk(t, w)
	loop := make([]uint64, n+1)
	for i := range loop {
		loop[i] = codeAt + bias
	}
	run.Blocks(loop)
	run.End()
	p.mean = p.code.meanPenalty()
	if math.Abs(p.mean-10) > 0.2 {
		t.Errorf("a misprediction costs %v cycles, want 10", p.mean)
	}
	for _, tt := range []struct {
		addr   uint64
		missed float64
	}{{0x1000, 0}, {0x1003, float64(missed) / n}} {
		r, ok := p.At("made", tt.addr)
		if !ok || r.Cycles != 1 || r.Conditional != tt.missed || r.Indirect != 0 || math.Abs(r.Lost-10*tt.missed) > 0.2*tt.missed {
			t.Errorf("%#x: %+v, %v; want 1 cycle, %v mispredicted, ten cycles each", tt.addr, r, ok, tt.missed)
		}
	}
	for _, addr := range []uint64{0x1005, 0x9000} {
		if r, ok := p.At("made", addr); ok {
			t.Errorf("%#x was not executed: %+v", addr, r)
		}
	}
	if r, ok := p.At("other", 0x1000); ok {
		t.Errorf("another file: %+v", r)
	}
}

// TestWindows checks how much of a run is in windows, and that they are not always at the
// same places of a loop.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		blocks      int
		least, most float64
	}{{20_000, 0.25, 0.5}, {4_000_000, 0.04, 0.07}} {
		p, run := walk(t, &witness{})
		run.predictor = silent{}
		period := []uint64{0x1000, 0x1000, 0x1000, 0x1005, 0x1010, 0x1013, 0x1015, 0x100a}
		for i := range period {
			period[i] += bias
		}
		for range tt.blocks / len(period) {
			run.Blocks(period)
		}
		run.End()
		for _, in := range p.code.images["made"].sorted() {
			if in.executed == 0 {
				continue
			}
			if share := float64(in.timed) / float64(in.executed); share < tt.least || share > tt.most {
				t.Errorf("%d blocks: %.3f of %#x is in windows, want %v to %v", tt.blocks, share, in.addr, tt.least, tt.most)
			}
		}
	}
}

// A silent predictor mispredicts nothing.
type silent struct{}

func (silent) Conditional(uint64, bool) bool { return false }
func (silent) Indirect(_, _ uint64) bool     { return false }
func (silent) Jump(_, _ uint64)              {}
func (silent) Call(_, _ uint64)              {}
func (silent) Return(_, _ uint64) bool       { return false }

// TestPrograms checks what is mapped, and what of it is forgotten.
func TestPrograms(t *testing.T) {
	p, run := walk(t, &witness{}, 0x1000, 0x1000)
	run.Mapped("no such file", 0)
	run.Mapped("made", 2*bias) // here as well
	run.Blocks([]uint64{codeAt + bias, codeAt + 2*bias, codeAt + 2*bias})
	if p.Unknown != 0 {
		t.Errorf("%d blocks unknown of a file that is mapped twice", p.Unknown)
	}
	run.Exec()
	run.Blocks([]uint64{codeAt + bias, codeAt + bias})
	if p.Unknown != 1 {
		t.Errorf("%d blocks unknown after another program has begun, want 1", p.Unknown)
	}
	run.End()
	// Of the last block before a program ends it is not known where it went.
	if in := p.code.images["made"].at[codeAt]; in.executed != 4 {
		t.Errorf("executed %d times, want 4", in.executed)
	}
}

// TestRoom checks that there is an end to what is remembered.
func TestRoom(t *testing.T) {
	p, run := walk(t, &witness{}, 0x1000)
	p.code.room = 1
	run.Blocks([]uint64{0x1005 + bias, 0x1010 + bias, 0x100a + bias, 0x1000 + bias})
	run.End()
	if p.code.room != 0 || p.Unknown != 2 {
		t.Errorf("room for %d more, %d unknown; want 0 and 2", p.code.room, p.Unknown)
	}
}

func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		code string
		want float64 // cycles of a turn
	}{
		{"\xf3\xa4", 1. / 32}, {"\xf3\xa5", 4. / 32}, {"\x66\xf3\xa5", 2. / 32}, {"\xf3\x66\xab", 2. / 32}, {"\xf3\x48\xab", 8. / 32}, {"\xf3\x40\xaa", 1. / 32},
		{"\xf2\xae", 2}, {"\xf3\x48\xa7", 2}, {"\x67\xf3\xac", 2},
		{"\xa4", 0}, {"\x48\xab", 0}, {"\xf3\x90", 0}, {"\xf3\xc3", 0}, {"\xf3\x0f\x1e\xfa", 0}, {"\xf3", 0}, {"", 0}, {"\xf2\x0f\x10\xa4", 0},
	} {
		if got := turns([]byte(tt.code)).cycles(); got != tt.want {
			t.Errorf("% x: %v cycles, want %v", tt.code, got, tt.want)
		}
	}
}

// BenchmarkBlocks follows a process, with the predictor and the machines that programs
// are followed with.
func BenchmarkBlocks(b *testing.B) {
	i, err := newImage("made", made{}, disasm.AMD64)
	if err != nil {
		b.Fatal(err)
	}
	p := &Paces{code: newLibrary()}
	p.code.images["made"] = i
	run := newProcess(p, modelsOf(pipeline.CoreOf("generic")))
	run.Mapped("made", bias)
	addrs := make([]uint64, 1<<16)
	for i := range addrs {
		addrs[i] = bias + []uint64{0x1000, 0x1000, 0x1000, 0x1005, 0x1010, 0x1013, 0x1015, 0x100a}[i%8]
	}
	b.ReportAllocs()
	for b.Loop() {
		run.Blocks(addrs)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(addrs)), "ns/block")
}
