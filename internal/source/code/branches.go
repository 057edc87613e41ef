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
	// Taken says that all are of an event that counts taken branches, so that they have a known
	// meaning: each of a sample's branches for a part of its period.
	Taken bool
}

// FunctionBranches are the branches of a function.
type FunctionBranches struct {
	Function *profile.Function
	Branches *flow.Branches
}

// Branches adds the branch stacks of a recording to those of the graphs of functions.
// Stacks of calls that are still open say nothing about what was executed and are
// left out. Taken says of an event whether it counts taken branches.
func (r *Reader) Branches(list []FunctionBranches, taken func(event string) bool) (Stacks, error) {
	var out Stacks
	with := r.withStacks()
	if len(with) == 0 || len(list) == 0 {
		return out, nil
	}
	out.Taken = !slices.ContainsFunc(with, func(e *perfdata.Event) bool { return !taken(e.Name) })
	in, err := r.start()
	if err != nil {
		return out, err
	}
	defer in.Close()
	places := placesOf{reader: r, list: list, at: map[profile.Place]placeIn{}}
	stacks := make([][]flow.Branch, len(list))
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
		weight := 1.0
		if out.Taken {
			weight = float64(s.Period()) / float64(b.Len()-1)
		}
		places.split(s, b, stacks)
		for i := range stacks {
			if len(stacks[i]) > 0 {
				list[i].Branches.Add(stacks[i], weight)
			}
		}
	}
	return out, r.ended(in)
}

// callStack is PERF_SAMPLE_BRANCH_CALL_STACK.
const callStack = 1 << 11

// Stacked reports whether samples of some events have stacks of what was executed.
func Stacked(events []*perfdata.Event) bool { return len(withStacks(events)) > 0 }

// withStacks are the events whose samples have stacks of what was executed.
func (r *Reader) withStacks() []*perfdata.Event { return withStacks(r.events) }

func withStacks(events []*perfdata.Event) (list []*perfdata.Event) {
	for _, e := range events {
		if e.SampleType&perffile.SampleBranchStack != 0 && e.BranchType&callStack == 0 {
			list = append(list, e)
		}
	}
	return list
}

// placesOf gives addresses of a process their addresses in functions.
type placesOf struct {
	reader *Reader
	list   []FunctionBranches
	at     map[profile.Place]placeIn

	from, to []placeIn // of the sample at hand
}

// A placeIn is a function's number plus 1, 0 for none, and the address in the object.
type placeIn struct {
	function int
	addr     uint64
}

// split makes a stack for each function that the branches of a sample touch. In each,
// addresses outside the function are 0. Stacks of untouched functions are empty.
func (p *placesOf) split(s *perfdata.Sample, b perfdata.Branches, stacks [][]flow.Branch) {
	p.from, p.to = p.from[:0], p.to[:0]
	now, pid := p.reader.now(s.Time()), s.PID()
	touched := uint64(0) // bits of functions; those beyond 63 share one
	for i := range b.Len() {
		e := b.At(i)
		from := p.of(p.reader.spaces.Find(now, pid, e.From, 0))
		to := p.of(p.reader.spaces.Find(now, pid, e.To, 0))
		p.from, p.to = append(p.from, from), append(p.to, to)
		touched |= 1<<min(from.function, 63) | 1<<min(to.function, 63)
	}
	for k := range stacks {
		stacks[k] = stacks[k][:0]
		if touched>>min(k+1, 63)&1 == 0 {
			continue
		}
		for i := range b.Len() {
			x := b.At(i)
			branch := flow.Branch{Cycles: x.Cycles, Mispredicted: x.Mispredicted, Predicted: x.Predicted}
			if p.from[i].function == k+1 {
				branch.From = p.from[i].addr
			}
			if p.to[i].function == k+1 {
				branch.To = p.to[i].addr
			}
			stacks[k] = append(stacks[k], branch)
		}
	}
}

// placesMost bounds the places that are remembered.
const placesMost = 1 << 20

// of returns the function that a place is in, and its address in the object.
func (p *placesOf) of(at profile.Place) placeIn {
	in, ok := p.at[at]
	if ok {
		return in
	}
	for i := range p.list {
		f := p.list[i].Function
		if at.File != f.File {
			continue
		}
		if addr := p.reader.symbols.Addr(at); addr >= f.Addr && addr < f.Addr+f.Size {
			in = placeIn{i + 1, addr}
			break
		}
	}
	if len(p.at) < placesMost {
		p.at[at] = in
	}
	return in
}
