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
	sums     []float64 // by box and type: of it and of all boxes above it
	children map[flameKey]int32
	weights  map[uint64]float64 // of the default type, by box and bottleneck
	names    numbers
	modules  numbers
	limits   numbers
	ends     []int32 // the last boxes of stacks by their number, for pieces
}

type flameBox struct {
	name, module int32
	parent       int32
	inlined      bool
	kernel       bool
	below        []int32
}

type flameKey struct {
	parent, name, module int32
	inlined              bool
}

// numbers gives strings numbers.
type numbers struct {
	index map[string]int32
	list  []string
}

func (n *numbers) of(s string) int32 {
	i, ok := n.index[s]
	if !ok {
		if n.index == nil {
			n.index = map[string]int32{}
		}
		i = int32(len(n.list))
		n.index[s] = i
		n.list = append(n.list, s)
	}
	return i
}

func newFlameTree(types int) *flameTree {
	t := &flameTree{types: types, children: map[flameKey]int32{}, weights: map[uint64]float64{}}
	t.add(flameKey{-1, t.names.of("all"), t.modules.of(""), false}, false)
	return t
}

func (t *flameTree) add(k flameKey, kernel bool) int32 {
	i := int32(len(t.boxes))
	t.boxes = append(t.boxes, flameBox{name: k.name, module: k.module, parent: k.parent, inlined: k.inlined, kernel: kernel})
	t.sums = append(t.sums, make([]float64, t.types)...)
	t.children[k] = i
	if k.parent >= 0 {
		t.boxes[k.parent].below = append(t.boxes[k.parent].below, i)
	}
	return i
}

func (t *flameTree) child(parent int32, name, module string, inlined, kernel bool) int32 {
	k := flameKey{parent, t.names.of(name), t.modules.of(module), inlined}
	if i, ok := t.children[k]; ok {
		return i
	}
	return t.add(k, kernel)
}

// fill adds the stacks to the tree. Values are those of the last boxes until all are there.
func (t *flameTree) fill(p *Profile) Omission {
	var left Omission
	values := make([]float64, t.types)
	var path []int32 // the boxes of the frames of the stack before
	thread := int32(0)
	for s := range p.Stacks {
		if path = path[:min(s.Same, len(path))]; len(path) == 0 {
			if thread = 0; s.Thread != "" {
				thread = t.child(0, clean(s.Thread), "", false, false)
			}
		}
		at := thread
		if n := len(path); n > 0 {
			at = path[n-1]
		}
		for _, f := range s.Frames[len(path):] {
			at = t.child(at, f.label(), clean(f.Module), f.Inlined, f.Kernel)
			path = append(path, at)
		}
		any := false
		for i, v := range s.Values {
			values[i] = 0
			if left.add(v) {
				values[i], any = v, true
			}
		}
		if p.Pieces != nil {
			t.ends = append(t.ends, make([]int32, max(0, s.Number+1-len(t.ends)))...)
			t.ends[s.Number] = at
		}
		if any {
			t.count(at, values)
			t.weights[uint64(at)<<32|uint64(t.limits.of(clean(s.Bottleneck)))] += values[p.Default]
		}
	}
	for i := len(t.boxes) - 1; i > 0; i-- {
		at := t.boxes[i].parent
		t.count(at, t.sums[i*t.types:][:t.types])
		for l := range t.limits.list {
			if w := t.weights[uint64(i)<<32|uint64(l)]; w > 0 {
				t.weights[uint64(at)<<32|uint64(l)] += w
			}
		}
	}
	return left
}

func (t *flameTree) count(at int32, values []float64) {
	sums := t.sums[int(at)*t.types:][:t.types]
	for i, v := range values {
		sums[i] += v
	}
}

// settle sorts the boxes above each other by name.
func (t *flameTree) settle() {
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
	for l := range t.limits.list {
		if w := t.weights[uint64(box)<<32|uint64(l)]; w > most {
			best, most = int32(l), w
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
