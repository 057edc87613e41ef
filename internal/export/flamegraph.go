package export

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The page that shows a flame graph, its style and its script. The script builds the
// page by setting text and never markup, and the page allows no other script.
var (
	//go:embed flamegraph.css
	flameStyle string
	//go:embed flamegraph.js
	flameScript string
)

// narrowest is the part of the whole that a box must have to be written, in any type of
// value: a tenth of a dot on a wide screen.
const narrowest = 1.0 / 40000

// FlameGraph writes a flame graph: a page of HTML in one file that needs nothing else. The
// page has all types and shows one at a time. Boxes are coloured by module or by
// bottleneck.
func FlameGraph(w io.Writer, p *Profile) (Omission, error) {
	t := newFlameTree(len(p.Types))
	left := t.fill(p)
	t.settle()
	out := &jsonStream{w: bufio.NewWriter(w)}
	title := html.EscapeString(clean(p.Title))
	out.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n").
		text(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '` + hash(flameStyle) + `'; script-src '` + hash(flameScript) + "'\">\n").
		text("<meta name=\"viewport\" content=\"width=device-width\">\n<title>" + title + "</title>\n").
		text("<style>" + flameStyle + "</style>\n</head>\n<body>\n<noscript>This flame graph needs JavaScript.</noscript>\n").
		text(`<script id="data" type="application/json">`)
	t.write(out, p, left)
	out.text("</script>\n<script>" + flameScript + "</script>\n</body>\n</html>\n")
	return left, out.flush()
}

// stacksSchema is the schema of the data of a flame graph.
const stacksSchema = "cyclestack.stacks/v1"

// Stacks writes the data of a flame graph as a document of JSON, which package web shows.
func Stacks(w io.Writer, p *Profile) (Omission, error) {
	t := newFlameTree(len(p.Types))
	left := t.fill(p)
	t.settle()
	out := &jsonStream{w: bufio.NewWriter(w)}
	t.write(out, p, left)
	return left, out.text("\n").flush()
}

// hash is the hash of a script or a style for the page's content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A flameTree has the boxes of a flame graph. Frames with the same name in the same module
// are one box.
type flameTree struct {
	types    int
	boxes    []flameBox
	sums     []float64        // by box and type: of it and, in the end, of all boxes above it
	children map[uint64]int32 // boxes, by the one they stand on and the number of their label
	labels   numbers[flameLabel]
	weights  [][]float64 // of the default type, by bottleneck and box
	names    numbers[string]
	modules  numbers[string]
	limits   numbers[string]
	ends     []int32 // the last boxes of stacks by their number, for pieces
}

type flameBox struct {
	flameLabel
	parent int32
	label  int32 // its number
	kernel bool
	below  []int32 // once settled
}

type flameLabel struct {
	name, module int32
	inlined      bool
}

// numbers gives what is met its numbers, such as texts.
type numbers[K comparable] struct {
	index map[K]int32
	list  []K
}

func (n *numbers[K]) of(what K) int32 {
	i, ok := n.index[what]
	if !ok {
		if n.index == nil {
			n.index = map[K]int32{}
		}
		i = int32(len(n.list))
		n.index[what] = i
		n.list = append(n.list, what)
	}
	return i
}

func newFlameTree(types int) *flameTree {
	t := &flameTree{types: types, children: map[uint64]int32{}}
	t.child(-1, t.label("all", "", false), false)
	return t
}

// label returns the number of a box's label.
func (t *flameTree) label(name, module string, inlined bool) int32 {
	return t.labels.of(flameLabel{t.names.of(name), t.modules.of(module), inlined})
}

// child returns the box with a label that stands on another one.
func (t *flameTree) child(parent, label int32, kernel bool) int32 {
	key := boxKey(parent, label)
	i, ok := t.children[key]
	if !ok {
		i = int32(len(t.boxes))
		t.boxes = append(t.boxes, flameBox{flameLabel: t.labels.list[label], parent: parent, label: label, kernel: kernel})
		for range t.types {
			t.sums = append(t.sums, 0)
		}
		t.children[key] = i
	}
	return i
}

func boxKey(parent, label int32) uint64 { return uint64(uint32(parent))<<32 | uint64(label) }

// fullTree is how many boxes there are before those too narrow to be seen are left out.
var fullTree = 1 << 16

// fill adds the stacks to the tree. Values are those of the last boxes until all are there. Without
// pieces, boxes that nobody sees are left out on the way: most stacks of a large recording are of one sample.
func (t *flameTree) fill(p *Profile) Omission {
	var left Omission
	values := make([]float64, t.types)
	var path []int32 // the boxes of the frames of the stack before
	thread, full := int32(0), fullTree
	for s := range p.Stacks {
		if path = path[:min(s.Same, len(path))]; len(path) == 0 {
			if thread = 0; s.Thread != "" {
				thread = t.child(0, t.label(clean(s.Thread), "", false), false)
			}
		}
		at := thread
		if n := len(path); n > 0 {
			at = path[n-1]
		}
		for _, f := range s.Frames[len(path):] {
			if f.tree != t {
				f.tree, f.box = t, t.label(f.label(), clean(f.Module), f.Inlined)
			}
			at = t.child(at, f.box, f.Kernel)
			path = append(path, at)
		}
		any := false
		for i, v := range s.Values {
			values[i] = 0
			if left.add(v) {
				values[i], any = v, true
			}
		}
		if any {
			t.count(at, values)
			t.weigh(at, t.limits.of(clean(s.Bottleneck)), values[p.Default])
		}
		if p.Pieces != nil {
			t.ends = append(t.ends, make([]int32, max(0, s.Number+1-len(t.ends)))...)
			t.ends[s.Number] = at
		} else if len(t.boxes) > full {
			path = append(path, thread)
			t.sweep(path)
			thread, path = path[len(path)-1], path[:len(path)-1]
			full = max(fullTree, 2*len(t.boxes))
		}
	}
	for i := len(t.boxes) - 1; i > 0; i-- {
		t.pass(i)
	}
	return left
}

// pass adds the values of a box to the one that it stands on.
func (t *flameTree) pass(i int) {
	to := t.boxes[i].parent
	t.count(to, t.sums[i*t.types:][:t.types])
	for l, list := range t.weights {
		if i < len(list) && list[i] > 0 {
			t.weigh(to, int32(l), list[i])
		}
	}
}

func (t *flameTree) count(at int32, values []float64) {
	sums := t.sums[int(at)*t.types:][:t.types]
	for i, v := range values {
		sums[i] += v
	}
}

// weigh adds to what a bottleneck has of a box.
func (t *flameTree) weigh(at, limit int32, value float64) {
	t.weights = append(t.weights, make([][]float64, max(0, int(limit)+1-len(t.weights)))...)
	list := t.weights[limit]
	if int(at) >= len(list) {
		list = append(list, make([]float64, len(t.boxes)-len(list))...)
		t.weights[limit] = list
	}
	list[at] += value
}

// sweep leaves out the boxes that are too narrow to be seen, so far. Their values are those of the boxes that they
// stand on. Boxes that are open stay, and get their new numbers.
func (t *flameTree) sweep(open []int32) {
	own := slices.Clone(t.sums)
	for i := len(t.boxes) - 1; i > 0; i-- {
		t.count(t.boxes[i].parent, t.sums[i*t.types:][:t.types])
	}
	kept := make([]bool, len(t.boxes))
	kept[0] = true
	for _, i := range open {
		kept[i] = true
	}
	for i := len(t.boxes) - 1; i > 0; i-- {
		if kept[i] = kept[i] || t.wide(int32(i)); kept[i] {
			kept[t.boxes[i].parent] = true
		}
	}
	t.sums = own
	for i := len(t.boxes) - 1; i > 0; i-- {
		if !kept[i] {
			t.pass(i)
		}
	}
	clear(t.children)
	moved, n := make([]int32, len(t.boxes)), 0
	for i, b := range t.boxes {
		if !kept[i] {
			continue
		}
		if i > 0 {
			b.parent = moved[b.parent]
		}
		moved[i], t.boxes[n] = int32(n), b
		t.children[boxKey(b.parent, b.label)] = int32(n)
		copy(t.sums[n*t.types:][:t.types], t.sums[i*t.types:])
		for _, list := range t.weights {
			if i < len(list) {
				list[n] = list[i]
			} else if n < len(list) {
				list[n] = 0
			}
		}
		n++
	}
	t.boxes, t.sums = t.boxes[:n], t.sums[:n*t.types]
	for l, list := range t.weights {
		t.weights[l] = list[:min(n, len(list))]
	}
	for k, i := range open {
		open[k] = moved[i]
	}
}

// settle has the boxes above each other in the order of their names.
func (t *flameTree) settle() {
	for i, b := range t.boxes[1:] {
		below := &t.boxes[b.parent].below
		*below = append(*below, int32(i+1))
	}
	for i := range t.boxes {
		slices.SortFunc(t.boxes[i].below, func(a, b int32) int {
			x, y := &t.boxes[a], &t.boxes[b]
			return cmp.Or(strings.Compare(t.names.list[x.name], t.names.list[y.name]),
				strings.Compare(t.modules.list[x.module], t.modules.list[y.module]), cmp.Compare(a, b))
		})
	}
}

// wide reports whether a box can be seen.
func (t *flameTree) wide(i int32) bool {
	for k := range t.types {
		if t.sums[int(i)*t.types+k] > narrowest*t.sums[k] {
			return true
		}
	}
	return false
}

// limit returns the most frequent bottleneck of a box, by value.
func (t *flameTree) limit(box int32) int32 {
	best, most := int32(0), 0.0
	for l, list := range t.weights {
		if int(box) < len(list) && list[box] > most {
			best, most = int32(l), list[box]
		}
	}
	return best
}

// write writes the data. Each box follows the one it stands on, and has a number for each type
// behind five of its own.
func (t *flameTree) write(out *jsonStream, p *Profile, left Omission) {
	out.text(`{"schema":`).value(stacksSchema).text(`,"title":`).value(clean(p.Title)).text(`,"types":[`)
	out.types(p.Types)
	notes := cleanAll(append(slices.Clone(p.Notes), left.Notes()...))
	out.text(`]`)
	out.text(`,"main":`).value(p.Default).text(`,"notes":`).value(append([]string{}, notes...)).text(",\"boxes\":[\n")
	number := make([]int32, len(t.boxes))
	n := int32(0)
	var line []byte
	var walk []int32
	for walk = append(walk, 0); len(walk) > 0; {
		i := walk[len(walk)-1]
		walk = walk[:len(walk)-1]
		b := &t.boxes[i]
		number[i] = n
		parent := int32(-1)
		if b.parent >= 0 {
			parent = number[b.parent]
		}
		line = line[:0]
		if n > 0 {
			line = append(line, ",\n"...)
		}
		n++
		line = append(line, '[')
		for _, v := range []int32{parent, b.name, b.module, t.limit(i), flags(b)} {
			line = append(strconv.AppendInt(line, int64(v), 10), ',')
		}
		for k := range t.types {
			if k > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, t.sums[int(i)*t.types+k], 'g', 7, 64)
		}
		out.text(string(append(line, ']')))
		for _, c := range slices.Backward(b.below) {
			if t.wide(c) {
				walk = append(walk, c)
			}
		}
	}
	out.text("],\n\"names\":").value(t.names.list).text(",\n\"modules\":").value(t.modules.list).
		text(",\n\"limits\":").value(append([]string{}, t.limits.list...)).text("}")
}

// types writes the types of values.
func (j *jsonStream) types(list []Type) {
	for i, typ := range list {
		if i > 0 {
			j.text(",")
		}
		j.value(map[string]string{"name": clean(typ.Name), "unit": clean(typ.Unit), "path": clean(typ.Path)})
	}
}

// flags are 1 for inlined calls and 2 for the kernel's code.
func flags(b *flameBox) int32 {
	f := int32(0)
	if b.inlined {
		f |= 1
	}
	if b.kernel {
		f |= 2
	}
	return f
}
