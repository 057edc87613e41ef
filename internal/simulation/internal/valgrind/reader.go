package valgrind

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// Options say what a [Reader] makes of a file.
type Options struct {
	// By is the kind of places to split by: counts.Module, Function, Line or Instruction.
	// With counts.Run, its zero value, there are none.
	By counts.Kind
	// Within splits lines by function as well, with counts.Function. A line is in several
	// functions if one was inlined into others. Otherwise it is one place, which has a
	// function only if no other function has the line.
	Within counts.By
	// Also is a kind of places that a second table is made of; see Reader.Also.
	Also counts.Kind
	// Beyond is the share of the misses of the last simulated cache that a further
	// cache answers, and not memory. A file may say so as well, if it is 0 here.
	Beyond float64
	// Chained reports whether the instruction at an object file's address is a load whose
	// address comes from such a load. It is called if a file has costs by instruction; nil says
	// no.
	Chained func(object string, addr uint64) bool
	// Only reports whether the costs of a place count, given all that the file says of it;
	// nil counts all. Facts about the run as a whole, such as how its misses overlap, are
	// those of all of it.
	Only func(*counts.Code) bool
	// Function reports whether the costs of a function count, as Only does. Sums are those of the whole
	// run by event, as [Reader.Sums] returned them. With both, nothing else is read of other functions.
	Function func(*counts.Code) bool
	Sums     []float64
	// Rows is how many places there are at most, those with the most cycles. The others are
	// in the whole only. 0 keeps all that there is memory for.
	Rows int
	// Part is given the whole and some of the places at a time, if it is not nil. The table is
	// valid until it returns. All places at once may need much memory.
	Part func(*counts.Table)
}

// Kinds of source, as [Reader.Kind] returns them.
const (
	KindCallgrind  = "callgrind"
	KindCachegrind = "cachegrind"
)

// AnyCPU is the processor that tables name: a simulated one, and none of the catalogue's.
const AnyCPU = "generic"

// A Reader yields one table of a file, the sum of all its parts. Its first scope is the
// whole run, unless Keep asks for others. With Options.By the others are the places with
// costs, described by Scope.Code. The cost of a place is its own, without that of the
// functions that it calls.
//
// A function is one of an object file and a source file; code inlined into it belongs to
// it. Memory grows with the number of places, and not with the file.
type Reader struct {
	input
	opts Options
	keep counts.By
	err  error
	done bool

	header header
	partEvents
	costs   []float64 // scratch: of one line
	derived []derivedEvent
	exposedMisses

	location
	places  *places
	also    *places               // of Options.Also; nil for none
	each    func(costs []float64) // is called with each line's own costs, if it is not nil
	sums    []float64             // of the part, by event
	only    []float64             // of the places that count, if not all do
	code    counts.Code
	skips   int8 // the costs of the function: 1 if they are not read, -1 if they are, 0 if that is not known
	callers []caller
	callsAt map[key]int32
	tasks   []task
	ended   ending
	unknown oddities
	table   counts.Table
}

// An input is the files to read, and the position in them.
type input struct {
	src   *bufio.Reader
	files []string // to be read in turn; none if src is given
	file  string
	line  int
}

// partEvents are the events of a file, and the columns that the current part has them in.
type partEvents struct {
	events  []string // of all parts
	columns []int    // of events, by column of the part
	data    [2]int   // columns of the part: loads and stores; -1 for none
	lacks   int      // column of the part: instructions without a rate; -1 for none
	// misses are the columns of the part that have misses in the first and last level: of
	// loads, and of stores; -1 for none.
	misses [2][2]int
}

// exposedMisses are the misses that nothing hides.
type exposedMisses struct {
	chained [2]float64 // of loads in a chain, in the first and last level
	beyond  float64    // share of the misses of the last cache that a further one answers
}

// A location is the position that costs are at, with the names that it refers to.
type location struct {
	ob, fl, fn names
	at         position
	call       bool // the next costs are those of a call
}

// maxLine bounds the length of a line.
const maxLine = 1 << 20

// maxEvents bounds the number of events of a file.
const maxEvents = 1 << 8

// NewReader returns a reader of the file that src holds. The name is for messages.
func NewReader(src io.Reader, name string, opts Options) *Reader {
	r := newReader(opts)
	r.src, r.file = bufio.NewReaderSize(src, maxLine), name
	return r
}

// Open returns a reader of several files, which it sums: the processes, threads and parts
// of one run.
func Open(files []string, opts Options) *Reader {
	r := newReader(opts)
	r.files = files
	return r
}

func newReader(opts Options) *Reader {
	r := &Reader{opts: opts}
	r.beyond = opts.Beyond
	r.ob, r.fl, r.fn = newNames(), newNames(), newNames()
	r.fn.levels = true
	r.places = newPlaces(opts.By, opts.Within.Has(counts.Function))
	if opts.Also != counts.Run {
		r.also = newPlaces(opts.Also, false)
	}
	r.header = header{lines: true}
	r.table.Start, r.table.Duration = math.NaN(), math.NaN()
	return r
}

// Keep splits by counts.Process or counts.Thread, as far as the file does, if there are no
// places.
func (r *Reader) Keep(by counts.By) { r.keep = by }

// Kind says which simulator wrote the file.
func (r *Reader) Kind() string {
	if r.header.callgrind {
		return KindCallgrind
	}
	return KindCachegrind
}

// Simulated says that the counts are a simulator's.
func (r *Reader) Simulated() bool { return true }

// How says what simulated the program, once Next has returned true, if the file's format
// does not: a [FileWriter] writes what QEMU executed.
func (r *Reader) How() string {
	if r.header.creator != creator {
		return ""
	}
	return "simulated by QEMU, not measured"
}

// Core returns the name of the model of a core that timed the instructions; "" if the file
// does not say. It is known once Next has returned true.
func (r *Reader) Core() string { return r.header.core }

// Programs are the object files of a file with costs by instruction; of others there are none. They are
// known once Next has returned true.
func (r *Reader) Programs() []string {
	if !r.header.instructions {
		return nil
	}
	return r.ob.text
}

// Table returns the table, once Next has returned true.
func (r *Reader) Table() *counts.Table { return &r.table }

// Also returns the table by Options.Also, once Next has returned true.
func (r *Reader) Also() *counts.Table {
	other := *r
	other.places, other.opts.By = r.also, r.opts.Also
	other.table = counts.Table{Start: math.NaN(), Duration: math.NaN()}
	other.fill()
	return &other.table
}

// Sums returns the sums of the run by event, once Next has returned true.
func (r *Reader) Sums() []float64 { return r.total() }

// Err returns the error that ended the reading, an [Error] if the file is damaged.
func (r *Reader) Err() error { return r.err }

// Next reads the file. It returns true once, if there are costs.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	r.done = true
	if r.err = r.read(); r.err != nil {
		return false
	}
	r.fill()
	return true
}

// read reads all files.
func (r *Reader) read() error {
	if len(r.files) == 0 {
		if err := r.lines(); err != nil {
			return err
		}
	}
	for _, name := range r.files {
		if err := r.open(name); err != nil {
			return err
		}
	}
	switch {
	case len(r.events) == 0:
		return r.fault("it ends before it names any events")
	case len(r.tasks) == 0:
		return r.fault("it holds no costs")
	case r.opts.By == counts.Instruction && !r.header.instructions:
		return fmt.Errorf("%s: its costs are by line and not by instruction: callgrind records these with --dump-instr=yes", r.file)
	case r.opts.By == counts.Line && !r.header.lines:
		return fmt.Errorf("%s: its costs are not by line: callgrind records these with --dump-line=yes", r.file)
	}
	return nil
}

// open reads one of several files. The numbers of names, and the header, hold for one file.
func (r *Reader) open(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if r.src == nil {
		r.src = bufio.NewReaderSize(f, maxLine)
	}
	r.src.Reset(f)
	r.file, r.line = name, 0
	h := &r.header
	r.header = header{command: h.command, caches: h.caches, timed: h.timed, callgrind: h.callgrind, lines: true}
	r.columns = nil
	for _, n := range []*names{&r.ob, &r.fl, &r.fn} {
		n.forget()
	}
	r.at = position{}
	r.moved()
	return r.lines()
}

// lines reads the lines of a file.
func (r *Reader) lines() error {
	for last := false; !last; {
		var b []byte
		var err error
		if b, last, err = r.next(); err != nil {
			return err
		}
		if r.skips > 0 && r.header.creator == creator && len(b) > 0 && b[0] == '0' { // its positions are not relative
			continue
		}
		if err := r.take(b); err != nil {
			return err
		}
	}
	r.endPart()
	return nil
}

// next returns the next line and whether it is the last. The line is valid until the next
// call.
func (r *Reader) next() (b []byte, last bool, err error) {
	b, err = r.src.ReadSlice('\n')
	r.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, false, r.fault("a line of more than %d bytes", maxLine)
	case err != nil && err != io.EOF:
		return nil, false, fmt.Errorf("%s: %w", r.file, err)
	}
	return b, err == io.EOF, nil
}

func (r *Reader) fault(format string, args ...any) error {
	return fault.At(r.file, r.line, format, args...)
}

// take reads a line.
func (r *Reader) take(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	switch c := b[0]; {
	case c-'0' <= 9 || c == '+' || c == '-' || c == '*':
		return r.cost(b)
	case c == '#':
		r.called(b)
		return nil
	case c == '\n' || c == '\r':
		return nil
	}
	b = bytes.TrimRight(b, "\r\n")
	end := 0
	for end < len(b) && b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z' {
		end++
	}
	if end == len(b) {
		r.unknown.add(r.line, b)
		return nil
	}
	key, value := b[:end], bytes.TrimLeft(b[end+1:], " \t")
	switch b[end] {
	case '=':
		return r.position(key, value, b)
	case ':':
		return r.head(key, bytes.TrimRight(value, " \t"), b)
	}
	r.unknown.add(r.line, b)
	return nil
}

// A caller is the line that calls a place most often, with its share of the calls.
type caller struct {
	file  name
	line  int
	share float64
}

// maxCallers bounds the places whose callers are kept.
const maxCallers = 1 << 14

// called reads a comment, which may be a caller's.
func (r *Reader) called(b []byte) {
	b, ok := bytes.CutPrefix(bytes.TrimRight(b, "\r\n"), []byte(callerMark))
	f := bytes.Split(b, []byte{'\t'})
	if !ok || len(f) != 6 || len(r.callers) >= maxCallers {
		return
	}
	function, err := r.fn.intern(f[0])
	source, err2 := r.fl.intern(f[1])
	file, err3 := r.fl.intern(f[3])
	if cmp.Or(err, err2, err3) != nil {
		return
	}
	var n [3]uint64 // line, the caller's line and share
	for i := range n {
		v, _, known := decimal(f[2+i+(i+1)/2])
		n[i], ok = v, ok && known
	}
	if !ok || n[1] == 0 || n[1] > math.MaxInt32 || n[2] == 0 || n[2] > callerUnits {
		return
	}
	if r.callsAt == nil {
		r.callsAt = map[key]int32{}
	}
	r.callers = append(r.callers, caller{file, int(n[1]), float64(n[2]) / callerUnits})
	r.callsAt[key{fl: source, fn: function, number: n[0]}] = int32(len(r.callers))
}

// position reads a line that says where the next costs are, or what is called or jumped to
// from there.
func (r *Reader) position(key, value, all []byte) (err error) {
	at := &r.at
	switch string(key) {
	case "fn":
		at.file = at.home // what was inlined has ended
		if at.fn, err = r.fn.read(value); err == nil {
			r.moved()
		}
	case "fl":
		at.home, err = r.fl.read(value)
		at.file = at.home
		r.moved()
	case "fi", "fe":
		at.file, err = r.fl.read(value)
	case "ob":
		at.ob, err = r.ob.read(value)
		r.moved()
	// Of calls and jumps only the names are needed: they may be written here, and used by
	// number later.
	case "cfn", "jfn", "rfn", "frfn":
		_, err = r.fn.read(value)
	case "cfi", "cfl", "cfe", "jfi", "jfl":
		_, err = r.fl.read(value)
	case "cob", "job":
		_, err = r.ob.read(value)
	case "calls", "rcalls":
		r.call = true
	case "jump", "jcnd":
	default:
		r.unknown.add(r.line, all)
	}
	if err != nil {
		return r.fault("%v", err)
	}
	return nil
}

// cost reads a line of costs: positions, relative to those of the line before if they have
// a sign, and the counts of the events. Zeros at the end may be missing.
func (r *Reader) cost(b []byte) error {
	if len(r.columns) == 0 {
		return r.fault("costs before a line that names the events")
	}
	var ok bool
	if r.header.instructions {
		if r.at.addr, b, ok = move(r.at.addr, b); !ok {
			return r.fault("not a position: %s", quote(b))
		}
	}
	if r.header.lines {
		if r.at.line, b, ok = move(r.at.line, b); !ok {
			return r.fault("not a position: %s", quote(b))
		}
	}
	if r.opts.Sums != nil && r.skipped() {
		r.call = false
		return nil
	}
	n := 0
	for {
		for ; n < len(r.columns) && len(b) > 2 && b[0] == ' ' && b[1] == '0' && b[2] == ' '; b = b[2:] { // most are 0
			r.costs[n] = 0
			n++
		}
		for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
			b = b[1:]
		}
		if len(b) == 0 || b[0] == '\n' || b[0] == '\r' {
			break
		}
		if n == len(r.columns) {
			return r.fault("more counts than the %d events", n)
		}
		var v uint64
		if b[0] == '.' { // of an event that cannot happen there
			b = b[1:]
		} else if v, b, ok = decimal(b); !ok {
			return r.fault("not a count")
		}
		r.costs[n] = float64(v)
		n++
	}
	switch {
	case r.call: // the cost of the called function, which is counted there
		r.call = false
		return nil
	case n == 0: // the origin of a jump
		return nil
	}
	r.add(r.costs[:n])
	return nil
}

// add adds the costs of a line to its place and its part.
func (r *Reader) add(costs []float64) {
	r.header.begun = true
	if r.each != nil {
		r.each(costs)
	}
	if r.opts.Sums == nil {
		for i, v := range costs {
			r.sums[r.columns[i]] += v
		}
	}
	if r.opts.Only != nil && !r.counts() {
		return
	}
	chained := r.opts.Chained != nil && r.header.instructions && r.chain(costs)
	if r.opts.Only != nil {
		for i, v := range costs {
			r.only[r.columns[i]] += v
		}
	}
	r.spend(r.places, costs, chained)
	if r.also != nil {
		r.spend(r.also, costs, chained)
	}
}

// spend adds the costs of a line to its place, and to those of chained loads if it is one.
func (r *Reader) spend(p *places, costs []float64, chained bool) {
	row := p.row(&r.at)
	if row < 0 {
		return
	}
	sums := p.at(row)
	for i, v := range costs {
		sums[r.columns[i]] += v
	}
	if chained {
		r.chainedMisses(costs, &p.chained[row])
	}
}

// skipped reports whether the costs of the function are not read.
func (r *Reader) skipped() bool {
	if r.skips == 0 {
		r.header.begun = true
		copy(r.sums, r.opts.Sums)
		if r.skips = -1; !r.opts.Function(r.where()) {
			r.skips = 1
		}
	}
	return r.skips > 0
}

// moved says that a function begins.
func (r *Reader) moved() {
	r.skips = 0
	r.places.moved()
	if r.also != nil {
		r.also.moved()
	}
}

// counts reports whether the costs of the position count.
func (r *Reader) counts() bool {
	if r.header.lines {
		r.code.Line = int(r.at.line)
	}
	if r.header.instructions {
		r.code.Addr = r.at.addr
	}
	return r.opts.Only(r.where())
}

// where returns what the position is in.
func (r *Reader) where() *counts.Code {
	r.code.Module, r.code.Function, r.code.File = base(r.ob.text[r.at.ob]), shortAddress(r.fn.text[r.at.fn]), r.fl.text[r.at.file]
	return &r.code
}

// move returns a position, given the one before.
func move(from uint64, b []byte) (uint64, []byte, bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, b, false
	}
	switch b[0] {
	case '*':
		return from, b[1:], true
	case '+':
		by, rest, ok := number(b[1:])
		return from + by, rest, ok
	case '-':
		by, rest, ok := number(b[1:])
		return from - by, rest, ok
	}
	return number(b)
}

// number reads a decimal or hexadecimal number.
func number(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != '0' || b[1] != 'x' {
		return decimal(b)
	}
	i := 2
	for ; i < len(b); i++ {
		d := hexDigit(b[i])
		if d < 0 {
			break
		}
		if v>>60 != 0 {
			return 0, nil, false
		}
		v = v<<4 | uint64(d)
	}
	return v, b[i:], i > 2
}

func hexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// oddities are lines that were not understood.
type oddities struct {
	lines int
	first int
	text  string
}

func (o *oddities) add(line int, b []byte) {
	if o.lines++; o.lines == 1 {
		o.first, o.text = line, quote(b)
	}
}

// words splits a list at blanks.
func words(b []byte) []string { return strings.Fields(string(b)) }

// column returns the index of an event, which is added if it is new.
func (r *Reader) column(event string) int {
	if i := slices.Index(r.events, event); i >= 0 {
		return i
	}
	r.events = append(r.events, event)
	return len(r.events) - 1
}

// quote quotes text of a file for a message.
func quote(b []byte) string { return strconv.Quote(spelling.Clip(string(b))) }
