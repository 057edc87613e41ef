package account_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
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

// TestMachines constructs recordings of whole machines, with busy and idle processors. One
// serves interrupts alone, and one is online for a part of the time. The time-stamp counter is
// of one processor or of all. Neither a processor nor the sum is contradicted, or suspect.
func TestMachines(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	events := []string{"cycles", "instructions", "branches", "branch-misses", "ref-cycles", "cycles:u", "instructions:u", "L1-dcache-loads", "cache-misses", "msr/tsc/", "task-clock"}
	shares := []float64{1, 0.8, 0.15, 0.005, 0.9, 0.7, 0.6, 0.3, 0.001} // of the cycles
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	for _, e := range events {
		l.Columns = append(l.Columns, counts.Column{Event: e})
	}
	for _, name := range []string{"generic", "skylakex", "icelake", "amdzen4"} {
		binding := bindBest(t, cat, name, name, counts.NewTable(l)).binding
		for _, processors := range []int{2, 16, 256} {
			for _, clocks := range []int{1, processors} {
				const seconds = 5
				sum := counts.NewTable(l)
				sum.Duration = seconds
				for cpu := range processors {
					table, online := counts.NewTable(l), 1.0
					table.Duration = seconds
					if cpu == processors-1 {
						online = 0.4
					}
					cycles := online * seconds * 3e9 * []float64{0.9, 2e-6, 0.3, 1e-3}[cpu%4]
					for col, e := range events {
						c := counts.Cell{State: counts.Counted, Enabled: online * seconds * 1e9, Running: online * seconds * 1e9}
						switch {
						case e == "task-clock":
							c.Value = c.Enabled
						case e == "msr/tsc/" && cpu < clocks:
							c.Value = 2.5 * c.Enabled
						case e == "msr/tsc/":
							continue
						case strings.HasSuffix(e, ":u") && cpu%4 != 0: // interrupts alone
						default:
							c.Value = math.Floor(shares[col] * cycles)
						}
						*table.Cell(0, col) = c
						all := sum.Cell(0, col)
						all.State, all.Value, all.Enabled, all.Running = c.State, all.Value+c.Value, all.Enabled+c.Enabled, all.Running+c.Running
					}
					machineHolds(t, &recording{fmt.Sprintf("%s, processor %d of %d", name, cpu, processors), table, binding}, cpu%4 == 2)
				}
				machineHolds(t, &recording{fmt.Sprintf("%s, all of %d", name, processors), sum, binding}, false)
			}
		}
	}
}

// machineHolds checks that an unharmed recording is not contradicted, nor suspect unless it may
// be.
func machineHolds(t *testing.T, r *recording, may bool) {
	t.Helper()
	a := r.audit(r.table)
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.Contradicts() || c.State == account.Fails && c.Side == account.Measurement && c.Source != "" && !may {
			t.Errorf("%s: %s: %v, %g and %g", r.file, c.Name, c.Events, c.Left, c.Right)
		}
	}
}
