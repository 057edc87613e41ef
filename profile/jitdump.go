package profile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/cyclestack/cyclestack/internal/object"
)

// A jitdump is a just-in-time compiler's record of its code. With its times, code that was
// replaced since is found. Source of the format:
// tools/perf/Documentation/jitdump-specification.txt of Linux.
type jitdump struct {
	PID  int
	Arch string // Go's name for the instruction set, or "" if unknown
	// ArchTime says that times are the processor's counter and not CLOCK_MONOTONIC. They cannot
	// be compared with a recording's.
	ArchTime bool
	// Codes are the pieces of code, in the order of their making.
	Codes []jitCode
	// Moves are pieces that were moved, in order.
	Moves []jitMove
	// Unknown counts records of types that are not known.
	Unknown int
	// Truncated says that the file ends in the middle of a record: the program still runs, or
	// was killed.
	Truncated bool
}

// jitCode is a piece of code in a jitdump.
type jitCode struct {
	Time       uint64 // nanoseconds, but see ArchTime
	Addr, Size uint64
	Offset     uint64 // of the code in the file
	Name       string
	Lines      []jitLine // by address
}

// jitLine says the line of the code from an address on.
type jitLine struct {
	Addr uint64
	File string
	Line int
}

// jitMove says that code was moved.
type jitMove struct {
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

// readJitdump reads a jitdump of either byte order. It skips the code itself.
func readJitdump(r io.Reader) (*jitdump, error) {
	j := &jitReader{r: bufio.NewReaderSize(r, 1<<16), order: binary.LittleEndian, dump: &jitdump{}}
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
	dump  *jitdump
	lines []jitLine // for the next piece of code
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
	c := jitCode{Time: time, Addr: j.order.Uint64(b[16:]), Size: j.order.Uint64(b[24:])}
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
	m := jitMove{Time: time, From: j.order.Uint64(b[16:]), To: j.order.Uint64(b[24:]), Size: j.order.Uint64(b[32:])}
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
		b = rest
		j.lines = append(j.lines, jitLine{Addr: addr, File: last, Line: max(line, 0)})
	}
	sort.SliceStable(j.lines, func(i, k int) bool { return j.lines[i].Addr < j.lines[k].Addr })
	return nil
}

// openJitdump reads a jitdump file.
func openJitdump(path string) (*jitdump, error) {
	if err := object.Regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := readJitdump(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// AddJitdumps reads the jitdumps that processes have mapped, below a root directory or with
// "" on this system. It maps their code at the times of its making. Call it after the
// events of the recording and before Settle. The clocks of both must be the same, as they
// are with perf record -k 1. Code of a file that cannot be read has no names: the
// Symbolizer says why.
func (s *Spaces) AddJitdumps(root string) {
	for _, f := range s.list {
		if f.kind != kindJitdump {
			continue
		}
		if d, err := openJitdump(filepath.Join(root, filepath.Clean("/"+f.Name))); err == nil {
			s.addJitdump(f, d)
		}
	}
}

func (s *Spaces) addJitdump(file *File, d *jitdump) {
	if d.ArchTime {
		return
	}
	at := make(map[uint64]jitCode, len(d.Codes)) // by address, as of the time of the move
	moves := d.Moves
	place := func(time, addr uint64, c jitCode) {
		m := Mapping{PID: file.PID, Start: addr, Len: c.Size, PgOff: c.Offset}
		if c.Size > 0 {
			s.add(time, func(time uint64) { s.insert(time, m, file) })
		}
	}
	follow := func(until uint64) {
		for len(moves) > 0 && moves[0].Time <= until {
			m := moves[0]
			moves = moves[1:]
			if c, ok := at[m.From]; ok && m.To+c.Size >= m.To {
				delete(at, m.From)
				at[m.To] = c
				place(m.Time, m.To, c)
			}
		}
	}
	for _, c := range d.Codes {
		follow(c.Time)
		at[c.Addr] = c
		place(c.Time, c.Addr, c)
	}
	follow(^uint64(0))
}

// codeAt returns the piece of code at an offset in the file.
func (d *jitdump) codeAt(offset uint64) (*jitCode, bool) {
	if i := d.numberAt(offset); i >= 0 {
		return &d.Codes[i], true
	}
	return nil, false
}

// numberAt returns the index of the piece of code at an offset in the file, or -1.
func (d *jitdump) numberAt(offset uint64) int {
	i := sort.Search(len(d.Codes), func(i int) bool { return d.Codes[i].Offset > offset }) - 1
	if i < 0 || offset-d.Codes[i].Offset >= d.Codes[i].Size {
		return -1
	}
	return i
}

// line returns the line of an address in a piece of code, as it was made.
func (c *jitCode) line(addr uint64) (file string, line int) {
	i := sort.Search(len(c.Lines), func(i int) bool { return c.Lines[i].Addr > addr }) - 1
	if i < 0 {
		return "", 0
	}
	return c.Lines[i].File, c.Lines[i].Line
}

// frames returns the function and the line at an offset in the file.
func (d *jitdump) frames(offset uint64) []object.Frame {
	c, ok := d.codeAt(offset)
	if !ok {
		return nil
	}
	file, line := c.line(c.Addr + (offset - c.Offset))
	return []object.Frame{{Func: c.Name, File: file, Line: line}}
}
