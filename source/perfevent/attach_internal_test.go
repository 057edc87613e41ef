//go:build linux

package perfevent

import (
	"maps"
	"slices"
	"testing"
)

// A thread that comes while others get their counters gets its own unless it
// has inherited them.
func TestLater(t *testing.T) {
	births := map[int]birth{1: {10, 20}, 2: {30, 40}, 3: never}
	begins := func(maker, tid int, time uint64) fork { return fork{maker: maker, tid: tid, time: time} }
	tids, doubt := later(births, []fork{
		begins(1, 11, 5),    // before its maker had them
		begins(11, 12, 6),   // and its child
		begins(1, 13, 25),   // after
		begins(13, 14, 26),  // and its child
		begins(2, 15, 35),   // while its maker got them
		begins(3, 16, 50),   // its maker was gone before it got any
		begins(2, 1, 50),    // known already
		begins(99, 100, 50), // another process
	}, 0)
	if want := []int{11, 12, 16}; !slices.Equal(tids, want) || doubt != 1 {
		t.Errorf("%v and %d in doubt, want %v and 1", tids, doubt, want)
	}
	known := slices.Sorted(maps.Keys(births))
	if want := []int{1, 2, 3, 11, 12, 13, 14, 15, 16}; !slices.Equal(known, want) {
		t.Errorf("known %v, want %v", known, want)
	}
}
