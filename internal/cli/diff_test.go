package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A build is one of a program whose runs are recorded: its functions by address.
type build struct {
	pid       uint32
	functions []buildFunction
}

type buildFunction struct {
	name    string
	samples float64 // of a run, on the average
}

// The two builds of the example: parse has become slower by a quarter, and log has
// been replaced by trace.
var (
	oldBuild = build{42, []buildFunction{{"render", 90}, {"parse", 150}, {"parse.cold", 6}, {"checksum", 45}, {"log", 12}}}
	newBuild = build{43, []buildFunction{{"parse", 190}, {"parse.part.0", 8}, {"trace", 14}, {"checksum", 45}, {"render", 90}}}
)

// size is that of every function in bytes.
const size = 0x100

// names writes the build's names under a root.
func (b *build) names(t testing.TB, root string) {
	t.Helper()
	var text bytes.Buffer
	for i, f := range b.functions {
		fmt.Fprintf(&text, "%x %x %s\n", 0x10000+i*size, size, f.name)
	}
	dir := filepath.Join(root, "tmp")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("perf-%d.map", b.pid)), text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// record writes a recording of a run, which took the machine so much longer than
// others.
func (b *build) record(t testing.TB, rng *rand.Rand, file string, begin uint64, longer float64) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const period = 8_000_000
	event := &perfdata.Event{Name: "cycles", IDs: []uint64{1}, Attr: perfdata.Attr{Type: perffile.TypeHardware,
		SamplePeriod: period, SampleType: perffile.SampleIP | perffile.SampleTID}}
	w, err := perfwrite.NewWriter(out, perfwrite.WriterOptions{Events: []*perfdata.Event{event}})
	if err != nil {
		t.Fatal(err)
	}
	code := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: int(b.pid), TID: int(b.pid),
		Addr: 0x10000, Len: 0x10000, Filename: []byte("//anon")}
	if err := w.WriteRecord(code, perfdata.Trailer{}); err != nil {
		t.Fatal(err)
	}
	time := begin
	for i, f := range b.functions {
		n := f.samples*longer + math.Sqrt(f.samples)*rng.NormFloat64()
		for range int(math.Round(n)) {
			time += 3_000_000
			le := binary.LittleEndian
			r := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), uint16(perfdata.ModeUser)), 24)
			r = le.AppendUint32(le.AppendUint32(le.AppendUint64(r, uint64(0x10000+i*size)), b.pid), b.pid)
			if _, err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := &perfdata.Features{CPUID: "GenuineIntel,6,85,4", Cmdline: []string{"perf", "record", "--", "./app"}, SampleTime: [2]uint64{begin, time}}
	if err := w.Close(f); err != nil {
		t.Fatal(err)
	}
}

// exampleDiff has recordings of two builds, one of each in alternation.
const exampleDiff = "../../examples/diff"

// TestDiffExamples has the recordings of the example, which are made here: -update
// makes them anew.
func TestDiffExamples(t *testing.T) {
	dir := t.TempDir()
	if *update {
		dir = exampleDiff
	}
	files := recordTurns(t, dir, 8, &newBuild)
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(exampleDiff, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is made here (%v)", name, err)
		}
	}
}

// recordTurns records alternating runs of two builds, in the directories "old" and "new", with
// their names in "names".
func recordTurns(t testing.TB, dir string, runs int, other *build) (files []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	builds := [2]*build{&oldBuild, other}
	for k, side := range []string{"old", "new"} {
		if err := os.MkdirAll(filepath.Join(dir, side), 0o777); err != nil {
			t.Fatal(err)
		}
		builds[k].names(t, filepath.Join(dir, "names"))
	}
	for r := range runs {
		longer := math.Exp(0.05 * rng.NormFloat64())
		for k, side := range []string{"old", "new"} {
			file := filepath.Join(side, strconv.Itoa(r+1)+".data")
			builds[k].record(t, rng, filepath.Join(dir, file), uint64(2*r+k+1)*1e10, longer)
			files = append(files, file)
		}
	}
	return files
}

// A diffReport is what the tests read of a comparison in JSON.
type diffReport struct {
	What, Unit, Per, By, Basis string
	Total                      struct{ Change, Relative float64 }
	Places                     []struct {
		Place, Module, Verdict   string
		Change, Relative, Effect float64
		P, Low, High             *float64
		Samples                  [2]int64
	}
}

// compare makes a comparison, whose JSON must be as its schema says.
func compare(t testing.TB, args ...string) (r diffReport) {
	t.Helper()
	text := runMain(t, append([]string{"diff", "--format", "json"}, args...)...)
	if err := testschema.Validate(t, report.Schema[report.Comparison](), text); err != nil {
		t.Errorf("%v", err)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDiffFunctions compares the two builds of the example by function.
func TestDiffFunctions(t *testing.T) {
	t.Parallel()
	r := compare(t, "--by", "function", "--sysroot", exampleDiff+"/names", exampleDiff+"/old", exampleDiff+"/new")
	if r.What != "cycles" || r.By != "function" || r.Basis != "pairs" || r.Per != "run" {
		t.Errorf("%s per %s by %s, told from chance by %s", r.What, r.Per, r.By, r.Basis)
	}
	want := map[string]string{"parse": "more", "trace": "more", "log": "less"}
	sum := 0.0
	for _, p := range r.Places {
		sum += p.Change
		if verdict, changed := want[p.Place]; (p.Verdict == "more" || p.Verdict == "less") != changed || changed && p.Verdict != verdict {
			t.Errorf("%s: %s (%+.3f)", p.Place, p.Verdict, p.Relative)
		}
		delete(want, p.Place)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if !(math.Abs(sum-r.Total.Change) <= 1e-6*math.Abs(sum)) {
		t.Errorf("the changes add up to %g, and all is %g", sum, r.Total.Change)
	}
}

// TestDiffSingleRuns compares one run of each: what sampling adds is told from a
// change, and nothing else.
func TestDiffSingleRuns(t *testing.T) {
	t.Parallel()
	names := exampleDiff + "/names"
	r := compare(t, "--by", "function", "--sysroot", names, exampleDiff+"/old/1.data", exampleDiff+"/old/2.data")
	for _, p := range r.Places {
		if p.Verdict != "cannot tell" {
			t.Errorf("the same twice: %s: %s", p.Place, p.Verdict)
		}
	}
	r = compare(t, "--by", "function", "--sysroot", names, exampleDiff+"/old/1.data", exampleDiff+"/new/1.data")
	if r.Basis != "sampling" {
		t.Errorf("told from chance by %s", r.Basis)
	}
	for _, p := range r.Places {
		if (p.Place == "log" && p.Verdict != "less") || (p.Place == "trace" && p.Verdict != "more") || (p.Place == "checksum" && p.Verdict != "cannot tell") {
			t.Errorf("%s: %s", p.Place, p.Verdict)
		}
	}
}

// goProgram spends most of its time in hash. An argument makes hash slower by a part.
const goProgram = `package main

import (
	"fmt"
	"os"
	"strconv"
)

//go:noinline
func hash(x uint64, n int) uint64 {
	for range n {
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		x ^= x >> 29
	}
	return x
}

//go:noinline
func integrate(s float64, n int) float64 {
	for i := 1; i < n; i++ {
		s = s*0.999999 + 1/float64(i)
	}
	return s
}

//go:noinline
func collatz(n int) (steps uint64) {
	for i := 1; i < n; i++ {
		for x := i; x != 1; steps++ {
			if x&1 == 1 {
				x = 3*x + 1
			} else {
				x /= 2
			}
		}
	}
	return steps
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	x, s := uint64(1), 0.0
	for range rounds {
		x = hash(x, 100000+slower)
		s = integrate(s, 40000)
		x += collatz(600)
	}
	fmt.Println(x, s)
}
`

// builds compiles the program twice: as it is, and with hash slower by 5 %.
func builds(t *testing.T) (paths [2]string) {
	t.Helper()
	for i, slower := range []string{"0", "5000"} {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		paths[i] = filepath.Join(dir, "app")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"main.go": goProgram, "slower.go": "package main\n\nconst slower = " + slower + "\n", "go.mod": "module app\n\ngo 1.26\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("go", "build", "-trimpath=false", "-o", paths[i], ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return paths
}

// TestDiffRealRuns records alternating runs of two builds, and the old one twice. It
// compares them by function: diff must name the function that is slower by 5 %, and
// no difference between equal runs. Other load on the machine can disturb a trial.
// So by default it makes one trial of a few runs. It only checks that there are
// functions, and that their differences add up. CYCLESTACK_DIFF_TRIALS=20 makes so
// many trials of ten runs each, and fails if more than one in twenty goes wrong.
func TestDiffRealRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs programs for seconds")
	}
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("perf is not there")
	}
	trials, _ := strconv.Atoi(os.Getenv("CYCLESTACK_DIFF_TRIALS"))
	runs, rounds := 10, "4000"
	if trials == 0 {
		trials, runs, rounds = 1, 2, "150"
	}
	apps := builds(t)
	alarms, found, blamed := 0, 0, 0
	for trial := range trials {
		dir := t.TempDir()
		var sides [3][]string
		for r := range runs {
			for k, app := range []string{apps[0], apps[1], apps[0]} {
				file := filepath.Join(dir, fmt.Sprintf("%d-%d.data", r, k))
				if out, err := exec.Command(perf, "record", "-q", "-e", "cpu-clock", "-F", "4000", "-o", file, app, rounds).CombinedOutput(); err != nil {
					t.Skipf("perf record does not work here: %v\n%s", err, out)
				}
				sides[k] = append(sides[k], file)
			}
		}
		verdicts := func(new []string) (changed map[string]string) {
			changed = map[string]string{}
			r := compare(t, append(append(append([]string{"--by", "function"}, sides[0]...), "--"), new...)...)
			sum, hash := 0.0, false
			for _, p := range r.Places {
				sum += p.Change
				hash = hash || p.Place == "main.hash"
				if p.Verdict == "more" || p.Verdict == "less" {
					changed[p.Place] = p.Verdict
				}
			}
			if !hash || !(math.Abs(sum-r.Total.Change) <= 1e-6*math.Abs(sum)) || r.What != "time" {
				t.Errorf("main.hash found: %v; differences in %s add up to %g, and all is %g", hash, r.What, sum, r.Total.Change)
			}
			return changed
		}
		slower, same := verdicts(sides[1]), verdicts(sides[2])
		if len(same) > 0 {
			alarms++
		}
		if slower["main.hash"] == "more" {
			found++
		}
		if delete(slower, "main.hash"); len(slower) > 0 {
			blamed++
		}
		t.Logf("trial %d: slower build: hash named in %d so far, others in %d %v; the same build: alarms in %d %v", trial+1, found, blamed, slower, alarms, same)
	}
	if trials > 1 && (alarms*20 > trials || (trials-found)*20 > trials) {
		t.Errorf("%d trials: %d alarms without a change, the slow function named in %d", trials, alarms, found)
	}
}
