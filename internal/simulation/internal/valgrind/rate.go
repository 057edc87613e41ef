package valgrind

// A Rate is an instruction's time and mispredictions per execution, estimated from the order of
// the program's code.
type Rate struct {
	// Cycles are how much later the instruction retires than the one before, with predicted
	// branches and first-level data.
	Cycles float64
	// Lost is the cycles that mispredicted branches add. Second, Third and Memory are those
	// that waiting for data adds: in the cache behind the first level, in the one behind
	// that, and in memory.
	Lost, Second, Third, Memory float64
	// Conditional and Indirect are the shares of its executions that are mispredicted: as a
	// conditional branch, and as a jump or call through a register or memory, or a return.
	Conditional, Indirect float64
}

// A DataPlace is an instruction of an object file, or without an object a line of a source
// file.
type DataPlace struct {
	Object string
	Addr   uint64 // as the object's symbols have it
	File   string
	Line   int
}

// Accesses are how many loads or stores there are, how many miss the first-level cache, and how
// many the last.
type Accesses struct{ Number, First, Last float64 }

// Add adds further accesses.
func (a *Accesses) Add(b Accesses) {
	a.Number += b.Number
	a.First += b.First
	a.Last += b.Last
}

// DataMisses are the accesses of an instruction. The simulators count an instruction that
// modifies memory as a store, although its load misses.
type DataMisses struct{ Loads, Stores Accesses }

// DataMisses returns those of the program: by instruction, or by line if the simulator did
// not count by instruction.
func (s *Simulation) DataMisses() (map[DataPlace]DataMisses, error) {
	found := map[DataPlace]DataMisses{}
	r := Open(s.Files, Options{})
	r.each = func(costs []float64) {
		of := func(column int) float64 {
			if column < 0 || column >= len(costs) {
				return 0
			}
			return costs[column]
		}
		var m DataMisses
		for i, to := range [...]*Accesses{&m.Loads, &m.Stores} {
			*to = Accesses{of(r.data[i]), of(r.misses[i][0]), of(r.misses[i][1])}
		}
		if m.Loads.Number+m.Stores.Number == 0 {
			return
		}
		at := DataPlace{File: r.fl.text[r.at.file], Line: int(r.at.line)}
		if r.header.instructions {
			at = DataPlace{Object: r.ob.text[r.at.ob], Addr: r.at.addr}
		}
		before := found[at]
		before.Loads.Add(m.Loads)
		before.Stores.Add(m.Stores)
		found[at] = before
	}
	if !r.Next() {
		return nil, r.Err()
	}
	return found, nil
}

// Rates have the rates of a program's instructions, as far as they are known.
type Rates interface {
	// At returns the rate of the instruction at an address of an object file, as its
	// symbols have it; false if it is not known.
	At(object string, addr uint64) (Rate, bool)
	// Line returns the mean rate of the instructions at a line of a source file; false if
	// it is not known.
	Line(file string, line int) (Rate, bool)
}
