//go:build linux && guest

package inside

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/agent"
	counting "github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// scraped reads an agent's metrics, and sums those whose series have all of some texts.
func scraped(t *testing.T, url, name string, with ...string) (sum float64, found bool) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(io.TeeReader(answer.Body, io.Discard))
next:
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+"{")
		if !ok {
			continue
		}
		for _, text := range with {
			if !strings.Contains(rest, text) {
				continue next
			}
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
		found = true
	}
	return sum, found
}

// loopback brings the guest's loopback interface up.
func loopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		t.Fatal(err)
	}
}

// halves is a method whose shares are known: a guest's processor executes an instruction in
// each cycle. Its second level has other events than the first.
const halves = `name = "halves"
version = "1"
title = "Halves"
about = "Halves of the cycles, by instructions."
source = "this test"
cpus = ["neoverse-n1"]
mode = "u"
unit = "cycles"
of = "CPU_CYCLES"

[[node]]
name = "Even"
formula = "0.5 * INST_RETIRED"
title = "A half"
about = "A half of the cycles."

[[node]]
name = "Odd"
formula = "CPU_CYCLES - 0.5 * INST_RETIRED"
title = "The other half"
about = "The rest of the cycles."

[[node]]
name = "Fifth"
parent = "Even"
formula = "0.2 * INST_RETIRED + BR_MIS_PRED"
title = "A fifth"
about = "A fifth of the cycles, and mispredictions, which guests lack."

[[node]]
name = "Third"
parent = "Even"
formula = "0.3 * INST_RETIRED"
title = "Three tenths"
about = "Three tenths of the cycles."
`

// TestPMUAgent: the agent counts the machine, and in bursts by cgroup. The programs'
// instructions are known.
func TestPMUAgent(t *testing.T) {
	if runtime.GOARCH != "arm64" {
		t.Skip("the processors of other guests count too few events for a method")
	}
	loopback(t)
	dirs := []string{cgroup(t, "one.service"), cgroup(t, "two.service")}
	file := filepath.Join(t.TempDir(), "halves.toml")
	if err := os.WriteFile(file, []byte(halves), 0o600); err != nil {
		t.Fatal(err)
	}
	o := agent.Options{Root: "/", Kernel: counting.ThisKernel(), Choice: resolve.Choice{CPU: "neoverse-n1", Model: "halves", ModelFiles: []string{file}}, Source: counting.PMU, Listen: "127.0.0.1:0", Settings: agent.Usual}
	o.Interval, o.Budget, o.Levels, o.CgroupLevels = 300*time.Millisecond, 1, 1, 2
	a, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	url := a.Address()
	short, n := program(t, 10*instructions)
	long, m := program(t, 30*instructions)
	sum := 0.0
	for range 8 {
		if err := errors.Join(runIn(dirs[0], short), runIn(dirs[1], long)); err != nil {
			t.Fatal(err)
		}
		sum += n + m
		_, _ = scraped(t, url, "cyclestack_instructions_total")
	}
	time.Sleep(2 * time.Second)
	for _, name := range []string{"cyclestack_instructions_total", "cyclestack_cycles_total", "cyclestack_windows_total", "cyclestack_agent_errors_total", "cyclestack_agent_duty_ratio"} {
		for _, of := range []string{`scope="host",`, `service="one"`, `service="two"`, `result="ok"`, `result="implausible"`, `result="unscheduled"`, `part="pmu"`} {
			if v, ok := scraped(t, url, name, of); ok {
				t.Logf("%s %s %.4g", name, of, v)
			}
		}
	}
	for _, group := range []string{`group="l1"`, `group="l2"`} {
		for _, method := range []string{`method="pmu"`, `method="pmu-bursts"`} {
			for _, result := range []string{"ok", "unscheduled", "implausible", "lost"} {
				v, _ := scraped(t, url, "cyclestack_windows_total", group, method, `result="`+result+`"`)
				t.Logf("%s %s %s: %.0f windows", method, group, result, v)
			}
		}
	}
	// By cgroup, each level has its own nodes and its own whole, of the same windows.
	for level, shares := range map[string]map[string]float64{"1": {"Even": 0.5, "Odd": 0.5}, "2": {"Fifth": 0.2, "Third": 0.3}} {
		for _, service := range []string{`service="one"`, `service="two"`} {
			whole, _ := scraped(t, url, "cyclestack_cycles_total", service, `group="l`+level+`"`)
			for node, want := range shares {
				part, _ := scraped(t, url, "cyclestack_l"+level+"_cycles_total", service, `node="`+node+`"`)
				t.Logf("level %s, %s: %s is %.5f of %.4g cycles", level, service, node, part/whole, whole)
				if !(math.Abs(part/whole-want) < 0.002) {
					t.Errorf("level %s, %s: %s is %.5f, want %g", level, service, node, part/whole, want)
				}
			}
		}
	}
	host, _ := scraped(t, url, "cyclestack_instructions_total", `scope="host"`, `method="pmu"`)
	one, _ := scraped(t, url, "cyclestack_cycles_total", `service="one"`, `method="pmu-bursts"`, `group="l1"`) // as many as instructions
	two, _ := scraped(t, url, "cyclestack_cycles_total", `service="two"`, `method="pmu-bursts"`, `group="l1"`)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if host < 0.5*sum {
		t.Errorf("%.0f instructions of the host, and the programs had %.0f", host, sum)
	}
	if one == 0 || two < 1.5*one || one+two > sum {
		t.Errorf("%.0f and %.0f cycles of the cgroups, one to three, which had %.0f in all", one, two, sum)
	}
}
