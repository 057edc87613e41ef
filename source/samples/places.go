package samples

import (
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// places adds up samples by what is told apart.
type places struct {
	by      counts.Kind
	symbols *profile.Symbolizer
	columns int

	keys   []key          // by row
	sums   []perfdata.Sum // by row and column
	near   []remembered
	far    []remembered
	files  fileNumbers
	missed int // times that a place was not remembered, since far grew

	modules      map[*profile.File]int32
	functions    map[*profile.Function]int32
	lines        map[line]int32
	instructions map[profile.Place]int32
	others       int32 // row; -1 for none
}

// A key is what a row is about.
type key struct {
	place    profile.Place     // of its first sample
	function *profile.Function // nil if functions are not told apart
	line     line              // 0 for what no line is known of
	others   bool
}

// A line is one of a source file that was compiled into a module.
type line struct {
	module *profile.File
	file   string
	number int
}

// A remembered place is one whose row was looked up. Programs are at few places
// again and again.
type remembered struct {
	offset uint64
	file   uint32 // its number
	row    int32  // and 1; 0 for none
}

// How many places are remembered, powers of two: some where the processor finds
// them at once, and if there are many, up to so many that save looking for
// symbols.
const (
	rememberNear  = 1 << 15
	rememberFirst = 1 << 14
	rememberMost  = 1 << 20
)

// fileNumbers gives files numbers.
type fileNumbers struct {
	number map[*profile.File]uint32
	recent [2]struct {
		file   *profile.File
		number uint32
	}
}

// of returns the number of a file, of those that samples are in most of the time
// without a search: a program and the kernel.
func (f *fileNumbers) of(file *profile.File) uint32 {
	for i := range f.recent {
		if f.recent[i].file == file {
			return f.recent[i].number
		}
	}
	n, ok := f.number[file]
	if !ok {
		n = uint32(len(f.number))
		f.number[file] = n
	}
	at := 0
	if file != nil && file.Kind == profile.KernelCode {
		at = 1
	}
	f.recent[at].file, f.recent[at].number = file, n
	return n
}

func newPlaces(by counts.Kind, symbols *profile.Symbolizer) places {
	return places{by: by, symbols: symbols, near: make([]remembered, rememberNear), far: make([]remembered, rememberFirst), others: -1,
		files:   fileNumbers{number: map[*profile.File]uint32{nil: 0}},
		modules: map[*profile.File]int32{}, functions: map[*profile.Function]int32{},
		lines: map[line]int32{}, instructions: map[profile.Place]int32{}}
}

// sum returns what a column has added up at a place.
func (p *places) sum(at profile.Place, column int32) *perfdata.Sum {
	key := remembered{at.Offset, p.files.of(at.File), 0}
	// Neighbours stay neighbours, and files are apart.
	spread := (at.Offset ^ at.Offset>>20) + uint64(key.file)*0x9e3779b97f4a7c15
	near := &p.near[(spread^spread>>32)%rememberNear]
	if near.row == 0 || near.offset != key.offset || near.file != key.file {
		slot := (spread ^ spread>>32) % uint64(len(p.far))
		if far := &p.far[slot]; far.row == 0 || far.offset != key.offset || far.file != key.file {
			key.row = p.row(at) + 1
			*far = key
			p.missed++
		}
		*near = p.far[slot]
		if p.missed > len(p.far) && len(p.far) < rememberMost {
			p.far, p.missed = make([]remembered, 2*len(p.far)), 0
		}
	}
	return &p.sums[int(near.row-1)*p.columns+int(column)]
}

// row returns the row of a place, which is made at its first sample.
func (p *places) row(at profile.Place) int32 {
	switch p.by {
	case counts.Module:
		return rowOf(p, p.modules, at.File, key{place: at})
	case counts.Line:
		if file, number := p.symbols.Line(at); number > 0 {
			l := line{at.File, file, number}
			return rowOf(p, p.lines, l, key{place: at, line: l})
		}
	case counts.Instruction:
		if at.File != nil {
			return rowOf(p, p.instructions, at, key{place: at})
		}
	}
	f := p.symbols.Function(at)
	return rowOf(p, p.functions, f, key{place: at, function: f})
}

// rowOf returns a row by an index. Without room for another it is that of the
// others.
func rowOf[K comparable](p *places, index map[K]int32, of K, k key) int32 {
	if i, ok := index[of]; ok {
		return i
	}
	if n := len(p.keys); n > 0 && (n+1)*p.columns >= maxCells {
		if p.others < 0 {
			p.others = p.add(key{others: true})
		}
		return p.others
	}
	i := p.add(k)
	index[of] = i
	return i
}

func (p *places) add(k key) int32 {
	p.keys = append(p.keys, k)
	p.sums = append(p.sums, make([]perfdata.Sum, p.columns)...)
	return int32(len(p.keys) - 1)
}

// scope describes a row.
func (p *places) scope(i int) counts.Scope {
	k := p.keys[i]
	s := counts.RunScope("")
	s.Kind = p.by
	if k.others {
		s.Label, s.Code = "others", &counts.Code{}
		return s
	}
	c := &counts.Code{Module: k.place.File.Base(), File: k.line.file, Line: k.line.number}
	if k.place.File != nil {
		c.BuildID = k.place.File.BuildID
	}
	f := k.function
	if p.by == counts.Instruction && f == nil {
		f = p.symbols.Function(k.place)
		c.File, c.Line = p.symbols.Line(k.place)
		c.Addr = p.symbols.Addr(k.place)
	} else if f != nil {
		c.Addr = f.Addr
	}
	if f != nil {
		c.Function = f.Name
	}
	s.Code, s.Label = c, label(p.by, c)
	return s
}
