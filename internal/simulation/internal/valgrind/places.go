package valgrind

import (
	"path"
	"sort"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// A position is the place of costs.
type position struct {
	ob         name
	fn         name
	home, file name // of the function, and of the code inlined into it
	line, addr uint64
}

// places adds up costs by place.
type places struct {
	by      counts.Kind
	apart   bool // lines of several functions are several places
	width   int  // columns
	rows    map[key]int32
	keys    []key
	fns     []name       // by row: its function; 0 for several
	lines   []uint64     // by row: of the instruction
	files   []name       // by row: of the instruction
	sums    [][]float64  // by row and column, of so many rows each
	chained [][2]float64 // by row: misses of chained loads
	last    int          // row of the function; -1 if it is not known
	recent  [1 << recentBits]recentRow
	others  int // row; -1 for none
}

// A key identifies a place. Fields that do not matter for the kind of place are 0.
type key struct {
	ob, fl, fn name
	number     uint64 // line or address
}

// recentRow is a row that was looked up. Programs' files have the same lines again and
// again.
type recentRow struct {
	key key
	row int32 // plus 1; 0 for none
}

const recentBits = 12

// Bounds on the memory that a file can make a reader use.
const (
	maxSums  = 1 << 24 // while it is read
	maxCells = 1 << 21 // of its table
)

func newPlaces(by counts.Kind, apart bool) *places {
	return &places{by: by, apart: apart, rows: map[key]int32{}, last: -1, others: -1}
}

// moved says that a function begins.
func (p *places) moved() { p.last = -1 }

// row returns the row of a position, -1 if there are no places.
func (p *places) row(at *position) int {
	switch p.by {
	case counts.Module:
		if p.last < 0 {
			p.last = p.find(key{ob: at.ob}, at)
		}
		return p.last
	case counts.Function:
		if p.last < 0 {
			p.last = p.find(key{ob: at.ob, fl: at.home, fn: at.fn}, at)
		}
		return p.last
	case counts.Line:
		if at.line == 0 || at.file == 0 { // no line is known: it belongs to the function
			return p.find(key{ob: at.ob, fl: at.home, fn: at.fn}, at)
		}
		return p.line(at)
	case counts.Instruction:
		return p.find(key{ob: at.ob, number: at.addr}, at)
	}
	return -1
}

// line returns the row of a position in a known line.
func (p *places) line(at *position) int {
	k := key{ob: at.ob, fl: at.file, number: at.line}
	if p.apart {
		k.fn = at.fn
	}
	row := p.find(k, at)
	if p.fns[row] != at.fn {
		p.fns[row] = 0
	}
	return row
}

// find returns the row of a key, and makes it if it is new. If there is no room for
// another, it is the row of the others.
func (p *places) find(k key, at *position) int {
	hash := (k.number ^ uint64(k.fl)<<17 ^ uint64(k.fn)<<32 ^ uint64(k.ob)<<48) * 0x9e3779b97f4a7c15
	slot := &p.recent[hash>>(64-recentBits)]
	if slot.row > 0 && slot.key == k {
		return int(slot.row) - 1
	}
	row, ok := p.rows[k]
	if !ok {
		if (len(p.keys)+2)*p.width > maxSums {
			if p.others < 0 {
				p.others = p.add(key{}, &position{})
			}
			return p.others
		}
		row = int32(p.add(k, at))
		p.rows[k] = row
	}
	*slot = recentRow{k, row + 1}
	return int(row)
}

func (p *places) add(k key, at *position) int {
	p.keys = append(p.keys, k)
	p.fns = append(p.fns, at.fn)
	if p.by == counts.Instruction {
		p.lines, p.files = append(p.lines, at.line), append(p.files, at.file)
	}
	if len(p.keys) > len(p.sums)*sumRows {
		p.sums = append(p.sums, make([]float64, sumRows*p.width))
	}
	p.chained = append(p.chained, [2]float64{})
	return len(p.keys) - 1
}

// sumRows is for how many rows there is more memory at a time: nothing is copied.
const sumRows = 64

// at returns the sums of a row.
func (p *places) at(row int) []float64 {
	return p.sums[row/sumRows][row%sumRows*p.width:][:p.width]
}

// widen makes room for more columns.
func (p *places) widen(width int) {
	if width <= p.width {
		return
	}
	for i, old := range p.sums {
		p.sums[i] = make([]float64, sumRows*width)
		for row := range sumRows {
			copy(p.sums[i][row*width:], old[row*p.width:][:p.width])
		}
	}
	p.width = width
}

// largest returns so many rows with the highest cost by some columns, and the others.
func (p *places) largest(most int, by []int) (rows, rest []int) {
	rows = make([]int, 0, len(p.keys))
	costs := make([]float64, len(p.keys))
	for i := range p.keys {
		if i != p.others {
			rows = append(rows, i)
		}
		for _, c := range by {
			costs[i] += p.at(i)[c]
		}
	}
	if len(rows) <= most {
		return rows, nil
	}
	sort.Slice(rows, func(x, y int) bool { // slices.SortFunc would be 6 kB of code
		i, j := rows[x], rows[y]
		return costs[i] > costs[j] || costs[i] == costs[j] && i < j
	})
	return rows[:most], rows[most:]
}

// scope describes a row.
func (r *Reader) scope(row int) counts.Scope {
	p := r.places
	s := counts.RunScope("")
	s.Kind = p.by
	k := p.keys[row]
	c := &counts.Code{Module: base(r.ob.text[k.ob]), Function: shortAddress(r.fn.text[p.fns[row]])}
	switch p.by {
	case counts.Module:
		c.Function = ""
	case counts.Function:
		c.File = r.fl.text[k.fl]
	case counts.Line:
		c.File, c.Line = r.fl.text[k.fl], int(k.number)
	case counts.Instruction:
		c.File, c.Line, c.Addr = r.fl.text[p.files[row]], int(p.lines[row]), k.number
	}
	if n := r.callsAt[key{fl: k.fl, fn: p.fns[row], number: k.number}]; n > 0 && p.by == counts.Line {
		by := r.callers[n-1]
		s.Caller, s.CallerShare = &counts.Code{File: r.fl.text[by.file], Line: by.line}, by.share
	}
	s.Code, s.Label = c, c.Label(p.by)
	if row == p.others {
		s.Label = "others"
	}
	return s
}

// shortAddress returns the name of a function without a name: callgrind writes its address,
// in sixteen digits.
func shortAddress(function string) string {
	if digits, ok := strings.CutPrefix(function, "0x0"); ok {
		return "0x" + strings.TrimLeft(digits, "0")
	}
	return function
}

func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}
