package samples

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestGathered compares tables of places that were looked up together, a few at a time, and
// each by itself.
func TestGathered(t *testing.T) {
	all := mostGathered
	defer func() { mostGathered = all }()
	for _, name := range []string{"zstd.data", "plain.data"} {
		path := filepath.Join("..", "..", "..", "source", "perfdata", "testdata", name)
		for n, by := range []counts.By{1 << counts.Function, 1 << counts.Line, 1 << counts.Instruction, 1<<counts.Process | 1<<counts.Function, 1<<counts.Comm | 1<<counts.Line} {
			var want *counts.Table
			sizes := []int{2, 3, 5}
			if !testlong.Enabled() { // one of them in turn
				sizes = sizes[n%3 : n%3+1]
			}
			for _, most := range append([]int{all}, sizes...) {
				mostGathered = most
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				r := NewReader(f, name, Options{By: coarsest(by &^ (1<<counts.Process | 1<<counts.Comm)), Within: by & (1<<counts.Process | 1<<counts.Comm)})
				if !r.Next() {
					t.Fatalf("%s by %v: %v", name, by, r.Err())
				}
				got := r.Table()
				if want == nil {
					want = got
				}
				if !reflect.DeepEqual(got.Scopes, want.Scopes) || !slices.Equal(cells(got), cells(want)) {
					t.Errorf("%s by %v, %d at a time: %d scopes, want %d", name, by, most, len(got.Scopes), len(want.Scopes))
				}
				f.Close()
				r.Close()
			}
			if len(want.Scopes) < 3 {
				t.Errorf("%s by %v: %d scopes", name, by, len(want.Scopes))
			}
		}
	}
}

// cells returns all values of a table, without their notes.
func cells(t *counts.Table) (all []float64) {
	for i := range t.Scopes {
		for _, c := range t.Row(i) {
			all = append(all, c.Value, c.Variance, float64(c.Samples))
		}
	}
	return all
}
