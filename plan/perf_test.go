package plan_test

import (
	"fmt"
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

// A place is a directory with a machine's files and a false perf. Its collector script is
// changed to look there.
type place struct {
	dir, shell string
}

// x86 is what a processor's /proc/cpuinfo says.
func x86(vendor string, family, model, stepping int) string {
	return fmt.Sprintf("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: of a test\nstepping\t: %d\nflags\t\t: fpu\n\nprocessor\t: 1\n",
		vendor, family, model, stepping)
}

// newPlace makes a place with the machine's files by their names.
func newPlace(t *testing.T, script, perf string, files map[string]string) place {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	p := place{t.TempDir(), sh}
	for _, root := range []string{"/proc/", "/sys/devices/"} {
		script = strings.ReplaceAll(script, root, p.dir+root)
	}
	write(t, filepath.Join(p.dir, "collect.sh"), script, 0o644)
	write(t, filepath.Join(p.dir, "perf"), perf, 0o755)
	for name, text := range files {
		name = filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, name, text, 0o644)
	}
	return p
}

// run runs the script.
func (p place) run(t *testing.T, env string, args ...string) (status int, output string) {
	t.Helper()
	cmd := exec.Command(p.shell, append([]string{"collect.sh", "-o", "out"}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PERF="+filepath.Join(p.dir, "perf"), env)
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), string(out)
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// files are those that the script wrote.
func (p place) files() []string {
	files, _ := filepath.Glob(filepath.Join(p.dir, "out*.csv"))
	return files
}

func script(t *testing.T, p *plan.Plan, runs bool, program ...string) string {
	t.Helper()
	return p.Script(runs, plan.Spelling{Script: "cyclestack plan --script", Reader: "cyclestack report", Report: "cyclestack report --model " + p.Model.Name, CPU: "--cpu", Watchdog: "--watchdog", SMT: "--smt on"}, counts.Texts(p.Warnings), program...)
}

// TestScript runs the collector script with a perf that is none.
func TestScript(t *testing.T) {
	p := planFor(t, "skylakex", "tma", plan.Options{Level: 2, SMT: true})
	for _, runs := range []bool{false, true} {
		at := newPlace(t, script(t, p, runs), fakePerf, map[string]string{"proc/cpuinfo": x86("GenuineIntel", 6, 85, 4)})
		status, out := at.run(t, "", "sh", "-c", "echo worked; exit 3")
		if status != 3 {
			t.Fatalf("runs %t: the script ended with %d, want status 3\n%s", runs, status, out)
		}
		files := at.files()
		want := 1
		if runs {
			want = len(p.Groups)
		}
		if len(files) != want || strings.Count(out, "worked") != want {
			t.Errorf("runs %t: files %v, want %d\n%s", runs, files, want, out)
		}
		checkCalls(t, p, files)
		checkParts(t, files)
	}
}

// checkCalls checks that perf was called with each group once, for the whole machine. The
// files say which processor they are from.
func checkCalls(t *testing.T, p *plan.Plan, files []string) {
	t.Helper()
	all := ""
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# cpuid : GenuineIntel-6-55-4\n") || !strings.Contains(string(text), "\n# scope -a\n") {
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

// checkParts checks that several files name the plan whose runs they are, and one
// alone does not.
func checkParts(t *testing.T, files []string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^# run ([0-9]+) of ([0-9]+) of cyclestack plan (\S+)$`)
	plans := map[string]bool{}
	for i, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m := line.FindStringSubmatch(string(text))
		switch {
		case len(files) == 1 && m != nil:
			t.Errorf("the only file says %q", m[0])
		case len(files) == 1:
		case m == nil || m[1] != strconv.Itoa(i+1) || m[2] != strconv.Itoa(len(files)):
			t.Errorf("%s says %q", filepath.Base(f), m)
		default:
			plans[m[3]] = true
		}
	}
	if len(plans) > 1 {
		t.Errorf("the files are of the plans %v", plans)
	}
}

// TestScriptProgram checks what is counted: the program that the plan was made with,
// another, or the machine.
func TestScriptProgram(t *testing.T) {
	at := newPlace(t, script(t, planFor(t, "generic", "", plan.Options{}), false, "echo", "it's", "a  b"), fakePerf, nil)
	for _, tt := range []struct {
		args        []string
		want, scope string
	}{
		{nil, "it's a  b\n", "# scope\n"},
		{[]string{"echo", "other"}, "other\n", "# scope\n"},
		{[]string{"-s", "0"}, "", "# scope -a\n"},
	} {
		status, out := at.run(t, "", tt.args...)
		text, _ := os.ReadFile(filepath.Join(at.dir, "out.csv"))
		if status != 0 || tt.want != "" && !strings.HasPrefix(out, tt.want) || !strings.Contains(string(text), tt.scope) {
			t.Errorf("%v: status %d, %q, and perf was called with %q", tt.args, status, out, text)
		}
	}
}

// TestScriptMachine checks that the script counts nothing on a machine that differs from
// the plan's, unless it is told to.
func TestScriptMachine(t *testing.T) {
	const watchdog, active, control = "proc/sys/kernel/nmi_watchdog", "sys/devices/system/cpu/smt/active", "sys/devices/system/cpu/smt/control"
	const midr = "sys/devices/system/cpu/cpu%d/regs/identification/midr_el1"
	skylake, zen3 := x86("GenuineIntel", 6, 85, 4), x86("AuthenticAMD", 25, 1, 1)
	type files = map[string]string
	for _, tt := range []struct {
		name, cpu string
		opt       plan.Options
		files     files
		want      string // of the error, or of the first line of the file
	}{
		{"as planned", "skylakex", plan.Options{}, files{"proc/cpuinfo": skylake, watchdog: "0\n", active: "0\n", control: "notsupported\n"}, "# cpuid : GenuineIntel-6-55-4"},
		{"another stepping is another processor", "skylakex", plan.Options{}, files{"proc/cpuinfo": x86("GenuineIntel", 6, 85, 7)}, "the plan is for skylakex, and this machine is GenuineIntel-6-55-7"},
		{"another architecture", "skylakex", plan.Options{}, files{"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50\n"}, "the plan is for skylakex, and this machine is "},
		{"hybrid", "alderlake:core", plan.Options{Level: 1}, files{"proc/cpuinfo": x86("GenuineIntel", 6, 0x97, 2)}, "# cpu: alderlake:core"},
		{"report is told what it is exactly", "amdzen4", plan.Options{Level: 1}, files{"proc/cpuinfo": zen3}, "# cpuid : AuthenticAMD-25-1-1"},
		{"the watchdog takes a counter", "skylakex", plan.Options{Level: 2}, files{"proc/cpuinfo": skylake, watchdog: "1\n"}, "kernel.nmi_watchdog=0"},
		{"there is room for the watchdog", "skylakex", plan.Options{Level: 1}, files{"proc/cpuinfo": skylake, watchdog: "1\n"}, "# cpuid : GenuineIntel"},
		{"the watchdog is planned for", "skylakex", plan.Options{Level: 2, Watchdog: true}, files{"proc/cpuinfo": skylake, watchdog: "1\n"}, "# cpuid : GenuineIntel"},
		{"SMT divides the counters", "skylakex", plan.Options{Level: 2}, files{"proc/cpuinfo": skylake, active: "1\n", control: "on\n"}, "with --smt on"},
		{"switched off SMT does, too", "skylakex", plan.Options{Level: 2}, files{"proc/cpuinfo": skylake, active: "0\n", control: "off\n"}, "with --counters 4"},
		{"SMT is planned for", "skylakex", plan.Options{Level: 2, SMT: true}, files{"proc/cpuinfo": skylake, active: "1\n", control: "on\n"}, "# cpuid : GenuineIntel"},
		{"SMT leaves all counters", "icelakex", plan.Options{Level: 2}, files{"proc/cpuinfo": x86("GenuineIntel", 6, 0x6a, 6), active: "1\n"}, "# cpuid : GenuineIntel-6-6A-6"},
		{"erratum", "ivybridge", plan.Options{Counters: 4}, files{"proc/cpuinfo": x86("GenuineIntel", 6, 0x3a, 9), active: "1\n"}, "with --smt on"},
		{"POWER", "power7", plan.Options{Level: 1}, files{"proc/cpuinfo": "processor\t: 0\ncpu\t\t: POWER7\nrevision\t: 2.1 (pvr 003f 0201)\n"}, "# cpuid : 0x003f0201"},
		{"another POWER", "power7", plan.Options{Level: 1}, files{"proc/cpuinfo": "processor\t: 0\nrevision\t: 2.0 (pvr 004d 0200)\n"}, "this machine is 0x004d0200"},
		{"Arm", "neoverse-v1", plan.Options{Level: 1}, files{fmt.Sprintf(midr, 0): "0x00000000411fd401\n"}, "# cpu: neoverse-v1"},
		{"one core of two kinds", "cortex-a76", plan.Options{Level: 1}, files{fmt.Sprintf(midr, 0): "0x00000000412fd050\n", fmt.Sprintf(midr, 4): "0x00000000414fd0b1\n"}, "# cpu: cortex-a76"},
		{"another Arm", "neoverse-v1", plan.Options{Level: 1}, files{fmt.Sprintf(midr, 0): "0x00000000413fd0c1\n"}, "this machine is 0x00000000413fd0c1"},
		{"RISC-V", "sifive-bullet", plan.Options{}, files{"proc/cpuinfo": "hart\t: 0\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x20181004\n"}, "# cpuid : 0x489-0x8000000000000007-0x20181004"},
		{"nothing is asked of any", "generic", plan.Options{}, nil, "# cpu: generic"},
	} {
		at := newPlace(t, script(t, planFor(t, tt.cpu, "", tt.opt), false), fakePerf, tt.files)
		status, out := at.run(t, "CYCLESTACK_FORCE=", "true")
		text, err := os.ReadFile(filepath.Join(at.dir, "out.csv"))
		if strings.HasPrefix(tt.want, "#") {
			if status != 0 || !strings.HasPrefix(string(text), tt.want) {
				t.Errorf("%s: status %d, a file that begins with %.40q, want %q: %s", tt.name, status, text, tt.want, out)
			}
			continue
		}
		if status != 125 || err == nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, tt.want) {
			t.Errorf("%s: status %d, want 125 and one line with %q and no file: %s", tt.name, status, tt.want, out)
		}
		if status, out := at.run(t, "CYCLESTACK_FORCE=1", "true"); status != 0 || len(at.files()) != 1 || !strings.Contains(out, tt.want) {
			t.Errorf("%s, forced: status %d, files %v: %s", tt.name, status, at.files(), out)
		}
	}
}

// TestScriptPerfFails checks that of a perf that counts nothing the status remains, and
// no file.
func TestScriptPerfFails(t *testing.T) {
	p := planFor(t, "core2", "", plan.Options{Set: "big-4"})
	machine := map[string]string{"proc/cpuinfo": x86("GenuineIntel", 6, 15, 6)}
	for _, tt := range []struct {
		perf   string
		status int
	}{
		{"exit 129", 129},
		{`for a; do [ "$o" != -o ] || echo "# started on Mon" >>"$a"; o=$a; done; exit 255`, 255},
		{"exit 0", 1},
	} {
		for _, runs := range []bool{false, true} {
			at := newPlace(t, script(t, p, runs), "#!/bin/sh\n"+tt.perf+"\n", machine)
			status, out := at.run(t, "", "true")
			if status != tt.status || len(at.files()) > 0 || strings.Contains(out, "wrote") || strings.Contains(out, "prints the account") || !strings.Contains(out, "counted nothing") {
				t.Errorf("perf with %q: status %d, want %d, files %v: %s", tt.perf, status, tt.status, at.files(), out)
			}
		}
	}
}

// TestScriptWithoutPerf checks what the script says where there is no perf.
func TestScriptWithoutPerf(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "collect.sh"), script(t, planFor(t, "skylakex", "tma", plan.Options{Level: 1}), false), 0o644)
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

// TestProgram checks the commands for a program.
func TestProgram(t *testing.T) {
	program := []string{"./my app", "--", "it's"}
	for _, tt := range []struct {
		smt          bool
		stat, record string
	}{
		{false, "perf stat -x ';' -o skylakex.csv -e ", "perf record -o skylakex.data -e "},
		{true, "perf stat -a -x ';' -o skylakex.csv -e ", "perf record -a -o skylakex.data -e "},
	} {
		p := planFor(t, "skylakex", "tma", plan.Options{Level: 1, SMT: tt.smt})
		for _, c := range []struct {
			command plan.Command
			want    string
		}{{p.Perf(false)[0], tt.stat}, {p.Record(false)[0], tt.record}} {
			got := p.For(c.command, program)
			if line := got.String(); !strings.HasPrefix(line, c.want) || !strings.HasSuffix(line, ` -- './my app' -- 'it'\''s'`) {
				t.Errorf("SMT %t: %s", tt.smt, line)
			}
			if lines := strings.Split(got.Lines(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "    -e ") || !strings.HasPrefix(lines[2], "    -- ") {
				t.Errorf("SMT %t: over several lines it is\n%s", tt.smt, got.Lines())
			}
			if same := p.For(c.command, nil); same.String() != c.command.String() || !strings.HasSuffix(same.String(), " -- sleep 10") {
				t.Errorf("SMT %t: without a program it is %s", tt.smt, same.String())
			}
		}
	}
}

// TestAssumptions checks that a plan says what it takes for granted where that matters.
func TestAssumptions(t *testing.T) {
	for _, tt := range []struct {
		cpu  string
		opt  plan.Options
		want []string
	}{
		{"skylakex", plan.Options{Level: 2}, []string{"watchdog", "more than 4 general counters"}},
		{"skylakex", plan.Options{Level: 2, Watchdog: true}, []string{"more than 4 general counters"}},
		{"skylakex", plan.Options{Level: 2, SMT: true, Watchdog: true}, nil},
		{"skylakex", plan.Options{Level: 2, Counters: 4, Watchdog: true}, nil},
		{"skylakex", plan.Options{Level: 1, SMT: true}, []string{"watchdog"}},
		{"icelakex", plan.Options{}, []string{"watchdog"}},
		{"icelakex", plan.Options{Nodes: []int{}}, nil},
		{"amdzen4", plan.Options{}, []string{"watchdog"}},
		{"amdzen4", plan.Options{Counters: 5}, nil}, // what the watchdog leaves
		{"power7", plan.Options{}, nil},
		{"neoverse-v1", plan.Options{}, nil},
	} {
		got := planFor(t, tt.cpu, "", tt.opt).Assumptions()
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			ok = ok && strings.Contains(got[i].Text, tt.want[i])
		}
		if !ok {
			t.Errorf("%s %+v: %q, want %q", tt.cpu, tt.opt, got, tt.want)
		}
	}
}

// TestAssumptionsOfPlans checks that a plan made for the watchdog does not need it off.
// A plan for as many counters as SMT leaves does not need more.
func TestAssumptionsOfPlans(t *testing.T) {
	cpus := []string{"core2", "ivybridge", "amdzen3", "haswell", "skylake", "icelakex", "sapphirerapids"}
	for _, cpu := range cpus[:testlong.Size(3, len(cpus))] {
		for _, opt := range []plan.Options{{Watchdog: true, SMT: true, Errata: true}, {Watchdog: true, Counters: 2, SMT: true}, {Watchdog: true, Counters: 4, Errata: true}} {
			if got := planFor(t, cpu, "", opt).Assumptions(); len(got) > 0 {
				t.Errorf("%s %+v: %q", cpu, opt, got)
			}
		}
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestPerCPU checks the commands of a method that compares the logical processors of a
// core: they are counted each by itself, a program or not, and nothing is sampled.
func TestPerCPU(t *testing.T) {
	p := planFor(t, "skylakex", "smt-occupancy", plan.Options{})
	c := p.Perf(false)[0]
	for _, c := range []plan.Command{c, p.For(c, []string{"./app"})} {
		if line := c.String(); !strings.HasPrefix(line, "perf stat -a -A ") || !strings.Contains(line, " -e msr/tsc/ ") {
			t.Error(line)
		}
	}
	if list := p.Record(false); len(list) > 0 {
		t.Error(list[0].String())
	}
	if script := p.Script(false, plan.Spelling{}, nil); strings.Count(script, "scope='-a -A'") != 2 || !strings.Contains(script, "siblings=$(sort -u") {
		t.Error(script)
	}
}
