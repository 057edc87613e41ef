package timing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
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

// A recorder is a predictor that records its calls, and mispredicts every
// branch whose number in the order is given.
type recorder struct {
	said  []string
	wrong map[int]bool
	n     int
}

func (w *recorder) note(format string, args ...any) bool {
	w.said = append(w.said, fmt.Sprintf(format, args...))
	w.n++
	return w.wrong[w.n-1]
}

func (w *recorder) Conditional(addr uint64, taken bool) bool {
	return w.note("%x?%v", addr, taken)
}
func (w *recorder) Indirect(addr, target uint64) bool { return w.note("%x*%x", addr, target) }
func (w *recorder) Jump(addr, target uint64) {
	w.said = append(w.said, fmt.Sprintf("%x>%x", addr, target))
}
func (w *recorder) Call(addr, next uint64)          { w.said = append(w.said, fmt.Sprintf("(%x", next)) }
func (w *recorder) Return(addr, target uint64) bool { return w.note("%x)%x", addr, target) }

// A clock is a machine of one cycle per instruction. A mispredicted one costs ten more, and
// late loads more still.
type clock struct{ missed, resets, late int }

func (c *clock) Reset() { *c = clock{resets: c.resets + 1} }

func (c *clock) Late(cycles int)      { c.late = cycles }
func (c *clock) LateStore(cycles int) { c.late = cycles }

func (c *clock) Execute(_ *pipeline.Op, _, mispredicted bool) float64 {
	cycles := 1 + float64(c.late)
	c.late = 0
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
func walk(t *testing.T, w *recorder, addrs ...uint64) (*Rates, *process) {
	t.Helper()
	i, err := newImage(made{}, disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	m := models{predictor: func() branch.Branches { return w }, machine: func() machine { return &clock{} }}
	p := &Rates{code: newLibrary(), machine: m.machine, records: newRecords()}
	p.code.images["made"] = i
	run := newProcess(p, m)
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
	t.Parallel()
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
		{"repetitions", []uint64{0x1010, 0x1011, 0x1011, 0x1011, 0x1013}, "", "1010×1 1011×4", 0},
		{"no repetition", []uint64{0x1010, 0x1013}, "", "1010×1 1011×1", 0},
		{"a system call", []uint64{0x1013, 0x1015, 0x100c}, "401016)40100c", "1013×1 1015×1 1016×1", 0},
		{"a long block", []uint64{0xf80, 0xf80 + valgrind.MaxInstructions}, "", "", 0},
		{"another thread", []uint64{0x1000, 0x1010, 0x1005, 0x1000}, "", "1000×1 1003×1 1005×1 1010×1 1011×1", 0},
		{"unknown code", []uint64{0x1000, 0x1000, 0x9000, 0x9004, 0x1000, 0x1000}, "401003?true 401003?true", "1000×3 1003×3", 2},
		{"unknown code only", []uint64{0x9000, 0x9004, 0x9000}, "", "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &recorder{}
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

// TestRates checks the rates from windows, with machines of known rates.
func TestRates(t *testing.T) {
	t.Parallel()
	const n = 200_000
	w := &recorder{wrong: map[int]bool{}}
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
	share := float64(missed) / n
	for _, tt := range []struct {
		addr   uint64
		missed float64
		lost   float64 // by the branch before
	}{{0x1000, 0, 10 * share}, {0x1003, share, 0}} {
		r, ok := p.At("made", tt.addr)
		if !ok || r.Cycles != 1 || r.Conditional != tt.missed || r.Indirect != 0 || math.Abs(r.Lost-tt.lost) > 0.1*tt.lost || r.Second+r.Third+r.Memory != 0 {
			t.Errorf("%#x: %+v, %v; want 1 cycle, %v mispredicted, %v lost", tt.addr, r, ok, tt.missed, tt.lost)
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

// TestWaits checks what is waited for: as often and as long as loads miss, and that it is given
// to what is waited for.
func TestWaits(t *testing.T) {
	t.Parallel()
	loop := make([]uint64, 40_001)
	for i := range loop {
		loop[i] = codeAt + 0x15 // a nop, and a return to it, which loads where to
	}
	for _, tt := range []struct {
		name   string
		misses valgrind.Accesses
		beyond float64
		want   [3]float64
	}{
		{"none", valgrind.Accesses{Number: 100}, 0, [3]float64{}},
		{"the second level", valgrind.Accesses{Number: 100, First: 50}, 0, [3]float64{5, 0, 0}},
		{"the third level", valgrind.Accesses{Number: 100, First: 50, Last: 25}, 1, [3]float64{2.5, 10, 0}},
		{"memory", valgrind.Accesses{Number: 100, First: 50, Last: 50}, 0, [3]float64{0, 0, 150}},
		{"some of memory", valgrind.Accesses{Number: 100, First: 100, Last: 50}, 0.5, [3]float64{5, 10, 75}},
	} {
		p, run := walk(t, &recorder{}, loop...)
		run.End()
		p.Wait(Data{Misses: map[valgrind.DataPlace]valgrind.DataMisses{
			{Object: "made", Addr: 0x1016}:  {Loads: tt.misses},
			{Object: "made", Addr: 0x1015}:  {Loads: valgrind.Accesses{Number: 100, First: 100}}, // is no load
			{Object: "other", Addr: 0x1016}: {Loads: valgrind.Accesses{Number: 100, First: 100}},
		}, Beyond: tt.beyond, Second: 10, Third: 40, Memory: 300})
		r, ok := p.At("made", 0x1016)
		if got := [3]float64{r.Second, r.Third, r.Memory}; !ok || r.Cycles != 1 || far(got, tt.want) {
			t.Errorf("%s: %+v, want %v", tt.name, r, tt.want)
		}
		if r, ok := p.At("made", 0x1015); !ok || r.Second+r.Third+r.Memory != 0 {
			t.Errorf("%s: what is no load waits: %+v", tt.name, r)
		}
	}
}

// TestAccesses checks which accesses of an instruction are waited for. Simulators count an
// instruction that modifies memory as a store.
func TestAccesses(t *testing.T) {
	t.Parallel()
	loads, stores := valgrind.Accesses{Number: 10, First: 4, Last: 2}, valgrind.Accesses{Number: 100, First: 50, Last: 30}
	for _, tt := range []struct {
		loads, stores bool
		want          valgrind.Accesses
	}{
		{false, false, valgrind.Accesses{}},
		{true, false, loads},
		{false, true, stores},
		{true, true, valgrind.Accesses{Number: 100, First: 54, Last: 32}},
	} {
		in := &instruction{misses: misses{DataMisses: valgrind.DataMisses{Loads: loads, Stores: stores}}}
		in.op.Loads, in.op.Stores = tt.loads, tt.stores
		if got := in.accesses(); got != tt.want {
			t.Errorf("loads %v, stores %v: %+v, want %+v", tt.loads, tt.stores, got, tt.want)
		}
	}
}

// TestLeast checks that of misses that the core hides some is waited for.
func TestLeast(t *testing.T) {
	t.Parallel()
	i := &instruction{timed: 100, executed: 100, misses: misses{of: valgrind.Accesses{Number: 100, First: 100, Last: 50}}}
	i.op.Loads = true
	w := &waits{beyond: 1, least: 0.1, cycles: [3]float64{10, 40, 300}}
	for _, tt := range []struct{ waited, want float64 }{{0, 250}, {100, 250}, {300, 300}} {
		i.parts = parts{waited: tt.waited}
		other := &instruction{timed: 100, executed: 100}
		w.atLeast([]*instruction{i, other})
		if i.parts.waited != tt.want || other.parts.waited != 0 {
			t.Errorf("%v cycles waited became %v, want %v; what does not load has %v", tt.waited, i.parts.waited, tt.want, other.parts.waited)
		}
	}
}

// far reports whether numbers differ by more than 2 %.
func far(got, want [3]float64) bool {
	for i := range got {
		if math.Abs(got[i]-want[i]) > 0.02*want[i] {
			return true
		}
	}
	return false
}

// TestWindows checks how much of a run is in windows, and that their places in a loop vary.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		blocks      int
		least, most float64
	}{{20_000, 0.25, 0.5}, {4_000_000, 0.04, 0.07}} {
		p, run := walk(t, &recorder{})
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
	p, run := walk(t, &recorder{}, 0x1000, 0x1000)
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

// TestForks checks that what is mapped in a process is in those that it forks.
func TestForks(t *testing.T) {
	t.Parallel()
	p, run := walk(t, &recorder{}, 0x1000, 0x1000)
	m := models{predictor: func() branch.Branches { return silent{} }, machine: func() machine { return &clock{} }}
	child, orphan, other := newProcess(p, m), newProcess(p, m), newProcess(p, m)
	run.End()
	child.Fork(run)
	orphan.Fork(nil)
	other.Fork(run)
	if &child.modules[0] != &other.modules[0] {
		t.Error("what is mapped is not shared")
	}
	other.Mapped("made", 2*bias) // there only
	other.Exec()
	other.Mapped("made", 3*bias)
	other.End()
	for _, f := range []valgrind.Follower{child, orphan} {
		f.Blocks([]uint64{codeAt + bias, codeAt + bias, codeAt + bias})
		f.End()
	}
	if in := p.code.images["made"].at[codeAt]; in.executed != 1+2 || p.Unknown != 3 {
		t.Errorf("executed %d times, %d unknown; want 3 and 3", in.executed, p.Unknown)
	}
}

// TestRoom checks that there is an end to what is remembered.
func TestRoom(t *testing.T) {
	t.Parallel()
	p, run := walk(t, &recorder{}, 0x1000)
	p.code.room = 1
	run.Blocks([]uint64{0x1005 + bias, 0x1010 + bias, 0x100a + bias, 0x1000 + bias})
	run.End()
	if p.code.room != 0 || p.Unknown != 2 {
		t.Errorf("room for %d more, %d unknown; want 0 and 2", p.code.room, p.Unknown)
	}
}

func TestRepetitions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code string
		want float64 // cycles of a repetition
	}{
		{"\xf3\xa4", 1. / 32}, {"\xf3\xa5", 4. / 32}, {"\x66\xf3\xa5", 2. / 32}, {"\xf3\x66\xab", 2. / 32}, {"\xf3\x48\xab", 8. / 32}, {"\xf3\x40\xaa", 1. / 32},
		{"\xf2\xae", 2}, {"\xf3\x48\xa7", 2}, {"\x67\xf3\xac", 2},
		{"\xa4", 0}, {"\x48\xab", 0}, {"\xf3\x90", 0}, {"\xf3\xc3", 0}, {"\xf3\x0f\x1e\xfa", 0}, {"\xf3", 0}, {"", 0}, {"\xf2\x0f\x10\xa4", 0},
	} {
		if got := repetition([]byte(tt.code)).cycles(); got != tt.want {
			t.Errorf("% x: %v cycles, want %v", tt.code, got, tt.want)
		}
	}
}

// BenchmarkBlocks follows a process, with the predictor and the machines that programs
// are followed with.
func BenchmarkBlocks(b *testing.B) {
	i, err := newImage(made{}, disasm.AMD64)
	if err != nil {
		b.Fatal(err)
	}
	p := &Rates{code: newLibrary(), records: newRecords()}
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

// FuzzBlocks follows a process that goes anywhere: two bytes say where a block begins, or
// what else happens.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte("\x10\x00\x10\x00\x10\x05\x10\x10\x10\x11\x10\x11\x10\x13\x10\x15\x10\x0a\x10\x00"))
	f.Add([]byte("\x10\x0c\x10\x0e\x0f\xfe\x10\x00\xff\xff\x10\x05\xff\xfe\x10\x00\xff\xfd\x10\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, run := walk(t, &recorder{})
		run.predictor = silent{}
		run.window.wait = 1
		var blocks int64
		for ; len(text) >= 2; text = text[2:] {
			switch at := uint64(text[0])<<8 | uint64(text[1]); at {
			case 0xffff:
				run.Mapped("made", bias)
			case 0xfffe:
				run.Exec()
			case 0xfffd:
				run.Mapped("made", ^uint64(bias))
			default:
				run.Blocks([]uint64{at + bias})
				blocks++
			}
		}
		run.End()
		p.code.images["made"].stubs = span{0x1010, codeEnd}
		p.Wait(missing(50))
		for _, in := range p.code.images["made"].sorted() {
			r, _ := p.At("made", in.addr)
			for _, v := range fields(&r) {
				if !(*v >= 0 && *v < 1e6) {
					t.Errorf("%#x: %+v", in.addr, r)
				}
			}
			if in.timed > in.executed || in.executed > blocks || in.mispredicted > in.executed {
				t.Errorf("%#x: %d executed of %d blocks, %d in windows, %d mispredicted", in.addr, in.executed, blocks, in.timed, in.mispredicted)
			}
		}
		if p.Unknown > blocks || p.blocks != 0 {
			t.Errorf("%d unknown of %d blocks, %d still known at the end", p.Unknown, blocks, p.blocks)
		}
	})
}

func TestTakes(t *testing.T) {
	t.Parallel()
	if none, some, all := Takes(0, 40e6), Takes(10*time.Millisecond, 40e6), Takes(time.Hour, 40e6); none <= 0 || some <= none || all <= some || all != Takes(2*time.Hour, 40e6) {
		t.Errorf("nothing takes %v, ten milliseconds %v, an hour %v, two %v: want no more where it is cut", none, some, all, Takes(2*time.Hour, 40e6))
	}
}
