package disasm

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

func decoder(t testing.TB, arch Arch, syntax Syntax) Decoder {
	t.Helper()
	d, err := New(arch, syntax)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func code(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecode decodes instructions at 0x1000. Encodings and texts are those of
// GNU as and objdump.
func TestDecode(t *testing.T) {
	const addr = 0x1000
	tests := []struct {
		arch   Arch
		code   string
		flow   Flow
		target uint64
		text   string // in AT&T syntax; "" is not compared
	}{
		// What x/arch decodes wrongly or not at all.
		{AMD64, "f30f1efa", Next, 0, "endbr64"},
		{I386, "f30f1efb", Next, 0, "endbr32"},
		{AMD64, "660faef0", Next, 0, "tpause %eax"},
		{AMD64, "f20faef1", Next, 0, "umwait %ecx"},
		{AMD64, "f30faef2", Next, 0, "umonitor %rdx"},
		{AMD64, "f30fc7f8", Next, 0, "rdpid %rax"},
		{AMD64, "f30fc7f9", Next, 0, "rdpid %rcx"},
		{AMD64, "66480f38f6c1", Next, 0, "adcx %rcx,%rax"},
		{AMD64, "f3480f38f6c1", Next, 0, "adox %rcx,%rax"},
		{AMD64, "66480f38f6442408", Next, 0, "adcx 0x8(%rsp),%rax"},
		{AMD64, "0fc7f8", Next, 0, "rdseed %eax"},
		{AMD64, "480fc7f9", Next, 0, "rdseed %rcx"},
		{AMD64, "490fc7f9", Next, 0, "rdseed %r9"},
		{AMD64, "f3480f1ec8", Next, 0, "rdsspq %rax"},
		{AMD64, "f3480faee8", Next, 0, "incsspq %rax"},
		{AMD64, "660fae30", Next, 0, "clwb (%rax)"},
		{AMD64, "d51058", Next, 0, ""},               // REX2: pop of r16
		{AMD64, "d51889c3", Next, 0, ""},             // REX2: mov of 64 bits
		{AMD64, "d588afc3", Next, 0, ""},             // REX2 of the second map
		{AMD64, "c4e2f9dc00", Next, 0, ""},           // VEX of three bytes
		{AMD64, "62f17c48588040000000", Next, 0, ""}, // EVEX with a displacement
		{AMD64, "8fe87cc0c805", Next, 0, ""},         // XOP with an immediate
		{AMD64, "0f0f c1 9e", Next, 0, ""},           // 3DNow!
		{AMD64, "f20f78c10408", Next, 0, ""},         // INSERTQ
		{AMD64, "48b8 8877665544332211", Next, 0, "mov $0x1122334455667788,%rax"},
		{AMD64, "48a1 8877665544332211", Next, 0, ""},
		{AMD64, "67a1 44332211", Next, 0, ""},
		{AMD64, "66c705f8ffffff3412", Next, 0, ""},
		{AMD64, "f7d8", Next, 0, "neg %eax"},
		{AMD64, "f7c078563412", Next, 0, "test $0x12345678,%eax"},
		{AMD64, "66f7c03412", Next, 0, "test $0x1234,%ax"},
		{AMD64, "c8100001", Next, 0, ""},
		// What x/arch writes misleadingly.
		{AMD64, "498b3c24", Next, 0, "mov (%r12),%rdi"},
		{AMD64, "488d35ceffffff", Next, 0, "lea -0x32(%rip),%rsi"},
		{AMD64, "0f298d90fbffff", Next, 0, "movaps %xmm1,-0x470(%rbp)"},
		{AMD64, "4c8b0485001000ff", Next, 0, "mov -0xfff000(,%rax,4),%r8"},
		{AMD64, "c5d1db2db8401b00", Next, 0, "vpand 0x1b40b8(%rip),%xmm5,%xmm5"},
		{AMD64, "c5d1db2db8401bff", Next, 0, "vpand -0xe4bf48(%rip),%xmm5,%xmm5"},
		{AMD64, "62f16548fe2d74ac1b00", Next, 0, "vpaddd 0x1bac74(%rip),%zmm3,%zmm5"},
		{AMD64, "c5fe7f0510000000", Next, 0, "vmovdqu %ymm0,0x10(%rip)"},
		{AMD64, "490fc7f2", Next, 0, "rdrand %r10"},
		{AMD64, "0f292c2500000000", Next, 0, "movaps %xmm5,0x0"},
		{AMD64, "0fb6042500000000", Next, 0, "movzbl 0x0,%eax"},
		{AMD64, "64488b0425f8ffffff", Next, 0, "mov %fs:0xfffffffffffffff8,%rax"},
		{AMD64, "e800f0ff7f", Call, 0x80000005, "callq 0x80000005"},
		{AMD64, "65488b042528000000", Next, 0, "mov %gs:0x28,%rax"},
		{I386, "8b80000000ff", Next, 0, ""},
		// Flow.
		{AMD64, "ebfe", Jump, 0x1000, ""},
		{AMD64, "e9fbffffff", Jump, 0x1000, ""},
		{AMD64, "740a", CondJump, 0x100c, ""},
		{AMD64, "0f84 00010000", CondJump, 0x1106, ""},
		{AMD64, "e2f0", CondJump, 0xff2, ""},
		{AMD64, "e800000000", Call, 0x1005, ""},
		{AMD64, "66e800000000", Call, 0x1006, ""},
		{AMD64, "ffd0", IndirectCall, 0, ""},
		{AMD64, "ff25 00000000", IndirectJump, 0, ""},
		{AMD64, "3effe0", IndirectJump, 0, ""},
		{AMD64, "c3", Return, 0, ""},
		{AMD64, "f3c3", Return, 0, ""},
		{AMD64, "0f0b", Trap, 0, ""},
		{AMD64, "0fb9c0", Trap, 0, ""},
		{AMD64, "0f05", Next, 0, "syscall"},
		{I386, "66e90000", Jump, 0x1004, ""},
		{I386, "678b04", Next, 0, ""}, // a 16-bit address without SIB
		{I386, "9a 78563412 3300", IndirectCall, 0, ""},
		{ARM64, "00000014", Jump, 0x1000, ""},
		{ARM64, "ffffff97", Call, 0xffc, ""},
		{ARM64, "41000054", CondJump, 0x1008, ""},
		{ARM64, "400000b4", CondJump, 0x1008, ""},
		{ARM64, "40000036", CondJump, 0x1008, ""},
		{ARM64, "c0035fd6", Return, 0, "ret"},
		{ARM64, "ff0b5fd6", Return, 0, ""}, // retaa
		{ARM64, "00001fd6", IndirectJump, 0, "br x0"},
		{ARM64, "00003fd6", IndirectCall, 0, "blr x0"},
		{ARM64, "000020d4", Trap, 0, "brk #0x0"},
		{ARM64, "00e0e104", Next, 0, ".inst 0x04e1e000"},
		{ARM64, "20000090", Next, 0, "adrp x0, 0x5000"},
		{PPC64LE, "00000048", Jump, 0x1000, ""},
		{PPC64LE, "fdffff4b", Call, 0xffc, ""},
		{PPC64LE, "0c008241", CondJump, 0x100c, ""},
		{PPC64LE, "05009f42", Next, 0, ""}, // bcl 20,31,.+4
		{PPC64LE, "2000804e", Return, 0, "blr"},
		{PPC64LE, "2000824d", CondReturn, 0, ""},
		{PPC64LE, "2004804e", IndirectJump, 0, "bctr"},
		{PPC64LE, "2104804e", IndirectCall, 0, "bctrl"},
		{PPC64LE, "0800e07f", Trap, 0, ""},
		{PPC64LE, "0000000601006038", Next, 0, ""}, // a prefixed instruction
		{PPC64, "48000000", Jump, 0x1000, ""},
		{RISCV64, "6f000000", Jump, 0x1000, ""},
		{RISCV64, "eff0dfff", Call, 0xffc, ""},
		{RISCV64, "63040500", CondJump, 0x1008, ""},
		{RISCV64, "67800000", Return, 0, ""},
		{RISCV64, "8280", Return, 0, ""},
		{RISCV64, "01a0", Jump, 0x1000, ""},
		{RISCV64, "11c1", CondJump, 0x1004, ""},
		{RISCV64, "0295", IndirectCall, 0, ""},
		{RISCV64, "0285", IndirectJump, 0, ""},
		{RISCV64, "0290", Trap, 0, ""},
		{RISCV64, "73001000", Trap, 0, ""},
		{RISCV64, "1f0000000000", Next, 0, ""}, // six bytes
	}
	for _, test := range tests {
		d := decoder(t, test.arch, ATT)
		b := code(t, test.code)
		i := d.Decode(b, addr)
		if i.Bad || i.Len != len(b) || i.Flow != test.flow || i.Target != test.target {
			t.Errorf("%s %s: got %d bytes, %v to %#x, bad %v; want %d bytes, %v to %#x", test.arch, test.code, i.Len, i.Flow, i.Target, i.Bad, len(b), test.flow, test.target)
		}
		if text := d.Text(i, b); test.text != "" && strings.Join(strings.Fields(text), " ") != test.text {
			t.Errorf("%s %s: got text %q, want %q", test.arch, test.code, text, test.text)
		}
	}
}

func TestBad(t *testing.T) {
	for arch, list := range map[Arch][]string{
		AMD64:   {"06", "d50048", "0f04", "48", "c7", "666666", "66666666666666666666666666666690", "e800", "62f1", "0f38"},
		ARM64:   {"00", "000014"},
		PPC64LE: {"00", "00000006"},
		RISCV64: {"13", "130000", "ffff"},
	} {
		d := decoder(t, arch, ATT)
		for _, text := range list {
			b := code(t, text)
			i := d.Decode(b, 0)
			if !i.Bad || i.Len < 1 || i.Len > len(b) {
				t.Errorf("%s %s: got %+v, want a bad instruction", arch, text, i)
			}
		}
		if i := d.Decode(nil, 0); !i.Bad || i.Len != 0 {
			t.Errorf("%s: nothing is decoded as %+v", arch, i)
		}
	}
	if _, err := New("vax", ATT); err == nil {
		t.Error("there is a disassembler for the VAX")
	}
}

func TestAnnotate(t *testing.T) {
	d := decoder(t, AMD64, Intel)
	symbol := func(addr uint64) (string, uint64) {
		if addr >= 0x2000 && addr < 0x3000 {
			return "data", addr - 0x2000
		}
		return "", 0
	}
	for _, test := range []struct{ code, text, note string }{
		{"e8fb0f0000", "call 0x2000", "<data>"},
		{"488b05190f0000", "mov rax, qword ptr [rip+0xf19]", "# 1f20"},
		{"488b0509100000", "mov rax, qword ptr [rip+0x1009]", "# 2010 <data+0x10>"},
		{"488d35ceffffff", "lea rsi, ptr [rip-0x32]", "# fd5"},
		{"c5d1db2db8401bff", "vpand xmm5, xmm5, xmmword ptr [rip-0xe4bf48]", "# ffffffffff1b50c0"},
		{"c5d1db2df80f0000", "vpand xmm5, xmm5, xmmword ptr [rip+0xff8]", "# 2000 <data>"},
		{"90", "nop", ""},
		{"0faef8", "sfence", ""},
	} {
		b := code(t, test.code)
		i := d.Decode(b, 0x1000)
		if got := d.Text(i, b); got != test.text {
			t.Errorf("%s: got text %q, want %q", test.code, got, test.text)
		}
		if got := Annotate(i, symbol); got != test.note {
			t.Errorf("%s: got note %q, want %q", test.code, got, test.note)
		}
	}
}

var architectures = []Arch{AMD64, I386, ARM64, PPC64, PPC64LE, RISCV64}

// FuzzDecode decodes anything as anything: steps stay within the code and are
// never empty, and graphs are consistent.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		b := make([]byte, 64)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Add(code(f, "f30f1efa554889e5e8000000007405ebf0c9c30f0b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, arch := range architectures {
			for _, syntax := range []Syntax{ATT, Intel} {
				d := decoder(t, arch, syntax)
				insts := Instructions(d, b, 0x1000)
				at := 0
				for _, i := range insts {
					if i.Len < 1 || i.Addr != 0x1000+uint64(at) || at+i.Len > len(b) {
						t.Fatalf("%s: %+v at %d of %d", arch, i, at, len(b))
					}
					if d.Text(i, b[at:]) == "" {
						t.Fatalf("%s: no text for % x", arch, b[at:at+i.Len])
					}
					if i.Len > 15 {
						t.Fatalf("%s: %d bytes", arch, i.Len)
					}
					at += i.Len
				}
				if at != len(b) {
					t.Fatalf("%s: stopped at %d of %d", arch, at, len(b))
				}
				checkGraph(t, NewGraph(insts))
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	d := decoder(b, AMD64, ATT)
	text := code(b, strings.Repeat("f30f1efa 554889e5 e800000000 7405 488b0509100000 62f17c48588040000000 c4e2f9dc00 c9 c3", 100))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for at := 0; at < len(text); {
			at += d.Decode(text[at:], uint64(at)).Len
		}
	}
}
