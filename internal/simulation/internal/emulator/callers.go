package emulator

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// An entry is how often there was a call through a pointer in samples, or a jump to another file: the
// numbers of its instruction and of the first one that it enters, with their images.
type entry struct {
	n        float64
	from, to uint32
	in, of   *image
}

// indirects count indirect calls.
type indirects struct {
	list   []entry
	at     map[uint64]uint32 // by both numbers
	recent [64]uint32        // plus 1
}

// maxIndirect bounds the different indirect calls that are counted.
const maxIndirect = 1 << 16

// enter counts that a block follows another, as one of so many.
func (e *indirects) enter(last, b *block, each float64) {
	if len(b.insts) == 0 {
		return
	}
	from, to := last.insts[len(last.insts)-1], b.insts[0]
	slot := &e.recent[(from^to*5)%uint32(len(e.recent))]
	if *slot == 0 || e.list[*slot-1].from != from || e.list[*slot-1].to != to {
		key := uint64(from)<<32 | uint64(to)
		at, ok := e.at[key]
		if !ok {
			if len(e.list) >= maxIndirect {
				return
			}
			at = uint32(len(e.list))
			e.at[key] = at
			e.list = append(e.list, entry{from: from, to: to, in: last.image, of: b.image})
		}
		*slot = at + 1
	}
	e.list[*slot-1].n += each
}

// A calling is an instruction that calls so often, or costs so many cycles.
type calling struct {
	n        float64
	image    *image
	in       *instruction
	function string // of one with cycles
	from     uint32 // the function; 0 if it is not known
	line     int    // the number of the user's line that it belongs to, plus 1; 0 if nobody asked
}

// A foreign is a line that is not the user's, or a user's line that calls such. Code without lines is by
// function.
type foreign struct {
	place
	cycles float64
	list   []calling
}

// callers are what calls functions: direct calls in the whole run, and others in samples.
type callers struct {
	number map[uint64]uint32 // of a function, by where it begins and its image
	of     [][]calling       // by that number; the first is of no function
	at     map[string]int    // the numbers of lines
	lines  []foreign         // the first is none
	sum    float64           // the cycles of all code
	own    bool              // there is code of the user's
}

// routine returns the number of the function that an address is in, and where that begins; 0 of code without
// symbols.
func (c *callers) routine(i *image, addr uint64) (n uint32, start uint64) {
	if i.file == nil {
		return 0, 0
	}
	start, _, ok := i.file.Extent(addr)
	if !ok {
		return 0, 0
	}
	key := start ^ i.number<<48
	if n = c.number[key]; n == 0 {
		n = uint32(len(c.of))
		c.number[key] = n
		c.of = append(c.of, nil)
	}
	return n, start
}

// call adds a call of the function at an address, or a jump. That is a call if it is to another function's
// begin.
func (c *callers) call(i *image, addr uint64, by calling, jump bool) {
	to, start := c.routine(i, addr)
	if by.from, _ = c.routine(by.image, by.in.addr); to > 0 && to != by.from && (!jump || start == addr) {
		c.of[to] = append(c.of[to], by)
	}
}

// own reports whether a source file of an image is the user's, and none of a library or a compiler.
func (i *image) own(source string) bool {
	return strings.HasPrefix(source, "/") && !strings.HasPrefix(i.path, system) && !strings.HasPrefix(source, system) &&
		!strings.HasPrefix(source, "/rustc/") && !strings.Contains(source, "/include/c++/") && !strings.Contains(source, "/golang.org/toolchain@")
}

// system is where the system's programs and headers are.
const system = "/usr/"

// line returns the number of a line.
func (c *callers) line(p place) int {
	key := p.source + "\t" + strconv.Itoa(p.line) + p.function
	at, ok := c.at[key]
	if !ok {
		at = len(c.lines)
		c.at[key] = at
		c.lines = append(c.lines, foreign{place: p})
	}
	return at
}

// user returns the number of the user's line that an instruction belongs to, if need be by inlined calls; 0 if
// it is not known.
func (c *callers) user(by *calling) int {
	if by.line > 0 || by.image.file == nil {
		return max(0, by.line-1)
	}
	by.line = 1
	for _, f := range by.image.file.Frames(by.in.addr) {
		if f.Line > 0 && by.image.own(f.File) {
			by.line = c.line(place{source: f.File, line: f.Line}) + 1
			break
		}
	}
	return by.line - 1
}

// see adds an instruction, with all that is known of it.
func (c *callers) see(i *image, in, known *instruction, p *place) {
	by := calling{n: float64(in.executed), image: i, in: in, function: p.function}
	if to := known.target(); to > 0 && (known.flow == disasm.Call || known.flow == disasm.Jump) {
		c.call(i, to, by, known.flow == disasm.Jump)
	}
	own := i.own(p.source)
	if c.own = c.own || own; !in.wasTimed() {
		return
	}
	each := in.settled.cycles + in.settled.lost
	for _, v := range in.settled.waits {
		each += v
	}
	by.n *= each
	if c.sum += by.n; by.n > 0 && !own {
		at := place{source: p.source, line: p.line}
		if p.line == 0 {
			at.function = p.function
		}
		l := &c.lines[c.line(at)]
		l.cycles, l.list = l.cycles+by.n, append(l.list, by)
	}
}

// foreignLeast is the least share of the cycles that is worth a caller.
const foreignLeast = 0.005

// write writes the lines that call such code most often, of code with much of the cycles: in each function, and
// in all together.
func (c *callers) write(l *library, e *indirects, to *valgrind.FileWriter) {
	if !c.own {
		return
	}
	for _, one := range e.list {
		c.call(one.of, l.inst(one.to).addr, calling{n: one.n, image: one.in, in: l.inst(one.from)}, false)
	}
	for n := range c.lines[:len(c.lines):len(c.lines)] {
		f := c.lines[n]
		if f.cycles < foreignLeast*c.sum || len(f.list) == 0 {
			continue
		}
		functions := []string{""}
		for _, one := range f.list {
			if !slices.Contains(functions, one.function) {
				functions = append(functions, one.function)
			}
		}
		for _, function := range functions {
			if by, share := c.most(f.list, function); by > 0 {
				to.Caller(function, f.source, f.line, c.lines[by].source, c.lines[by].line, share)
			}
		}
	}
}

// most returns the user's line that calls code most often, and its share. The code is that of a function, or all
// with "".
func (c *callers) most(list []calling, function string) (most int, share float64) {
	for k := range list { // there may be functions that nothing calls
		list[k].from, _ = c.routine(list[k].image, list[k].in.addr)
	}
	now, all := make([]float64, len(c.of)), 0.0
	var lines []float64
	for k := range list {
		if by := &list[k]; function == "" || function == by.function {
			all += by.n
			lines = c.hand(by, by.n, now, lines)
		}
	}
	for range callersDeep {
		next, left := make([]float64, len(c.of)), 0.0
		for f, part := range now {
			if part == 0 {
				continue
			}
			left += part
			sum := 0.0
			for _, by := range c.of[f] {
				sum += by.n
			}
			for k := range c.of[f] {
				by := &c.of[f][k]
				lines = c.hand(by, part*by.n/sum, next, lines)
			}
		}
		if now = next; left < all/1000 {
			break
		}
	}
	for n, v := range lines {
		if v > share {
			most, share = n, v
		}
	}
	return most, share / all
}

// callersDeep is how far callers are searched.
const callersDeep = 24

// hand adds a part to the user's line of an instruction. If that is not known, the callers of its function get
// it.
func (c *callers) hand(by *calling, part float64, to, lines []float64) []float64 {
	n := c.user(by)
	if n == 0 {
		if by.from > 0 {
			to[by.from] += part
		}
		return lines
	}
	for len(lines) <= n {
		lines = append(lines, 0)
	}
	lines[n] += part
	return lines
}
