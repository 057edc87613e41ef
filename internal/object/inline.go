package object

import (
	"debug/dwarf"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// An inlineTree has the functions of a unit with the calls inlined into them.
type inlineTree struct {
	nodes  []inlineNode
	pieces []piece     // by address: the innermost node; see symbolTable.pieces
	files  []string    // that call sites refer to by number; nil: not read
	data   *dwarf.Data // what the nodes are of
}

// An inlineNode is a function, or a call that was inlined.
type inlineNode struct {
	parent   int32        // the node around it, or -1 for a function
	origin   dwarf.Offset // of the entry that has the name
	callFile int32        // into files, if there is such a one
	callLine int32
}

const inlineNodeSize, pieceSize = 16, 16

func (t *inlineTree) size() int {
	if t == nil {
		return 0
	}
	return len(t.nodes)*inlineNodeSize + len(t.pieces)*pieceSize
}

// maxDepth bounds the nesting of inlined calls. Compilers stop far before.
const maxDepth = 512

// inlinesOf returns the inline tree of a unit.
func (o *Object) inlinesOf(u *unit) *inlineTree {
	d := o.dwarf
	if u.inlines == nil {
		u.inlines = &inlineTree{}
		err := distrust("the functions", func() error { return o.readInlines(u) })
		if err != nil {
			o.note("%s: the unit at %#x: %v", o.debugSource().path, u.position, err)
		}
		d.use(u, u.inlines.size())
	} else {
		d.use(u, 0)
	}
	return u.inlines
}

// A nodeRange is the addresses of a node.
type nodeRange struct {
	span
	node, depth int32
}

// readInlines reads the functions of a unit and the calls inlined into them.
func (o *Object) readInlines(u *unit) error {
	d := o.dwarf
	w := inlineWalk{object: o, tree: u.inlines, end: u.end, ranges: d.data.Ranges, found: d.found[:0]}
	w.tree.data, w.tree.nodes, w.tree.pieces = d.data, d.nodes[:0], d.pieces[:0]
	defer func() {
		t := w.tree
		d.found, d.nodes, d.pieces = w.found, t.nodes, t.pieces
		t.nodes, t.pieces = slices.Clone(t.nodes), slices.Clone(t.pieces)
	}()
	if s := o.splitOf(u); s != nil {
		r := s.data.Reader()
		r.Seek(s.first)
		w.reader, w.end, w.ranges, u.inlines.data = r, s.end, s.entryRanges, s.data
	} else if s := o.skimmer(u); s != nil {
		w.reader, w.ranges = s, s.unit.entryRanges
	} else {
		r := d.data.Reader()
		r.Seek(u.position)
		w.reader = r
	}
	if e, err := w.reader.Next(); err != nil || e == nil || !e.Children { // the unit itself
		return err
	}
	err := w.walk()
	w.tree.cut(w.found)
	return err
}

// An inlineWalk goes through the entries of a unit.
type inlineWalk struct {
	object *Object
	tree   *inlineTree
	reader entryReader
	end    dwarf.Offset
	ranges func(*dwarf.Entry) ([][2]uint64, error)
	found  []nodeRange
	// around has, for each entry that is open, the node that it belongs to or -1.
	around []int32
	depth  []int32 // of those nodes
}

// callFile returns the name of a file that call sites refer to by number; "" if there is none.
func (o *Object) callFile(u *unit, number int32) string {
	t := u.inlines
	if t.files == nil && !o.options.NoLines {
		t.files = []string{}
		if r, err := o.dwarf.data.LineReader(u.entry); err == nil && r != nil {
			for _, f := range r.Files() {
				name := ""
				if f != nil {
					name = u.source(f.Name)
				}
				t.files = append(t.files, name)
			}
		}
	}
	if number < 0 || int(number) >= len(t.files) {
		return ""
	}
	return t.files[number]
}

// walk reads entries up to the end of the unit.
func (w *inlineWalk) walk() error {
	for {
		e, err := w.reader.Next()
		if err != nil || e == nil || e.Offset >= w.end {
			return err
		}
		if e.Tag == 0 { // the end of a list of children
			if len(w.around) == 0 {
				return nil
			}
			w.around, w.depth = w.around[:len(w.around)-1], w.depth[:len(w.depth)-1]
			continue
		}
		node, depth := w.current()
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			node, depth = w.enter(e, node, depth)
			if node < 0 && e.Children {
				w.reader.SkipChildren()
				continue
			}
		case dwarf.TagLexDwarfBlock, dwarf.TagNamespace, dwarf.TagModule, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType:
		default:
			if e.Children {
				w.reader.SkipChildren()
			}
			continue
		}
		if e.Children {
			w.around, w.depth = append(w.around, node), append(w.depth, depth)
		}
	}
}

func (w *inlineWalk) current() (node, depth int32) {
	if n := len(w.around); n > 0 {
		return w.around[n-1], w.depth[n-1]
	}
	return -1, 0
}

// enter adds a function or an inlined call with code, and returns its node, or -1 without code.
func (w *inlineWalk) enter(e *dwarf.Entry, parent, depth int32) (int32, int32) {
	if e.Tag == dwarf.TagSubprogram {
		parent, depth = -1, 0
	} else if parent < 0 || depth >= maxDepth {
		return -1, 0
	}
	ranges, err := w.ranges(e)
	if err != nil || len(ranges) == 0 || e.Tag == dwarf.TagSubprogram && !w.object.isCode(ranges[0][0]) {
		return -1, 0
	}
	node := int32(len(w.tree.nodes))
	n := inlineNode{parent: parent, origin: e.Offset, callFile: -1}
	if at, shared, ok := w.object.reference(e, dwarf.AttrAbstractOrigin); ok && !shared && e.Tag == dwarf.TagInlinedSubroutine {
		n.origin = at // it has no name of its own
	}
	if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok && file >= 0 && file < 1<<31 {
		n.callFile = int32(file)
	}
	if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok && line > 0 && line < 1<<31 {
		n.callLine = int32(line)
	}
	w.tree.nodes = append(w.tree.nodes, n)
	for _, r := range ranges {
		if r[0] < r[1] {
			w.found = append(w.found, nodeRange{span{r[0], r[1]}, node, depth})
		}
	}
	return node, depth + 1
}

// cut makes pieces of the ranges: for each address, the deepest node.
func (t *inlineTree) cut(ranges []nodeRange) {
	ranges = sorting.Merged(ranges, func(a, b *nodeRange) bool { return a.low < b.low || a.low == b.low && a.depth < b.depth })
	var open []nodeRange
	add := func(addr uint64, node int32) {
		if n := len(t.pieces); n > 0 && t.pieces[n-1].addr == addr {
			t.pieces[n-1].entry = node
		} else {
			t.pieces = append(t.pieces, piece{addr, node})
		}
	}
	closeUntil := func(addr uint64) {
		for len(open) > 0 && open[len(open)-1].high <= addr {
			end := open[len(open)-1].high
			for len(open) > 0 && open[len(open)-1].high <= end {
				open = open[:len(open)-1]
			}
			node := int32(-1)
			if len(open) > 0 {
				node = open[len(open)-1].node
			}
			add(end, node)
		}
	}
	for _, r := range ranges {
		closeUntil(r.low)
		add(r.low, r.node)
		open = append(open, r)
	}
	closeUntil(^uint64(0))
}

func (t *inlineTree) lookup(addr uint64) int32 {
	i := sort.Search(len(t.pieces), func(i int) bool { return t.pieces[i].addr > addr }) - 1
	if i < 0 {
		return -1
	}
	return t.pieces[i].entry
}

// Frames returns the functions and lines of an address, the innermost first:
// inlined calls and, last, the function whose code it is. Where there is no
// debug information it is one frame with the symbol, or none.
func (o *Object) Frames(addr uint64) []Frame {
	kind := framesKept
	if o.options.NoLines {
		kind = namesKept
	}
	text := o.known(kind, addr, func() (text string) {
		for _, f := range o.frames(addr) {
			text += f.Func + "\x00" + f.File + "\x00" + strconv.Itoa(f.Line<<1|truth(f.Inlined)) + "\x00"
		}
		return text
	})
	var list []Frame
	for parts := strings.Split(text, "\x00"); len(parts) > 3; parts = parts[3:] {
		n, _ := strconv.Atoi(parts[2])
		list = append(list, Frame{parts[0], parts[1], n >> 1, n&1 != 0})
	}
	return list
}

// Innermost returns the name of the function that is inlined innermost at an address; "" if
// none is. It is Frames without the cost of lines.
func (o *Object) Innermost(addr uint64) (name string) {
	name, n := o.Inline(addr)
	if n > 0 {
		return o.InlineName(n)
	}
	return name
}

// InlineName returns the name of a number that Inline returned.
func (o *Object) InlineName(number int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, _ := o.indexes[inlineKept].kept.name(number)
	return name
}

// Inline is Innermost without the cost of a text: it returns a number instead of the name if
// it has one, else 0. A function has one number.
func (o *Object) Inline(addr uint64) (name string, number int) {
	name, number, _ = o.inline(addr)
	return name, number
}

// Inlined reports whether the code at an address is of an inlined call.
func (o *Object) Inlined(addr uint64) bool {
	_, _, is := o.inline(addr)
	return is
}

// inline is Inline and Inlined: calls without a name are inlined too.
func (o *Object) inline(addr uint64) (name string, number int, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.index(inlineKept)
	if x != nil {
		switch n := x.kept.lookup(addr); n {
		case indexUnknown:
		case indexNone:
			return "", 0, false
		default:
			return "", n, true
		}
	}
	err := protect(func() error {
		u := o.debugInfo().unitAt(addr)
		if u != nil {
			t := o.inlinesOf(u)
			if n := t.lookup(addr); n >= 0 && t.nodes[n].parent >= 0 {
				name, is = o.functionName(t.data, t.nodes[n].origin), true
			}
		}
		if x != nil {
			x.add(o, addr, u)
		}
		return nil
	})
	if err != nil {
		return "", 0, false
	}
	return name, 0, is
}

func (o *Object) frames(addr uint64) []Frame {
	file, line, _ := o.line(addr)
	frames := []Frame{}
	if u := o.debugInfo().unitAt(addr); u != nil {
		t := o.inlinesOf(u)
		for n := t.lookup(addr); n >= 0; n = t.nodes[n].parent {
			node := t.nodes[n]
			frames = append(frames, Frame{Func: o.functionName(t.data, node.origin), File: file, Line: line, Inlined: node.parent >= 0})
			file, line = o.callFile(u, node.callFile), int(node.callLine)
		}
	}
	return o.outermost(frames, addr, file, line)
}

// outermost names the last frame by the symbol table, so that a function has one name in
// all frames. Without debug information it makes the frame.
func (o *Object) outermost(frames []Frame, addr uint64, file string, line int) []Frame {
	t := o.functions()
	i := t.lookup(addr)
	if len(frames) == 0 {
		if i < 0 && file == "" {
			return nil
		}
		frames = append(frames, Frame{File: file, Line: line})
	}
	if i >= 0 {
		frames[len(frames)-1].Func = t.symbol(i).Name
	}
	return frames
}

// maxOrigins bounds the entries that are followed to the name of a function.
const maxOrigins = 8

// maxNames bounds the names that are remembered.
const maxNames = 1 << 18

// functionName returns the name of a function: its symbol if the debug
// information has it, otherwise its plain name.
func (o *Object) functionName(data *dwarf.Data, at dwarf.Offset) (name string) {
	d, key := o.dwarf, entryKey{data, at}
	if name, ok := d.names[key]; ok {
		return name
	}
	err := distrust("a function's name", func() error {
		name = o.findName(data, at)
		return nil
	})
	if err != nil {
		o.note("%v", err)
	}
	if len(d.names) >= maxNames {
		clear(d.names)
	}
	d.names[key] = name
	return name
}

// attrMIPSLinkageName is what compilers wrote before DWARF 4.
const attrMIPSLinkageName = dwarf.Attr(0x2007)

// findName follows a function's entry to its origin and its declaration, up to a symbol.
func (o *Object) findName(data *dwarf.Data, at dwarf.Offset) string {
	plain, own := "", true
	for range maxOrigins {
		r := data.Reader()
		r.Seek(at)
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		for _, a := range []dwarf.Attr{dwarf.AttrLinkageName, attrMIPSLinkageName} {
			if name, ok := o.text(e, a, own); ok {
				return name
			}
		}
		if name, ok := o.text(e, dwarf.AttrName, own); ok && plain == "" {
			plain = name
		}
		next, shared, ok := o.reference(e, dwarf.AttrAbstractOrigin)
		if !ok {
			next, shared, ok = o.reference(e, dwarf.AttrSpecification)
		}
		if !ok {
			break
		}
		if at = next; shared {
			alt := o.alt()
			if alt == nil || !own {
				break
			}
			data, own = alt.data, false
		}
	}
	return plain
}
