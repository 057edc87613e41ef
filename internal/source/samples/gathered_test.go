package samples

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/profile"
)

// TestGathered compares tables of places that were looked up together, a few at a time, and
// each by itself.
func TestGathered(t *testing.T) {
	all := mostGathered
	defer func() { mostGathered = all }()
	for _, name := range []string{"zstd.data", "plain.data"}[:testlong.Size(1, 2)] {
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

// TestPick compares the rows that are picked with those of a table of all rows.
func TestPick(t *testing.T) {
	for _, by := range []counts.By{0, 1 << counts.Module, 1 << counts.Line, 1 << counts.Instruction, 1<<counts.Process | 1<<counts.Function, 1<<counts.Core | 1<<counts.Instruction} {
		read := func(pick func(*counts.Table, int, func(int) []counts.Cell) []bool) *counts.Table {
			f, err := os.Open(filepath.Join("..", "..", "..", "source", "perfdata", "testdata", "group.data"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r := NewReader(f, "group.data", Options{By: coarsest(by & codeKinds), Within: by &^ codeKinds, Pick: pick})
			defer r.Close()
			if !r.Next() {
				t.Fatalf("by %v: %v", by, r.Err())
			}
			return r.Table()
		}
		whole := read(nil)
		want := &counts.Layout{Columns: whole.Columns, Scopes: whole.Scopes[:1:1]}
		rows := []int{0}
		got := read(func(first *counts.Table, places int, row func(int) []counts.Cell) []bool {
			if places != len(whole.Scopes)-1 || !slices.Equal(first.Row(0), whole.Row(0)) || !reflect.DeepEqual(first.Notes, whole.Notes) {
				t.Errorf("by %v: %d places of %d, %v of %v", by, places, len(whole.Scopes)-1, first.Row(0), whole.Row(0))
			}
			keep := make([]bool, places)
			for i := range keep {
				if !slices.Equal(row(i), whole.Row(i+1)) {
					t.Errorf("by %v, place %d: %v, want %v", by, i, row(i), whole.Row(i+1))
				}
				if keep[i] = i%3 == 1; keep[i] {
					rows, want.Scopes = append(rows, i+1), append(want.Scopes, whole.Scopes[i+1])
				}
			}
			return keep
		})
		if !reflect.DeepEqual(got.Scopes, want.Scopes) || !reflect.DeepEqual(got.Columns, want.Columns) {
			t.Fatalf("by %v: %v, want %v", by, got.Scopes, want.Scopes)
		}
		for i, row := range rows {
			if !slices.Equal(got.Row(i), whole.Row(row)) {
				t.Errorf("by %v, row %d: %v, want %v", by, row, got.Row(i), whole.Row(row))
			}
		}
		if by.Has(counts.Instruction) && len(rows) < 3 {
			t.Errorf("by %v: %d rows", by, len(rows))
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

// TestLookWithoutLine: code without a line is a row of its own, next to a line of the same function.
func TestLookWithoutLine(t *testing.T) {
	symbols := functionsOf{Symbolizer: profile.NewSymbolizer(profile.Config{})}
	defer symbols.Close()
	p := newPlaces(counts.Line, counts.By(0).With(counts.Function), nil, symbols)
	p.begin(1)
	at := profile.Place{Offset: 16}
	l := line{number: 5, function: symbols.at(at)}
	first := codeOf(&p, p.lines, l, key{place: at, line: l, function: l.function})
	second := p.look(at)
	if second == first || p.look(at) != second {
		t.Errorf("code without a line has number %d and then %d, and a line of its function %d", second, p.look(at), first)
	}
}
