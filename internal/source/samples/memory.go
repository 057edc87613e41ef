package samples

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// An Access is one load or store that was sampled with its latency or its data source:
// what perf mem record records, from Intel's PEBS, AMD's IBS, Arm's SPE or POWER's
// threshold counters. It is valid until the next one.
type Access struct {
	Event   *perfdata.Event
	Loads   float64 // that the sample stands for: its period
	Latency uint64  // cycles; what it covers depends on the processor
	// Instruction is the second latency, of the instruction as a whole; 0 if it was not
	// recorded.
	Instruction uint64
	Source      perffile.DataSrc // 0 if it was not recorded
	Level       Level            // where the data came from
	Store       bool

	PID, TID int
	CPU      int    // -1 if it is not known
	Node     int    // -1 if it is not known
	IP       uint64 // of the instruction
	Addr     uint64 // of the data; 0 if it is not known
	Phys     uint64 // the same, physical
	Width    int    // bytes; 0 if it is not known
	// Object is the number of memory that several processes map at their own addresses, and
	// Offset where Addr is. It is 0 for other memory.
	Object int
	Offset uint64

	reader *memoryReader
	rec    *perfdata.Sample
	time   uint64
	place  profile.Place
}

// Function returns the function of the instruction, never nil.
func (x *Access) Function() *profile.Function { return x.reader.r.symbols.Function(x.place) }

// Instr names the instruction: its address in the file, with function and module.
func (x *Access) Instr() string {
	addr := x.IP
	if x.place.File != nil {
		addr = x.reader.r.symbols.Addr(x.place)
	}
	return fmt.Sprintf("%#x  %s", addr, x.FunctionName())
}

// Line names the line of the instruction, or the instruction where no line is known.
func (x *Access) Line() string {
	file, n := x.reader.r.symbols.Line(x.place)
	if n == 0 {
		return x.Instr()
	}
	return fmt.Sprintf("%s:%d", counts.Name(path.Base(file)), n)
}

// Kernel reports whether the instruction is the kernel's.
func (x *Access) Kernel() bool { return x.rec.Mode() == perfdata.ModeKernel }

// LineSize is the size of a cache line in bytes, 0 if the recording does not say.
func (x *Access) LineSize() int {
	for _, c := range x.reader.r.in.Features().Caches {
		if c.Level == 1 && c.LineSize < 1<<12 {
			return int(c.LineSize)
		}
	}
	return 0
}

// Data says where the data is.
func (x *Access) Data() Datum { return x.reader.datum(x.rec, x.Addr, x.time) }

// FunctionName is the function's name with its module, as reports have it.
func (x *Access) FunctionName() string {
	f := x.Function()
	return fmt.Sprintf("%s  (%s)", orUnknown(counts.Name(f.Name)), orUnknown(counts.Name(f.File.Base())))
}

// A Datum is where the data of an access is: a variable, a section or a mapping.
type Datum struct {
	Kind   DataKind
	Module string // the file's name without directories, "" for memory that is in none
	Name   string // as people read it: "table (prog .bss)", "[heap]", "anonymous memory"
}

// A DataKind is what sort of memory data is in.
type DataKind uint8

// The kinds of memory.
const (
	DataUnknown   DataKind = iota // no mapping is known, or no address
	DataHeap                      // [heap], which malloc uses for small things
	DataStack                     // [stack], of a process's first thread
	DataAnonymous                 // mapped without a file: large things of malloc, stacks of threads
	DataFile                      // a file without known variables
	DataVariable                  // in a program or library, .data or .bss
	DataKernel                    // the kernel's
)

var dataKinds = [...]string{"unknown", "heap", "stack", "anonymous", "file", "variable", "kernel"}

func (k DataKind) String() string {
	if int(k) < len(dataKinds) {
		return dataKinds[k]
	}
	return fmt.Sprintf("DataKind(%d)", k)
}

// A Level is where in the memory hierarchy an access found its data.
type Level struct {
	Name string // "L1", "LFB", "L3, modified in another core", "remote RAM"; "unknown"
	Rank int    // how far away, for sorting
}

// MemoryEvent says what is known of an event that was sampled with latencies.
type MemoryEvent struct {
	*perfdata.Event
	// Threshold is a latency in cycles: only slower loads were sampled. It is 0 for
	// none, or if it is not known.
	Threshold uint64
	Struct    bool // weights have parts (PERF_SAMPLE_WEIGHT_STRUCT)

	Loads      int64 // samples that were handed on
	Others     int64 // samples of stores, prefetches and what was no load
	Unmeasured int64 // samples of loads without a latency
	Periodless int64 // samples whose periods are not known, which count as one load
	Mapped     bool  // mappings of data were recorded
}

// Memory is what was found besides the accesses.
type Memory struct {
	Label    string         // the command that was recorded
	CPU      string         // the processor, as for counts.Table.CPU
	Arch     string         // the machine's, as uname has it; "" if it is not known
	Duration float64        // seconds from the first load to the last; NaN if it is not known
	Events   []*MemoryEvent // that have latencies
	Notes    []counts.Note
}

// ErrNoLatency is the error of a recording whose samples all lack latencies.
var ErrNoLatency = errors.New("its samples have no latencies: perf mem record takes some, on processors that can measure them")

// ErrNoAccess is the error of a recording whose samples name no access to memory.
var ErrNoAccess = errors.New("its samples name no accesses to memory: perf mem record and perf c2c record take some, on processors that can")

// ReadMemory reads the perf.data file that src holds, and hands on the loads sampled with a
// latency. The name is for messages. Stores, prefetches and loads without a latency are
// counted, and not handed on, unless opts.Accesses asks for them. Of the options By and Within
// are not used.
func ReadMemory(src io.ReadSeeker, name string, opts Options, each func(*Access)) (*Memory, error) {
	opts.Symbols.Cache = cmp.Or(opts.Symbols.Cache, anyOrderCache)
	m := &memoryReader{r: NewReader(src, name, opts), each: each, all: opts.Accesses, nodes: map[int]int{}, first: math.MaxUint64, events: map[*perfdata.Event]*MemoryEvent{}}
	defer m.r.Close()
	if err := m.read(); err != nil {
		return nil, err
	}
	return &m.out, nil
}

// A memoryReader reads the loads of a recording.
type memoryReader struct {
	r      *Reader
	all    bool        // Options.Accesses
	nodes  map[int]int // of processors
	each   func(*Access)
	events map[*perfdata.Event]*MemoryEvent // nil for those without latencies
	clock  *feed
	access Access
	any    bool // a sample was there
	first  uint64
	last   uint64
	shared sharedMaps
	out    Memory
}

// read reads the file, first for what was mapped when and then for the samples.
func (m *memoryReader) read() error {
	r := m.r
	if err := r.pass(eventsOnly); err != nil {
		return err
	}
	if err := r.open(samplesOnly); err != nil {
		return err
	}
	defer r.in.Close()
	defer r.feed.close()
	m.clock = &feed{in: r.in}
	for r.in.Next() {
		m.clock.number++
		switch rec := r.in.Record().(type) {
		case *perfdata.Sample:
			m.any = true
			if op := r.hw.of(rec); op != nil {
				m.sample(rec, op)
			} else if e := m.event(rec.Event()); e != nil {
				e.Unmeasured++
			}
		case *perfdata.Raw:
			if rec.Type == perffile.RecordAuxtrace {
				r.trace.each(r.in, rec, m.sample)
			}
		default:
			m.shared.know(rec)
		}
	}
	var bad *perfdata.Error
	if err := r.in.Err(); err != nil && (!errors.As(err, &bad) || !m.any) {
		return err
	}
	loads := int64(0)
	for _, e := range m.out.Events {
		loads += e.Loads
	}
	switch {
	case !m.any:
		return r.in.Empty()
	case loads == 0 && m.all:
		return fmt.Errorf("%s: %w", r.name, ErrNoAccess)
	case loads == 0:
		return fmt.Errorf("%s: %w", r.name, ErrNoLatency)
	}
	f := r.in.Features()
	m.out.Label, m.out.CPU, m.out.Arch = f.Command(), f.CPUIDString(), f.Arch
	m.out.Duration = math.NaN()
	if m.last > m.first {
		m.out.Duration = float64(m.last-m.first) / 1e9
	}
	m.out.Notes = slices.Concat(m.notes(), r.trace.notes(), r.hw.notes(), r.in.Losses())
	return nil
}

// sample hands on a sample of a load with a latency or, with all, of an access with an address.
func (m *memoryReader) sample(rec *perfdata.Sample, op *Op) {
	m.any = true
	e := m.event(rec.Event())
	if e == nil || op.Kinds&OpFetch != 0 {
		return
	}
	switch access := op.Source.Op() &^ perffile.OpNA; {
	case m.all && (!op.access() || op.Addr == 0):
		e.Others++
		return
	case m.all:
	case access != 0 && access&perffile.OpLoad == 0, access == 0 && op.Weight == 0 && op.Total > 0:
		e.Others++
		return
	case op.Weight == 0:
		e.Unmeasured++
		return
	}
	period := rec.Period()
	if period == 0 {
		e.Periodless++
		period = 1
	}
	time := m.clock.now(rec.Time())
	if rec.Has(perffile.SampleTime) {
		m.first, m.last = min(m.first, time), max(m.last, time)
	}
	e.Loads++
	cpu := int(max(cpuOf(m.r.in, rec), -1))
	m.access = Access{Event: e.Event, Loads: float64(period), Latency: op.Weight, Instruction: op.Second, Source: op.Source, Level: LevelOf(op.Source),
		Store: op.Kinds&OpStore != 0, PID: rec.PID(), TID: rec.TID(), CPU: cpu, Node: m.node(cpu), IP: rec.IP(), Addr: op.Addr, Phys: op.Phys, Width: op.Width,
		reader: m, rec: rec, time: time, place: m.r.order.spaces.Find(time, rec.PID(), rec.IP(), profile.Mode(rec.Mode()))}
	if op.Source == 0 {
		m.access.Addr = rec.Addr()
	}
	m.access.Object, m.access.Offset = m.shared.find(m.access.PID, m.access.Addr)
	m.each(&m.access)
}

// node returns the NUMA node of a processor, -1 if it is not known.
func (m *memoryReader) node(cpu int) int {
	n, ok := m.nodes[cpu]
	if !ok {
		at := counts.RunScope("")
		if at.CPU = cpu; cpu >= 0 {
			m.r.in.Features().Locate(&at)
		}
		n = max(at.Node, -1)
		if len(m.nodes) < maxNames {
			m.nodes[cpu] = n
		}
	}
	return n
}

// event returns what is known of an event, nil for one without latencies.
func (m *memoryReader) event(e *perfdata.Event) *MemoryEvent {
	known, ok := m.events[e]
	if ok {
		return known
	}
	if m.r.hw.facility(e) != noFacility || e == m.r.trace.event {
		known = &MemoryEvent{Event: e, Threshold: threshold(e), Struct: e.SampleType&perffile.SampleWeightStruct != 0}
		for _, other := range m.r.in.Events() {
			known.Mapped = known.Mapped || other.Has(perffile.FlagMmapData)
		}
		m.out.Events = append(m.out.Events, known)
	}
	m.events[e] = known
	return known
}

var thresholdTerm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:ldlat|min_latency)=(0x[0-9a-fA-F]+|[0-9]+)`) })

// threshold returns an event's threshold of latency, by its name, or by its code on
// Intel's processors: MEM_TRANS_RETIRED.LOAD_LATENCY,
// MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD on Nehalem and Westmere, and
// MEM_UOPS_RETIRED.LOAD_LATENCY on efficient cores. The threshold is in config1 there:
// the kernel's format attribute ldlat.
func threshold(e *perfdata.Event) uint64 {
	if t := thresholdTerm().FindStringSubmatch(e.Name); t != nil {
		n, err := strconv.ParseUint(t[1], 0, 32)
		if err == nil {
			return n
		}
	}
	switch e.Config & 0xffff {
	case 0x1cd, 0x100b, 0x5d0:
		if e.Type == perffile.TypeRaw || e.Type > perffile.TypeBreakpoint {
			return e.Config1 & 0xffff
		}
	}
	return 0
}

// datum says where an access's data is.
func (m *memoryReader) datum(rec *perfdata.Sample, addr, time uint64) Datum {
	if addr == 0 {
		return Datum{Name: "no address"}
	}
	spaces, pid := m.r.order.spaces, rec.PID()
	at, first, _, ok := spaces.Mapped(time, pid, addr, profile.User)
	switch {
	case !ok && kernelAddress(addr):
		return Datum{Kind: DataKernel, Name: "kernel memory"}
	case !ok:
		return Datum{Name: unknown}
	case !at.File.Anonymous:
		return m.inFile(at)
	case strings.HasPrefix(at.File.Name, "[heap]"):
		return Datum{Kind: DataHeap, Name: "[heap]"}
	case strings.HasPrefix(at.File.Name, "[stack"):
		return Datum{Kind: DataStack, Name: "[stack]"}
	}
	// What of a program is zero at its start follows the part that is in its file.
	if before, _, last, ok := spaces.Mapped(time, pid, first-1, profile.User); ok && first > 0 && last == first-1 {
		before.Offset += addr - last
		if d, ok := m.variable(before); ok {
			return d
		}
	}
	return Datum{Kind: DataAnonymous, Name: "anonymous memory"}
}

// kernelAddress reports whether an address is in the upper half. It is the kernel's on
// all 64-bit processors that sample memory.
func kernelAddress(addr uint64) bool { return addr>>63 != 0 }

// inFile says what of a mapped file data is in.
func (m *memoryReader) inFile(at profile.Place) Datum {
	if d, ok := m.variable(at); ok {
		return d
	}
	return Datum{Kind: DataFile, Module: at.File.Base(), Name: counts.Name(path.Base(at.File.Name))}
}

// variable says which variable data is in, or else which section.
func (m *memoryReader) variable(at profile.Place) (Datum, bool) {
	section, variable, ok := m.r.symbols.Data(at)
	if !ok {
		return Datum{}, false
	}
	place := strings.TrimSpace(at.File.Base() + " " + section)
	if variable == "" {
		return Datum{Kind: DataFile, Module: at.File.Base(), Name: counts.Name(place)}, true
	}
	return Datum{Kind: DataVariable, Module: at.File.Base(), Name: counts.Name(fmt.Sprintf("%s (%s)", variable, place))}, true
}

// LevelOf names where an access found its data, in perf's words, for all versions of the
// kernel's structure. Data of another core or socket has a level of its own, as has
// data that was modified there: their latencies differ.
func LevelOf(d perffile.DataSrc) Level {
	level := d.Level()
	name, rank := level.String(), levelRank[level]
	if level == perffile.LevelUnknown {
		return Level{"unknown", len(levelRank) * rankStep}
	}
	if d.Remote() {
		if rank < levelRank[perffile.LevelRAM] { // whatever cache it is there
			name, rank = "cache", levelRank[perffile.LevelAnyCache]
		}
		if of := hopNames[d.Hops()]; of != "" {
			name, rank = name+" of another "+of, rank+d.Hops()
		} else {
			name, rank = "remote "+name, rank+1
		}
	}
	switch snoop := d.Snoop(); {
	case d.Miss():
		return Level{name + " miss", rank + rankStep - 1}
	case snoop&perffile.SnoopHitM != 0:
		return Level{name + ", modified there", rank + rankStep/2}
	case snoop&perffile.SnoopForward != 0:
		return Level{name + ", forwarded", rank + rankStep/2 - 1}
	}
	return Level{name, rank}
}

// hopNames are the steps of PERF_MEM_HOPS_….
var hopNames = [8]string{"", "core", "node", "socket", "board"}

const rankStep = 16

// levelRank is how far away levels are.
var levelRank = func() (rank [perffile.LevelPMEM + 1]int) {
	for i, l := range []perffile.Level{perffile.LevelL0, perffile.LevelL1, perffile.LevelLFB, perffile.LevelL2, perffile.LevelL2MHB,
		perffile.LevelL3, perffile.LevelL4, perffile.LevelAnyCache, perffile.LevelMSC, perffile.LevelRAM, perffile.LevelPMEM,
		perffile.LevelCXL, perffile.LevelUncached, perffile.LevelIO} {
		rank[l] = (i + 1) * rankStep
	}
	return rank
}()

// notes says what was left out of the accesses.
func (m *memoryReader) notes() []counts.Note {
	var out []counts.Note
	add := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, counts.Notef("%d samples of %s", n, fmt.Sprintf(format, args...)))
		}
	}
	for _, e := range m.out.Events {
		add(e.Others, "%s are no loads, and left out: stores, prefetches", e.Name)
		add(e.Unmeasured, "%s have no latency, and are left out", e.Name)
		add(e.Periodless, "%s do not say how many loads they stand for, and count as one each", e.Name)
		if e.Loads > 0 && !e.Mapped {
			out = append(out, counts.Notef("%s: mappings of data were not recorded (perf mem record does), so that most of what data is in is unknown", e.Name))
		}
	}
	return out
}
