package samples_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// unwindPrograms are recorded with copies of their stacks.
var unwindPrograms = []struct {
	name, build, source string
	want                string // calls that some stack must have, the outermost first
	long                bool
	perf                bool // perf 6.1 with libunwind unwinds it as well; of the others it has the innermost call
}{
	{"c", "gcc -O2 -fomit-frame-pointer", "signals.c", "main;recurse.*;recurse.*;spin", false, true},
	{"c-stripped", "gcc -O2 -fomit-frame-pointer -s", "signals.c", "qsort_r.*msort_with_tmp", true, true},
	{"c-debug-frame", "gcc -g -O2 -fno-asynchronous-unwind-tables -fno-exceptions", "signals.c", "main;recurse.*;recurse.*;spin", true, false},
	{"c-static", "gcc -O1 -static", "signals.c", "main;recurse.*;spin", true, false},
	{"c++", "g++ -g -O2", "throws.cc", "main;thrower.*;thrower.*;_Unwind_Resume", false, true},
	{"go", "go build", "deep.go", "runtime.main;main.main;main.deep;main.deep;main.deep", false, false},
	{"go-stripped", "go build -ldflags=-s", "deep.go", "runtime.main;main.main;main.deep;main.deep;main.deep", true, false},
}

// nameless matches the frames whose names perf and cyclestack choose differently: code
// without a symbol, stubs of the PLT, the return from a signal handler.
var nameless = regexp.MustCompile(`^(\[.*\]|0x[0-9a-f]+|.*@plt|_init|__restore_rt|)$`)

// TestUnwindAgainstPerf compares stacks that are unwound from their copies with those of
// perf, which uses libunwind or libdw.
func TestUnwindAgainstPerf(t *testing.T) {
	t.Parallel()
	for _, p := range unwindPrograms {
		t.Run(p.name, func(t *testing.T) {
			if p.long {
				testlong.Only(t)
			}
			data := recordStacks(t, p.build, p.source)
			s, err := open(t, data).Stacks(samples.Options{By: counts.Function, NoInline: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, total := map[string]float64{}, 0.0
			for x := range s.All() {
				parts := []string{x.Thread}
				for _, f := range x.Frames {
					parts = append(parts, f.Function)
				}
				total += float64(x.Cells[0].Samples)
				got[plainStack(parts)] += float64(x.Cells[0].Samples)
			}
			if total < 20 {
				t.Skipf("only %v samples", total)
			}
			has := regexp.MustCompile(p.want)
			if !anyKey(got, has) {
				t.Errorf("no stack has %s", p.want)
			}
			if !p.perf {
				return
			}
			out, err := exec.Command("perf", "script", "-i", data, "-F", "comm,ip,sym", "--no-inline").Output()
			if err != nil {
				t.Skipf("perf script: %v", err)
			}
			peer := map[string]float64{}
			for stack, n := range collapse(out) {
				peer[plainStack(strings.Split(stack, ";"))] += n
			}
			compareStacks(t, got, peer, total)
		})
	}
}

// compareStacks demands that nearly all samples have the same stack. In code that is not
// described, each follows rules of its own.
func compareStacks(t *testing.T, got, want map[string]float64, total float64) {
	t.Helper()
	same := 0.0
	for stack, n := range want {
		same += min(n, got[stack])
	}
	t.Logf("%v of %v samples have the same stack", same, total)
	if same >= 0.97*total {
		return
	}
	t.Errorf("only %v of %v samples have the same stack", same, total)
	shown := 0
	for stack := range maps.Keys(want) {
		if n := want[stack] - got[stack]; n > 0 && shown < 5 {
			shown++
			t.Logf("perf has %v more of %s", n, stack)
		}
	}
	for stack := range maps.Keys(got) {
		if n := got[stack] - want[stack]; n > 0 && shown < 10 {
			shown++
			t.Logf("here %v more of %s", n, stack)
		}
	}
}

func anyKey(m map[string]float64, is *regexp.Regexp) bool {
	for k := range m {
		if is.MatchString(k) {
			return true
		}
	}
	return false
}

func plainStack(parts []string) string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p
		if i > 0 && nameless.MatchString(p) {
			list[i] = "[unknown]"
		}
	}
	return strings.Join(list, ";")
}

// recordStacks builds a program and records it with copies of its stack.
func recordStacks(t testing.TB, build, source string) string {
	t.Helper()
	return recordStacksOf(t, build, source, "-c", "500000")
}

// recordStacksOf is recordStacks with further arguments of perf record.
func recordStacksOf(t testing.TB, build, source string, args ...string) string {
	t.Helper()
	words := strings.Fields(build)
	for _, tool := range []string{"perf", words[0]} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	dir := t.TempDir()
	program, data := filepath.Join(dir, "prog"), filepath.Join(dir, "perf.data")
	src := must(filepath.Abs(filepath.Join("testdata", "unwind", source)))
	if out, err := exec.Command(words[0], append(words[1:], "-o", program, src)...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v\n%s", build, err, out)
	}
	for range 5 { // some versions of perf abort now and then
		words := append([]string{"record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-m", "4M", "-o", data}, args...)
		cmd := exec.Command("perf", append(words, program)...)
		cmd.Dir = dir
		if cmd.Run() == nil {
			return data
		}
	}
	t.Skip("perf record fails here")
	return ""
}
