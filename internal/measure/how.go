package measure

import (
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// how says in words how a part was counted, for the first line of its account. Why says
// why no better source was used.
func (p *part) how(t *counts.Table, why string, separate, sampled bool) string {
	n := p.counted(t)
	switch {
	case p.own.alone:
		return "the events of -e"
	case sampled && why == "":
		return "sampled by the clock"
	case sampled:
		return "sampled by the clock, as " + why
	case p.pmu == nil && why == "":
		return "counted by the operating system"
	case p.pmu == nil:
		return "counted by the operating system, as " + why
	case n == 0:
		return "counted by the kernel"
	case separate && n > 1:
		return fmt.Sprintf("counted by the PMU in %d runs", n)
	}
	least, most := coverages(t)
	text := "counted by the PMU in " + number(n, "group")
	each := ""
	if n > 1 {
		each = " each"
	}
	switch low, high := percent(least), percent(most); {
	case math.IsNaN(least) || low == 100:
		return text
	case low == high:
		return fmt.Sprintf("%s (%d %%%s)", text, low, each)
	default:
		return fmt.Sprintf("%s (%d to %d %%%s)", text, low, high, each)
	}
}

// number is a number of things in words.
func number(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// counted returns how many of a part's groups were counted, in part at least. The kernel
// may have refused every event of some.
func (p *part) counted(t *counts.Table) int {
	n := 0
	for _, group := range p.groups {
		for _, e := range group {
			if supported(t, p.names[e.Name]) {
				n++
				break
			}
		}
	}
	return n
}

// supported reports whether the kernel opened an event.
func supported(t *counts.Table, name string) bool {
	for k, c := range t.Columns {
		if c.Event != name {
			continue
		}
		for i := range t.Scopes {
			if s := t.Cell(i, k).State; s == counts.Counted || s == counts.NotCounted {
				return true
			}
		}
	}
	return false
}

func percent(share float64) int { return int(math.Round(100 * share)) }

// coverages returns the least and the largest coverage of a table's groups; NaN if there is
// none.
func coverages(t *counts.Table) (least, most float64) {
	var all []float64
	for i := range t.Scopes {
		row := t.Row(i)
		for k := range row {
			if t.Columns[k].Group == 0 || !row[k].Ok() {
				continue
			}
			if c := row[k].Coverage(); !math.IsNaN(c) {
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(all), slices.Max(all)
}
