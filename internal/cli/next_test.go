package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A nextReport is what the tests read of a report in JSON.
type nextReport struct {
	Accounts []struct {
		Bottleneck []string
		Nodes      []struct {
			Name  string
			Value *float64
		}
		Next []struct{ Command, Why string }
	}
}

// commands are those that an account names to go on.
func (r *nextReport) commands() []string {
	var list []string
	for _, a := range r.Accounts {
		for _, s := range a.Next {
			list = append(list, s.Command)
		}
	}
	return list
}

func parseNext(t *testing.T, text string) *nextReport {
	t.Helper()
	r := &nextReport{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return r
}

// shellWords takes a command line apart as a shell does.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestNextWorks runs every command that accounts of recordings name to go on: the
// program's own must work, and perf's have an event that perf can read and
// something to run.
func TestNextWorks(t *testing.T) {
	t.Chdir("../..")
	files := [][]string{{"examples/core2.txt"}, {"examples/power7-cpi.txt"}, {"examples/walk/columns-1.txt"}, {"--workload", "hpc", "examples/walk/columns-2.txt"},
		{"examples/walk/columns.callgrind"}, {"--sysroot", "examples/functions", "examples/functions.data"}}
	for cpu, pattern := range map[string]string{"skylake": "skl-1.csv", "icelakex": "icx-1.csv", "alderlake:core": "adl-glc-1.csv", "sierraforest": "srf-1.csv", "ivybridge": "ivb-1.csv"} {
		files = append(files, []string{"--cpu", cpu, filepath.Join(testshared.Dir(t, "oracle", "tma"), pattern)})
	}
	ran := map[string]int{}
	for _, args := range files {
		text := runMain(t, append([]string{"report", "--format", "json"}, args...)...)
		if err := testschema.Validate(t, report.Schema[report.Accounts](), text); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		r := parseNext(t, text)
		if len(r.Accounts[0].Bottleneck) > 0 && len(r.commands()) < 2 {
			t.Errorf("%v: a bottleneck, and only %q", args, r.commands())
		}
		for _, line := range r.commands() {
			words := shellWords(t, line)
			ran[words[0]+" "+words[1]]++
			switch words[0] {
			case "cyclestack":
				var out, msg bytes.Buffer
				if status := Main(t.Context(), words[1:], strings.NewReader(""), &out, &msg); status != 0 || out.Len() == 0 {
					t.Errorf("%v: %s: status %d: %s", args, line, status, msg.String())
				}
			case "perf":
				if i := slices.Index(words, "--"); words[1] != "record" || words[2] != "-e" || i < 4 || i == len(words)-1 {
					t.Errorf("%v: %s", args, line)
				}
			default:
				t.Errorf("%v: %s", args, line)
			}
		}
	}
	for _, kind := range []string{"cyclestack plan", "cyclestack report", "cyclestack explain", "perf record"} {
		if ran[kind] == 0 {
			t.Errorf("no %s among %v", kind, ran)
		}
	}
}

// TestNextLive goes on from a live account by the commands that it names: the one
// for the parts of the bottleneck makes these known.
func TestNextLive(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	k.Value = testkernel.BackEndBound
	_, text, status := call(k, "stat", "--format", "json", "--level", "1", "--workload", "hpc", "--", "sleep", "0")
	if status != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	r := parseNext(t, text)
	if got := fmt.Sprint(r.Accounts[0].Bottleneck); got != "[Backend_Bound]" {
		t.Fatalf("bottleneck %s", got)
	}
	commands := r.commands()
	want := []string{"cyclestack stat --nodes 'Backend_Bound.*' --level 2 --workload hpc -- sleep 0", "cyclestack record --nodes Backend_Bound -- sleep 0"}
	if len(commands) != 3 || !slices.Equal(commands[:2], want) {
		t.Fatalf("commands %q, want %q and explain", commands, want)
	}
	words := shellWords(t, commands[0])
	_, text, status = call(k, append([]string{"stat", "--format", "json"}, words[2:]...)...)
	if status != 0 {
		t.Fatalf("%s: status %d: %s", commands[0], status, text)
	}
	r = parseNext(t, text)
	known := map[string]bool{}
	for _, n := range r.Accounts[0].Nodes {
		known[n.Name] = n.Value != nil
	}
	if !known["Memory_Bound"] || !known["Core_Bound"] {
		t.Errorf("%s: known are %v", commands[0], known)
	}
	if next := r.commands(); len(next) == 0 || next[0] == commands[0] {
		t.Errorf("%s: leads to %q", commands[0], next)
	}
}

// TestNextPlace runs the commands that reports of places name to go on.
func TestNextPlace(t *testing.T) {
	t.Chdir("../..")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--sysroot", "examples/walk/bin", "examples/walk/columns.data"}, "cyclestack annotate --sysroot examples/walk/bin examples/walk/columns.data down_columns"},
		{[]string{"--cpu", "core2", "--sysroot", "examples/annotate", "examples/annotate.data"}, "cyclestack annotate --cpu core2 --sysroot examples/annotate examples/annotate.data solve"},
		{[]string{"examples/walk/columns.callgrind"}, "cyclestack report --by line examples/walk/columns.callgrind"},
		{[]string{"--by", "module", "--time", "0,0.01", "--tid", "42", "--sysroot", "examples/functions", "examples/levels.data", "examples/levels.data"},
			"cyclestack report --by function --sysroot examples/functions --time 0,0.01 --thread 42 examples/levels.data examples/levels.data"},
		{[]string{"--by", "module", "--together", "examples/functions.data", "examples/functions.data"},
			"cyclestack report --by function --together examples/functions.data examples/functions.data"},
		{[]string{"--by", "run", "--process", "42", "--sysroot", "examples/functions", "examples/functions.data"},
			"cyclestack report --by function --sysroot examples/functions --process 42 examples/functions.data"},
		{[]string{"--sysroot", "examples/functions", "examples/functions.data"}, ""}, // of a map, without code
	} {
		text := runMain(t, append([]string{"report", "--by", "function", "--width", "200"}, tt.args...)...)
		got := ""
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "  next    "); ok {
				got, _, _ = strings.Cut(strings.TrimSpace(rest), "     ")
			}
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
		if got != "" {
			runMain(t, shellWords(t, got)[1:]...)
		}
	}
}

// TestDrillDownRivals: where the errors of two nodes overlap, the parts of both are
// counted.
func TestDrillDownRivals(t *testing.T) {
	t.Parallel()
	k := testkernel.Skylake(1)
	k.Value = func(e perfevent.Event) float64 {
		v := testkernel.BackEndBound(e)
		if name := "CYCLE_ACTIVITY.STALLS_"; strings.HasPrefix(e.Name, name) && !strings.HasPrefix(e.Name, name+"TOTAL") {
			v *= 0.351 / 0.7 // the stalls of memory are half of all
		}
		return v
	}
	_, stderr, status := call(k, "stat", "-v", "--drilldown", "--", "./app")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, w := range []string{"◄ as likely as", "DRAM_Bound", "Ports_Utilization"} {
		if !strings.Contains(stderr, w) {
			t.Errorf("no %s in\n%s", w, stderr)
		}
	}
}
