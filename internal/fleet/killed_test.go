package fleet_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/agent"
	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// What makes a process of this test an agent: its address, and the recording that it plays.
const (
	agentAddress = "CYCLESTACK_TEST_AGENT"
	agentReplay  = "CYCLESTACK_TEST_REPLAY"
)

// killedWindow is the length of an agent's windows.
const killedWindow = 100 * time.Millisecond

// playedSlots are the slots of each window of the recording, which is played in a circle.
var playedSlots = []float64{4e9 + 1, 4e9 + 20, 4e9 + 300, 4e9 + 4000, 4e9 + 50000, 4e9 + 600000, 4e9 + 7000000}

func TestMain(m *testing.M) {
	if address := os.Getenv(agentAddress); address != "" {
		o := agent.Options{Root: "/", Kernel: measure.ThisKernel(), Listen: address, Settings: agent.Usual, Source: measure.OS}
		o.Interval = killedWindow
		if file := os.Getenv(agentReplay); file != "" {
			o.Source, o.Choice, o.Replay = measure.Auto, resolve.Choice{CPU: "icelakex"}, file
		}
		a, err := agent.New(o)
		if err == nil {
			err = a.Run(context.Background())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A victim is an agent in a process of its own, which is killed now and then.
type victim struct {
	exporter
	replay string
	cmd    *exec.Cmd
	lives  []time.Time // when each began
}

func (v *victim) begin(t *testing.T) {
	t.Helper()
	v.lives = append(v.lives, time.Now())
	v.cmd = exec.Command(os.Args[0])
	v.cmd.Env = append(os.Environ(), agentAddress+"="+v.address, agentReplay+"="+v.replay)
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process as nothing can prevent.
func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
}

// windows is how many windows in a row have so many slots, wherever they begin; -1 if none have.
func windows(slots float64) int {
	if slots == 0 {
		return 0
	}
	n := int(math.Round(slots / playedSlots[0]))
	for first := range playedSlots {
		for count := max(0, n-2); count <= n; count++ {
			sum := 0.0
			for i := range count {
				sum += playedSlots[(first+i)%len(playedSlots)]
			}
			if sum == slots {
				return count
			}
		}
	}
	return -1
}

// TestKilled: agents are killed at any instant while a store scrapes them. All that the store
// has are whole windows, and never more than one life had time for: nothing is counted twice.
func TestKilled(t *testing.T) {
	if !testlong.Enabled() {
		t.Skip("it waits for real servers: -long runs it")
	}
	file := filepath.Join(t.TempDir(), "intervals.csv")
	var b strings.Builder
	for i, slots := range playedSlots {
		for _, e := range []struct {
			name  string
			share float64
		}{{"slots", 1}, {"topdown-retiring", 0.4}, {"topdown-bad-spec", 0.1}, {"topdown-fe-bound", 0.2}, {"topdown-be-bound", 0.3}} {
			fmt.Fprintf(&b, "%d.000000000,%.0f,,%s,1000000000,100.00,,\n", i+1, slots*e.share, e.name)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var list []*victim
	var targets []string
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		v := &victim{exporter: exporter{t: t, address: l.Addr().String()}}
		l.Close()
		if i < 2 {
			v.replay, v.options.Replay = file, file
		}
		list, targets = append(list, v), append(targets, v.address)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: cyclestack\n  static_configs:\n  - targets: [%s]\n", strings.Join(targets, ", "))
	s := start(t, "prometheus", config)
	for _, v := range list {
		v.begin(t)
		t.Cleanup(v.kill)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	length := time.Duration(testlong.Size(5, 20)) * time.Second
	from := time.Now()
	for time.Since(from) < length {
		time.Sleep(time.Duration(300+r.IntN(1500)) * time.Millisecond)
		v := list[r.IntN(len(list))]
		v.kill()
		v.begin(t)
	}
	time.Sleep(4 * time.Second) // all of them live, and are scraped
	to := time.Now()
	for _, v := range list[:2] {
		v.check(t, s.URL, from, to)
	}
	report := run[fleet.Report](t, fleet.Options{Access: fleet.Access{URL: s.URL, Timeout: time.Minute}, By: "instance", Range: to.Sub(from),
		At: strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64), Level: 1})
	if report.Answer.Seen != 3 {
		t.Errorf("%d hosts, want 3", report.Answer.Seen)
	}
	for _, set := range report.Sets {
		for _, a := range set.Accounts {
			if a.By == list[2].address {
				continue
			}
			for node, want := range map[string]float64{"Retiring": 0.4, "Bad_Speculation": 0.1, "Frontend_Bound": 0.2, "Backend_Bound": 0.3} {
				if got := a.Value(node); !(math.Abs(got-want) < 1e-6) {
					t.Errorf("%s: %s is %g, want %g", a.By, node, got, want)
				}
			}
		}
	}
}

// check holds a store's samples of the whole to what the agent had time to play.
func (v *victim) check(t *testing.T, url string, from, to time.Time) {
	t.Helper()
	const slack = 3 // windows: a scrape takes time, and so does a start
	samples := 0    // with any window
	for _, series := range v.counters(t, url, from, to) {
		if series.node != "" {
			continue
		}
		for _, x := range series.values {
			at := time.UnixMilli(int64(x[0] * 1000))
			longest := time.Duration(0) // of the lives that a scrape of that time may have met
			for i, begin := range v.lives {
				if begin.Before(at.Add(time.Second)) && (i+1 == len(v.lives) || v.lives[i+1].After(at.Add(-time.Second))) {
					longest = max(longest, at.Add(time.Second).Sub(begin))
				}
			}
			n := windows(x[1])
			if n < 0 || n > int(longest/killedWindow)+slack {
				t.Errorf("%s at %v: %.0f slots are %d windows, and it lived for %v at most", v.address, at, x[1], n, longest)
			}
			if n > 0 {
				samples++
			}
		}
	}
	if samples < 2 {
		t.Errorf("%s: %d samples", v.address, samples)
	}
}
