package samples

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Frame is one level of a stack: a function, or one that was inlined into it.
// Options.By says what frames are: modules, functions, or the lines or instructions of
// the calls. There is one value for each frame, and frames may be compared by address.
type Frame struct {
	Kind     FrameKind
	Function string // demangled; "" if it is not known. Of a ThreadFrame the thread's name
	Module   string // "" for code that is in no file
	BuildID  string // of the module, hexadecimal
	File     string // of the source, "" if it is not known
	Line     int    // with counts.Line and counts.Instruction; 0 if it is not known
	Addr     uint64 // in the module: with counts.Instruction of the call, else of the function
	Kernel   bool   // the kernel's code
	Inlined  bool   // its code is part of the next outer frame's
}

// A FrameKind says what a frame is.
type FrameKind uint8

// The kinds of frames.
const (
	FunctionFrame  FrameKind = iota
	ModuleFrame              // the module that the next inner frame is in, where there are no callchains
	ThreadFrame              // the outermost: the name of the thread
	TruncatedFrame           // in place of callers that were not recorded
	OthersFrame              // stacks that there was no room for
)

// A Stack is the calls that were open when samples were taken, with what they
// counted. It is valid until the next one is asked for.
type Stack struct {
	Thread string        // name of the thread
	Frames []*Frame      // the outermost first, without the thread's
	Place  int           // row of the table, of the place that the samples were taken at; 0 for OthersFrame
	Cells  []counts.Cell // by column of the table
}

// Stacks are the counts of a recording's samples by stack: the recorded callchains, with
// the calls that were inlined. Without callchains the stack is the module and the
// function.
//
// The file is read twice, first for what was mapped when, so that samples need not
// wait. Memory grows with the number of different stacks.
//
// The innermost frame is where the sample says that it was taken, and for precise
// events the instruction that caused them; the frames around it are those of the
// interrupt. User stacks that were recorded for unwinding (perf record --call-graph
// dwarf) are not unwound: such samples have the kernel's part of the callchain, and
// where they were taken.
type Stacks struct {
	r *Reader

	keep    *selection      // as the reader's, for another goroutine
	spaces  *profile.Spaces // likewise
	clock   *feed           // for the times of records
	meter   *perfdata.Meter
	columns int // 0 before the first sample

	tree     stackTree
	rows     []stackRow
	sums     []perfdata.Sum // by row and column
	frames   map[frameKey]int32
	list     []*Frame
	expanded map[profile.Place][]int32

	chain []link // of the sample
	words []uint64
	path  []int32

	chains    bool
	others    int32 // row of the stacks that there was no room for; -1 for none
	truncated int64 // samples whose callchains were as long as can be
	unwound   int64 // samples whose user stacks would have to be unwound
	deferred  int64 // samples whose user callchains were to come later
}

type stackRow struct {
	node  int32
	place profile.Place // of the first sample
	row   int           // of the table
}

// A frameKey identifies a frame.
type frameKey struct {
	kind    FrameKind
	file    *profile.File
	name    string
	source  string
	line    int
	addr    uint64
	inlined bool
}

// A link is an address of a callchain.
type link struct {
	addr  uint64
	mode  profile.Mode
	exact bool // the instruction itself, and not where a call returns to
}

// Limits of what a file can make Stacks remember.
const (
	maxStackNodes = 1 << 20
	maxStackCells = 1 << 21
	maxExpanded   = 1 << 19 // places
	// defaultMaxStack is the length of callchains where the event does not say it:
	// the kernel's PERF_MAX_STACK_DEPTH.
	defaultMaxStack = 127
	// branchCallStack is the kernel's PERF_SAMPLE_BRANCH_CALL_STACK: the branch stack
	// is the calls that are open.
	branchCallStack uint64 = 1 << 11
)

// ReadStacks reads the stacks of the recording that src holds, a perf.data file. The
// name is for messages. Of the options By says what frames are split by; Within is not
// for stacks. The stacks must be closed.
func ReadStacks(src io.ReadSeeker, name string, opts Options) (*Stacks, error) {
	opts.Within = 0
	r := NewReader(src, name, opts)
	s := &Stacks{r: r, others: -1, keep: newSelection(&r.opts.Filter),
		frames: map[frameKey]int32{}, expanded: map[profile.Place][]int32{}, tree: stackTree{index: map[uint64]int32{}}}
	if err := s.read(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close gives up the files with symbols.
func (s *Stacks) Close() error { return s.r.Close() }

// read reads the file, first for its events and then for its samples.
func (s *Stacks) read() error {
	r := s.r
	if err := r.pass(eventsOnly); err != nil {
		return err
	}
	if err := r.open(samplesOnly); err != nil {
		return err
	}
	defer r.in.Close()
	s.spaces, s.clock, s.meter = r.order.spaces.Copy(), &feed{in: r.in}, perfdata.NewMeter(r.in)
	for r.in.Next() {
		r.feed.number++
		s.clock.number++
		if rec, ok := r.in.Record().(*perfdata.Sample); ok {
			r.sample(rec)
			s.sample(rec)
		}
	}
	r.feed.close()
	r.order.end()
	if err := s.ended(); err != nil {
		return err
	}
	if err := r.found(); err != nil {
		return err
	}
	for i := range s.rows {
		if int32(i) != s.others { // which are of many places
			s.rows[i].row = 1 + int(r.places.look(s.rows[i].place))
		}
	}
	r.fill()
	return nil
}

// ended says how the reading ended: damage behind some samples is among the notes.
func (s *Stacks) ended() error {
	in, r := s.r.in, s.r
	var bad *perfdata.Error
	if err := in.Err(); err != nil && (!errors.As(err, &bad) || !r.begun) {
		return err
	}
	switch {
	case r.begun:
		return nil
	case in.Stats().Records[perffile.RecordStat] > 0:
		return fmt.Errorf("%s: it holds counts of perf stat, and no samples", r.name)
	}
	return in.Empty()
}

// Table returns the table of the places that samples were taken at, as [Reader] has it.
func (s *Stacks) Table() *counts.Table { return s.r.Table() }

// Kind says what the stacks come from.
func (s *Stacks) Kind() string { return s.r.Kind() }

// Callchains reports whether callchains were recorded.
func (s *Stacks) Callchains() bool { return s.chains }

// Len returns how many stacks there are.
func (s *Stacks) Len() int { return len(s.rows) }

// All yields the stacks: those that begin alike one after the other.
func (s *Stacks) All() iter.Seq[*Stack] {
	return func(yield func(*Stack) bool) {
		out := &Stack{Cells: make([]counts.Cell, s.columns)}
		for _, i := range s.tree.rows() {
			row := s.rows[i]
			path := s.tree.path(row.node)
			out.Thread, out.Frames, out.Place = s.list[path[0]].Function, out.Frames[:0], row.row
			for _, f := range path[1:] {
				out.Frames = append(out.Frames, s.list[f])
			}
			for col, e := range s.r.columns {
				out.Cells[col] = counts.Cell{}
				if s.meter.Known(e) {
					out.Cells[col] = s.sums[int(i)*s.columns+col].Cell(e)
				}
			}
			if !yield(out) {
				return
			}
		}
	}
}

// begin looks at what was recorded, at the first sample.
func (s *Stacks) begin(rec *perfdata.Sample) {
	s.columns = len(s.r.columns)
	for _, e := range s.r.columns {
		s.chains = s.chains || e.SampleType&perffile.SampleCallchain != 0
	}
	if s.keep != nil {
		s.keep.begin(s.r.in, rec.Time())
	}
}

// sample adds a sample to its stack.
func (s *Stacks) sample(rec *perfdata.Sample) {
	if s.columns == 0 {
		s.begin(rec)
	}
	amounts := s.meter.Of(rec)
	if len(amounts) == 0 {
		return
	}
	time := s.clock.now(rec.Time())
	at := s.spaces.Find(time, rec.PID(), rec.IP(), profile.Mode(rec.Mode()))
	if s.keep != nil && !s.counts(rec, time, at) {
		return
	}
	row := int32(-1)
	for i := range amounts {
		e := amounts[i].Event
		if e.Index >= len(s.r.column) || s.r.column[e.Index] < 0 {
			continue
		}
		if row < 0 {
			row = s.row(rec, time, at)
		}
		s.sums[int(row)*s.columns+int(s.r.column[e.Index])].Add(&amounts[i])
	}
}

// counts reports whether a filter lets a sample through.
func (s *Stacks) counts(rec *perfdata.Sample, time uint64, at profile.Place) bool {
	if !s.keep.record(s.r.in, rec) {
		return false
	}
	if s.keep.named() {
		x := s.r.contexts.of(rec)
		if !s.keep.names(s.r.order.spaces, time, x, s.r.order.cgroup(x.cgroup)) {
			return false
		}
	}
	return !s.keep.code() || s.keep.place(at, s.r.symbols)
}

// row returns the row of a sample's stack.
func (s *Stacks) row(rec *perfdata.Sample, time uint64, at profile.Place) int32 {
	s.path = append(s.path[:0], s.thread(rec, time))
	s.links(rec)
	if s.chains {
		for i := len(s.chain) - 1; i > 0; i-- {
			s.call(s.chain[i], rec.PID(), time)
		}
	} else {
		s.path = append(s.path, s.frame(frameKey{kind: ModuleFrame, file: at.File}))
	}
	s.extend(at)
	node := s.tree.find(s.path)
	if node < 0 {
		return s.otherRow(at)
	}
	if row := s.tree.nodes[node].row; row > 0 {
		return row - 1
	}
	if (len(s.rows)+2)*s.columns > maxStackCells {
		return s.otherRow(at)
	}
	s.tree.nodes[node].row = s.add(node, at) + 1
	return s.tree.nodes[node].row - 1
}

func (s *Stacks) add(node int32, at profile.Place) int32 {
	s.rows = append(s.rows, stackRow{node: node, place: at})
	s.sums = append(s.sums, make([]perfdata.Sum, s.columns)...)
	return int32(len(s.rows) - 1)
}

// otherRow returns the row of stacks that there is no room for.
func (s *Stacks) otherRow(at profile.Place) int32 {
	if s.others < 0 {
		others := s.frame(frameKey{kind: OthersFrame})
		node := s.tree.force(s.tree.force(0, others), others)
		s.others = s.add(node, at)
		s.tree.nodes[node].row = s.others + 1
	}
	return s.others
}

// thread returns the frame of a sample's thread.
func (s *Stacks) thread(rec *perfdata.Sample, time uint64) int32 {
	name := s.r.order.spaces.Comm(time, rec.TID())
	if name == "" {
		name = fmt.Sprintf(":%d", rec.TID())
	}
	return s.frame(frameKey{kind: ThreadFrame, name: name})
}

// links fills in the addresses of a sample's callchain, the innermost first, which is
// that of the sample.
func (s *Stacks) links(rec *perfdata.Sample) {
	mode := profile.Mode(rec.Mode())
	s.chain = append(s.chain[:0], link{rec.IP(), mode, true})
	if !s.chains {
		return
	}
	chain, lbr := rec.Callchain(), rec.Event().BranchType&branchCallStack != 0
	s.words = chain.AppendTo(s.words[:0])
	exact, first, addrs := true, true, 0
	for i := 0; i < len(s.words); i++ {
		addr := s.words[i]
		if addr >= perffile.ContextMax {
			if addr == perffile.ContextUserDeferred {
				s.deferred++
				return
			}
			mode, exact = modeOf(addr), true
			if lbr && mode == profile.User && s.branches(rec) {
				return
			}
			continue
		}
		addrs++
		// The chain is of the interrupt: it begins where the sample was taken, or for
		// precise events near it.
		if !first || mode != profile.Mode(rec.Mode()) {
			s.chain = append(s.chain, link{addr, mode, exact})
		}
		first, exact = false, false
	}
	if rec.Event().SampleType&perffile.SampleStackUser != 0 && len(rec.StackUser()) > 0 {
		s.unwound++
	}
	if limit := int(rec.Event().MaxStack); addrs >= limit && limit > 0 || addrs >= defaultMaxStack && limit == 0 {
		s.truncated++
		s.chain = append(s.chain, link{addr: truncatedLink})
	}
}

// truncatedLink stands for the callers of a callchain that was too long.
const truncatedLink = math.MaxUint64

// branches adds a user's callchain from the processor's stack of open calls, as perf's
// resolve_lbr_callchain_sample does: the latest branch led into the innermost
// function, the others are the calls, which begin with the same one.
func (s *Stacks) branches(rec *perfdata.Sample) bool {
	b := rec.Branches()
	if b.Len() == 0 {
		return false
	}
	if profile.Mode(rec.Mode()) != profile.User {
		s.chain = append(s.chain, link{b.At(0).To, profile.User, true})
	}
	for i := range b.Len() {
		s.chain = append(s.chain, link{b.At(i).From, profile.User, true})
	}
	return true
}

// modeOf returns the mode of the addresses behind a marker.
func modeOf(marker uint64) profile.Mode {
	switch marker {
	case perffile.ContextKernel:
		return profile.Kernel
	case perffile.ContextUser:
		return profile.User
	case perffile.ContextHV:
		return profile.Mode(perfdata.ModeHypervisor)
	case perffile.ContextGuestKernel:
		return profile.Mode(perfdata.ModeGuestKernel)
	case perffile.ContextGuest, perffile.ContextGuestUser:
		return profile.Mode(perfdata.ModeGuestUser)
	}
	return 0
}

// call adds the frames of a call to the path.
func (s *Stacks) call(l link, pid int, time uint64) {
	if l.addr == truncatedLink {
		s.path = append(s.path, s.frame(frameKey{kind: TruncatedFrame}))
		return
	}
	if !l.exact && l.addr > 0 {
		l.addr-- // the call itself, which may be the function's last instruction
	}
	s.extend(s.spaces.Find(time, pid, l.addr, l.mode))
}

// extend adds the frames of a place to the path: the function, and in it what was
// inlined.
func (s *Stacks) extend(at profile.Place) {
	list, ok := s.expanded[at]
	if !ok {
		if len(s.expanded) >= maxExpanded {
			clear(s.expanded)
		}
		list = s.expand(at)
		s.expanded[at] = list
	}
	if s.r.opts.By == counts.Module && s.path[len(s.path)-1] == list[0] {
		return // calls within a module
	}
	s.path = append(s.path, list...)
}

// expand returns the frames of a place, the outermost first.
func (s *Stacks) expand(at profile.Place) []int32 {
	by, symbols := s.r.opts.By, s.r.symbols
	if by == counts.Module {
		return []int32{s.frame(frameKey{kind: ModuleFrame, file: at.File})}
	}
	f := symbols.Function(at)
	inner := symbols.Frames(at)
	if len(inner) == 0 {
		inner = []profile.Frame{{}}
	}
	list := make([]int32, 0, len(inner))
	for i := len(inner) - 1; i >= 0; i-- {
		key := frameKey{file: at.File, name: inner[i].Func, source: inner[i].File, inlined: i < len(inner)-1}
		if !key.inlined {
			key.name, key.addr = f.Name, f.Addr
		}
		if by != counts.Function {
			key.line = inner[i].Line
		}
		if by == counts.Instruction {
			key.addr = symbols.Addr(at)
		}
		list = append(list, s.frame(key))
	}
	return list
}

// frame returns the number of a frame.
func (s *Stacks) frame(key frameKey) int32 {
	if i, ok := s.frames[key]; ok {
		return i
	}
	f := &Frame{Kind: key.kind, Function: key.name, Module: key.file.Base(), File: key.source, Line: key.line, Addr: key.addr, Inlined: key.inlined}
	if key.file != nil {
		f.BuildID = key.file.BuildID
		f.Kernel = key.file.Kernel
	}
	i := int32(len(s.list))
	s.list = append(s.list, f)
	s.frames[key] = i
	return i
}

// Notes says what the stacks are short of; what a recording as a whole lacks, a Reader
// says.
func (s *Stacks) Notes() []counts.Note {
	var out []counts.Note
	if s.unwound > 0 {
		out = append(out, counts.Notef("%d samples have a copy of the user's stack, which is not unwound: their callers in the program are missing", s.unwound).With(counts.Fix{Action: counts.RecordCallers}))
	}
	if s.truncated > 0 {
		out = append(out, counts.Notef("%d callchains are as long as can be recorded: their outermost callers are missing", s.truncated))
	}
	if s.deferred > 0 {
		out = append(out, counts.Notef("%d samples have the user's part of their callchains in records of their own, which are not joined: their callers in the program are missing", s.deferred))
	}
	if s.others >= 0 {
		out = append(out, counts.Notef("there are too many stacks: the others are together"))
	}
	return out
}

// A stackTree has the stacks that were met, each as the path to one of its nodes.
type stackTree struct {
	nodes []stackNode
	index map[uint64]int32 // by parent and frame

	// The path that was found last and its nodes: the next one often begins alike.
	last []int32
	at   []int32
}

type stackNode struct {
	parent, frame int32
	row           int32 // and 1; 0 for none
}

// find returns the node of a path of frames from the root; -1 if there is no room for
// it.
func (t *stackTree) find(path []int32) int32 {
	same := 0
	for same < len(path) && same < len(t.last) && path[same] == t.last[same] {
		same++
	}
	t.last, t.at = t.last[:same], t.at[:same]
	node := int32(0)
	if same > 0 {
		node = t.at[same-1]
	}
	for _, f := range path[same:] {
		if node = t.child(node, f); node < 0 {
			return -1
		}
		t.last, t.at = append(t.last, f), append(t.at, node)
	}
	return node
}

// child returns the node of a frame below another node, 0 being the root; -1 if there
// is no room for it.
func (t *stackTree) child(parent, frame int32) int32 {
	if i, ok := t.index[uint64(parent)<<32|uint64(frame)]; ok {
		return i
	}
	if len(t.nodes) >= maxStackNodes {
		return -1
	}
	return t.force(parent, frame)
}

// force adds a node.
func (t *stackTree) force(parent, frame int32) int32 {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, stackNode{parent: -1})
	}
	i := int32(len(t.nodes))
	t.nodes = append(t.nodes, stackNode{parent: parent, frame: frame})
	t.index[uint64(parent)<<32|uint64(frame)] = i
	return i
}

// rows returns the rows of the nodes, each node before those above it, and its own
// together.
func (t *stackTree) rows() []int32 {
	first, next := make([]int32, len(t.nodes)), make([]int32, len(t.nodes)) // nodes above one, and their neighbours
	for i := len(t.nodes) - 1; i > 0; i-- {
		parent := t.nodes[i].parent
		next[i], first[parent] = first[parent], int32(i)
	}
	var list []int32
	for i := int32(0); len(t.nodes) > 0; {
		if row := t.nodes[i].row; row > 0 {
			list = append(list, row-1)
		}
		if first[i] > 0 {
			i = first[i]
			continue
		}
		for i > 0 && next[i] == 0 {
			i = t.nodes[i].parent
		}
		if i == 0 {
			break
		}
		i = next[i]
	}
	return list
}

// path returns the frames from the root to a node.
func (t *stackTree) path(node int32) []int32 {
	var to []int32
	for ; node > 0; node = t.nodes[node].parent {
		to = append(to, t.nodes[node].frame)
	}
	slices.Reverse(to)
	return to
}
