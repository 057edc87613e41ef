package pipeline

import (
	"math"
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

// TestCallEnds executes a chain of multiplications, and a function's additions behind it. With a call
// samples of the clock are at its first instructions for a cycle of twelve. With jumps none are.
func TestCallEnds(t *testing.T) {
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	const add = "\x49\x83\xc0\x01\x49\x83\xc1\x01\x49\x83\xc2\x01" // add $1,%r8, %r9 and %r10
	const multiply = "\x48\x6b\xc0\x01\x48\x6b\xc0\x01"            // imul $1,%rax,%rax, twice
	for _, tt := range []struct {
		to, back string
		want     float64 // measured: 1.0 and 0.0
	}{{"\xe8\x20\x00\x00\x00", "\xc3", 1}, {"\xe9\x20\x00\x00\x00", "\xeb\xc0", 0}} {
		m := NewMachine(CoreOf("graniterapids"))
		at, all := 0.0, 0.0
		const rounds = 200
		for range rounds {
			for i, part := range []string{add + add + multiply + tt.to, add + add + multiply + add + add + tt.back, add + add} {
				for k := 0; k < len(part); {
					in := d.Decode([]byte(part[k:]), uint64(0x1000+0x40*i+k))
					op := decoder.Op(in, []byte(part[k:]))
					k += in.Len
					cycles := m.Execute(&op, i < 2 && k == len(part), false)
					if all += cycles; i == 1 && k <= 8 {
						at += cycles
					}
				}
			}
		}
		if !near(all/rounds, 12) || !(math.Abs(at/rounds-tt.want) < 0.1) {
			t.Errorf("%.2f of %.2f cycles an iteration are at the function's beginning, want %.0f of 12", at/rounds, all/rounds, tt.want)
		}
	}
}
