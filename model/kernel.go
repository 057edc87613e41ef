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

// KernelCounts reports whether the kernel counts an event without the processor's
// counters, as it does cpu-clock:u or page-faults.
func KernelCounts(event string) bool {
	ref, err := ParseEvent(event)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(plainEvents[:], func(e Event) bool {
		return e.PMU == pmuSoftware && (e.Name == ref.Name || slices.Contains(e.Aliases, ref.Name))
	})
}

// plainEvents are the events of every machine that have few names: the kernel's generic
// hardware and software events (include/uapi/linux/perf_event.h), perf's own
// (tools/perf/util/tool_pmu.h) and those of x86's msr PMU. A processor's table may say which
// of its events such a name means. Every run of the program asks for some.
var plainEvents = [...]Event{
	{Name: "cycles", PMU: pmuHardware, Unit: "cycles", Aliases: []string{"cpu-cycles"}},
	{Name: "instructions", PMU: pmuHardware, Config: 1, Unit: "instructions"},
	{Name: "cache-references", PMU: pmuHardware, Config: 2},
	{Name: "cache-misses", PMU: pmuHardware, Config: 3},
	{Name: "branches", PMU: pmuHardware, Config: 4, Aliases: []string{"branch-instructions"}},
	{Name: "branch-misses", PMU: pmuHardware, Config: 5},
	{Name: "bus-cycles", PMU: pmuHardware, Config: 6},
	{Name: "stalled-cycles-frontend", PMU: pmuHardware, Config: 7, Unit: "cycles", Aliases: []string{"idle-cycles-frontend"}},
	{Name: "stalled-cycles-backend", PMU: pmuHardware, Config: 8, Unit: "cycles", Aliases: []string{"idle-cycles-backend"}},
	{Name: "ref-cycles", PMU: pmuHardware, Config: 9},

	{Name: "cpu-clock", PMU: pmuSoftware},
	{Name: "task-clock", PMU: pmuSoftware, Config: 1},
	{Name: "page-faults", PMU: pmuSoftware, Config: 2, Aliases: []string{"faults"}},
	{Name: "context-switches", PMU: pmuSoftware, Config: 3, Aliases: []string{"cs"}},
	{Name: "cpu-migrations", PMU: pmuSoftware, Config: 4, Aliases: []string{"migrations"}},
	{Name: "minor-faults", PMU: pmuSoftware, Config: 5},
	{Name: "major-faults", PMU: pmuSoftware, Config: 6},
	{Name: "alignment-faults", PMU: pmuSoftware, Config: 7},
	{Name: "emulation-faults", PMU: pmuSoftware, Config: 8},
	{Name: "dummy", PMU: pmuSoftware, Config: 9},
	{Name: "bpf-output", PMU: pmuSoftware, Config: 10},
	{Name: "cgroup-switches", PMU: pmuSoftware, Config: 11},

	{Name: "duration_time", PMU: pmuTool, Config: 1},
	{Name: "user_time", PMU: pmuTool, Config: 2},
	{Name: "system_time", PMU: pmuTool, Config: 3},

	// What internal/source/ostime reads in /proc: numbers of our own.
	{Name: "thread_time", PMU: pmuTool, Config: 0x100},
	{Name: "thread_run", PMU: pmuTool, Config: 0x101},
	{Name: "runqueue_wait", PMU: pmuTool, Config: 0x102},
	{Name: "io_wait", PMU: pmuTool, Config: 0x103},
	{Name: "thread_user", PMU: pmuTool, Config: 0x104},
	{Name: "thread_system", PMU: pmuTool, Config: 0x105},
	{Name: "voluntary_switches", PMU: pmuTool, Config: 0x106},
	{Name: "involuntary_switches", PMU: pmuTool, Config: 0x107},
	{Name: "machine_time", PMU: pmuTool, Config: 0x108},
	{Name: "steal_time", PMU: pmuTool, Config: 0x109},
	{Name: "cgroup_throttled", PMU: pmuTool, Config: 0x10a},
	{Name: "max_resident", PMU: pmuTool, Config: 0x10b},
	{Name: "processor_user", PMU: pmuTool, Config: 0x10c},
	{Name: "processor_system", PMU: pmuTool, Config: 0x10d},
	{Name: "processor_idle", PMU: pmuTool, Config: 0x10e},
	{Name: "processor_iowait", PMU: pmuTool, Config: 0x10f},
	{Name: "processor_steal", PMU: pmuTool, Config: 0x110},

	{Name: "tsc", PMU: pmuMSR, Unit: "cycles"},
	{Name: "aperf", PMU: pmuMSR, Config: 1},
	{Name: "mperf", PMU: pmuMSR, Config: 2},
	{Name: "pperf", PMU: pmuMSR, Config: 3},
	{Name: "smi", PMU: pmuMSR, Config: 4},
	{Name: "ptsc", PMU: pmuMSR, Config: 5},
	{Name: "irperf", PMU: pmuMSR, Config: 6},
}

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

// kernelName returns the event that a name means on every machine, nil if none.
func kernelName(name string) *Event {
	name = fold(name)
	is := func(spelling string) bool { return len(spelling) == len(name) && hasFolded(name, spelling) }
	for i := range plainEvents {
		if e := &plainEvents[i]; is(e.Name) || slices.ContainsFunc(e.Aliases, is) {
			return e
		}
	}
	return cacheNamed(name)
}

// fold returns the form of a name for comparisons: in lower case, with the characters that
// spellings of one name exchange made equal (INST_RETIRED.ANY, inst_retired:any,
// inst_retired_any; branch-misses, branch_misses).
func fold(name string) string {
	i := 0
	for i < len(name) && folded[name[i]] == name[i] {
		i++
	}
	if i == len(name) {
		return name
	}
	return string(appendFolded(nil, name))
}

// appendFolded appends the folded form of a name to b.
func appendFolded(b []byte, name string) []byte {
	for i := range len(name) {
		b = append(b, folded[name[i]])
	}
	return b
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
