package timing

import (
	"cmp"
	"debug/elf"
	"iter"
	"maps"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A library holds the code that processes execute, by file, with the sums of each
// instruction.
type library struct {
	images map[string]*image // nil for files without code
	room   int               // further instructions that fit
	arena  []instruction     // the instructions are taken from here
}

// Bounds on what a program can make large. The largest programs execute some hundred
// thousand different instructions.
const (
	maxInstructions = 1 << 20
	maxImages       = 1 << 12
)

func newLibrary() *library {
	return &library{images: map[string]*image{}, room: maxInstructions}
}

// close closes the files; the sums stay.
func (l *library) close() {
	for _, i := range l.images {
		if i != nil && i.file != nil {
			_ = i.file.Close()
			i.file = nil
		}
	}
}

// image returns the image of a file; nil if it has no code of a known kind.
func (l *library) image(path string) *image {
	i, ok := l.images[path]
	if !ok && len(l.images) < maxImages {
		i = openImage(path)
		l.images[path] = i
	}
	return i
}

// ordered returns all instructions, by file and address.
func (l *library) ordered() []*instruction {
	var list []*instruction
	for _, path := range slices.Sorted(maps.Keys(l.images)) {
		if i := l.images[path]; i != nil {
			list = append(list, i.sorted()...)
		}
	}
	return list
}

// An image is the code of a file.
type image struct {
	file    codeFile
	stubs   span // the procedure linkage table, for calls of functions of other files
	decoder disasm.Decoder
	ops     *pipeline.Decoder
	at      map[uint64]*instruction // by address in the file
}

// A span is the addresses from low on and below high.
type span struct{ low, high uint64 }

func (s span) has(addr uint64) bool { return addr >= s.low && addr < s.high }

// windowed returns the instructions that were in windows, by address.
func (i *image) windowed() []*instruction {
	return slices.DeleteFunc(i.sorted(), func(in *instruction) bool { return in.timed == 0 })
}

// sorted returns the instructions by address.
func (i *image) sorted() []*instruction {
	list := slices.Collect(maps.Values(i.at))
	sorting.Sort(list, func(a, b *instruction) int { return cmp.Compare(a.addr, b.addr) })
	return list
}

// A codeFile has code: an [object.Object].
type codeFile interface {
	Code(addr uint64, n int) ([]byte, error)
	Offset(addr uint64) (uint64, bool)
	Close() error
}

// openImage opens a file with code; nil if it has none of a known kind.
func openImage(path string) *image {
	f, err := object.Open(path, object.Options{})
	if err != nil {
		return nil
	}
	i, err := newImage(f, disasm.Arch(f.Arch))
	if err != nil {
		_ = f.Close()
		return nil
	}
	i.stubs = stubsOf(path)
	return i
}

// stubsOf returns the addresses of a file's procedure linkage table.
func stubsOf(path string) span {
	f, err := elf.Open(path)
	if err != nil {
		return span{}
	}
	defer f.Close()
	s := f.Section(".plt")
	if s == nil {
		return span{}
	}
	return span{s.Addr, s.Addr + s.Size}
}

func newImage(f codeFile, arch disasm.Arch) (*image, error) {
	decoder, err := disasm.New(arch, disasm.ATT)
	if err != nil {
		return nil, err
	}
	ops, err := pipeline.NewDecoder(arch)
	if err != nil {
		return nil, err
	}
	return &image{file: f, decoder: decoder, ops: ops, at: map[uint64]*instruction{}}, nil
}

// An instruction is one of a file, with its sums.
type instruction struct {
	addr   uint64 // in the file
	target uint64 // in the file, of its target
	next   uint64 // in the file, of the next instruction
	flow   disasm.Flow
	stops  bool  // the simulator ends a block here, although it is no branch
	again  ticks // cycles of each further repetition of a string instruction; otherwise 0
	op     pipeline.Op
	behind *instruction // the block at next, once it is known
	number int          // in the order of files and addresses, while records are put in order

	executed     int64 // in all that was followed
	mispredicted int64 // of these

	// In windows: executions, and their time with all branches predicted and data in the
	// first-level cache, and with the predictor's mispredictions.
	timed       int64
	ideal, real ticks
	waited      ticks // time that missing loads add, in the windows that were recorded
	parts       parts // of these, once they are settled

	misses misses
}

// ticks are fractions of a cycle. Sums of integers do not depend on their order, which
// changes from run to run if there are several processes.
type ticks int64

const ticksPerCycle = 1 << 20

func ticksOf(cycles float64) ticks {
	if cycles < 0 {
		return -ticksOf(-cycles)
	}
	return ticks(cycles*ticksPerCycle + 0.5)
}

func (t ticks) cycles() float64 { return float64(t) / ticksPerCycle }

// stub returns the instructions of the stub that an instruction calls; none if it calls
// none.
func (i *image) stub(in *instruction) []*instruction {
	if in.flow != disasm.Call && in.flow != disasm.Jump || !i.stubs.has(in.target) || i.stubs.has(in.addr) {
		return nil
	}
	var insts []*instruction
	for next := i.at[in.target]; next != nil && len(insts) < longestStub; next = i.at[next.next] {
		if insts = append(insts, next); next.flow != disasm.Next {
			break
		}
	}
	return insts
}

// longestStub is more instructions than any stub has.
const longestStub = 8

// longest bounds the bytes of a block.
const longest = valgrind.MaxInstructions * 15

// A stretch is consecutive instructions. All records consist of stretches, so that they
// take no more memory than there are instructions.
type stretch struct {
	first *instruction
	n     int
}

// all returns the instructions in their order.
func (s stretch) all() iter.Seq2[int, *instruction] {
	return func(yield func(int, *instruction) bool) {
		in := s.first
		for i := range s.n {
			if !yield(i, in) {
				return
			}
			in = in.behind
		}
	}
}

// block returns the instructions from an address on, up to the first that may jump, and the
// last of them. It returns none if there is no code there, or no room for more.
func (l *library) block(i *image, addr uint64) (s stretch, last *instruction) {
	code, err := i.file.Code(addr, longest)
	if err != nil {
		return s, nil
	}
	for s.n < valgrind.MaxInstructions && len(code) > 0 {
		in := i.at[addr]
		if in == nil {
			in = l.decode(i, code, addr)
		}
		// If the segments of a file overlap, code that ends in one goes on in another.
		if in == nil || in.next-in.addr > uint64(len(code)) {
			break
		}
		if s.n++; last == nil {
			s.first = in
		} else {
			last.behind = in
		}
		if last = in; in.flow != disasm.Next || in.stops {
			break
		}
		code = code[in.next-in.addr:]
		addr = in.next
	}
	return s, last
}

// decode reads an instruction; nil if it is none.
func (l *library) decode(i *image, code []byte, addr uint64) *instruction {
	inst := i.decoder.Decode(code, addr)
	if inst.Bad || l.room == 0 {
		return nil
	}
	if len(l.arena) == 0 {
		l.arena = make([]instruction, 256)
	}
	in := &l.arena[0]
	l.arena = l.arena[1:]
	l.room--
	bytes := code[:inst.Len]
	again := repetition(bytes)
	*in = instruction{addr: addr, target: inst.Target, next: inst.Next(), flow: inst.Flow,
		again: again, stops: again > 0 || stops(bytes), op: i.ops.Op(inst, code)}
	i.at[addr] = in
	return in
}

// stops reports whether an x86 instruction ends a block because the simulator does
// something else then: a system call, a trap, or the hint of a spinning loop.
func stops(code []byte) bool {
	switch code[0] {
	case 0xcc, 0xcd, 0xf4: // INT, HLT
		return true
	case 0x0f: // SYSCALL, SYSENTER
		return len(code) > 1 && (code[1] == 0x05 || code[1] == 0x34)
	case 0xf3: // PAUSE
		return len(code) > 1 && code[1] == 0x90
	}
	return false
}

// repetition reads an x86 string instruction with a repeat prefix, and returns the cycles
// of each further repetition; 0 for all other instructions. MOVS and STOS move 32 bytes a
// cycle, at least in all cores of the last ten years. The others take about two cycles: A.
// Fog, Instruction tables, under "string instructions".
func repetition(code []byte) ticks {
	repeated, width := false, 4
	for i, c := range code {
		switch {
		case c == 0xf2 || c == 0xf3:
			repeated = true
		case c == 0x66:
			width = 2
		case isPrefix(c):
		case c&0xf0 == 0x40 && i == len(code)-2: // REX
			if c&8 != 0 {
				width = 8
			}
		case !repeated || i != len(code)-1:
			return 0
		default:
			return repetitionOf(c, width)
		}
	}
	return 0
}

// isPrefix reports whether a byte is a prefix of addresses or segments.
func isPrefix(c byte) bool {
	switch c {
	case 0x67, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65:
		return true
	}
	return false
}

// repetitionOf is the cycles of a repetition of a string instruction, by its opcode and the
// bytes of an element; opcodes for single bytes ignore these.
func repetitionOf(opcode byte, width int) ticks {
	if opcode&1 == 0 {
		width = 1
	}
	switch opcode &^ 1 {
	case 0xa4, 0xaa: // MOVS, STOS
		return ticksPerCycle * ticks(width) / 32
	case 0xa6, 0xac, 0xae: // CMPS, LODS, SCAS
		return 2 * ticksPerCycle
	}
	return 0
}
