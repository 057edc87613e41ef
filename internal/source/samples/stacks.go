package samples

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path"
	"runtime"
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
	cgroup   uint64 // of a ThreadFrame
	Inlined  bool   // its code is part of the next outer frame's
	Shown    any    // what the reader of the stacks makes of it
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
	Cgroup string        // path; "" unless Options.Within has counts.Cgroup, and samples name theirs
	Frames []*Frame      // the outermost first, without the thread's
	Same   int           // how many of the first frames the stack before had as well
	Place  int           // row of the table, of the place that the samples were taken at; 0 for OthersFrame
	Number int           // less than Len; no other stack has it
	Cells  []counts.Cell // by column of the table
}

// Stacks are the counts of a recording's samples by stack: the recorded callchains, with
// the calls that were inlined. Without callchains the stack is the module and the
// function.
//
// The file is read twice: for what was mapped when, and for the samples. Memory grows with the
// number of different stacks, up to Options.StackMemory. Then the lightest ones end early, in an
// OthersFrame; a note says how many samples they have.
//
// The innermost frame is where the sample was taken, and for precise events the instruction
// that caused them; the frames around it are those of the interrupt. User stacks that were
// recorded for unwinding (perf record --call-graph dwarf) are unwound.
type Stacks struct {
	r *Reader

	spaces  *profile.Spaces
	columns int // 0 before the first sample
	cache   int // Options.Symbols.Cache

	tree       stackTree
	rows       stackRows
	spans      stackSpans
	frames     map[frameKey]int32
	list       []*Frame
	others     int32 // the frame of stacks that there was no room for
	truncation int32 // that of callers that were not recorded
	calls      callchains
	summed     *callTable // of stacks that were given up; nil if no such table is asked for
	code       *codes
	lost       []perfdata.Sum // of folded stacks, by the number of their code and by column
	places     []int          // rows of the table, by the number of the code; 0 for none

	functions map[*profile.Function][]int32 // their frames, without inlined calls
	threads   map[threadKey]int32           // the frames of threads

	function       *profile.Function // that was asked for last
	functionFrames []int32
	recent         [recentThreads]recentThread

	chain  []link // of the sample
	events []*perfdata.Event

	brief   []perfdata.FlatSample // some samples, if nothing else matters than their callchains
	chained []perfdata.Words

	likely int // callchains, not more than fit
	chains bool
	unwind userStacks
	flawed [flawKinds]int64 // samples, by what their callchains lack
}

// A recentThread is a thread whose name was looked up.
type recentThread struct {
	tid   int32
	frame int32 // and 1; 0 for none
	is    threadKey
}

// flaws are what a callchain lacks, a bit for each.
type flaws uint8

const (
	flawTruncated = iota // it was as long as can be
	flawDeferred         // the user's part was to come later
	flawCut              // the copy of the user's stack was too short
	flawUnknown          // nothing says how to unwind the user's stack further
	flawForeign          // the user's registers are of no supported processor
	flawKinds
)

// A frameKey identifies a frame.
type frameKey struct {
	kind    FrameKind
	file    *profile.File
	name    string
	source  string
	line    int
	addr    uint64
	inlined bool
	cgroup  uint64
}

// A chained is what a stack needs of a sample.
type chained struct {
	time     uint64 // as spaces have it
	stamp    uint64 // its own, noTimes for none
	ip       uint64
	pid, tid int32
	mode     profile.Mode
	event    *perfdata.Event
	cgroup   uint64
	words    perfdata.Words   // of its callchain
	whole    *perfdata.Sample // nil if nothing else matters
}

// A link is the place of a call, as an address.
type link struct {
	place uint64
	mode  profile.Mode
}

// truncatedMode is that of the callers of a callchain that was too long.
const truncatedMode profile.Mode = math.MaxUint8

// linkTo returns the link to an address. That of a call is before the address that it returns to,
// since it may be the function's last instruction. An exact one is the instruction itself.
func linkTo(addr uint64, mode profile.Mode, exact bool) link {
	if !exact && addr > 0 {
		addr--
	}
	return link{addr, mode}
}

// Limits of what a file can make Stacks remember.
const (
	// DefaultStackMemory is Options.StackMemory where it is 0: bytes.
	DefaultStackMemory = 104 << 20
	minStackMemory     = 1 << 20
	// defaultMaxStack is the length of callchains where the event does not say it:
	// the kernel's PERF_MAX_STACK_DEPTH.
	defaultMaxStack = 127
	// maxFrames bounds the frames; code beyond them is in an OthersFrame.
	maxFrames = 1 << 20
)

// ReadStacks reads the stacks of the recording that src holds, a perf.data file. The
// name is for messages. Of the options By says what frames are split by. Within may have
// counts.Cgroup, and counts.Interval for [Stacks.Spans]. The stacks must be closed.
func ReadStacks(src io.ReadSeeker, name string, opts Options) (*Stacks, error) {
	cgroups, spans := opts.Within.Has(counts.Cgroup), opts.Within.Has(counts.Interval)
	opts.Within = 0
	cache := opts.Symbols.Cache
	opts.Symbols.Cache = cmp.Or(cache, anyOrderCache)
	r := NewReader(src, name, opts)
	r.cgroups, r.spans = cgroups, spans
	s := &Stacks{spans: stackSpans{wanted: spans}, r: r, cache: cache, frames: map[frameKey]int32{}, functions: map[*profile.Function][]int32{}, threads: map[threadKey]int32{}}
	s.others, s.truncation = s.frame(frameKey{kind: OthersFrame}), s.frame(frameKey{kind: TruncatedFrame})
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
	r.stacked = true
	if err := r.measure(); err != nil {
		return err
	}
	if err := r.wait(); err != nil {
		return err
	}
	if err := r.pass(eventsOnly); err != nil {
		return err
	}
	s.likely = int(min(r.in.Stats().Samples/2, int64(s.limit()/chainBytes/2)))
	s.spaces = r.order.spaces
	s.code = newCodes(s.spaces, s.others, places{}, s.expand)
	if err := s.readSamples(); err != nil {
		return err
	}
	s.placed()
	s.frames, s.functions, s.threads = nil, nil, nil
	runtime.GC() // the table needs memory
	if err := r.found(); err != nil {
		return err
	}
	for i, n := range s.places {
		if n > 0 && r.places.united != nil {
			s.places[i] = 1 + int(r.places.united[n-1])
		}
	}
	r.fill()
	r.places, r.order, s.spaces, s.unwind = places{}, order{}, nil, userStacks{} // the order of the stacks needs memory
	return r.symbols.Close()
}

// readSamples reads the samples, and makes stacks of them.
func (s *Stacks) readSamples() error {
	r := s.r
	if err := r.open(samplesOnly); err != nil {
		return err
	}
	defer r.in.Close()
	r.feed.close() // samples do not go through it
	s.calls = newCallchains(s.likely)
	for s.scan(); r.in.Next(); s.scan() {
		r.feed.number++
		if rec, ok := r.in.Record().(*perfdata.Sample); ok && rec.Event().Index < derivedBase-1 {
			s.sample(rec)
		}
	}
	if err := s.ended(); err != nil {
		return err
	}
	s.settle(true)
	for most, n := s.r.opts.StackCalls, 0; most > 0 && s.tree.nodes.n > most && n != s.tree.nodes.n; {
		n = s.tree.nodes.n
		s.fold(0)
	}
	return nil
}

// placed adds up the places that samples were taken at, for the table.
func (s *Stacks) placed() {
	p, leaves := &s.r.places, &s.code.leaves
	s.places = make([]int, len(s.code.list))
	numbers := make([]int, len(leaves.codes)) // and 1, by the number among the leaves
	add := func(code uint32, col int, sum *perfdata.Sum) {
		if code == foldedCode || sum.Samples() == 0 {
			return
		}
		if s.places[code] == 0 {
			own, k := new(int), key{others: true}
			if code != crowdedCode {
				leaf := s.code.list[code].leaf
				own, k = &numbers[leaf], leaves.codes[leaf]
			}
			if *own == 0 {
				*own = 1 + int(p.addCode(k))
			}
			s.places[code] = *own
		}
		p.codeSum(int32(s.places[code]-1), col).Merge(sum)
	}
	for i := range s.rows.n() {
		for col := range s.columns {
			sum := s.rows.sum(i, col)
			add(s.rows.at(i).code, col, &sum)
		}
	}
	for i := range s.lost {
		add(uint32(i/s.columns), i%s.columns, &s.lost[i])
	}
	s.calls, s.code, s.lost = callchains{}, nil, nil
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
func (s *Stacks) Len() int { return s.rows.n() }

// All yields the stacks: those that begin alike one after the other, and those of the same
// names next to each other.
func (s *Stacks) All() iter.Seq[*Stack] {
	return func(yield func(*Stack) bool) {
		out := &Stack{Cells: make([]counts.Cell, s.columns)}
		s.tree.rows(s.ranks(), func(i int32, path []int32, same int) bool {
			row := s.rows.at(int(i))
			out.Thread, out.Same, out.Place, out.Number = s.list[path[0]].Function, max(0, same-1), s.places[row.code], int(i)
			if out.Cgroup = ""; s.r.cgroups && s.list[path[0]].Kind == ThreadFrame {
				out.Cgroup = s.r.names.cgroup(s.list[path[0]].cgroup)
			}
			out.Frames = out.Frames[:out.Same]
			for _, f := range path[1+out.Same:] {
				out.Frames = append(out.Frames, s.list[f])
			}
			for col, e := range s.r.columns {
				out.Cells[col] = counts.Cell{}
				if s.r.meter.Known(e) {
					sum := s.rows.sum(int(i), col)
					out.Cells[col] = sum.Cell(e)
				}
			}
			s.r.waits.exact(out.Cells, s.r.columns)
			return yield(out)
		})
	}
}

// ranks returns for each frame the rank of its name.
func (s *Stacks) ranks() []int32 {
	order := make([]int32, len(s.list))
	for i := range order {
		order[i] = int32(i)
	}
	compare := func(a, b int32) int {
		x, y := s.list[a], s.list[b]
		return cmp.Or(cmp.Compare(x.Function, y.Function), cmp.Compare(x.anonymous(), y.anonymous()), cmp.Compare(x.Kind, y.Kind))
	}
	slices.SortFunc(order, compare)
	ranks := make([]int32, len(order))
	for i := 1; i < len(order); i++ {
		ranks[order[i]] = ranks[order[i-1]]
		if compare(order[i-1], order[i]) != 0 {
			ranks[order[i]]++
		}
	}
	return ranks
}

// anonymous is the module of code without a name, which stands for it.
func (f *Frame) anonymous() string {
	if f.Function != "" {
		return ""
	}
	return f.Module
}

// begin looks at what was recorded, at the first sample.
func (s *Stacks) begin(rec *perfdata.Sample) {
	s.r.begin(rec.Time())
	s.columns = len(s.r.columns)
	s.summed = newCallTable(s)
	s.code.most = min(maxCodeLists, maxCells/max(s.columns, 1))
	for _, e := range s.r.columns {
		s.chains = s.chains || e.SampleType&(perffile.SampleCallchain|perffile.SampleStackUser) != 0 || offCPU(e)
	}
	s.unwind.begin(s)
	s.events = s.r.in.Events()
	s.r.feed.now(0) // decides whether samples have times
	brief := s.r.keep == nil && s.r.waits == nil && !s.r.cgroups && s.r.feed.state == timed
	for _, e := range s.events {
		brief = brief && e.SampleType&perffile.SampleStackUser == 0 && e.BranchType&perffile.BranchCallStack == 0
	}
	if brief {
		s.brief, s.chained = make([]perfdata.FlatSample, 0, scannedTogether), make([]perfdata.Words, scannedTogether)
	}
	if !s.r.keep.code() && s.unwind.unwinder == nil { // places are looked up file by file
		s.r.opts.Symbols.Ordered, s.r.opts.Symbols.NoLines = true, s.r.opts.NoLines && s.r.opts.By == counts.Function
		s.r.opts.Symbols.Cache = cmp.Or(s.cache, orderedCache)
		s.r.symbols = profile.NewSymbolizer(s.r.opts.Symbols) // nothing was asked before
		s.r.places.symbols = s.r.functions()
	}
	s.code.leaves = newPlaces(s.r.opts.By, 0, nil, s.r.functions())
	s.code.leaves.begin(s.columns)
}

// scannedTogether is how many samples are decoded in brief together.
const scannedTogether = 64

// scan adds the next samples to their stacks, if nothing matters but their callchains.
func (s *Stacks) scan() {
	for r := s.r; s.brief != nil; {
		s.brief = r.in.NextFlat(s.brief[:0], s.chained)
		for i := range s.brief {
			f := &s.brief[i]
			x := chained{time: f.Time, stamp: f.Time, ip: f.IP, pid: f.PID, tid: f.TID, mode: profile.Mode(f.Mode()), cgroup: noCgroup, words: s.chained[i]}
			if x.time >= noTimes {
				x.time = r.last
			} else {
				r.first, r.last = min(r.first, x.time), max(r.last, x.time)
			}
			if int(f.Event) >= len(r.column) || r.column[f.Event] < 0 {
				r.order.left++
				continue
			}
			col := int(r.column[f.Event])
			if f.Misc&perffile.MiscExactIP != 0 {
				r.order.exact[col]++
			}
			x.event = s.events[f.Event]
			s.add(s.chainOf(&x), col, &perfdata.Amount{Event: x.event, Value: f.Value})
		}
		if len(s.brief) < cap(s.brief) {
			return
		}
	}
}

// sample adds a sample to its stack.
func (s *Stacks) sample(rec *perfdata.Sample) {
	r := s.r
	if !r.begun {
		s.begin(rec)
	}
	amounts, time := r.amounts(rec)
	if len(amounts) == 0 {
		return
	}
	kept := r.keep == nil || s.counts(rec, time)
	chain, asked := hashedChain{}, false
	for _, list := range [...][]perfdata.Amount{amounts, r.wall} {
		for i := range list {
			e := list[i].Event
			if e.Index >= len(r.column) || r.column[e.Index] < 0 {
				r.order.left++
				continue
			}
			col := int(r.column[e.Index])
			if rec.Misc&perffile.MiscExactIP != 0 || e.Index >= wallBase+wallQueue {
				r.order.exact[col]++
			}
			if !kept {
				r.places.dropped[col].Add(&list[i])
				continue
			}
			if !asked {
				x := chained{time: time, stamp: timeOf(rec), ip: rec.IP(), pid: int32(rec.PID()), tid: int32(rec.TID()), mode: profile.Mode(rec.Mode()),
					event: rec.Event(), cgroup: noCgroup, words: rec.Callchain(), whole: rec}
				if r.cgroups && rec.Has(perffile.SampleCgroup) {
					x.cgroup = rec.Cgroup()
				}
				chain, asked = s.chainOf(&x), true
			}
			s.add(chain, col, &list[i])
		}
	}
}

// counts reports whether a filter of names or places lets a sample through.
func (s *Stacks) counts(rec *perfdata.Sample, time uint64) bool {
	keep := s.r.keep
	if keep.named() {
		x := s.r.contexts.of(rec)
		if !keep.names(s.spaces, time, x, s.r.order.cgroup(x.cgroup)) {
			return false
		}
	}
	return !keep.code() || keep.place(s.spaces.Find(time, rec.PID(), rec.IP(), profile.Mode(rec.Mode())), s.r.functions())
}

// fold makes room: it keeps three quarters of the nodes, those with most samples, or half where few calls
// are wanted. The other stacks end at the last node that is kept, in a frame of kind OthersFrame. The calls before
// one are in the tree.
func (s *Stacks) fold(before uint32) {
	n := s.tree.nodes.n
	weights := make([]uint32, n)
	for i := range s.rows.n() {
		w := &weights[s.rows.at(i).node]
		for col := range s.columns {
			*w = uint32(min(int64(*w)+s.rows.samples(i, col), stayed-1))
		}
	}
	most := n - n/4
	if s.r.opts.StackCalls > 0 {
		most = n / 2 // it will be much less in the end
	}
	moved := s.tree.cut(weights, most, s.others)
	for i := range int(before) {
		call := s.calls.calls.at(i)
		now, kept := moved.of(int32(*call &^ cutCall))
		if kept = kept && *call&cutCall == 0; !kept {
			now |= math.MinInt32
		}
		*call = uint32(now)
	}
	rows := s.rows.move(&s.tree, func(i int, row stackRow) stackRow {
		node, kept := moved.of(row.node)
		if row.node = node; kept && row.code != foldedCode {
			return row
		}
		for col := range s.columns {
			if sum := s.rows.sum(i, col); row.code != foldedCode {
				s.lose(row.code, col, &sum)
			}
		}
		return stackRow{s.otherStacks(node), foldedCode}
	}, s.columns)
	switch s.spans.move(rows); {
	case s.spans.memory() <= s.limit()/2:
	case s.r.opts.StackCalls > 0 && s.tree.nodes.n > s.r.opts.StackCalls && s.tree.nodes.n < n:
		s.fold(before) // so many calls are not wanted
	default:
		s.spans = stackSpans{crowded: true} // so many intervals that it is not up to the stacks
	}
}

// lose adds what stacks count whose innermost place is given up, by the number of its code.
func (s *Stacks) lose(code uint32, col int, sum *perfdata.Sum) {
	if n := len(s.code.list) * s.columns; len(s.lost) < n {
		s.lost = append(s.lost, make([]perfdata.Sum, n-len(s.lost))...)
	}
	s.lost[int(code)*s.columns+col].Merge(sum)
}

// otherStacks returns the node for the stacks that end below a node.
func (s *Stacks) otherStacks(node int32) int32 {
	if node == 0 {
		node = s.tree.child(0, s.others) // in place of the thread
	}
	return s.tree.child(node, s.others)
}

// limit returns how many bytes the stacks may take.
func (s *Stacks) limit() int {
	return max(cmp.Or(s.r.opts.StackMemory, DefaultStackMemory), minStackMemory)
}

// folded returns the share of the samples whose stacks there was no room for.
func (s *Stacks) folded() float64 {
	all, some := s.rows.shares()
	if b := s.summed; b != nil {
		all, some = all+b.samples, some+b.folded
	}
	return float64(some) / float64(max(all, 1))
}

// memory returns about how many bytes the stacks take.
func (s *Stacks) memory() int { return s.tree.memory() + s.rows.memory() + s.spans.memory() }

// A threadKey is the name of a thread, and the cgroup if stacks are split by it.
type threadKey struct {
	name   string
	cgroup uint64
}

// thread returns the frame of a sample's thread.
func (s *Stacks) thread(x *chained) int32 {
	tid, k := x.tid, threadKey{s.spaces.Comm(x.time, int(x.tid)), x.cgroup}
	known := &s.recent[uint32(tid)%recentThreads]
	if known.frame > 0 && known.tid == tid && known.is == k {
		return known.frame - 1
	}
	*known = recentThread{tid: tid, is: k}
	if k.name == "" {
		k.name = fmt.Sprintf(":%d", tid)
	}
	i, ok := s.threads[k]
	if !ok {
		i = s.frame(frameKey{kind: ThreadFrame, name: k.name, cgroup: k.cgroup})
		s.threads[k] = i
	}
	known.frame = i + 1
	return i
}

// linksOf fills in the addresses of a sample's callchain, the innermost first, which is that
// of the sample. The words are those of the record, the outermost first; more may be around these.
// It returns what the callchain lacks, and the mode at the end.
func (s *Stacks) linksOf(x *chained, words []uint64, more, truncated bool) (lacks flaws, mode profile.Mode) {
	mode = x.mode
	chain := append(s.chain[:0], link{x.ip, mode})
	s.chain = chain
	if !s.chains {
		return 0, mode
	}
	lbr := x.event.BranchType&perffile.BranchCallStack != 0
	exact, first, user, own := true, true, false, mode
	for i := len(words) - 1; i >= 0; i-- {
		addr := words[i]
		if addr >= perffile.ContextMax {
			if s.chain = chain; addr == perffile.ContextUserDeferred {
				return 1 << flawDeferred, mode
			}
			mode, exact = modeOf(addr), true
			if lbr && mode == profile.User && s.branches(x.whole) {
				return 0, mode
			}
			continue
		}
		user = user || mode == profile.User
		// The chain is of the interrupt: it begins where the sample was taken, or for
		// precise events near it.
		if !first || mode != own {
			chain = append(chain, linkTo(addr, mode, exact))
		}
		first, exact = false, false
	}
	s.chain = chain
	if !user && !more {
		lacks |= s.unwound(x.whole, x.time)
	}
	if truncated {
		if lacks |= 1 << flawTruncated; !more {
			s.chain = append(s.chain, link{mode: truncatedMode})
		}
	}
	return lacks, mode
}

// truncated reports whether a callchain is as long as can be recorded.
func (x *chained) truncated() bool {
	n := x.words.Len()
	addrs, limit := 0, cmp.Or(int(x.event.MaxStack), defaultMaxStack)
	if n < limit {
		return false
	}
	for i := range n {
		if x.words.At(i) < perffile.ContextMax {
			addrs++
		}
	}
	return addrs >= limit
}

// branches adds a user's callchain from the processor's stack of open calls, as perf's
// resolve_lbr_callchain_sample does: the latest branch led into the innermost
// function, the others are the calls, which begin with the same one.
func (s *Stacks) branches(rec *perfdata.Sample) bool {
	b := rec.Branches()
	if b.Len() == 0 {
		return false
	}
	if profile.Mode(rec.Mode()) != profile.User {
		s.chain = append(s.chain, link{b.At(0).To, profile.User})
	}
	for i := range b.Len() {
		s.chain = append(s.chain, link{b.At(i).From, profile.User})
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

// extend returns the node of frames below a node: a function, and in it what was inlined.
func (s *Stacks) extend(node int32, list []int32) int32 {
	if s.r.opts.By <= counts.SourceFile && s.tree.nodes.at(int(node)).frame == list[0] {
		return node // calls within a module or a source file
	}
	for _, f := range list {
		node = s.tree.child(node, f)
	}
	return node
}

// expand returns the frames of a place, the outermost first.
func (s *Stacks) expand(at profile.Place) []int32 {
	by, symbols := s.r.opts.By, s.r.symbols
	if by == counts.Module {
		return []int32{s.frame(frameKey{kind: ModuleFrame, file: at.File})}
	}
	if by == counts.SourceFile {
		key := frameKey{file: at.File}
		if key.source, _ = symbols.Line(at); key.source != "" {
			key.name = path.Base(key.source)
		}
		return []int32{s.frame(key)}
	}
	f := symbols.Function(at)
	if by == counts.Function && (s.r.opts.NoInline || !symbols.Inlined(at)) {
		if f == s.function {
			return s.functionFrames
		}
		list, ok := s.functions[f]
		if !ok {
			source := ""
			if !s.r.opts.Symbols.NoLines {
				source, _ = symbols.Line(profile.Place{File: at.File, Offset: f.Offset})
			}
			list = []int32{s.frame(frameKey{file: at.File, name: f.Name, source: source, addr: f.Addr})}
			s.functions[f] = list
		}
		s.function, s.functionFrames = f, list
		return list
	}
	inner := symbols.Frames(at)
	if len(inner) == 0 {
		inner = []profile.Frame{{}}
	}
	if s.r.opts.NoInline {
		inner[len(inner)-1].Line = inner[0].Line // the line is that of the innermost call in any case
		inner[len(inner)-1].File = inner[0].File
		inner = inner[len(inner)-1:]
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
	if len(s.list) >= maxFrames {
		return s.others
	}
	f := &Frame{Kind: key.kind, Function: key.name, Module: key.file.Base(), File: key.source, Line: key.line, Addr: key.addr, Inlined: key.inlined, cgroup: key.cgroup}
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
	out = append(out, s.unwoundNotes()...)
	if s.flawed[flawTruncated] > 0 {
		out = append(out, counts.Notef("%d callchains are as long as can be recorded: their outermost callers are missing", s.flawed[flawTruncated]))
	}
	if s.flawed[flawDeferred] > 0 {
		out = append(out, counts.Notef("%d samples have the user's part of their callchains in records of their own, which are not joined: their callers in the program are missing", s.flawed[flawDeferred]))
	}
	if share := s.folded(); share > 0 {
		why := fmt.Sprintf("the stacks exceed %d MB", s.limit()>>20)
		if s.r.opts.StackCalls > 0 {
			why = "the lightest are together"
		}
		out = append(out, counts.Notef("%.2g %% of the samples are in [other stacks]: %s", 100*share, why))
	}
	return out
}
