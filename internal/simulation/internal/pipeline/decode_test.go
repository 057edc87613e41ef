package pipeline

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// r lists registers for reads and writes.
func r(list ...Register) (a [5]Register) { copy(a[:], list); return a }

func TestOp(t *testing.T) {
	const r8, r9, r10, r12, r13 = RAX + 8, RAX + 9, RAX + 10, RAX + 12, RAX + 13
	tests := []struct {
		text, code string
		want       Op
	}{
		{"add %rcx,%rax", "4801c8", Op{Class: ALU, Width: 8, Size: 8, reads: r(RCX, RAX), writes: r(RAX, Carry, Flags), fuses: fuseAdd}},
		{"add 0x10(%rdi,%r9,4),%eax", "4203448f10", Op{Class: ALU, Width: 4, Size: 4, Loads: true, Base: RDI, Index: r9, Scale: 4, Disp: 16,
			reads: r(RAX), writes: r(RAX, Carry, Flags), fuses: fuseAdd}},
		{"addl $1,0x2000(%rip)", "830500200000" + "01", Op{Class: ALU, Width: 4, Size: 4, Loads: true, Stores: true, Scale: 1, Disp: 0x1000 + 7 + 0x2000,
			writes: r(Carry, Flags)}},
		{"adc %rbx,%rax", "4811d8", Op{Class: ALUCarry, Width: 8, Size: 8, reads: r(RBX, RAX, Carry), writes: r(RAX, Carry, Flags)}},
		{"xor %eax,%eax", "31c0", Op{Class: Zero, Width: 4, Size: 4, writes: r(RAX, Carry, Flags), fuses: fuseOr}},
		{"cmp %ah,%bl", "38e3", Op{Class: ALU, Width: 1, Size: 1, reads: r(RAX, RBX), writes: r(Carry, Flags), fuses: fuseCompare}},
		{"cmp %spl,%bl", "4038e3", Op{Class: ALU, Width: 1, Size: 1, reads: r(RSP, RBX), writes: r(Carry, Flags), fuses: fuseCompare}},
		{"inc %r10", "49ffc2", Op{Class: AddConstant, Width: 8, Size: 8, reads: r(r10), writes: r(r10, Flags), fuses: fuseIncrement}},
		{"mov %rsp,%rbp", "4889e5", Op{Class: MoveRSP, Width: 8, Size: 8, reads: r(RSP), writes: r(RBP)}},
		{"mov %cl,%al", "88c8", Op{Class: ALU, Width: 1, Size: 1, reads: r(RCX, RAX), writes: r(RAX)}},
		{"mov (%r12,%r13),%r8w", "66478b042c", Op{Class: Load, Width: 2, Size: 2, Loads: true, Base: r12, Index: r13, Scale: 1, reads: r(r8), writes: r(r8)}},
		{"mov %fs:0x28,%rax", "64488b042528000000", Op{Class: Load, Width: 8, Size: 8, Loads: true, Scale: 1, Disp: 0x28, Segment: true, writes: r(RAX)}},
		{"mov $5,%r8d", "41b805000000", Op{Class: ALU, Width: 4, Size: 4, writes: r(r8)}},
		{"movl $5,(%rdi)", "c70705000000", Op{Class: StoreConstant, Width: 4, Size: 4, Stores: true, Base: RDI, Scale: 1}},
		{"movzbl (%rsi),%eax", "0fb606", Op{Class: Load, Width: 4, Size: 1, Loads: true, Base: RSI, Scale: 1, writes: r(RAX)}},
		{"movslq (%rsi),%rax", "486306", Op{Class: LoadSigned, Width: 8, Size: 4, Loads: true, Base: RSI, Scale: 1, writes: r(RAX)}},
		{"lea 8(%rax,%rcx,2),%rdx", "488d544808", Op{Class: LEAComplex, Width: 8, Size: 8, Base: RAX, Index: RCX, Scale: 2, Disp: 8, reads: r(RAX, RCX), writes: r(RDX)}},
		{"lea (%rax),%rdx", "488d10", Op{Class: Move, Width: 8, Size: 8, Base: RAX, Scale: 1, reads: r(RAX), writes: r(RDX)}},
		{"push %r12", "4154", Op{Class: Store, Width: 8, Size: 8, Stores: true, reads: r(r12), stack: 8}},
		{"pop %rbx", "5b", Op{Class: Load, Width: 8, Size: 8, Loads: true, writes: r(RBX), stack: -8}},
		{"call", "e800000000", Op{Class: Call, Width: 8, Size: 8, Stores: true, stack: 8}},
		{"ret", "c3", Op{Class: Return, Width: 8, Size: 8, Loads: true, stack: -8}},
		{"jmp *8(%rax,%rbx,8)", "ff64d808", Op{Class: IndirectJump, Width: 8, Size: 8, Loads: true, Base: RAX, Index: RBX, Scale: 8, Disp: 8}},
		{"jbe", "7600", Op{Class: CondJump, Width: 4, Size: 4, reads: r(Carry, Flags), conditional: true, cond: 6}},
		{"jl", "0f8c00000000", Op{Class: CondJump, Width: 4, Size: 4, reads: r(Flags), conditional: true, cond: 12}},
		{"sete %al", "0f94c0", Op{Class: SetCC, Width: 1, Size: 1, reads: r(Flags, RAX), writes: r(RAX)}},
		{"cmova %rcx,%rax", "480f47c1", Op{Class: CMovBE, Width: 8, Size: 8, reads: r(RAX, RCX, Carry, Flags), writes: r(RAX)}},
		{"shl %cl,%rax", "48d3e0", Op{Class: ShiftVar, Width: 8, Size: 8, reads: r(RAX, RCX), writes: r(RAX, Carry, Flags)}},
		{"imul $3,(%rdi),%eax", "6b0703", Op{Class: IMul, Width: 4, Size: 4, Loads: true, Base: RDI, Scale: 1, writes: r(RAX, Carry, Flags)}},
		{"mul %rcx", "48f7e1", Op{Class: MulWide, Width: 8, Size: 8, reads: r(RCX, RAX), writes: r(RAX, RDX, Carry, Flags)}},
		{"idiv %ecx", "f7f9", Op{Class: IDiv32, Width: 4, Size: 4, reads: r(RCX, RAX, RDX), writes: r(RAX, RDX, Carry, Flags)}},
		{"cqo", "4899", Op{Class: SignFill, Width: 8, Size: 8, reads: r(RAX), writes: r(RDX)}},
		{"lock xadd %eax,(%rdi)", "f00fc107", Op{Class: Locked, Width: 4, Size: 4, Loads: true, Stores: true, Base: RDI, Scale: 1, reads: r(RAX), writes: r(RAX, Carry, Flags)}},
		{"rep movsb", "f3a4", Op{Class: RepString, Width: 1, Size: 1, Loads: true, Stores: true, Base: RSI, reads: r(RSI, RDI, RCX), writes: r(RSI, RDI, RCX)}},
		{"repz cmpsb", "f3a6", Op{Class: RepString, Width: 1, Size: 1, Loads: true, Base: RSI, reads: r(RSI, RDI, RCX), writes: r(Carry, Flags, RSI, RDI, RCX)}},
		{"loop", "e200", Op{Class: CondJump, Width: 8, Size: 8, reads: r(RCX), writes: r(RCX), conditional: true, cond: noCondition}},
		{"jrcxz", "e300", Op{Class: CondJump, Width: 4, Size: 4, reads: r(RCX), conditional: true, cond: noCondition}},
		{"lock decl (%rdi)", "f0ff0f", Op{Class: Locked, Width: 4, Size: 4, Loads: true, Stores: true, Base: RDI, Scale: 1, writes: r(Flags)}},
		{"nopw", "660f1f440000", Op{Class: Nop, Width: 2, Size: 2, Base: RAX, Index: RAX, Scale: 1}},
		{"endbr64", "f30f1efa", Op{Class: Nop, Width: 4, Size: 4}},
		{"mfence", "0faef0", Op{Class: Fence, Width: 4, Size: 4}},
		{"addsd %xmm1,%xmm0", "f20f58c1", Op{Class: FAdd, Width: 16, Size: 8, reads: r(XMM0, XMM0+1), writes: r(XMM0), vector: true}},
		{"mulsd (%rdi),%xmm9", "f2440f590f", Op{Class: FMul, Width: 16, Size: 8, Loads: true, Base: RDI, Scale: 1, reads: r(XMM0 + 9), writes: r(XMM0 + 9), vector: true}},
		{"pxor %xmm3,%xmm3", "660fefdb", Op{Class: Zero, Width: 16, Size: 16, writes: r(XMM0 + 3), vector: true}},
		{"movaps %xmm1,%xmm0", "0f28c1", Op{Class: VecMove, Width: 16, Size: 16, reads: r(XMM0 + 1), writes: r(XMM0), vector: true}},
		{"movss %xmm1,(%rdi)", "f30f110f", Op{Class: VecStore, Width: 16, Size: 4, Stores: true, Base: RDI, Scale: 1, reads: r(XMM0 + 1), vector: true}},
		{"movq %xmm0,%rax", "66480f7ec0", Op{Class: ToGPR, Width: 16, Size: 8, reads: r(XMM0), writes: r(RAX), vector: true}},
		{"cvtsi2sd %rax,%xmm0", "f2480f2ac0", Op{Class: ConvertFromGPR, Width: 16, Size: 8, reads: r(XMM0, RAX), writes: r(XMM0), vector: true}},
		{"cvttsd2si %xmm0,%eax", "f20f2cc0", Op{Class: ConvertToGPR, Width: 16, Size: 8, reads: r(XMM0), writes: r(RAX), vector: true}},
		{"ucomisd %xmm1,%xmm0", "660f2ec1", Op{Class: FTest, Width: 16, Size: 8, reads: r(XMM0, XMM0+1), writes: r(Carry, Flags), vector: true}},
		{"pmovmskb %xmm0,%eax", "660fd7c0", Op{Class: MaskToGPR, Width: 16, Size: 16, reads: r(XMM0), writes: r(RAX), vector: true}},
		{"pinsrb $1,%edi,%xmm0", "660f3a20c701", Op{Class: Insert, Width: 16, Size: 1, reads: r(XMM0, RDI), writes: r(XMM0), vector: true}},
		{"pextrb $1,%xmm0,%edi", "660f3a14c701", Op{Class: Extract, Width: 16, Size: 1, reads: r(XMM0), writes: r(RDI), vector: true}},
		{"pblendvb %xmm0,%xmm2,%xmm1", "660f3810ca", Op{Class: BlendVar, Width: 16, Size: 16, reads: r(XMM0+1, XMM0+2, XMM0), writes: r(XMM0 + 1), vector: true}},
		{"sha256rnds2 %xmm0,%xmm2,%xmm1", "0f38cbca", Op{Class: SHARounds, Width: 16, Size: 16, reads: r(XMM0+1, XMM0+2, XMM0), writes: r(XMM0 + 1), vector: true}},
		{"pcmpistri $0,%xmm2,%xmm1", "660f3a63ca00", Op{Class: VString, Width: 16, Size: 16, reads: r(XMM0+1, XMM0+2), writes: r(Carry, Flags, RCX), vector: true}},
		{"pcmpestrm $0,%xmm2,%xmm1", "660f3a60ca00", Op{Class: VString, Width: 16, Size: 16, reads: r(XMM0+1, XMM0+2, RAX, RDX), writes: r(Carry, Flags, XMM0), vector: true}},
		{"psrldq $8,%xmm0", "660f73d808", Op{Class: VShift, Width: 16, Size: 16, reads: r(XMM0), writes: r(XMM0), vector: true}},
		{"vpaddd (%rdi),%ymm1,%ymm2", "c5f5fe17", Op{Class: VInt, Width: 32, Size: 32, Loads: true, Base: RDI, Scale: 1, reads: r(XMM0 + 1), writes: r(XMM0 + 2), vector: true}},
		{"vmovdqu %ymm0,0x20(%rdi)", "c5fe7f4720", Op{Class: VecStore, Width: 32, Size: 32, Stores: true, Base: RDI, Scale: 1, Disp: 32, reads: r(XMM0), vector: true}},
		{"vfmadd231pd %ymm1,%ymm2,%ymm3", "c4e2edb8d9", Op{Class: FMA, Width: 32, Size: 32, reads: r(XMM0+2, XMM0+3, XMM0+1), writes: r(XMM0 + 3), vector: true}},
		{"vfmadd132sd (%rdi),%xmm2,%xmm3", "c4e2e9991f", Op{Class: FMA, Width: 16, Size: 8, Loads: true, Base: RDI, Scale: 1, reads: r(XMM0+2, XMM0+3), writes: r(XMM0 + 3), vector: true}},
		{"vpxor %xmm4,%xmm4,%xmm0", "c5d9efc4", Op{Class: Zero, Width: 16, Size: 16, writes: r(XMM0), vector: true}},
		{"vpblendvb %xmm3,%xmm2,%xmm1,%xmm0", "c4e3714cc230", Op{Class: BlendVar, Width: 16, Size: 16, reads: r(XMM0+1, XMM0+2, XMM0+3), writes: r(XMM0), vector: true}},
		{"vpmovzxbw (%rdi),%ymm0", "c4e27d3007", Op{Class: Widen, Width: 32, Size: 16, Loads: true, Base: RDI, Scale: 1, writes: r(XMM0), vector: true}},
		{"vpgatherdd %ymm2,(%rax,%ymm4,4),%ymm0", "c4e26d9004a0", Op{Class: Gather, Width: 32, Size: 32, Loads: true, Base: RAX, Index: XMM0 + 4, Scale: 4, reads: r(XMM0+2, XMM0), writes: r(XMM0), vector: true}},
		{"vextracti128 $1,%ymm1,(%rdi)", "c4e37d390f01", Op{Class: ShuffleHalves, Width: 32, Size: 16, Stores: true, Base: RDI, Scale: 1, reads: r(XMM0 + 1), vector: true}},
		{"vzeroupper", "c5f877", Op{Class: Emms, Width: 4, Size: 4}},
		{"andn %rcx,%rbx,%rax", "c4e2e0f2c1", Op{Class: BMI, Width: 8, Size: 8, reads: r(RBX, RCX), writes: r(RAX, Carry, Flags)}},
		{"blsr %rax,%rcx", "c4e2f0f3c8", Op{Class: BMI, Width: 8, Size: 8, reads: r(RAX), writes: r(RCX, Carry, Flags)}},
		{"shlx %rcx,%rax,%rdx", "c4e2f1f7d0", Op{Class: ShiftBMI, Width: 8, Size: 8, reads: r(RCX, RAX), writes: r(RDX)}},
		{"pdep %rcx,%rbx,%rax", "c4e2e3f5c1", Op{Class: Deposit, Width: 8, Size: 8, reads: r(RBX, RCX), writes: r(RAX)}},
		{"mulx %rcx,%rbx,%rax", "c4e2e3f6c1", Op{Class: MulWide, Width: 8, Size: 8, reads: r(RCX, RDX), writes: r(RAX, RBX)}},
		{"popcnt (%rdi),%rax", "f3480fb807", Op{Class: BitCount, Width: 8, Size: 8, Loads: true, Base: RDI, Scale: 1, writes: r(RAX, Carry, Flags)}},
		{"vmovdqu64 0x40(%rsi),%zmm16", "62e1fe486f4601", Op{Class: VecLoad, Width: 64, Size: 64, Loads: true, Base: RSI, Scale: 1, Disp: 64, writes: r(XMM0 + 16), vector: true}},
		{"vaddpd (%rdi){1to8},%zmm1,%zmm2{%k1}", "62f1f5595817", Op{Class: FAdd, Width: 64, Size: 8, Loads: true, Base: RDI, Scale: 1, reads: r(XMM0+1, K0+1, XMM0+2), writes: r(XMM0 + 2), vector: true}},
		{"vpcmpeqb (%rdi),%ymm16,%k0", "62f17d207407", Op{Class: FCompare, Width: 32, Size: 32, Loads: true, Base: RDI, Scale: 1, reads: r(XMM0 + 16), writes: r(K0), vector: true}},
		{"vpmovwb %zmm1,(%rdi)", "62f27e48300f", Op{Class: ShuffleAcross, Width: 64, Size: 32, Stores: true, Base: RDI, Scale: 1, reads: r(XMM0 + 1), vector: true}},
		{"kmovd %k0,%eax", "c5fb93c0", Op{Class: MaskMove, Width: 16, Size: 16, reads: r(K0), writes: r(RAX), vector: true}},
		{"fldl (%rdi)", "dd07", Op{Class: FPStack, Width: 4, Size: 8, Loads: true, Base: RDI, Scale: 1, writes: r(X87), vector: true}},
		{"fmulp", "dec9", Op{Class: FPStackMul, Width: 4, Size: 4, reads: r(X87), writes: r(X87), vector: true}},
	}
	for _, test := range tests {
		ops := assemble(t, bytesOf(t, test.code), 0x1000)
		if len(ops) != 1 {
			t.Errorf("%s: %d instructions", test.text, len(ops))
			continue
		}
		ignore := cmpopts.IgnoreFields(Op{}, "scalar", "partial", "formula", "addr", "form", "code", "late")
		if diff := cmp.Diff(test.want, ops[0], cmp.AllowUnexported(Op{}), ignore); diff != "" {
			t.Errorf("%s: %s", test.text, diff)
		}
	}
}

// TestLayout compares the ModRM bytes of this package and of disasm, which both read only a
// part of an instruction. The bytes behind the operands are as many for a register as for
// an address.
func TestLayout(t *testing.T) {
	var starts [][]byte
	for _, prefix := range []string{"", "66", "f2", "f3", "48"} {
		for _, escape := range []string{"", "0f", "0f38", "0f3a"} {
			starts = append(starts, bytesOf(t, prefix+escape))
		}
	}
	for m := range byte(3) {
		for pp := range byte(4) {
			starts = append(starts, []byte{0xc4, 0xe1 + m, 0x78 | pp}, []byte{0x62, 0xf1 + m, 0x7c | pp, 0x08})
		}
		starts = append(starts, []byte{0x8f, 0xe8 + m, 0x78})
	}
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, start := range starts {
		for opcode := range 256 {
			if opcode&^3 == 0x20 && len(start) > 0 && start[len(start)-1] == 0x0f {
				continue // registers of the system, whatever ModRM says
			}
			if opcode == 0x0f && len(start) < 2 {
				continue // which is no opcode
			}
			behind := map[int]bool{}
			for _, modrm := range []byte{0xc0, 0x80} { // %eax, 0(%rax) with four bytes of zeros
				code := append(append([]byte{}, start...), byte(opcode), modrm, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
				i := d.Decode(code, 0x1000)
				if i.Bad {
					continue
				}
				x := encodedInstruction{code: code[:i.Len], end: i.Next()}
				x.prefixes()
				x.operands()
				behind[i.Len-x.pos] = true
				compared++
				if x.cut {
					t.Errorf("%x is longer here", code[:i.Len])
				}
			}
			if len(behind) > 1 {
				t.Errorf("%x %02x: behind the operands are %v bytes", start, opcode, slices.Collect(maps.Keys(behind)))
			}
		}
	}
	if compared < 10000 {
		t.Errorf("%d instructions were compared", compared)
	}
}

func TestDecoderOfOthers(t *testing.T) {
	if _, err := NewDecoder(disasm.RISCV64); err == nil {
		t.Error("there is a decoder of riscv64")
	}
}

// FuzzOp executes any bytes, as instructions of amd64 and of arm64, on all cores. Every kind of
// prefix is among the seeds: REX, VEX, EVEX, XOP, and the bytes of APX.
func FuzzOp(f *testing.F) {
	for _, code := range []string{"4801c8", "f3a4", "62f1f5595817", "c4e3714cc230", "c9", "8f00", "ff30", "f00fc107", "dd07", "0fc70f", "c5fb93c0", "0f01f9", "c70425fcffffff00000000",
		"d54801c8", "62f4741801c8", "62e4fc0801c8", "8fe878c0c001", "6666f30f10c0", "c401fe58c0", "40f04801c8",
		"000400910010008b007c019b0028611e2000421f000040f9018440f8010000a9000ce0d3"} {
		if b, err := hex.DecodeString(strings.ReplaceAll(code, " ", "")); err == nil {
			f.Add(b)
		}
	}
	var machines []*Machine
	for _, cpu := range []string{"amdzen1", "amdzen5", "haswell", "sapphirerapids", "generic", "neoverse-n1", "neoverse-v2"} {
		machines = append(machines, NewMachine(CoreOf(cpu)))
	}
	type reader struct {
		d       disasm.Decoder
		decoder *Decoder
	}
	var readers []reader
	for _, arch := range []disasm.Arch{disasm.AMD64, disasm.ARM64} {
		d, err := disasm.New(arch, disasm.ATT)
		if err != nil {
			f.Fatal(err)
		}
		decoder, err := NewDecoder(arch)
		if err != nil {
			f.Fatal(err)
		}
		readers = append(readers, reader{d, decoder})
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, r := range readers {
			for _, m := range machines {
				m.Reset()
			}
			for rest := code; len(rest) > 0; {
				i := r.d.Decode(rest, 0x1000)
				op := r.decoder.Op(i, rest)
				if loads, stores := r.decoder.Accesses(i, rest); loads != op.Loads || stores != op.Stores {
					t.Fatalf("%x: it loads %v and stores %v, and by Op %v and %v", rest[:i.Len], loads, stores, op.Loads, op.Stores)
				}
				for n, m := range machines {
					c := m.Execute(&op, n%2 == 0, n%3 == 0)
					if !(c >= 0 && c < 1e5) {
						t.Fatalf("%x: %v cycles", rest[:i.Len], c)
					}
				}
				rest = rest[max(i.Len, 1):]
			}
		}
	})
}
