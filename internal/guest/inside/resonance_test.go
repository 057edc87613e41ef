//go:build linux && guest

package inside

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/guest/loop"
	counting "github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// phases writes a program that computes and is in the kernel in turn.
func phases(t *testing.T, p loop.Phases) string {
	t.Helper()
	file, err := p.ELF(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "phases")
	if err := os.WriteFile(name, file, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPMUResonance counts a program with a loop as long as the rotation of its groups, of
// 4 ms each: each sees its own part of the loop, and the counts are wrong. With varied turns
// they are right.
func TestPMUResonance(t *testing.T) {
	for _, tt := range []struct {
		groups int
		runs   loop.Phases
		wrong  float64 // the least error in the kernel's order
	}{
		{2, loop.Phases{Count: 60, Length: 4 * time.Millisecond, Align: 8 * time.Millisecond}, 0.15},
		{7, loop.Phases{Count: 60, Length: 14 * time.Millisecond, Align: 28 * time.Millisecond}, 0.1},
	} {
		t.Run(fmt.Sprint(tt.groups, " groups"), func(t *testing.T) { resonance(t, tt.groups, tt.runs, tt.wrong) })
	}
}

// resonance counts the share of user mode by the first of so many groups and the last.
func resonance(t *testing.T, n int, phased loop.Phases, wrong float64) {
	needRaw(t)
	sys := system(t)
	list := func(e string) []perfevent.Event { return group(t, sys, e, e, e, e) }
	user, all := list(raw+":u"), list(raw)
	rotation := time.Duration(n) * 4 * time.Millisecond
	share := func(offset time.Duration, vary time.Duration) (share, coverage float64) {
		p := phased
		p.Offset = offset
		groups := [][]perfevent.Event{user}
		for range n - 2 {
			groups = append(groups, list(raw+":k"))
		}
		groups = append(groups, all)
		if vary < 0 {
			groups = [][]perfevent.Event{{user[0], all[0]}}
		}
		interval := counting.Interval(n, n, 1, 4*time.Millisecond)
		total := counts.NewTotal(0)
		for _, table := range measure(t, sys, perfevent.Spec{Groups: groups, Vary: max(0, vary), Interval: interval, Target: command(phases(t, p))}, nil) {
			if err := total.Add(table); err != nil {
				t.Fatal(err)
			}
		}
		sum := total.Table()
		u, all := sum.Cell(0, 0), sum.Cell(0, len(sum.Columns)-1)
		return u.Estimate() / all.Estimate(), u.Coverage()
	}
	truth, _ := share(0, -1)
	off := map[time.Duration]float64{}
	for _, vary := range []time.Duration{0, rotation} {
		for _, offset := range []time.Duration{1, 3, 5, 7} {
			got, coverage := share(offset*rotation/8, vary)
			t.Logf("varied %v, %v after a tick: %.1f %% in user mode, want %.1f %%; counted for %.0f %% of the time", vary, offset*rotation/8, 100*got, 100*truth, 100*coverage)
			off[vary] += (got - truth) * (got - truth) / 4
			if part := 1 / float64(n); !(coverage > part/2 && coverage < 1.5*part) {
				t.Errorf("counted for %.0f %% of the time, want a part of %d", 100*coverage, n)
			}
		}
	}
	kernel, varied := math.Sqrt(off[0]), math.Sqrt(off[rotation])
	t.Logf("off by %.1f points in the kernel's order, and by %.1f when varied", 100*kernel, 100*varied)
	if !(kernel > wrong && varied < kernel/2) {
		t.Errorf("want more than %.0f points, and less than half of that", 100*wrong)
	}
}

// shares is a model of shares of a run in user mode and in the kernel. Each rests on two
// of six groups.
const shares = `
name = "shares"
version = "1"
title = "User mode and kernel"
about = "Shares of instructions and cycles."
source = "a test"
cpus = ["neoverse-n1"]
unit = "instructions"
of = "INST_RETIRED"

[[node]]
name = "all"
formula = "INST_RETIRED"
title = "All"
about = "All instructions."

[[node]]
name = "kernel"
parent = "all"
formula = "INST_RETIRED:k"
title = "Kernel"
about = "Instructions in the kernel."

[[node]]
name = "kernel_cycles"
section = "Rates"
unit = "cycles/cycle"
formula = "CPU_CYCLES:k / CPU_CYCLES"
title = "Cycles in the kernel"
about = "Share of the cycles."

[[node]]
name = "user_rate"
section = "Rates"
unit = "instructions/cycle"
formula = "INST_RETIRED:u / CPU_CYCLES:u"
title = "Instructions in user mode for a cycle in user mode"
about = "The two groups see other phases."
`

// TestPMUErrorsHold has linux perf count programs with phases of random lengths by six groups
// and by seven. The six counters hold one group. The truth is what one group of all events
// counts, all of the time. The stated intervals hold it.
func TestPMUErrorsHold(t *testing.T) {
	for _, n := range []int{6, 7} {
		t.Run(fmt.Sprint(n, " groups"), func(t *testing.T) { errorsHold(t, n) })
	}
}

func errorsHold(t *testing.T, n int) {
	needRaw(t)
	dir := t.TempDir()
	model := filepath.Join(dir, "shares.toml")
	if err := os.WriteFile(model, []byte(shares), 0o644); err != nil {
		t.Fatal(err)
	}
	events := []string{raw + ":k", raw, "r11:k", raw + ":u", "r11", "r11:u"}
	var groups []string
	for _, e := range events {
		groups = append(groups, fmt.Sprintf("{%s,r10,r12,r3,r4}", e)) // the others read 0
	}
	for len(groups) < n { // these are multiplexed too, and read 0
		groups = append(groups, "{r10,r12,r3,r4,r5}")
	}
	const runs = 6
	held, all := 0, 0
	for run := range runs {
		// Each run has phases of its own. They are longer than a turn: others are in step with the groups.
		name := phases(t, loop.Phases{Count: 40, Length: time.Millisecond, Random: 32767, Seed: uint32(7 + run)})
		alone := filepath.Join(dir, fmt.Sprint("alone", run))
		perf(t, "stat", "-x,", "-o", alone, "-e", "{"+strings.Join(events, ",")+"}", "--", name)
		truth := countsOf(t, alone, len(events))
		want := map[string]float64{"kernel": truth[0] / truth[1], "kernel_cycles": truth[2] / truth[4], "user_rate": truth[3] / truth[5]}
		file := filepath.Join(dir, fmt.Sprint("together", run))
		perf(t, "stat", "-x,", "-o", file, "-I", strconv.Itoa(4*n), "-e", strings.Join(groups, ","), "--", name)
		out, err := exec.Command(statProgram, "report", "--cpu", "neoverse-n1", "--model-file", model, "--model", "shares", "--format", "json", file).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var d document
		if err := json.Unmarshal(out, &d); err != nil {
			t.Fatal(err)
		}
		// The events that read 0 fail. What was counted breaks no relation in an interval.
		if audit, _ := exec.Command(statProgram, "audit", "-v", "--cpu", "neoverse-n1", file).Output(); !strings.Contains(string(audit), "sound") || strings.Contains(string(audit), "in each interval") {
			t.Errorf("audit of what perf counted: %s", audit)
		}
		for _, n := range d.Accounts[0].Nodes {
			truth, ok := want[n.Name]
			if !ok {
				continue
			}
			if n.Value == nil || n.Error == nil {
				t.Errorf("%s has no value or no error", n.Name)
				continue
			}
			t.Logf("%s: %.3f ± %.3f, alone %.3f", n.Name, *n.Value, *n.Error, truth)
			if all++; math.Abs(*n.Value-truth) <= *n.Error {
				held++
			}
			if *n.Error > *n.Value {
				t.Errorf("%s is %.2f with an error of %.2f, which says nothing", n.Name, *n.Value, *n.Error)
			}
		}
	}
	// Of 18 intervals of 95 %, fewer than 13 hold the truth in one of ten thousand tests.
	if all != runs*3 || held < 13 {
		t.Errorf("%d of %d intervals hold what one group counts, want 13 of %d", held, all, runs*3)
	}
}

// countsOf reads the first counts of a file of perf stat -x.
func countsOf(t *testing.T, file string, n int) (list []float64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if field, _, ok := strings.Cut(line, ","); ok {
			if v, err := strconv.ParseFloat(field, 64); err == nil {
				list = append(list, v)
			}
		}
	}
	if len(list) < n {
		t.Fatalf("%d counts in %s, want %d", len(list), text, n)
	}
	return list
}
