package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A stackSample is a sample as perf script prints it: the name of its thread and its
// frames, the innermost first.
type stackSample struct {
	comm   string
	frames []codeName
}

// A codeName is a function and its module, or one of both.
type codeName struct{ function, module string }

var perfFrame = regexp.MustCompile(`^\s+[0-9a-f]+ (.*) \((.*)\)$`)

// readStacks reads what perf script -F comm,ip,sym,dso prints.
func readStacks(text string) (list []stackSample) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		m := perfFrame.FindStringSubmatch(line)
		switch {
		case line == "":
		case m == nil:
			list = append(list, stackSample{comm: strings.TrimSpace(line)})
		case len(list) > 0:
			s := &list[len(list)-1]
			s.frames = append(s.frames, codeName{m[1], path.Base(m[2])})
		}
	}
	return list
}

// comparisons say for each view what perf has: the rows that a sample counts in.
var comparisons = []struct {
	name, perf string
	args       []string
	rows       func(s *stackSample) []codeName
}{
	{"threads by name", "--sort comm", []string{"--by", "comm"}, func(s *stackSample) []codeName { return []codeName{{s.comm, ""}} }},
	{"modules", "--sort dso", []string{"--by", "module"}, func(s *stackSample) []codeName { return []codeName{{"", s.frames[0].module}} }},
	{"functions", "--no-children", []string{"--by", "function"}, func(s *stackSample) []codeName { return s.frames[:1] }},
	{"functions with what they call", "--children", []string{"--children"}, func(s *stackSample) []codeName {
		seen := map[codeName]bool{}
		var list []codeName
		for _, f := range s.frames {
			if !seen[f] {
				list = append(list, f)
			}
			seen[f] = true
		}
		return list
	}},
	{"callers of `leaf`", "-g caller", []string{"--callers", "leaf"}, func(s *stackSample) []codeName {
		for i := len(s.frames) - 1; i >= 0; i-- {
			if s.frames[i].function == "leaf" {
				if i+1 == len(s.frames) {
					return []codeName{{"[thread " + s.comm + "]", ""}}
				}
				return s.frames[i+1 : i+2]
			}
		}
		return nil
	}},
	{"callees of `recurse`", "-g callee", []string{"--callees", "recurse"}, func(s *stackSample) []codeName {
		for i := range s.frames {
			if s.frames[i].function == "recurse" {
				return s.frames[max(0, i-1) : max(0, i-1)+1]
			}
		}
		return nil
	}},
}

// TestComparedWithPerf compares each view of a recording with the stacks that perf script
// prints of it, by row. Code of several names may have another one in perf: rows that differ
// have the same sum in each module. Code of no file has a row for each address in perf. -v prints the table of docs/profile.md.
func TestComparedWithPerf(t *testing.T) {
	t.Parallel()
	perf := needPerf(t)
	dir := t.TempDir()
	program, file := filepath.Join(dir, "calls"), filepath.Join(dir, "perf.data")
	if out, err := exec.Command("gcc", "-g", "-O0", "-pthread", "-o", program, "testdata/calls.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, out)
	}
	if out, err := perf.command("record", "-q", "-g", "-e", "cpu-clock", "-F", "5000", "-o", file, program).CombinedOutput(); err != nil {
		t.Skipf("perf record: %v\n%s", err, out)
	}
	stacks := readStacks(perf.output(t, "script", "-i", file, "--no-inline", "-F", "comm,ip,sym,dso"))
	t.Logf("%d samples\n| view | `perf report` | rows | equal | aliases | without a name |\n|---|---|---|---|---|---|", len(stacks))
	for _, c := range comparisons {
		want := map[codeName]int{}
		nameless, unnamed := 0, map[string]int{}
		for i := range stacks {
			if len(stacks[i].frames) == 0 {
				continue
			}
			for _, row := range c.rows(&stacks[i]) {
				if row.function == "[unknown]" || row.module == "[unknown]" {
					nameless++
					unnamed[row.module]++
					continue
				}
				want[row]++
			}
		}
		got := rowsOf(t, append(append([]string{"report", "--all", "--no-inline", "--format", "json"}, c.args...), file)...)
		equal, aliases := 0, 0
		for row, n := range want {
			if got[row] == n {
				equal++
				delete(got, row)
				delete(want, row)
			}
		}
		var other []string
		for module, rows := range byModule(want) {
			// Code of several names is in other rows, and the sum is the same. Some code has a
			// name here and none in perf, such as a library's calls of itself.
			rest := byModule(got)[module]
			if more := sumOf(rest) - sumOf(rows); more < 0 || more > unnamed[module] || c.args[0] == "--by" && c.args[1] != "function" {
				other = append(other, fmt.Sprintf("%s: %v, perf has %v", module, rest, rows))
				continue
			}
			aliases += len(rows)
		}
		t.Logf("| %s | `%s` | %d | %d | %d | %d |", c.name, c.perf, equal+len(want), equal, aliases, nameless)
		// Three names more: how many aliases the samples hit is chance.
		if len(other) > 0 || equal < 2 || aliases > equal/5+3 {
			t.Errorf("%s: %s", c.name, strings.Join(other, "; "))
		}
	}
}

// byModule divides rows by their modules; code of no file is not among them.
func byModule(rows map[codeName]int) map[string]map[string]int {
	out := map[string]map[string]int{}
	for row, n := range rows {
		if row.function == "[unknown]" {
			continue
		}
		if out[row.module] == nil {
			out[row.module] = map[string]int{}
		}
		out[row.module][row.function] = n
	}
	return out
}

func sumOf[K comparable](rows map[K]int) (sum int) {
	for _, n := range rows {
		sum += n
	}
	return sum
}

// rowsOf returns the samples of a report's rows.
func rowsOf(t *testing.T, args ...string) map[codeName]int {
	t.Helper()
	var r struct {
		Accounts []struct {
			Scope struct {
				Kind, Comm, Function, Module string
				Samples                      int `json:"share_samples"`
			}
		}
	}
	if err := json.Unmarshal([]byte(runMain(t, args...)), &r); err != nil {
		t.Fatal(err)
	}
	rows := map[codeName]int{}
	for _, a := range r.Accounts {
		s := &a.Scope
		switch s.Kind {
		case "comm":
			rows[codeName{s.Comm, ""}] += s.Samples
		case "module":
			rows[codeName{"", s.Module}] += s.Samples
		case "function":
			rows[codeName{s.Function, s.Module}] += s.Samples
		}
	}
	return rows
}

// TestPerfScriptText compares reports of a recording with those of the text that perf script prints
// of it: the samples of each module and thread name, and of functions that both name.
func TestPerfScriptText(t *testing.T) {
	t.Parallel()
	perf := needPerf(t)
	dir := t.TempDir()
	program, file, text := filepath.Join(dir, "calls"), filepath.Join(dir, "perf.data"), filepath.Join(dir, "samples.txt")
	if out, err := exec.Command("gcc", "-g", "-O0", "-pthread", "-o", program, "testdata/calls.c").CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, out)
	}
	if out, err := perf.command("record", "-q", "-g", "-e", "cpu-clock", "-F", "5000", "-o", file, program).CombinedOutput(); err != nil {
		t.Skipf("perf record: %v\n%s", err, out)
	}
	forms := [][]string{{"--no-inline"}, {"--header", "-F", "+pid,+period", "--no-inline"}}
	for _, args := range forms[:testlong.Size(1, len(forms))] {
		printed := perf.output(t, append([]string{"script", "-i", file}, args...)...)
		if err := os.WriteFile(text, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, by := range []string{"module", "comm", "function"} {
			report := []string{"report", "--all", "--format", "json", "--by", by}
			want, got := rowsOf(t, append(report, "--no-inline", file)...), rowsOf(t, append(report, text)...)
			if sumOf(want) != sumOf(got) || sumOf(want) == 0 {
				t.Errorf("%v by %s: %d samples, the recording has %d", args, by, sumOf(got), sumOf(want))
			}
			equal := 0
			for row, n := range got {
				if want[row] == n {
					equal += n
				} else if by != "function" {
					t.Errorf("%v by %s: %v has %d samples, the recording %d", args, by, row, n, want[row])
				}
			}
			if 10*equal < 8*sumOf(want) { // code of several names, or of none
				t.Errorf("%v by %s: of %d samples %d are in rows that are equal", args, by, sumOf(want), equal)
			}
		}
	}
}
