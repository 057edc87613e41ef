//go:build linux && guest

package inside

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/guest/loop"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/source"
)

// The task two spends three quarters of its instructions in loop.Run, and one in loop.Twin. Its
// pieces are short and odd in length, so that no period of samples meets the same function each
// time.
const (
	twoRun   = 30_011
	twoTwin  = 10_003
	twoShare = float64(twoRun) / (twoRun + twoTwin)
)

// period is after how many events a sample is taken. To take one costs some hundred
// instructions in the function that it interrupts, which is to matter little.
const period = "99991"

// twoTask runs so many rounds of both functions.
func twoTask(args []string) {
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	for range rounds {
		loop.Run(twoRun)
		loop.Twin(twoTwin)
	}
}

// A place is what a recording says of a function, by event.
type place map[string]counts.Cell

// record records and returns the functions Run and Twin.
func record(t *testing.T, args ...string) (run, twin place) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "perf.data")
	cmd := exec.Command(statProgram, slices.Concat([]string{"record", "-o", file}, args)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, text)
	}
	t.Logf("%s", text)
	rec, err := source.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	r := rec.Samples(samples.Options{By: counts.Function})
	defer r.Close()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	run, twin = place{}, place{}
	table := r.Table()
	for i, s := range table.Scopes {
		if s.Code == nil {
			continue
		}
		for to, name := range map[*place]string{&run: "loop.Run", &twin: "loop.Twin"} {
			if !strings.HasSuffix(s.Code.Function, name) {
				continue
			}
			for k, c := range table.Columns {
				(*to)[c.Event] = *table.Cell(i, k)
			}
		}
	}
	return run, twin
}

// sampled are the events whose counters interrupt in the emulated machines as they
// should. Of arm64's instructions most samples are lost, and riscv64's counters do
// not interrupt at all.
var sampled = map[string][]string{
	"arm64":   {"r11", "cpu-clock"},
	"ppc64le": {"r600f4", "r500fa", "cpu-clock"},
	"riscv64": {"cpu-clock"},
}[runtime.GOARCH]

// sure is how many standard deviations of the error that is stated a part may be off: a 95 %
// confidence interval is 1.96 of them, but some of dozens of intervals miss the value. Of
// these 9,999 in 10,000 contain it.
const sure = 3.89

// checkParts checks what samples say of the two functions: how much of an event is
// each one's, if known, and which part of both. They are to be off by no more than
// the error that the samples themselves state.
func checkParts(t *testing.T, event string, run, twin counts.Cell, rounds float64) {
	t.Helper()
	if run.Samples == 0 || twin.Samples == 0 {
		t.Errorf("%s: %d and %d samples", event, run.Samples, twin.Samples)
		return
	}
	check := func(what string, got, deviation, want float64) {
		t.Helper()
		if err := sure * deviation; math.Abs(got-want) > err {
			t.Errorf("%s, %s: %g ± %g, and it is %g", event, what, got, err, want)
		} else {
			t.Logf("%s, %s: %g ± %g of %g", event, what, got, err, want)
		}
	}
	a, b := run.Value, twin.Value
	check("part of Run", a/(a+b), math.Sqrt(b*b*run.Variance+a*a*twin.Variance)/((a+b)*(a+b)), twoShare)
	check("Run", a, math.Sqrt(run.Variance), 2*twoRun*rounds)
	check("Twin", b, math.Sqrt(twin.Variance), 2*twoTwin*rounds)
}

// TestPMURecord records a program with two functions of known cost by each event
// alone. A cycle, and a nanosecond, is an instruction here.
func TestPMURecord(t *testing.T) {
	const rounds = 2000
	for _, event := range sampled {
		run, twin := record(t, "-e", event, "-c", period, "--", "/bin/inside", "two", fmt.Sprint(rounds))
		checkParts(t, event, run[event], twin[event], rounds)
	}
}

// TestPMURecordGroup records the machine with the events that a node needs: one of
// them takes the samples, and each has the counts of both.
func TestPMURecordGroup(t *testing.T) {
	if runtime.GOARCH == "riscv64" {
		t.Skip("the emulated counters do not interrupt")
	}
	const rounds = 2000
	run, twin := record(t, "-a", "--nodes", rate, "-c", period, "--", "/bin/inside", "two", fmt.Sprint(rounds))
	if len(run) < 2 {
		t.Errorf("%d events, want cycles and instructions", len(run))
	}
	for event, cell := range run {
		checkParts(t, event, cell, twin[event], rounds)
	}
}

// TestPMURecordDefault records as a user does who says nothing: the events of the
// method's first level, after as many of them as the plan says.
func TestPMURecordDefault(t *testing.T) {
	if runtime.GOARCH == "riscv64" {
		t.Skip("the emulated counters do not interrupt")
	}
	const rounds = 16000 // so many that the smaller function has dozens of samples, whose error tells what they may be off by
	run, twin := record(t, "--", "/bin/inside", "two", fmt.Sprint(rounds))
	cycles := map[string]string{"arm64": "CPU_CYCLES", "ppc64le": "PM_RUN_CYC"}[runtime.GOARCH]
	checkParts(t, cycles, run[cycles], twin[cycles], rounds)
}
