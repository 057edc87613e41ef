package pipeline

import (
	"math/rand/v2"
	"testing"
)

// TestFollow executes the same instructions on a machine of its own and on one that follows another. They take the
// same time, with other lines late and other branches mispredicted than on the one that they follow.
func TestFollow(t *testing.T) {
	ops := assemble(t, bytesOf(t, "488b07 4889442408 488b542408 4801d0 50 5b 480fafc3 48890cd6 8b4c9610 4883c708 c9 01d8 660f6f06 660f7f4730 488b4f34 0f184040 4885c0 7502"), 0x400000)
	random := rand.New(rand.NewPCG(1, 2))
	alone, leader, follower := NewMachine(CoreOf("amdzen4")), NewMachine(CoreOf("amdzen4")), NewMachine(CoreOf("amdzen4"))
	follower.Follow(leader)
	for i := range 20_000 {
		op := &ops[i%len(ops)]
		var load, store uint64
		if op.Loads && i%5 > 0 { // of some the address is not known
			load = 0x10000 + random.Uint64N(1<<13)
		}
		if op.Stores && i%7 > 0 {
			store = 0x10000 + random.Uint64N(1<<13)
		}
		late, missed, value := random.IntN(20)-10, random.IntN(10) == 0, random.Uint64N(1<<16)
		for _, m := range []*Machine{alone, leader, follower} {
			if i%1000 == 0 {
				m.Reset()
			}
			if m.At(load, store); load != 0 && i%3 == 0 {
				m.Loads(value)
			}
		}
		for _, m := range []*Machine{alone, follower} {
			if m.Late(max(late, 0)); op.Stores {
				m.LateStore(max(late, 0))
			}
		}
		at, when, ok := alone.Asks(op)
		if at2, when2, ok2 := follower.Asks(op); at2 != at || when2 != when || ok2 != ok {
			t.Fatalf("instruction %d asks for %#x, %d, %v, want %#x, %d, %v", i, at2, when2, ok2, at, when, ok)
		}
		want := alone.Execute(op, missed, missed)
		leader.Execute(op, missed, false)
		if got := follower.Execute(op, missed, missed); got != want || follower.Now() != alone.Now() || follower.Stored() != alone.Stored() {
			t.Fatalf("instruction %d: %v cycles, want %v", i, got, want)
		}
	}
}
