package emulator

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"runtime"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
)

// The modes of a thread, and the kinds of words that it writes. The low two bits of a word
// are its kind:
//
//	access  address << 15 | place of the instruction in the block << 6 | store << 5 | log2 of size << 2
//	block   number of the block << 2
//	miss    as access; outside of samples the number of the instruction follows, and size 7 is
//	        a store past the caches
//	mark    mode << 5, or a written line that left the first level << 5 | 1 << 2; where a
//	        sample begins, also its warm blocks << 40 | the blocks that it stands for << 7;
//	        or 2 << 2, and then a word that the access before has loaded
//
// Blocks are written in samples only. Accesses are those that the first-level cache answers. They
// are written in windows only, misses always.
const (
	fast = iota
	warm
	detail
	modes
)

const (
	kindAccess = iota
	kindBlock
	kindMiss
	kindMark
)

// sizePast is in the place of a size.
const sizePast = 7

// What is in the next bits of a mark for a line, and of one that a value follows.
const (
	markBack = 1 + iota
	markValue
)

// A thread is the core that executes one thread.
type thread struct {
	run       *run
	p         *process
	caches    *caches.Hierarchy
	predictor *branch.Predictor
	loop      branch.Loop
	window    *detailed // nil without a model of the core

	mode  int
	block *block   // the current one in a sample; nil if it is not known
	to    []access // of the current block
	// How many executions each one in the present sample stands for, and each in its window.
	each, inWindow float64
}

// An access is one to memory.
type access struct {
	addr  uint64
	back  uint64 // the line that it replaced in the first level, if that was written; else 0
	place uint16 // of the instruction in its block
	size  uint8
	store bool
	held  bool // the first level has its line
	known bool // value is what was loaded
	value uint64
}

func newThread(r *run, p *process) *thread {
	c := p.core()
	t := &thread{run: r, p: p, caches: c.caches, predictor: c.predictor, loop: branch.NewLoop(r.options.Core.Streams()), each: 1, inWindow: 1}
	if r.options.Core != nil && r.code.ops != nil {
		t.window = newDetailed(r, t.caches)
	}
	return t
}

// A core is what the threads on a processor share.
type core struct {
	caches    *caches.Hierarchy
	predictor *branch.Predictor
}

// core returns that of the next thread of a process. There are as many as the machine has
// processors: all other threads find what one of those before has left.
func (p *process) core() *core {
	at := p.threads % runtime.NumCPU()
	if p.threads++; at == len(p.cores) {
		h := caches.New(p.run.options.Caches, p.run.shared)
		h.Touched = p.touched.first
		p.cores = append(p.cores, &core{h, branch.New()})
	}
	return p.cores[at]
}

// follow reads what a thread writes until it ends.
func (t *thread) follow(in *bufio.Reader) error {
	buffer := make([]byte, maxLine)
	kept := 0
	for {
		n, err := in.Read(buffer[kept:])
		n += kept
		t.run.Lock()
		used, bad := t.words(buffer[:n])
		t.run.Unlock()
		kept = copy(buffer, buffer[used:n])
		switch {
		case bad != nil:
			return bad
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// words simulates words, and returns how many bytes they are.
func (t *thread) words(b []byte) (used int, err error) {
	for ; len(b)-used >= 8; used += 8 {
		w := binary.LittleEndian.Uint64(b[used:])
		switch w & 3 {
		case kindBlock:
			t.enter(t.p.block(uint32(w >> 2)))
		case kindAccess:
			t.access(w)
		case kindMiss:
			if t.mode != fast {
				t.access(w)
				continue
			}
			if len(b)-used < 16 {
				return used, nil
			}
			used += 8
			t.miss(w, binary.LittleEndian.Uint64(b[used:]))
		default:
			switch w >> 2 & 7 {
			case markBack:
				t.back(w >> 5)
				continue
			case markValue:
				if len(b)-used < 16 {
					return used, nil
				}
				used += 8
				if n := len(t.to); n > 0 {
					t.to[n-1].known, t.to[n-1].value = true, binary.LittleEndian.Uint64(b[used:])
				}
				continue
			}
			if t.sample(w>>7&(1<<33-1), w>>40); w>>5&3 >= modes {
				return used, errWire
			}
			t.become(int(w >> 5 & 3))
		}
	}
	return used, nil
}

// sample begins a sample: some warm blocks and a window, for so many blocks. Samples are nearer
// each other where a program begins.
func (t *thread) sample(blocks, warm uint64) {
	if blocks > 0 {
		t.each, t.inWindow = float64(blocks)/float64(warm+windowBlocks), float64(blocks)/windowBlocks
	}
}

// become changes the mode.
func (t *thread) become(mode int) {
	if t.window != nil {
		if t.mode == detail {
			t.window.end()
		}
		if mode == detail {
			t.window.begin(t.inWindow)
		}
	}
	if mode == fast {
		t.block = nil
		t.to = t.to[:0]
	}
	t.mode = mode
}

// enter begins a block, and simulates the one before: it is now known how it ended.
func (t *thread) enter(b *block) {
	if last := t.block; last != nil && b != nil {
		t.leave(last, b)
	}
	t.block, t.to = b, t.to[:0]
	if b == nil {
		if t.window != nil {
			t.window.lost()
		}
		return
	}
	t.fetch(b)
}

// fetch simulates the fetch of a block's code.
func (t *thread) fetch(b *block) {
	b.seen += t.each
	l := t.run.code
	if len(b.lines) == 0 {
		b.lines = l.lines(b)
	}
	for _, n := range b.lines {
		if in := l.inst(n); t.caches.Code(in.addr+b.bias) != caches.First {
			l.look(in).fetches += t.each
		}
	}
}

// lines returns the numbers of a block's instructions that begin a line of code, or the block.
func (l *library) lines(b *block) (list []uint32) {
	line := ^uint64(0)
	for _, n := range b.insts {
		if at := l.inst(n).addr + b.bias; at>>caches.LineBits != line {
			line = at >> caches.LineBits
			list = append(list, n)
		}
	}
	return list
}

// leave ends a block: another one follows.
func (t *thread) leave(b, follows *block) {
	if len(b.insts) == 0 {
		return
	}
	next := follows.start
	in := t.run.code.look(t.run.code.inst(b.insts[len(b.insts)-1]))
	addr, target := in.addr+b.bias, in.target()+b.bias
	taken := true
	switch in.flow {
	case disasm.CondJump:
		taken = next == target && target != b.end
	case disasm.Jump, disasm.Call, disasm.IndirectJump, disasm.IndirectCall, disasm.Return:
	default:
		taken = false
	}
	if in.flow == disasm.IndirectCall || in.flow == disasm.IndirectJump && follows.image != b.image {
		t.run.calls.enter(b, follows, t.each)
	}
	queued := t.loop.Queued()
	missed := branch.Exit{Flow: in.flow, Addr: addr, End: b.end, Target: target, Next: next, Taken: taken}.PredictIn(&t.loop, t.predictor, len(b.insts))
	if missed {
		in.mispredicted += t.each
	}
	switch {
	case t.mode != detail:
	case t.window != nil:
		for _, m := range t.window.machines() {
			m.Queue(queued)
		}
		t.window.block(b, t.to, taken, missed)
	default:
		for _, n := range b.insts {
			t.run.code.watch(t.run.code.inst(n)).watched += t.inWindow
		}
	}
}

// access simulates an access in a sample, or keeps it until its block has ended.
func (t *thread) access(w uint64) {
	a := access{addr: w >> 15, place: uint16(w >> 6 & (mostInsns - 1)), size: 1 << (w >> 2 & 7), store: w>>5&1 != 0, held: w&3 == kindAccess}
	if t.block == nil || int(a.place) >= len(t.block.insts) {
		return
	}
	if t.mode == detail && t.window != nil {
		t.to = append(t.to, a)
		return
	}
	n := t.block.insts[a.place]
	in := t.run.code.inst(n)
	if t.mode == detail {
		t.run.code.watch(in).accesses[at(a.store)] += t.inWindow
	}
	t.data(n, in, &a)
}

// miss simulates an access outside of samples, by an instruction of the process. Most touch
// nothing else.
func (t *thread) miss(w, number uint64) {
	l, m := t.run.code, t.p.missed(uint32(number))
	var got caches.Access
	if w>>2&7 == sizePast {
		got.Translation = t.caches.Stream(w >> 15)
	} else {
		got = t.caches.Data(uint64(max(m.number, 1)-1), w>>15, false)
	}
	if moves := t.caches.Moves(); m.number > 0 && (len(moves) > 0 || got.Late()) {
		if m.traffic == 0 {
			m.traffic = l.trafficOf(l.inst(m.number - 1)).number
		}
		l.traffic(m.traffic).count(got, w>>5&1 != 0, moves)
	}
}

// data simulates an access of an instruction and counts its miss.
func (t *thread) data(n uint32, in *instruction, a *access) {
	if in.streams && a.store {
		t.caches.Stream(a.addr)
		return
	}
	t.run.code.count(in, t.caches.Data(uint64(n), a.addr, a.held), a.store, t.caches.Moves())
}

// back simulates that a line leaves the first level. In a window that waits for its access.
func (t *thread) back(line uint64) {
	if n := len(t.to); t.mode == detail && n > 0 {
		t.to[n-1].back = line
		return
	}
	t.caches.Back(line)
}

// count counts what an access of an instruction missed and moved, if it did.
func (l *library) count(in *instruction, got caches.Access, store bool, moves []caches.Move) {
	if got.Late() || len(moves) > 0 {
		l.trafficOf(in).count(got, store, moves)
	}
}

// count counts what an access missed and moved.
func (c *traffic) count(got caches.Access, store bool, moves []caches.Move) {
	if got.Level != caches.First {
		c.misses[at(store)][got.Level]++
	}
	if got.Translation != caches.First {
		c.pages[got.Translation]++
	}
	if got.Level == caches.Memory {
		c.lines++
	}
	for _, m := range moves {
		if m.From == caches.Memory {
			c.lines++
		}
	}
}

// at is the index of loads and stores.
func at(store bool) int {
	if store {
		return 1
	}
	return 0
}

// touched are the pages that a process has accessed. The kernel has just written a page on its
// first access, so that it is in the caches. Or they are lines of code.
type touched struct {
	chunks map[uint64]*[8]uint64
	number uint64     // of the latest chunk
	latest *[8]uint64 // nil at first
}

// mostTouched bounds the chunks, of two megabytes each.
const mostTouched = 1 << 17

// first reports whether a page is accessed for the first time.
func (t *touched) first(page uint64) bool {
	if t.chunks == nil {
		t.chunks = map[uint64]*[8]uint64{}
	}
	c := t.latest
	if c == nil || page>>9 != t.number {
		c = t.chunks[page>>9]
	}
	if c == nil {
		if len(t.chunks) >= mostTouched {
			return false
		}
		c = &[8]uint64{}
		t.chunks[page>>9] = c
	}
	t.number, t.latest = page>>9, c
	word, bit := &c[page>>6&7], uint64(1)<<(page&63)
	was := *word&bit != 0
	*word |= bit
	return !was
}
