//go:build linux

package extra_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/extra"
	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testprom"
)

// export runs agent until the end of the test, and returns the address of its metrics.
func export(t *testing.T, args ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is counted")
	}
	read, write := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- extra.Main(ctx, append([]string{"agent", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, write)
		write.Close()
	}()
	lines := bufio.NewScanner(read)
	at := regexp.MustCompile(`exporting on (\S+) until`)
	for lines.Scan() {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, read) }()
			t.Cleanup(func() {
				end()
				if status := <-done; status != 0 {
					t.Errorf("agent %v: status %d", args, status)
				}
			})
			return m[1]
		}
		t.Log(lines.Text())
	}
	end()
	t.Fatalf("agent %v: status %d", args, <-done)
	return ""
}

// scrape reads the metrics by their series.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	list := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list[line[:at]] = v
	}
	return list
}

// hostWhole is the series of the host's own account.
const hostWhole = `cyclestack_whole_cpu_seconds_total{scope="host"}`

// TestAgentPrometheus: a real Prometheus scrapes an agent, and what it has is what the
// agent says. The nodes of a level sum to the whole.
func TestAgentPrometheus(t *testing.T) {
	t.Parallel()
	url := export(t, "--source", "os", "--interval", "200ms", "--label", "region=here")
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	p := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: 250 * time.Millisecond})
	p.Wait(`count_over_time(`+hostWhole+`[1m])`, func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value >= 3 })
	// Prometheus knows the agent's values of one moment, and its own scrapes lie between ours.
	before := scrape(t, url)
	p.Wait("timestamp("+hostWhole+") > "+strconv.FormatFloat(float64(time.Now().UnixMilli())/1e3, 'f', 3, 64), func(list []fleet.Sample) bool { return len(list) == 1 })
	got := p.Query(hostWhole)
	after := scrape(t, url)
	key := ""
	for name := range before {
		if strings.HasPrefix(name, `cyclestack_whole_cpu_seconds_total{scope="host"`) {
			key = name
		}
	}
	if v := got[0].Value; v < before[key] || v > after[key] || v == 0 {
		t.Errorf("%g seconds, between %g and %g", v, before[key], after[key])
	}
	if got[0].Labels["region"] != "here" || got[0].Labels["method"] != "os" || got[0].Labels["group"] != "os" {
		t.Errorf("labels %v", got[0].Labels)
	}
	for _, level := range []string{"1"} {
		sums := p.Query(`sum(cyclestack_l` + level + `_cpu_seconds_total{scope="host"}) - ` + `sum(` + hostWhole + `)`)
		if len(sums) != 1 || sums[0].Value > 1e-6 || sums[0].Value < -1e-6 {
			t.Errorf("level %s is %v apart from the whole", level, sums)
		}
	}
	if up := p.Query(`up`); len(up) != 1 || up[0].Value != 1 {
		t.Errorf("up is %v", up)
	}
}

// TestAgentMetrics: promtool, which is Prometheus's own, finds nothing wrong.
func TestAgentMetrics(t *testing.T) {
	t.Parallel()
	tool := testprom.Path(t, "promtool")
	url := export(t, "--source", "os", "--interval", "100ms", "--containers", "5")
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = answer.Body
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAgentRefused: what makes no sense is one line, and a status.
func TestAgentRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"--budget nothing": 2, "--budget 0": 2, "--interval 1ns": 2, "--max-series 1": 2, "--label scope=x": 2, "--label 1=x": 2,
		"--listen nonsense": 4, "--web-config /nonexistent": 3, "surplus": 2, "--containers -1": 2, "--source simulated": 2,
	} {
		var msg bytes.Buffer
		status := extra.Main(t.Context(), append([]string{"agent"}, strings.Fields(args)...), strings.NewReader(""), io.Discard, &msg)
		if status != want || strings.Count(msg.String(), "\n") != 1 {
			t.Errorf("%s: status %d, want %d: %s", args, status, want, msg.String())
		}
	}
}

// TestAgentKilled: an agent that is killed and started again begins at 0, and a store
// counts nothing twice.
func TestAgentKilled(t *testing.T) {
	if !testlong.Enabled() {
		t.Skip("it waits for real servers: -long runs it")
	}
	program := extraProgram(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	run := func() *exec.Cmd {
		cmd := exec.Command(program, "agent", "--listen", address, "--source", "os", "--interval", "100ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	cmd, begin := run(), time.Now()
	defer func() { kill(cmd) }()
	p := testprom.Start(t, testprom.Job{Targets: []string{address}, Interval: time.Second})
	p.Wait("count_over_time("+hostWhole+"[5m]) >= 1", func(list []fleet.Sample) bool { return len(list) == 1 })
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.Wait(`cyclestack_agent_reloads_total{result="ok"}`, func(list []fleet.Sample) bool { return len(list) == 1 && list[0].Value == 1 })
	for i := range 3 {
		more := fmt.Sprintf("count_over_time(%s[5m]) >= %d", hostWhole, 2*(i+1))
		p.Wait(more, func(list []fleet.Sample) bool { return len(list) == 1 })
		kill(cmd)
		cmd = run()
	}
	p.Wait("resets("+hostWhole+"[5m]) == 3", func(list []fleet.Sample) bool { return len(list) == 1 })
	p.Wait(hostWhole+" > 0", func(list []fleet.Sample) bool { return len(list) == 1 }) // it is 0 at the first scrape
	got := p.Query(hostWhole)
	most := time.Since(begin).Seconds() * float64(runtime.NumCPU())
	if len(got) != 1 || got[0].Value <= 0 || got[0].Value > most {
		t.Errorf("%v seconds of the processors, which had %g", got, most)
	}
	if inc := p.Query("increase(" + hostWhole + "[5m])"); len(inc) != 1 || inc[0].Value > 1.5*most {
		t.Errorf("it rose by %v, which is more than the processors had: %g", inc, most)
	}
}
