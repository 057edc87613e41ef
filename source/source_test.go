package source_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/source"
)

// What wrote a recording is told from its content.
func Example() {
	f, err := source.Open("../examples/smt-skylakex.csv")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	tables := f.Tables(0)
	for tables.Next() {
		t := tables.Table()
		fmt.Printf("%s from %s: %d events, %d scopes\n", tables.Kind(), t.CPU, len(t.Columns), len(t.Scopes))
	}
	// Output: perf-stat-csv from skylakex: 4 events, 2 scopes
}

// TestProgress: Progress gets what is read of a file or a stream. A file is read twice.
func TestProgress(t *testing.T) {
	text, err := os.ReadFile("../examples/smt-skylakex.csv")
	if err != nil {
		t.Fatal(err)
	}
	size, last := int64(len(text)), [2]int64{}
	all := func(r *source.Recording) {
		t.Helper()
		r.Progress = func(read, size int64) { last = [2]int64{read, size} }
		tables := r.Tables(0)
		for tables.Next() {
		}
		if err := tables.Err(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := source.Open("../examples/smt-skylakex.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := int64(2); n < 4; n++ { // it was recognised by its beginning, which is all of it
		if all(f); last != [2]int64{n * size, size} {
			t.Errorf("read and size of a file of %d are %d", size, last)
		}
	}
	s, err := source.New(io.MultiReader(strings.NewReader(string(text))), "x")
	if err != nil {
		t.Fatal(err)
	}
	if all(s); last != [2]int64{size, size} {
		t.Errorf("read and size of a stream of %d are %d", size, last)
	}
}

func TestNew(t *testing.T) {
	for text, want := range map[string]string{
		"Lat Threshold | Sample Count\n3 | 10\n4 | 5\n":                     "threshold-table",
		" Performance counter stats for 'x':\n\n  1,000  cycles\n":          "perf-stat-text",
		"1000,,cycles,100,100.00,,\n2000,,instructions,100,100.00,,\n":      "perf-stat-csv",
		`{"counter-value" : "5.0", "unit" : "", "event" : "cycles"}` + "\n": "perf-stat-json",
	} {
		rec, err := source.New(strings.NewReader(text), "x")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		r := rec.Tables(0)
		if !r.Next() || r.Kind() != want {
			t.Errorf("%q is %s (%v), want %s", text, r.Kind(), r.Err(), want)
		}
	}
	if _, err := source.New(strings.NewReader("Dear reader,\n"), "x"); !errors.Is(err, source.ErrFormat) {
		t.Errorf("a letter: %v", err)
	}
	if _, err := source.New(strings.NewReader(""), "x"); err == nil || err.Error() != "x: empty" {
		t.Errorf("nothing: %v", err)
	}
}

// TestRecordings reads what perf record and perf stat record wrote, from a file with seeking
// and from a stream.
func TestRecordings(t *testing.T) {
	for name, want := range map[string]string{"plain.data": "perf-data", "pipe.data": "perf-data", "stat.data": "perf-stat-record"} {
		file := filepath.Join("perfdata", "testdata", name)
		f, err := source.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := source.New(io.MultiReader(strings.NewReader(string(bytes))), name)
		if err != nil {
			t.Fatal(err)
		}
		for how, r := range map[string]source.Reader{"file": f.Tables(0), "stream": r.Tables(0)} {
			if !r.Next() || r.Kind() != want || len(r.Table().Columns) == 0 {
				t.Errorf("%s as a %s is %s (%v), want %s", name, how, r.Kind(), r.Err(), want)
			}
		}
	}
}

// TestKeep tells the threads of a recording of samples apart.
func TestKeep(t *testing.T) {
	f, err := source.Open(filepath.Join("perfdata", "testdata", "threads.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.Tables(counts.By(0).With(counts.Thread))
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if s := r.Table().Scopes; len(s) == 0 || s[0].Kind != counts.Thread {
		t.Errorf("got %v, want threads", s)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := source.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := source.Open(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

// TestHasSamples tells recordings of samples from those of counts, by their beginning.
func TestHasSamples(t *testing.T) {
	const dir = "perfdata/testdata/"
	for name, want := range map[string]bool{
		dir + "plain.data": true, dir + "pipe.data": true, dir + "zstd.data": true, dir + "group.data": true,
		dir + "stat.data": false, dir + "stat-interval.pipe": false, "../examples/power7-cpi.txt": false,
	} {
		rec, err := source.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := rec.HasSamples(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if r := rec.Tables(0); !r.Next() {
			t.Errorf("%s: looked at, it has no tables: %v", name, r.Err())
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAgain reads a file several times, in several ways.
func TestAgain(t *testing.T) {
	rec, err := source.Open("perfdata/testdata/plain.data")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for range 2 {
		if r := rec.Tables(0); !r.Next() {
			t.Error(r.Err())
		}
		r := rec.Samples(samples.Options{By: counts.Function})
		if !r.Next() || len(r.Table().Scopes) < 2 {
			t.Errorf("no places: %v", r.Err())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNewAgain: a file that was read before, as standard input may be, is a recording
// from its beginning.
func TestNewAgain(t *testing.T) {
	f, err := os.Open("../examples/power7-cpi.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		rec, err := source.New(f, "-")
		if err != nil {
			t.Fatal(err)
		}
		if r := rec.Tables(0); rec.HasSamples() || !r.Next() {
			t.Errorf("no table: %v", r.Err())
		}
	}
}

// TestOthers: the output of tools that no format recognises is named, with what to do.
func TestOthers(t *testing.T) {
	for text, want := range map[string]string{
		"CPU type: x\nMeasuring group FLOPS_DP\n":                 "x: this is output of likwid-perfctr, and is not read: count with perf stat, and give its output",
		"Function,Module,Hardware Event Count:INST\nf,m,1\n":      "VTune",
		"Group,Metric,Value,Units\nA,b,1,None\n":                  "Arm's topdown-tool",
		"Retiring:  41.9%\nMUX Reliability:  0.939\n":             "VTune",
		"Core\tCPU\tAvg_MHz\tBusy%\n-\t-\t1\t2\n":                 "turbostat",
		"# Total weight : 5\n# Overhead  Samples\n":               "perf mem report, and is not read: give the perf.data",
		"BE  Backend_Bound    35.3   40.1  % Slots\n":             "toplev --columns, and is not read: print it with -x,",
		"[\n{\"name\": \"Level1\", \"ph\": \"C\", \"pid\": 0}\n]": "toplev --json",
	} {
		_, err := source.New(strings.NewReader(text), "x")
		if !errors.Is(err, source.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
