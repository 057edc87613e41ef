package perfstat_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// software are events that every Linux counts, also without a PMU.
const software = "task-clock,context-switches,page-faults,cpu-clock"

// perf runs perf and returns what it wrote to standard error, where perf stat
// prints its counts. The test is skipped where perf cannot do it.
func perf(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "perf", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Skipf("perf cannot do it here: %v: %.200s", err, stderr.Bytes())
	}
	return stderr.Bytes()
}

// locales returns the environments to run perf in: the C locale and those with
// other separators, which are compiled for the test where that is possible. Without
// -long it is one of these.
func locales(t *testing.T) map[string][]string {
	all := map[string][]string{"C": nil}
	dir := t.TempDir()
	for _, l := range []struct{ name, charset string }{
		{"de_DE", "UTF-8"}, {"fr_FR", "UTF-8"}, {"fr_FR", "ISO-8859-1"}, {"de_CH", "UTF-8"}, {"en_IN", "UTF-8"},
	} {
		if len(all) > 1 && !testlong.Enabled() {
			break
		}
		name := l.name + "." + l.charset
		if exec.Command("localedef", "-i", l.name, "-f", l.charset, filepath.Join(dir, name)).Run() != nil {
			t.Logf("without locale %s", name)
			continue
		}
		all[name] = []string{"LOCPATH=" + dir, "LC_ALL=" + name}
	}
	return all
}

// TestLive compares the reader with the perf that is installed.
func TestLive(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("needs perf")
	}
	envs := locales(t)
	t.Run("forms", func(t *testing.T) { testForms(t, envs) })
	t.Run("runs", func(t *testing.T) { testRuns(t, envs) })
}

// testForms records counts once. It has perf print them in every form, by every kind of
// place, in several locales. All must say the same. Without -long it is every form of one
// place, and three forms of the others.
func testForms(t *testing.T, envs map[string][]string) {
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"whole", []string{"-a"}},
		{"cpu", []string{"-a", "-A"}},
		{"core", []string{"-a", "--per-core"}},
		{"die", []string{"-a", "--per-die"}},
		{"socket", []string{"-a", "--per-socket"}},
		{"node", []string{"-a", "--per-node"}},
		{"interval", []string{"-a", "-I", "20"}},
		{"interval-cpu", []string{"-a", "-A", "-I", "20"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			switch mode.name {
			case "die", "node", "interval":
				testlong.Only(t)
			}
			few := mode.name != "cpu" && !testlong.Enabled()
			data := filepath.Join(t.TempDir(), "stat.data")
			args := append([]string{"stat", "-e", software}, mode.args...)
			perf(t, nil, append(args, "record", "-o", data, "sleep", "0.07")...)
			want := tables(t, perf(t, nil, "stat", "-j", "report", "-i", data), "perf-stat-json")
			for locale, env := range envs {
				for _, form := range []struct {
					kind string
					args []string
				}{
					{"perf-stat-text", nil}, {"perf-stat-json", []string{"-j"}},
					{"perf-stat-csv", []string{"-x,"}}, {"perf-stat-csv", []string{"-x;"}}, {"perf-stat-csv", []string{"-x:"}},
					{"perf-stat-csv", []string{"-x", "\t"}}, {"perf-stat-csv", []string{"-x "}}, {"perf-stat-csv", []string{"-x::"}}, {"perf-stat-csv", []string{"-x@#"}},
				} {
					if few && len(form.args) > 0 && form.args[0] != "-j" && form.args[0] != "-x;" {
						continue
					}
					output := perf(t, env, append(append([]string{"stat"}, form.args...), "report", "-i", data)...)
					if err := agree(tables(t, output, form.kind), want); err != nil {
						t.Errorf("%s %s %q: %v:\n%s", locale, form.kind, form.args, err, output)
					}
				}
			}
		})
	}
}

// tables reads an output whole.
func tables(t *testing.T, output []byte, kind string) (all []*counts.Table) {
	t.Helper()
	if !perfstat.Detect(output) {
		t.Errorf("not recognised:\n%s", output)
	}
	r := perfstat.NewReader(bytes.NewReader(output), "perf", perfstat.Options{})
	for r.Next() {
		all = append(all, r.Table().Clone())
		if r.Kind() != kind {
			t.Errorf("read as %s, want %s:\n%s", r.Kind(), kind, output)
		}
	}
	if err := r.Err(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
	if r.Stats().Dropped > 0 {
		t.Errorf("counts were dropped of:\n%s", output)
	}
	return all
}

// agree compares two readings of the same counts. Text and fields have clocks
// with two decimals, JSON with six.
func agree(got, want []*counts.Table) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d tables, want %d", len(got), len(want))
	}
	for n, g := range got {
		w := want[n]
		if len(g.Scopes) != len(w.Scopes) || len(g.Columns) != len(w.Columns) {
			return fmt.Errorf("table %d: %d scopes and %d columns, want %d and %d", n, len(g.Scopes), len(g.Columns), len(w.Scopes), len(w.Columns))
		}
		for s := range w.Scopes {
			gs, ws := g.Scopes[s], w.Scopes[s]
			if ws.Kind == counts.Run {
				gs.Label = ws.Label // only text has it
			}
			if gs != ws {
				return fmt.Errorf("table %d: scope %+v, want %+v", n, gs, ws)
			}
			for c := range w.Columns {
				gc, wc := g.Cell(s, c), w.Cell(s, c)
				if g.Columns[c].Event != w.Columns[c].Event || g.Columns[c].Unit != w.Columns[c].Unit {
					return fmt.Errorf("table %d: column %v, want %v", n, g.Columns[c], w.Columns[c])
				}
				tolerance := 0.0
				if w.Columns[c].Unit == "msec" {
					tolerance = 0.0051
				}
				if gc.State != wc.State || math.Abs(gc.Value-wc.Value) > tolerance {
					return fmt.Errorf("table %d, %s, %s: %v %v, want %v %v", n, ws.Label, w.Columns[c].Event, gc.State, gc.Value, wc.State, wc.Value)
				}
			}
		}
		if w.Interval != g.Interval || w.Interval && (g.Start != w.Start || g.Duration != w.Duration) {
			return fmt.Errorf("table %d: interval from %v, %v s, want %v, %v s", n, g.Start, g.Duration, w.Start, w.Duration)
		}
	}
	return nil
}

// testRuns reads what perf stat prints when it runs a program, in the modes that
// cannot be recorded.
func testRuns(t *testing.T, envs map[string][]string) {
	for _, mode := range []struct {
		name  string
		args  []string
		check func(*testing.T, []*counts.Table)
	}{
		{"repeats", []string{"-r", "3", "-e", software, "sleep", "0.01"}, checkRepeats},
		{"unsupported", []string{"-e", "cycles," + software + ",duration_time", "sleep", "0.01"}, checkUnsupported},
		{"cgroup", []string{"-a", "--for-each-cgroup", "/", "-e", software, "sleep", "0.01"}, checkCgroup},
		{"threads", []string{"-a", "--per-thread", "-e", software, "sleep", "0.01"}, checkThreads},
	} {
		for locale, env := range envs {
			for _, form := range []struct{ kind, arg string }{{"perf-stat-text", "-B"}, {"perf-stat-json", "-j"}, {"perf-stat-csv", "-x,"}, {"perf-stat-csv", "-x;"}} {
				if locale != "C" && form.kind != "perf-stat-text" && !testlong.Enabled() {
					continue
				}
				t.Run(mode.name+" "+locale+" "+form.arg, func(t *testing.T) {
					mode.check(t, tables(t, perf(t, env, append([]string{"stat", form.arg}, mode.args...)...), form.kind))
				})
			}
		}
	}
}

func checkRepeats(t *testing.T, got []*counts.Table) {
	if len(got) != 1 {
		t.Fatalf("%d tables of repeated runs, want 1", len(got))
	}
	clock := got[0].Cell(0, 0)
	if !clock.Ok() || clock.Value <= 0 || clock.Variance <= 0 || clock.Variance > clock.Value*clock.Value {
		t.Errorf("task-clock of repeated runs: %+v", *clock)
	}
}

func checkUnsupported(t *testing.T, got []*counts.Table) {
	if len(got) != 1 || len(got[0].Columns) != 6 {
		t.Fatalf("%d tables, want 1 of 6 events", len(got))
	}
	for i, c := range got[0].Columns {
		if cell := got[0].Cell(0, i); !cell.Ok() && c.Event != "cycles" && c.Event != "cycles:u" {
			t.Errorf("%s: %+v", c.Event, *cell)
		} else if c.Event == "duration_time" && math.Abs(cell.Value/1e9-got[0].Duration) > 1e-5*got[0].Duration {
			t.Errorf("%v s, but duration_time is %v ns", got[0].Duration, cell.Value)
		}
	}
}

func checkCgroup(t *testing.T, got []*counts.Table) {
	if len(got) != 1 || len(got[0].Scopes) != 1 {
		t.Fatalf("%d tables by cgroup, want 1 of one cgroup", len(got))
	}
	if s := got[0].Scopes[0]; s.Kind != counts.Cgroup || s.Cgroup != "/" {
		t.Errorf("scope %+v, want the cgroup /", s)
	}
}

func checkThreads(t *testing.T, got []*counts.Table) {
	if len(got) != 1 || len(got[0].Scopes) == 0 {
		t.Fatalf("%d tables by thread, want 1", len(got))
	}
	for _, s := range got[0].Scopes {
		if s.Kind != counts.Thread || s.TID <= 0 {
			t.Errorf("scope %+v, want a thread", s)
		}
	}
}
