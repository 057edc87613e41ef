package sorting_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/sorting"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestStable compares lists with those of package slices.
func TestStable(t *testing.T) {
	type element struct{ key, at int }
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		list := make([]element, n)
		for i := range list {
			list[i] = element{r.IntN(10), i}
		}
		want := slices.Clone(list)
		compare := func(a, b element) int { return cmp.Compare(a.key, b.key) }
		slices.SortStableFunc(want, compare)
		if got := sorting.Merged(slices.Clone(list), func(a, b *element) bool { return a.key < b.key }); !slices.Equal(got, want) {
			t.Fatalf("merged %v, want %v", got, want)
		}
		if sorting.Stable(list, compare); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
}

// TestInsert compares lists with those of package slices, at each place.
func TestInsert(t *testing.T) {
	for at := range 4 {
		list := []int{1, 2, 3}
		if got, want := sorting.Insert(slices.Clone(list), at, 9), slices.Insert(list, at, 9); !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}
