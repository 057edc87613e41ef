package emulator

// settle finds the cycles of all instructions that were in windows, by function. The three
// machines retire an instruction at different times. A cycle may show at any instruction that
// retires in it. So differences of single instructions may be negative, and only the sums of
// functions are subtracted. They are given to the instructions with a difference above 0.
func (l *library) settle() {
	for _, i := range l.ordered() {
		for in := range l.sorted(i) {
			if in.wasTimed() {
				in.of.insts = append(in.of.insts, in)
			}
		}
	}
	for _, f := range l.functions {
		f.close()
		settle(f.insts)
		f.uncertain()
	}
}

// settle finds the cycles of a function's instructions.
func settle(insts []*instruction) {
	var late [parts]float64
	lates := 0.0
	for _, in := range insts {
		for i, v := range in.late {
			late[i] += v
			lates += v
		}
	}
	lost := share(insts, func(in *instruction) float64 { return in.lost })
	waits := share(insts, func(in *instruction) float64 { return in.waits })
	for n, in := range insts {
		in.settled = parts3{cycles: in.ideal / in.timed, lost: lost[n] / in.timed}
		own, sum := in.late, 0.0
		for _, v := range own {
			sum += v
		}
		if sum == 0 {
			own, sum = late, lates
		}
		for i, v := range own {
			if sum > 0 {
				in.settled.waits[i] = waits[n] / in.timed * v / sum
			}
		}
		if sum == 0 {
			in.settled.waits[lateL2] = waits[n] / in.timed
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
