package pace

import (
	"github.com/cyclestack/cyclestack/profile/disasm"
	"github.com/cyclestack/cyclestack/profile/object"
	"github.com/cyclestack/cyclestack/source/valgrind"
	"path"
	"strings"
)

// At returns the rate of the instruction at an address of an object file, per execution:
// false if it was in no window.
//
// Callgrind counts what is executed of a stub, through which a function of another file
// is called, with the instruction that calls it. So of that the rate is the mean.
func (p *Paces) At(object string, addr uint64) (valgrind.Rate, bool) {
	i := p.code.images[object]
	if i == nil {
		return valgrind.Rate{}, false
	}
	in := i.at[addr]
	if in == nil || in.timed == 0 {
		return valgrind.Rate{}, false
	}
	stub := i.stub(in)
	if len(stub) == 0 {
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

// rate is that of an instruction that was in windows.
func (p *Paces) rate(in *instruction) valgrind.Rate {
	r := valgrind.Rate{Cycles: in.cycles.cycles() / float64(in.timed)}
	if in.mispredicted == 0 {
		return r
	}
	missed := float64(in.mispredicted) / float64(in.executed)
	if in.flow == disasm.CondJump {
		r.Conditional = missed
	} else {
		r.Indirect = missed
	}
	r.Lost = missed * p.penalty(in)
	return r
}

// usual is how many mispredictions in windows weigh as much as what all other branches
// of the program say, when it comes to what one costs.
const usual = 8

// penalty is how many cycles are lost each time that a branch is mispredicted.
func (p *Paces) penalty(in *instruction) float64 {
	cycles := in.lost.cycles() + usual*p.mean
	return max(0, cycles/float64(in.missed+usual))
}

// meanPenalty is the penalty of all branches; 0 if none was mispredicted in a window.
func (l *library) meanPenalty() float64 {
	var lost ticks
	var missed int64
	for in := range l.instructions() {
		lost += in.lost
		missed += in.missed
	}
	if missed == 0 {
		return 0
	}
	return max(0, lost.cycles()/float64(missed))
}

// Line returns the mean rate of the instructions that are executed at a line of a
// source file, per execution of one: false if none was in a window.
func (p *Paces) Line(file string, line int) (valgrind.Rate, bool) {
	p.once.Do(func() { p.lines = p.byLine() })
	if sum := p.lines[place{file, line}]; sum != nil {
		return sum.mean(), true
	}
	// Of a file whose directory is not known cachegrind writes two relative names, one
	// behind the other: that of the directory that it was compiled in, and its own.
	for rest := file; !path.IsAbs(file); {
		_, next, more := strings.Cut(rest, "/")
		if !more {
			break
		}
		if sum := p.lines[place{path.Clean(next), line}]; sum != nil {
			return sum.mean(), true
		}
		rest = next
	}
	return valgrind.Rate{}, false
}

// A place is a line of a source file.
type place struct {
	file string
	line int
}

// A sum is that of the rates of instructions, by their executions.
type sum struct {
	valgrind.Rate
	executed float64
}

func (s *sum) add(r valgrind.Rate, executed float64) {
	s.executed += executed
	s.Cycles += executed * r.Cycles
	s.Lost += executed * r.Lost
	s.Conditional += executed * r.Conditional
	s.Indirect += executed * r.Indirect
}

func (s *sum) mean() valgrind.Rate {
	n := s.executed
	return valgrind.Rate{Cycles: s.Cycles / n, Lost: s.Lost / n, Conditional: s.Conditional / n, Indirect: s.Indirect / n}
}

// debugFiles is where the simulators look for separate debug files as well.
const debugFiles = "/usr/lib/debug"

// byLine sums the rates of instructions by the line that they are of.
func (p *Paces) byLine() map[place]*sum {
	lines := map[place]*sum{}
	for name, i := range p.code.images {
		if i == nil {
			continue
		}
		file, err := object.Open(name, object.Options{Debug: []string{debugFiles}})
		if err != nil {
			continue
		}
		for _, in := range i.sorted() {
			name, line := file.Line(in.addr)
			if in.timed == 0 || in.executed == 0 || name == "" {
				continue
			}
			at := place{name, line}
			if lines[at] == nil {
				lines[at] = &sum{}
			}
			lines[at].add(p.rate(in), float64(in.executed))
		}
		_ = file.Close()
	}
	return lines
}
