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
	recent []remembered

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
	place profile.Place
	row   int32
	known bool
}

// remember is how many places are remembered: a power of two.
const remember = 1 << 16

func newPlaces(by counts.Kind, symbols *profile.Symbolizer) places {
	return places{by: by, symbols: symbols, recent: make([]remembered, remember), others: -1,
		modules: map[*profile.File]int32{}, functions: map[*profile.Function]int32{},
		lines: map[line]int32{}, instructions: map[profile.Place]int32{}}
}

// sum returns what a column has added up at a place.
func (p *places) sum(at profile.Place, column int32) *perfdata.Sum {
	slot := &p.recent[(at.Offset^at.Offset>>16)%remember]
	if !slot.known || slot.place != at {
		*slot = remembered{at, p.row(at), true}
	}
	return &p.sums[int(slot.row)*p.columns+int(column)]
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
