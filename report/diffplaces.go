package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
)

// A PlaceComparison is a document: what changed, by places in the code.
type PlaceComparison struct {
	Header DiffHeader
	*account.PlaceDifference
	Top int // places that are shown; 0 is those that have changed and those whose difference matters, and all in JSON
}

func newPlacesDiff(w io.Writer, c PlaceComparison, o Options) *diffWriter {
	t := &placesDiff{d: c.PlaceDifference, top: c.Top}
	t.diffWriter = newDiffWriter(w, c.Header, o, &c.Total, c.Runs, c.Basis)
	t.main = t.largest()
	t.renames, t.body = t.renamed(), t
	return t.diffWriter
}

// A placesDiff is a comparison by places in the code.
type placesDiff struct {
	*diffWriter
	d    *account.PlaceDifference
	top  int
	main string // module with the most time: of the others, places say that they are in them
}

// worthLine is the smallest part of all that is shown although it may be chance. linesMost is
// the largest number of such lines. Of exact counts nearly all change, and this many are shown
// however small they are.
const (
	worthLine = 1e-3
	linesMost = 15
	exactMost = 3
)

// shown are the places that have lines of their own, those with the largest
// difference first.
func (t *placesDiff) shown() []*account.PlaceChange {
	var list []*account.PlaceChange
	lines := 0
	for i := range t.d.Places {
		c := &t.d.Places[i]
		worth := math.Abs(c.Delta) >= worthLine*t.total.Old
		switch {
		case t.top > 0:
			if len(list) < t.top {
				list = append(list, c)
			}
		case changed(&c.Change) && (worth || t.basis != account.ByExactCounts || len(list) < exactMost):
			list = append(list, c)
		case worth && lines < linesMost:
			list = append(list, c)
			lines++
		}
	}
	return list
}

func changed(c *account.Change) bool { return c.Verdict == account.More || c.Verdict == account.Less }

// largest is the module with the most time on both sides together.
func (t *placesDiff) largest() string {
	sums := map[string]float64{}
	best := ""
	for i := range t.d.Places {
		c := &t.d.Places[i]
		sums[c.Module] += c.Old + c.New
		if sums[c.Module] > sums[best] {
			best = c.Module
		}
	}
	return best
}

func (t *placesDiff) heads() []string {
	return []string{t.took(), "old", "new", "change", "own", "95 %", "p", ""}
}

func (t *placesDiff) rows() []diffRow {
	rows := []diffRow{{name: "all", change: t.total, own: true}}
	shown := t.shown()
	left := t.total.Delta
	for _, c := range shown {
		left -= c.Delta
		r := diffRow{name: t.name(c), depth: 1, change: &c.Change, own: true}
		switch {
		case !changed(&c.Change):
		case c.Appeared():
			r.about = "new"
		case c.Gone():
			r.about = "gone"
		}
		rows = append(rows, r)
	}
	rest := fmt.Sprintf("(%d others)", len(t.d.Places)-len(shown))
	before := len(rows)
	if rows = t.leftOver(rows, rest, 1, left); len(rows) > before {
		rows[before].own = true
	}
	return rows
}

// name is what a place is called.
func (t *placesDiff) name(c *account.PlaceChange) string {
	if c.Name == "" {
		return c.Module
	}
	if c.Module != t.main && c.Module != "" {
		return c.Name + "  (" + c.Module + ")"
	}
	return c.Name
}

// renamed says which modules are called otherwise in the new runs.
func (t *placesDiff) renamed() []string {
	const most = 3
	var list []string
	seen := map[string]bool{}
	for _, c := range t.shown() {
		if c.OldModule != "" && !seen[c.OldModule] && len(list) < most {
			seen[c.OldModule] = true
			list = append(list, fmt.Sprintf("%s is what was called %s in the old runs", c.Module, c.OldModule))
		}
	}
	return list
}

// nameMost is how long a name may be in a sentence.
const nameMost = 60

func (t *placesDiff) doubts() []string { return nil }

// more names the places that have changed.
func (t *placesDiff) more() []string {
	const most = 5
	var names []string
	n := 0
	for _, c := range t.shown() {
		if !changed(&c.Change) {
			continue
		}
		if n++; n > most {
			continue
		}
		name := page.Cut(page.Shorter(t.name(c), nameMost), nameMost)
		text := fmt.Sprintf("%s takes %s", name, c.Verdict)
		switch {
		case c.Appeared():
			text = name + " is new"
		case c.Gone():
			text = name + " is gone"
		default:
			text += fmt.Sprintf(", %s of its own", signed(c.Relative()))
		}
		names = append(names, text)
	}
	switch {
	case n > most:
		names = append(names, fmt.Sprintf("and %d more have changed", n-most))
	case n == 0 && t.basis != account.NoBasis:
		return []string{fmt.Sprintf("as far as these runs show, no %s has changed", t.h.By)}
	}
	if n == 0 {
		return nil
	}
	return []string{strings.Join(names, "; ")}
}

// seen is the largest place that was not named as changed, and the change that would have been
// named.
func (t *placesDiff) seen() (name string, part float64) {
	most := 0.0
	for i := range t.d.Places {
		c := &t.d.Places[i]
		if !changed(&c.Change) && c.Seen > 0 && c.Old > most {
			most, name, part = c.Old, t.name(c), c.Seen/c.Old
		}
	}
	return page.Cut(page.Shorter(name, nameMost), nameMost), part
}

func (t *placesDiff) fill(doc *jsonDiff) {
	doc.Places = []jsonChange{}
	for i := range t.d.Places {
		if t.top > 0 && i >= t.top {
			break
		}
		c := &t.d.Places[i]
		j := changeOf(&c.Change)
		j.Place, j.Module, j.OldModule = c.Name, c.Module, c.OldModule
		if c.Samples != [2]int64{} {
			j.Samples = c.Samples[:]
		}
		doc.Places = append(doc.Places, j)
	}
}
