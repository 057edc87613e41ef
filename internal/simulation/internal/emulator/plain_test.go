package emulator

import (
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// TestPlain: the costs of plain instructions are those that the others have without misses and samples.
func TestPlain(t *testing.T) {
	l := newLibrary()
	if err := l.use("x86_64"); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		"\x90", "\x48\x8b\x07", "\x48\x89\x07", "\x48\x01\x07", "\x74\x02", "\xc3", "\xff\xe0", "\xff\x17", "\xeb\x00", "\x0f\x0b",
		"\x50", "\x58", "\x48\x8d\x07", "\xe8\x00\x00\x00\x00",
		"\x66\x0f\x1f\x44\x00\x00", "\xa4", "\xf3\xa4", "\x06",
	} {
		for _, cold := range []bool{false, true} {
			in := &instruction{addr: 0x1000, code: uint32(len(l.bytes)), size: uint8(len(code)), cold: cold, ran: &ran{executed: 7}}
			l.bytes = append(l.bytes, code...)
			n := len(valgrind.EmulatedEvents)
			quick, full := rounder{make([]uint64, n), make([]float64, n)}, rounder{make([]uint64, n), make([]float64, n)}
			quick.plain(in, l.formOf(in))
			full.round(l.known(in).costs(nil, caches.Memory))
			if !slices.Equal(quick.values, full.values) {
				t.Errorf("%x, cold %v: %v, want %v", code, cold, quick.values, full.values)
			}
		}
	}
}
