package timing

import (
	"path"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// At returns the rate of the instruction at an address of an object file, per execution:
// false if it was in no window.
//
// To the instruction that calls a function of another file, callgrind adds the counts of
// the stub of that function. The rate of such an instruction is the mean.
func (p *Rates) At(object string, addr uint64) (valgrind.Rate, bool) {
	i := p.code.images[object]
	if i == nil {
		return valgrind.Rate{}, false
	}
	in := i.at[addr]
	if in == nil || in.timed == 0 {
		return valgrind.Rate{}, false
	}
	stub := i.stub(in)
	if len(stub) == 0 || stub[0].executed == 0 { // or entered behind its first instruction only
		return p.rate(in), true
	}
	var all sum
	all.add(p.rate(in), 1)
	for _, s := range stub {
		if s.timed > 0 {
			all.add(p.rate(s), float64(s.executed)/float64(stub[0].executed))
		}
	}
	return all.mean(), true
}

// rate is the rate of an instruction that was in windows.
func (p *Rates) rate(in *instruction) valgrind.Rate {
	p.settled.Do(p.settle)
	n := float64(in.timed)
	r := valgrind.Rate{Cycles: in.parts.cycles / n, Lost: in.parts.lost / n}
	for i, v := range [...]*float64{&r.Second, &r.Third, &r.Memory} {
		*v = in.parts.waited / n * in.parts.shares[i]
	}
	if missed := float64(in.mispredicted) / float64(in.executed); in.flow == disasm.CondJump {
		r.Conditional = missed
	} else {
		r.Indirect = missed
	}
	return r
}

// Line returns the mean rate of the instructions at a line of a source file, per execution
// of one: false if none was in a window.
func (p *Rates) Line(file string, line int) (valgrind.Rate, bool) {
	var all sum
	for _, in := range p.line(file, line) {
		all.add(p.rate(in), float64(in.executed))
	}
	if all.executed == 0 {
		return valgrind.Rate{}, false
	}
	return all.mean(), true
}

// line returns the instructions of a line that were in windows.
func (p *Rates) line(file string, line int) []*instruction {
	p.once.Do(func() { p.lines = p.byLine() })
	if list := p.lines[place{file, line}]; list != nil {
		return list
	}
	// For a file whose directory is not known cachegrind writes two relative names, one
	// after the other: that of the compilation directory, and its own.
	if path.IsAbs(file) {
		return nil
	}
	for _, rest, more := strings.Cut(file, "/"); more; _, rest, more = strings.Cut(rest, "/") {
		if list := p.lines[place{path.Clean(rest), line}]; list != nil {
			return list
		}
	}
	return nil
}

// A place is a line of a source file.
type place struct {
	file string
	line int
}

// A sum adds up the rates of instructions, by their executions.
type sum struct {
	rate     valgrind.Rate
	executed float64
}

func (s *sum) add(r valgrind.Rate, executed float64) {
	s.executed += executed
	to, of := fields(&s.rate), fields(&r)
	for i := range to {
		*to[i] += executed * *of[i]
	}
}

func (s *sum) mean() valgrind.Rate {
	r := s.rate
	for _, v := range fields(&r) {
		*v /= s.executed
	}
	return r
}

// fields are the parts of a rate.
func fields(r *valgrind.Rate) [7]*float64 {
	return [...]*float64{&r.Cycles, &r.Lost, &r.Second, &r.Third, &r.Memory, &r.Conditional, &r.Indirect}
}

// debugFiles is a directory of separate debug files that the simulators search too.
const debugFiles = "/usr/lib/debug"

// byLine returns the instructions that were in windows, by line.
func (p *Rates) byLine() map[place][]*instruction {
	lines := map[place][]*instruction{}
	for name, i := range p.code.images {
		if i == nil {
			continue
		}
		insts := i.windowed()
		if len(insts) == 0 {
			continue
		}
		file, err := object.Open(name, object.Options{Debug: []string{debugFiles}})
		if err != nil {
			continue
		}
		for _, in := range insts {
			if name, line := file.Line(in.addr); name != "" {
				lines[place{name, line}] = append(lines[place{name, line}], in)
			}
		}
		_ = file.Close()
	}
	return lines
}
