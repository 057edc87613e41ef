package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/object"
)

// The header of a kept list of the kernel's symbols: the mark with its version, and a checksum of
// the rest of the header. Then come the addresses of _text and _stext, and the number of ranges. Each block
// has an entry: where its first range starts, and where it ends in the file. A block has a checksum, then
// starts, sizes and ends of names among its own. These follow. Numbers are little-endian. A kernel has some
// hundred blocks, and a recording needs a part of them.
const (
	kallsymsMark   = "cyclestack kal 2"
	kallsymsHeader = len(kallsymsMark) + 4 + 16 + 4
	kallsymsEntry  = 8 + 4
	kallsymsBlock  = 256 // ranges
	kallsymsRange  = 8 + 8 + 4
	kallsymsFirst  = 16 << 10 // bytes to read at first
	mostKeptRanges = 1 << 21
)

// markNames are the symbols that kernels are compared by.
var markNames = [2]string{"_text", "_stext"}

// packed returns a settled table as it is kept.
func (t *nameTable) packed() []byte {
	le, n := binary.LittleEndian, len(t.ranges)
	header := kallsymsHeader + blocksOf(n)*kallsymsEntry
	out := make([]byte, header, header+4*blocksOf(n)+kallsymsRange*n+len(t.names))
	at := copy(out, kallsymsMark) + 4
	for i, name := range markNames {
		le.PutUint64(out[at+8*i:], t.marks[name])
	}
	le.PutUint32(out[kallsymsHeader-4:], uint32(n))
	for from := 0; from < n; from += kallsymsBlock {
		list, block, end := t.ranges[from:min(from+kallsymsBlock, n)], len(out), uint32(0)
		out = append(out, 0, 0, 0, 0)
		for _, r := range list {
			end += uint32(r.length)
			out = le.AppendUint32(le.AppendUint64(le.AppendUint64(out, r.start), r.size), end)
		}
		for _, r := range list {
			out = append(out, t.names[r.name:r.name+uint32(r.length)]...)
		}
		object.Seal(out[block:], 0)
		entry := out[kallsymsHeader+from/kallsymsBlock*kallsymsEntry:]
		le.PutUint64(entry, list[0].start)
		le.PutUint32(entry[8:], uint32(len(out)))
	}
	object.Seal(out[:header], len(kallsymsMark))
	return out
}

// blocksOf returns how many blocks so many ranges have.
func blocksOf(ranges int) int { return (ranges + kallsymsBlock - 1) / kallsymsBlock }

// keptBlocks are a kept list, read block by block as they are asked for.
type keptBlocks struct {
	read   func(at int64, n int) []byte
	whole  func() (*nameTable, error) // reads the list that was kept
	mu     sync.Mutex                 // of the table too
	list   []keptBlock                // nil: the table has all
	ranges int
}

type keptBlock struct {
	start   uint64 // of the first range
	at, end int    // in the file
	data    []byte // nil until it was read
}

// parseKallsyms reads the header of a list that was kept; nil if it is damaged.
func parseKallsyms(read func(at int64, n int) []byte, whole func() (*nameTable, error)) *nameTable {
	le, at := binary.LittleEndian, len(kallsymsMark)
	data := read(0, kallsymsFirst)
	if len(data) < kallsymsHeader || string(data[:at]) != kallsymsMark {
		return nil
	}
	n := int(le.Uint32(data[kallsymsHeader-4:]))
	size := kallsymsHeader + blocksOf(n)*kallsymsEntry
	if n > mostKeptRanges {
		return nil
	}
	if size > len(data) {
		data = read(0, size)
	}
	if len(data) < size || !object.Sealed(data[:size], at) {
		return nil
	}
	k := &keptBlocks{read: read, whole: whole, list: make([]keptBlock, blocksOf(n)), ranges: n}
	t := &nameTable{marks: map[string]uint64{}, kept: k}
	for i, name := range markNames {
		if v := le.Uint64(data[at+4+8*i:]); v != 0 {
			t.marks[name] = v
		}
	}
	begin := size
	for i := range k.list {
		entry := data[kallsymsHeader+i*kallsymsEntry:]
		b := keptBlock{start: le.Uint64(entry), at: begin, end: int(le.Uint32(entry[8:]))}
		if begin = b.end; b.end-b.at < 4+kallsymsRange*k.count(i) || i > 0 && b.start <= k.list[i-1].start {
			return nil
		}
		k.list[i] = b
	}
	return t
}

// count returns how many ranges a block has.
func (k *keptBlocks) count(i int) int { return min(kallsymsBlock, k.ranges-i*kallsymsBlock) }

// near returns where the ranges are that an address may be in: from one on up to another one.
func (k *keptBlocks) near(t *nameTable, addr uint64) (from, to int) {
	i := sort.Search(len(k.list), func(i int) bool { return k.list[i].start > addr }) - 1
	if i >= 0 {
		k.load(t, i)
	}
	switch {
	case k.list == nil:
		return 0, len(t.ranges)
	case i < 0:
		return 0, 0
	}
	return i * kallsymsBlock, i*kallsymsBlock + k.count(i)
}

// load reads a block. If it is damaged, the kernel's own list replaces the table.
func (k *keptBlocks) load(t *nameTable, i int) {
	b := &k.list[i]
	if b.data != nil {
		return
	}
	data := k.read(int64(b.at), b.end-b.at)
	if len(data) == b.end-b.at && object.Sealed(data, 0) && k.sound(i, data) {
		b.data = data
		return
	}
	k.list = nil
	if whole, err := k.whole(); err == nil {
		t.ranges, t.names = whole.ranges, whole.names
	}
}

// sound reports whether the ranges of a block are in order and have names.
func (k *keptBlocks) sound(i int, data []byte) bool {
	b, n, begin, last := keptBlock{data: data}, k.count(i), uint32(0), uint64(0)
	for j := range n {
		start, _, end := b.entry(j)
		if end < begin || end-begin > 1<<16-1 || int(end) > len(data)-4-n*kallsymsRange || j > 0 && start <= last {
			return false
		}
		begin, last = end, start
	}
	first, _, _ := b.entry(0)
	return first == k.list[i].start && (i+1 == len(k.list) || last < k.list[i+1].start)
}

// entry returns the start and the size of a range of a block, and where its name ends.
func (b *keptBlock) entry(j int) (start, size uint64, end uint32) {
	entry := b.data[4+j*kallsymsRange:]
	return binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint32(entry[16:])
}

// entry returns the start and the size of a range, and its name.
func (k *keptBlocks) entry(i int) (start, size uint64, name []byte) {
	b, j, begin := &k.list[i/kallsymsBlock], i%kallsymsBlock, uint32(0)
	if j > 0 {
		_, _, begin = b.entry(j - 1)
	}
	start, size, end := b.entry(j)
	return start, size, b.data[4+k.count(i/kallsymsBlock)*kallsymsRange:][begin:end]
}

// readList reads a list of symbols. One of the running kernel that was kept holds until the next
// start, or until modules change.
func (c Config) readList(path string) (*nameTable, error) {
	name := ""
	if path == ownKallsyms && c.Indexes != nil {
		name = runningName()
	}
	if name == "" {
		return openKallsyms(path)
	}
	read := func(at int64, n int) []byte { return c.Indexes.Read(name, at, n) }
	whole := func() (*nameTable, error) {
		t, err := openKallsyms(path)
		if err == nil && !t.passing {
			c.Indexes.Write(name, t.packed())
		}
		return t, err
	}
	if t := parseKallsyms(read, whole); t != nil {
		return t, nil
	}
	return whole()
}

// runningName returns the name of the index of the running kernel with its modules; "" if it
// does not say which it is. Its addresses change from boot to boot.
func runningName() string {
	id := runningBuildID()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id == "" || err != nil {
		return ""
	}
	modules, err := os.ReadFile("/proc/modules") // of a kernel without modules it is absent
	if err != nil && !os.IsNotExist(err) {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(boot), string(modules)}, "\x00")))
	return id + "." + hex.EncodeToString(sum[:16])
}
