//go:build linux

package inside

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
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

// TestPMUAgent: the agent counts the machine, and in bursts by cgroup. The programs'
// instructions are known.
func TestPMUAgent(t *testing.T) {
	if runtime.GOARCH != "arm64" {
		t.Skip("the processors of other guests count too few events for a method")
	}
	loopback(t)
	dirs := []string{cgroup(t, "one.service"), cgroup(t, "two.service")}
	o := agent.Options{Root: "/", Kernel: counting.ThisKernel(), Choice: resolve.Choice{CPU: "neoverse-n1"}, Source: counting.PMU, Listen: "127.0.0.1:0", Settings: agent.Usual}
	o.Interval, o.Budget, o.Levels = time.Second, 1, 1
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
	host, _ := scraped(t, url, "cyclestack_instructions_total", `scope="host"`, `method="pmu"`)
	one, _ := scraped(t, url, "cyclestack_cycles_total", `service="one"`, `method="pmu-bursts"`) // as many as instructions
	two, _ := scraped(t, url, "cyclestack_cycles_total", `service="two"`, `method="pmu-bursts"`)
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
