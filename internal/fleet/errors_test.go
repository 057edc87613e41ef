package fleet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/cyclestack/cyclestack/internal/fleet"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/testfleet"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// TestCovered: of many fleets of a known truth, 92.5 to 98 % have it within the 95 % error. It
// holds from two hosts on, and for hosts of very different size.
func TestCovered(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := []struct {
		name string
		of   func() float64
	}{
		{"equal", func() float64 { return 1 }},
		{"up to 1.7 times the mean", func() float64 { return 1 + 0.4*math.Sqrt(3)*(2*rng.Float64()-1) }},
		{"lognormal, sigma of 1", func() float64 { return math.Exp(rng.NormFloat64()) }},
	}
	fleets := 4000
	if testlong.Enabled() {
		fleets = 40000
	}
	const truth = 0.3
	for _, size := range sizes {
		for _, hosts := range []int{2, 3, 5, 9, 30, 200} {
			outside := 0
			for range fleets {
				w := &fleet.Whole{Hosts: float64(hosts)}
				p := fleet.Part{Of: w}
				for range hosts {
					q := size.of()
					n := q * truth * (1 + 0.1*rng.NormFloat64())
					w.Q, w.QQ = w.Q+q, w.QQ+q*q
					p.N, p.NN, p.NQ = p.N+n, p.NN+n*n, p.NQ+n*q
				}
				r := (&fleet.Node{Parts: []fleet.Part{p}}).Ratio()
				// The chance of what lies as far out, which has no need of a quantile.
				if 2*(stats.TDist{V: r.Freedom}).CDF(-math.Abs(r.Value-truth)/r.Error) < 0.05 {
					outside++
				}
			}
			part := float64(outside) / float64(fleets)
			t.Logf("%d hosts, %s: %.1f %% outside", hosts, size.name, 100*part)
			if part < 0.02 || part > 0.075 {
				t.Errorf("%d hosts, %s: %.1f %% are outside of the 95 %% error", hosts, size.name, 100*part)
			}
		}
	}
}

// TestPaired: two ranges of the same hosts are compared host by host. The error is that of
// the differences, and far below the one of hosts that are not the same.
func TestPaired(t *testing.T) {
	t.Parallel()
	f := &testfleet.Fleet{Hosts: 40, Services: 2, Levels: 1, Spread: 0.1, Seed: 9, Worse: 0.05, WorseService: 1, CanaryEvery: 1, WorseStep: 6}
	times := testfleet.Times(time.Now().Add(-time.Minute), 11)
	s := start(t, "prometheus", "")
	write(t, f, s, times)
	o := options(s, times[len(times)-1])
	o.Range, o.Before, o.Where = 5*time.Minute, 5*time.Minute, []string{"cpu=skylakex"}
	c := run[*fleet.Comparison](t, o)
	if len(c.Changes) != 8 {
		t.Fatalf("%d changes", len(c.Changes))
	}
	for _, x := range c.Changes {
		service := 0
		if x.By == testfleet.Service(1) {
			service = 1
		}
		old, new := f.Each(service, 0, times[:6], 0), f.Each(service, 0, times, 5)
		want, separate, delta := differences(old, new, x.Node)
		if math.Abs(x.Delta-delta) > 1e-6 {
			t.Errorf("%s %s changed by %g, want %g", x.By, x.Node, x.Delta, delta)
		}
		if x.Error < 0.97*want || x.Error > 1.03*want {
			t.Errorf("%s %s: ± %g, want %g; not paired it is %g", x.By, x.Node, x.Error, want, separate)
		}
		if want > 0.5*separate {
			t.Errorf("%s %s: pairs have ± %g, and hosts that are not the same %g", x.By, x.Node, want, separate)
		}
		if changed := x.Changed(); changed && service == 0 || changed != (service == 1) && x.Node == "Backend_Bound" {
			t.Errorf("%s %s: p = %g", x.By, x.Node, x.P)
		}
	}
}

// differences finds, host by host, how a share differs between two ranges: its 95 % error,
// that of separate hosts, and the difference.
func differences(old, new []testfleet.Host, node string) (paired, separate, delta float64) {
	sums := func(list []testfleet.Host) (n, q, qq float64) {
		for _, h := range list {
			n, q, qq = n+h.Nodes[node], q+h.Whole, qq+h.Whole*h.Whole
		}
		return n, q, q * q / qq
	}
	n0, q0, e0 := sums(old)
	n1, q1, e1 := sums(new)
	both, apart := 0.0, 0.0
	for i := range old {
		d0, d1 := (old[i].Nodes[node]-n0/q0*old[i].Whole)/q0, (new[i].Nodes[node]-n1/q1*new[i].Whole)/q1
		both += (d1 - d0) * (d1 - d0)
		apart += d0*d0 + d1*d1
	}
	e := min(e0, e1)
	t := stats.InvCDF(stats.TDist{V: e - 1})(0.975) * math.Sqrt(e/(e-1))
	return t * math.Sqrt(both), t * math.Sqrt(apart), n1/q1 - n0/q0
}

// TestFamily: of comparisons of equal fleets, one in twenty finds any change. Each makes many
// tests, and a canary has few hosts.
func TestFamily(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	const services = 30
	comparisons := testlong.Size(200, 2000)
	cpus := []struct {
		name  string
		hosts [2]int
	}{{"skylakex", [2]int{95, 25}}, {"icelakex", [2]int{57, 15}}, {"sapphirerapids", [2]int{38, 10}}}
	answer := func(side int, shares map[string]float64) *fleet.Answer {
		a := &fleet.Answer{}
		for s := range services {
			for _, cpu := range cpus {
				w := &fleet.Whole{Hosts: float64(cpu.hosts[side])}
				name := fmt.Sprint("service", s)
				p := fleet.Part{Of: w}
				for range cpu.hosts[side] {
					q := 1 + 0.4*math.Sqrt(3)*(2*rng.Float64()-1)
					n := q * shares[name] * (1 + 0.1*rng.NormFloat64())
					w.Q, w.QQ = w.Q+q, w.QQ+q*q
					p.N, p.NN, p.NQ = p.N+n, p.NN+n*n, p.NQ+n*q
				}
				a.Rows = append(a.Rows, &fleet.Row{Key: fleet.Key{By: name, CPU: cpu.name, Model: "m", Unit: series.Slots}, CPUs: w.Q,
					Wholes: map[string]*fleet.Whole{"": w}, Nodes: []fleet.Node{{Name: "Backend_Bound", Level: 1, Parts: []fleet.Part{p}}}})
			}
		}
		return a
	}
	found := 0
	for range comparisons {
		shares := map[string]float64{}
		for s := range services {
			shares[fmt.Sprint("service", s)] = 0.1 + 0.4*rng.Float64()
		}
		c := fleet.Compare(answer(0, shares), answer(1, shares), [2]string{})
		if c.Tests != services {
			t.Fatalf("%d tests", c.Tests)
		}
		if slices.ContainsFunc(c.Changes, fleet.Change.Changed) {
			found++
		}
	}
	part := float64(found) / float64(comparisons)
	t.Logf("%.1f %% of %d comparisons find a change", 100*part, comparisons)
	if part > 0.05+3*math.Sqrt(0.05*0.95/float64(comparisons)) {
		t.Errorf("%.1f %% of comparisons find a change where there is none", 100*part)
	}
}
