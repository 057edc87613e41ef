package export

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// piecesSchema is the schema of the stacks of intervals.
const piecesSchema = "cyclestack.stacks_intervals/v1"

// Limits of the stacks of intervals: values of stacks, amounts of places, and boxes.
var pieceCells, pieceAmounts, pieceBoxes = 1 << 18, 1 << 18, 1 << 17

// otherStacks is the box of stacks that there is no room for.
const otherStacks = "[other stacks]"

// PiecesWritten says what was written of the pieces of a profile.
type PiecesWritten struct {
	Intervals int
	Others    float64 // the share of the default type that is in boxes for other stacks
	Crowded   bool    // there are too many
}

// StacksAndPieces writes the data of a flame graph, and those of the stacks of each interval:
// any intervals can be added up. Of many stacks the lightest are together.
func StacksAndPieces(stacks, intervals io.Writer, p *Profile) (PiecesWritten, error) {
	t := newFlameTree(len(p.Types))
	left := t.fill(p)
	t.settle()
	out := &jsonStream{w: bufio.NewWriter(stacks)}
	t.write(out, p, left)
	if err := out.text("\n").flush(); err != nil {
		return PiecesWritten{}, err
	}
	x := &pieces{flameTree: t, light: map[int]bool{}, heavy: map[int]float64{}}
	if p.Crowded {
		return PiecesWritten{Crowded: true}, nil
	}
	x.gather(p)
	return x.write(&jsonStream{w: bufio.NewWriter(intervals)}, p)
}

// pieces are the values of stacks by interval. Those of a stack are in its last box.
type pieces struct {
	*flameTree
	spans   []piece
	cells   int             // in all
	amounts int             // likewise
	least   float64         // the share that a box has at least
	light   map[int]bool    // places that are together, as number 0
	heavy   map[int]float64 // the wholes of the others
}

// A piece has the values of stacks, and the amounts of nodes by place and bottleneck.
type piece struct {
	start          float64
	cells, amounts []pieceCell
}

// A pieceCell is a value by box and place, or by place and bottleneck. The types of wholes are
// behind those of the profile.
type pieceCell struct {
	first, second, typ int32
	value              float64
}

// order compares the numbers of cells.
func (c *pieceCell) order(o *pieceCell) int {
	return cmp.Or(cmp.Compare(c.first, o.first), cmp.Compare(c.second, o.second), cmp.Compare(c.typ, o.typ))
}

// gather gathers the values of stacks that are above zero, and the amounts of places.
func (x *pieces) gather(p *Profile) {
	for from := range p.Pieces {
		to := piece{start: from.Start}
		for _, s := range from.Stacks {
			place := x.place(s.Place)
			add := func(typ int, v float64) {
				if v > 0 && !math.IsInf(v, 0) {
					to.cells = append(to.cells, pieceCell{x.ends[s.Stack], place, int32(typ), v})
				}
			}
			for k, v := range s.Events {
				add(len(p.Types)-len(s.Events)+k, v)
			}
			for k, v := range s.Wholes {
				if add(len(p.Types)+k, v); place > 0 && v > 0 {
					x.heavy[s.Place] += v
				}
			}
		}
		for _, place := range from.Places {
			limit := x.limits.of(clean(place.Bottleneck))
			for k, v := range place.Amounts {
				if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
					to.amounts = append(to.amounts, pieceCell{x.place(place.Place), limit, int32(k), v})
				}
			}
		}
		x.spans = append(x.spans, to)
		x.sumUp(len(x.spans) - 1)
		for x.amounts > pieceAmounts && x.together() {
		}
		x.fold(func() bool { return x.cells > pieceCells })
	}
	x.fold(func() bool { return slices.Max(x.used()) > int32(pieceBoxes) })
}

// sumUp adds up what has the same numbers in the pieces from one on.
func (x *pieces) sumUp(from int) {
	for k := range x.spans[from:] {
		s := &x.spans[from+k]
		s.cells, s.amounts = slices.Clip(added(s.cells)), slices.Clip(added(s.amounts))
		x.cells, x.amounts = x.cells+len(s.cells), x.amounts+len(s.amounts)
	}
}

// place is the number of a place, or that of the light ones.
func (x *pieces) place(n int) int32 {
	if x.light[n] {
		return 0
	}
	return int32(n)
}

// together puts the lighter half of the places together. It returns false if there is none.
func (x *pieces) together() bool {
	list := slices.Sorted(maps.Values(x.heavy))
	if len(list) == 0 {
		return false
	}
	for place, v := range x.heavy {
		if v <= list[len(list)/2] {
			x.light[place] = true
			delete(x.heavy, place)
		}
	}
	x.cells, x.amounts = 0, 0
	for k := range x.spans {
		for i := range x.spans[k].cells {
			c := &x.spans[k].cells[i]
			c.second = x.place(int(c.second))
		}
		for i := range x.spans[k].amounts {
			c := &x.spans[k].amounts[i]
			c.first = x.place(int(c.first))
		}
	}
	x.sumUp(0)
	return true
}

// added sorts cells, and adds up those of one place.
func added(list []pieceCell) []pieceCell {
	sorting.Sort(list, func(a, b pieceCell) int { return a.order(&b) })
	n := 0
	for i := range list {
		if n > 0 && list[n-1].order(&list[i]) == 0 {
			list[n-1].value += list[i].value
			continue
		}
		list[n] = list[i]
		n++
	}
	return list[:n]
}

// share is the largest share of a box in any type.
func (x *pieces) share(box int) float64 {
	most := 0.0
	for k := range x.types {
		if all := x.sums[k]; all > 0 {
			most = max(most, x.sums[box*x.types+k]/all)
		}
	}
	return most
}

// fold puts the lightest boxes together while there are too many.
func (x *pieces) fold(many func() bool) {
	for list := []float64(nil); many() && x.least < 1; list = list[:0] {
		for i := range x.boxes {
			if v := x.share(i); v >= x.least && v > 0 {
				list = append(list, v)
			}
		}
		slices.Sort(list)                              // it has the first box
		x.least = math.Nextafter(list[len(list)/2], 2) // the lighter half, and those that are as light
		x.lighten()
	}
}

// lighten keeps the boxes with the least share. The cells of others go to a box for others,
// above the last box that is kept.
func (x *pieces) lighten() {
	moved, others := make([]int32, len(x.boxes)), x.names.of(otherStacks)
	for i := range moved {
		b := &x.boxes[i]
		switch {
		case i == 0 || moved[b.parent] == b.parent && (b.name == others || x.share(i) >= x.least):
			moved[i] = int32(i)
		case moved[b.parent] != b.parent: // in the others' already
			moved[i] = moved[b.parent]
		default:
			moved[i] = x.child(b.parent, x.label(otherStacks, "", false), false)
		}
	}
	for i, box := range x.ends {
		x.ends[i] = moved[box]
	}
	x.cells, x.amounts = 0, 0
	for k := range x.spans {
		for i := range x.spans[k].cells {
			c := &x.spans[k].cells[i]
			c.first = moved[c.first]
		}
	}
	x.sumUp(0)
}

// used returns the numbers of the boxes that cells are in, and of those below, from 1; 0 for
// others.
func (x *pieces) used() []int32 {
	list := make([]int32, len(x.boxes))
	list[0] = 1
	for k := range x.spans {
		for _, c := range x.spans[k].cells {
			for i := c.first; list[i] == 0; i = x.boxes[i].parent {
				list[i] = 1
			}
		}
	}
	n := int32(0)
	for i := range list {
		if list[i] > 0 {
			n++
			list[i] = n
		}
	}
	return list
}

// write writes the boxes and the intervals.
func (x *pieces) write(out *jsonStream, p *Profile) (PiecesWritten, error) {
	number := x.used()
	out.text(`{"schema":`).value(piecesSchema).text(`,"types":[`)
	out.types(p.Types)
	out.text(`],"units":`).value(append([]string{}, p.Units...)).text(`,"main":`).value(p.Default).text(",\"boxes\":[\n")
	var line []byte
	for i := range x.boxes {
		if b := &x.boxes[i]; number[i] > 0 {
			line = append(line[:0], ",\n["...)
			parent := -1
			if i == 0 {
				line = line[2:]
			} else {
				parent = int(number[b.parent]) - 1
			}
			line = appendNumbers(line, parent, int(b.name), int(b.module), int(flags(b)))
			out.text(string(append(line, ']')))
		}
	}
	out.text("],\n\"names\":").value(x.names.list).text(",\n\"modules\":").value(x.modules.list).
		text(",\n\"limits\":").value(append([]string{}, x.limits.list...)).text(",\n\"intervals\":[")
	for k := range x.spans {
		if k > 0 {
			out.text(",")
		}
		out.text("\n{\"start_s\":").value(x.spans[k].start).text(`,"places":[`).cells(x.spans[k].amounts, func(n int32) int32 { return n })
		out.text(`],"rows":[`).cells(x.spans[k].cells, func(n int32) int32 { return number[n] - 1 }).text("]}")
	}
	typ := p.Default
	if p.Types[typ].Path != "" { // a node has no values of its own
		typ = len(p.Types)
	}
	return PiecesWritten{Intervals: len(x.spans), Others: x.others(int32(typ))}, out.text("]}\n").flush()
}

// cells writes cells: their first and second numbers, how many types have a value, and each type
// with its value.
func (j *jsonStream) cells(list []pieceCell, number func(int32) int32) *jsonStream {
	line := []byte(nil)
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].first == list[0].first && list[n].second == list[0].second {
			n++
		}
		line = appendNumbers(line, int(number(list[0].first)), int(list[0].second), n)
		for _, c := range list[:n] {
			line = append(appendNumbers(append(line, ','), int(c.typ)), ',')
			line = strconv.AppendFloat(line, c.value, 'g', 7, 64)
		}
		j.text(string(line))
		line, list = append(line[:0], ','), list[n:]
	}
	return j
}

// appendNumbers appends numbers with commas between them.
func appendNumbers(to []byte, list ...int) []byte {
	for i, v := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = strconv.AppendInt(to, int64(v), 10)
	}
	return to
}

// others is the share of a type that is in boxes for other stacks, or in places that are
// together.
func (x *pieces) others(typ int32) float64 {
	name, sum, all := x.names.of(otherStacks), 0.0, math.SmallestNonzeroFloat64
	for k := range x.spans {
		for _, c := range x.spans[k].cells {
			if c.typ == typ {
				if all += c.value; x.boxes[c.first].name == name || c.second == 0 && len(x.light) > 0 {
					sum += c.value
				}
			}
		}
	}
	return sum / all
}
