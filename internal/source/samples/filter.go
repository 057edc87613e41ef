package samples

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A Filter says which samples count. A sample has to match every part that is not
// empty, and of a part any one of its entries. Names are exact, but for * and ?, which
// stand for any text and any letter.
type Filter struct {
	Processes []string // names or numbers; the name is the main thread's at the time
	Threads   []string // names at the time of the sample, or numbers
	Cgroups   []string // paths
	Modules   []string // paths, or names without directories
	Functions []string // demangled, or as in the symbol table; of a Go package's path the last part is enough
	Lines     []string // FILE:N, FILE:N-M or FILE; the directories may be left out
	Addresses []Range  // of instructions in their module, as objdump shows them
	CPUs      []int
	Time      *Window
}

// A Range is the numbers from From to To, both included.
type Range struct{ From, To uint64 }

// A Window is a piece of a recording, in seconds since its beginning; or, if larger than the
// recording is long, in seconds of its own clock, as perf script prints them. Both ends are
// included.
type Window struct {
	From, To float64 // To is +Inf for the end
}

// empty reports whether everything counts.
func (f *Filter) empty() bool {
	return len(f.Processes)+len(f.Threads)+len(f.Cgroups)+len(f.Modules)+len(f.Functions)+len(f.Lines)+len(f.Addresses)+len(f.CPUs) == 0 && f.Time == nil
}

// A NoMatchError says that a filter leaves no sample.
type NoMatchError struct {
	File  string
	Kind  counts.Kind // of the part that nothing matched: Process, …; Interval for the time
	Names []string    // what the part could have matched among the samples that the others leave
	Last  bool        // a sample matches each part, but none all of them
}

func (e *NoMatchError) Error() string {
	if e.Last {
		return e.File + ": no sample matches all of the filters"
	}
	return fmt.Sprintf("%s: no sample matches the %s", e.File, e.Kind)
}

// A part is one part of a filter, and what was found of it.
type part struct {
	kind  counts.Kind
	names []string
	ids   map[int32]bool
	hit   bool // something matched

	known map[task]bool       // processes and threads that were looked at
	met   map[string]struct{} // names that did not match
	order []string            // the same in the order of arrival
}

// A task is a process or a thread under a name.
type task struct {
	id   int32
	name string
}

// maxMet bounds the names that are remembered for a message, and the tasks.
const maxMet = 1 << 14

// newPart returns nil for a part that is empty.
func newPart(kind counts.Kind, want []string) *part {
	if len(want) == 0 {
		return nil
	}
	p := &part{kind: kind, names: want, ids: map[int32]bool{}, known: map[task]bool{}, met: map[string]struct{}{}}
	for _, w := range want {
		if n, err := strconv.ParseInt(w, 10, 32); err == nil {
			p.ids[int32(n)] = true
		}
	}
	return p
}

// match reports whether any of the names of something match. The first one is what it
// is called.
func (p *part) match(names ...string) bool {
	for _, w := range p.names {
		for _, n := range names {
			if n != "" && matches(w, n) {
				p.hit = true
				return true
			}
		}
	}
	p.miss(names[0])
	return false
}

// matchFunction is match for a function, by its name or symbol. The last part of a Go package's
// path is enough, and a symbol's version may be left out.
func (p *part) matchFunction(name, symbol string) bool {
	return p.match(orUnknown(name), symbol, name[strings.LastIndex(name, "/")+1:], Unversioned(name))
}

// Unversioned returns the name of a symbol without its version, as read for read@@GLIBC_2.2.5. What calls
// it through a table, as read@plt, is another function.
func Unversioned(name string) string {
	bare, version, _ := strings.Cut(name, "@")
	if version == "plt" {
		return name
	}
	return bare
}

// matchTask is match for a process or a thread.
func (p *part) matchTask(t task) bool {
	ok, known := p.known[t]
	if known {
		return ok
	}
	ok = p.ids[t.id] || p.match(taskLabel(t.id, t.name), t.name)
	p.hit = p.hit || ok
	if len(p.known) < maxMet {
		p.known[t] = ok
	}
	return ok
}

// miss notes what did not match.
func (p *part) miss(name string) {
	name = counts.Name(name)
	if _, known := p.met[name]; known || name == "" || len(p.met) >= maxMet {
		return
	}
	p.met[name] = struct{}{}
	p.order = append(p.order, name)
}

// matches reports whether a name matches a pattern: * is any text and ? any letter.
func matches(pattern, name string) bool {
	star, from := -1, 0 // the last *, and what it has taken up to
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// A selection is a filter at work. What stands in the record of a sample is looked at
// by the goroutine that decodes; names, which depend on the order of events, and
// places by the one that has them.
type selection struct {
	time, cpus                  *part
	processes, threads, cgroups *part
	modules, functions, lines   *part
	instructions                *part
	addresses                   []Range
	window                      *Window
	from, to                    uint64 // the window by the recording's clock
	first, last                 uint64 // times of all samples
}

// newSelection returns nil if everything counts.
func newSelection(f *Filter) *selection {
	if f.empty() {
		return nil
	}
	s := &selection{window: f.Time, addresses: f.Addresses,
		processes: newPart(counts.Process, f.Processes), threads: newPart(counts.Thread, f.Threads), cgroups: newPart(counts.Cgroup, f.Cgroups),
		modules: newPart(counts.Module, f.Modules), functions: newPart(counts.Function, f.Functions), lines: newPart(counts.Line, f.Lines)}
	if f.Time != nil {
		s.time = newPart(counts.Interval, []string{"time"})
	}
	if len(f.Addresses) > 0 {
		s.instructions = newPart(counts.Instruction, []string{"address"})
	}
	var cpus []string
	for _, cpu := range f.CPUs {
		cpus = append(cpus, strconv.Itoa(cpu))
	}
	s.cpus = newPart(counts.CPU, cpus)
	return s
}

// beginAt works out the window, when the first sample comes. The recording begins with it,
// unless the times of the first and the last sample are known.
func (s *selection) beginAt(now uint64, span [2]uint64) {
	if s.window == nil {
		return
	}
	zero, long := now, 0.0
	if span[0] > 0 && span[0] < now {
		zero = span[0]
	}
	if span[1] > span[0] && span[0] > 0 {
		long = float64(span[1]-span[0]) / 1e9
	}
	from, to, start := s.window.From, s.window.To, float64(zero)/1e9
	largest := to
	if math.IsInf(to, 1) {
		largest = from
	}
	if largest < start || largest <= long { // since the beginning
		from, to = from+start, to+start
	}
	s.from, s.to = nanos(from), nanos(to)
	s.first = math.MaxUint64
}

// nanos is a time in whole nanoseconds.
func nanos(seconds float64) uint64 {
	if seconds*1e9 >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(math.Round(seconds * 1e9))
}

// record reports whether a sample counts, by what its record says.
func (s *selection) record(in *perfdata.Reader, rec *perfdata.Sample) bool {
	if s.time != nil {
		now := rec.Time()
		s.first, s.last = min(s.first, now), max(s.last, now)
		if !rec.Has(perffile.SampleTime) || now < s.from || now > s.to {
			return false
		}
		s.time.hit = true
	}
	if s.cpus != nil {
		cpu := cpuOf(in, rec)
		if !s.cpus.matchTask(task{id: cpu}) {
			return false
		}
	}
	return true
}

// names reports whether a sample counts, by the names that its process, thread and
// cgroup have at its time.
func (s *selection) names(spaces *profile.Spaces, time uint64, x context, cgroup string) bool {
	if s.processes != nil && !s.processes.matchTask(task{x.pid, spaces.Comm(time, int(x.pid))}) {
		return false
	}
	if s.threads != nil && !s.threads.matchTask(task{x.tid, spaces.Comm(time, int(x.tid))}) {
		return false
	}
	return s.cgroups == nil || s.cgroups.match(cgroup)
}

// records reports whether what stands in the record of a sample is looked at.
func (s *selection) records() bool { return s != nil && (s.time != nil || s.cpus != nil) }

// named reports whether names are looked at.
func (s *selection) named() bool {
	return s != nil && (s.processes != nil || s.threads != nil || s.cgroups != nil)
}

// code reports whether places in the code are looked at.
func (s *selection) code() bool {
	return s != nil && (s.modules != nil || s.functions != nil || s.lines != nil || s.instructions != nil)
}

// place reports whether a place in the code counts.
func (s *selection) place(at profile.Place, symbols functionsOf) bool {
	if s.modules != nil && !s.modules.match(at.File.Base(), fileName(at.File)) {
		return false
	}
	if s.functions != nil {
		f := symbols.at(at)
		if !s.functions.matchFunction(f.Name, f.Symbol) {
			return false
		}
	}
	if s.lines != nil && !s.line(symbols.Line(at)) {
		return false
	}
	return s.instructions == nil || s.address(symbols.Addr(at))
}

// line reports whether a line counts.
func (s *selection) line(file string, number int) bool {
	if number == 0 {
		return false
	}
	for _, w := range s.lines.names {
		name, from, to := splitLine(w)
		if (from == 0 || from <= number && number <= to) && (matches(name, file) || matches("*/"+name, file)) {
			s.lines.hit = true
			return true
		}
	}
	s.lines.miss(fmt.Sprintf("%s:%d", path.Base(file), number))
	return false
}

// splitLine divides FILE:N-M. Without a number from is 0.
func splitLine(text string) (file string, from, to int) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, 0, 0
	}
	first, last, isRange := strings.Cut(text[i+1:], "-")
	from, err := strconv.Atoi(first)
	to = from
	if isRange && err == nil {
		to, err = strconv.Atoi(last)
	}
	if err != nil {
		return text, 0, 0
	}
	return text[:i], from, to
}

// address reports whether an instruction counts.
func (s *selection) address(addr uint64) bool {
	for _, r := range s.addresses {
		if r.From <= addr && addr <= r.To {
			s.instructions.hit = true
			return true
		}
	}
	s.instructions.miss(fmt.Sprintf("%#x", addr))
	return false
}

func fileName(f *profile.File) string {
	if f == nil {
		return unknown
	}
	return f.Name
}

func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

// failure names the first part of the filter that nothing matched.
func (s *selection) failure(file string) error {
	for _, p := range []*part{s.time, s.cpus, s.processes, s.threads, s.cgroups, s.modules, s.functions, s.lines, s.instructions} {
		if p != nil && !p.hit {
			if p == s.time {
				p.miss(s.times())
			}
			return &NoMatchError{File: file, Kind: p.kind, Names: p.order}
		}
	}
	return &NoMatchError{File: file, Last: true}
}

// times says when samples were taken.
func (s *selection) times() string {
	at := func(t uint64) string { return strconv.FormatFloat(float64(t)/1e9, 'f', 6, 64) }
	return fmt.Sprintf("samples from 0 to %.6g s, which are %s to %s by the recording's clock", float64(s.last-s.first)/1e9, at(s.first), at(s.last))
}
