package perfdata_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A total is what samples of an event come to.
type total struct{ samples, period int64 }

// work is a command that computes, faults and switches a little.
func work() []string {
	const brief = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; ls -R /etc >/dev/null; sleep 0.01; ls /usr/include >/dev/null"
	if testlong.Enabled() {
		return []string{"sh", "-c", brief + "; ls -R /usr/include >/dev/null"}
	}
	return []string{"sh", "-c", brief}
}

// record records work with perf into dir, or skips the test where perf cannot.
func record(t *testing.T, dir, file string, args ...string) string {
	t.Helper()
	perf := needPerf(t)
	path := filepath.Join(dir, file)
	c := exec.Command(perf, append(append([]string{}, args...), "--")...)
	c.Args = append(c.Args, work()...)
	c.Dir = dir
	var msg bytes.Buffer
	c.Stderr = &msg
	out, err := c.Output()
	if err != nil {
		t.Skipf("perf %s cannot record here: %v: %.300s", strings.Join(args, " "), err, msg.Bytes())
	}
	if len(out) > 0 { // a pipe
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// scriptTotals is what perf script makes of a recording.
func scriptTotals(t *testing.T, path string) map[string]total {
	t.Helper()
	c := exec.Command(needPerf(t), "script", "-i", path, "-G", "-F", "period,event")
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	out, err := c.Output()
	if err != nil { // perf 6.1 fails now and then: "failed to process type: 9 [Bad address]"
		t.Skipf("perf script cannot read what perf recorded: %v", err)
	}
	totals := map[string]total{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 2 {
			continue
		}
		period, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			continue
		}
		x := totals[strings.TrimSuffix(f[1], ":")]
		x.samples++
		x.period += period
		totals[strings.TrimSuffix(f[1], ":")] = x
	}
	return totals
}

// tableTotals is what a TableReader makes of a recording, over all scopes and
// intervals.
func tableTotals(t *testing.T, path string, opts perfdata.TableOptions) map[string]total {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	totals := map[string]total{}
	r := perfdata.NewTableReader(f, path, opts)
	for r.Next() {
		table := r.Table()
		for i := range table.Scopes {
			for j, c := range table.Columns {
				cell := table.Cell(i, j)
				x := totals[c.Event]
				x.samples += cell.Samples
				if c.Unit == "msec" { // as perf scales the clocks' nanoseconds
					cell.Value *= 1e6
				}
				x.period += int64(math.Round(cell.Value))
				totals[c.Event] = x
			}
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return totals
}

// TestLiveRecord records with perf, here and now, and compares what we make of
// it with what perf script does. Without -long it records what the others are
// combinations of.
func TestLiveRecord(t *testing.T) {
	const freq = "9000"
	for _, tt := range []struct {
		name  string
		short bool // also without -long
		pipe  bool // also into a pipe
		args  []string
	}{
		{"plain", false, false, []string{"-e", "cpu-clock"}},
		{"several", true, true, []string{"-e", "cpu-clock,task-clock,page-faults,context-switches"}},
		{"callchains", false, false, []string{"-e", "cpu-clock,page-faults", "-g"}},
		{"compressed", true, true, []string{"-e", "cpu-clock,page-faults", "-g", "-z"}},
		{"group", false, true, []string{"-e", "{cpu-clock,task-clock,page-faults}:S"}},
		{"group with callchains", true, false, []string{"-e", "{cpu-clock,page-faults}:S", "-g", "--all-cgroups"}},
		{"dwarf", false, true, []string{"-e", "cpu-clock", "--call-graph", "dwarf,1024"}},
		{"cgroups", false, false, []string{"-e", "cpu-clock", "--all-cgroups", "--namespaces"}},
		{"fixed", true, false, []string{"-e", "page-faults", "-c", "3", "-d", "-W", "--phys-data"}},
		{"per thread", false, false, []string{"-e", "task-clock,page-faults", "--per-thread"}},
		{"switches", false, false, []string{"-e", "cpu-clock", "--switch-events", "-s"}},
		{"all CPUs", false, false, []string{"-a", "-e", "cpu-clock,page-faults"}},
		{"registers", false, false, []string{"-e", "cpu-clock", "--user-regs=ip,sp", "--intr-regs=ip,sp"}},
	} {
		for _, pipe := range []bool{false, true} {
			short := tt.short && (!pipe || tt.name == "compressed")
			if pipe && !tt.pipe || !short && !testlong.Enabled() {
				continue
			}
			t.Run(fmt.Sprintf("%s pipe=%v", tt.name, pipe), func(t *testing.T) {
				t.Parallel()
				args := []string{"record", "-q", "-o", "out.data"}
				if pipe {
					args[3] = "-"
				}
				if tt.name != "fixed" {
					args = append(args, "-F", freq)
				}
				path := record(t, t.TempDir(), "out.data", append(args, tt.args...)...)
				compareTotals(t, path)
			})
		}
	}
}

// TestLiveTestdata compares the recordings of testdata with perf.
func TestLiveTestdata(t *testing.T) {
	needPerf(t)
	for _, path := range testdata(t) {
		if strings.Contains(path, "stat") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) { compareTotals(t, path) })
	}
}

func compareTotals(t *testing.T, path string) {
	t.Helper()
	want := scriptTotals(t, path)
	if len(want) == 0 {
		t.Fatal("perf script shows nothing")
	}
	for _, opts := range []perfdata.TableOptions{
		{}, {By: counts.By(0).With(counts.Thread).With(counts.CPU)}, {By: counts.By(0).With(counts.Process)}, {Interval: 1e6},
	} {
		got := tableTotals(t, path, opts)
		for event, x := range want {
			if got[event] != x {
				t.Errorf("%s, %+v: %+v, want perf's %+v", event, opts, got[event], x)
			}
		}
		for event, x := range got {
			if _, ok := want[event]; !ok && x.samples > 0 {
				t.Errorf("%s: %+v, none in perf script", event, x)
			}
		}
	}
	compareStats(t, path)
}

// compareStats compares the numbers of records with perf report --stats.
func compareStats(t *testing.T, path string) {
	t.Helper()
	w := walk(path)
	if w.err != nil {
		t.Fatal(w.err)
	}
	got := map[string]int64{}
	for x, n := range w.stats.Records {
		got[x.String()] = n
	}
	section := false
	for line := range strings.Lines(run(t, needPerf(t), "report", "--stats", "-i", path)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " events:")
		if section = section && ok || strings.HasPrefix(line, "Aggregated"); !ok || !section {
			section = section || name == ""
			continue
		}
		n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if have, known := got[perfName(name)]; name != "TOTAL" && known && have != n || name == "SAMPLE" && have != n {
			t.Errorf("%d records of %s, perf report says %d", have, name, n)
		}
	}
}

// perfName is how we call a record that perf report --stats counts.
func perfName(name string) string {
	switch name {
	case "BPF":
		return "BPF_EVENT"
	case "ATTR", "FEATURE":
		return "" // perf leaves out some
	}
	return name
}

// TestLiveStat compares counts of perf stat record with perf stat report.
func TestLiveStat(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"command", []string{"-e", "task-clock,page-faults,context-switches"}},
		{"group", []string{"-e", "{page-faults,context-switches},minor-faults"}},
		{"all CPUs", []string{"-a", "-e", "cpu-clock,page-faults"}},
		{"each CPU", []string{"-a", "-A", "-e", "cpu-clock,page-faults"}},
		{"intervals", []string{"-a", "-I", "10", "-e", "context-switches,page-faults"}},
		{"refused", []string{"-e", "page-faults,cycles"}},
	} {
		for _, pipe := range []bool{false, true} {
			if pipe && tt.name != "intervals" && !testlong.Enabled() {
				continue
			}
			t.Run(fmt.Sprintf("%s pipe=%v", tt.name, pipe), func(t *testing.T) {
				out := "stat.data"
				if pipe {
					out = "-"
				}
				path := record(t, t.TempDir(), "stat.data", append([]string{"stat", "record", "-o", out}, tt.args...)...)
				compareStat(t, path)
			})
		}
	}
}

// statLine is a count that perf stat report prints, behind the interval's time or
// the processor.
var statLine = regexp.MustCompile(`(?m)^ *(?:[0-9.]+ +)?(?:CPU[0-9]+ +)?([0-9.]+) +(?:msec )?([a-z][a-z-]+) `)

func compareStat(t *testing.T, path string) {
	t.Helper()
	var msg bytes.Buffer
	c := exec.Command(needPerf(t), "stat", "report", "-i", path)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	c.Stderr = &msg
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, msg.Bytes())
	}
	want := map[string]float64{}
	for _, m := range statLine.FindAllStringSubmatch(msg.String(), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		want[m[2]] += v
	}
	if len(want) == 0 {
		t.Fatalf("perf stat report shows nothing:\n%s", msg.Bytes())
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := perfdata.NewTableReader(f, path, perfdata.TableOptions{})
	got := map[string]float64{}
	for r.Next() {
		table := r.Table()
		for i := range table.Scopes {
			for j, column := range table.Columns {
				if cell := table.Cell(i, j); cell.Ok() {
					got[column.Event] += cell.Value
				}
			}
		}
	}
	if r.Err() != nil || r.Kind() != "perf-stat-record" {
		t.Fatal(r.Kind(), r.Err())
	}
	for event, v := range want {
		if math.Abs(got[event]-v) > 1 && math.Abs(got[event]/v-1) > 1e-3 {
			t.Errorf("%s: %g, perf stat report says %g", event, got[event], v)
		}
	}
}

// TestLiveShared compares the periods of the corpus's samples with those of perf script, for
// files that it can read. Without -long it leaves out the large ones.
func TestLiveShared(t *testing.T) {
	dir := testshared.Dir(t, "corpus", "perfdata")
	needPerf(t)
	for name, truth := range readTruth[perfTruth](t, "perf6.1-truth.json") {
		sum := int64(0)
		for _, n := range truth.Script {
			sum += n
		}
		if truth.ScriptRC != 0 || sum != truth.Samples || sum == 0 || strings.HasSuffix(name, ".gz") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Size() > 256<<10 {
				testlong.Only(t)
			}
			got := tableTotals(t, path, perfdata.TableOptions{})
			for event, want := range scriptTotals(t, path) {
				have, ok := got[event]
				if !ok {
					have, ok = got[withoutHost(event)]
				}
				if have != want && ok {
					t.Errorf("%s: %+v, want perf's %+v", event, have, want)
				} else if !ok {
					t.Errorf("%s: not in %v", event, got)
				}
			}
		})
	}
}

// TestLiveDir reads a directory of perf record --threads.
func TestLiveDir(t *testing.T) {
	for i, args := range [][]string{{"-z"}, {}} {
		if i > 0 && !testlong.Enabled() {
			break
		}
		dir := filepath.Join(t.TempDir(), "rec")
		record(t, t.TempDir(), "unused", append([]string{"record", "-q", "--threads", "-F", "9000", "-e", "cpu-clock,page-faults", "-o", dir}, args...)...)
		d, err := perfdata.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if len(d.Parts) == 0 {
			t.Skip("this perf does not write directories")
		}
		want := scriptTotals(t, dir)
		r := perfdata.NewTableReader(d.Head, dir, perfdata.TableOptions{Reader: perfdata.Options{Parts: d.Parts}, Interval: 1e7})
		got := map[string]int64{}
		for r.Next() {
			for j, c := range r.Table().Columns {
				got[c.Event] += r.Table().Cell(0, j).Samples
			}
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		for event, x := range want {
			if got[event] != x.samples {
				t.Errorf("%v, %s: %d samples, want perf's %d", args, event, got[event], x.samples)
			}
		}
	}
}
