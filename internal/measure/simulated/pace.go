package simulated

import (
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation"
)

// Progress is how far a simulation is.
type Progress struct {
	Share float64       // of the run that was simulated
	Total time.Duration // that it takes in all; 0 until that can be told
	Spend time.Duration // processor time that it takes in all
	Tell  bool          // that Total can be told, or is another than what was told
}

// A pace predicts how long a simulation takes. The processor time for a part of the run is nearly
// the same throughout, but at the beginning: all code is new then. So the later half of the time so
// far counts. How long the simulator has a processor depends on other programs.
type pace struct {
	begin  time.Time
	cycles float64 // that the run has
	marks  []mark
	each   time.Duration // between marks
	told   time.Duration
}

// A mark is the share of the run that was simulated with some processor time.
type mark struct {
	spent time.Duration
	share float64
}

const (
	paceFirst  = time.Second      // that a prediction needs
	paceLeast  = 0.2              // of the run, also
	paceLate   = 15 * time.Second // when less is enough:
	paceLittle = 0.1              // of the run
	paceMarks  = 1024             // at most
	// paceOther is the change of a prediction that is worth telling, until paceKnown of the run.
	paceOther = 0.3
	paceKnown = 0.8
)

// at returns the progress after a time.
func (p *pace) at(after time.Duration, now simulation.Progress) Progress {
	share := min(now.Cycles/p.cycles, 1)
	p.mark(mark{now.Spent, share})
	if share == 0 || !(after >= paceFirst && share >= paceLeast || after >= paceLate && share >= paceLittle) {
		return Progress{Share: share}
	}
	half := p.marks[0]
	for _, m := range p.marks {
		if m.spent <= now.Spent/2 {
			half = m
		}
	}
	if share <= half.share {
		half = mark{}
	}
	left := float64(now.Spent-half.spent)/(share-half.share)*(1-share) + float64(now.Rest)
	to := Progress{Share: share, Total: after + time.Duration(left*float64(after)/float64(max(now.Spent, 1))), Spend: now.Spent + time.Duration(left)}
	if change := float64(to.Total)/float64(max(p.told, 1)) - 1; p.told == 0 || share < paceKnown && (change > paceOther || change < -paceOther) {
		p.told, to.Tell = to.Total, true
	}
	return to
}

// mark keeps a mark. If there are many, every other one goes.
func (p *pace) mark(m mark) {
	if n := len(p.marks); n > 0 && m.spent-p.marks[n-1].spent < p.each {
		return
	}
	if len(p.marks) == paceMarks {
		for i := range paceMarks / 2 {
			p.marks[i] = p.marks[2*i]
		}
		p.marks, p.each = p.marks[:paceMarks/2], max(2*p.each, 2*(m.spent/paceMarks))
	}
	p.marks = append(p.marks, m)
}

// Other load makes a program's own run take more cycles: it shares caches and units of cores.
// Simulations of 24 programs had 0.3 to 1.3 times the cycles of such runs. Half of them had 0.75
// or less. The load was four to seven times the number of processors.
const busyShare = 0.72

// simulatedCycles expects how many cycles a simulation has, of a run that took so many here.
func simulatedCycles(cycles float64, root fs.FS) float64 {
	text, err := fs.ReadFile(root, "proc/loadavg")
	if err != nil {
		return cycles
	}
	first, _, _ := strings.Cut(string(text), " ")
	if load, err := strconv.ParseFloat(first, 64); err == nil && load > float64(runtime.NumCPU()) {
		return cycles * busyShare
	}
	return cycles
}
