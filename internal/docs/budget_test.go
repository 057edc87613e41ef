package docs_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// budgetFile has the counts that a check still allows, as lines of the check, the
// package and the count. What has no line is allowed none. Counts may only fall:
// -update lowers them to what there is, and raises none.
const budgetFile = "internal/docs/testdata/budget.txt"

// A budget is what one check allows, by package or document.
type budget map[string]int

func readBudgets(t *testing.T) map[string]budget {
	t.Helper()
	all := map[string]budget{}
	for line := range strings.Lines(read(t, budgetFile)) {
		var check, place string
		var count int
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if _, err := fmt.Sscan(line, &check, &place, &count); err != nil {
			t.Fatalf("%s: %q: %v", budgetFile, line, err)
		}
		if all[check] == nil {
			all[check] = budget{}
		}
		all[check][place] = count
	}
	return all
}

// over returns the places with more findings than the budget allows.
func (b budget) over(found map[string][]string) []string {
	var list []string
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if n := len(found[place]); n > b[place] {
			list = append(list, fmt.Sprintf("%s: %d, allowed %d:\n\t%s", place, n, b[place], strings.Join(found[place], "\n\t")))
		}
	}
	return list
}

// lowered returns the budget with each count at most what was found.
func (b budget) lowered(found map[string][]string) budget {
	low := budget{}
	for place, n := range b {
		if n = min(n, len(found[place])); n > 0 {
			low[place] = n
		}
	}
	return low
}

// hold fails where a check found more in a place than its budget allows.
func hold(t *testing.T, check string, found map[string][]string) {
	t.Helper()
	for _, text := range readBudgets(t)[check].over(found) {
		t.Errorf("%s %s", check, text)
	}
	lower(t, check, found)
}

// lower lowers the budget of a check, with -update.
func lower(t *testing.T, check string, found map[string][]string) {
	t.Helper()
	if !*update {
		return
	}
	all := readBudgets(t)
	all[check] = all[check].lowered(found)
	var out strings.Builder
	for line := range strings.Lines(read(t, budgetFile)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		out.WriteString(line)
	}
	for _, check := range slices.Sorted(maps.Keys(all)) {
		for _, place := range slices.Sorted(maps.Keys(all[check])) {
			fmt.Fprintf(&out, "%-9s %-32s %4d\n", check, place, all[check][place])
		}
	}
	if err := os.WriteFile(budgetFile, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestBudget(t *testing.T) {
	b := budget{"a": 2, "b": 1, "gone": 3}
	if over := b.over(map[string][]string{"a": {"x", "y"}, "b": {}}); len(over) != 0 {
		t.Errorf("within the budget: got %q", over)
	}
	if over := b.over(map[string][]string{"a": {"x", "y", "z"}, "new": {"x"}}); len(over) != 2 {
		t.Errorf("over the budget: got %q, want two places", over)
	}
	if low := b.lowered(map[string][]string{"a": {"x"}, "b": {"x", "y"}}); !maps.Equal(low, budget{"a": 1, "b": 1}) {
		t.Errorf("lowered: got %v", low)
	}
}
