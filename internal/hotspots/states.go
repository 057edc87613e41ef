package hotspots

import (
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// Nodes of the operating system's method.
const (
	nodeThreads = "Threads"
	nodeRunning = "CPUs_Utilised"
	nodeKernel  = "System_Time"
	nodeQueued  = "Runqueue_Wait"
	nodeBlocked = "Blocked"
)

const (
	// severalThreads is the least average number of threads to take waiting as the whole
	// program's, not each thread's.
	severalThreads = 1.05
	// elsewhereLeast is the least share of the time outside the program that is worth a
	// line.
	elsewhereLeast = 0.03
	// splitWorst is the largest error of the kernel's share of the processor time. Beyond
	// it, user mode and kernel are one state.
	splitWorst = 0.25
)

// Of returns the hotspots of an account of the operating system's counters: its time by
// state. Samples, nil for none, divide the processor time into user mode and kernel; else
// the ticks of the clock do. It is nil if the processor time is not known.
func Of(a *account.Account, s *Samples) *account.Hotspots {
	ran, queued := a.Value(nodeRunning), a.Value(nodeQueued)
	if math.IsNaN(ran) {
		return nil
	}
	busy := ran
	if queued > 0 {
		busy += queued
	}
	h, whole := &account.Hotspots{Whole: account.Elapsed}, 1.0
	if busy > 1 {
		h.Whole, whole = account.Time, busy
	}
	h.Seconds, h.Running = whole*a.Duration, ran/whole
	kernel, wide := a.Value(nodeKernel)/ran, math.NaN()
	if i, ok := a.Node(nodeKernel); ok {
		wide = a.Nodes[i].Error / ran
	}
	if s != nil && s.Total > 0 {
		h.Samples = s.Total
		kernel = float64(s.Kernel) / float64(s.Total)
		wide = shareError(kernel, s.Total)
	}
	split(h, kernel, wide, a.Count("page-faults"))
	if h.Whole == account.Elapsed {
		idle(h, a, busy)
	}
	if !math.IsNaN(queued) {
		add(h, account.TimeShare{State: "run queue", Share: queued / whole, Error: math.NaN(), Events: math.NaN()})
	}
	return h
}

// OfSamples returns the hotspots of samples of the clock alone: the processor time.
func OfSamples(s *Samples) *account.Hotspots {
	h := &account.Hotspots{Whole: account.Time, Seconds: s.Seconds, Running: 1, Samples: s.Total}
	kernel := float64(s.Kernel) / float64(s.Total)
	split(h, kernel, shareError(kernel, s.Total), math.NaN())
	return h
}

func add(h *account.Hotspots, s account.TimeShare) { h.States = append(h.States, s) }

// split adds the states of running code: one, if the share of the kernel is not known.
func split(h *account.Hotspots, kernel, wide, faults float64) {
	const what = "page faults"
	if wide > splitWorst || math.IsNaN(kernel) {
		add(h, account.TimeShare{State: "running", Share: h.Running, Error: math.NaN(), Events: faults, What: what})
		return
	}
	add(h, account.TimeShare{State: "user", Share: (1 - kernel) * h.Running, Error: wide * h.Running, Events: math.NaN()})
	add(h, account.TimeShare{State: "kernel", Share: kernel * h.Running, Error: wide * h.Running, Events: faults, What: what})
}

// idle adds the states of a program that does not want a processor.
func idle(h *account.Hotspots, a *account.Account, busy float64) {
	blocked, there := 1-busy, 1.0
	if threads := a.Value(nodeThreads); threads <= severalThreads {
		blocked, there = a.Value(nodeBlocked), threads
	}
	add(h, account.TimeShare{State: "blocked", Share: max(0, blocked), Error: math.NaN(), Events: a.Count("context-switches"), What: "context switches"})
	if gone := 1 - there; gone >= elsewhereLeast {
		add(h, account.TimeShare{State: "start and end", Share: gone, Error: math.NaN(), Events: math.NaN()})
	}
}

// shareError is the half-width of the 95 % interval of a share of n samples (Agresti and
// Coull: two more samples on each side).
func shareError(share float64, n int64) float64 {
	const z = counts.Confidence
	of := float64(n) + z*z
	p := (share*float64(n) + z*z/2) / of
	return z * math.Sqrt(p*(1-p)/of)
}

// of returns the share of the whole that so many samples have, with its error.
func of(h *account.Hotspots, samples int64) (share, wide float64) {
	part := float64(samples) / float64(h.Samples)
	return h.Running * part, h.Running * shareError(part, h.Samples)
}
