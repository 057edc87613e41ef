//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"encoding/binary"
	"math"
	"testing"
	"time"
	"unsafe"
)

// TestLoops runs every loop a few times: they must end, come back to where they
// were called, and leave nothing but what their comments say.
func TestLoops(t *testing.T) {
	m, err := allocate(4<<20, -1, false, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	p := newPlaces(m, 4096)
	for _, c := range append(append([]cost(nil), costTable...), costsHere()...) {
		p.reset()
		pays, baseline, err := c.programs(p)
		if err != nil {
			t.Logf("%s: %v", c.name, err)
			continue
		}
		for _, q := range append(baseline, pays) {
			if q.ops <= 0 {
				t.Errorf("%s: no operations in an iteration", c.name)
			}
			q.run(3, q.a, q.b, q.c)
		}
	}
	for _, q := range peaks() {
		if q.ops <= 0 {
			t.Errorf("%s: no operations in an iteration", q.name)
		}
		q.run(3, nil, nil, nil)
	}
	if p.word == 0 {
		t.Error("loopBranches does not go on in its words")
	}
	if p.denormal != 0x1p-1050 || p.one != 1 || p.value != 1.5 {
		t.Error("the loops of doubles write to their operands")
	}
}

// TestChase follows a list: it visits every line, once each, and is where the loop
// in assembly says it is.
func TestChase(t *testing.T) {
	m, err := allocate(4<<20, -1, false, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	c := newChaser()
	const lines = 3 * loadsPerChase
	p := c.lines(m, lines*lineBytes)
	begin := c.at
	seen := map[unsafe.Pointer]bool{}
	for at := begin; !seen[at]; at = *(*unsafe.Pointer)(at) {
		seen[at] = true
	}
	if len(seen) != lines {
		t.Errorf("the list visits %d lines, want %d", len(seen), lines)
	}
	p.run(2, p.a, p.b, p.c)
	want := begin
	for range 2 * loadsPerChase {
		want = *(*unsafe.Pointer)(want)
	}
	if c.at != want {
		t.Errorf("after %d loads the chase is at %p, want %p", 2*loadsPerChase, c.at, want)
	}
	p.run(1, p.a, p.b, p.c)
	if c.at != begin {
		t.Errorf("after %d loads the chase is at %p, want %p, where it began", lines, c.at, begin)
	}
}

// TestMovers checks what the data loops of every instruction set leave in memory.
func TestMovers(t *testing.T) {
	const size = 4 * blockBytes
	for _, set := range movers() {
		for _, k := range set.kernels() {
			m, err := allocate(4<<20, -1, false, time.Now().Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			a, b, c := m.bytes[0:], m.bytes[1<<20:], m.bytes[2<<20:]
			for i := 0; i < 2*size; i += 8 {
				binary.NativeEndian.PutUint64(a[i:], math.Float64bits(7))
				binary.NativeEndian.PutUint64(b[i:], math.Float64bits(float64(i)))
				binary.NativeEndian.PutUint64(c[i:], math.Float64bits(2))
			}
			k.run(size/blockBytes, m.at(0), m.at(1<<20), m.at(2<<20))
			for i := 0; i < 2*size; i += 8 {
				got := math.Float64frombits(binary.NativeEndian.Uint64(a[i:]))
				want := 7.0
				if i < size && (k.name == "copy" || k.name == "triad") {
					want = float64(i) // the triad's factor is 0
				}
				if i < size && k.name == "write" {
					continue // anything
				}
				if got != want {
					t.Errorf("%s %s (streaming: %v): byte %d: got %v, want %v", set.name, k.name, k.streaming, i, got, want)
					break
				}
			}
			m.free()
		}
	}
}

// TestLonger makes a list longer: it still visits every line once. Where another list was
// laid out meanwhile, it begins anew.
func TestLonger(t *testing.T) {
	m, err := allocate(4<<20, -1, false, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	c := newChaser()
	check := func(lines int) {
		t.Helper()
		c.lines(m, lines*lineBytes)
		seen := map[unsafe.Pointer]bool{}
		for at := c.at; !seen[at]; at = *(*unsafe.Pointer)(at) {
			seen[at] = true
		}
		if len(seen) != lines {
			t.Errorf("the list visits %d lines, want %d", len(seen), lines)
		}
	}
	check(100)
	check(300)
	check(50)
	c.cycle(m.at(0), 10, func(i int) int { return i * lineBytes })
	check(400)
}

// TestTouch takes no more memory than there is time for, and not too little to use.
func TestTouch(t *testing.T) {
	m, err := allocate(64<<20, -1, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	if len(m.bytes) != leastMemory {
		t.Errorf("%d bytes without any time, want %d", len(m.bytes), leastMemory)
	}
}
