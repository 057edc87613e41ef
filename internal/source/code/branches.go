package code

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/flow"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Stacks says what [Reader.Branches] found.
type Stacks struct {
	Samples int64 // with a branch stack
	// Taken says that they are all of an event that counts taken branches, so that
	// what they stand for is known: each of a sample's branches for a part of its
	// period.
	Taken bool
}

// Branches adds the branch stacks of a recording to those of a function's graph.
// Stacks of calls that are still open say nothing about what was executed and are
// left out. Taken says of an event whether it counts taken branches.
func (r *Reader) Branches(f *profile.Function, to *flow.Branches, taken func(event string) bool) (Stacks, error) {
	var out Stacks
	with := r.withStacks()
	if len(with) == 0 {
		return out, nil
	}
	out.Taken = !slices.ContainsFunc(with, func(e *perfdata.Event) bool { return !taken(e.Name) })
	in, err := r.start()
	if err != nil {
		return out, err
	}
	defer in.Close()
	places := placesOf{reader: r, function: f, at: map[profile.Place]uint64{}}
	var stack []flow.Branch
	for in.Next() {
		r.number++
		s, ok := in.Record().(*perfdata.Sample)
		if !ok || s.Event().BranchType&callStack != 0 {
			continue
		}
		b := s.Branches()
		if b.Len() < 2 {
			continue
		}
		out.Samples++
		stack = stack[:0]
		for i := range b.Len() {
			e := b.At(i)
			find := func(addr uint64) uint64 {
				return places.of(r.spaces.Find(r.now(s.Time()), s.PID(), addr, 0))
			}
			stack = append(stack, flow.Branch{From: find(e.From), To: find(e.To)})
		}
		weight := 1.0
		if out.Taken {
			weight = float64(s.Period()) / float64(b.Len()-1)
		}
		to.Add(stack, weight)
	}
	return out, r.ended(in)
}

// callStack is PERF_SAMPLE_BRANCH_CALL_STACK.
const callStack = 1 << 11

// withStacks are the events whose samples have stacks of what was executed.
func (r *Reader) withStacks() []*perfdata.Event {
	var list []*perfdata.Event
	for _, e := range r.events {
		if e.SampleType&perffile.SampleBranchStack != 0 && e.BranchType&callStack == 0 {
			list = append(list, e)
		}
	}
	return list
}

// placesOf gives addresses of a process their addresses in a function.
type placesOf struct {
	reader   *Reader
	function *profile.Function
	at       map[profile.Place]uint64
}

// placesMost bounds the places that are remembered.
const placesMost = 1 << 20

// of returns the address in the object of a place in the function, and 0 for other
// places.
func (p *placesOf) of(at profile.Place) uint64 {
	if at.File != p.function.File {
		return 0
	}
	addr, ok := p.at[at]
	if !ok {
		addr = p.reader.symbols.Addr(at)
		if addr < p.function.Addr || addr >= p.function.Addr+p.function.Size {
			addr = 0
		}
		if len(p.at) < placesMost {
			p.at[at] = addr
		}
	}
	return addr
}
