package chains_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/chains"
)

// Following a list: the address of each load is what the one before has loaded.
func ExampleLoads() {
	code := []byte{
		0x48, 0x03, 0x47, 0x08, // add 0x8(%rdi),%rax
		0x48, 0x8b, 0x3f, // mov (%rdi),%rdi
		0x48, 0x85, 0xff, // test %rdi,%rdi
		0x75, 0xf4, // jne to the first
		0xc3, // ret
	}
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		panic(err)
	}
	found := chains.Loads(disasm.AMD64, disasm.Instructions(d, code, 0x1000), func(i disasm.Inst) string {
		return d.Text(i, code[i.Addr-0x1000:])
	})
	fmt.Println(found[0x1000], found[0x1004], found[0x1007])
	// Output: true true false
}
