package account_test

import (
	"fmt"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

// TestProcessors sums the consistent counts of 20 processors over several logical
// processors, as perf stat -a does. What holds on each of them holds for the sums, or is
// not checked. The time does not grow with them. Some tools count the time-stamp counter
// on one processor, some on all. The times of the counts show that.
func TestProcessors(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	sums := 0
	for _, r := range oracles(t, cat) {
		for _, processors := range []float64{1.5, 2, 3, 8, 64, 256} {
			for _, clocks := range []float64{1, processors} {
				table := r.table.Clone()
				for col := range table.Columns {
					c, by := table.Cell(0, col), processors
					switch name := r.binding.Name(col); {
					case table.Columns[col].Event == "duration_time":
						by = 1
					case name == "tsc":
						by = clocks
					}
					c.Value *= by
					c.Enabled *= by
					c.Running *= by
				}
				sums++
				if a := r.audit(table); a.Contradicted() {
					t.Errorf("%s: contradicted as the sum of %v processors, with the time-stamp counters of %v: %s", r.file, processors, clocks, fmt.Sprint(a.Suspects()))
				}
			}
		}
	}
	if sums < 240 {
		t.Errorf("%d sums", sums)
	}
}
