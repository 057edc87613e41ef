package accounting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// A placeLog notes the header and the accounts of a report.
type placeLog struct {
	log
	about report.Profile
}

func (l *placeLog) Begin(h report.Header) error {
	l.about = *h.Profile
	return nil
}

// TestPick compares reports of all rows with those of the rows that were picked.
func TestPick(t *testing.T) {
	m, _ := clock(t, "task-clock")
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		places := 1 + random.IntN(300)
		l := &counts.Layout{Columns: []counts.Column{{Event: "task-clock", Unit: "ns"}, {Event: "cycles"}}, Scopes: []counts.Scope{counts.RunScope("")}}
		for range places {
			l.Scopes = append(l.Scopes, counts.Scope{Kind: counts.Function, Label: fmt.Sprint("f", random.IntN(1000))})
		}
		whole := counts.NewTable(l)
		for row := 1; row <= places; row++ {
			for col := range l.Columns {
				c := counts.Cell{Value: float64(random.IntN(20)), Samples: 1, State: counts.Counted}
				*whole.Cell(row, col) = c
				whole.Cell(0, col).Add(&c)
			}
		}
		for _, o := range []PlaceReport{{}, {Flat: "shares only"}, {Top: 1}, {Top: 7}, {Top: 1000}, {All: true}} {
			o.Kinds = []counts.Kind{counts.Function}
			var want, got placeLog
			all := o
			if err := all.Write(&want, m, whole, Kind{Name: "perf-data"}); err != nil {
				t.Fatal(err)
			}
			first := counts.NewTable(&counts.Layout{Columns: l.Columns, Scopes: l.Scopes[:1]})
			copy(first.Row(0), whole.Row(0))
			keep := o.Pick(m, first, places, func(place int) []counts.Cell { return whole.Row(1 + place) })
			part := rowsOf(whole, keep)
			if err := o.Write(&got, m, part, Kind{Name: "perf-data"}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.labels, want.labels) || got.about.Places != want.about.Places || got.about.Left != want.about.Left || got.about.LeftShare != want.about.LeftShare {
				t.Fatalf("seed %d, top %d, flat %q:\n%v %+v, want\n%v %+v", seed, o.Top, o.Flat, got.labels, got.about, want.labels, want.about)
			}
			if o.Top == 7 && places > 100 && len(part.Scopes) > places/2 {
				t.Errorf("%d of %d rows were picked", len(part.Scopes), places)
			}
		}
	}
}

// rowsOf returns a table with the first row and those that are kept.
func rowsOf(t *counts.Table, keep []bool) *counts.Table {
	l := &counts.Layout{Columns: t.Columns, Scopes: t.Scopes[:1:1]}
	rows := []int{0}
	for i := 1; i < len(t.Scopes); i++ {
		if keep == nil || keep[i-1] {
			rows, l.Scopes = append(rows, i), append(l.Scopes, t.Scopes[i])
		}
	}
	out := counts.NewTable(l)
	for i, row := range rows {
		copy(out.Row(i), t.Row(row))
	}
	return out
}
