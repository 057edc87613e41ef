package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/agent"
	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// An exporter is an agent that can be ended and started again at one address. One that is
// to be killed is a process.
type exporter struct {
	t       *testing.T
	address string
	options agent.Options
	killed  bool
	process *exec.Cmd
	end     context.CancelFunc
	done    chan struct{}
	life    int
	read    []reading
}

// exporting are the options of an agent.
func exporting(address string) agent.Options {
	return agent.Options{Root: "/", Kernel: measure.ThisKernel(), Listen: address, Settings: agent.Usual, Source: measure.Auto}
}

// A reading is an agent's counters at a time.
type reading struct {
	from time.Time // the answer came until at
	at   time.Time
	life int
	sums map[string]float64 // of scope host: by node, and "" for the whole
}

// exporters starts agents: two play a recording of slots at different speeds, one has the
// operating system's own counters.
func exporters(t *testing.T) []*exporter {
	t.Helper()
	file := filepath.Join(t.TempDir(), "intervals.csv")
	var b strings.Builder
	for i := 1; i <= 8; i++ { // shares change from window to window
		slots := 4e9 + 1e7*float64(i)
		retiring, frontend := 0.3+0.02*float64(i), 0.1+0.01*float64(i)
		for _, e := range []struct {
			name  string
			share float64
		}{{"slots", 1}, {"topdown-retiring", retiring}, {"topdown-bad-spec", 0.05}, {"topdown-fe-bound", frontend}, {"topdown-be-bound", 0.95 - retiring - frontend}} {
			fmt.Fprintf(&b, "%d.000000000,%.0f,,%s,1000000000,100.00,,\n", i, slots*e.share, e.name)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var list []*exporter
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		x := &exporter{t: t, address: l.Addr().String(), killed: i == 0}
		l.Close()
		x.options = exporting(x.address)
		x.options.Interval = time.Duration(200+100*i) * time.Millisecond
		if i < 2 {
			x.options.Choice, x.options.Replay = resolve.Choice{CPU: "icelakex"}, file
		} else {
			x.options.Source = measure.OS
		}
		x.start()
		t.Cleanup(func() { x.stop() })
		list = append(list, x)
	}
	return list
}

func (x *exporter) start() {
	if x.life++; x.killed {
		x.process = exec.Command("/proc/self/exe")
		x.process.Env = append(os.Environ(), agentAddress+"="+x.address, agentReplay+"="+x.options.Replay)
		x.process.Stderr = os.Stderr
		if err := x.process.Start(); err != nil {
			x.t.Fatal(err)
		}
		return
	}
	ctx, end := context.WithCancel(context.Background())
	a, err := agent.New(x.options)
	if err != nil {
		end()
		x.t.Fatal(err)
	}
	done := make(chan struct{})
	x.end, x.done = end, done
	go func() { defer close(done); _ = a.Run(ctx) }()
}

// stop ends the agent, or kills it, whatever it is at.
func (x *exporter) stop() {
	if x.life++; x.killed {
		_ = x.process.Process.Kill()
		_ = x.process.Wait()
		return
	}
	x.end()
	<-x.done
}

// look reads the agent's counters.
func (x *exporter) look() {
	from := time.Now()
	res, err := http.Get("http://" + x.address + "/metrics")
	if err != nil {
		return // it is between two lives
	}
	defer res.Body.Close()
	r := reading{from: from, life: x.life, sums: map[string]float64{}}
	unit := series.Slots
	if x.options.Replay == "" {
		unit = series.CPUSeconds
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		metric, labels, _ := strings.Cut(name, "{")
		if !strings.Contains(labels, `scope="host"`) || metric != unit.Whole && metric != unit.Node(1) {
			continue
		}
		node := ""
		if _, rest, ok := strings.Cut(labels, `node="`); ok {
			node, _, _ = strings.Cut(rest, `"`)
		}
		v, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			x.t.Errorf("%s: %v", lines.Text(), err)
		}
		r.sums[node] += v
	}
	r.at = time.Now()
	x.read = append(x.read, r)
}

// scraped is what a store has of a counter: times in seconds, and values.
type scraped struct {
	node   string // "" for the whole
	values [][2]float64
}

// counters asks a store for its samples of an agent's counters in a range. It has some before
// the range, as VictoriaMetrics looks at these too.
func (x *exporter) counters(t *testing.T, url string, from, to time.Time) (list []scraped) {
	t.Helper()
	query := fmt.Sprintf(`{__name__=~"%s|%s|%s|%s", scope="host", instance="%s"}[%dms]`, series.Slots.Whole, series.Slots.Node(1),
		series.CPUSeconds.Whole, series.CPUSeconds.Node(1), x.address, (to.Sub(from) + 5*time.Second).Milliseconds())
	res, err := http.PostForm(url+"/api/v1/query", map[string][]string{"query": {query}, "time": {strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var d struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Data.Result {
		if x.options.Replay != "" && r.Metric[series.Method] != series.Replayed {
			continue // the operating system's account of the same host
		}
		s := scraped{node: r.Metric[series.Node]}
		for _, v := range r.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			s.values = append(s.values, [2]float64{at, value})
		}
		list = append(list, s)
	}
	return list
}

// own holds a store's samples to the agent's counters: each lies between those of a look
// before the scrape and of a look behind it. It returns how many could be held.
func (x *exporter) own(t *testing.T, s scraped) (held int) {
	const timeout = 1.0 // of a scrape
	for _, v := range s.values {
		before, after := -1, -1
		for i, r := range x.read {
			at := float64(r.at.UnixMicro()) / 1e6
			if at <= v[0] {
				before = i
			}
			if after < 0 && float64(r.from.UnixMicro())/1e6 >= v[0]+timeout {
				after = i
			}
		}
		if before < 0 || after < 0 || x.read[before].life != x.read[after].life {
			continue
		}
		held++
		if low, high := x.read[before].sums[s.node], x.read[after].sums[s.node]; v[1] < low || v[1] > high {
			t.Errorf("%s: a scrape of %q has %g, the agent had %g before it and %g after it", x.address, s.node, v[1], low, high)
		}
	}
	return held
}

// increase is the growth of a counter since a time, as Prometheus has it: the first value is
// where it begins, and each fall is a restart from 0. With before, it begins one sample earlier.
func (s *scraped) increase(from time.Time, before bool) float64 {
	first := 0
	for first < len(s.values)-1 && s.values[first][0] < float64(from.UnixMilli())/1000 {
		first++
	}
	if before && first > 0 {
		first--
	}
	sum, last := 0.0, s.values[first][1]
	for _, v := range s.values[first+1:] {
		if v[1] < last {
			last = 0
		}
		sum, last = sum+v[1]-last, v[1]
	}
	return sum
}

// young reports whether a counter was at 0 little more than a scrape before a time. It goes by
// how the counter grew since. Time is hardly stolen on some machines.
func (s *scraped) young(from time.Time) bool {
	const scrapes = 1.1 // of a second
	first := 0
	for first < len(s.values)-1 && s.values[first][0] < float64(from.UnixMilli())/1000 {
		first++
	}
	return s.values[first][1]*(s.values[len(s.values)-1][0]-s.values[first][0]) < scrapes*s.increase(from, false)
}

// TestAgents: real agents are scraped by real stores. The fleet's account of each is that of
// the agent's own counters at the scrapes. Kills at any instant, and scrapes that are lost
// meanwhile, lose nothing but their time, and nothing is counted twice.
func TestAgents(t *testing.T) {
	if !testlong.Enabled() {
		t.Skip("it waits for real servers: -long runs it")
	}
	list := exporters(t)
	var targets []string
	for _, x := range list {
		targets = append(targets, x.address)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: cyclestack\n  static_configs:\n  - targets: [%s]\n", strings.Join(targets, ", "))
	urls := map[string]string{}
	for name := range stores {
		t.Run("start "+name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "cyclestack-")
			if err != nil {
				t.Fatal(err)
			}
			s, err := stores[name](dir, config)
			if err != nil {
				t.Skip(err)
			}
			urls[name] = s.URL
			list[0].t.Cleanup(func() { s.Stop(); os.RemoveAll(dir) })
		})
	}
	if len(urls) == 0 {
		t.Skip("no store is installed")
	}
	// The first agent is killed at three instants, and starts again.
	const length = 17 * time.Second
	rng := rand.New(rand.NewPCG(1, 2))
	var changes []time.Duration // ends and starts in turn
	for k := range 3 {
		at := time.Duration((6 + 3.3*float64(k) + 1.5*rng.Float64()) * float64(time.Second))
		changes = append(changes, at, at+time.Duration((0.1+1.4*rng.Float64())*float64(time.Second)))
	}
	for start := time.Now(); time.Since(start) < length; time.Sleep(100 * time.Millisecond) {
		if len(changes) > 0 && time.Since(start) > changes[0] {
			if changes = changes[1:]; len(changes)%2 == 1 {
				list[0].look()
				list[0].stop()
			} else {
				list[0].start()
			}
		}
		for _, x := range list {
			x.look()
		}
	}
	to := time.Now()
	from := to.Add(-12 * time.Second) // well behind the first values, which a store extrapolates otherwise
	time.Sleep(2 * time.Second)       // until a store shows what it has
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			r := run[fleet.Report](t, fleet.Options{Access: fleet.Access{URL: url, Timeout: time.Minute}, By: "instance", Range: to.Sub(from),
				At: strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64), Level: 1})
			if r.Answer.Seen != 3 || r.Answer.Expected != 3 {
				t.Errorf("%d of %d hosts, want 3 of 3", r.Answer.Seen, r.Answer.Expected)
			}
			checked := 0
			for _, set := range r.Sets {
				for _, a := range set.Accounts {
					for _, x := range list {
						if x.address == a.By {
							checked += x.check(t, url, set, a, from, to)
						}
					}
				}
			}
			if want := 4 + 4 + 3; checked != want {
				t.Errorf("%d nodes, want %d", checked, want)
			}
			print(t, r)
			byCPU := run[fleet.Report](t, fleet.Options{Access: fleet.Access{URL: url, Timeout: time.Minute}, By: "cpu", Range: to.Sub(from), At: strconv.FormatInt(to.Unix(), 10), Level: 1})
			hosts := map[string]int{}
			for _, set := range byCPU.Sets {
				hosts[set.Key.Model] += set.Accounts[0].Row.Hosts()
			}
			if hosts["tma"] != 2 || hosts["os-time"] != 1 || len(byCPU.Sets) != 2 {
				t.Errorf("hosts by model are %v, want 2 and 1", hosts)
			}
		})
	}
}

// check holds an account to the agent's own counters.
func (x *exporter) check(t *testing.T, url string, set *fleet.Set, a *fleet.Account, from, to time.Time) (nodes int) {
	const digits = 1e-9 // of numbers in JSON
	list := x.counters(t, url, from, to)
	whole := slices.IndexFunc(list, func(s scraped) bool { return s.node == "" })
	if whole < 0 {
		t.Fatalf("%s: the store has no whole", x.address)
	}
	held := 0
	for _, s := range list {
		held += x.own(t, s)
	}
	if held < len(list) {
		t.Errorf("%s: only %d samples of %d counters are known to be the agent's", x.address, held, len(list))
	}
	for i, v := range a.Values() {
		name := set.Model.Nodes[i].Name
		k := slices.IndexFunc(list, func(s scraped) bool { return s.node == name })
		if k < 0 {
			t.Errorf("%s: the store has no %s", x.address, name)
			continue
		}
		nodes++
		inside, longer := list[k].increase(from, false)/list[whole].increase(from, false), list[k].increase(from, true)/list[whole].increase(from, true)
		tolerance := digits
		if list[k].young(from) { // extrapolated down to its 0 only, unlike the whole
			tolerance = max(inside/to.Sub(from).Seconds(), digits)
		}
		if math.Abs(v.Value-inside) > tolerance && math.Abs(v.Value-longer) > tolerance {
			t.Errorf("%s: %s is %.9f, the agent counted %.9f, or %.9f with the scrape before", a.By, name, v.Value, inside, longer)
		}
	}
	return nodes
}
