package object

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
	"unicode"
)

// A Jitdump is a just-in-time compiler's record of its code. With its times, code that was
// replaced since is found. Source of the format:
// tools/perf/Documentation/jitdump-specification.txt of Linux.
type Jitdump struct {
	PID  int
	Arch string // Go's name for the instruction set, or "" if unknown
	// ArchTime says that times are the processor's counter and not CLOCK_MONOTONIC. They cannot
	// be compared with a recording's.
	ArchTime bool
	// Codes are the pieces of code, in the order of their making.
	Codes []JitCode
	// Moves are pieces that were moved, in order.
	Moves []JitMove
	// Unknown counts records of types that are not known.
	Unknown int
	// Truncated says that the file ends in the middle of a record: the program still runs, or
	// was killed.
	Truncated bool
}

// A JitCode is a piece of code in a jitdump.
type JitCode struct {
	Time       uint64 // nanoseconds, but see ArchTime
	Addr, Size uint64
	Offset     uint64 // of the code in the file
	Name       string
	Lines      []JitLine // by address
}

// A JitLine says the line of the code from an address on.
type JitLine struct {
	Addr uint64
	File string
	Line int
}

// A JitMove says that code was moved.
type JitMove struct {
	Time           uint64
	From, To, Size uint64
}

// Types of records in a jitdump.
const (
	jitCodeLoad = iota
	jitCodeMove
	jitDebugInfo
	jitClose
	jitUnwinding
)

const (
	jitMagic        = 0x4a695444 // "JiTD"
	jitHeaderSize   = 40
	jitRecordHeader = 16
	// maxJitRecord bounds a record. The largest functions have some megabytes.
	maxJitRecord = 1 << 30
)

var errJitdump = errors.New("is not a jitdump")

// ReadJitdump reads a jitdump of either byte order. It skips the code itself.
func ReadJitdump(r io.Reader) (*Jitdump, error) {
	j := &jitReader{r: bufio.NewReaderSize(r, 1<<16), order: binary.LittleEndian, dump: &Jitdump{}}
	if err := j.header(); err != nil {
		return nil, err
	}
	for {
		switch err := j.record(); {
		case err == io.EOF:
			return j.dump, nil
		case err == io.ErrUnexpectedEOF:
			j.dump.Truncated = true
			return j.dump, nil
		case err != nil:
			return nil, fmt.Errorf("jitdump: record at %#x: %w", j.start, err)
		}
	}
}

// A jitReader reads records.
type jitReader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	pos   uint64 // in the file
	start uint64 // of the record
	dump  *Jitdump
	lines []JitLine // for the next piece of code
	owner uint64    // the address that they are for
}

func (j *jitReader) header() error {
	h, err := j.read(jitHeaderSize)
	if err != nil {
		return fmt.Errorf("jitdump: %w", errJitdump)
	}
	if j.order.Uint32(h) != jitMagic {
		j.order = binary.BigEndian
	}
	if j.order.Uint32(h) != jitMagic {
		return fmt.Errorf("jitdump: %w: it starts with % x", errJitdump, h[:4])
	}
	size := j.order.Uint32(h[8:])
	if size < jitHeaderSize || size > 1<<16 {
		return fmt.Errorf("jitdump: a header of %d bytes is not credible", size)
	}
	j.dump.Arch = machineArch(j.order.Uint32(h[12:]), j.order)
	j.dump.PID = int(int32(j.order.Uint32(h[20:])))
	j.dump.ArchTime = j.order.Uint64(h[32:])&1 != 0
	return j.skip(uint64(size) - jitHeaderSize)
}

// machineArch returns Go's name for an ELF machine number.
func machineArch(machine uint32, order binary.ByteOrder) string {
	switch machine {
	case 62:
		return "amd64"
	case 3:
		return "386"
	case 183:
		return "arm64"
	case 243:
		return "riscv64"
	case 21:
		if order == binary.BigEndian {
			return "ppc64"
		}
		return "ppc64le"
	}
	return ""
}

// read reads n bytes. What it returns is valid up to the next call.
func (j *jitReader) read(n int) ([]byte, error) {
	var b bytes.Buffer // grows with the contents, and not with the stated size
	m, err := io.CopyN(&b, j.r, int64(n))
	j.pos += uint64(m)
	if err == io.EOF && m > 0 {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

func (j *jitReader) skip(n uint64) error {
	m, err := io.CopyN(io.Discard, j.r, int64(n))
	j.pos += uint64(m)
	if err == io.EOF && n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// record reads a record.
func (j *jitReader) record() error {
	j.start = j.pos
	h, err := j.read(jitRecordHeader)
	if err != nil {
		return err
	}
	kind, size, time := j.order.Uint32(h), j.order.Uint32(h[4:]), j.order.Uint64(h[8:])
	if size < jitRecordHeader || size > maxJitRecord {
		return fmt.Errorf("a size of %d bytes is not credible", size)
	}
	size -= jitRecordHeader
	switch kind {
	case jitCodeLoad:
		return j.code(time, size)
	case jitCodeMove:
		return j.move(time, size)
	case jitDebugInfo:
		return j.debug(size)
	case jitClose, jitUnwinding:
	default:
		j.dump.Unknown++
	}
	return j.skip(uint64(size))
}

// maxJitName is the longest name of a function.
const maxJitName = 1 << 16

// code reads a JIT_CODE_LOAD: process, thread, address, address, size, index,
// name, and the code, which ends the record.
func (j *jitReader) code(time uint64, size uint32) error {
	const fixed = 40
	if size < fixed {
		return errors.New("code without an address")
	}
	b, err := j.read(fixed)
	if err != nil {
		return endless(err)
	}
	c := JitCode{Time: time, Addr: j.order.Uint64(b[16:]), Size: j.order.Uint64(b[24:])}
	rest := uint64(size) - fixed
	if c.Size > rest || c.Addr+c.Size < c.Addr {
		return fmt.Errorf("%d bytes of code in a record of %d", c.Size, size)
	}
	nameSize := rest - c.Size
	if nameSize > maxJitName {
		return fmt.Errorf("a name of %d bytes is not credible", nameSize)
	}
	name, err := j.read(int(nameSize))
	if err != nil && nameSize > 0 {
		return endless(err)
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	c.Name = string(name)
	c.Offset = j.pos
	if err := j.skip(c.Size); err != nil {
		return err
	}
	if j.owner == c.Addr {
		c.Lines = j.lines
	}
	j.lines = nil
	j.dump.Codes = append(j.dump.Codes, c)
	return nil
}

// endless is the error of a record that continues beyond the end of the file.
func endless(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// move reads a JIT_CODE_MOVE: process, thread, address, old address, new
// address, size, index.
func (j *jitReader) move(time uint64, size uint32) error {
	const fixed = 48
	if size < fixed {
		return errors.New("a move without addresses")
	}
	b, err := j.read(fixed)
	if err != nil {
		return endless(err)
	}
	m := JitMove{Time: time, From: j.order.Uint64(b[16:]), To: j.order.Uint64(b[24:]), Size: j.order.Uint64(b[32:])}
	if m.To+m.Size < m.To || m.From+m.Size < m.From {
		return fmt.Errorf("%d bytes to %#x do not fit the address space", m.Size, m.To)
	}
	j.dump.Moves = append(j.dump.Moves, m)
	return j.skip(uint64(size) - fixed)
}

// sameFile is a name that stands for the one before.
const sameFile = "\xff"

// debug reads a JIT_CODE_DEBUG_INFO: the lines of the code that follows.
func (j *jitReader) debug(size uint32) error {
	const fixed, entry = 16, 16
	b, err := j.read(int(size))
	if err != nil {
		return endless(err)
	}
	if size < fixed {
		return errors.New("lines without an address")
	}
	j.owner, j.lines = j.order.Uint64(b), nil
	count := j.order.Uint64(b[8:])
	b = b[fixed:]
	last := ""
	for ; count > 0; count-- {
		if len(b) < entry {
			return fmt.Errorf("%d lines do not fit the record", count)
		}
		addr, line := j.order.Uint64(b), int(int32(j.order.Uint32(b[8:])))
		name, rest, ok := bytes.Cut(b[entry:], []byte{0})
		if !ok {
			return errors.New("the name of a file has no end")
		}
		if string(name) != sameFile {
			last = string(name)
		}
		if !printable(last) { // V8 writes some from memory that it has freed: what follows is lost as well
			break
		}
		b = rest
		j.lines = append(j.lines, JitLine{Addr: addr, File: last, Line: max(line, 0)})
	}
	sort.SliceStable(j.lines, func(i, k int) bool { return j.lines[i].Addr < j.lines[k].Addr })
	return nil
}

// printable reports whether a name has no unprintable characters.
func printable(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) < 0
}

// OpenJitdump reads a jitdump file.
func OpenJitdump(path string) (*Jitdump, error) {
	if err := Regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := ReadJitdump(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// CodeAt returns the piece of code at an offset in the file.
func (d *Jitdump) CodeAt(offset uint64) (*JitCode, bool) {
	if i := d.NumberAt(offset); i >= 0 {
		return &d.Codes[i], true
	}
	return nil, false
}

// NumberAt returns the index of the piece of code at an offset in the file, or -1.
func (d *Jitdump) NumberAt(offset uint64) int {
	i := sort.Search(len(d.Codes), func(i int) bool { return d.Codes[i].Offset > offset }) - 1
	if i < 0 || offset-d.Codes[i].Offset >= d.Codes[i].Size {
		return -1
	}
	return i
}

// Line returns the line of an address in a piece of code, as it was made.
func (c *JitCode) Line(addr uint64) (file string, line int) {
	i := sort.Search(len(c.Lines), func(i int) bool { return c.Lines[i].Addr > addr }) - 1
	if i < 0 {
		return "", 0
	}
	return c.Lines[i].File, c.Lines[i].Line
}

// Frames returns the function and the line at an offset in the file.
func (d *Jitdump) Frames(offset uint64) []Frame {
	c, ok := d.CodeAt(offset)
	if !ok {
		return nil
	}
	file, line := c.Line(c.Addr + (offset - c.Offset))
	return []Frame{{Func: c.Name, File: file, Line: line}}
}

// Placed calls a function with each place of a piece of code, in the order of time. It follows
// moves.
func (d *Jitdump) Placed(each func(time, addr uint64, c *JitCode)) {
	at := make(map[uint64]*JitCode, len(d.Codes)) // by address, as of the time of the move
	moves := d.Moves
	follow := func(until uint64) {
		for len(moves) > 0 && moves[0].Time <= until {
			m := moves[0]
			moves = moves[1:]
			if c, ok := at[m.From]; ok && m.To+c.Size >= m.To {
				delete(at, m.From)
				at[m.To] = c
				each(m.Time, m.To, c)
			}
		}
	}
	for i := range d.Codes {
		c := &d.Codes[i]
		follow(c.Time)
		at[c.Addr] = c
		each(c.Time, c.Addr, c)
	}
	follow(^uint64(0))
}

// MadeCode finds the code of a jitdump by its address at a time.
type MadeCode struct {
	placed []madePlace
	pages  map[uint64][]int32 // indexes of those with a byte in a page
}

// A madePlace is where a piece of code is from a time on.
type madePlace struct {
	time, addr uint64
	code       *JitCode
}

const (
	madePage = 12 // bits
	// mostMade bounds the pages of all pieces of code together: a move needs no bytes of the file.
	mostMade = 1 << 22
)

// NewMadeCode returns the code of a jitdump, whose times must be those of CLOCK_MONOTONIC.
func NewMadeCode(d *Jitdump) *MadeCode {
	m := &MadeCode{pages: map[uint64][]int32{}}
	if d.ArchTime {
		return m
	}
	n := uint64(0)
	d.Placed(func(time, addr uint64, c *JitCode) {
		if c.Size == 0 {
			return
		}
		first, last := addr>>madePage, (addr+c.Size-1)>>madePage
		if n += last - first + 1; n > mostMade {
			return
		}
		for page := first; page <= last; page++ {
			m.pages[page] = append(m.pages[page], int32(len(m.placed)))
		}
		m.placed = append(m.placed, madePlace{time, addr, c})
	})
	return m
}

// At returns the piece of code at an address at a time. It had the address made when it was
// compiled.
func (m *MadeCode) At(time, addr uint64) (c *JitCode, made uint64, ok bool) {
	list := m.pages[addr>>madePage]
	for i := len(list) - 1; i >= 0; i-- {
		p := &m.placed[list[i]]
		if p.time <= time && addr >= p.addr && addr-p.addr < p.code.Size {
			return p.code, p.code.Addr + (addr - p.addr), true
		}
	}
	return nil, 0, false
}

// IsJitdump reports whether a file is a jitdump. A just-in-time compiler maps it to make it
// known.
func IsJitdump(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "jit-") && strings.HasSuffix(base, ".dump")
}
