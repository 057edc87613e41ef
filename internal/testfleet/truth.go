package testfleet

import (
	"math"
	"time"
)

// A Sum is what all hosts of one service and processor have counted.
type Sum struct {
	Whole float64
	CPU   float64            // seconds
	Nodes map[string]float64 // slots
	Hosts int
}

// Sums adds up what hosts count in the steps behind a first one: what a store has of the range.
func (f *Fleet) Sums(times []time.Time, first int) map[[2]int]*Sum {
	sums := map[[2]int]*Sum{}
	var amounts [6]float64
	for host := range f.Hosts {
		if f.Lost(host) {
			continue
		}
		c := f.CPU(host)
		for s := range f.Services {
			k := [2]int{s, c}
			x := sums[k]
			if x == nil {
				x = &Sum{Nodes: map[string]float64{}}
				sums[k] = x
			}
			x.Hosts++
			t := f.Truth(s, c, f.Canary(host))
			for i := first + 1; i < len(times); i++ {
				slots, cpu := f.amounts(&t, host, s, times[i].Sub(times[i-1]).Seconds(), uint64(i), amounts[:])
				x.Whole += slots
				x.CPU += cpu
				for level, names := range Nodes {
					for k, name := range names {
						x.Nodes[name] += amounts[level*len(Nodes[0])+k]
					}
				}
			}
		}
	}
	return sums
}

// Times are the times of some scrapes, a minute apart, the last at a given time.
func Times(last time.Time, n int) []time.Time {
	times := make([]time.Time, n)
	for i := range times {
		times[i] = last.Add(time.Duration(i-n+1) * time.Minute).Truncate(time.Second)
	}
	return times
}

// history gives all counters what their hosts have counted in the hours or weeks before the
// first step.
func (f *Fleet) history() {
	const hour = 3600
	each := f.each()
	var amounts [6]float64
	for host := range f.Hosts {
		past := hour * (1 + 700*f.draw(6, uint64(host)))
		for s := range f.Services {
			t := f.Truth(s, f.CPU(host), f.Canary(host))
			slots, cpu := f.amounts(&t, host, s, past, math.MaxUint64, amounts[:])
			sum := append(f.cumulative[(host*f.Services+s)*each:][:0], amounts[:len(Nodes[0])]...)
			sum = append(sum, slots, cpu)
			if f.Levels > 1 {
				_ = append(append(sum, amounts[len(Nodes[0]):]...), slots)
			}
		}
	}
}

// restarts reports whether a host's exporter begins anew in this step, which is counted.
func (f *Fleet) restarts(host int) bool {
	return f.RestartEvery > 0 && host%f.RestartEvery == f.RestartEvery/2 && f.steps == f.RestartStep+1
}
