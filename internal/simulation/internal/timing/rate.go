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
// Callgrind counts what is executed of a stub, through which a function of another file
// is called, with the instruction that calls it. So of that the rate is the mean.
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
	if len(stub) == 0 || stub[0].executed == 0 { // or entered behind its beginning only
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

// Line returns the mean rate of the instructions that are executed at a line of a
// source file, per execution of one: false if none was in a window.
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
	// Of a file whose directory is not known cachegrind writes two relative names, one
	// behind the other: that of the directory that it was compiled in, and its own.
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

// A sum is that of the rates of instructions, by their executions.
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

// fields are what a rate consists of.
func fields(r *valgrind.Rate) [7]*float64 {
	return [...]*float64{&r.Cycles, &r.Lost, &r.Second, &r.Third, &r.Memory, &r.Conditional, &r.Indirect}
}

// debugFiles is where the simulators look for separate debug files as well.
const debugFiles = "/usr/lib/debug"

// byLine returns the instructions that were in windows, by the line that they are of.
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
