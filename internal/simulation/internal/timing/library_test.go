package timing

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// overlapping is a file whose segments overlap: code entered before the second one ends with
// the first, and code entered in the second goes on.
type overlapping struct{ made }

func (overlapping) Code(addr uint64, _ int) ([]byte, error) {
	long := []byte("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\xc3") // nopw, ret
	if addr < codeAt {
		return append(bytes.Repeat([]byte{0x90}, int(codeAt-addr)), long[:2]...), nil
	}
	return long, nil
}

func TestOverlapping(t *testing.T) {
	t.Parallel()
	i, err := newImage(overlapping{}, disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	l := newLibrary()
	for _, tt := range []struct {
		addr uint64
		want int
	}{{codeAt - 1, 1}, {codeAt, 2}, {codeAt - 1, 1}} {
		s, last := l.block(i, tt.addr)
		if s.n != tt.want || last == nil {
			t.Errorf("%#x: %d instructions, want %d", tt.addr, s.n, tt.want)
		}
	}
}

// TestRecordedBlocks checks that blocks that a process forgets are not kept by what was
// recorded of them: forgetting is what bounds their memory.
func TestRecordedBlocks(t *testing.T) {
	t.Parallel()
	l := newLearners(t, 1)
	l.execute(0, 2000, other...)
	p := l.runs[0]
	b := weak.Make(p.current)
	l.end()
	runtime.GC()
	if len(l.records.list[0].steps) == 0 || b.Value() != nil {
		t.Errorf("%d steps; a block is kept: %v", len(l.records.list[0].steps), b.Value() != nil)
	}
	runtime.KeepAlive(l)
}

// TestStub checks the rate of a call through a stub entered only behind its beginning, at the
// program's end.
func TestStub(t *testing.T) {
	t.Parallel()
	p, run := walk(t, &recorder{})
	run.window.wait = 1
	addrs := slices.Repeat([]uint64{0x1011, 0x1013, 0x1015, 0x100a}, warmBlocks/2)
	for _, addr := range append(addrs, 0x1005, 0x1010) {
		run.Blocks([]uint64{addr + bias})
	}
	run.End()
	p.code.images["made"].stubs = span{0x1010, codeEnd}
	if r, ok := p.At("made", 0x1005); !ok || r.Cycles != 1 {
		t.Errorf("%+v, %v; want one cycle", r, ok)
	}
}
