package caches_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
)

// small is a hierarchy of 64 lines, 512 and 4096, for 16 and 64 pages.
func small() *caches.Hierarchy {
	return caches.New(caches.Config{L1I: caches.Size{Bytes: 4 << 10, Ways: 4}, L1D: caches.Size{Bytes: 4 << 10, Ways: 4}, L2: caches.Size{Bytes: 32 << 10, Ways: 8},
		L3: caches.Size{Bytes: 256 << 10, Ways: 16}, TLB1: caches.Size{Bytes: 16, Ways: 4}, TLB2: caches.Size{Bytes: 64, Ways: 4}}, nil)
}

// levels counts where accesses at an instruction are answered.
func levels(h *caches.Hierarchy, addrs func(i int) uint64, n int) (count [caches.Levels]int, ahead int) {
	for i := range n {
		a := h.Data(1, addrs(i), false)
		count[a.Level]++
		if a.Prefetched {
			ahead++
		}
	}
	return count, ahead
}

// scattered is n lines in no order, over and over.
func scattered(n int) func(int) uint64 {
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	return func(i int) uint64 { return uint64(order[i%n]) << caches.LineBits }
}

// TestHeld checks that a line is not fetched that the first level has, or has prefetched.
func TestHeld(t *testing.T) {
	h := small()
	if a := h.Data(1, 1<<20, true); a.Level != caches.First || len(h.Moves()) > 0 {
		t.Errorf("held: %v, moved %v", a, h.Moves())
	}
	ahead := 0
	for i := range uint64(60) {
		if a := h.Data(2, 1<<22+i<<caches.LineBits, false); a.Level == caches.First && a.Prefetched {
			ahead++
		}
	}
	if ahead < 40 {
		t.Errorf("%d lines of 60 were prefetched into the first level", ahead)
	}
}

// TestFirst checks the sets that the plugin is told.
func TestFirst(t *testing.T) {
	for _, tt := range []struct{ bytes, ways, sets, own int }{{48 << 10, 12, 64, 12}, {64 << 10, 4, 256, 4}, {0, 0, 1, 1}, {1 << 30, 1 << 20, 512, 16}} {
		sets, own := caches.Config{L1D: caches.Size{Bytes: tt.bytes, Ways: tt.ways}}.First()
		if sets != tt.sets || own != tt.own {
			t.Errorf("%d bytes, %d ways: %d sets of %d, want %d of %d", tt.bytes, tt.ways, sets, own, tt.sets, tt.own)
		}
	}
}

// TestLevels checks that data of each size are found in the cache that they fit.
func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		lines int
		want  caches.Level
	}{{256, caches.Second}, {2048, caches.Third}, {16384, caches.Memory}} {
		h := small()
		lines := scattered(tt.lines)
		levels(h, lines, 3*tt.lines)
		count, _ := levels(h, lines, tt.lines)
		if count[tt.want] < tt.lines*7/10 {
			t.Errorf("%d lines: %v, want most in level %d", tt.lines, count, tt.want)
		}
	}
}

// TestStream checks that lines in order are prefetched, and moved once each.
func TestStream(t *testing.T) {
	h := small()
	const n = 10_000
	moved, waited := 0, 0
	for i := range n {
		if a := h.Data(1, uint64(i)<<caches.LineBits, false); a.Level == caches.Memory {
			waited++
		}
		moved += len(h.Moves())
	}
	if waited > n/20 || moved+waited < n || moved+waited > n+100 {
		t.Errorf("waited for %d of %d lines, %d prefetched", waited, n, moved)
	}
}

// TestStreamsApart checks that lines in order are prefetched from several arrays at once, whatever their distance.
func TestStreamsApart(t *testing.T) {
	for _, apart := range []uint64{1 << 20, 1<<20 + 4096, 1 << 25} {
		h := small()
		const n, arrays = 4000, 4
		waited := 0
		for i := range uint64(n) {
			for k := range uint64(arrays) {
				if a := h.Data(k, k*apart+i<<caches.LineBits, false); a.Level == caches.Memory {
					waited++
				}
			}
		}
		if waited > arrays*n/20 {
			t.Errorf("%d bytes apart: waited for %d of %d lines", apart, waited, arrays*n)
		}
	}
}

// TestAhead checks that the second level looks ahead, if that of the first has all lines that are
// loaded: a program reads eight bytes at a time.
func TestAhead(t *testing.T) {
	const line, lines = 1 << caches.LineBits, 40
	h := caches.New(caches.Config{L1D: caches.Size{Bytes: 32 << 10, Ways: 8}, L1I: caches.Size{Bytes: 32 << 10, Ways: 8},
		L2: caches.Size{Bytes: 1 << 20, Ways: 8}, TLB1: caches.Size{Bytes: 64, Ways: 4}, TLB2: caches.Size{Bytes: 1024, Ways: 4}, Ahead: lines}, nil)
	last := uint64(0)
	for addr := uint64(1 << 20); addr < 1<<20+64*line; addr += 8 {
		h.Data(1, addr, addr%line != 0)
		last = addr / line
	}
	for i := uint64(1); i <= lines; i++ {
		if a := h.Data(i+1, (last+i)*line, false); a.Level == caches.Memory {
			t.Fatalf("%d lines ahead, want %d", i-1, lines)
		}
	}
}

// TestAsk checks that a line that was asked for is in the first level, once.
func TestAsk(t *testing.T) {
	h := small()
	const addr = 5 << 20
	if a := h.Ask(addr); a.Level != caches.Memory || a.Translation != caches.Third {
		t.Errorf("the first prefetch: %+v", a)
	}
	if a := h.Ask(addr + 8); a.Level != caches.First {
		t.Errorf("the second prefetch: %+v", a)
	}
	if a := h.Data(1, addr, false); a.Late() {
		t.Errorf("the load: %+v", a)
	}
	if a := h.Data(1, addr, false); a.Level != caches.Second {
		t.Errorf("the load after the first level has lost it: %+v", a)
	}
}

// TestColumns checks that a distance above a page is not prefetched, and that its pages are in
// no TLB.
func TestColumns(t *testing.T) {
	h := small()
	column := func(i int) uint64 { return uint64(i%4096) * 8192 }
	levels(h, column, 4096)
	walks := 0
	for i := range 4096 {
		if a := h.Data(1, column(i), false); a.Translation == caches.Third {
			walks++
		}
	}
	if walks != 4096 {
		t.Errorf("%d page walks of 4096", walks)
	}
	count, ahead := levels(h, column, 4096)
	if count[caches.Memory] < 4000 || ahead > 0 {
		t.Errorf("%v, %d prefetched: want all from memory", count, ahead)
	}
}

// TestWriteBack checks that each written line is written back once.
func TestWriteBack(t *testing.T) {
	h := small()
	const n = 20_000
	back := 0
	for i := range n {
		h.Data(1, uint64(i)<<caches.LineBits, false)
		h.Back(uint64(i))
		for _, m := range h.Moves() {
			if m.Back && m.From == caches.Memory {
				back++
			}
		}
	}
	if back < n-6000 || back > n {
		t.Errorf("%d lines of %d were written back to memory", back, n)
	}
}

// TestCode checks that a loop that fits is fetched once.
func TestCode(t *testing.T) {
	h := small()
	misses := 0
	for range 10 {
		for i := range 32 {
			if h.Code(uint64(i)<<caches.LineBits) != caches.First {
				misses++
			}
		}
	}
	if misses > 32 {
		t.Errorf("%d misses of 32 lines", misses)
	}
}

// TestHalf checks the size that calibrate takes for the third level: it answers half of a random
// cycle of lines that is 2 ln 2 times as large.
func TestHalf(t *testing.T) {
	const lines = 4096.0 // of small
	size := 2 * math.Ln2 * lines
	n := int(size)
	h := small()
	lap := scattered(n)
	levels(h, lap, 20*n)
	count, _ := levels(h, lap, 10*n)
	if share := float64(count[caches.Memory]) / float64(10*n); share < 0.45 || share > 0.55 {
		t.Errorf("%.3f of the loads go to memory, want a half", share)
	}
}

// TestPages checks that pages lie anywhere. A part of a random cycle through three quarters of
// the second level misses it. So does a half of one through all of it.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bytes, least, most int }{{1 << 20, 0, 5}, {3 << 19, 5, 25}, {2 << 20, 35, 70}, {3 << 20, 85, 100}} {
		h := caches.New(caches.Config{L1I: caches.Size{Bytes: 64 << 10, Ways: 16}, L1D: caches.Size{Bytes: 48 << 10, Ways: 12}, L2: caches.Size{Bytes: 2 << 20, Ways: 16},
			L3: caches.Size{Bytes: 32 << 20, Ways: 16}, TLB1: caches.Size{Bytes: 72, Ways: 6}, TLB2: caches.Size{Bytes: 2048, Ways: 8}}, nil)
		cycle := rand.New(rand.NewPCG(1, 2)).Perm(tt.bytes >> caches.LineBits)
		missed := 0
		for round := range 3 {
			for i, line := range cycle {
				if a := h.Data(uint64(i), uint64(line)<<caches.LineBits, false); round == 2 && a.Level > caches.Second {
					missed++
				}
			}
		}
		if share := 100 * missed / len(cycle); share < tt.least || share > tt.most {
			t.Errorf("%d KiB: %d %% miss the second level, want %d to %d", tt.bytes>>10, share, tt.least, tt.most)
		}
	}
}

// TestNext checks that a line of the third level brings the next one of its page. A use of that brings
// the one after it.
func TestNext(t *testing.T) {
	for _, next := range []bool{false, true} {
		h := caches.New(caches.Config{L1I: caches.Size{Bytes: 4 << 10, Ways: 4}, L1D: caches.Size{Bytes: 4 << 10, Ways: 4},
			L2: caches.Size{Bytes: 32 << 10, Ways: 8}, L3: caches.Size{Bytes: 256 << 10, Ways: 16}, Next: next}, nil)
		h.Touched = func(uint64) bool { return true } // the third level has all lines
		level := func(addr uint64) caches.Level { return h.Data(addr, addr, false).Level }
		want := [...]caches.Level{caches.Third, caches.Third, caches.Third}
		if next {
			want = [...]caches.Level{caches.Third, caches.Second, caches.Second}
		}
		for _, page := range []uint64{1 << 20, 1 << 21, 1 << 22} {
			if got := [...]caches.Level{level(page + 128), level(page + 192), level(page + 256)}; got != want {
				t.Errorf("next %v: levels %v, want %v", next, got, want)
			}
			if got := level(page + 64); got != caches.Third {
				t.Errorf("next %v: the line before is in level %d, want the third", next, got)
			}
		}
		level(1<<23 + 4032)
		if got := level(1<<23 + 4096); got != caches.Third {
			t.Errorf("next %v: the line of the next page is in level %d, want the third", next, got)
		}
	}
}
