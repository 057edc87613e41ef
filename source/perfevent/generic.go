package perfevent

import (
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A genericEvent is one that the kernel has under one name on every machine.
type genericEvent struct {
	typ    uint32
	config uint64
	unit   string
}

// generics are the events with one name on every machine. They have perf's names, in
// the order of the kernel's numbers:
// include/uapi/linux/perf_event.h and perf-list(1).
var generics = [...]struct {
	typ   uint32
	names [][]string
}{
	{perffile.TypeHardware, [][]string{{"cycles", "cpu-cycles"}, {"instructions"}, {"cache-references"}, {"cache-misses"}, {"branches", "branch-instructions"},
		{"branch-misses"}, {"bus-cycles"}, {"stalled-cycles-frontend", "idle-cycles-frontend"},
		{"stalled-cycles-backend", "idle-cycles-backend"}, {"ref-cycles"}}},
	{perffile.TypeSoftware, [][]string{{"cpu-clock"}, {"task-clock"}, {"page-faults", "faults"}, {"context-switches", "cs"}, {"cpu-migrations", "migrations"},
		{"minor-faults"}, {"major-faults"}, {"alignment-faults"}, {"emulation-faults"}, {"dummy"}, {"bpf-output"}, {"cgroup-switches"}}},
}

// generic returns the event of generics that has a name.
func generic(name string) (e genericEvent, ok bool) {
	for _, g := range generics {
		i := slices.IndexFunc(g.names, func(names []string) bool { return slices.Contains(names, name) })
		if i < 0 {
			continue
		}
		e := genericEvent{typ: g.typ, config: uint64(i)}
		if e.typ == perffile.TypeSoftware && i <= softwareTaskClock {
			e.unit = "ns"
		}
		return e, true
	}
	return e, false
}

// The parts of the names of cache events, in lower case. Each is in the order of the
// kernel's numbers.
var (
	cacheNames = [][]string{
		{"l1-dcache", "l1-d", "l1d", "l1-data"}, {"l1-icache", "l1-i", "l1i", "l1-instruction"}, {"llc", "l2"},
		{"dtlb", "d-tlb", "data-tlb"}, {"itlb", "i-tlb", "instruction-tlb"}, {"branch", "branches", "bpu", "btb", "bpc"}, {"node"},
	}
	cacheOps = [][]string{
		{"load", "loads", "read"}, {"store", "stores", "write"},
		{"prefetch", "prefetches", "speculative-read", "speculative-load"},
	}
	cacheResults = [][]string{{"refs", "reference", "ops", "access"}, {"misses", "miss"}}
)

// cacheEvent returns the configuration of a cache event by its name: the cache and then
// the operation and the result in any order. Without an operation it is a load, without a
// result an access.
func cacheEvent(name string) (config uint64, ok bool) {
	cache, rest, ok := cutAny(strings.ToLower(name), cacheNames)
	if !ok {
		return 0, false
	}
	op, result := -1, -1
	for rest != "" {
		rest = rest[1:] // the hyphen
		if n, after, ok := cutAny(rest, cacheOps); ok && op < 0 {
			op, rest = n, after
		} else if n, after, ok := cutAny(rest, cacheResults); ok && result < 0 {
			result, rest = n, after
		} else {
			return 0, false
		}
	}
	if op < 0 && result < 0 {
		return 0, false
	}
	return uint64(cache | max(op, 0)<<8 | max(result, 0)<<16), true
}

// cutAny cuts the longest of some words off a name. The word ends at a hyphen or at the
// end of the name. It returns the number of the word's set.
func cutAny(name string, sets [][]string) (set int, rest string, ok bool) {
	longest := 0
	for i, words := range sets {
		for _, w := range words {
			after, has := strings.CutPrefix(name, w)
			if has && len(w) > longest && (after == "" || after[0] == '-') {
				set, rest, longest = i, after, len(w)
			}
		}
	}
	return set, rest, longest > 0
}
