package emulator

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// TestSets checks that lines of a set come after each other, and those of another set at once. They are later
// if the line before replaced one that was written, or that a store has yet to write.
func TestSets(t *testing.T) {
	t.Parallel()
	c := caches.Config{L1D: caches.Size{Bytes: 8 << 10, Ways: 2}} // 64 sets
	s := newSets(pipeline.SameSet{Line: 10, Dirty: 4, Again: 26}, c)
	line := func(n uint64) uint64 { return 5 + 64*n }
	load, store := &access{}, &access{store: true, back: 1}
	comes := func(n uint64, a *access, now, want, stores int64) {
		t.Helper()
		if begins, later := s.comes(line(n), a, now); begins != want || later != stores {
			t.Errorf("line %d comes at %d, and a store without it at %d, want %d and %d", n, begins, later, want, stores)
		}
	}
	comes(0, load, 100, 100, 0)
	comes(1, store, 100, 110, 0) // replaces a line that was written
	comes(2, load, 100, 124, 0)
	if begins, _ := s.comes(line(3)+1, load, 100); begins != 100 {
		t.Errorf("a line of another set comes at %d, want 100", begins)
	}
	s.stored([]access{{addr: line(2) << caches.LineBits, store: true}, {addr: line(7) << caches.LineBits, store: true}}, 150)
	comes(3, load, 140, 140, 0)   // replaces line 1
	comes(4, load, 140, 150, 186) // replaces line 2 before it is written
	comes(5, store, 140, 186, 0)
	s.stored([]access{{addr: line(5) << caches.LineBits, store: true}}, 250)
	comes(6, load, 240, 240, 0)
	comes(7, store, 240, 250, 0) // replaces line 5: a store asks when those before have reached the cache
	s.clear()
	comes(8, load, 1, 1, 0)
	none := newSets(pipeline.SameSet{}, c)
	none.stored([]access{{addr: 64, store: true}}, 5)
	if begins, later := none.comes(line(1), load, 3); begins != 3 || later != 0 {
		t.Errorf("without costs a line comes at %d, and a store at %d, want 3 and 0", begins, later)
	}
}
