package caches

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSets compares a cache with lists of lines, the one used last first.
func TestSets(t *testing.T) {
	for _, ways := range []int{1, 2, 3, 7, 8, 9, 11, 12, 15, 16} {
		c, random := newCache(4*ways, ways), rand.New(rand.NewPCG(uint64(ways), 1))
		var sets [4][]uint64
		for range 50_000 {
			line := random.Uint64N(uint64(10 * ways))
			line = line&^4 | line&4<<8 // tags of 7 bits are the same
			s := &sets[line%4]
			at := slices.Index(*s, line)
			if at >= 0 {
				*s = slices.Delete(*s, at, at+1)
			}
			if random.IntN(4) == 0 {
				if got := c.take(line); got != (at >= 0) {
					t.Fatalf("%d ways: took line %#x: %t", ways, line, got)
				}
				continue
			}
			_, got := c.use(line)
			if got != (at >= 0) {
				t.Fatalf("%d ways: line %#x is there: %t", ways, line, got)
			}
			if !got {
				old, had, _ := c.fill(line, dirty)
				if len(*s) < ways && had != 0 || len(*s) == ways && (had != valid|dirty || old != (*s)[ways-1]) {
					t.Fatalf("%d ways: line %#x replaced %#x (%d)", ways, line, old, had)
				}
				*s = (*s)[:min(len(*s), ways-1)]
			}
			*s = slices.Insert(*s, 0, line)
		}
	}
}

// TestShared fills the third level, with any number of ways. A line is there until another has replaced it.
func TestShared(t *testing.T) {
	for _, ways := range []int{1, 2, 5, 11, 12, 16, 20, 31} {
		const sets = 16
		s, random := NewShared(Config{L3: Size{Bytes: sets * ways << LineBits, Ways: ways}, Lifetime: 1e9}), rand.New(rand.NewPCG(uint64(ways), 2))
		there, from := map[uint64]uint64{}, map[uint64]uint8{}
		for n := range 20_000 {
			line := random.Uint64N(uint64(3 * sets * ways))
			_, known := there[line]
			at, _ := s.use(line, 0)
			if (at >= 0) != known {
				t.Fatalf("%d ways: line %#x is there: %t", ways, line, !known)
			}
			if known {
				if got := s.keep(line, from[line]+uint8(n%2), sharedDirty); !got {
					t.Fatalf("%d ways: line %#x is not kept", ways, line)
				}
				there[line] = sharedDirty
				continue
			}
			flags := uint64(n % 2 * sharedDirty)
			at, old, had := s.fill(line, flags)
			if had&sharedValid != 0 {
				if was, ok := there[old]; !ok || old%sets != line%sets || had&sharedDirty != was {
					t.Fatalf("%d ways: line %#x replaced %#x (%d), which had %d", ways, line, old, had, was)
				}
				delete(there, old)
			}
			there[line], from[line] = flags, uint8(at)
		}
		if len(there) != sets*ways {
			t.Errorf("%d ways: %d lines are there, want %d", ways, len(there), sets*ways)
		}
	}
}
