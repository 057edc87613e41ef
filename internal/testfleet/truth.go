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
	for s := range f.Services {
		for c := range CPUs {
			x := &Sum{Nodes: map[string]float64{}}
			for _, h := range f.Each(s, c, times, first) {
				x.Hosts++
				x.Whole += h.Whole
				x.CPU += h.Whole / CPUs[c].Hertz / CPUs[c].Width
				for name, v := range h.Nodes {
					x.Nodes[name] += v
				}
			}
			sums[[2]int{s, c}] = x
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
			t := f.Truth(s, f.CPU(host), f.Canary(host) && f.WorseStep == 0)
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

// A Host is what one host has counted of a service.
type Host struct {
	Whole float64
	Nodes map[string]float64
}

// Each is what each host with a processor counts of a service, as in Sums.
func (f *Fleet) Each(service, cpu int, times []time.Time, first int) (list []Host) {
	for host := range f.Hosts {
		if f.CPU(host) != cpu || f.Lost(host) {
			continue
		}
		one := Host{Nodes: map[string]float64{}}
		var amounts [6]float64
		for i := first + 1; i < len(times); i++ {
			t := f.Truth(service, cpu, f.Canary(host) && uint64(i) >= f.WorseStep)
			slots, _ := f.amounts(&t, host, service, times[i].Sub(times[i-1]).Seconds(), uint64(i), amounts[:])
			one.Whole += slots
			for level, names := range Nodes {
				for k, name := range names {
					one.Nodes[name] += amounts[level*len(Nodes[0])+k]
				}
			}
		}
		list = append(list, one)
	}
	return list
}
