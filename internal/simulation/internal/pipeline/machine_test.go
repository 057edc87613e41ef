package pipeline

import (
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// turn is a loop's end: dec %r14, jnz.
const turn = "49ffce75e0"

// near reports whether two numbers of cycles are the same but for a tenth.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.1*b }

func TestMemory(t *testing.T) {
	tests := []struct {
		name, code string
		want       float64
	}{
		{"chain through a variable of one byte: 6 cycles and 1", "8a4708 0401 884708", 7},
		{"chain through 64 bits, which are linked: the addition", "488b4708 4883c001 48894708", 1},
		{"the same at an address that is computed otherwise each time", "488b47f8 480fafc0 488907 4883c708", 3},
		{"on the stack, pushed and taken from there: the multiplication", "480fafc0 50 488b0424 4883c408", 3},
		{"another address: no chain", "8a4708 0401 884709", 1},
		{"a pointer that is loaded, and what it leads to", "488b1f 8a4b08 80c101 884b08", 7},
		{"16 bytes that were stored as 8: blocked", "48894708 0f104708 66480f7ec0", 25},
		{"16 bytes, the first of which were stored", "884708 0f104708 66480f7ec0", 25},
		{"8 of 16 bytes that were stored: forwarded", "0f114708 f30f7e4710 0f16c0", 10},
		{"a pointer that a string instruction moves on", "480faff6 480faff6 ac", 6},
		{"what a string instruction loads", "ac 480fb6c0 480fafc0 4801c6", 9},
		{"copied by a string instruction, loaded from there and stored where it copies next", "48a5 488b47f8 488906", 6},
		{"vector: 9 cycles and the addition's 3", "f20f104708 f20f58c1 f20f114708", 12},
	}
	m := NewMachine(CoreOf("amdzen4"))
	for _, test := range tests {
		got := perTurn(m, assemble(t, bytesOf(t, test.code+turn), 0x1000))
		if !near(got, test.want) {
			t.Errorf("%s: %.2f cycles, want %.2f", test.name, got, test.want)
		}
	}
}

// TestLinks has two loads alternate between the data of two stores: neither is linked to
// one of them. One load of two stores is linked, as branches distinguish them.
func TestLinks(t *testing.T) {
	const load, store, multiply = "8b46fc", "8906", "0fafc0" // -4(%rsi), (%rsi); %rsi moves on
	code := func(text string) []Op { return assemble(t, bytesOf(t, text), 0x1000) }
	first := code(load + multiply + store + "4883c604" + "7500")
	second := assemble(t, bytesOf(t, load+multiply+store+"4883c604"+"7500"), 0x2000)
	crossed := func(n int) []Op {
		if n%4 == 0 {
			return second
		}
		return first
	}
	m := NewMachine(CoreOf("amdzen4"))
	straight := follow(m, func(int) []Op { return first })
	if got := follow(m, crossed); !near(straight, 3) || got < straight+3 {
		t.Errorf("crossed %.2f cycles, straight %.2f", got, straight)
	}
}

// follow returns the cycles per round of code that is another one in each.
func follow(m *Machine, ops func(n int) []Op) float64 {
	m.Reset()
	cycles := 0.0
	const rounds = 2000
	for n := range rounds {
		list := ops(n)
		for i := range list {
			cycles += m.Execute(&list[i], false, false)
		}
	}
	return cycles / rounds
}

func TestBranches(t *testing.T) {
	m := NewMachine(CoreOf("amdzen4"))
	ops := assemble(t, bytesOf(t, "4883c001 eb00 4883c301 eb00"), 0x1000)
	run := func(taken, mispredicted bool) float64 {
		m.Reset()
		cycles := 0.0
		for range 1000 {
			for i := range ops {
				jump := ops[i].Class == Jump
				cycles += m.Execute(&ops[i], taken && jump, mispredicted && jump)
			}
		}
		return cycles / 1000
	}
	if got := run(true, false); !near(got, 2) {
		t.Errorf("two jumps: %.2f cycles", got)
	}
	if got := run(true, true); got < 2*float64(m.core.refill) || got > 2*float64(m.core.refill+6) {
		t.Errorf("two mispredicted jumps: %.2f cycles", got)
	}
}

// TestSeen checks where a sampler sees what is waited for.
func TestSeen(t *testing.T) {
	m := NewMachine(CoreOf("amdzen4"))
	// div, mov, cmp and jump in one, mov
	ops := assemble(t, bytesOf(t, "48f7f1 4889cb 4839d0 7500 4889ce"), 0x1000)
	seen := make([]float64, len(ops))
	for range 1000 {
		for i := range ops {
			seen[i] += m.Execute(&ops[i], false, false) / 1000
		}
	}
	if seen[0] > 1 || seen[1] < 9 || seen[3] != 0 {
		t.Errorf("of a division and what follows are seen %.2f cycles", seen)
	}
	seen = make([]float64, len(ops))
	for range 1000 {
		for i := 1; i < len(ops); i++ {
			seen[i] += m.Execute(&ops[i], i == 3, i == 3) / 1000
		}
	}
	if seen[4] < float64(m.core.refill)-1 || seen[1]+seen[2] > 4 {
		t.Errorf("of a mispredicted branch and what follows are seen %.2f cycles", seen)
	}
}

// TestFusion compares comparisons with jumps that they are one with, and that they are not.
func TestFusion(t *testing.T) {
	const adds = "4883c001 4883c301 4883c501 4883c601" // as many as there are ALUs
	for cpu, want := range map[string]map[string]float64{
		// Six micro-ops are dispatched in one cycle and a half; seven also need two to be fetched.
		"skylake": {"4885d2 7400": 6.0 / 4, "4885d2 7800": 6.0 / 4, "4839c2 7400": 6.0 / 4, "4839c2 7800": 2, "48ffc2 7400": 6.0 / 4, "48ffc2 7200": 2},
	} {
		m := NewMachine(CoreOf(cpu))
		for code, cycles := range want {
			ops := assemble(t, bytesOf(t, adds+code+"eb00"), 0x1000)
			m.Reset()
			got := 0.0
			for range 1000 {
				for i := range ops {
					got += m.Execute(&ops[i], i == len(ops)-1, false) / 1000
				}
			}
			if math.Abs(got-cycles) > 0.1 {
				t.Errorf("%s: %s: %.2f cycles, want %.2f", cpu, code, got, cycles)
			}
		}
	}
}

// TestFusionWithZero fuses jumps with instructions that are never executed, after
// multiplications. One of these is in each cycle, whatever jumps.
func TestFusionWithZero(t *testing.T) {
	code := ""
	for _, multiply := range []string{"4d0fafc0", "4d0fafc9", "4d0fafd2", "4d0fafdb", "4d0fafe4", "4d0fafed"} {
		code += multiply + "31c0" + "7400" // xor %eax,%eax; je
	}
	m := NewMachine(CoreOf("amdzen4"))
	if got := perTurn(m, assemble(t, bytesOf(t, code+turn), 0x1000)); !near(got, 6) {
		t.Errorf("six multiplications: %.2f cycles", got)
	}
}

// TestReset executes the same twice.
func TestReset(t *testing.T) {
	m := NewMachine(CoreOf("skylakex"))
	ops := assemble(t, bytesOf(t, "488b4708 4883c001 48894708"+turn), 0x1000)
	first := perTurn(m, ops)
	if again := perTurn(m, ops); math.Abs(again-first) > 0.01 {
		t.Errorf("%v cycles, and after Reset %v", first, again)
	}
}

// TestCoreErrors: every key of a core's file is known, and every name in it.
func TestCoreErrors(t *testing.T) {
	const good = "name = \"x\"\nports = \"a b\"\n"
	for text, want := range map[string]string{
		good + "colour = 1\n":                                       "colour",
		"name = \"y\"\n":                                            `name: "y" is not that of the file`,
		good + "extends = \"x\"\n":                                  "x extends itself",
		good + "extends = \"z\"\n":                                  "cores/z.toml",
		good + "loads = \"c\"\n":                                    `no port or set of ports is called "c"`,
		good + "fuses = { test = \"often\" }\n":                     "fuses: test",
		good + "costs = [{ slots = 1, of = \"Jumping\" }]\n":        `no class of instructions is called "Jumping"`,
		good + "costs = [{ slots = 1, of = \"Jump\", cold = 1 }]\n": "cold",
		good + "dispatch = \"six\"\n":                               ".Dispatch",
	} {
		set, err := readCores(fstest.MapFS{"cores/x.toml": {Data: []byte(text)}}, "cores")
		if err == nil {
			_, err = set.read("x")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestReorder has a chain of divisions overlap with moves that do not wait, as far as the
// reorder buffer reaches.
func TestReorder(t *testing.T) {
	ops := assemble(t, bytesOf(t, strings.Repeat("48f7f1", 10)+strings.Repeat("bb01000000", 400)), 0x1000)
	small, large := *CoreOf("amdzen4"), *CoreOf("amdzen4")
	small.reorder, large.reorder = 40, 4000
	if a, b := perTurn(NewMachine(&small), ops), perTurn(NewMachine(&large), ops); a < b+50 {
		t.Errorf("%.1f cycles with a short reorder buffer, %.1f with a long one", a, b)
	}
}

// TestCores checks that each processor of the catalogue has a core, and that the cores
// can execute everything.
func TestCores(t *testing.T) {
	catalogue, err := os.ReadFile("../../../../model/data/cpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	set := cores()
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^name = "(.+)"$`).FindAllSubmatch(catalogue, -1) {
		names[string(match[1])] = true
	}
	for name := range set.processors {
		known := false
		for cpu := range names {
			known = known || len(cpu) >= len(name) && cpu[:len(name)] == name
		}
		if !known {
			t.Errorf("no processor is called %s", name)
		}
	}
	for name := range set.parents {
		if _, err := set.read(name); err != nil {
			t.Error(err)
		}
	}
	for cpu := range names {
		c := CoreOf(cpu)
		checkCore(t, c)
		if c.Name == "" || len(names) < 100 {
			t.Errorf("%s has core %q", cpu, c.Name)
		}
	}
	for cpu, want := range map[string]string{"amdzen4": "amdzen4", "skylakex": "skylake", "cascadelakex": "skylake", "icelakex": "icelake",
		"sapphirerapidshbm": "goldencove", "alderlake:core": "goldencove", "alderlake:atom": "gracemont", "sandybridge": "sandybridge", "ivytown": "ivybridge", "lunarlake:atom": "generic", "broadwellde": "haswell", "power9": "generic", "": "generic"} {
		if got := CoreOf(cpu).Name; got != want {
			t.Errorf("%q has core %s, want %s", cpu, got, want)
		}
	}
}

func checkCore(t *testing.T, c *Core) {
	for form, k := range c.costs {
		class := Class(form / widths / 2)
		if k.slots == 0 || k.ops > 0 && k.ports == 0 || k.ops == 0 && k.ports != 0 && class != Move && class != MoveRSP && class != VecMove {
			t.Errorf("%s: form %d of class %v costs %+v", c.Name, form, class, k)
		}
	}
	for _, n := range []int{c.fetch, c.queue, c.dispatch, c.retire, c.reorder, len(c.schedulers), c.loadQueue, c.storeQueue, c.misses,
		c.refill, c.load, c.vectorLoad, c.forward, c.vectorForward, c.blocked, c.ahead, int(c.vector)} {
		if n <= 0 {
			t.Errorf("%s: something is not stated: %+v", c.Name, c)
		}
	}
	for form, k := range c.costs {
		class := Class(form / widths / 2)
		if op := (Op{Class: class, Loads: true}); c.home(&op, &k) == 0 {
			t.Errorf("%s: class %d has no scheduler", c.Name, class)
		}
		for home := k.ports | c.loads | c.vectorLoads | c.addresses; home != 0; home &= home - 1 {
			fed := false
			for _, s := range append(c.schedulers[:len(c.schedulers):len(c.schedulers)], c.vectorSchedulers...) {
				fed = fed || s.ports&(home&-home) != 0
			}
			if !fed {
				t.Errorf("%s: no scheduler feeds port %b, of memory or class %d", c.Name, home&-home, class)
			}
		}
	}
	if c.storeQueue > 1<<storeBits {
		t.Errorf("%s: more stores than are kept", c.Name)
	}
	for _, p := range []ports{c.loads, c.vectorLoads, c.addresses, c.data, c.vectorData} {
		if p == 0 {
			t.Errorf("%s: no ports for memory", c.Name)
		}
	}
}

// TestLate has loads wait: one after the other in a chain, and otherwise as many at a time as
// the core has room for.
func TestLate(t *testing.T) {
	m := NewMachine(CoreOf("amdzen4"))
	for _, tt := range []struct {
		name, code string
		late       int
		want       float64
	}{
		{"a chain in the first level", "488b00", 0, 4}, // mov (%rax),%rax
		{"a chain", "488b00", 46, 50},
		{"others, which the core has room for", "488b03", 2, 1. / 3}, // mov (%rbx),%rax
		{"others", "488b03", 46, 50. / 24},
		{"others, far away", "488b03", 500, 504. / 24},
	} {
		ops := assemble(t, bytesOf(t, tt.code), 0x1000)
		got := follow(m, func(int) []Op { m.Late(tt.late); return ops })
		if !near(got, tt.want) {
			t.Errorf("%s: %.2f cycles, want %.2f", tt.name, got, tt.want)
		}
	}
}

// TestArm64 executes loops of arm64 on Neoverse N1: Arm's Software Optimization Guide has the
// latencies that they wait for.
func TestArm64(t *testing.T) {
	tests := []struct {
		name  string
		words []uint32
		want  float64
	}{
		{"add x0, x0, #1", []uint32{0x91000400}, 1},
		{"an addition with a short shift: add x0, x0, x0, lsl #4", []uint32{0x8b001000}, 1},
		{"a logical operation with a shift: and x0, x0, x0, lsl #7", []uint32{0x8a001c00}, 1},
		{"an addition with a shift: add x0, x0, x0, lsl #5", []uint32{0x8b001400}, 2},
		{"mul w0, w0, w1", []uint32{0x1b017c00}, 2},
		{"mul x0, x0, x1", []uint32{0x9b017c00}, 4},
		{"fadd d0, d0, d1", []uint32{0x1e612800}, 2},
		{"fmadd d0, d1, d2, d0: what is added comes late", []uint32{0x1f420020}, 2},
		{"fmadd d0, d0, d2, d1", []uint32{0x1f420400}, 4},
		{"a list: ldr x0, [x0]", []uint32{0xf9400000}, 4},
		{"a pointer that is written back: ldr x1, [x0], #8", []uint32{0xf8408401}, 1},
		{"a variable in memory: ldr x1, [x0]; add x1, x1, #1; str x1, [x0]", []uint32{0xf9400001, 0x91000421, 0xf9000001}, 5},
		{"sdiv w0, w0, w1 with a quotient of half of the bits", []uint32{0x1ac10c00}, 8},
	}
	decoder, err := NewDecoder(disasm.ARM64)
	if err != nil {
		t.Fatal(err)
	}
	d, err := disasm.New(disasm.ARM64, disasm.Intel)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(CoreOf("neoverse-n1"))
	for _, test := range tests {
		var code []byte
		for _, w := range append(test.words, 0x17ffffff) { // b
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		var ops []Op
		for at := 0; at < len(code); at += 4 {
			ops = append(ops, decoder.Op(d.Decode(code[at:], uint64(0x1000+at)), code[at:]))
		}
		if got := perTurn(m, ops); !near(got, test.want) {
			t.Errorf("%s: %.2f cycles, want %.2f", test.name, got, test.want)
		}
	}
}
