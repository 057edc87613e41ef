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
)

// A library holds the code that processes execute, by file, with what was found out of
// each instruction.
type library struct {
	images map[string]*image // nil for what is no file with code
	room   int               // instructions that there is room for
	arena  []instruction     // of which instructions are taken
}

// What a program can make large has a limit. The largest programs execute some hundred
// thousand different instructions.
const (
	maxInstructions = 1 << 20
	maxImages       = 1 << 12
)

func newLibrary() *library {
	return &library{images: map[string]*image{}, room: maxInstructions}
}

// close closes the files; what was found out stays.
func (l *library) close() {
	for _, i := range l.images {
		if i != nil && i.file != nil {
			_ = i.file.Close()
			i.file = nil
		}
	}
}

// image returns a file's; nil if it has no code that is understood.
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
	stubs   span // through which functions of other files are called
	decoder disasm.Decoder
	ops     *pipeline.Decoder
	at      map[uint64]*instruction // by address in the file
}

// A span is the addresses from low on, and less than high.
type span struct{ low, high uint64 }

func (s span) has(addr uint64) bool { return addr >= s.low && addr < s.high }

// windowed returns the instructions that were in windows, by address.
func (i *image) windowed() []*instruction {
	return slices.DeleteFunc(i.sorted(), func(in *instruction) bool { return in.timed == 0 })
}

// sorted returns the instructions by address.
func (i *image) sorted() []*instruction {
	return slices.SortedFunc(maps.Values(i.at), func(a, b *instruction) int { return cmp.Compare(a.addr, b.addr) })
}

// A codeFile has code: an [object.Object].
type codeFile interface {
	Code(addr uint64, n int) ([]byte, error)
	Offset(addr uint64) (uint64, bool)
	Close() error
}

// openImage opens a file with code; nil if it has none that is understood.
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

// stubsOf returns where a file has its procedure linkage table.
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

// An instruction is one of a file, with the sums of what was found out of it.
type instruction struct {
	addr   uint64 // in the file
	target uint64 // in the file, of what jumps there
	next   uint64 // in the file, behind it
	flow   disasm.Flow
	stops  bool  // the simulator ends a block here, although it is no branch
	turn   ticks // of a string instruction that repeats, each of whose turns is a block, what it takes; otherwise 0
	op     pipeline.Op
	behind *instruction // at next, once a block goes on there
	number int          // in the order of files and addresses, while records are put in order

	executed     int64 // in all that was followed
	mispredicted int64 // of that

	// In windows: executions, and what these took with all branches predicted and all
	// data in the first-level cache, and with the predictor's mispredictions.
	timed       int64
	ideal, real ticks
	waited      ticks // what loads that miss add to that, in the windows that were recorded
	parts       parts // of these, once they are settled

	misses misses
}

// ticks are fractions of a cycle. Sums of integers do not depend on their order, as
// processes that run at a time give them.
type ticks int64

const ticksPerCycle = 1 << 20

func ticksOf(cycles float64) ticks {
	if cycles < 0 {
		return -ticksOf(-cycles)
	}
	return ticks(cycles*ticksPerCycle + 0.5)
}

func (t ticks) cycles() float64 { return float64(t) / ticksPerCycle }

// stub returns the instructions of the stub that an instruction goes to; none if it goes
// to none.
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

// longest is the most bytes that the instructions of a block have.
const longest = valgrind.MaxInstructions * 15

// A stretch is instructions that follow each other. All that is kept of what was executed
// consists of these, so that it takes no more memory than there are instructions.
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

// block returns the instructions from an address on, to the first that may leave the
// straight line, and the last of them; none if there is no code there, or no room for more.
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
		// Where the segments of a file overlap, code ends in one that goes on in another.
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
	turn := turns(bytes)
	*in = instruction{addr: addr, target: inst.Target, next: inst.Next(), flow: inst.Flow,
		turn: turn, stops: turn > 0 || stops(bytes), op: i.ops.Op(inst, code)}
	i.at[addr] = in
	return in
}

// stops reports whether an instruction of x86 ends a block, as the simulator has to do
// something else then: a system call, a trap, or the hint that a loop waits.
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

// turns reads a string instruction of x86 with a prefix that repeats it, and returns how
// many cycles each further turn takes; 0 for all others. MOVS and STOS go through 32
// bytes a cycle, in all cores of the last ten years at the least; the others take
// about two cycles: A. Fog, Instruction tables, under "string instructions".
func turns(code []byte) ticks {
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
			return turnsOf(c, width)
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

// turnsOf is the time of a turn of a string instruction, given its opcode and how many
// bytes it goes through unless it is one for single bytes.
func turnsOf(opcode byte, width int) ticks {
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
