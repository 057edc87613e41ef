package perfstat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// TestNothingVanishes reads counts that cannot be used, or not in full: each is
// read or has a note that names its line.
func TestNothingVanishes(t *testing.T) {
	const (
		title  = " Performance counter stats for 'a':\n\n"
		others = "2000,,instructions,100,100.00,,\n300,,branches,100,100.00,,\n"
	)
	for _, tt := range []struct {
		name, input string
		counts      int // read, in all tables
		note        string
	}{
		{"Arabic digits", title + "  ١٬٠٠٠      cycles\n  2,000      instructions\n", 1, `line 3: not understood: "١٬٠٠٠      cycles"`},
		{"Devanagari digits", title + "  १,०००      cycles\n  2,000      instructions\n", 1, `line 3: not understood: "१,०००      cycles"`},
		{"negative percentage", "1000,,cycles,100,-5.00,,\n" + others, 2, `line 1: "cycles" has the negative running percentage "-5.00": dropped`},
		{"negative running time", others + "1000,,cycles,-100,100.00,,\n", 2, `line 3: "cycles" has the negative running time "-100": dropped`},
		{"interval at no time", "     1.000000001,1000,,cycles,100,100.00,,\nnan,1000,,cycles,100,100.00,,\n", 1,
			`line 2: not understood: "nan,1000,,cycles,100,100.00,,"`},
		{"percentage nan", "1000,,cycles,100,nan,,\n" + others, 3,
			"line 1: the coverage of cycles is not a number"},
		{"percentage nan in JSON", `{"counter-value" : "1000.0", "unit" : "", "event" : "cycles", "event-runtime" : 100, "pcnt-running" : nan}` + "\n", 1,
			"line 1: the coverage of cycles is not a number"},
		{"percentage nan in text", title + "  1,000      cycles      (nan%)\n", 1,
			"line 3: the coverage of cycles is not a number"},
		{"carriage returns alone", strings.ReplaceAll("1000,,cycles,100,100.00,,\n"+others, "\n", "\r"), 3, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := perfstat.NewReader(strings.NewReader(tt.input), "f", perfstat.Options{})
			n := 0
			var notes []string
			for r.Next() {
				for _, c := range r.Table().Row(0) {
					if c.Ok() {
						n++
					}
				}
				notes = append(notes, counts.Texts(r.Table().Notes)...)
			}
			if notes = append(notes, counts.Texts(r.Notes())...); n != tt.counts || r.Err() != nil {
				t.Errorf("%d counts, want %d; %v", n, tt.counts, r.Err())
			}
			if tt.note == "" && len(notes) > 0 || tt.note != "" && !slices.Equal(notes, []string{tt.note}) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

// TestLoneMark reads numbers with one point or comma and three digits behind:
// the other numbers of the block say whether they are decimals.
func TestLoneMark(t *testing.T) {
	for _, tt := range []struct {
		others string // lines of the block, behind the number
		in     string
		want   float64
	}{
		{"", "12.345", 12345},
		{"", "12,345", 12345},
		{"1,234,567 cycles", "12.345", 12.345},
		{"1.234.567 cycles", "12,345", 12.345},
		{"1'234'567 cycles", "12.345", 12.345},
		{"1,234,567 cycles", "12,345", 12345},
		{"1.234.567 cycles", "12.345", 12345},
		{"3.10 msec task-clock", "12.345", 12.345},
		{"3.10 msec task-clock", "12,345", 12345},
		{"3,10 msec task-clock", "12.345", 12345},
		{"1,234.56 msec task-clock", "12.345", 12.345},
		{"1.000000000 seconds time elapsed", "12.345", 12.345},
		{"1,000000000 seconds time elapsed", "12.345", 12345},
		{"1,234 cycles", "12.345", 12345}, // each could be the point
	} {
		input := " Performance counter stats for 'a':\n\n  " + tt.in + " Joules power/energy-pkg/   ( +-  1.00% )\n  " + tt.others + "\n"
		r := perfstat.NewReader(strings.NewReader(input), "f", perfstat.Options{})
		if !r.Next() {
			t.Errorf("%s: %v", tt.others, r.Err())
			continue
		}
		c := r.Table().Cell(0, 0)
		if want := tt.want * tt.want / 1e4; c.Value != tt.want || c.Variance < want*0.999 || c.Variance > want*1.001 {
			t.Errorf("%s beside %q: got %v, variance %v, want %v, %v", tt.in, tt.others, c.Value, c.Variance, tt.want, want)
		}
	}
}

// TestTwoProcessors reads files that name two processors for the same counts.
func TestTwoProcessors(t *testing.T) {
	const counts = " Performance counter stats for 'a':\n\n  1,000      cycles\n\n  1.0 seconds time elapsed\n\n"
	for _, tt := range []struct{ name, input, want string }{
		{"at once", "# cpu: power7\n# started on Mon\n# cpu: skylakex\n" + counts,
			`f:3: "skylakex" is named as the processor, and "power7" in line 1: leave the one that the counts below are from`},
		{"the same twice", "# cpu: power7\n# cpu: power7\n" + counts, ""},
		{"each its counts", "# cpu: power7\n" + counts + "# cpu: skylakex\n" + counts, ""},
		{"perf's own spelling", "# cpu: core2\n# cpuid : GenuineIntel,6,15,11\n" + counts, ""},
	} {
		r := perfstat.NewReader(strings.NewReader(tt.input), "f", perfstat.Options{})
		for r.Next() {
			if tt.want != "" {
				t.Errorf("%s: got a table", tt.name)
			}
		}
		if got := fmt.Sprint(r.Err()); got != tt.want && (tt.want != "" || r.Err() != nil) {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// sums reads an input as a whole and returns the sums of the events of each
// recording.
func sums(t *testing.T, input string) (all []map[string]float64) {
	t.Helper()
	r := perfstat.NewReader(strings.NewReader(input), "f", perfstat.Options{})
	total := counts.NewTotal(0)
	done := func() {
		sum := map[string]float64{}
		for i, c := range total.Table().Columns {
			sum[c.Event] = total.Table().Cell(0, i).Value
		}
		all = append(all, sum)
		total.Reset()
	}
	for r.Next() {
		if total.Begins(r.Table()) {
			done()
		}
		if err := total.Add(r.Table()); err != nil {
			t.Fatal(err)
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	done()
	return all
}

// TestTwoRecordings reads a run without its elapsed time, prose, and another
// recording by intervals: they are not added.
func TestTwoRecordings(t *testing.T) {
	got := sums(t, `# perf stat -e cycles -a -- sleep 1

 Performance counter stats for 'system wide':

     1,000,000      cycles

The interval mode also works. For example,

# perf stat -e cycles -a -I 1000
#           time             counts unit events
     1.000425421             10,000      cycles
     2.000425421             10,000      cycles
`)
	if len(got) != 2 || got[0]["cycles"] != 1_000_000 || got[1]["cycles"] != 20_000 {
		t.Errorf("got %v", got)
	}
}

// TestPerCore reads counts of cores that perf repeats for each logical
// processor: a sum has each once, and the other events of both processors.
func TestPerCore(t *testing.T) {
	const command = "# perf stat -A --percore-show-thread -e "
	const header = command + "cpu/event=0x3c,percore/,instructions -a -I 1000\n"
	interval := func(time string, cores ...int) string {
		var b strings.Builder
		for cpu, n := range cores {
			fmt.Fprintf(&b, "     %s CPU%d      %d      cpu/event=0x3c,percore/\n", time, cpu, n)
			fmt.Fprintf(&b, "     %s CPU%d      %d      instructions\n", time, cpu, 1000+cpu)
		}
		return b.String()
	}
	const cycles = "cpu/event=0x3c,percore/"
	// The third interval shows that CPU1 and CPU3 are not one core.
	got := sums(t, header+interval("1.000000000", 500, 700, 500, 700)+interval("2.000000000", 0, 50, 0, 50)+interval("3.000000000", 60, 60, 60, 61))
	if len(got) != 1 || got[0][cycles] != 1200+50+181 || got[0]["instructions"] != 3*4006 {
		t.Errorf("got %v", got)
	}

	r := perfstat.NewReader(strings.NewReader(header+interval("1.000000000", 500, 700, 500, 700)+interval("2.000000000", 0, 50, 0, 50)), "f", perfstat.Options{})
	var layouts []*counts.Layout
	for r.Next() {
		table := r.Table()
		layouts = append(layouts, table.Layout)
		if len(table.Scopes) != 2 || len(table.Notes) != 1 || !strings.HasPrefix(table.Notes[0].Text, "counts of whole cores, repeated") {
			t.Errorf("scopes %+v, notes %q", table.Scopes, table.Notes)
		}
		if s := table.Scopes[1]; s.Kind != counts.Core || s.Label != "CPU1+CPU3" || s.Core != 1 || s.CPU != counts.Unknown || s.CPUs != 2 {
			t.Errorf("got %+v", s)
		}
		if c := table.Cell(1, 1); c.Value != 1001+1003 {
			t.Errorf("instructions of both processors: %v", c.Value)
		}
	}
	if len(layouts) != 2 || layouts[0] != layouts[1] {
		t.Error("the layout changed between equal intervals")
	}

	// Chance is found out later.
	got = sums(t, header+interval("1.000000000", 5, 5, 5, 5)+interval("2.000000000", 8, 7, 8, 7)+interval("3.000000000", 6, 6, 6, 6))
	if len(got) != 1 || got[0][cycles] != 5+15+12 {
		t.Errorf("got %v", got)
	}

	// Named by its terms, an event does not show them.
	got = sums(t, command+"cpu/event=0x3c,percore,name=CLK/ -a\n\n Performance counter stats for 'system wide':\n\n CPU0  500  CLK\n CPU1  700  CLK\n CPU2  500  CLK\n")
	if len(got) != 1 || got[0]["CLK"] != 1200 {
		t.Errorf("got %v", got)
	}

	// Without a second thread nothing is repeated.
	r = perfstat.NewReader(strings.NewReader(header+interval("1.000000000", 500, 700)), "f", perfstat.Options{})
	if !r.Next() || len(r.Table().Scopes) != 2 || r.Table().Scopes[0].Label != "CPU0" || len(r.Table().Notes) != 1 {
		t.Errorf("got %+v, notes %q", r.Table().Scopes, r.Table().Notes)
	}
}
