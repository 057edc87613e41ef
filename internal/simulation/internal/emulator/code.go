package emulator

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// A library is the code that processes executed, by file.
type library struct {
	images    map[string]*image
	indexes   object.Indexes // of symbols
	decoder   disasm.Decoder
	x86       bool
	ops       *pipeline.Decoder // nil if there is no model of a core for the instruction set
	bytes     []byte            // of the instructions
	chunks    [][]instruction   // by number
	n         int               // of instructions
	traffics  [][]traffic       // by number
	moved     uint32            // instructions with traffic
	functions []*function       // that were in windows
	copied    instruction       // of known
	decoded   sample
	unwatched windowed
	still     traffic
	forms     [1 << formBits]form
}

// chunk is how many instructions are made at a time.
const chunk = 512

// inst returns an instruction by its number.
func (l *library) inst(n uint32) *instruction { return &l.chunks[n/chunk][n%chunk] }

// maxInstructions bounds the different instructions of all processes.
const maxInstructions = 1 << 21

func newLibrary() *library { return &library{images: map[string]*image{}} }

// bytesRoom is the room for the bytes of instructions, of programs that are not large.
const bytesRoom = 1 << 20

// use prepares for the instruction set of a target of QEMU.
func (l *library) use(target string) error {
	arch, ok := targets[target]
	if !ok {
		return fmt.Errorf("programs for %.32s cannot be simulated", target)
	}
	if l.decoder != nil {
		return nil
	}
	var err error
	if l.decoder, err = disasm.New(arch, disasm.ATT); err != nil {
		return err
	}
	l.x86, l.bytes = arch == disasm.AMD64, make([]byte, 0, bytesRoom)
	if l.ops, err = pipeline.NewDecoder(arch); err != nil {
		l.ops = nil
	}
	return nil
}

// targets are the names of instruction sets in QEMU.
var targets = map[string]disasm.Arch{
	"x86_64": disasm.AMD64, "aarch64": disasm.ARM64, "riscv64": disasm.RISCV64, "ppc64le": disasm.PPC64LE,
}

// An image is the code of a file, or what a process has made while it ran.
type image struct {
	path string // "" for code of no file
	pid  int    // of the process, if there is no file

	number uint64 // from 0 on
	file   *object.Object
	at     index
	list   []uint32 // the numbers of instructions by address, once they were asked for

	lines     touched           // that were executed
	functions map[uint64]uint32 // that were in windows, by address: their numbers
	// Of what a process has made: the jitdump, the times of its code, and the numbers of
	// instructions that others replaced.
	dump string
	made []generation
	old  []uint32
}

// image returns that of a file; without a path that of a process.
func (l *library) image(path string, pid int) *image {
	key := path
	if path == "" {
		key = fmt.Sprintf("[anon:%d]", pid)
	}
	i := l.images[key]
	if i == nil {
		i = &image{path: path, pid: pid, number: uint64(len(l.images)), at: newIndex(), functions: map[uint64]uint32{}}
		if path != "" {
			i.file, _ = object.Open(path, object.Options{Debug: []string{debugFiles}, Indexes: l.indexes})
		}
		l.images[key] = i
	}
	return i
}

// debugFiles is a directory of separate debug files.
const debugFiles = "/usr/lib/debug"

// close closes the files.
func (l *library) close() {
	for _, i := range l.images {
		if i.file != nil {
			_ = i.file.Close()
		}
	}
}

// ordered returns the images by name.
func (l *library) ordered() []*image {
	var list []*image
	for _, key := range slices.Sorted(maps.Keys(l.images)) {
		list = append(list, l.images[key])
	}
	return list
}

// sorted returns the instructions of an image: first those that were replaced, then the others by
// address.
func (l *library) sorted(i *image) iter.Seq[*instruction] {
	if len(i.list) != i.at.n+len(i.old) {
		i.list = slices.Concat(i.old, i.at.list())
	}
	return func(yield func(*instruction) bool) {
		for _, n := range i.list {
			if !yield(l.inst(n)) {
				return
			}
		}
	}
}

// An instruction is one of an image. Few of a program's instructions miss a cache or are in a
// window: what is known of these is apart.
type instruction struct {
	addr    uint64 // in the file
	code    uint32 // where its bytes are, in the library
	size    uint8
	cold    bool // the first of its line of code
	streams bool // it stores past the caches
	*ran         // nil until the program has ended
	*traffic
	*sample
}

// A ran is how often an instruction was executed, and how often by samples.
type ran struct {
	executed int64
	seen     float64
}

// end makes room for the executions of all instructions.
func (l *library) end() {
	for _, c := range l.chunks {
		all := make([]ran, chunk)
		for i := range c {
			c[i].ran = &all[i]
		}
	}
}

// Traffic is an instruction's data that was not in the nearest cache, in all of the run.
type traffic struct {
	misses [2][caches.Levels]int64 // of loads and stores, by the level that answered them
	pages  [caches.Levels]int64    // accesses by the TLB that had the page
	lines  int64                   // that moved to or from memory
	number uint32                  // from 1 on
	_      [20]byte                // misses are in one line of the cache
}

// trafficOf returns the traffic of an instruction, and makes it.
func (l *library) trafficOf(in *instruction) *traffic {
	if in.traffic == nil {
		if l.moved%chunk == 0 {
			l.traffics = append(l.traffics, make([]traffic, chunk))
		}
		l.moved++
		in.traffic = l.traffic(l.moved)
		in.traffic.number = l.moved
	}
	return in.traffic
}

// traffic returns traffic by its number.
func (l *library) traffic(n uint32) *traffic { return &l.traffics[(n-1)/chunk][(n-1)%chunk] }

// A sample is where an instruction goes on, and what samples say of it: mispredictions, and
// fetches that missed the first level.
type sample struct {
	mispredicted float64
	fetches      float64
	ahead        int32 // where it jumps to, less its address and 1; 0 if that is not known
	flow         disasm.Flow
	*windowed
}

// target returns where an instruction jumps to, as an address in the file; 0 if that is not known.
func (in *instruction) target() uint64 {
	if in.ahead == 0 {
		return 0
	}
	return in.addr + uint64(int64(in.ahead)) + 1
}

// A windowed is what an instruction is that was in a window, and what windows say of it.
type windowed struct {
	_ [0]func() // it is not compared: the compiler makes no code for that

	repeats    bool  // a string instruction with a repeat prefix
	prefetches bool  // it asks for a line, at an address that QEMU does not say
	known      bool  // it was in a window before the latest one
	window     int32 // the latest that it was in
	op         pipeline.Op

	// Executions and accesses, loads and stores.
	watched  float64
	accesses [2]float64
	// Of these, what counts: executions, the cycles with predicted branches and data in the
	// first-level cache, those of mispredictions, and those of caches.
	timed              float64
	ideal, lost, waits float64
	late               [parts]float64 // cycles that accesses were late, by reason
	sampled            float64        // cycles that a sampler by the clock would find it at
	early              early

	of   *function      // once it was in a window
	mean [costs]float64 // of its cycles in the windows before the latest one
	*outcome
}

// An outcome is what the windows say of an instruction, once all have ended.
type outcome struct {
	settled  parts3
	variance [costs]float64 // of its costs in the whole run
}

// wasTimed reports whether the instruction was in a window.
func (in *instruction) wasTimed() bool {
	return in.sample != nil && in.windowed != nil && in.timed > 0
}

// The reasons that an access is late.
const (
	lateL2 = iota
	lateL3
	lateMemory
	latePages
	parts
)

// parts3 are the cycles of an instruction per execution.
type parts3 struct {
	cycles, lost float64
	waits        [parts]float64
}

// whole returns the code of a block without a last instruction that is not whole. One that goes on in the
// next page is a block of its own. QEMU 7.2 has its first part at the end of the block before. It reads up to
// mostRead bytes at a time.
func (l *library) whole(addr uint64, code []byte, sizes []int) ([]byte, []int) {
	last := len(sizes) - 1
	if last == 0 || -(addr+uint64(len(code)))%4096 >= mostRead {
		return code, sizes
	}
	before := len(code) - sizes[last]
	if inst := l.decoder.Decode(code[before:], addr+uint64(before)); !inst.Bad {
		return code, sizes
	}
	return code[:before], sizes[:last]
}

// mostRead is the size of the largest constant.
const mostRead = 8

// instructions finds or makes those of a block, and appends their numbers to a list. Sizes are those of
// QEMU's decoder. It returns nil if there are too many.
func (l *library) instructions(list []uint32, i *image, addr uint64, code []byte, sizes []int) []uint32 {
	if i.file == nil {
		l.replaced(i, addr, code, sizes)
	}
	for _, size := range sizes {
		n, ok := i.at.get(addr)
		if !ok {
			if l.n == maxInstructions {
				return nil
			}
			n = uint32(l.n)
			i.at.add(addr, n)
			if l.n%chunk == 0 {
				l.chunks = append(l.chunks, make([]instruction, chunk))
			}
			l.n++
			*l.inst(n) = instruction{addr: addr, code: uint32(len(l.bytes)), size: uint8(size), cold: i.lines.first(addr >> caches.LineBits),
				streams: l.x86 && streams(code[:size])}
			l.bytes = append(l.bytes, code[:size]...)
		}
		list = append(list, n)
		addr, code = addr+uint64(size), code[size:]
	}
	return list
}

// look returns the instruction, with where it goes on.
func (l *library) look(in *instruction) *instruction {
	if in.sample == nil {
		in.sample = &sample{}
		l.flow(in)
	}
	return in
}

// watch returns the instruction, decoded for windows.
func (l *library) watch(in *instruction) *instruction {
	if in.sample == nil || in.windowed == nil {
		w := &windowed{}
		inst, code := l.flow(l.look(in))
		if in.windowed = w; l.ops != nil {
			w.op = l.ops.Op(inst, code)
			w.repeats, w.prefetches = l.x86 && !inst.Bad && repeats(code), l.x86 && !inst.Bad && prefetches(code)
		}
	}
	return in
}

// known returns the instruction, or until the next call a copy with what is not known of it.
func (l *library) known(in *instruction) *instruction {
	watched := in.sample != nil && in.windowed != nil
	if watched && in.traffic != nil {
		return in
	}
	l.copied = *in
	if in.traffic == nil {
		l.copied.traffic = &l.still
	}
	if watched {
		return &l.copied
	}
	if l.decoded = (sample{}); in.sample != nil {
		l.decoded = *in.sample
	}
	l.copied.sample, l.unwatched = &l.decoded, windowed{}
	l.decoded.windowed = &l.unwatched
	if inst, code := l.flow(&l.copied); l.ops != nil {
		l.unwatched.op.Loads, l.unwatched.op.Stores = l.ops.Accesses(inst, code)
	}
	return &l.copied
}

// A form is what the bytes of an instruction say of it. Programs have the same bytes again and again.
type form struct {
	code          [16]byte
	size          uint8
	loads, stores bool
	flow          disasm.Flow
}

const formBits = 12

// formOf returns the form of an instruction that has no sample.
func (l *library) formOf(in *instruction) form {
	f := form{size: in.size}
	copy(f.code[:], l.bytes[in.code:in.code+uint32(in.size)])
	lo, hi := binary.LittleEndian.Uint64(f.code[:]), binary.LittleEndian.Uint64(f.code[8:])
	kept := &l.forms[(lo^hi<<7^uint64(in.size))*0x9e3779b97f4a7c15>>(64-formBits)]
	if kept.code != f.code || kept.size != f.size {
		known := l.known(in)
		f.loads, f.stores, f.flow = known.op.Loads, known.op.Stores, known.flow
		*kept = f
	}
	return *kept
}

// flow finds where an instruction with a sample goes on.
func (l *library) flow(in *instruction) (inst disasm.Inst, code []byte) {
	code = l.bytes[in.code : in.code+uint32(in.size)]
	inst = l.decoder.Decode(code, in.addr)
	if inst.Bad || inst.Len != len(code) {
		return disasm.Inst{Addr: in.addr, Bad: true}, code
	}
	if in.sample.flow = inst.Flow; inst.Target != 0 {
		in.ahead = int32(inst.Target - in.addr - 1)
	}
	return inst, code
}

// streams reports whether an x86 instruction stores past the caches: MOVNTI, MOVNTPS,
// MOVNTPD, MOVNTDQ, with or without VEX prefix.
func streams(code []byte) bool {
	for i := 0; i < len(code)-2; i++ {
		switch c := code[i]; {
		case c == 0x66 || c&0xf0 == 0x40 || c == 0xf2 || c == 0xf3:
			continue
		case c == 0x0f:
			return code[i+1] == 0xc3 || code[i+1] == 0x2b || code[i+1] == 0xe7 && i > 0 && code[0] == 0x66
		case c == 0xc5 && i == 0:
			return code[2] == 0x2b || code[2] == 0xe7 && code[1]&3 == 1
		case c == 0xc4 && i == 0 && len(code) > 3:
			return code[1]&0x1f == 1 && (code[3] == 0x2b || code[3] == 0xe7 && code[2]&3 == 1)
		}
		return false
	}
	return false
}

// repeats reports whether an x86 instruction is a string instruction with a repeat prefix.
// QEMU executes each repetition as a block.
func repeats(code []byte) bool {
	repeated := false
	for i, c := range code {
		switch {
		case c == 0xf2 || c == 0xf3:
			repeated = true
		case c == 0x66 || c == 0x67 || c&0xf0 == 0x40 && i == len(code)-2:
		case !repeated || i != len(code)-1:
			return false
		default:
			return c&^1 == 0xa4 || c&^1 == 0xa6 || c&^1 == 0xaa || c&^1 == 0xac || c&^1 == 0xae
		}
	}
	return false
}

// prefetches reports whether an x86 instruction is PREFETCHT0, T1, T2, NTA or PREFETCHW.
func prefetches(code []byte) bool {
	for i := 0; i < len(code)-2; i++ {
		switch c := code[i]; {
		case c == 0x66 || c == 0x67 || c&0xf0 == 0x40:
			continue
		case c == 0x0f:
			of := code[i+2] >> 3 & 7
			return code[i+2]>>6 != 3 && (code[i+1] == 0x18 && of < 4 || code[i+1] == 0x0d && of < 2)
		}
		return false
	}
	return false
}
