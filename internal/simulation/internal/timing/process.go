package timing

import (
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// A process follows what one process executes.
type process struct {
	to        *Rates
	predictor branch.Branches
	loop      branch.Loop
	window    window

	modules   []module          // the mappings, the latest last; the memory may be shared with other processes
	blocks    map[uint64]*block // by address in memory
	current   *block            // the block being executed; nil if it is not known
	repeating bool              // the current block is a further repetition of an instruction
}

// A module is an image in memory.
type module struct {
	*image
	bias uint64 // of addresses in memory over those in the file
}

// A block is a piece of code in memory, from its entry to the first instruction that may
// leave it.
type block struct {
	start, end uint64 // in memory
	bias       uint64
	insts      stretch      // none if the code is not known
	last       *instruction // of these
	recent     [2]*block    // the blocks that followed it last
	executed   int64        // to its end, not yet counted with its instructions
}

// maxBlocks bounds the known blocks of all processes together. If there would be more, a
// process forgets its own.
const maxBlocks = 1 << 19

func newProcess(to *Rates, m models) *process {
	p := &process{to: to, predictor: m.predictor(), loop: m.loop, window: window{ideal: m.machine(), real: m.machine(), random: seed, record: to.records.begin()}}
	p.window.schedule()
	p.Exec()
	return p
}

// Exec begins a program.
func (p *process) Exec() {
	p.stop()
	p.modules = nil
}

// Fork begins with the mappings of another process.
func (p *process) Fork(parent valgrind.Follower) {
	p.Exec()
	if from, ok := parent.(*process); ok {
		p.modules = slices.Clip(from.modules) // thousands of ended processes are kept
	}
}

// End ends the process. Its mappings are kept for the processes that it has forked.
func (p *process) End() {
	p.stop()
	p.predictor, p.window = nil, window{}
}

// stop ends the execution: how the last block goes on will not be known.
func (p *process) stop() {
	if p.current != nil && p.current.last == nil {
		p.to.Unknown++
	}
	p.current, p.repeating = nil, false
	p.forget()
	p.window.end()
}

// Mapped notes where a file is mapped. It replaces earlier mappings there.
func (p *process) Mapped(file string, bias uint64) {
	i := p.to.code.image(file)
	if i == nil {
		return
	}
	if len(p.modules) >= maxImages {
		p.modules = p.modules[1:]
	}
	p.modules = append(p.modules, module{i, bias})
	p.forget()
}

// forget drops all blocks but the current one, and adds their executions to their
// instructions.
func (p *process) forget() {
	for _, b := range p.blocks {
		for _, in := range b.insts.all() {
			in.executed += b.executed
		}
		b.executed = 0
	}
	p.to.blocks -= len(p.blocks)
	p.blocks = map[uint64]*block{}
	if p.current != nil {
		p.current.recent = [2]*block{}
		p.blocks[p.current.start] = p.current
		p.to.blocks++
	}
}

// Blocks follows the process from one block to the next.
func (p *process) Blocks(addrs []uint64) {
	for _, addr := range addrs {
		from := p.current
		to := p.after(from, addr)
		if from != nil {
			p.leave(from, addr)
		}
		p.current = to
	}
}

// after returns the block at an address, which follows another one.
func (p *process) after(from *block, addr uint64) *block {
	if from != nil {
		for _, b := range from.recent {
			if b != nil && b.start == addr {
				return b
			}
		}
	}
	b := p.blocks[addr]
	if b == nil {
		b = p.newBlock(addr)
	}
	if from != nil {
		from.recent[1] = from.recent[0]
		from.recent[0] = b
	}
	return b
}

// newBlock reads the block at an address.
func (p *process) newBlock(addr uint64) *block {
	if p.to.blocks >= maxBlocks {
		p.forget()
	}
	p.to.blocks++
	b := &block{start: addr, end: addr}
	for i := len(p.modules) - 1; i >= 0; i-- {
		m := p.modules[i]
		if _, ok := m.file.Offset(addr - m.bias); ok {
			b.bias = m.bias
			b.insts, b.last = p.to.code.block(m.image, addr-m.bias)
			break
		}
	}
	if b.last != nil {
		b.end = b.last.next + b.bias
	}
	p.blocks[addr] = b
	return b
}

// leave ends the execution of a block. The next block says how it went on.
func (p *process) leave(b *block, next uint64) {
	in := b.last
	if in == nil {
		p.to.Unknown++
		p.window.end()
		return
	}
	repeated := p.repeating
	p.repeating = false
	addr, target := in.addr+b.bias, in.target+b.bias
	taken, broken := true, false
	switch in.flow {
	case disasm.CondJump:
		taken = next == target
		broken = !taken && next != b.end
	case disasm.Jump, disasm.Call:
		broken = next != target
	case disasm.IndirectJump, disasm.IndirectCall, disasm.Return:
	default:
		taken, p.repeating = false, in.again > 0 && next == addr
		broken = next != b.end && !p.repeating
	}
	if broken {
		p.cut(b, next)
		return
	}
	missed := branch.Exit{Flow: in.flow, Addr: addr, End: b.end, Target: target, Next: next, Taken: taken}.PredictIn(&p.loop, p.predictor, b.insts.n)
	b.executed++
	if missed {
		in.mispredicted++
	}
	if repeated {
		p.window.repeat(in)
		return
	}
	p.window.block(b.insts, taken, missed)
}

// cut ends the execution of a block that did not go on as its last instruction does. Either
// the simulator cut the block, and the next one begins inside it. Or the process did
// something else in between: another thread, or a signal handler.
func (p *process) cut(b *block, next uint64) {
	for n, in := range b.insts.all() {
		if n > 0 && in.addr+b.bias == next {
			before := stretch{b.insts.first, n}
			for _, in := range before.all() {
				in.executed++
			}
			p.window.block(before, false, false)
			return
		}
	}
	b.executed++
	p.window.end()
}
