package emulator

import (
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/child"
)

// A Progress is how far a simulation is.
type Progress struct {
	Cycles  float64       // that were simulated so far
	Elapsed time.Duration // since the emulator was started: its plugin may be built before
	Spent   time.Duration // processor time so far, of this process and the emulator's
	Rest    time.Duration // processor time that follows the program's end
	Code    int           // different instructions so far
	Moved   int64         // bytes that the program has read and written so far
}

// progressEach is the least time between two calls of Options.Progress.
const progressEach = 50 * time.Millisecond

// Processor time after the run: that of each instruction of the code is for its symbol, its line and
// its place in the file.
const (
	restLeast = 50 * time.Millisecond
	restEach  = 2 * time.Microsecond
)

// progress tells how far the simulation is.
func (r *run) progress() {
	now := time.Now()
	if r.options.Progress == nil || now.Sub(r.told) < progressEach {
		return
	}
	r.told = now
	var pids []int
	for pid, p := range r.by {
		if !p.ended {
			pids = append(pids, pid)
		}
	}
	r.options.Progress(Progress{r.cycles, now.Sub(r.since), child.Spent(pids) - r.before, restLeast + restEach*time.Duration(r.code.n), r.code.n, child.Moved(pids)})
}
