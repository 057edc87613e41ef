package pipeline

import "slices"

// A legacyFrontEnd is how a core decodes code that is not in its cache of decoded
// instructions. No decoders: it is not modelled, and all code comes from that cache.
type legacyFrontEnd struct {
	decoders    int // instructions in a cycle
	decoded     int // micro-ops in a cycle
	predecode   int // instructions in a cycle, of one block of 16 bytes
	predecoded  int // instructions that wait for the decoders
	unlaminates unlamination
	lines       int // of the cache of decoded micro-ops, for 32 bytes of code; 0 for any number
	lineOps     int // micro-ops of a line
	lcp         int // cycles more for a prefix that changes an instruction's length
}

// legacyState is the state of the legacy decoders.
type legacyState struct {
	block   uint64 // of 16 bytes, that is predecoded now
	opened  int64  // the cycle when its predecoding began
	count   int    // instructions that it has so far
	cost    int64  // cycles that the block before took
	lcps    int    // prefixes in the block that change lengths
	waiting ring   // instructions between predecoders and decoders
	cycle   int64  // of the latest decoding
	group   int    // instructions decoded in that cycle
	uops    int    // micro-ops of them
	on      bool   // cached code comes from here, until a branch is taken
}

// decode returns when an op comes out of the legacy decoders. fused says that it is one
// with the op before.
func (m *Machine) decode(op *Op, slots int, fused bool) int64 {
	l := &m.legacy
	c := &m.core.legacyFrontEnd
	at := m.predecode(op)
	if fused {
		if l.group == c.decoders { // the last decoder waits for what may fuse
			l.cycle, l.group, l.uops = l.cycle+1, 1, 1
		}
		return l.cycle
	}
	at = max(at, l.cycle)
	complex := slots > 1
	if at > l.cycle {
		l.cycle, l.group, l.uops = at, 0, 0
	}
	if l.group >= c.decoders || l.group > 0 && (complex || l.uops+slots > c.decoded) {
		l.cycle, l.group, l.uops = l.cycle+1, 0, 0
	}
	l.group++
	l.uops += slots
	done := l.cycle
	if slots > 4 { // microcode: four micro-ops in a cycle, and nothing else meanwhile
		l.cycle += int64((slots+3)/4) + 1
		l.group, l.uops = 0, 0
	}
	if len(l.waiting.times) > 0 {
		l.waiting.put(done)
	}
	return done
}

// predecode returns when an instruction's length is known: A. Abel and J. Reineke, "uiCA:
// accurate throughput prediction of basic blocks on recent Intel microarchitectures" (ICS
// 2022), section 4.1.1.
func (m *Machine) predecode(op *Op) int64 {
	l := &m.legacy
	c := &m.core.legacyFrontEnd
	addr := op.addr + m.shift
	first, last := (addr+uint64(op.code.opcode))>>4, (addr+uint64(op.code.length)-1)>>4
	for l.block < last || l.block > last+1 {
		if first == l.block && last == first+1 {
			l.count++ // the opcode is seen here, though the instruction ends in the next block
		}
		cost := int64(max((l.count+c.predecode-1)/c.predecode, 1))
		if l.lcps > 0 {
			cost += max(int64(c.lcp*l.lcps)-max(l.cost-1, 0), 0)
		}
		l.opened += cost
		l.cost, l.count, l.lcps = cost, 0, 0
		if l.block > last+1 || l.block+4 < last {
			l.block = last // a jump
		} else {
			l.block++
		}
	}
	if room := l.waiting.next(1); room > l.opened {
		l.opened = room
	}
	at := l.opened + int64(l.count/c.predecode)
	l.count++
	if op.code.lcp {
		l.lcps++
	}
	return at + 1
}

// unlamination says which accesses with an index are micro-ops of their own at dispatch. The
// decoders have them as one with the computation or the data.
type unlamination uint8

const (
	noUnlamination  unlamination = iota
	someUnlaminates              // of instructions that do not read what they write
	allUnlaminates
)

var unlaminationNames = map[string]unlamination{"": noUnlamination, "some": someUnlaminates, "all": allUnlaminates}

// unlaminated returns how many more micro-ops an op is at dispatch than before.
func (c *Core) unlaminated(op *Op, k *cost) int {
	if c.unlaminates == noUnlamination || op.Index == NoRegister || op.Class == LEAComplex || op.Class == LEA {
		return 0
	}
	if c.unlaminates == allUnlaminates {
		if op.Loads && k.ops > 0 || op.Stores {
			return 1
		}
		return 0
	}
	if !op.Loads || op.Stores || k.ops == 0 || op.writes[0] == NoRegister || slices.Contains(op.reads[:], op.writes[0]) {
		return 0
	}
	return 1
}
