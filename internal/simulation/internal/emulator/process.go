package emulator

import (
	"time"

	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
)

// A run is the state that all processes and threads share. It is locked while one of them is
// simulated.
type run struct {
	sync.Mutex
	defined    *sync.Cond // a process has further blocks, or ended
	options    *Options
	dir        string
	code       *library
	shared     *caches.Shared
	by         map[int]*process // by number; the latest program of each
	all        []*process
	whole      function // all windows
	begun      int32    // of the windows
	cycles     float64  // of the windows
	translated int      // instructions, in each process that executes them
	clock      clock
	calls      indirects
	left       []string // programs that were executed outside
	faults     error    // what was written cannot be
	ended      sync.WaitGroup
	since      time.Time     // the simulation began
	before     time.Duration // processor time of this process then
	told       time.Time     // when Progress was called last
}

// A process is one program of a process.
type process struct {
	run    *run
	pid    int
	parent *process
	base   uint32   // the blocks up to here are the parent's
	blocks []*block // the following ones
	room   []block  // for the next ones
	// How many instructions all blocks up to here have, and the numbers of the following ones. Those of a
	// block are together: behind a full part are those that begin the next one too.
	first, n uint32
	numbers  [][]uint32
	missing  [][]missed // as numbers
	maps     []mapping
	counts   string // the file
	latest   uint32 // the block that was executed last, by the first thread
	ended    bool
	// touched are its pages. A forked process shares them with its parent.
	touched *touched
	cores   []*core
	threads int
}

// A mapping is a part of a file in memory.
type mapping struct {
	start, end, offset uint64
	image              *image
}

// A block is a piece of code in memory.
type block struct {
	start, end uint64
	bias       uint64   // of addresses in memory over those in the file
	insts      []uint32 // numbers
	seen       float64  // executions by samples
	image      *image
	of         *function // once it was in a window
	lines      []uint32  // the numbers of those that begin a line of code, once it was in a sample
}

// Bounds on what the plugin may write.
const (
	maxLine      = 1 << 17
	maxBlocks    = 1 << 20
	maxMappings  = 1 << 14
	maxProcesses = 1 << 14
	mostInsns    = 512
)

var errWire = errors.New("the plugin's output contradicts itself")

// control reads what a process says of itself, until it ends.
func (r *run) control(p *process, in *bufio.Reader) error {
	err := p.messages(in)
	p.rest()
	r.Lock()
	p.ended = true
	r.defined.Broadcast()
	r.Unlock()
	return err
}

// messages takes messages: lines of text. Behind that of a block are the sizes of its instructions, and
// then their bytes.
func (p *process) messages(in *bufio.Reader) error {
	var b said
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line = line[:len(line)-1]
		if rest, ok := bytes.CutPrefix(line, []byte("block ")); ok {
			if err = b.read(rest, in); err == nil {
				p.run.Lock()
				err = p.define(&b)
				p.run.Unlock()
			}
		} else {
			p.run.Lock()
			err = p.take(string(line))
			p.run.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// mostSaid is the room for messages in the file of counts.
const mostSaid = 1 << 16

// rest takes the messages that an ended process has not sent: they are in its file.
func (p *process) rest() {
	f, err := os.Open(filepath.Join(p.run.dir, p.counts))
	if err != nil {
		return
	}
	defer f.Close()
	var size [8]byte
	const at = maxBlocks * slots * 8
	if _, err := f.ReadAt(size[:], at); err != nil {
		return
	}
	text := make([]byte, min(binary.LittleEndian.Uint64(size[:]), mostSaid))
	if _, err := f.ReadAt(text, at+int64(len(size))); err != nil {
		return
	}
	_ = p.messages(bufio.NewReader(bytes.NewReader(text))) // the last one may not be whole
}

// take takes a line of the control connection.
func (p *process) take(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "maps":
		p.maps = nil
	case "map":
		return p.mapped(rest)
	case "now":
		time, err := strconv.ParseUint(rest, 16, 64)
		if err != nil {
			return errWire
		}
		i := p.run.code.image("", p.pid)
		i.made = append(i.made, generation{uint32(len(p.run.code.bytes)), time})
	case "left":
		if len(p.run.left) < 100 {
			p.run.left = append(p.run.left, rest)
		}
	case "clock":
		var reads, timers int64
		if n, err := fmt.Sscanf(rest, "%d %d", &reads, &timers); n != 2 || err != nil {
			return errWire
		}
		p.run.clock.reads += reads
		p.run.clock.timers += timers
	case "exec", "exit":
	default:
		return errWire
	}
	return nil
}

// mapped takes a mapping: its start, end, offset and file.
func (p *process) mapped(text string) error {
	f := strings.SplitN(text, " ", 4)
	if len(f) != 4 || len(p.maps) >= maxMappings {
		return errWire
	}
	var m mapping
	for i, to := range []*uint64{&m.start, &m.end, &m.offset} {
		v, err := strconv.ParseUint(f[i], 16, 64)
		if err != nil {
			return errWire
		}
		*to = v
	}
	if len(p.run.code.images) < maxMappings {
		if object.IsJitdump(f[3]) {
			p.run.code.image("", p.pid).dump = f[3]
		}
		m.image = p.run.code.image(f[3], 0)
		p.maps = append(p.maps, m)
	}
	return nil
}

// What a process has said of a block: its number, address and code.
type said struct {
	id, addr uint64
	code     []byte
	sizes    []int // of its instructions

	raw [mostInsns * mostSize]byte
	all [mostInsns]int
}

// mostSize is the most bytes of an instruction.
const mostSize = 16

// read reads a block, behind its word.
func (b *said) read(line []byte, in io.Reader) error {
	var n uint64
	for _, to := range []*uint64{&b.id, &b.addr, &n} {
		digits, rest, _ := bytes.Cut(line, []byte(" "))
		v, err := strconv.ParseUint(string(digits), 16, 64)
		if err != nil {
			return errWire
		}
		*to, line = v, rest
	}
	if n == 0 || n > mostInsns || len(line) > 0 {
		return errWire
	}
	if _, err := io.ReadFull(in, b.raw[:n]); err != nil {
		return errWire
	}
	bytes := 0
	b.sizes = b.all[:n]
	for i := range b.sizes {
		size := int(b.raw[i])
		if size == 0 || size > mostSize {
			return errWire
		}
		b.sizes[i], bytes = size, bytes+size
	}
	b.code = b.raw[:bytes]
	if _, err := io.ReadFull(in, b.code); err != nil {
		return errWire
	}
	return nil
}

// define takes a block.
func (p *process) define(said *said) error {
	addr := said.addr
	if said.id != uint64(p.base)+uint64(len(p.blocks))+1 || said.id >= maxBlocks {
		return errWire
	}
	p.run.translated += len(said.sizes)
	code, sizes := p.run.code.whole(addr, said.code, said.sizes)
	image, bias := p.find(addr)
	if len(p.room) == cap(p.room) {
		p.room = make([]block, 0, blocksRoom)
	}
	p.room = append(p.room, block{start: addr, end: addr + uint64(len(code)), bias: bias, image: image})
	b := &p.room[len(p.room)-1]
	list := p.run.code.instructions(p.next(), image, addr-bias, code, sizes)
	b.insts = slices.Clip(list)
	p.numbered(list, len(said.sizes))
	p.blocks = append(p.blocks, b)
	p.run.defined.Broadcast()
	return nil
}

// How many numbers of instructions a part has, and how many blocks are made at a time.
const (
	partNumbers = 1 << 12
	blocksRoom  = 64
)

// next returns the place for the numbers of the next block's instructions.
func (p *process) next() []uint32 {
	if len(p.numbers) == 0 {
		p.numbers = [][]uint32{make([]uint32, 0, partNumbers+mostInsns)}
	}
	part := p.numbers[len(p.numbers)-1]
	return part[len(part):]
}

// numbered adds the instructions of a block that are in the place of next. Further ones are not known.
func (p *process) numbered(list []uint32, all int) {
	part := append(p.numbers[len(p.numbers)-1], list...)
	for range all - len(list) {
		part = append(part, math.MaxUint32)
	}
	p.n += uint32(all)
	p.numbers[len(p.numbers)-1] = part
	if len(part) >= partNumbers {
		next := make([]uint32, 0, partNumbers+mostInsns)
		p.numbers = append(p.numbers, append(next, part[partNumbers:]...))
	}
}

// find returns the image of the code at an address, and how much higher it is in memory.
func (p *process) find(addr uint64) (i *image, bias uint64) {
	for _, m := range p.maps {
		if addr < m.start || addr >= m.end || m.image.file == nil {
			continue
		}
		if at, ok := m.image.file.Addr(addr - m.start + m.offset); ok {
			return m.image, addr - at
		}
	}
	return p.run.code.image("", p.pid), 0
}

// block returns a block by its number, once it is defined; nil if it never will be.
func (p *process) block(id uint32) *block {
	for p != nil && id <= p.base {
		p = p.parent
	}
	if p == nil || id == 0 {
		return nil
	}
	at := int(id - p.base - 1)
	for at >= len(p.blocks) {
		if p.ended {
			return nil
		}
		p.run.defined.Wait()
	}
	return p.blocks[at]
}

// number returns the library's number of an instruction, once it is defined; false if it
// never will be.
func (p *process) number(n uint32) (uint32, bool) {
	for p != nil && n < p.first {
		p = p.parent
	}
	if p == nil || n == math.MaxUint32 {
		return 0, false
	}
	for n -= p.first; n >= p.n; {
		if p.ended {
			return 0, false
		}
		p.run.defined.Wait()
	}
	known := p.numbers[n/partNumbers][n%partNumbers]
	return known, known != math.MaxUint32
}

// A missed is where the misses of an instruction are counted. A process looks it up with one access to memory.
type missed struct {
	number  uint32 // of the library, from 1 on; 0: not known
	traffic uint32 // its number; 0: none yet
}

// missed returns that of an instruction of the process, once it is defined.
func (p *process) missed(n uint32) *missed {
	for n < p.first && p.parent != nil {
		p = p.parent
	}
	at := n - p.first
	part := int(at / partNumbers)
	if part < len(p.missing) && p.missing[part][at%partNumbers].number > 0 {
		return &p.missing[part][at%partNumbers]
	}
	number, ok := p.number(n)
	if !ok {
		return &missed{}
	}
	for part >= len(p.missing) {
		p.missing = append(p.missing, make([]missed, partNumbers))
	}
	m := &p.missing[part][at%partNumbers]
	m.number = number + 1
	return m
}

// last returns how many blocks there are.
func (p *process) last() uint32 { return p.base + uint32(len(p.blocks)) }

// slots are how many counts a block has, by thread.
const slots = 8

// seekData seeks the next part of a file that was written: SEEK_DATA of Linux. Reading the others
// takes long.
const seekData = 3

// count adds the executions of a process's blocks to their instructions. The file has them
// for each block.
func (p *process) count() error {
	for _, b := range p.blocks {
		if b.seen == 0 { // most are in no sample
			continue
		}
		for _, n := range b.insts {
			p.run.code.inst(n).seen += b.seen
		}
	}
	name := filepath.Join(p.run.dir, p.counts)
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	defer os.Remove(name)
	p.latest = latestOf(f)
	sums := make([]uint64, p.last()+1)
	part := make([]uint64, len(sums))
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&part[0])), len(part)*8)
	for slot := range slots {
		at := int64(slot) * maxBlocks * 8
		if data, err := f.Seek(at, seekData); errors.Is(err, syscall.ENXIO) || err == nil && data >= at+int64(len(raw)) {
			continue
		}
		if _, err := f.ReadAt(raw, at); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		for id, n := range part {
			sums[id] += n
		}
	}
	for id, n := range sums {
		if b := p.known(uint32(id)); b != nil && n > 0 {
			for _, in := range b.insts {
				p.run.code.inst(in).executed += int64(n)
			}
		}
	}
	return nil
}

// known returns a block without waiting for it.
func (p *process) known(id uint32) *block {
	for p != nil && id <= p.base {
		p = p.parent
	}
	if p == nil || id == 0 || int(id-p.base-1) >= len(p.blocks) {
		return nil
	}
	return p.blocks[id-p.base-1]
}

// hello begins a connection: "process PID exec PPID TARGET COUNTS", "process PID fork
// PARENTCOUNTS TARGET COUNTS BLOCKS INSTRUCTIONS" or "thread PID SLOT".
func (r *run) hello(line string) (p *process, thread bool, err error) {
	f := strings.Fields(line)
	switch {
	case len(f) == 3 && f[0] == "thread":
		pid, err := strconv.Atoi(f[1])
		if p = r.by[pid]; err != nil || p == nil {
			return nil, false, errWire
		}
		return p, true, nil
	case len(f) < 6 || f[0] != "process" || len(r.all) >= maxProcesses:
		return nil, false, errWire
	}
	pid, err := strconv.Atoi(f[1])
	if err != nil || f[5] != filepath.Base(f[5]) || !strings.HasPrefix(f[5], "counts.") {
		return nil, false, errWire
	}
	if err := r.code.use(f[4]); err != nil {
		return nil, false, err
	}
	p = &process{run: r, pid: pid, counts: f[5], touched: &touched{}}
	if f[2] == "fork" {
		if len(f) != 8 {
			return nil, false, errWire
		}
		base, err := strconv.ParseUint(f[6], 10, 32)
		first, err2 := strconv.ParseUint(f[7], 10, 32)
		for _, one := range r.all {
			if one.counts == f[3] {
				p.parent = one
			}
		}
		if err != nil || err2 != nil || base >= maxBlocks || p.parent == nil {
			return nil, false, errWire
		}
		p.base, p.first, p.touched = uint32(base), uint32(first), p.parent.touched
	}
	r.by[pid] = p
	r.all = append(r.all, p)
	return p, false, nil
}
