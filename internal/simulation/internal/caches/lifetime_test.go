package caches

import (
	"math"
	"testing"
)

// TestLifetime leaves lines of the third level alone for some time, and counts those that are
// still there. Lines in use stay, and so do those that only the second level had in use.
func TestLifetime(t *testing.T) {
	const lines, half = 1 << 14, 1e7
	config := Config{L1I: Size{32 << 10, 8}, L1D: Size{32 << 10, 8}, L2: Size{128 << 10, 8}, L3: Size{16 << 20, 16}, TLB1: Size{72, 6}, TLB2: Size{2048, 8}, Lifetime: half}
	for after, want := range map[float64]float64{0.25: 0.958, 0.5: 0.841, 1: 0.5, 2: 0.0625, 4: 0} {
		shared := NewShared(config)
		for line := range uint64(lines) {
			shared.fill(line, 0)
		}
		const begin = 5e9 // the ticks have begun again meanwhile
		shared.Time(begin)
		for line := range uint64(lines) {
			shared.keep(line, 0, 0)
		}
		shared.Time(begin + after*half)
		there := 0.0
		for line := range uint64(lines) {
			if at, _ := shared.use(line, 0); at >= 0 {
				there++
			}
		}
		if got := there / lines; math.Abs(got-want) > 0.03 {
			t.Errorf("after %v half-lives %.3f of the lines are there, want %.3f", after, got, want)
		}
	}

	// What has left stays away when the few bits of a time in an entry begin again.
	shared := NewShared(config)
	shared.fill(1, 0)
	for again := 1.0; again <= 64; again++ {
		if shared.Time(again * half); again < 3 {
			continue
		}
		if shared.find(1) != 2*shared.words || shared.age(uint32(shared.pairs[shared.words])) < shared.lives[0] {
			t.Fatalf("after %v half-lives a line is in use", again)
		}
	}

	h := New(config, nil)
	others := func() { // lines that the second level has no room for
		for i := range uint64(8000) {
			h.Data(0, 1<<26+i<<LineBits, false)
		}
	}
	kept := func(addr uint64) bool { at, _ := h.l3.use(physical(addr>>LineBits), 0); return at >= 0 }
	h.Data(0, 1<<30, false)
	others()
	h.Data(0, 0, false)
	h.l3.Time(10 * half)
	if kept(1 << 30) {
		t.Error("a line that was not used for ten half-lives is there")
	}
	others()
	if !kept(0) {
		t.Error("a line that was in the second level until now has left the third")
	}
}
