package plan

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
)

// When an account relies on multiplexed counts: see account.Doubt. The kernel
// rotates groups every 4 ms (perf_event_mux_interval_ms of its core PMUs, unless the
// timer is slower).
const (
	EnoughShare   = 0.5   // of the time: a count of that share is reliable
	EnoughSeconds = 0.4   // counted in all: so is that
	turnSeconds   = 0.004 // that a turn lasts

)

// Coverage returns the share of time that a node's events are on counters, with groups
// multiplexed as in Rotation: the least share of its groups. It is 1 for events that are
// always counted, and NaN for a node that is not counted.
func (p *Plan) Coverage(n *Node) float64 {
	return p.coverage(n, func(g int) float64 { return float64(p.Groups[g].Turns) / float64(len(p.Rotation)) })
}

// equalCoverage is Coverage for groups with equal shares of the time, as under the
// kernel's multiplexing.
func (p *Plan) equalCoverage(n *Node) float64 {
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
// reliable; 0 if any time will do. equal is for groups with equal time.
func (p *Plan) ShortestRun(equal bool) float64 {
	longest := 0.0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		c := p.Coverage(n)
		if equal {
			c = p.equalCoverage(n)
		}
		if c < EnoughShare {
			longest = max(longest, EnoughSeconds/c)
		}
	}
	return longest
}

// Error returns the expected half-width of the 95 % confidence interval of a node's
// value, relative to the value. It is for a run of so many seconds with the groups
// multiplexed as in Rotation. It is NaN for a node that is not counted.
//
// The variation is not known before the run. This is the error of a program whose counts of
// each 4 ms scatter independently by their mean. A program that scatters less has a smaller
// error, one with long phases a larger one. Counts of several groups scatter independently.
func (p *Plan) Error(n *Node, seconds float64) float64 {
	if n.Missing != "" {
		return math.NaN()
	}
	variance := 0.0
	for _, g := range n.Groups {
		share := float64(p.Groups[g].Turns) / float64(len(p.Rotation))
		variance += (1 - share) / (share * seconds / turnSeconds)
	}
	return counts.Confidence * math.Sqrt(variance)
}
