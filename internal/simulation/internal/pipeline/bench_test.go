package pipeline

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// BenchmarkExecute executes a loop that loads, computes, stores and jumps.
func BenchmarkExecute(b *testing.B) {
	code := []byte{
		0x48, 0x8b, 0x04, 0xcf, // mov (%rdi,%rcx,8),%rax
		0x48, 0x0f, 0xaf, 0xc2, // imul %rdx,%rax
		0x48, 0x03, 0x04, 0xce, // add (%rsi,%rcx,8),%rax
		0x48, 0x89, 0x04, 0xce, // mov %rax,(%rsi,%rcx,8)
		0x48, 0xff, 0xc1, // inc %rcx
		0x48, 0x39, 0xd9, // cmp %rbx,%rcx
		0x75, 0xe8, // jne
	}
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		b.Fatal(err)
	}
	decoder, err := NewDecoder(disasm.AMD64)
	if err != nil {
		b.Fatal(err)
	}
	var ops []Op
	for addr := uint64(0); len(code) > 0; {
		i := d.Decode(code, addr)
		ops = append(ops, decoder.Op(i, code))
		code, addr = code[i.Len:], i.Next()
	}
	m := NewMachine(CoreOf("amdzen4"))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		op := &ops[i%len(ops)]
		m.Execute(op, op.conditional, false)
	}
}
