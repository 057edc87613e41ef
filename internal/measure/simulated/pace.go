package simulated

import (
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Progress is how far a simulation is.
type Progress struct {
	Share float64       // of the run that was simulated
	Total time.Duration // that it takes in all; 0 until that can be told
	First bool          // that it can be told
}

// A pace predicts how long a simulation takes, from its first second. Its beginning is slower
// than the rest, as all code is new then: the later half of the time so far counts.
type pace struct {
	begin time.Time
	marks []mark
	total time.Duration
}

// A mark is the share of the run that was simulated at a time.
type mark struct {
	after time.Duration
	share float64
}

const (
	paceFirst  = time.Second           // that a prediction needs
	paceLeast  = 0.3                   // of the run, also
	paceLate   = 10 * time.Second      // when less is enough:
	paceLittle = 0.1                   // of the run
	paceEach   = 20 * time.Millisecond // between marks
	// paceAfter is what follows the run, symbols and the account, as a share of the time so far.
	paceAfter = 0.4
)

// at returns the progress when a share was simulated after a time.
func (p *pace) at(after time.Duration, share float64) Progress {
	if n := len(p.marks); n == 0 || after-p.marks[n-1].after >= paceEach {
		p.marks = append(p.marks, mark{after, share})
	}
	first := p.total == 0 && share > 0 && (after >= paceFirst && share >= paceLeast || after >= paceLate && share >= paceLittle)
	if first {
		half := p.marks[0]
		for _, m := range p.marks {
			if m.after <= after/2 {
				half = m
			}
		}
		left := float64(after) / share * (1 - share)
		if share > half.share {
			left = float64(after-half.after) / (share - half.share) * (1 - share)
		}
		p.total, p.marks = after+time.Duration(left+paceAfter*float64(after)), nil
	}
	return Progress{share, p.total, first}
}

// Other load makes a program's own run take more cycles: it shares caches and units of cores.
// Eleven programs took 1.1 to 2.6 times those of their simulation, and half of them 1.9 times or
// more. The load was 15 times the number of processors.
const busyShare = 0.65

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
