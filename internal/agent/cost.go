package agent

import (
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// A cost measures what the agent takes, and keeps it within the budget: what counts longer
// than it may counts less often.
type cost struct {
	mu     sync.Mutex
	a      *Agent
	own    *counter // processor time of the process
	last   time.Duration
	since  time.Time // of the minute that is judged
	spent  time.Duration
	over   int     // minutes in a row
	duty   float64 // share of the time that groups may be counted
	factor float64 // of the interval
	kernel time.Duration
	kern   *counter
}

// Bounds of what the controller may change.
const (
	leastDuty  = 1.0 / 64
	mostFactor = 6
	judgeEvery = time.Minute
)

func newCost(a *Agent) *cost {
	f := a.s.r.family(series.Cost, "processor time that the agent took: its own, and the kernel's for its counters as estimated", seconds)
	return &cost{a: a, own: a.s.r.get(f, "part", "process"), kern: a.s.r.get(f, "part", "kernel"), last: processTime(), since: time.Now(), duty: 1, factor: 1}
}

// measure takes notice of what was spent. Once a minute it is judged.
func (c *cost) measure(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spent := processTime()
	step := spent - c.last
	c.last = spent
	kernel := c.kernel
	c.kernel = 0
	c.spent += step + kernel
	r := c.a.s.r
	r.mu.Lock()
	c.own.addNanos(int64(step))
	c.kern.addNanos(int64(kernel))
	r.mu.Unlock()
	if since := now.Sub(c.since); since >= judgeEvery {
		c.judge(since)
		c.since, c.spent = now, 0
	}
}

// judge compares a minute with the budget.
func (c *cost) judge(since time.Duration) {
	o, _ := c.a.settings()
	processors := max(1, c.a.host.online)
	ratio := float64(c.spent) / float64(since) / float64(processors)
	switch {
	case ratio > o.Budget:
		c.over++
		if c.over >= 2 {
			c.over = 0
			if c.duty > leastDuty {
				c.duty = max(leastDuty, c.duty/2)
			} else {
				c.factor = min(mostFactor, c.factor*1.5)
			}
			c.a.o.Log.Warn("over the budget", "ratio", ratio, "budget", o.Budget, "duty", c.duty, "interval_factor", c.factor)
		}
	case ratio < o.Budget/2:
		c.over = 0
		if c.factor > 1 {
			c.factor = max(1, c.factor/1.25)
		} else {
			c.duty = min(1, c.duty*1.25)
		}
	default:
		c.over = 0
	}
	r := c.a.s.r
	r.mu.Lock()
	c.a.gauges[series.CostRatio].set(ratio)
	c.a.gauges[series.Budget].set(o.Budget)
	r.mu.Unlock()
}

// charge adds processor time that the kernel took for counters.
func (c *cost) charge(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kernel += d
}

// stretch returns an interval as the budget allows.
func (c *cost) stretch(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(float64(d) * c.factor)
}

// share returns the part of the time that groups may be counted in.
func (c *cost) share() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.duty
}
