package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/plan"
)

func planFor(t *testing.T, cpu, model string, opt plan.Options) *plan.Plan {
	t.Helper()
	m, events := load(t, cpu, model)
	p, err := plan.New(m, events, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPerfCommand compares a command with one written by hand.
func TestPerfCommand(t *testing.T) {
	p := planFor(t, "icelakex", "tma", plan.Options{Level: 1})
	commands := p.Perf(false)
	if len(commands) != 1 {
		t.Fatalf("%d commands, want 1", len(commands))
	}
	const want = "perf stat -a -x ';' -o icelakex.csv " +
		"-e '{cpu/event=0x0,umask=0x4,name=TOPDOWN.SLOTS/,cpu/event=0x0,umask=0x82,name=PERF_METRICS.FRONTEND_BOUND/," +
		"cpu/event=0x0,umask=0x81,name=PERF_METRICS.BAD_SPECULATION/,cpu/event=0x0,umask=0x80,name=PERF_METRICS.RETIRING/," +
		"cpu/event=0x0,umask=0x83,name=PERF_METRICS.BACKEND_BOUND/,cpu/event=0xd,umask=0x10,name=INT_MISC.UOP_DROPPING/," +
		"cpu/event=0xd,umask=0x1,cmask=0x1,edge=0x1,name=INT_MISC.CLEARS_COUNT/}' -- sleep 10"
	if got := commands[0].String(); got != want {
		t.Errorf("the command is\n%s\nwant\n%s", got, want)
	}
	if lines := commands[0].Lines(); strings.Count(lines, "\\\n") != 2 || strings.ReplaceAll(lines, " \\\n    ", " ") != want {
		t.Errorf("over several lines it is\n%s", lines)
	}
}

// TestPerfRuns checks that without multiplexing each group has a command and a
// file of its own.
func TestPerfRuns(t *testing.T) {
	p := planFor(t, "skylakex", "tma", plan.Options{Level: 2})
	commands := p.Perf(true)
	if len(commands) != p.Runs() || len(commands) != 2 {
		t.Fatalf("%d commands for %d runs", len(commands), p.Runs())
	}
	for i, c := range commands {
		line := c.String()
		if !strings.Contains(line, "-o skylakex-"+string(rune('1'+i))+".csv ") || strings.Count(line, " -e ") != 1 {
			t.Errorf("run %d is %s", i+1, line)
		}
	}
}

// TestPublishedCommand checks that the command for POWER7 is that of the article
// which the model comes from, letter for letter.
func TestPublishedCommand(t *testing.T) {
	text, err := os.ReadFile(testshared.Dir(t, "seeds", "003_1e76025225450445.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "$ perf stat ")
	article, _, ended := strings.Cut(after, "\n\n")
	if !ok || !ended {
		t.Fatal("the article has no command")
	}
	want := "perf stat " + strings.Join(strings.Fields(article), " ")
	p := planFor(t, "power7", "power7-cpi", plan.Options{})
	if got := p.Perf(false)[0].String(); got != want {
		t.Errorf("the first command is\n%s\nwant\n%s", got, want)
	}
	if part := planFor(t, "power7", "power7-cpi", plan.Options{Level: 1}); len(part.Perf(false)) != 1 {
		t.Error("the article's command is given for a part of its model")
	}
}

// TestRawCodes checks that events of PMUs whose names differ between machines
// are given as codes.
func TestRawCodes(t *testing.T) {
	p := planFor(t, "neoverse-v1", "", plan.Options{Level: 1})
	for _, g := range p.Groups {
		for _, e := range g.Events {
			if !e.Bare || !strings.HasPrefix(e.PerfName(), "r") {
				t.Errorf("%s is given to perf as %s", e.Name, e.PerfName())
			}
		}
	}
}

// fakePerf is a perf that writes down how it was called.
const fakePerf = `#!/bin/sh
scope=
events=
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2; shift ;;
	-a) scope="$scope -a" ;;
	-e) events="$events$2
"; shift ;;
	--) shift; break ;;
	esac
	shift
done
printf '# scope%s\n%s' "$scope" "$events" >>"$out"
"$@"
`

// TestScript runs the collector script with a perf that is none.
func TestScript(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	p := planFor(t, "skylakex", "tma", plan.Options{Level: 2, SMT: true})
	for _, runs := range []bool{false, true} {
		script, err := p.Script(runs)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "collect.sh"), script, 0o644)
		write(t, filepath.Join(dir, "perf"), fakePerf, 0o755)
		cmd := exec.Command(sh, "collect.sh", "-o", "out", "sh", "-c", "echo worked; exit 3")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PERF="+filepath.Join(dir, "perf"))
		out, err := cmd.CombinedOutput()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != 3 {
			t.Fatalf("runs %t: the script ended with %v, want status 3\n%s", runs, err, out)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "out*.csv"))
		want := 1
		if runs {
			want = len(p.Groups)
		}
		if len(files) != want || strings.Count(string(out), "worked") != want {
			t.Errorf("runs %t: files %v, want %d\n%s", runs, files, want, out)
		}
		checkCalls(t, p, files)
	}
}

// checkCalls checks that perf was called with each group once, for the whole
// machine, and that the files say which processor they are from.
func checkCalls(t *testing.T, p *plan.Plan, files []string) {
	t.Helper()
	all := ""
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# cpu: skylakex\n# scope -a\n") {
			t.Errorf("%s begins with %.40q", filepath.Base(f), text)
		}
		all += string(text)
	}
	for i := range p.Groups {
		if n := strings.Count(all, "\n"+p.Groups[i].Perf()+"\n"); n != 1 {
			t.Errorf("group %d was given to perf %d times", i+1, n)
		}
	}
}

// TestScriptWithoutPerf checks what the script says where there is no perf.
func TestScriptWithoutPerf(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	script, err := planFor(t, "skylakex", "tma", plan.Options{Level: 1}).Script(false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "collect.sh"), script, 0o644)
	cmd := exec.Command(sh, "collect.sh", "true")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir}
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 127 || !strings.Contains(string(out), "there is no perf here") {
		t.Errorf("the script ended with %v: %s", err, out)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.csv")); len(files) > 0 {
		t.Errorf("it left %v", files)
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
