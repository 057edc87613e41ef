package samples

import (
	"cmp"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// places adds up samples by place.
type places struct {
	by      counts.Kind // of places in the code; counts.Run for none
	told    counts.By   // all kinds that samples are split by
	keep    *selection  // which places count; nil for all
	symbols functionsOf
	columns int

	codes    []key          // places in the code, by number
	united   []int32        // the numbers of codes since unite, by the former ones; nil if they are the same
	rows     []row          // by row, if samples are split by more than code; else rows are those of codes
	sums     []perfdata.Sum // by row and column
	dropped  []perfdata.Sum // of what does not count, by column
	recalled []placeCode
	missed   int // times that a place was not remembered, since recalled grew
	files    *files
	// gather says that places may be looked up together; see gathers.
	gather   bool
	gathered gathered

	modules      map[*profile.File]int32
	functions    map[*profile.Function]int32
	lines        map[line]int32
	instructions map[profile.Place]int32
	others       int32 // the number of what there was no room for; -1 for none

	contexts []context // by number
	number   map[context]int32
	crossed  map[row]int32
	recent   []recentRow
	overflow int32 // its row; -1 for none
}

// A row is a place in the code within a context.
type row struct{ context, code int32 }

// A recentRow is a row that was looked up.
type recentRow struct {
	is  row
	row int32 // and 1; 0 for none
}

// A key is what a place in the code is about.
type key struct {
	place    profile.Place     // of its first sample
	function *profile.Function // nil if samples are not split by function
	line     line              // 0 without a known line
	others   bool
}

// A line is one of a source file that was compiled into a module.
type line struct {
	module   *profile.File
	file     string
	number   int
	function *profile.Function // nil if samples are not split by function
}

// A placeCode is a place whose number was looked up. Programs are at few places
// again and again, and so are processes that run the same program.
type placeCode struct {
	offset uint64
	file   uint32 // its number
	code   int32  // its number and 1; 0 for none, -1 for one that does not count
}

// How much is remembered, powers of two: few places, which the processor's caches have
// room for, unless there are many.
const (
	rememberFirst = 1 << 12
	rememberMost  = 1 << 20
	rememberRows  = 1 << 12
)

func newPlaces(by counts.Kind, within counts.By, keep *selection, symbols functionsOf) places {
	p := places{by: by, told: within.With(by), keep: keep, symbols: symbols, recalled: make([]placeCode, rememberFirst),
		others: -1, overflow: -1,
		modules: map[*profile.File]int32{}, functions: map[*profile.Function]int32{},
		lines: map[line]int32{}, instructions: map[profile.Place]int32{},
		number: map[context]int32{}, crossed: map[row]int32{}}
	if p.apart() {
		p.recent = make([]recentRow, rememberRows)
	}
	return p
}

// apart reports whether samples are split by more than code.
func (p *places) apart() bool { return p.told&^codeKinds != 0 }

// codeless reports whether it does not matter where in the code samples are.
func (p *places) codeless() bool { return p.told&codeKinds == 0 && !p.keep.code() }

// codeKinds are the kinds of places in the code.
const codeKinds = counts.By(1<<counts.Module | 1<<counts.SourceFile | 1<<counts.Function | 1<<counts.Line | 1<<counts.Instruction)

// begin makes room for so many columns.
func (p *places) begin(columns int) {
	p.columns = columns
	p.dropped = make([]perfdata.Sum, columns)
	if p.codeless() {
		p.addCode(key{})
	}
}

// add adds a sample to what find or within returned.
func (p *places) add(n int32, column int, a *perfdata.Amount) {
	switch {
	case !p.gather || n < 0:
		p.codeSum(n, column).Add(a)
	case a.Enabled > 0:
		p.gathered.sum(int(n)*p.columns + column).Add(a)
	default:
		p.gathered.add(int(n)*p.columns+column, column, a.Value)
	}
}

// codeSum returns what a column has added up at a place in the code.
func (p *places) codeSum(code int32, column int) *perfdata.Sum {
	if code < 0 {
		return &p.dropped[column]
	}
	return &p.sums[int(code)*p.columns+column]
}

// within returns the number of a place in a context.
func (p *places) within(x, code int32) int32 {
	if code >= 0 && p.recent != nil {
		return p.cross(x, code)
	}
	return code
}

// cross returns the row of a place in a context.
func (p *places) cross(x, code int32) int32 {
	is := row{x, code}
	slot := &p.recent[(uint32(x)*0x9e3779b1+uint32(code))%rememberRows]
	if slot.row > 0 && slot.is == is {
		return slot.row - 1
	}
	n := int32(0)
	if p.gather {
		n = p.gathered.pair(is, p.columns)
	} else {
		n = p.rowOf(is)
	}
	*slot = recentRow{is, n + 1}
	return n
}

// rowOf is cross for a place that was looked up.
func (p *places) rowOf(is row) int32 {
	n, ok := p.crossed[is]
	if !ok {
		n = p.addRow(is)
	}
	return n
}

// addRow adds a row. Without room for another it is that of the others.
func (p *places) addRow(is row) int32 {
	if n := len(p.rows); n > 0 && ((n+1)*p.columns >= maxCells || n >= maxRows) {
		if p.overflow >= 0 {
			return p.overflow
		}
		is = row{-1, -1}
		p.overflow = int32(n)
	}
	n := int32(len(p.rows))
	p.crossed[is] = n
	p.rows = append(p.rows, is)
	p.sums = append(p.sums, make([]perfdata.Sum, p.columns)...)
	return n
}

// context returns the number of a context. Without room for more, they are one.
func (p *places) context(x context) int32 {
	if !p.told.Has(counts.Process) {
		x.pid = 0
	}
	if !p.told.Has(counts.Thread) {
		x.tid = 0
	}
	if !p.told.Has(counts.Cgroup) {
		x.cgroup = 0
	}
	n, ok := p.number[x]
	if !ok && len(p.contexts) >= maxContexts {
		x = context{lump: true}
		n, ok = p.number[x]
	}
	if !ok {
		n = int32(len(p.contexts))
		p.number[x] = n
		p.contexts = append(p.contexts, x)
	}
	return n
}

// find returns the number of a place in the code, a negative one if it does not count. It is
// that of a gathered place if these are looked up together.
func (p *places) find(is codePlace) int32 {
	if p.gather {
		return p.gathered.number(is, is.near(), p.columns, p.recent != nil)
	}
	spread := (is.offset ^ is.offset>>20) + uint64(is.file)*0x9e3779b97f4a7c15 // neighbours stay neighbours
	slot := &p.recalled[(spread^spread>>32)&uint64(len(p.recalled)-1)]
	if slot.code == 0 || slot.offset != is.offset || slot.file != is.file {
		return p.met(slot, is)
	}
	return slot.code - 1
}

// met is find for a place that was not remembered. The slot is its own from now on.
func (p *places) met(slot *placeCode, is codePlace) int32 {
	code := p.look(p.files.place(is))
	*slot = placeCode{is.offset, is.file, max(code+1, 0)}
	if code < 0 {
		slot.code = -1
	}
	if p.missed++; p.missed > len(p.recalled) && len(p.recalled) < rememberMost {
		p.recalled, p.missed = make([]placeCode, 2*len(p.recalled)), 0
	}
	return code
}

// look returns the number of a place, which is made at its first sample; -1 for one
// that does not count.
func (p *places) look(at profile.Place) int32 {
	if p.keep.code() && !p.keep.place(at, p.symbols) {
		return -1
	}
	switch {
	case p.told.Has(counts.Instruction):
		if at.File != nil {
			return codeOf(p, p.instructions, at, key{place: at})
		}
	case p.told.Has(counts.Line):
		if file, number := p.symbols.Line(at); number > 0 {
			l := line{module: at.File, file: file, number: number}
			if p.told.Has(counts.Function) {
				l.function = p.symbols.at(at)
			}
			return codeOf(p, p.lines, l, key{place: at, line: l, function: l.function})
		}
	case p.told.Has(counts.SourceFile):
		return p.sourceFile(at)
	case p.told.Has(counts.Function):
	case p.told.Has(counts.Module):
		return codeOf(p, p.modules, at.File, key{place: at})
	default:
		if len(p.codes) == 0 {
			return p.addCode(key{})
		}
		return 0
	}
	f := p.symbols.at(at)
	if last := len(p.codes) - 1; last >= 0 && f != nil && p.codes[last].function == f && p.codes[last].line.number == 0 {
		return int32(last) // mostly, if the places are in order
	}
	return codeOf(p, p.functions, f, key{place: at, function: f})
}

// sourceFile returns the number of the source file at a place, or of a function in it.
func (p *places) sourceFile(at profile.Place) int32 {
	l := line{module: at.File}
	l.file, _ = p.symbols.Line(at)
	if p.told.Has(counts.Function) {
		l.function = p.symbols.at(at)
	}
	return codeOf(p, p.lines, l, key{place: at, line: l, function: l.function})
}

// codeOf returns the number of a place by an index. Without room for another it is
// that of the others.
func codeOf[K comparable](p *places, index map[K]int32, of K, k key) int32 {
	if i, ok := index[of]; ok {
		return i
	}
	if n := len(p.codes); n > 0 && (n+1)*p.columns >= maxCells {
		if p.others < 0 {
			p.others = p.addCode(key{others: true})
		}
		return p.others
	}
	i := p.addCode(k)
	index[of] = i
	return i
}

func (p *places) addCode(k key) int32 {
	if len(p.codes) == cap(p.codes) {
		p.codes = slices.Grow(p.codes, len(p.codes)+1) // a quarter, as of append, would be more garbage
	}
	p.codes = append(p.codes, k)
	if p.recent == nil {
		p.sums = append(p.sums, make([]perfdata.Sum, p.columns)...)
	}
	return int32(len(p.codes) - 1)
}

// codeList returns what is known of the places that are needed, by their numbers. It asks for
// instructions file by file.
func (p *places) codeList(needed []bool) []*counts.Code {
	var order []int32
	for i := range p.codes {
		if needed[i] {
			order = append(order, int32(i))
		}
	}
	if p.by == counts.Instruction {
		slices.SortFunc(order, func(i, j int32) int {
			a, b := p.codes[i].place, p.codes[j].place
			return cmp.Or(cmp.Compare(p.files.of(a.File), p.files.of(b.File)), cmp.Compare(a.Offset, b.Offset))
		})
	}
	codes, list := make([]counts.Code, len(order)), make([]*counts.Code, len(p.codes))
	for n, i := range order {
		codes[n] = p.code(&p.codes[i])
		list[i] = &codes[n]
	}
	return list
}

// code returns what is known of a place.
func (p *places) code(k *key) counts.Code {
	if k.others {
		return counts.Code{Module: others}
	}
	c := counts.Code{Module: counts.Name(k.place.File.Base()), File: counts.Name(k.line.file), Line: k.line.number}
	if k.place.File != nil {
		c.BuildID = k.place.File.BuildID
	}
	f := k.function
	switch {
	case p.by == counts.Instruction && f == nil:
		f = p.symbols.Function(k.place)
		file, number := p.symbols.Line(k.place)
		c.File, c.Line = counts.Name(file), number
		c.Addr = p.symbols.Addr(k.place)
	case f != nil:
		c.Addr = f.Addr
	}
	if f != nil {
		c.Function = counts.Name(f.Name)
	}
	return c
}

// forget drops what finds places: there are no more samples.
func (p *places) forget() {
	p.recalled, p.modules, p.functions, p.lines, p.instructions, p.crossed = nil, nil, nil, nil, nil, nil
}

// samples returns how many samples places in the code have, by their numbers.
func (p *places) samples() []int64 {
	out := make([]int64, len(p.codes))
	for i := range p.sums {
		code := i / p.columns
		if p.recent != nil {
			code = int(p.rows[code].code)
		}
		if code >= 0 {
			out[code] += p.sums[i].Samples()
		}
	}
	return out
}
