package pipeline_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// The FNV hash of a string: each byte is multiplied into what the ones before it made.
func Example() {
	code := []byte{
		0x0f, 0xb6, 0x0f, // movzbl (%rdi),%ecx
		0x48, 0xff, 0xc7, // inc %rdi
		0x48, 0x31, 0xc8, // xor %rcx,%rax
		0x48, 0x0f, 0xaf, 0xc2, // imul %rdx,%rax
		0x48, 0x39, 0xf7, // cmp %rsi,%rdi
		0x75, 0xee, // jne
	}
	instructions, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		panic(err)
	}
	decoder, err := pipeline.NewDecoder(disasm.AMD64)
	if err != nil {
		panic(err)
	}
	var ops []pipeline.Op
	for addr := uint64(0x1000); len(code) > 0; {
		i := instructions.Decode(code, addr)
		ops = append(ops, decoder.Op(i, code))
		code, addr = code[i.Len:], i.Next()
	}
	m := pipeline.NewMachine(pipeline.CoreOf("amdzen4"))
	const bytes = 10000
	cycles := 0.0
	for range bytes {
		for i := range ops {
			last := i == len(ops)-1
			cycles += m.Execute(&ops[i], last, false)
		}
	}
	fmt.Printf("%.1f cycles per byte\n", cycles/bytes)
	// Output:
	// 4.0 cycles per byte
}
