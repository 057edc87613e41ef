package emulator

import (
	"cmp"
	"os"
	"slices"
	"sort"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// madeModule is the module of code that a process has made.
const madeModule = "[JIT]"

// madeCode names the code that a process has made.
type madeCode struct {
	dump  *object.MadeCode // nil without a jitdump
	path  string           // of the jitdump
	table []symbol         // of the perf map, by start
}

// A symbol is a function that a process has made.
type symbol struct {
	start, size uint64
	name        string
}

// A generation is code that was first executed at one time.
type generation struct {
	from uint32 // the first byte of its instructions, in the library
	time uint64 // of CLOCK_MONOTONIC
}

// madeAt says when an instruction that was made was first executed.
func (i *image) madeAt(in *instruction) uint64 {
	n := sort.Search(len(i.made), func(k int) bool { return i.made[k].from > in.code })
	if n == 0 {
		return 0
	}
	return i.made[n-1].time
}

// replaced forgets the instructions in the place of a block with other code.
func (l *library) replaced(i *image, addr uint64, code []byte, sizes []int) {
	differs, at, end := false, 0, addr+uint64(len(code))
	for _, size := range sizes {
		if n, ok := i.at.get(addr + uint64(at)); ok {
			in := l.inst(n)
			known := l.bytes[in.code : in.code+uint32(in.size)]
			differs = differs || !slices.Equal(known, code[at:at+size])
		}
		at += size
	}
	if !differs {
		return
	}
	for ; addr < end; addr++ {
		if n, ok := i.at.get(addr); ok {
			i.at.remove(addr)
			i.old = append(i.old, n)
		}
	}
}

// names reads what the process says of its code: a jitdump, or a perf map.
func (i *image) names() (m madeCode) {
	if i.dump != "" {
		if d, err := object.OpenJitdump(i.dump); err == nil {
			m.dump, m.path = object.NewMadeCode(d), i.dump
		}
	}
	m.table = perfMap(object.PerfMapName(i.pid))
	return m
}

// at returns the place of an instruction. With a jitdump its address is the one where its code
// was made, as the file has it.
func (m *madeCode) at(i *image, in *instruction) place {
	p := place{object: madeModule, addr: in.addr}
	if m.dump != nil {
		if c, addr, ok := m.dump.At(i.madeAt(in), in.addr); ok {
			p.source, p.line = c.Line(addr)
			p.object, p.function, p.addr = m.path, c.Name, addr
			return p
		}
	}
	n := sort.Search(len(m.table), func(i int) bool { return m.table[i].start > in.addr }) - 1
	if n >= 0 && in.addr-m.table[n].start < m.table[n].size {
		p.function = m.table[n].name
	}
	return p
}

// mostSymbols bounds what is read of a file that programs write for perf.
const mostSymbols = 1 << 20

// perfMap reads a perf map. Of several names for an address the last one counts.
func perfMap(path string) []symbol {
	if object.Regular(path) != nil {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var list []symbol
	_, _ = object.ReadPerfMap(f, func(start, size uint64, name []byte) bool {
		list = append(list, symbol{start, size, string(name)})
		return len(list) < mostSymbols
	})
	sorting.Stable(list, func(a, b symbol) int { return cmp.Compare(a.start, b.start) })
	return list
}
