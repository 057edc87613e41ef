package model

import (
	"slices"
	"strings"
	"sync"
)

// PMUs of the events that the kernel defines for every machine.
const (
	pmuHardware = "hardware" // perf_event_attr.type PERF_TYPE_HARDWARE
	pmuCache    = "hw-cache" // PERF_TYPE_HW_CACHE
	pmuSoftware = "software" // PERF_TYPE_SOFTWARE
	pmuTool     = "tool"     // counted by perf itself
	pmuMSR      = "msr"      // drivers of arch/x86/events/msr.c
)

// KernelEvents returns the events that exist under one name on every machine,
// whether or not its processor is known. The caller must not change them.
//
// They are the kernel's generic hardware, cache and software events
// (include/uapi/linux/perf_event.h), perf's own (tools/perf/util/tool_pmu.h) and
// those of x86's msr PMU. A processor whose table says which of its events a
// generic name means (its aliases) overrides them.
func KernelEvents() []Event { return slices.Concat(plainEvents(), cacheEvents()) }

// KernelCounts reports whether an event is one that the kernel counts itself, such as
// cpu-clock:u or page-faults, without the processor's counters.
func KernelCounts(event string) bool {
	ref, err := ParseEvent(event)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(plainEvents(), func(e Event) bool {
		return e.PMU == pmuSoftware && (e.Name == ref.Name || slices.Contains(e.Aliases, ref.Name))
	})
}

// plainEvents are those of KernelEvents that have few names.
var plainEvents = sync.OnceValue(func() []Event {
	var all []Event
	add := func(pmu string, config uint64, unit, name string, aliases ...string) {
		all = append(all, Event{Name: name, PMU: pmu, Config: config, Unit: unit, Aliases: aliases})
	}
	add(pmuHardware, 0, "cycles", "cycles", "cpu-cycles")
	add(pmuHardware, 1, "instructions", "instructions")
	add(pmuHardware, 2, "", "cache-references")
	add(pmuHardware, 3, "", "cache-misses")
	add(pmuHardware, 4, "", "branches", "branch-instructions")
	add(pmuHardware, 5, "", "branch-misses")
	add(pmuHardware, 6, "", "bus-cycles")
	add(pmuHardware, 7, "cycles", "stalled-cycles-frontend", "idle-cycles-frontend")
	add(pmuHardware, 8, "cycles", "stalled-cycles-backend", "idle-cycles-backend")
	add(pmuHardware, 9, "", "ref-cycles")

	add(pmuSoftware, 0, "", "cpu-clock")
	add(pmuSoftware, 1, "", "task-clock")
	add(pmuSoftware, 2, "", "page-faults", "faults")
	add(pmuSoftware, 3, "", "context-switches", "cs")
	add(pmuSoftware, 4, "", "cpu-migrations", "migrations")
	add(pmuSoftware, 5, "", "minor-faults")
	add(pmuSoftware, 6, "", "major-faults")
	add(pmuSoftware, 7, "", "alignment-faults")
	add(pmuSoftware, 8, "", "emulation-faults")
	add(pmuSoftware, 9, "", "dummy")
	add(pmuSoftware, 10, "", "bpf-output")
	add(pmuSoftware, 11, "", "cgroup-switches")

	add(pmuTool, 1, "", "duration_time")
	add(pmuTool, 2, "", "user_time")
	add(pmuTool, 3, "", "system_time")

	// What source/ostime reads in /proc: numbers of our own.
	for i, name := range []string{"thread_time", "thread_run", "runqueue_wait", "io_wait", "thread_user", "thread_system", "voluntary_switches",
		"involuntary_switches", "machine_time", "steal_time", "cgroup_throttled", "max_resident",
		"processor_user", "processor_system", "processor_idle", "processor_iowait", "processor_steal"} {
		add(pmuTool, 0x100+uint64(i), "", name)
	}

	add(pmuMSR, 0, "cycles", "tsc")
	add(pmuMSR, 1, "", "aperf")
	add(pmuMSR, 2, "", "mperf")
	add(pmuMSR, 3, "", "pperf")
	add(pmuMSR, 4, "", "smi")
	add(pmuMSR, 5, "", "ptsc")
	add(pmuMSR, 6, "", "irperf")
	return all
})

// Spellings of the parts of the generic cache events: cache, operation, result. See
// evsel__hw_cache and the union of spellings in tools/perf/util/evsel.c.
var (
	cacheNames = [][]string{
		{"L1-dcache", "l1-d", "l1d", "L1-data"},
		{"L1-icache", "l1-i", "l1i", "L1-instruction"},
		{"LLC", "L2"},
		{"dTLB", "d-tlb", "Data-TLB"},
		{"iTLB", "i-tlb", "Instruction-TLB"},
		{"branch", "bpu", "btb", "bpc"},
		{"node"},
	}
	cacheOps = [][]string{
		{"load", "loads", "read"},
		{"store", "stores", "write"},
		{"prefetch", "prefetches", "speculative-read", "speculative-load"},
	}
	cacheResults = [][]string{
		{"refs", "Reference", "ops", "access"},
		{"misses", "miss"},
	}
)

// cacheEvents are the generic cache events, in the order of their parts.
var cacheEvents = sync.OnceValue(func() []Event {
	var all []Event
	for c, cache := range cacheNames {
		for o, op := range cacheOps {
			for r, result := range cacheResults {
				e := Event{PMU: pmuCache, Config: uint64(c | o<<8 | r<<16)}
				// The first spelling is perf's own: L1-dcache-loads, L1-dcache-load-misses.
				if r == 0 {
					e.Name = cache[0] + "-" + op[min(1, len(op)-1)]
				} else {
					e.Name = cache[0] + "-" + op[0] + "-" + result[0]
				}
				e.Aliases = cacheSpellings(cache, op, result, e.Name)
				all = append(all, e)
			}
		}
	}
	return all
})

// cacheNamed returns the generic cache event of a folded name, nil if it is none.
func cacheNamed(name string) *Event {
	for c, cache := range cacheNames {
		rest, ok := cutSpelling(name, cache)
		if !ok || rest == "" {
			continue
		}
		for o, op := range cacheOps {
			result, ok := cutSpelling(rest[1:], op)
			if !ok {
				continue
			}
			for r, results := range cacheResults {
				counted := r == 0 // accesses are what is counted where the name does not say
				if result != "" {
					end, ok := cutSpelling(result[1:], results)
					counted = ok && end == ""
				}
				if counted {
					return &cacheEvents()[(c*len(cacheOps)+o)*len(cacheResults)+r]
				}
			}
		}
	}
	return nil
}

// cutSpelling cuts one of some spellings off a folded name. What follows begins
// with what separates them.
func cutSpelling(name string, spellings []string) (rest string, found bool) {
	for _, s := range spellings {
		if hasFolded(name, s) && (len(name) == len(s) || name[len(s)] == '_') {
			return name[len(s):], true
		}
	}
	return "", false
}

// hasFolded reports whether a folded name begins with a spelling.
func hasFolded(name, spelling string) bool {
	if len(name) < len(spelling) {
		return false
	}
	for i := range len(spelling) {
		if name[i] != folded[spelling[i]] {
			return false
		}
	}
	return true
}

// cacheSpellings returns the other names of a generic cache event.
func cacheSpellings(cache, op, result []string, name string) []string {
	var all []string
	for _, c := range cache {
		for _, o := range op {
			for _, r := range result {
				if s := c + "-" + o + "-" + r; s != name {
					all = append(all, s)
				}
			}
			if s := c + "-" + o; result[0] == "refs" && s != name {
				all = append(all, s)
			}
		}
	}
	return all
}

// plainByName finds plainEvents by their folded names.
var plainByName = sync.OnceValue(func() map[string]*Event {
	events := plainEvents()
	byName := make(map[string]*Event, 2*len(events))
	for i := range events {
		e := &events[i]
		byName[fold(e.Name)] = e
		for _, alias := range e.Aliases {
			byName[fold(alias)] = e
		}
	}
	return byName
})

// kernelName returns the event that a name means on every machine, nil if none.
func kernelName(name string) *Event {
	name = fold(name)
	if e := plainByName()[name]; e != nil {
		return e
	}
	return cacheNamed(name)
}

// fold returns the form of a name by which it is compared: in lower case, with
// the characters that spellings of one name exchange (INST_RETIRED.ANY,
// inst_retired:any, inst_retired_any; branch-misses, branch_misses) made equal.
func fold(name string) string {
	i := 0
	for i < len(name) && folded[name[i]] == name[i] {
		i++
	}
	if i == len(name) {
		return name
	}
	b := make([]byte, len(name))
	copy(b, name[:i])
	for ; i < len(name); i++ {
		b[i] = folded[name[i]]
	}
	return string(b)
}

// A folder folds many names with few allocations: what it returns are parts of
// long strings.
type folder struct{ b strings.Builder }

func (f *folder) fold(name string) string {
	if f.b.Cap()-f.b.Len() < len(name) {
		f.b = strings.Builder{}
		f.b.Grow(max(8<<10, len(name)))
	}
	begin := f.b.Len()
	for i := range len(name) {
		f.b.WriteByte(folded[name[i]])
	}
	return f.b.String()[begin:]
}

// folded is fold for one byte.
var folded = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = byte(c) + 'a' - 'A'
	}
	t['.'], t['-'], t[':'] = '_', '_', '_'
	return t
}()
