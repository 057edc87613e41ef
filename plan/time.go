package plan

import "math"

// When an account relies upon counts that took turns: see account.Doubt. The
// kernel's turns last 4 ms (perf_event_mux_interval_ms of its core PMUs, where
// the timer is not slower).
const (
	EnoughShare   = 0.5   // of the time: that counted so much is relied upon
	EnoughSeconds = 0.4   // counted in all: so is that
	TurnSeconds   = 0.004 // that a turn lasts
)

// Coverage returns the share of the time for which the events of a node are on
// counters if the groups take turns as in Rotation: that of the group that is
// seen least. It is 1 for what is counted all of the time, and NaN for what is
// not counted.
func (p *Plan) Coverage(n *Node) float64 {
	return p.coverage(n, func(g int) float64 { return float64(p.Groups[g].Turns) / float64(len(p.Rotation)) })
}

// EqualCoverage is Coverage for groups that take equal turns, as they do under
// the kernel's multiplexing.
func (p *Plan) EqualCoverage(n *Node) float64 {
	return p.coverage(n, func(int) float64 { return 1 / float64(len(p.Groups)) })
}

func (p *Plan) coverage(n *Node, share func(group int) float64) float64 {
	if n.Missing != "" {
		return math.NaN()
	}
	least := 1.0
	for _, g := range n.Groups {
		least = min(least, share(g))
	}
	return least
}

// ShortestRun returns the seconds that a program must run for every node to be
// counted long enough to be relied upon; 0 if any time will do. equal is for
// groups that take equal turns.
func (p *Plan) ShortestRun(equal bool) float64 {
	longest := 0.0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		c := p.Coverage(n)
		if equal {
			c = p.EqualCoverage(n)
		}
		if c < EnoughShare {
			longest = max(longest, EnoughSeconds/c)
		}
	}
	return longest
}

// Error returns the half-width of the 95 % confidence interval that a node's
// value can be expected to have after a run of so many seconds with the groups'
// turns as in Rotation, relative to the value. It is NaN for a node that is not
// counted.
//
// What varies is not known before the run. This is what comes of a program whose
// counts per event in the turns of 4 ms scatter by as much as their mean,
// independently: one that scatters less is known better, one with long phases
// worse. Counts of several groups scatter each for itself.
func (p *Plan) Error(n *Node, seconds float64) float64 {
	if n.Missing != "" {
		return math.NaN()
	}
	const confidence = 1.96
	variance := 0.0
	for _, g := range n.Groups {
		share := float64(p.Groups[g].Turns) / float64(len(p.Rotation))
		variance += (1 - share) / (share * seconds / TurnSeconds)
	}
	return confidence * math.Sqrt(variance)
}
