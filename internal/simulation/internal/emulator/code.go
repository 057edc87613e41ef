package emulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// A library is the code that processes executed, by file.
type library struct {
	images  map[string]*image
	room    int // further instructions that fit
	decoder disasm.Decoder
	ops     *pipeline.Decoder // nil if there is no model of a core for the instruction set
}

// maxInstructions bounds the different instructions of all processes.
const maxInstructions = 1 << 21

func newLibrary() *library { return &library{images: map[string]*image{}, room: maxInstructions} }

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
	file *object.Object
	at   map[uint64]*instruction
}

// image returns that of a file; without a path that of a process.
func (l *library) image(path string, pid int) *image {
	key := path
	if path == "" {
		key = fmt.Sprintf("[anon:%d]", pid)
	}
	i := l.images[key]
	if i == nil {
		i = &image{path: path, pid: pid, at: map[uint64]*instruction{}}
		if path != "" {
			i.file, _ = object.Open(path, object.Options{Debug: []string{debugFiles}})
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

// sorted returns the instructions by address.
func (i *image) sorted() []*instruction {
	return slices.SortedFunc(maps.Values(i.at), func(a, b *instruction) int { return cmp.Compare(a.addr, b.addr) })
}

// An instruction is one of an image, with what is known of it.
type instruction struct {
	addr, next, target uint64 // in the file
	flow               disasm.Flow
	streams            bool // stores past the caches
	repeats            bool // a string instruction with a repeat prefix
	op                 pipeline.Op

	executed int64
	// In all of the run: misses of loads and stores, by the level that answered them.
	misses [2][caches.Levels]int64
	// And accesses by the TLB that had the page, and lines that moved to or from memory.
	pages [caches.Levels]int64
	lines int64
	cold  bool // the first of its line of code
	// In samples: executions, mispredictions of them, and fetches that missed, by level.
	seen, mispredicted int64
	fetches            [caches.Levels]int64
	// In windows: executions and accesses, loads and stores.
	watched  int64
	accesses [2]int64
	// Of these, what counts: executions, the cycles with branches predicted and data in the
	// first-level cache, those that mispredictions add, and those that caches add.
	timed              int64
	ideal, lost, waits float64
	late               [parts]float64 // cycles that accesses were late, by reason

	settled parts3
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

// instructions decodes a block. Sizes are those of QEMU's decoder.
func (l *library) instructions(i *image, addr uint64, code []byte, sizes []int) []*instruction {
	list := make([]*instruction, 0, len(sizes))
	for _, n := range sizes {
		in := i.at[addr]
		if in == nil {
			if l.room == 0 {
				return nil
			}
			l.room--
			in = l.decode(addr, code[:n])
			in.cold = len(list) == 0 || addr>>caches.LineBits != list[len(list)-1].addr>>caches.LineBits
			i.at[addr] = in
		}
		list = append(list, in)
		addr, code = addr+uint64(n), code[n:]
	}
	return list
}

func (l *library) decode(addr uint64, code []byte) *instruction {
	inst := l.decoder.Decode(code, addr)
	in := &instruction{addr: addr, next: addr + uint64(len(code))}
	if inst.Bad || inst.Len != len(code) {
		if l.ops != nil {
			in.op = l.ops.Op(disasm.Inst{Addr: addr, Bad: true}, code)
		}
		return in
	}
	in.target, in.flow = inst.Target, inst.Flow
	if l.ops != nil {
		in.op = l.ops.Op(inst, code)
		in.streams, in.repeats = streams(code), repeats(code)
	}
	return in
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
