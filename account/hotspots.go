package account

import (
	"math"
	"slices"
	"time"
)

// Hotspots say where the time of a run went: what its threads did, and which code ran. All
// shares are of one whole.
type Hotspots struct {
	// Whole is what the shares are of: Elapsed, or Time if more than one thread wanted a
	// processor on average. Time is that of the processors and the run queue.
	Whole   Resource
	Seconds float64 // of the whole
	States  []TimeShare
	Places  []Hot   // the largest first
	Others  float64 // share of the code that is not among Places
	Left    int     // functions that are not among Places
	Samples int64
	// Takes is how long a simulation of the same run takes. It is 0 if there is none.
	Takes time.Duration
}

// A ThreadState is what threads do with their time.
type ThreadState string

// The states. Elsewhere is the time of the run in which the program did not exist: before
// its first instruction, and from its end until that was seen.
const (
	IsRunning  ThreadState = "running" // in user mode or the kernel, where few samples cannot tell
	InUser     ThreadState = "user"
	InKernel   ThreadState = "kernel"
	IsBlocked  ThreadState = "blocked"
	InRunQueue ThreadState = "run queue"
	Elsewhere  ThreadState = "start and end"
)

// A TimeShare is the share of the time in one state.
type TimeShare struct {
	State ThreadState
	Share float64
	Error float64 // half-width of the 95 % interval; NaN if it cannot be known
	// Events are what happened in the state: page faults, switches. NaN if not counted.
	Events float64
	What   string // the events
}

// A Hot is a function with much of the time, and its hottest loop.
type Hot struct {
	Function string // demangled; "" if it has no name
	Module   string
	Kernel   bool
	File     string // of the hottest line; "" if it is not known
	Line     int
	Addr     uint64  // of the hottest instruction, in the module
	Share    float64 // of the whole
	Error    float64
	Samples  int64
	Loop     *HotLoop // with most of the function's samples; nil for none
	Cause    *Cause   // what holds the place back; nil if the code does not tell
}

// A HotLoop is a loop of a hot function.
type HotLoop struct {
	Start, End   uint64 // addresses of the first instruction and behind the last, in the module
	First, Last  int    // lines of the source; 0 if they are not known
	Instructions int
	Share        float64 // of the whole
}

// A Cause says what holds a place in the code back, as far as the code itself tells.
type Cause struct {
	Kind string // such as "core bound"
	Text string // such as "chain of additions, 4.0 cycles"
}

// State returns the share of a state; NaN if it is not known.
func (h *Hotspots) State(s ThreadState) float64 {
	i := slices.IndexFunc(h.States, func(t TimeShare) bool { return t.State == s })
	if i < 0 {
		return math.NaN()
	}
	return h.States[i].Share
}

// Nodes of the operating system's method.
const (
	nodeThreads = "Threads"
	nodeRunning = "CPUs_Utilised"
	nodeKernel  = "System_Time"
	nodeQueued  = "Runqueue_Wait"
	nodeBlocked = "Blocked"
)

// severalThreads is the average number of threads from which waiting is that of the whole
// program, and not of each thread.
const severalThreads = 1.05

// elsewhereLeast is the least share of the time outside the program that is worth a line.
const elsewhereLeast = 0.03

// HotspotsOf returns the hotspots of an account of the operating system's counters: its
// time by state. The code is added by whoever has samples, which are n, k of them in the
// kernel. Without samples the ticks of the clock divide the time.
func HotspotsOf(a *Account, n, k int64) *Hotspots {
	ran, queued := a.Value(nodeRunning), a.Value(nodeQueued)
	if math.IsNaN(ran) {
		return nil
	}
	h := &Hotspots{Whole: Elapsed, Samples: n}
	busy := ran + orZero(queued)
	whole := 1.0
	if busy > 1 {
		h.Whole, whole = Time, busy
	}
	h.Seconds = whole * a.Duration
	kernel, wide := a.Value(nodeKernel)/ran, math.NaN()
	if i, ok := a.Node(nodeKernel); ok {
		wide = a.Nodes[i].Error / ran
	}
	if n > 0 {
		kernel = float64(k) / float64(n)
		wide = shareError(kernel, n)
	}
	ofRan := ran / whole
	if wide > splitWorst || math.IsNaN(kernel) {
		h.States = append(h.States, TimeShare{State: IsRunning, Share: ofRan, Error: math.NaN(), Events: a.Count("page-faults"), What: "page faults"})
	} else {
		h.States = append(h.States, split(kernel, wide, ofRan, a.Count("page-faults"))...)
	}
	h.wait(a, busy, whole)
	return h
}

// splitWorst is the largest error of the kernel's share of the processor time with which
// it is told from that of user mode.
const splitWorst = 0.25

// split divides the share of the time that code ran.
func split(kernel, wide, running, faults float64) []TimeShare {
	return []TimeShare{
		{State: InUser, Share: (1 - kernel) * running, Error: wide * running, Events: math.NaN()},
		{State: InKernel, Share: kernel * running, Error: wide * running, Events: faults, What: "page faults"}}
}

// wait adds the states in which no code runs.
func (h *Hotspots) wait(a *Account, busy, whole float64) {
	if h.Whole == Elapsed {
		blocked, there := 1-busy, 1.0
		if threads := a.Value(nodeThreads); threads <= severalThreads {
			blocked, there = a.Value(nodeBlocked), threads
		}
		h.States = append(h.States, TimeShare{State: IsBlocked, Share: max(0, blocked), Error: math.NaN(), Events: a.Count("context-switches"), What: "context switches"})
		if gone := 1 - there; gone >= elsewhereLeast {
			h.States = append(h.States, TimeShare{State: Elsewhere, Share: gone, Error: math.NaN(), Events: math.NaN()})
		}
	}
	if queued := a.Value(nodeQueued); !math.IsNaN(queued) {
		h.States = append(h.States, TimeShare{State: InRunQueue, Share: queued / whole, Error: math.NaN(), Events: math.NaN()})
	}
}

// shareError is the half-width of the 95 % interval of a share of n samples (Agresti and
// Coull: two more samples on each side).
func shareError(share float64, n int64) float64 {
	const z = 1.96
	of := float64(n) + z*z
	p := (share*float64(n) + z*z/2) / of
	return z * math.Sqrt(p*(1-p)/of)
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// SampledHotspots returns the hotspots of n samples of the clock, k of them in the kernel,
// that took so long: the time of the processors.
func SampledHotspots(n, k int64, seconds float64) *Hotspots {
	kernel := float64(k) / float64(n)
	return &Hotspots{Whole: Time, Seconds: seconds, Samples: n, States: split(kernel, shareError(kernel, n), 1, math.NaN())}
}

// Running returns the share of the time that code ran.
func (h *Hotspots) Running() float64 {
	return orZero(h.State(IsRunning)) + orZero(h.State(InUser)) + orZero(h.State(InKernel))
}

// Of returns the share of the whole that so many samples have, with its error.
func (h *Hotspots) Of(samples int64) (share, wide float64) {
	running, part := h.Running(), float64(samples)/float64(h.Samples)
	return running * part, running * shareError(part, h.Samples)
}

// simulateFrom is the least share of the time in user mode for which caches and branches
// can matter.
const simulateFrom = 0.2

// nextOfTime lists the steps that say more about where the time went: a simulation of a
// program that computes, and the code of the first place.
func (a *Account) nextOfTime(from Provenance) []Step {
	h := a.Hotspots
	var steps []Step
	if from.Live && from.Started && h.Takes > 0 && h.Running()-orZero(h.State(InKernel)) >= simulateFrom {
		steps = append(steps, Step{Kind: StepSimulate, Node: -1, Takes: h.Takes, Live: true})
	}
	i := slices.IndexFunc(h.Places, func(p Hot) bool { return !p.Kernel && p.Function != "" })
	switch {
	case i >= 0 && IsHotspot(h.Places[i].Share/h.Running()):
		steps = append(steps, Step{Kind: StepAnnotate, Node: -1, Symbol: h.Places[i].Function})
	case len(a.Bottleneck) > 0:
		steps = append(steps, Step{Kind: StepExplain, Node: a.Bottleneck[len(a.Bottleneck)-1]})
	}
	return steps
}
