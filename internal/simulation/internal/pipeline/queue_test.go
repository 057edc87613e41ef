package pipeline

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// TestQueue executes a loop of five micro-ops as measure-lines.c measures it: in one line of code,
// across two, and across two from the queue.
func TestQueue(t *testing.T) {
	code := []byte{
		0x48, 0x8d, 0x76, 0x08, // lea 8(%rsi),%rsi
		0x48, 0x8d, 0x7f, 0x08, // lea 8(%rdi),%rdi
		0x4d, 0x8d, 0x40, 0x08, // lea 8(%r8),%r8
		0x4d, 0x8d, 0x49, 0x08, // lea 8(%r9),%r9
		0x48, 0xff, 0xc9, // dec %rcx
		0x75, 0xeb, // jne
	}
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		start uint64
		queue int
		want  float64 // cycles an iteration; measured: 1.09, 2.07 and 1.0
	}{{0x1000, 0, 1}, {0x1030, 0, 2}, {0x1030, 5, 1}} {
		m := NewMachine(CoreOf("graniterapids"))
		m.Queue(tt.queue)
		cycles := 0.0
		const rounds = 1000
		for range rounds {
			for at := 0; at < len(code); {
				i := d.Decode(code[at:], tt.start+uint64(at))
				op := decoder.Op(i, code[at:])
				cycles += m.Execute(&op, op.conditional, false)
				at += i.Len
			}
		}
		if got := cycles / rounds; !near(got, tt.want) {
			t.Errorf("at %#x, queue of %d: %.2f cycles an iteration, want %.2f", tt.start, tt.queue, got, tt.want)
		}
	}
}
