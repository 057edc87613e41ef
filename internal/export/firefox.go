package export

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// firefoxVersion is the version of the processed format that is written. The viewer
// upgrades older versions and refuses newer ones, see
// https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md.
const firefoxVersion = 66

// The categories of frames. The viewer needs a grey one.
const (
	firefoxUser   = 1
	firefoxKernel = 2
)

// Firefox writes a profile for the Firefox Profiler, in its processed format. A type is a
// process there, and the threads are that process's. Stacks with the same frames are one
// sample. Samples have no order of time. So one's place on the axis of time is the sum of the
// amounts before it: the whole is as long as the recording. Subcategories are the bottlenecks.
// Values that are not known are left out.
func Firefox(w io.Writer, p *Profile) (Omission, error) {
	f := &firefox{out: &jsonStream{w: bufio.NewWriterSize(w, 1<<16)}, branches: map[firefoxStack]int32{},
		frames: map[firefoxFrame]int32{}, funcs: map[firefoxFunc]int32{}, empty: []*Frame{{}}}
	f.limits.of("Other") // the viewer wants it first
	f.out.text(`{"libs":[],"threads":[`)
	for i := range p.Types {
		f.process(p, i)
	}
	f.out.text("],\n\"shared\":{")
	f.shared()
	f.out.text("},\n\"meta\":")
	f.meta(p)
	f.out.text("}\n")
	return f.left, f.out.flush()
}

// firefox has what threads share: tables that name each other's rows.
type firefox struct {
	out     *jsonStream
	left    Omission
	threads int
	chosen  []int // the threads of the type that is shown first

	stacks   [][]int32              // the frames of stacks in blocks, those of branches below zero
	height   int32                  // the number of stacks
	branches map[firefoxStack]int32 // the stacks that do not follow that of their callers
	parents  []int32                // of branches
	path     []int32                // the stacks of the stack at hand and of its callers
	known    int                    // how many of them the next stack has as well
	empty    []*Frame               // the frame of stacks without one
	frames   map[firefoxFrame]int32 // those with a bottleneck
	rows     []firefoxRow
	funcs    map[firefoxFunc]int32
	table    []firefoxFunc
	limits   numbers[string] // subcategories
	texts    numbers[string]
	modules  numbers[string]
	files    numbers[string]
}

// firefoxBlock is the number of stacks in a block. Blocks are not copied when the table grows.
const firefoxBlock = 1 << 14

// A firefoxStack is a frame and the stack of its callers, -1 for none.
type firefoxStack struct{ parent, frame int32 }

// A firefoxFrame is a frame with the bottleneck of the place, of innermost frames.
type firefoxFrame struct {
	frame *Frame
	limit int32
}

// A firefoxRow is a row of the table of frames.
type firefoxRow struct{ function, category, limit, line int32 }

// A firefoxFunc is a function by the rows of its texts, -1 for none.
type firefoxFunc struct{ name, module, file int32 }

// A firefoxThread has the samples of a thread for one type.
type firefoxThread struct {
	name    string
	stacks  []int32
	weights []float64
	whole   float64          // of the absolute values
	parts   []*firefoxThread // whose samples it shows: itself, or all
}

// process writes the threads of a type, the one with most first.
func (f *firefox) process(p *Profile, typ int) {
	t := p.Types[typ]
	weightType, scale := firefoxWeight(t.Unit)
	threads, total := f.collect(p, typ)
	length := 1000.0 // milliseconds
	if p.Duration > 0 && !math.IsInf(p.Duration, 0) {
		length *= p.Duration
	}
	name := clean(t.Name)
	if weightType == "samples" && t.Unit != "" {
		name += " (" + clean(t.Unit) + ")"
	}
	for i, x := range threads {
		if f.threads > 0 {
			f.out.text(",")
		}
		if typ == p.Default {
			f.chosen = append(f.chosen, f.threads)
		}
		f.out.text("\n{\"processType\":\"default\",\"processName\":").value(name).text(`,"name":`).value(x.name).
			text(`,"pid":`).value(strconv.Itoa(typ + 1)).text(`,"tid":`).value(f.threads + 1).
			text(`,"isMainThread":`).value(i == 0).text(`,"processStartupTime":0,"processShutdownTime":null,"registerTime":0,"unregisterTime":null,"pausedRanges":[],`).
			text(`"markers":{"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[],"length":0},"samples":{"weightType":`).
			value(weightType).text(`,"length":`).value(x.samples()).text(`,"stack":[`)
		f.list(x, func(t *firefoxThread, i int) { f.out.integer(t.stacks[i]) })
		f.out.text(`],"weight":[`)
		f.list(x, func(t *firefoxThread, i int) { f.out.float(t.weights[i] * scale) })
		f.out.text(`],"time":[`)
		at := 0.0
		f.list(x, func(t *firefoxThread, i int) {
			f.out.float(math.Round(at*length*1e6) / 1e6)
			at += math.Abs(t.weights[i]) / total
		})
		f.out.text("]}}")
		f.threads++
	}
}

// samples is the number of samples that a thread shows.
func (t *firefoxThread) samples() (n int) {
	for _, part := range t.parts {
		n += len(part.stacks)
	}
	return n
}

// list writes a number for each sample that a thread shows.
func (f *firefox) list(t *firefoxThread, write func(of *firefoxThread, sample int)) {
	for k, part := range t.parts {
		for i := range part.stacks {
			if k+i > 0 {
				f.out.text(",")
			}
			write(part, i)
		}
	}
}

// firefoxWeight is what the viewer calls values of a unit, and their factor. It has three
// kinds: times, sizes, and counts.
func firefoxWeight(unit string) (string, float64) {
	switch unit {
	case "nanoseconds":
		return "tracing-ms", 1e-6
	case "bytes":
		return unit, 1
	}
	return "samples", 1
}

// allThreads is the name of the thread with the samples of all: the viewer can show several
// threads as one, but without their weights.
const allThreads = "all threads"

// collect returns the threads that have values of a type, and the sum of all. If there are
// several, the first has the samples of all.
func (f *firefox) collect(p *Profile, typ int) ([]*firefoxThread, float64) {
	var list []*firefoxThread
	byName := map[string]*firefoxThread{}
	total := 0.0
	f.known = 0
	for s := range p.Stacks {
		v := s.Values[typ]
		f.known = min(f.known, s.Same)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			f.left.Unknown++
		}
		if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
			continue
		}
		t := byName[s.Thread]
		if t == nil {
			t = &firefoxThread{name: cmp.Or(clean(s.Thread), allThreads)}
			t.parts = []*firefoxThread{t}
			byName[s.Thread] = t
			list = append(list, t)
		}
		t.stacks, t.weights = append(t.stacks, f.stack(s)), append(t.weights, v)
		t.whole += math.Abs(v)
		total += math.Abs(v)
	}
	sorting.Stable(list, func(a, b *firefoxThread) int { return cmp.Compare(b.whole, a.whole) })
	if len(list) > 1 {
		list = append([]*firefoxThread{{name: allThreads, parts: list}}, list...)
	}
	return list, total
}

// stack returns the row of a stack.
func (f *firefox) stack(s *Stack) int32 {
	frames := s.Frames
	if len(frames) == 0 {
		frames = f.empty
	}
	last := len(frames) - 1 // its row depends on the bottleneck
	f.path = f.path[:min(f.known, last)]
	at := int32(-1)
	if n := len(f.path); n > 0 {
		at = f.path[n-1]
	}
	for _, x := range frames[len(f.path):] {
		limit := int32(0)
		if len(f.path) == last && s.Bottleneck != "" {
			limit = f.limits.of(clean(s.Bottleneck))
		}
		at = f.node(firefoxStack{at, f.frame(firefoxFrame{x, limit})})
		f.path = append(f.path, at)
	}
	f.known = last
	return at
}

// node returns the row of a frame below its callers.
func (f *firefox) node(key firefoxStack) int32 {
	next, frame := key.parent+1, key.frame
	if next < f.height {
		if f.stackFrame(next) == frame {
			return next
		}
		if i, ok := f.branches[key]; ok {
			return i
		}
		f.branches[key] = f.height
		f.parents = append(f.parents, key.parent)
		frame = ^frame
	}
	if f.height%firefoxBlock == 0 {
		f.stacks = append(f.stacks, make([]int32, firefoxBlock))
	}
	f.stacks[f.height/firefoxBlock][f.height%firefoxBlock] = frame
	f.height++
	return f.height - 1
}

// stackFrame is the frame of a stack, below zero if that is a branch.
func (f *firefox) stackFrame(row int32) int32 { return f.stacks[row/firefoxBlock][row%firefoxBlock] }

// frame returns the row of a frame.
func (f *firefox) frame(key firefoxFrame) int32 {
	if key.limit == 0 && key.frame.stream == f.out {
		return key.frame.number
	}
	n, ok := f.frames[key]
	if ok {
		return n
	}
	fn := firefoxFunc{f.texts.of(key.frame.label()), -1, -1}
	if m := key.frame.Module; m != "" {
		fn.module = f.modules.of(clean(m))
	}
	if file := key.frame.File; file != "" {
		fn.file = f.files.of(clean(file))
	}
	function, ok := f.funcs[fn]
	if !ok {
		function = int32(len(f.table))
		f.funcs[fn] = function
		f.table = append(f.table, fn)
	}
	row := firefoxRow{function, firefoxUser, key.limit, -1}
	if key.frame.Kernel {
		row.category = firefoxKernel
	}
	if l := key.frame.Line; l > 0 && l <= math.MaxInt32 {
		row.line = int32(l)
	}
	n = int32(len(f.rows))
	if key.limit == 0 {
		key.frame.stream, key.frame.number = f.out, n
	} else {
		f.frames[key] = n
	}
	f.rows = append(f.rows, row)
	return n
}

// shared writes the tables.
func (f *firefox) shared() {
	for _, n := range []*numbers[string]{&f.modules, &f.files} {
		for _, s := range n.list {
			f.texts.of(s)
		}
	}
	branch := 0
	f.columns("stackTable", int(f.height), []firefoxColumn{
		{"frame", func(i int) int32 { return max(f.stackFrame(int32(i)), ^f.stackFrame(int32(i))) }, ""},
		{"prefixOffset", func(i int) int32 { // how far back the callers are, 0 for none
			parent := int32(i) - 1
			if f.stackFrame(int32(i)) < 0 {
				parent = f.parents[branch]
				branch++
			}
			if parent < 0 {
				return 0
			}
			return int32(i) - parent
		}, ""}})
	f.out.text(",\n")
	f.columns("frameTable", len(f.rows), []firefoxColumn{
		{"func", func(i int) int32 { return f.rows[i].function }, ""},
		{"category", func(i int) int32 { return f.rows[i].category }, ""},
		{"subcategory", func(i int) int32 { return f.rows[i].limit }, ""},
		{"line", func(i int) int32 { return f.rows[i].line }, "null"},
		{"address", none, "-1"}, {"inlineDepth", none, "0"}, {"column", none, "null"}, {"nativeSymbol", none, "null"},
		{"innerWindowID", none, "null"}, {"originalLocation", none, "null"}})
	f.out.text(",\n")
	f.columns("funcTable", len(f.table), []firefoxColumn{
		{"name", func(i int) int32 { return f.table[i].name }, ""},
		{"resource", func(i int) int32 { return f.table[i].module }, "-1"},
		{"source", func(i int) int32 { return f.table[i].file }, "null"},
		{"isJS", none, "false"}, {"relevantForJS", none, "false"},
		{"lineNumber", none, "null"}, {"columnNumber", none, "null"}, {"originalLocation", none, "null"}})
	f.out.text(",\n")
	const library = "1" // the type
	f.columns("resourceTable", len(f.modules.list), []firefoxColumn{
		{"name", func(i int) int32 { return f.texts.of(f.modules.list[i]) }, ""},
		{"lib", none, "null"}, {"host", none, "null"}, {"type", none, library}})
	f.out.text(",\n")
	f.columns("sources", len(f.files.list), []firefoxColumn{
		{"filename", func(i int) int32 { return f.texts.of(f.files.list[i]) }, ""},
		{"id", none, "null"}, {"startLine", none, "1"}, {"startColumn", none, "1"}, {"sourceMapURL", none, "null"}, {"content", none, "null"}})
	f.out.text(",\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\n").
		text("\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\n\"stringArray\":[")
	for i, s := range f.texts.list {
		if i > 0 {
			f.out.text(",\n")
		}
		f.out.value(s)
	}
	f.out.text("]")
}

// A firefoxColumn is a column of a table: numbers, and what stands for those below zero.
type firefoxColumn struct {
	name string
	at   func(row int) int32
	none string
}

// none is the column of what is not known of any row.
func none(int) int32 { return -1 }

// columns writes a table.
func (f *firefox) columns(name string, rows int, list []firefoxColumn) {
	f.out.text(`"` + name + `":{"length":` + strconv.Itoa(rows))
	for _, c := range list {
		f.out.text(`,"` + c.name + `":[`)
		for i := range rows {
			if i > 0 {
				f.out.text(",")
			}
			if v := c.at(i); v >= 0 {
				f.out.integer(v)
			} else {
				f.out.text(c.none)
			}
		}
		f.out.text("]")
	}
	f.out.text("}")
}

// firefoxMeta says what the profile is, how it is to be shown, and has the notes.
type firefoxMeta struct {
	Interval         int               `json:"interval"`
	StartTime        int               `json:"startTime"`
	ProcessType      int               `json:"processType"`
	Product          string            `json:"product"`
	Stackwalk        int               `json:"stackwalk"`
	Version          int               `json:"version"` // of another format; the viewer ignores it
	Format           int               `json:"preprocessedProfileVersion"`
	ImportedFrom     string            `json:"importedFrom"`
	Symbolicated     bool              `json:"symbolicated"`
	NoSymbols        bool              `json:"symbolicationNotSupported"`
	OneStackType     bool              `json:"usesOnlyOneStackType"`
	NotOnSearchfox   bool              `json:"sourceCodeIsNotOnSearchfox"`
	KeepOrder        bool              `json:"keepProfileThreadOrder"`
	InitiallyVisible []int             `json:"initialVisibleThreads,omitempty"`
	InitiallyChosen  []int             `json:"initialSelectedThreads,omitempty"`
	MarkerSchema     []struct{}        `json:"markerSchema"`
	Categories       []firefoxCategory `json:"categories"`
	Extra            []firefoxExtra    `json:"extra,omitempty"`
}

type firefoxCategory struct {
	Name          string   `json:"name"`
	Color         string   `json:"color"`
	Subcategories []string `json:"subcategories"`
}

type firefoxExtra struct {
	Label   string         `json:"label"`
	Entries []firefoxEntry `json:"entries"`
}

type firefoxEntry struct {
	Label  string `json:"label"`
	Format string `json:"format"`
	Value  string `json:"value"`
}

// meta writes the description.
func (f *firefox) meta(p *Profile) {
	m := firefoxMeta{Interval: 1, Product: clean(p.Title), Stackwalk: 1, Version: 30, Format: firefoxVersion, ImportedFrom: "cyclestack",
		Symbolicated: true, NoSymbols: true, OneStackType: true, NotOnSearchfox: true, KeepOrder: true,
		InitiallyVisible: f.chosen, InitiallyChosen: f.chosen[:min(1, len(f.chosen))], MarkerSchema: []struct{}{},
		Categories: []firefoxCategory{{"Other", "grey", f.limits.list[:1]}, firefoxUser: {"User", "yellow", f.limits.list}, firefoxKernel: {"Kernel", "orange", f.limits.list}}}
	var notes []firefoxEntry
	for i, n := range cleanAll(append(slices.Clone(p.Notes), f.left.Notes()...)) {
		notes = append(notes, firefoxEntry{strconv.Itoa(i + 1), "string", n})
	}
	if len(notes) > 0 {
		m.Extra = []firefoxExtra{{"Notes", notes}}
	}
	f.out.value(m)
}
