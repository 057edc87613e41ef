package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
)

// Of a terminal.
const (
	terminalColumns = 80
	terminalLines   = 24
)

// cutNumber is a number that was cut: of a line, an address, or a figure.
var cutNumber = regexp.MustCompile(`(:|\+0x|\b0x)[0-9a-f]*…|[0-9]…(\s|$)`)

// terminalRows is how many rows of a terminal a text takes.
func terminalRows(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+terminalColumns-1)/terminalColumns)
	}
	return n
}

// checkScreen runs a command as typed, in 80 columns, and checks that it prints one screen
// without a cut number. What cannot be read has one line.
func checkScreen(t *testing.T, args ...string) {
	t.Helper()
	var out, err bytes.Buffer
	k := measure.ThisKernel()
	k.Cache = nil
	a := &app{in: strings.NewReader(""), out: &out, err: &err, kernel: k}
	a.main(context.Background(), append(args, "--width", "80"))
	text := out.String()
	if args[0] == "stat" { // its account goes to standard error
		if text = err.String(); !strings.Contains(strings.Join(strings.Fields(text), " "), " on ") {
			t.Errorf("%v: no account: %s", args, text)
		}
	}
	if n := terminalRows(text); n > terminalLines {
		t.Errorf("%v: %d lines of a terminal:\n%s", args, n, text)
	}
	if cut := cutNumber.FindString(text); cut != "" {
		t.Errorf("%v: a number is cut, %q:\n%s", args, cut, text)
	}
	for _, fails := range failingCheck.FindAllString(text, -1) { // a name, and events behind it
		if !strings.Contains(fails+"\n", ":\n") && !strings.Contains(fails, ": ") {
			t.Errorf("%v: a check fails, but of which events?\n%s", args, text)
		}
	}
}

// failingCheck is a line of audit with a check that fails.
var failingCheck = regexp.MustCompile(`(?m)^ *(does not|suspect|FAILS)  .*(\n {12}[a-zA-Z_.:,].*)?`)

// recordings are the files of patterns.
func recordings(t *testing.T, patterns ...string) []string {
	t.Helper()
	var list []string
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, files...)
	}
	if len(list) == 0 {
		t.Fatalf("no recordings: %v", patterns)
	}
	return list
}

// TestScreens checks that commands print one screen of 24 lines and 80 columns of each example,
// without a cut number. Only code and catalogues are longer, which were asked for.
func TestScreens(t *testing.T) {
	t.Parallel()
	const examples = "../../examples/"
	for _, file := range recordings(t, examples+"*.txt", examples+"*.csv", examples+"*.data", examples+"walk/*.txt", examples+"walk/*.callgrind", examples+"walk/*.data") {
		for _, command := range [][]string{{"report"}, {"audit"}, {"latency"}, {"smt"}} {
			checkScreen(t, append(command, file)...)
		}
	}
	for _, command := range [][]string{
		{"report", "--by", "function", examples + "functions.data"},
		{"report", "--by", "line", examples + "annotate.data"},
		{"report", "--by", "instruction", "--sysroot", examples + "annotate", examples + "annotate.data"},
		{"report", "--by", "line", examples + "walk/columns.callgrind"},
		{"diff", examples + "diff/old", examples + "diff/new"},
		{"diff", examples + "walk/rows.callgrind", examples + "walk/columns.callgrind"},
		{"diff", "--by", "function", "--sysroot", examples + "diff/names", examples + "diff/old", examples + "diff/new"},
		{"c2c", examples + "sharing.data"},
		{"explain", "Memory_Bound", "--cpu", "skylakex"},
		{"explain", "LSU_STALL_DCACHE_MISS_CPI", examples + "power7-cpi.txt"},
		{"core", "--cpu", "icelake", "--sysroot", examples + "annotate", examples + "annotate.data", "solve"},
		{"events", "--cpu", "power7", "PM_CMPLU_STALL_D*"},
		{"plan", "--cpu", "power7", "--level", "1"},
		{"lint"},
		{"doctor"},
		{"version"},
	} {
		checkScreen(t, command...)
	}
	if ok, err := condition("counts"); err != nil || !ok {
		t.Skipf("no program may be counted here: %v", err)
	}
	for _, flags := range [][]string{{}, {"-e", "page-faults,cycles"}, {"-a"}, {"--no-places"}} {
		checkScreen(t, append(append([]string{"stat", "--no-keep", "--width", "80"}, flags...), "--", "sh", "-c", "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done")...)
	}
}

// TestLists checks that lists of more than a screen, which were asked for, end with what
// prints less of them.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"models"}, {"models", "--cpu", "power7"}, {"events", "--cpu", "skylakex"}, {"plan", "--cpu", "skylakex"},
		{"annotate", "--sysroot", "../../examples/annotate", "../../examples/annotate.data"}} {
		var out, err bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &err, kernel: measure.ThisKernel()}
		a.main(context.Background(), append(args, "--width", "80"))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		end := strings.Join(lines[max(0, len(lines)-2):], " ")
		if len(lines) <= terminalLines || !strings.Contains(end, "less") && !strings.Contains(end, "cyclestack models --cpu NAME") {
			t.Errorf("%v: %d lines, the last of them %q; %s", args, len(lines), end, err.String())
		}
	}
}

// TestScreensOfCorpus is TestScreens for published recordings: of all with -long, else of
// every fourth.
func TestScreensOfCorpus(t *testing.T) {
	t.Parallel()
	dir := testshared.Dir(t, "corpus")
	step := 4
	if testlong.Enabled() {
		step = 1
	}
	for _, of := range []string{"perfstat", "perfdata", "oprofile"} {
		entries, err := os.ReadDir(filepath.Join(dir, of))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(entries); i += step {
			checkScreen(t, "report", filepath.Join(dir, of, entries[i].Name()))
			checkScreen(t, "audit", filepath.Join(dir, of, entries[i].Name()))
		}
	}
}
