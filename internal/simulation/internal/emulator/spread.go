package emulator

import "math"

// A function is the instructions of one function that were in windows. The windows say how much
// the time of its instructions varies: the error of sampling.
type function struct {
	insts []*instruction // once all windows have ended

	window  int32 // the number of the latest window that it was in
	now     amounts
	sum     amounts
	squares [costs]float64 // of the rest in each window
	numbers float64        // squares of the instructions of each
	windows int
}

// The costs of instructions.
const (
	costIdeal = iota
	costLost
	costWaits
	costs
)

// Amounts are instructions, and their cycles by cost. The rest is the cycles beyond those that the
// windows before let expect, of instructions that were in one. How much code of each kind a window
// has makes no error: it is known of the whole run.
type amounts struct {
	instructions float64
	cycles, rest [costs]float64
}

// enter notes that an instruction is in a window, and reports whether it was in one before.
func (in *instruction) enter(window int32) (known bool) {
	if in.window != window {
		in.window, in.known = window, in.timed > 0
		for cost := range in.mean {
			in.mean[cost] = *in.cost(cost) / max(in.timed, 1)
		}
	}
	return in.known
}

// in returns the amounts of a window.
func (f *function) in(window int32) *amounts {
	if f.window != window {
		f.close()
		f.window = window
	}
	return &f.now
}

// close adds the amounts of the latest window to the sums.
func (f *function) close() {
	n := f.now.instructions
	if f.now == (amounts{}) {
		return
	}
	for cost, v := range f.now.cycles {
		f.sum.cycles[cost] += v
		if f.windows > 0 { // the mean before has an error too
			f.squares[cost] += f.now.rest[cost] * f.now.rest[cost] / (1 + n/f.sum.instructions)
		}
	}
	f.windows++
	f.sum.instructions += n
	f.numbers += n * n
	f.now = amounts{}
}

// windowsLeast is the least number of windows whose spread says anything.
const windowsLeast = 4

// effective returns how many windows of equal weight say as much (L. Kish, Survey Sampling, 1965).
// Windows from the beginning stand for less of the run.
func (f *function) effective() float64 {
	if f.numbers == 0 {
		return 0
	}
	return f.sum.instructions * f.sum.instructions / f.numbers
}

// relative returns the variance of a cost of the function's instructions, relative to the square
// of the cost. What windows have beyond the mean of those before are recursive residuals: they do
// not depend on each other (R. L. Brown and others, 1975). Student's distribution has a larger
// variance, which few windows are given. Of too few windows the error is taken to be as large as
// the cost.
func (f *function) relative(cost int) float64 {
	sum, n := f.sum.cycles[cost], f.effective()
	switch {
	case sum <= 0 || n == 0:
		return 0
	case n < windowsLeast:
		return 1
	}
	return f.squares[cost] / (sum * sum) * n / (n - 3)
}

// function returns that of an address of an image. The names of code that a process makes are
// known at its end only: a page is a function there.
func (l *library) function(i *image, addr uint64) *function {
	start := addr &^ 0xfff
	if i.file != nil {
		start, _, _ = i.file.Extent(addr)
	}
	n, ok := i.functions[start]
	if !ok {
		n = uint32(len(l.functions))
		i.functions[start] = n
		l.functions = append(l.functions, &function{})
	}
	return l.functions[n]
}

// uncertain gives each instruction of a function its part of the variances of the function's
// costs. They are those of the whole run, and shared by cost.
func (f *function) uncertain() {
	for cost := range costs {
		relative := f.relative(cost)
		if relative == 0 {
			continue
		}
		whole := 0.0
		for _, in := range f.insts {
			whole += in.whole(cost)
		}
		for _, in := range f.insts {
			in.variance[cost] = relative * whole * in.whole(cost)
		}
	}
}

// relative returns the relative error of a cost of the run: how much code was executed is known,
// and the functions vary each by itself.
func (l *library) relative(cost int) float64 {
	sum, variance := 0.0, 0.0
	for _, f := range l.functions {
		for _, in := range f.insts {
			sum += in.whole(cost)
			variance += in.variance[cost]
		}
	}
	if sum <= 0 {
		return 0
	}
	return math.Sqrt(variance) / sum
}

// whole returns a cost of an instruction in the whole run.
func (in *instruction) whole(cost int) float64 {
	n, s := float64(in.executed), &in.settled
	switch cost {
	case costIdeal:
		return n * s.cycles
	case costLost:
		return n * s.lost
	}
	sum := 0.0
	for _, v := range s.waits {
		sum += v
	}
	return n * sum
}
