package pipeline

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/packed"
)

// coreFiles are the simulated cores: one file each, read strictly. A core may extend
// another and state only what differs. amdzen4.toml explains the keys. The program has them
// compressed, which makes it 40 kB smaller.
//
//go:generate go run ../../../gen/pack cores packed
//go:embed packed
var coreFiles embed.FS

// GenericCore is the core of processors that no file names.
const GenericCore = "generic"

// cores are the simulated cores.
var cores = sync.OnceValue(func() *coreSet {
	set, err := readCores(packed.New(coreFiles, "packed"), ".")
	if err != nil {
		panic(err) // the files are part of the program: TestCores reads them
	}
	return set
})

// CoreOf returns the core of a processor by its name in the catalogue of processors, such
// as amdzen4. Unknown processors have the core "generic".
func CoreOf(cpu string) *Core {
	return cores().core(cores().of(cpu))
}

// CoreNamed returns the core of a name; nil if there is none.
func CoreNamed(name string) *Core {
	set := cores()
	if _, ok := set.parents[name]; !ok {
		return nil
	}
	return set.core(name)
}

// HostCoreOf is CoreOf for a processor with features: flags as /proc/cpuinfo has them, and the
// size of its first-level cache of code, as l1i=64K.
// Hypervisors may call a processor an older one than it is. A core that alone has some of
// the features is then the right one.
func HostCoreOf(cpu string, features []string) *Core {
	set := cores()
	name := set.of(cpu)
	return set.core(cmp.Or(set.disguised(name, features), name))
}

// disguised returns the core that features betray, if it is another one of a core's family; ""
// if there is none. Of several it is the latest.
func (s *coreSet) disguised(core string, features []string) (latest string) {
	unknown := func(feature string) bool { return !slices.Contains(features, feature) }
	for _, name := range slices.Sorted(maps.Keys(s.features)) {
		own := slices.ContainsFunc(s.features[name], func(all string) bool { return !slices.ContainsFunc(strings.Fields(all), unknown) })
		if own && !s.extends(core, name) && s.extends(name, core) && (latest == "" || s.extends(name, latest)) {
			latest = name
		}
	}
	return latest
}

// extends reports whether a core is another one, or what its file extends is.
func (s *coreSet) extends(core, other string) bool {
	for ; core != ""; core = s.parents[core] {
		if core == other {
			return true
		}
	}
	return false
}

// A coreSet is what the files of cores say of their processors. A core is read when it is asked for:
// reading all takes 10 ms.
type coreSet struct {
	fsys       fs.FS
	dir        string
	processors map[string]string // names of cores by the beginnings of processors' names
	features   map[string][]string
	parents    map[string]string // what each extends

	sync.Mutex
	cores map[string]*Core // that were asked for
}

// core returns a copy of a core.
func (s *coreSet) core(name string) *Core {
	s.Lock()
	defer s.Unlock()
	if s.cores[name] == nil {
		core, err := s.read(name)
		if err != nil {
			panic(err) // as in cores
		}
		s.cores[name] = core
	}
	core := *s.cores[name]
	return &core
}

func (s *coreSet) read(name string) (*Core, error) {
	r := &coreReader{fsys: s.fsys, dir: s.dir, sets: map[string]string{}, core: &Core{}}
	if err := r.apply(name, nil); err != nil {
		return nil, fmt.Errorf("core %s: %w", name, err)
	}
	return r.core, nil
}

// of names the core whose processors' names begin as cpu does, the longest counts.
func (s *coreSet) of(cpu string) string {
	best := ""
	for beginning := range s.processors {
		if strings.HasPrefix(cpu, beginning) && len(beginning) > len(best) {
			best = beginning
		}
	}
	if best == "" {
		return GenericCore
	}
	return s.processors[best]
}

// A coreFile is a file of a core, with what it extends. Ports are words separated by
// blanks: names of ports or of sets.
type coreFile struct {
	Name       string
	Extends    string
	Arch       string   // of its instructions; "" is amd64
	Processors []string // the beginnings of the names of its processors
	Features   []string // that no core before it has: flags of /proc/cpuinfo, or l1i=SIZE; several in one are all needed
	About      string
	Measured   string // classes with an instruction that was measured on such a processor
	Ports      string // the names of all
	Sets       map[string]string
	Fuses      map[string]string // conditions, by what can be fused
	Fused      string
	Costs      []costEntry

	frontEndKeys
	backEndKeys
	memoryKeys
}

type frontEndKeys struct {
	Fetch      int
	Cached     int
	Decode     int
	Line       uint64
	Queue      int
	Refill     int
	CallBubble int `toml:"call-bubble"`
	Ahead      int
	Nops       bool
	Syncs      bool

	Decoders    int
	Decoded     int
	Predecode   int
	Predecoded  int
	Unlaminates string // what: "some" or "all"
	LCP         int    `toml:"lcp"`
	Streamed    int
	Lines       int
	LineOps     int  `toml:"line-ops"`
	Streams     int  `toml:"streams"`
	StreamEnds  int  `toml:"stream-ends"`
	Erratum     bool `toml:"jump-erratum"`
}

type backEndKeys struct {
	Dispatch, Retire, Reorder int

	CallEnds bool `toml:"call-ends"`

	Schedulers       []schedulerEntry
	InTurn           bool `toml:"in-turn"`
	Held             int64
	LoadsApart       bool             `toml:"loads-apart"`
	VectorSchedulers []schedulerEntry `toml:"vector-schedulers"`
	VectorQueue      int              `toml:"vector-queue"`
	VectorPorts      string           `toml:"vector-ports"`
	Vector           uint8
	Binds            bool
	Moves            int
	LateConvert      int64 `toml:"late-convert"`
	LateIndex        int64 `toml:"late-index"`
	LateMerge        bool  `toml:"late-merge"`
	LateAddend       int64 `toml:"late-addend"`
	LateSum          int64 `toml:"late-sum"`
	Sums             int64
	Delay            int64
}

type memoryKeys struct {
	LoadQueue        int   `toml:"load-queue"`
	StoreQueue       int   `toml:"store-queue"`
	PendingLoads     int   `toml:"pending-loads"`
	StoreHeld        int64 `toml:"store-held"`
	Misses           int
	Walkers          int
	AheadLines       int `toml:"ahead-lines"`
	TLB              [2]int
	SecondTLB        [2]int   `toml:"second-tlb"`
	NextLine         bool     `toml:"next-line"`
	SameSet          [3]int64 `toml:"same-set"`
	Past             [2]float64
	Loads            string
	VectorLoads      string `toml:"vector-loads"`
	Addresses        string
	IndexedAddresses string `toml:"indexed-addresses"`
	Data             string
	VectorData       string `toml:"vector-data"`
	Chased           int
	Load             int
	VectorLoad       int `toml:"vector-load"`
	Indexed          int
	Forward          int
	VectorForward    int `toml:"vector-forward"`
	Blocked          int
	Forwarding       string
	LockFill         int64 `toml:"lock-fill"`
	LockValue        int64 `toml:"lock-value"`
	Alias            int64
	Renames          uint64
	Links            int64
	RenamesBytes     bool `toml:"renames-bytes"`
	RenamesIndexed   bool `toml:"renames-indexed"`
	Named            bool
	Scaled           int64
	Written          uint64
	Joined           int
	Banked           bool
}

type schedulerEntry struct {
	Size  int
	Ports string
}

// A costEntry is the cost of the classes named in Of. "all" is every class.
type costEntry struct {
	Slots, Ops   uint8
	Ports        string
	Latency      uint8
	Hold         uint8
	Late         int8     // cycles that one operand is needed later than the others
	LeastLatency uint8    `toml:"least-latency"` // of a division, if the quotient has no bits
	LeastHold    uint8    `toml:"least-hold"`
	Unit         string   // what the instruction occupies for hold cycles besides its port
	Uops         []string // the ports of each op, instead of Ops and Ports
	Width        uint8    // bytes of the operands; 0 is any
	Memory       string   // "yes" and "no": only with and without an operand in memory
	Of           string
}

// Conditions that let a comparison and a jump fuse, as sets of the conditions' numbers.
// with-carry has all except overflow, sign and parity; without-carry has those of them that
// do not read the carry flag.
const (
	anyCondition = 0xffff
	withCarry    = anyCondition &^ (1<<0 | 1<<1 | 1<<8 | 1<<9 | 1<<10 | 1<<11)
	withoutCarry = withCarry &^ (1<<2 | 1<<3 | 1<<6 | 1<<7)
)

var conditionSets = map[string]uint16{"any": anyCondition, "with-carry": withCarry, "without-carry": withoutCarry}

var fusionNames = map[string]fusion{
	"test": fuseTest, "compare": fuseCompare, "and": fuseAnd, "or": fuseOr, "add": fuseAdd, "increment": fuseIncrement,
}

// readCores reads which processors the cores in a folder are of.
func readCores(fsys fs.FS, dir string) (*coreSet, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	set := &coreSet{fsys: fsys, dir: dir, processors: map[string]string{}, features: map[string][]string{}, parents: map[string]string{}, cores: map[string]*Core{}}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".toml")
		data, err := fs.ReadFile(fsys, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		var head struct {
			Extends              string
			Processors, Features []string
		}
		if err := toml.Unmarshal(data, &head); err != nil {
			return nil, fmt.Errorf("core %s: %w", name, err)
		}
		for _, beginning := range head.Processors {
			if other, ok := set.processors[beginning]; ok {
				return nil, fmt.Errorf("core %s: processors: %q is of core %s", name, beginning, other)
			}
			set.processors[beginning] = name
		}
		set.features[name], set.parents[name] = head.Features, head.Extends
	}
	return set, nil
}

// A coreReader makes a core of its file and those that it extends.
type coreReader struct {
	fsys     fs.FS
	dir      string
	file     coreFile
	sets     map[string]string // of ports
	core     *Core
	problems []error
}

// apply applies the file of a core over the file that it extends. extended are the names of
// the files that extend it.
func (r *coreReader) apply(name string, extended []string) error {
	if slices.Contains(extended, name) {
		return fmt.Errorf("extends: %s extends itself", name)
	}
	data, err := fs.ReadFile(r.fsys, path.Join(r.dir, name+".toml"))
	if err != nil {
		return err
	}
	var head struct{ Extends string }
	if err := toml.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Extends != "" {
		if err := r.apply(head.Extends, append(extended, name)); err != nil {
			return err
		}
	}
	f := &r.file
	f.Sets, f.Costs, f.Fuses, f.Measured = nil, nil, nil, ""
	f.Schedulers, f.VectorSchedulers = nil, nil
	if err := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields().Decode(f); err != nil {
		var unknown *toml.StrictMissingError
		if errors.As(err, &unknown) {
			return errors.New(unknown.String())
		}
		return err
	}
	if f.Name != name {
		return fmt.Errorf("name: %q is not that of the file", f.Name)
	}
	maps.Copy(r.sets, f.Sets)
	r.set()
	return errors.Join(r.problems...)
}

// set applies the values read so far.
func (r *coreReader) set() {
	f, c := &r.file, r.core
	c.Name, c.portNames, c.fused = f.Name, strings.Fields(f.Ports), r.ports(f.Fused)
	c.fetch, c.line, c.queue, c.refill, c.callBubble, c.ahead, c.nops = f.Fetch, r.bitsOf("line", f.Line), f.Queue, f.Refill, f.CallBubble, f.Ahead, f.Nops
	c.cached, c.decode = f.Cached, f.Decode
	c.legacyFrontEnd = legacyFrontEnd{f.Decoders, f.Decoded, f.Predecode, f.Predecoded, unlaminationNames[f.Unlaminates], f.Lines, f.LineOps, f.LCP}
	if _, ok := unlaminationNames[f.Unlaminates]; !ok {
		r.problem("unlaminates = %q", f.Unlaminates)
	}
	c.dispatch, c.retire, c.callEnds, c.reorder = f.Dispatch, f.Retire, f.CallEnds, f.Reorder
	c.vectorQueue, c.vectorPorts, c.vector = f.VectorQueue, r.ports(f.VectorPorts), f.Vector
	c.loadQueue, c.storeQueue, c.misses, c.walkers, c.aheadLines = f.LoadQueue, f.StoreQueue, f.Misses, f.Walkers, f.AheadLines
	c.pendingLoads, c.held, c.loadsApart, c.storeHeld = f.PendingLoads, f.Held, f.LoadsApart, f.StoreHeld
	c.tlbs = [2][2]int{f.TLB, f.SecondTLB}
	c.nextLine, c.sameSet, c.past = f.NextLine, SameSet{f.SameSet[0], f.SameSet[1], f.SameSet[2]}, f.Past
	c.loads, c.vectorLoads, c.addresses = r.ports(f.Loads), r.ports(f.VectorLoads), r.ports(f.Addresses)
	c.indexedAddresses = r.ports(f.IndexedAddresses)
	c.lateIndex, c.lateConvert, c.lateMerge = f.LateIndex, f.LateConvert, f.LateMerge
	c.lateAddend, c.lateSum, c.sums = f.LateAddend, f.LateSum, f.Sums
	if c.Arch = cmp.Or(f.Arch, string(disasm.AMD64)); c.Arch != string(disasm.AMD64) && c.Arch != string(disasm.ARM64) {
		r.problem("arch = %q", f.Arch)
	}
	c.links, c.renamesBytes, c.renamesIndexed, c.named, c.scaled = max(f.Links, 1), f.RenamesBytes, f.RenamesIndexed, f.Named, f.Scaled
	c.chased, c.syncs = f.Chased, f.Syncs
	c.written, c.joined = r.bitsOf("written", f.Written), f.Joined
	c.binds, c.delay, c.moves, c.banked = f.Binds, max(f.Delay, 1), f.Moves, f.Banked
	c.data, c.vectorData = r.ports(f.Data), r.ports(f.VectorData)
	c.erratum, c.streamed = f.Erratum, f.Streamed
	c.streams, c.streamEnds = f.Streams, f.StreamEnds
	c.forwarding, c.alias = r.ports(f.Forwarding), f.Alias
	c.lockFill, c.lockValue = f.LockFill, f.LockValue
	c.load, c.vectorLoad, c.indexed = f.Load, f.VectorLoad, f.Indexed
	c.forward, c.vectorForward, c.blocked, c.renames = f.Forward, f.VectorForward, f.Blocked, f.Renames
	c.inTurn = f.InTurn
	if f.Schedulers != nil {
		c.schedulers = r.schedulers(f.Schedulers)
	}
	if f.VectorSchedulers != nil {
		c.vectorSchedulers = r.schedulers(f.VectorSchedulers)
	}
	if f.Fuses != nil {
		c.fuses = [len(c.fuses)]uint16{}
		for what, conditions := range f.Fuses {
			with, known := fusionNames[what]
			set, ok := conditionSets[conditions]
			if !known || !ok {
				r.problem("fuses: %s = %q", what, conditions)
			}
			c.fuses[with] = set
		}
	}
	r.forget()
	for _, entry := range f.Costs {
		r.cost(entry)
	}
	r.trust(f.Measured)
	c.about = append(c.about, f.Name+":\n"+strings.TrimSpace(f.About))
}

// bitsOf returns how many bits of an address count so many bytes, a power of two. 0 bytes are
// any number.
func (r *coreReader) bitsOf(key string, bytes uint64) uint8 {
	if bytes == 0 {
		return 64
	}
	if bytes&(bytes-1) != 0 {
		r.problem("%s = %d is not a power of two", key, bytes)
	}
	return uint8(bits.TrailingZeros64(bytes))
}

func (r *coreReader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *coreReader) schedulers(entries []schedulerEntry) []scheduler {
	var list []scheduler
	for _, e := range entries {
		list = append(list, scheduler{e.Size, r.ports(e.Ports)})
	}
	if len(list) > maxSchedulers {
		r.problem("schedulers: more than %d", maxSchedulers)
	}
	return list
}

// cost sets what classes cost.
func (r *coreReader) cost(e costEntry) {
	k := cost{slots: e.Slots, ops: e.Ops, ports: r.ports(e.Ports), latency: e.Latency, late: e.Late, hold: e.Hold, unit: r.ports(e.Unit), leastLatency: e.LeastLatency, leastHold: e.LeastHold}
	for i, words := range e.Uops {
		if k.ops++; i == 0 {
			k.ports = r.ports(words)
		} else {
			k.others = append(k.others, r.ports(words))
		}
	}
	if len(e.Uops) > 0 && (e.Ops > 0 || e.Ports != "") {
		r.problem("costs: uops, and also ops or ports")
	}
	if e.Memory != "" && e.Memory != "yes" && e.Memory != "no" {
		r.problem("costs: memory = %q", e.Memory)
	}
	for _, name := range strings.Fields(e.Of) {
		class := slices.Index(classNames[:], name)
		switch {
		case name == "all":
			for i := range classes {
				r.forms(i, &e, k)
				r.core.trust[i] = ClassDefault
			}
		case class < 0:
			r.problem("costs: no class of instructions is called %q", name)
		default:
			r.forms(Class(class), &e, k)
			r.core.trust[class] = Imported
		}
	}
}

// forget notes that the figures so far are those of another core.
func (r *coreReader) forget() {
	for i := range r.core.trust {
		r.core.trust[i] = ClassDefault
	}
}

// trust notes the classes that were measured.
func (r *coreReader) trust(measured string) {
	for _, name := range strings.Fields(measured) {
		class := slices.Index(classNames[:], name)
		if class < 0 {
			r.problem("measured: no class of instructions is called %q", name)
			continue
		}
		r.core.trust[class] = Measured
	}
}

// forms sets the cost of the forms of a class that an entry is about.
func (r *coreReader) forms(class Class, e *costEntry, k cost) {
	for width := uint8(1); width <= 64; width *= 2 {
		if e.Width != 0 && e.Width != width {
			continue
		}
		if e.Memory != "yes" {
			r.core.costs[formOf(class, width, false)] = k
		}
		if e.Memory != "no" {
			r.core.costs[formOf(class, width, true)] = k
		}
	}
}

// ports returns the ports that words name: of all the ports in the file, in their order.
func (r *coreReader) ports(words string) ports {
	all := strings.Fields(r.file.Ports)
	var set ports
	for _, word := range strings.Fields(words) {
		i := slices.Index(all, word)
		switch members, ok := r.sets[word]; {
		case i >= 0:
			set |= 1 << i
		case word == "all":
			set |= 1<<len(all) - 1
		case ok:
			set |= r.ports(members)
		default:
			r.problem("no port or set of ports is called %q", word)
		}
	}
	return set
}
