package valgrind

// A Rate is what an instruction takes each time that it is executed, as the order in
// which a program executes its code has it: in cycles and in mispredicted branches.
type Rate struct {
	// Cycles are those by which the instruction retires later than the one before, with
	// branches predicted and all data in the first-level cache.
	Cycles float64
	// Lost is the cycles that mispredicted branches add to that.
	Lost float64
	// Conditional and Indirect are how many of its executions are mispredicted: as a
	// conditional branch, and as a jump or call through a register or memory, or a
	// return.
	Conditional, Indirect float64
}

// Rates know the rates of a program's instructions, as far as they were seen.
type Rates interface {
	// At returns the rate of the instruction at an address of an object file, as its
	// symbols have it; false if it is not known.
	At(object string, addr uint64) (Rate, bool)
	// Line returns the mean rate of the instructions that are executed at a line of a
	// source file; false if it is not known.
	Line(file string, line int) (Rate, bool)
}
