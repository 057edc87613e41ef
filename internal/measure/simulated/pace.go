package simulated

import (
	"math"
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

// A pace predicts how long a simulation takes. The processor time of new code and of windows is known,
// and both become rarer. The rest is nearly the same for each part of the run. How long the simulator has
// a processor depends on other programs.
type pace struct {
	begin  time.Time
	cycles float64 // that the run is expected to have
	moved  float64 // bytes that it read and wrote by itself
	marks  []mark
	each   time.Duration // between marks
	told   time.Duration
	tells  int
}

// A mark is what was simulated with some processor time.
type mark struct {
	elapsed, spent, known time.Duration
	cycles, moved         float64
}

const (
	paceFirst  = 2 * time.Second  // that a prediction needs
	paceLeast  = 0.4              // of the run, also
	paceLate   = 15 * time.Second // when less is enough:
	paceLittle = 0.2              // of the run
	paceMarks  = 1024             // at most
	// paceOther is the change of a prediction that is worth telling, until paceKnown of the run.
	paceOther = 0.3
	paceKnown = 0.8
	paceTells = 2 // predictions are told at most
)

// at returns the progress after a time.
func (p *pace) at(after time.Duration, now simulation.Progress) Progress {
	m := mark{now.Elapsed, now.Spent, now.Known, now.Cycles, float64(now.Moved)}
	p.mark(m)
	whole := p.whole(&m)
	share := min(now.Cycles/whole, 1)
	if share == 0 || !(after >= paceFirst && share >= paceLeast || after >= paceLate && share >= paceLittle) {
		return Progress{Share: share}
	}
	left, each := p.left(&m, max(whole, m.cycles)), p.ratio(&m)
	rest := float64(now.Rest)
	// The emulator and this process run side by side. What follows the program's end is this process alone.
	to := Progress{Share: share, Total: after + time.Duration(left*each+rest*max(each, 1)), Spend: now.Spent + time.Duration(left+rest)}
	if change := float64(to.Total)/float64(max(p.told, 1)) - 1; p.told == 0 || p.tells < paceTells && share < paceKnown && (change > paceOther || change < -paceOther) {
		p.told, p.tells, to.Tell = to.Total, p.tells+1, true
	}
	return to
}

// half returns the mark at half of the processor time so far; the beginning if there is none.
func (p *pace) half(now *mark) (half mark) {
	for _, m := range p.marks {
		if m.spent <= now.spent/2 && m.cycles < now.cycles {
			half = m
		}
	}
	return half
}

// paceOthers is the power of a ratio above 1 that holds for the rest: other load comes and goes.
const paceOthers = 0.85

// ratio returns the elapsed time for a processor time, by the later half so far.
func (p *pace) ratio(now *mark) float64 {
	half := p.half(now)
	each := float64(now.elapsed-half.elapsed) / float64(max(now.spent-half.spent, 1))
	if each > 1 {
		return math.Pow(each, paceOthers)
	}
	return each
}

// paceRest is the least share of the processor time that is not known.
const paceRest = 0.2

// left predicts the processor time of the rest of the run, from the later half so far. Each doubling of the run
// is taken to bring as many windows, and as much new code.
func (p *pace) left(now *mark, whole float64) float64 {
	half := p.half(now)
	known, spent := float64(now.known-half.known), float64(now.spent-half.spent)
	left := max(spent-known, paceRest*spent) / (now.cycles - half.cycles) * (whole - now.cycles)
	if half.cycles > 0 {
		left += known * math.Log(whole/now.cycles) / math.Log(now.cycles/half.cycles)
	}
	return left
}

// A program that reads or writes steadily shows by that how far it is. Less than movedLeast bytes in
// the run say nothing. Nor does a share below movedPart in the later half of the time so far. Nor do bytes
// that differ from a steady part by more than movedApart. Other instructions than the processor's may
// make a simulation movedLonger times longer than expected. Little makes it shorter: then the mean of
// both holds.
const (
	movedLeast   = 1 << 20
	movedPart    = 0.02
	movedApart   = 0.15
	movedLonger  = 8
	movedShorter = 0.5
)

// whole returns how many cycles the run is expected to have.
func (p *pace) whole(now *mark) float64 {
	half := p.half(now)
	cycles, moved := now.cycles-half.cycles, now.moved-half.moved
	if p.moved < movedLeast || moved < movedPart*p.moved {
		return p.cycles
	}
	whole := now.cycles + (p.moved-now.moved)/moved*cycles
	if whole > p.cycles*movedLonger || whole < p.cycles*movedShorter {
		return p.cycles
	}
	for _, m := range p.marks {
		if m.cycles > half.cycles && math.Abs((m.moved-half.moved)/moved-(m.cycles-half.cycles)/cycles) > movedApart {
			return p.cycles
		}
	}
	return max(whole, math.Sqrt(whole*p.cycles))
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

// ownShare is how many cycles are simulated for each that a run by itself takes here. Kernel, other programs and other
// virtual machines make its caches cold. The median of 28 programs was 0.78, 0.79 and 0.71 at a load of 2 to 9; this is their mean. The
// quartiles were 0.6 to 0.97. With the shortest of twelve runs the median was 0.86.
const ownShare = 0.76
