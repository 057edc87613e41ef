package timing

import "github.com/cyclestack/cyclestack/internal/object"

// The three machines retire an instruction at different times, after different waits. Of the
// instructions that retire in one cycle, the cycle may show at any. So only sums over many
// instructions can be subtracted, and functions are large enough. The cycles of mispredictions
// and misses go to the instructions that retire later because of them. A sampler sees the same.

// parts are the parts of an instruction's time, in cycles of all its executions in windows.
type parts struct {
	cycles, lost, waited float64
	shares               [3]float64 // of waited, by level
}

// settle finds the parts of all instructions.
func (p *Rates) settle() {
	for name, i := range p.code.images {
		if i == nil {
			continue
		}
		for _, insts := range i.functions(name) {
			p.settleFunction(insts)
		}
	}
}

// functions returns the instructions that were in windows, by function. Those of no known
// function are together.
func (i *image) functions(name string) map[uint64][]*instruction {
	list := map[uint64][]*instruction{}
	insts := i.windowed()
	if len(insts) == 0 {
		return nil
	}
	extent := func(uint64) uint64 { return 0 }
	if file, err := object.Open(name, object.Options{}); err == nil {
		defer file.Close()
		extent = func(addr uint64) uint64 {
			start, _, _ := file.Extent(addr)
			return start
		}
	}
	for _, in := range insts {
		start := extent(in.addr)
		list[start] = append(list[start], in)
	}
	return list
}

// settleFunction finds the parts of a function's instructions. They sum to the time of the
// function. Each part sums to the difference of two machines, or to 0 if that is negative.
func (p *Rates) settleFunction(insts []*instruction) {
	for _, in := range insts {
		in.parts.waited = in.waited.cycles() * p.waits.scale
		in.parts.lost = in.real.cycles() - in.ideal.cycles()
		in.parts.cycles = in.real.cycles() + in.parts.waited
	}
	positive(insts)
	take(insts, func(s *parts) *float64 { return &s.waited })
	take(insts, func(s *parts) *float64 { return &s.lost })
	p.waits.atLeast(insts)
	p.waits.divide(insts)
}

// positive takes negative cycles from the other instructions. They arise because the
// machines that wait executed other windows before than those that do not: a cycle that
// shows at one instruction in these may show at its neighbour in those.
func positive(insts []*instruction) {
	sum, above := 0.0, 0.0
	for _, in := range insts {
		sum += in.parts.cycles
		above += max(in.parts.cycles, 0)
	}
	for _, in := range insts {
		if in.parts.cycles = max(in.parts.cycles, 0); sum < above {
			in.parts.cycles *= max(sum, 0) / above
		}
	}
}

// take divides the sum of a part among the instructions with a positive part, and subtracts it
// from their cycles. If their cycles are too few, as they show at others, the rest comes from
// all in proportion.
func take(insts []*instruction, part func(*parts) *float64) {
	sum, later, room := 0.0, 0.0, 0.0
	for _, in := range insts {
		v := part(&in.parts)
		sum += *v
		*v = min(max(*v, 0), in.parts.cycles)
		later += *v
		room += in.parts.cycles - *v
	}
	share, rest := 0.0, 0.0
	if sum > 0 && later > 0 {
		share = min(sum/later, 1)
	}
	if sum > later && room > 0 {
		rest = min((sum-later)/room, 1)
	}
	for _, in := range insts {
		v := part(&in.parts)
		*v = *v*share + (in.parts.cycles-*v)*rest
		in.parts.cycles -= *v
	}
}
