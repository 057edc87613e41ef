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
	Known   time.Duration // a part of it: that of windows, and of code that is new in its process
	Rest    time.Duration // processor time that follows the program's end
	Moved   int64         // bytes that the program has read and written so far
}

// progressEach is the least time between two calls of Options.Progress.
const progressEach = 50 * time.Millisecond

// Processor time of windows, of the instructions of a process that are translated, and after the run. After it each
// different instruction takes some for its symbol, its line and its place in the file. So it was of 29 programs on an
// AMD EPYC (Zen 4).
const (
	windowTime = 1400 * time.Microsecond
	codeTime   = 3600 * time.Nanosecond
	restLeast  = 100 * time.Millisecond
	restEach   = 1300 * time.Nanosecond
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
	r.options.Progress(Progress{Cycles: r.cycles, Elapsed: now.Sub(r.since), Spent: child.Spent(pids) - r.before, Moved: child.Moved(pids),
		Known: windowTime*time.Duration(r.begun) + codeTime*time.Duration(r.translated), Rest: restLeast + restEach*time.Duration(r.code.n)})
}
