package disasm_test

import (
	"fmt"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// The blocks of a function that counts down from 3.
func Example() {
	code := []byte{
		0xf3, 0x0f, 0x1e, 0xfa, // endbr64
		0xb8, 3, 0, 0, 0, // mov $3,%eax
		0xff, 0xc8, // dec %eax
		0x75, 0xfc, // jne back
		0xc3, // ret
	}
	const addr = 0x1000
	d, err := disasm.New(disasm.AMD64, disasm.Intel)
	if err != nil {
		fmt.Println(err)
		return
	}
	graph := disasm.NewGraph(disasm.Instructions(d, code, addr))
	for n, b := range graph.Blocks {
		fmt.Printf("block %d, next %v\n", n, b.Succs)
		for _, i := range b.Insts {
			fmt.Printf("  %x %s\n", i.Addr, d.Text(i, code[i.Addr-addr:]))
		}
	}
	// Output:
	// block 0, next [1]
	//   1000 endbr64
	//   1004 mov eax, 0x3
	// block 1, next [1 2]
	//   1009 dec eax
	//   100b jnz 0x1009
	// block 2, next []
	//   100d ret
}
