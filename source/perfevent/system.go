package perfevent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/cpulist"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A System is the machine as its kernel shows it: PMUs, their formats and
// named events, and which logical processors share what.
type System struct {
	PMUs []*PMU // in the order of their names
	CPUs []int  // numbers of the logical processors online, in order

	// Names returns the spelling of an event that the kernel has no name for, such as the
	// vendor's, "" for none. It may be nil.
	Names func(name string) string

	root     fs.FS
	topology func() ([]CPU, error)
}

// A CPU is one logical processor. Numbers that are not known are
// [counts.Unknown].
type CPU struct{ ID, Core, Die, Socket, Node int }

// Topology returns what the logical processors online share, in their order. It is
// read when it is asked for the first time: of a server that is hundreds of files.
// The error is a *[sysfsError].
func (s *System) Topology() ([]CPU, error) { return s.topology() }

// A PMU is a device of the kernel that counts.
//
// [System.PMU], [System.Core] and [System.Resolve] read Formats, Aliases and Caps when
// they first return the PMU: a server has hundreds of PMUs and a run needs a few.
type PMU struct {
	Name   string
	Type   uint32
	CPUs   []int // its events are opened on these (cpumask), or these have it (cpus); nil: any
	Uncore bool  // counts for more than one logical processor: CPUs is a cpumask

	Formats map[string]string // "umask" → "config:8-15"
	Aliases map[string]string // "instructions" → "event=0xc0"
	Caps    map[string]string

	core   bool
	scales map[string]string // of aliases
	units  map[string]string
	root   fs.FS
	once   sync.Once
	err    error
}

// A sysfsError says which file of the kernel's cannot be understood.
type sysfsError struct {
	Path string // below the root
	Err  error
}

func (e *sysfsError) Error() string { return "/" + e.Path + ": " + e.Err.Error() }
func (e *sysfsError) Unwrap() error { return e.Err }

// Where the kernel describes PMUs and processors, below the root.
const (
	devicesDir = "sys/bus/event_source/devices"
	cpuDir     = "sys/devices/system/cpu"
	nodeDir    = "sys/devices/system/node"
	paranoid   = "proc/sys/kernel/perf_event_paranoid"
)

// Bounds on what is read: a file, and the entries of a directory.
const (
	maxFile    = 64 << 10
	maxEntries = 1 << 14
)

// ReadSystem reads what the kernel says about its PMUs and processors below a
// root: os.DirFS("/"), or a copy of another machine's for tests. A directory
// that is missing is a machine without such things; a file that cannot be
// understood is a *[sysfsError].
func ReadSystem(root fs.FS) (*System, error) {
	s, err := ReadProcessors(root)
	if err != nil {
		return nil, err
	}
	names, err := list(root, devicesDir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := readPMU(root, name)
		if err != nil {
			return nil, err
		}
		if p != nil {
			s.PMUs = append(s.PMUs, p)
		}
	}
	sorting.Sort(s.PMUs, func(a, b *PMU) int { return natural(a.Name, b.Name) })
	return s, nil
}

// ReadProcessors is ReadSystem without the PMUs. It is enough for software events, such
// as page faults.
func ReadProcessors(root fs.FS) (*System, error) {
	s := &System{root: root}
	s.topology = sync.OnceValues(s.readTopology)
	var err error
	if s.CPUs, err = readOnline(root); err != nil {
		return nil, err
	}
	return s, nil
}

// readOnline returns the logical processors that are online, nil if the kernel does not
// say. In a sandbox without /sys it reads them from /proc/stat.
func readOnline(root fs.FS) ([]int, error) {
	cpus, err := readList(root, path.Join(cpuDir, "online"))
	if err != nil || len(cpus) > 0 {
		return cpus, err
	}
	f, err := root.Open("proc/stat")
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); { // those about processors come first
		name, _, _ := strings.Cut(lines.Text(), " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break
		}
		if n, err := cpulist.Parse(number); err == nil { // none in the first line, which is about all
			cpus = append(cpus, n...)
		}
	}
	return cpus, nil
}

// errNoCPUs is the error of what needs to know which processors there are.
var errNoCPUs = errors.New("which processors there are is not known: neither /sys/devices/system/cpu/online nor /proc/stat says so; mount /sys or /proc")

// readTopology reads what the logical processors online share.
func (s *System) readTopology() ([]CPU, error) {
	nodes, err := readNodes(s.root)
	if err != nil {
		return nil, err
	}
	cpus := make([]CPU, 0, len(s.CPUs))
	for _, n := range s.CPUs {
		dir := path.Join(cpuDir, "cpu"+strconv.Itoa(n), "topology")
		c := CPU{ID: n, Core: number(s.root, path.Join(dir, "core_id")), Die: number(s.root, path.Join(dir, "die_id")),
			Socket: number(s.root, path.Join(dir, "physical_package_id")), Node: counts.Unknown}
		if node, ok := nodes[n]; ok {
			c.Node = node
		}
		cpus = append(cpus, c)
	}
	return cpus, nil
}

// readNodes returns the NUMA node of each logical processor.
func readNodes(root fs.FS) (map[int]int, error) {
	names, err := list(root, nodeDir)
	if err != nil {
		return nil, err
	}
	of := map[int]int{}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, "node")
		node, err := strconv.ParseUint(digits, 10, 31)
		if !ok || err != nil {
			continue
		}
		cpus, err := readList(root, path.Join(nodeDir, name, "cpulist"))
		if err != nil {
			return nil, err
		}
		for _, n := range cpus {
			of[n] = int(node)
		}
	}
	return of, nil
}

// readPMU reads what is needed of every PMU. It returns nil for what is no PMU
// that counts: a device without a type.
func readPMU(root fs.FS, name string) (*PMU, error) {
	dir := path.Join(devicesDir, name)
	text, err := read(root, path.Join(dir, "type"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	typ, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, &sysfsError{path.Join(dir, "type"), fmt.Errorf("%q is not a number of 32 bits", spelling.Clip(text))}
	}
	p := &PMU{Name: name, Type: uint32(typ), root: root}
	switch typ {
	case perffile.TypeSoftware, perffile.TypeTracepoint, perffile.TypeBreakpoint:
		return p, nil // they count wherever something runs
	}
	if p.CPUs, err = readList(root, path.Join(dir, "cpus")); err != nil {
		return nil, err
	}
	p.core = p.CPUs != nil || name == "cpu" || name == "cpum_cf"
	if p.core {
		return p, nil
	}
	p.CPUs, err = readList(root, path.Join(dir, "cpumask"))
	p.Uncore = p.CPUs != nil
	return p, err
}

// load reads the PMU's formats, events and capabilities. The error is a
// *[sysfsError].
func (p *PMU) load() error {
	p.once.Do(func() {
		dir := path.Join(devicesDir, p.Name)
		if p.Formats, p.err = readDir(p.root, path.Join(dir, "format")); p.err != nil {
			return
		}
		if p.Caps, p.err = readDir(p.root, path.Join(dir, "caps")); p.err != nil {
			return
		}
		var events map[string]string
		if events, p.err = readDir(p.root, path.Join(dir, "events")); p.err == nil {
			p.sortEvents(events)
		}
	})
	return p.err
}

// sortEvents tells the events from the files that say something about them.
func (p *PMU) sortEvents(files map[string]string) {
	p.Aliases, p.scales, p.units = map[string]string{}, map[string]string{}, map[string]string{}
	for name, text := range files {
		event, about := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			event, about = name[:i], name[i+1:]
		}
		switch about {
		case "scale":
			p.scales[event] = text
		case "unit":
			p.units[event] = text
		case "snapshot", "per-pkg":
		default:
			p.Aliases[name] = text
		}
	}
}

// PMU returns the PMU of a name, nil if the kernel has none.
func (s *System) PMU(name string) *PMU {
	for _, p := range s.PMUs {
		if p.Name == name {
			_ = p.load() // what is wrong with it is said by who needs its files
			return p
		}
	}
	return nil
}

// Core returns the PMUs of the cores: one, or one for each core type (cpu_core, cpu_atom,
// armv8_cortex_a53, …). The one with the fastest cores is first where that is known. A
// machine without a PMU has none.
func (s *System) Core() []*PMU {
	var cores []*PMU
	for _, p := range s.PMUs {
		if p.core {
			_ = p.load()
			cores = append(cores, p)
		}
	}
	sorting.Stable(cores, func(a, b *PMU) int { return coreRank(a.Name) - coreRank(b.Name) })
	return cores
}

// coreRank puts Intel's performance cores before the others.
func coreRank(name string) int {
	switch name {
	case "cpu", "cpu_core":
		return 0
	case "cpu_atom":
		return 1
	}
	return 2
}

// cpu returns what is known of a logical processor.
func (s *System) cpu(id int) CPU {
	all, _ := s.Topology() // whoever opens processors has looked at the error
	i, ok := slices.BinarySearchFunc(all, id, func(c CPU, id int) int { return c.ID - id })
	if !ok {
		return CPU{ID: id, Core: counts.Unknown, Die: counts.Unknown, Socket: counts.Unknown, Node: counts.Unknown}
	}
	return all[i]
}

// online returns the numbers of the logical processors that are online.
func (s *System) online() []int { return slices.Clone(s.CPUs) }

// list returns the names in a directory, in order; none if it does not exist.
func list(root fs.FS, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &sysfsError{dir, pathless(err)}
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &sysfsError{dir, errors.New("is not a directory")}
	}
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && err != io.EOF {
		return nil, &sysfsError{dir, pathless(err)}
	}
	if len(entries) > maxEntries {
		return nil, &sysfsError{dir, fmt.Errorf("has more than %d entries", maxEntries)}
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names, nil
}

// read returns the content of a file without the space around it. The error
// wraps fs.ErrNotExist if there is none.
func read(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", &sysfsError{name, pathless(err)}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", &sysfsError{name, pathless(err)}
	case len(b) > maxFile:
		return "", &sysfsError{name, fmt.Errorf("is longer than %d bytes", maxFile)}
	}
	return strings.TrimSpace(string(b)), nil
}

// readDir returns the contents of a directory's files by their names. Those
// that cannot be read, as a few cannot without privileges, are left out.
func readDir(root fs.FS, dir string) (map[string]string, error) {
	names, err := list(root, dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		if text, err := read(root, path.Join(dir, name)); err == nil {
			files[name] = text
		}
	}
	return files, nil
}

// readList reads a list of processors, nil if there is no such file.
func readList(root fs.FS, name string) ([]int, error) {
	text, err := read(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cpus, err := cpulist.Parse(text)
	if err != nil {
		return nil, &sysfsError{name, err}
	}
	return cpus, nil
}

// number reads a file that holds a number, Unknown where it does not.
func number(root fs.FS, name string) int {
	text, err := read(root, name)
	if err != nil {
		return counts.Unknown
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return counts.Unknown
	}
	return int(n)
}

// pathless returns the reason of an error of a file system, whose path is said
// otherwise.
func pathless(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// natural compares names that end in a number as people would sort them:
// uncore_cha_2 before uncore_cha_10.
func natural(a, b string) int {
	stemA, numA := tail(a)
	stemB, numB := tail(b)
	if c := strings.Compare(stemA, stemB); c != 0 {
		return c
	}
	if numA != numB {
		return numA - numB
	}
	return strings.Compare(a, b)
}

// tail splits a number off the end of a name; -1 if there is none.
func tail(name string) (stem string, n int) {
	stem = strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(stem):])
	if err != nil {
		return name, -1
	}
	return stem, n
}

// onlineNow returns the logical processors that are online at this time.
func (s *System) onlineNow() []int {
	cpus, err := readOnline(s.root)
	if err != nil {
		return nil
	}
	return cpus
}

// setting returns a setting of the kernel's, "unknown" if it cannot be read.
func (s *System) setting(name string) string {
	text, err := read(s.root, name)
	if err != nil || len(text) > 20 {
		return "unknown"
	}
	return text
}
