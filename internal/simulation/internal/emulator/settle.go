package emulator

// settle finds the cycles of all instructions that were in windows, by function. The three
// machines retire an instruction at different times. A cycle may show at any instruction that
// retires in it. So differences of single instructions may be negative, and only the sums of
// functions are subtracted. They are given to the instructions with a difference above 0. A function
// has less than 0 if its cycles pass while another one waits: all others have so much less.
func (l *library) settle() {
	for _, i := range l.ordered() {
		for in := range l.sorted(i) {
			if in.wasTimed() {
				in.of.insts = append(in.of.insts, in)
			}
		}
	}
	l.settleAll()
}

// settleAll finds the cycles of the instructions of all functions.
func (l *library) settleAll() {
	var all, above [costs]float64
	var late lateness
	for _, f := range l.functions {
		f.close()
		late.add(latenessOf(f.insts))
		for cost := range costs {
			sum := 0.0
			for _, in := range f.insts {
				sum += *in.cost(cost)
			}
			all[cost] += sum
			above[cost] += max(sum, 0)
		}
	}
	for _, f := range l.functions {
		settle(f.insts, late, ratio(all[costLost], above[costLost]), ratio(all[costWaits], above[costWaits]))
		f.uncertain()
	}
}

// ratio returns the share of sums above 0 that is left with those below 0. It is 0 if these are more:
// the whole run cannot gain cycles by waiting.
func ratio(all, above float64) float64 {
	if above == 0 {
		return 0
	}
	return max(all, 0) / above
}

// A lateness is how many cycles accesses are late, by reason. Others may hide them.
type lateness [parts]float64

func latenessOf(insts []*instruction) (l lateness) {
	for _, in := range insts {
		l.add(in.late)
	}
	return l
}

func (l *lateness) add(other lateness) {
	for i, v := range other {
		l[i] += v
	}
}

func (l *lateness) sum() (all float64) {
	for _, v := range l {
		all += v
	}
	return all
}

// explain divides cycles of waiting among the reasons. No more of them than the accesses here are late have
// their reasons. The others have those of other accesses: a full queue or a locked instruction waits for these.
func (l *lateness) explain(cycles float64, others lateness) (list lateness) {
	here, there := l.sum(), others.sum()
	own := min(cycles, here)
	if there == 0 {
		own = cycles
	}
	for i := range list {
		if here > 0 {
			list[i] = own * l[i] / here
		}
		if there > 0 {
			list[i] += (cycles - own) * others[i] / there
		}
	}
	if here == 0 && there == 0 {
		list[lateL2] = cycles
	}
	return list
}

// settle finds the cycles of a function's instructions. Parts of its differences are its own. All is how late
// the accesses of all functions are.
func settle(insts []*instruction, all lateness, ofLost, ofWaits float64) {
	lost := share(insts, func(in *instruction) float64 { return ofLost * in.lost })
	waits := share(insts, func(in *instruction) float64 { return ofWaits * in.waits })
	late, sum := latenessOf(insts), 0.0
	for _, v := range waits {
		sum += v
	}
	late = late.explain(sum, all)
	for n, in := range insts {
		in.outcome = &outcome{settled: parts3{cycles: in.ideal / in.timed, lost: lost[n] / in.timed}}
		own := lateness(in.late)
		for i, v := range own.explain(waits[n], late) {
			in.settled.waits[i] = v / in.timed
		}
	}
}

// share gives the sum of a difference to the instructions that have a part of it above 0.
// Below 0, the sum is 0.
func share(insts []*instruction, of func(*instruction) float64) []float64 {
	list := make([]float64, len(insts))
	sum, above := 0.0, 0.0
	for i, in := range insts {
		list[i] = max(of(in), 0)
		sum += of(in)
		above += list[i]
	}
	for i := range list {
		if above > 0 {
			list[i] *= max(sum, 0) / above
		}
	}
	return list
}
