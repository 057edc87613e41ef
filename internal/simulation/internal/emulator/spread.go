package emulator

// A function is the instructions of one function that were in windows. Its sums by window say
// how much the time of its instructions varies: the error of sampling.
type function struct {
	insts []*instruction // once all windows have ended

	window  int // the number of the latest window that it was in
	now     amounts
	sum     amounts
	squares [costs]float64 // of the amounts of each window
	with    [costs]float64 // the amounts times the instructions of the window
	numbers float64        // squares of these
	windows int
}

// The costs of instructions.
const (
	costIdeal = iota
	costLost
	costWaits
	costs
)

// amounts are instructions, and their cycles by cost.
type amounts struct {
	instructions float64
	cycles       [costs]float64
}

// in returns the amounts of a window.
func (f *function) in(window int) *amounts {
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
	f.windows++
	f.sum.instructions += n
	f.numbers += n * n
	for i, v := range f.now.cycles {
		f.sum.cycles[i] += v
		f.squares[i] += v * v
		f.with[i] += v * n
	}
	f.now = amounts{}
}

// windowsLeast is the least number of windows whose spread says anything.
const windowsLeast = 4

// relative returns the variance of a cost of the function's instructions, relative to the square
// of the cost: that of a ratio of sums by window (W. G. Cochran, Sampling Techniques, chapter 6).
// Student's distribution has a larger variance, which few windows are given. Of too few windows
// the error is taken to be as large as the cost.
func (f *function) relative(cost int) float64 {
	sum, n := f.sum.cycles[cost], float64(f.windows)
	switch {
	case sum <= 0 || f.sum.instructions == 0:
		return 0
	case f.windows < windowsLeast:
		return 1
	}
	rate := sum / f.sum.instructions
	rest := f.squares[cost] - 2*rate*f.with[cost] + rate*rate*f.numbers
	return max(0, rest) / (sum * sum) * n / (n - 3)
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
