package perfstat_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// An expected count is a line of testdata/corpus.tsv.
type expected struct {
	value   string // a number, "not counted" or "not supported"
	percent string
	noise   string
	group   string
}

// A place is where a count stands: the nth of its event in a scope of a table.
type place struct {
	table        int
	scope, event string
	nth          int
}

func (p place) String() string {
	return fmt.Sprintf("table %d scope %q event %q #%d", p.table, p.scope, p.event, p.nth)
}

type golden struct {
	counts  map[place]expected
	elapsed map[int][2]float64
}

// readGoldens reads testdata/corpus.tsv.
func readGoldens(t *testing.T) map[string]*golden {
	f, err := os.Open(filepath.Join("testdata", "corpus.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string]*golden{}
	var g *golden
	table := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if name, found := strings.CutPrefix(line, "## "); found {
			g = &golden{map[place]expected{}, map[int][2]float64{}}
			files[name] = g
			table = 0
			continue
		}
		if strings.HasPrefix(line, "# ") {
			continue
		}
		field := strings.Split(line, "\t")
		for len(field) < 7 {
			field = append(field, "")
		}
		if field[0] == "elapsed" {
			seconds, _ := strconv.ParseFloat(field[1], 64)
			spread, _ := strconv.ParseFloat(field[2], 64)
			g.elapsed[table] = [2]float64{seconds, spread}
			table++
			continue
		}
		n, err := strconv.Atoi(field[0])
		if err != nil {
			t.Fatalf("corpus.tsv: %q", line)
		}
		p := place{n, field[1], field[2], 0}
		for {
			if _, taken := g.counts[p]; !taken {
				break
			}
			p.nth++
		}
		g.counts[p] = expected{field[3], field[4], field[5], field[6]}
	}
	return files
}

// TestCorpus reads the published recordings and compares every count with the
// golden: each value, share, error and group, and that there are no others.
func TestCorpus(t *testing.T) {
	dir := testshared.Dir(t, "corpus", "perfstat")
	goldens := readGoldens(t)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".yaml") {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			g := goldens[name]
			if g == nil {
				t.Fatal("not in testdata/corpus.tsv")
			}
			checkFile(t, file, g)
		})
	}
	if seen != len(goldens) {
		t.Errorf("%d files, %d goldens", seen, len(goldens))
	}
}

func checkFile(t *testing.T, file string, g *golden) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := perfstat.NewReader(bytes.NewReader(content), filepath.Base(file), perfstat.Options{})
	left := len(g.counts)
	tables := 0
	for ; r.Next(); tables++ {
		left -= checkTable(t, r.Table(), tables, g)
	}
	if left > 0 {
		t.Errorf("%d counts are missing", left)
	}
	if len(g.counts) == 0 {
		if err := r.Err(); err == nil || tables > 0 {
			t.Errorf("a file without counts: got %d tables and error %v", tables, err)
		}
		return
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if r.Stats().Dropped > 0 {
		t.Errorf("%d counts dropped: %v", r.Stats().Dropped, r.Notes())
	}
	if !perfstat.Detect(content) {
		t.Error("not detected")
	}
}

// checkTable compares a table and returns how many counts it has.
func checkTable(t *testing.T, table *counts.Table, n int, g *golden) (found int) {
	for s, scope := range table.Scopes {
		nth := map[string]int{}
		for c, column := range table.Columns {
			cell := table.Cell(s, c)
			if cell.State == counts.Absent {
				continue
			}
			p := place{n, "", column.Event, nth[column.Event]}
			if scope.Kind != counts.Run && scope.Kind != counts.Interval {
				p.scope = scope.Label
			}
			nth[column.Event]++
			want, ok := g.counts[p]
			if !ok {
				t.Errorf("%v: got %v %v, want none", p, cell.State, cell.Value)
				continue
			}
			found++
			checkCell(t, p, cell, column.Group, want)
		}
	}
	if want, ok := g.elapsed[n]; ok && (table.Duration != want[0] || math.Abs(table.Elapsed-want[1]) > 1e-9*want[0]) {
		t.Errorf("table %d: elapsed %v ± %v, want %v", n, table.Duration, table.Elapsed, want)
	}
	return found
}

func checkCell(t *testing.T, p place, cell *counts.Cell, group int, want expected) {
	t.Helper()
	got := cell.State.String()
	if cell.Ok() {
		got = strconv.FormatFloat(cell.Value, 'f', -1, 64)
	}
	if got != want.value {
		t.Errorf("%v: got %s, want %s", p, got, want.value)
	}
	percent := 100.0
	if want.percent != "" {
		percent, _ = strconv.ParseFloat(want.percent, 64)
	}
	if cell.Ok() && math.Abs(cell.Coverage()*100-percent) > 1e-9 {
		t.Errorf("%v: on a counter %v %%, want %v %%", p, cell.Coverage()*100, percent)
	}
	if want.noise != "" && cell.Value > 0 {
		noise, _ := strconv.ParseFloat(want.noise, 64)
		if e := math.Sqrt(cell.Variance) / cell.Value * 100; math.Abs(e-max(noise, 0.005)) > 1e-9 {
			t.Errorf("%v: ± %v %%, want %v %%", p, e, noise)
		}
	} else if cell.Variance != 0 {
		t.Errorf("%v: variance %v, want none", p, cell.Variance)
	}
	if g := strconv.Itoa(group); g != want.group && !(g == "0" && want.group == "") {
		t.Errorf("%v: group %s, want %q", p, g, want.group)
	}
}

// TestLKP compares the intervals of three recordings with what LKP's own parser
// made of them: counts per second of each interval, under "i.".
func TestLKP(t *testing.T) {
	dir := testshared.Dir(t, "corpus", "perfstat")
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("lkp-perf-stat-%d", n)
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join(dir, name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			want := readLKP(t, filepath.Join(dir, name+".yaml"))
			compareLKP(t, perfstat.NewReader(f, name, perfstat.Options{}), want)
		})
	}
}

// An lkpFile is what a golden of LKP says. It leaves the recording's last
// interval out.
type lkpFile struct {
	intervals []map[string]float64 // "i." of each interval, and "time"
	rates     map[string]float64   // "ps.": sums over the intervals per second up to the recording's last timestamp
}

func readLKP(t *testing.T, file string) lkpFile {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g := lkpFile{rates: map[string]float64{}}
	for line := range strings.Lines(string(content)) {
		key, text, found := strings.Cut(strings.TrimSpace(line), ": ")
		value, err := strconv.ParseFloat(text, 64)
		if !found || err != nil {
			t.Fatalf("%s: %q", file, line)
		}
		switch {
		case key == "time":
			g.intervals = append(g.intervals, map[string]float64{"time": value})
		case strings.HasPrefix(key, "i."):
			g.intervals[len(g.intervals)-1][key[2:]] = value
		case strings.HasPrefix(key, "ps."):
			g.rates[key[3:]] = value
		}
	}
	return g
}

func compareLKP(t *testing.T, r *perfstat.Reader, want lkpFile) {
	sums := map[string]float64{}
	end := 0.0
	tables, compared := 0, 0
	for ; r.Next(); tables++ {
		table := r.Table()
		end = table.Start + table.Duration
		if tables >= len(want.intervals) {
			continue
		}
		interval := want.intervals[tables]
		if end != interval["time"] {
			t.Errorf("interval %d ends at %v, want %v", tables, end, interval["time"])
		}
		for key, value := range lkpCounts(table, interval) {
			sums[key] += value
			compared++
			if got := value / table.Duration; !near(got, interval[key]) {
				t.Errorf("interval %d: %s: %v per second, want %v", tables, key, got, interval[key])
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if tables != len(want.intervals)+1 {
		t.Errorf("%d intervals, want %d and the last", tables, len(want.intervals))
	}
	if compared < 22*len(want.intervals) {
		t.Errorf("only %d counts compared", compared)
	}
	for key, rate := range want.rates {
		if got := sums[key] / end; !near(got, rate) {
			t.Errorf("%s: %v per second, want %v", key, got, rate)
		}
	}
}

// lkpCounts returns a table's counts by the golden's keys. LKP took the unit of
// the file with blanks between its fields for the event: "msec" is the sum of
// both clocks.
func lkpCounts(table *counts.Table, golden map[string]float64) map[string]float64 {
	values := map[string]float64{}
	for i, c := range table.Columns {
		key := c.Event
		if _, ok := golden[key]; !ok {
			key = c.Unit
		}
		values[key] += table.Cell(0, i).Value
	}
	return values
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12*math.Abs(want) }

// TestDetectOthers makes sure that the other tools' recordings are not taken
// for perf stat's.
func TestDetectOthers(t *testing.T) {
	dir := testshared.Dir(t, "corpus")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "perfstat" && filepath.Ext(file) != ".yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if perfstat.Detect(content[:min(len(content), 64<<10)]) {
			t.Errorf("%s is taken for perf stat's", strings.TrimPrefix(file, dir))
		}
	}
}
