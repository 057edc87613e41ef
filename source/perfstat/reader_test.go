package perfstat_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

func Example() {
	const output = `
 Performance counter stats for './app':

     2,000,000      cycles                                      (50.00%)
     3,000,000      instructions              #    1.50  insn per cycle

       0.001234567 seconds time elapsed
`
	r := perfstat.NewReader(strings.NewReader(output), "app.txt", perfstat.Options{})
	for r.Next() {
		t := r.Table()
		for i, c := range t.Columns {
			cell := t.Cell(0, i)
			fmt.Printf("%s: %s %.0f, counted %.0f %% of the time\n", t.Label, c.Event, cell.Value, cell.Coverage()*100)
		}
	}
	if err := r.Err(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ./app: cycles 2000000, counted 50 % of the time
	// ./app: instructions 3000000, counted 100 % of the time
}

// inputs returns the inputs under testdata by their names.
func inputs(tb testing.TB) map[string][]byte {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no inputs: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txtar")] = archive.Files[0].Data
	}
	return all
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, input, separator, want string }{
		{"empty", "", "", "f:1: empty: nothing to read"},
		{"prose", "a\nb 12\n", "", "f:1: no counts of perf stat found: looked for its text, CSV (-x) and JSON (-j) output"},
		{"gzip", "\x1f\x8b\x08", "", "f:1: compressed with gzip: decompress it first (gunzip, or zcat FILE)"},
		{"zstd", "\x28\xb5\x2f\xfd", "", "f:1: compressed with zstd: decompress it first (unzstd, or zstdcat FILE)"},
		{"xz", "\xfd7zXZ\x00", "", "f:1: compressed with xz: decompress it first (unxz, or xzcat FILE)"},
		{"bzip2", "BZh9", "", "f:1: compressed with bzip2: decompress it first (bunzip2, or bzcat FILE)"},
		{"perf.data", "PERFILE2\x00\x00", "", "f:1: a perf.data file and not the output of perf stat: perf stat report -i FILE prints what perf stat record stored"},
		{"UTF-16", "\xff\xfe1\x002\x00", "", "f:1: UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
		{"UTF-16 without mark", "1\x002\x003\x004\x00", "", "f:1: UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"},
		{"binary", "\x7fELF\x02\x01\x01\x00\x00", "", "f:1: binary, and not the output of perf stat"},
		{"title alone", "x\n Performance counter stats for 'a':\n\n", "", "f:2: the block holds no counts"},
		{"huge", "1e999,,cycles,5,100.00,,\n", "", `f:1: no usable count: the value "1e999" is not a count: dropped`},
		{"wrapped", "x\n18446744073709551000,,cycles,5,100.00,,\n", "", `f:2: no usable count: the value of "cycles" is a negative difference wrapped around 2⁶⁴: dropped`},
		{"wrong separator", "# started\n\n1,,cycles,5,100.00,,\n", ";", `f:3: the fields are separated by "," and not by ";"`},
		{"no line with the separator", "a\nb\n", ";", "f:1: no line with a count of perf stat -x; found"},
		{"metrics", "12.3 %  tma_retiring     (20.00%)\n", "", "f:1: only metrics that perf derived (--metric-only, --topdown, -M) and no counts: record the events themselves"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := perfstat.NewReader(strings.NewReader(tt.input), "f", perfstat.Options{Separator: tt.separator})
			for r.Next() {
				t.Errorf("got a table: %v", r.Table().Columns)
			}
			var e *perfstat.Error
			if err := r.Err(); !errors.As(err, &e) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", r.Err(), tt.want)
			}
			if r.Next() {
				t.Error("goes on after an error")
			}
		})
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	r := perfstat.NewReader(io.MultiReader(strings.NewReader("1,,cycles,5,100.00,,\n"), iotest.ErrReader(broken)), "f", perfstat.Options{})
	for r.Next() {
		t.Error("got a table that was not read to its end")
	}
	if err := r.Err(); !errors.Is(err, broken) || err.Error() != "f:2: broken" {
		t.Errorf("got %v", err)
	}
}

// Bounds: input must not make the reader take all memory.
func TestBounds(t *testing.T) {
	var many bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&many, "1,,event_%d,5,100.00,,\n", i)
	}
	var sparse bytes.Buffer
	for i := range 8_000 {
		fmt.Fprintf(&sparse, "CPU%d,1,,event_%d,5,100.00,,\n", i, i)
	}
	for name, tt := range map[string]struct {
		input []byte
		want  string
	}{
		"events": {many.Bytes(), "f:8193: too large: more than 8192 different events"},
		"cells":  {sparse.Bytes(), "f:1: too large: a table of 8000 places × 8000 events for 8000 counts"},
	} {
		r := perfstat.NewReader(bytes.NewReader(tt.input), "f", perfstat.Options{})
		for r.Next() {
			t.Errorf("%s: got a table", name)
		}
		if r.Err() == nil || r.Err().Error() != tt.want {
			t.Errorf("%s: got %v, want %s", name, r.Err(), tt.want)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("1,234 cycles ", 300_000)
	r := perfstat.NewReader(strings.NewReader(long+"\n1,,cycles,5,100.00,,\n"+long), "f", perfstat.Options{})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if got := r.Table().Cell(0, 0).Value; got != 1 || len(r.Table().Notes) != 2 {
		t.Errorf("got %v, notes %q", got, r.Table().Notes)
	}
}

// What cannot be written into a txtar archive.
func TestEncodings(t *testing.T) {
	for name, input := range map[string]string{
		"CRLF":       "1,234,,cycles,5,50.00,,\r\n5,,instructions,5,50.00,,\r\n",
		"BOM":        "\ufeff Performance counter stats for 'a':\r\n\r\n  1234 cycles (50.00%)\r\n  5 instructions\t(50.00%)\r\n",
		"ISO 8859-1": " Performance counter stats for 'a':\n\n  1\xa0234 cycles  (50,00%)\n  5 instructions  (50,00%)\n",
		"no end":     " Performance counter stats for 'a':\n\n  1,234 cycles  (50.00%)\n  5 instructions  (50.00%)",
		"progress":   " Performance counter stats for 'a':\n\n 10%\r 20%\r 1,234 cycles  (50.00%)\n  5 instructions  (50.00%)\n",
	} {
		if name == "CRLF" {
			input = strings.Replace(input, "1,234,,", "1234,,", 1)
		}
		r := perfstat.NewReader(strings.NewReader(input), "f", perfstat.Options{})
		if !r.Next() {
			t.Errorf("%s: %v", name, r.Err())
			continue
		}
		row := r.Table().Row(0)
		if len(row) != 2 || row[0].Value != 1234 || row[1].Value != 5 || row[0].Coverage() != 0.5 {
			t.Errorf("%s: got %+v", name, row)
		}
	}
}

// The notes of a table are bounded, and what is left out is counted.
func TestManyNotes(t *testing.T) {
	input := "1,,cycles,5,100.00,,\n" + strings.Repeat("-1,,branches,5,100.00,,\n", 100)
	r := perfstat.NewReader(strings.NewReader(input+"{\"counter-value\" : \"x\", \"event\" : \"cycles\"}\n"), "f", perfstat.Options{})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	notes := r.Table().Notes
	if len(notes) != 21 || notes[20].Text != "and 81 more notes" || r.Stats().Dropped != 101 {
		t.Errorf("%d notes, the last is %q; %d dropped", len(notes), notes[len(notes)-1], r.Stats().Dropped)
	}
}

func TestSeparatorGiven(t *testing.T) {
	r := perfstat.NewReader(strings.NewReader("# cpu: power7\n12@@cycles@5@100.00@@\n1,234 cycles\n"), "f", perfstat.Options{Separator: "@"})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if table := r.Table(); len(table.Columns) != 1 || table.Cell(0, 0).Value != 12 || table.CPU != "power7" || r.Kind() != "perf-stat-csv" {
		t.Errorf("got %v, cpu %q, %s", table.Columns, table.CPU, r.Kind())
	}
	r = perfstat.NewReader(strings.NewReader("12\t\tcycles\t5\t100.00\t\t\n"), "f", perfstat.Options{Separator: `\t`})
	if !r.Next() {
		t.Error(r.Err())
	}
}

// Tables share a layout as long as columns and scopes do not change, and their
// order does not matter.
func TestLayout(t *testing.T) {
	const input = `1.000000000,CPU0,1,,cycles,5,100.00,,
1.000000000,CPU1,2,,cycles,5,100.00,,
2.000000000,CPU0,3,,cycles,5,100.00,,
2.000000000,CPU1,4,,cycles,5,100.00,,
3.000000000,CPU1,6,,cycles,5,100.00,,
3.000000000,CPU0,5,,cycles,5,100.00,,
4.000000000,CPU1,8,,cycles,5,100.00,,
5.000000000,CPU0,9,,cycles,5,100.00,,
5.000000000,CPU1,10,,cycles,5,100.00,,
5.000000000,CPU2,11,,cycles,5,100.00,,
6.000000000,CPU0,12,,cycles,5,100.00,,
6.000000000,CPU1,13,,cycles,5,100.00,,
6.000000000,CPU2,14,,cycles,5,100.00,,
`
	var layouts []*counts.Layout
	var got [][]float64
	r := perfstat.NewReader(strings.NewReader(input), "f", perfstat.Options{})
	for r.Next() {
		table := r.Table()
		layouts = append(layouts, table.Layout)
		var values []float64
		for s := range table.Scopes {
			if c := table.Cell(s, 0); c.Ok() {
				values = append(values, c.Value)
			} else {
				values = append(values, -1)
			}
		}
		got = append(got, values)
	}
	want := [][]float64{{1, 2}, {3, 4}, {5, 6}, {-1, 8}, {9, 10, 11}, {12, 13, 14}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i, same := range []bool{true, true, true, false, true} {
		if (layouts[i] == layouts[i+1]) != same {
			t.Errorf("layouts %d and %d: the same pointer: %v, want %v", i, i+1, !same, same)
		}
	}
}

// Intervals do not allocate once their layout is known.
func TestAllocations(t *testing.T) {
	for _, order := range []bool{true, false} {
		few, many := intervals(100, order), intervals(1100, order)
		allocs := func(input []byte) float64 { return testing.AllocsPerRun(3, func() { read(t, input) }) }
		if perInterval := (allocs(many) - allocs(few)) / 1000; perInterval > 0.01 {
			t.Errorf("by event %v: %v allocations per interval", order, perInterval)
		}
	}
}

// The order of a CPU's events does not change what is read.
func TestOrders(t *testing.T) {
	byEvent, byCPU := perfstat.NewReader(bytes.NewReader(intervals(5, true)), "", perfstat.Options{}), perfstat.NewReader(bytes.NewReader(intervals(5, false)), "", perfstat.Options{})
	n := 0
	for ; byEvent.Next() && byCPU.Next(); n++ {
		a, b := byEvent.Table(), byCPU.Table()
		for s := range a.Scopes {
			if !slices.Equal(a.Row(s), b.Row(s)) || a.Scopes[s] != b.Scopes[s] {
				t.Errorf("interval %d, %s differs", n, a.Scopes[s].Label)
			}
		}
		if !slices.Equal(a.Columns, b.Columns) {
			t.Error("columns differ")
		}
	}
	if n != 5 {
		t.Errorf("%d intervals, want 5", n)
	}
}

// The quick way of reading intervals gives what the slow way gives.
func TestPredictionAgrees(t *testing.T) {
	input := intervals(50, true)
	// Without a line's timestamp at its place nothing is predicted.
	quoted := append([]byte("> "), bytes.ReplaceAll(bytes.TrimSuffix(input, []byte("\n")), []byte("\n"), []byte("\n> "))...)
	quick, slow := perfstat.NewReader(bytes.NewReader(input), "", perfstat.Options{}), perfstat.NewReader(bytes.NewReader(quoted), "", perfstat.Options{})
	n := 0
	for ; quick.Next() && slow.Next(); n++ {
		for s := range quick.Table().Scopes {
			if !slices.Equal(quick.Table().Row(s), slow.Table().Row(s)) {
				t.Fatalf("interval %d, scope %d differs", n, s)
			}
		}
	}
	if n != 50 || quick.Err() != nil || slow.Err() != nil {
		t.Errorf("%d intervals, %v, %v", n, quick.Err(), slow.Err())
	}
}

// A file that is cut off anywhere yields no number that the whole does not.
func TestTruncated(t *testing.T) {
	for name, input := range inputs(t) {
		if name == "text-program" {
			continue // the program's output is known by the title after it
		}
		if name == "text-percore" {
			continue // a core is named by all of its processors
		}
		t.Run(name, func(t *testing.T) {
			whole := values(input)
			step := 1 + len(input)/700
			for n := 0; n < len(input); n += step {
				for where, got := range values(input[:n]) {
					for _, v := range got {
						if !slices.Contains(whole[where], v) && !isCutName(where.event, input[:n]) {
							t.Fatalf("cut to %d bytes (%q): %v is %v, want one of %v", n, tail(input[:n]), where, v, whole[where])
						}
					}
				}
			}
		})
	}
}

type where struct{ scope, event string }

// values reads an input and returns what was counted where.
func values(input []byte) map[where][]float64 {
	all := map[where][]float64{}
	r := perfstat.NewReader(bytes.NewReader(input), "f", perfstat.Options{})
	for r.Next() {
		t := r.Table()
		for s, scope := range t.Scopes {
			if scope.Kind == counts.Run || scope.Kind == counts.Interval {
				scope.Label = ""
			}
			for c, column := range t.Columns {
				if cell := t.Cell(s, c); cell.Ok() {
					w := where{scope.Label, column.Event}
					all[w] = append(all[w], cell.Value)
				}
			}
		}
	}
	return all
}

// isCutName reports whether the input ends with an event's name. A name that is cut off
// may look like a shorter one. One without its cgroup may look like one that had none.
func isCutName(event string, input []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(input, " "), []byte(event))
}

func tail(b []byte) []byte { return b[max(0, len(b)-60):] }

// TestRoundTrip prints counts as perf does, in all three forms, and reads them.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := drawRecording(t)
		form := rapid.SampledFrom([]string{"text", "csv", "json"}).Draw(t, "form")
		input := rec.print(form, rapid.SampledFrom([]string{",", ";", "|", "\t", "::", "\t|", "@", " "}).Draw(t, "sep"))
		r := perfstat.NewReader(strings.NewReader(input), "f", perfstat.Options{})
		n := 0
		for ; r.Next(); n++ {
			rec.check(t, r.Table(), n)
		}
		if err := r.Err(); err != nil {
			t.Fatalf("%v of\n%s", err, input)
		}
		if want := max(1, rec.intervals); n != want {
			t.Fatalf("%d tables, want %d of\n%s", n, want, input)
		}
		if r.Stats().Dropped > 0 {
			t.Fatalf("counts dropped: %v of\n%s", r.Table().Notes, input)
		}
	})
}

// A recording is what TestRoundTrip prints.
type recording struct {
	events    []string
	cpus      int // 0: not by logical processor
	intervals int // 0: the whole run
	cells     []counts.Cell
}

func drawRecording(t *rapid.T) recording {
	names := []string{"cycles", "instructions:u", "cpu/event=0x9c,umask=0x1,cmask=4/", "r400fa", "uops_issued.any", "sched:sched_switch",
		"cpu_core/cycles/u", "L1-dcache-load-misses", "page-faults", "duration_time_x"}
	rec := recording{
		events:    rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 6, rapid.ID[string]).Draw(t, "events"),
		cpus:      rapid.IntRange(0, 3).Draw(t, "cpus"),
		intervals: rapid.IntRange(0, 4).Draw(t, "intervals"),
	}
	cell := rapid.Custom(func(t *rapid.T) counts.Cell {
		c := counts.Cell{State: rapid.SampledFrom([]counts.State{counts.Counted, counts.Counted, counts.Counted, counts.NotCounted, counts.NotSupported}).Draw(t, "state")}
		if c.Ok() {
			c.Value = float64(rapid.Uint64Range(0, 1<<53).Draw(t, "value") >> rapid.IntRange(0, 52).Draw(t, "shift"))
			c.Running = float64(rapid.Uint64Range(1000, 1<<50).Draw(t, "running"))
			c.Enabled = c.Running / (float64(rapid.IntRange(1, 10000).Draw(t, "share")) / 100 / 100)
		}
		return c
	})
	n := len(rec.events) * max(1, rec.cpus) * max(1, rec.intervals)
	rec.cells = rapid.SliceOfN(cell, n, n).Draw(t, "cells")
	rec.cells[0].State = counts.Counted // something to read
	if rec.cells[0].Running == 0 {
		rec.cells[0].Running, rec.cells[0].Enabled = 1000, 1000
	}
	return rec
}

func (rec *recording) cell(interval, cpu, event int) *counts.Cell {
	return &rec.cells[(interval*max(1, rec.cpus)+cpu)*len(rec.events)+event]
}

func (rec *recording) print(form, sep string) string {
	var b strings.Builder
	if form == "text" {
		fmt.Fprintf(&b, " Performance counter stats for './app':\n\n")
	}
	for i := range max(1, rec.intervals) {
		for e := range rec.events {
			for cpu := range max(1, rec.cpus) {
				rec.line(&b, form, sep, i, cpu, e)
			}
		}
	}
	return b.String()
}

func (rec *recording) line(b *strings.Builder, form, sep string, i, cpu, e int) {
	c := rec.cell(i, cpu, e)
	time := fmt.Sprintf("%d.%09d", i+1, 1000+i)
	share := c.Coverage() * 100
	value := fmt.Sprintf("%.0f", c.Value)
	switch c.State {
	case counts.NotCounted:
		value, share = "<not counted>", 0
	case counts.NotSupported:
		value, share = "<not supported>", 100
	}
	switch form {
	case "text":
		if rec.intervals > 0 {
			fmt.Fprintf(b, "%16s ", time)
		}
		if rec.cpus > 0 {
			fmt.Fprintf(b, "CPU%-3d ", cpu)
		}
		if c.Ok() {
			value = thousands(value)
		}
		fmt.Fprintf(b, "%18s      %-32s", value, rec.events[e])
		if share < 100 {
			fmt.Fprintf(b, "  (%.2f%%)", share)
		}
	case "csv":
		if rec.intervals > 0 {
			fmt.Fprintf(b, "%16s%s", time, sep)
		}
		if rec.cpus > 0 {
			fmt.Fprintf(b, "CPU%d%s", cpu, sep)
		}
		fmt.Fprintf(b, "%s%s%s%s%s%.0f%s%.2f%s%s", value, sep, sep, rec.events[e], sep, c.Running, sep, share, sep, sep)
	case "json":
		b.WriteByte('{')
		if rec.intervals > 0 {
			fmt.Fprintf(b, "\"interval\" : %s, ", time)
		}
		if rec.cpus > 0 {
			fmt.Fprintf(b, "\"cpu\" : \"%d\", ", cpu)
		}
		if c.Ok() {
			value += ".000000"
		}
		fmt.Fprintf(b, "\"counter-value\" : \"%s\", \"unit\" : \"\", \"event\" : \"%s\", \"event-runtime\" : %.0f, \"pcnt-running\" : %.2f}",
			value, rec.events[e], c.Running, share)
	}
	b.WriteByte('\n')
}

// thousands puts commas between groups of three digits.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func (rec *recording) check(t *rapid.T, table *counts.Table, n int) {
	if len(table.Columns) != len(rec.events) || len(table.Scopes) != max(1, rec.cpus) {
		t.Fatalf("table %d has %d columns and %d scopes, want %d and %d", n, len(table.Columns), len(table.Scopes), len(rec.events), max(1, rec.cpus))
	}
	for cpu := range max(1, rec.cpus) {
		for e, name := range rec.events {
			got, want := table.Cell(cpu, e), rec.cell(n, cpu, e)
			if table.Columns[e].Event != name || got.State != want.State || got.Value != want.Value {
				t.Fatalf("table %d, CPU %d: got %s %v %v, want %s %v %v", n, cpu, table.Columns[e].Event, got.State, got.Value, name, want.State, want.Value)
			}
			if got.Ok() && math.Abs(got.Coverage()-want.Coverage()) > 1e-9 {
				t.Fatalf("table %d, CPU %d, %s: coverage %v, want %v", n, cpu, name, got.Coverage(), want.Coverage())
			}
		}
	}
}

// FuzzReader reads anything: it must fail by its error alone, and what it reads must be
// what a count can be.
func FuzzReader(f *testing.F) {
	for _, input := range inputs(f) {
		f.Add(input)
	}
	f.Add([]byte("\xff\xfe1\x00"))
	f.Add([]byte("Performance counter stats for\n0 X00\n[101%]"))
	f.Add(intervals(3, true)[:4000])
	f.Add([]byte("# perf stat -A\n1.000000000 CPU0 5 cpu/event=1,percore/\n1.000000000 CPU1 5 cpu/event=1,percore/\n2.000000000 CPU0 6 cpu/event=1,percore/\n"))
	f.Add([]byte("1,,cycles,5,100.00,,\r-1,,cycles,-5,nan,,\rnan,1,,cycles,5,100.00,,\r"))
	f.Add([]byte("Performance counter stats for 'a':\n 1.234 Joules x/y/\n 1,234,567 cycles\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		perfstat.Detect(input)
		r := perfstat.NewReader(bytes.NewReader(input), "f", perfstat.Options{})
		tables := 0
		for ; r.Next(); tables++ {
			checkSane(t, r.Table())
		}
		if tables == 0 && r.Err() == nil {
			t.Error("neither a table nor an error")
		}
		if err := r.Err(); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("the error has several lines: %q", err)
		}
		if _, err := os.Stat("testdata"); err != nil {
			t.Fatal(err)
		}
	})
}

func checkSane(t *testing.T, table *counts.Table) {
	if len(table.Scopes) == 0 || len(table.Columns) == 0 {
		t.Fatal("an empty table")
	}
	counted := 0
	for s := range table.Scopes {
		for c := range table.Columns {
			cell := table.Cell(s, c)
			if cell.State != counts.Absent {
				counted++
			}
			if !(cell.Value >= 0 && cell.Value <= 1<<64) || !(cell.Running >= 0 && cell.Enabled >= 0 && cell.Lost >= 0 && cell.Variance >= 0) {
				t.Fatalf("%s: %+v", table.Columns[c].Event, *cell)
			}
			if cov := cell.Coverage(); cov > 1.0000001 {
				t.Fatalf("%s: coverage %v", table.Columns[c].Event, cov)
			}
		}
	}
	if counted == 0 {
		t.Fatal("a table without readings")
	}
	for _, c := range table.Columns {
		if c.Event == "" {
			t.Fatal("an event without a name")
		}
	}
}
