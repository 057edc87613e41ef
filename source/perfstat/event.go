package perfstat

import (
	"bytes"
	"slices"
	"sync"
)

// generic are the kernel's and perf's own event names, in all their spellings since
// 2009. A raw code or an event of a PMU is a count too. Other lines need other evidence.
var generic = words(
	"cpu-cycles", "cycles", "instructions", "cache-references", "cache-misses",
	"branch-instructions", "branches", "branch-misses", "bus-cycles", "ref-cycles",
	"stalled-cycles-frontend", "idle-cycles-frontend", "stalled-cycles-backend", "idle-cycles-backend",
	"cpu-clock", "task-clock", "page-faults", "faults", "context-switches", "cs", "cpu-migrations", "migrations",
	"minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
	"duration_time", "user_time", "system_time", "slots",
	"topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound", "topdown-heavy-ops",
	"topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound", "topdown-total-slots",
	"topdown-slots-issued", "topdown-slots-retired", "topdown-fetch-bubbles", "topdown-recovery-bubbles",
	"mem-loads", "mem-stores", "mem-loads-aux", "cycles-t", "cycles-ct", "tx-start", "el-start",
	// until 3.5
	"CPU-migrations", "CPU-clock", "task-clock-msecs", "cpu-clock-msecs",
	// 2.6.30 and 2.6.31, with blanks in names
	"CPU cycles", "cache references", "cache misses", "branch misses", "bus cycles",
	"cpu clock ticks", "task clock ticks", "pagefaults", "context switches", "CPU migrations",
	"minor faults", "major faults",
)

// blankNames are the generic events whose names contain blanks, by first word.
var blankNames = [][]byte{
	[]byte("CPU cycles"), []byte("cache references"), []byte("cache misses"), []byte("branch misses"),
	[]byte("bus cycles"), []byte("cpu clock ticks"), []byte("task clock ticks"), []byte("context switches"),
	[]byte("CPU migrations"), []byte("minor faults"), []byte("major faults"),
}

// caches are the beginnings of the names of the generic cache events, whose
// ends are an operation or a result.
var caches = [][]byte{
	[]byte("L1-dcache-"), []byte("L1-icache-"), []byte("LLC-"), []byte("dTLB-"), []byte("iTLB-"),
	[]byte("branch-"), []byte("node-"), []byte("L1-d$-"), []byte("L1-i$-"), []byte("L2-"),
}

var cacheEnds = words("load", "loads", "read", "reads", "load-misses", "misses", "load-refs", "store", "stores",
	"store-misses", "write", "writes", "prefetch", "prefetches", "prefetch-misses", "prefetche-misses", "refs",
	"loads-misses", "stores-misses", "access")

// units are those that perf and the kernel's PMUs print.
var units = words("msec", "ns", "us", "ms", "sec", "seconds", "Joules", "mJ", "uJ", "W", "mW", "Watts",
	"B", "Bytes", "bytes", "KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "MB/s", "MiB/s", "Mbit",
	"C", "'C", "°C", "V", "mV", "A", "mA", "rpm", "Hz", "kHz", "MHz", "GHz", "pages", "64Bytes", "Mhz")

// words returns what returns a set of words, which is made when it is asked for first.
func words(list ...string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		m := make(map[string]bool, len(list))
		for _, w := range list {
			m[w] = true
		}
		return m
	})
}

// plausible reports whether a word can be an event's name: it begins like a
// name, and does not end like one in a sentence.
func plausible(name []byte) bool {
	if len(name) == 0 || len(name) > maxName || units()[string(name)] || string(name) == "raw" {
		return false
	}
	if blankNamed(name) {
		return true
	}
	if c := name[0]; !isLetter(c) && c != '_' && !(isDigit(c) && bytes.IndexByte(name, '_') > 0) {
		return false
	}
	switch name[len(name)-1] {
	case '.', ',', ';', ':', ')', '!', '?', '=', '-', '%', '"', '\'', '|':
		return false
	}
	for _, c := range name {
		if c < ' ' || c == '"' || c == '<' || c == '>' {
			return false
		}
	}
	return balanced(name)
}

// balanced reports whether the slashes around a PMU's terms are closed. The name may
// have blanks only as in "raw 0x1a8" and "event [pmu]".
func balanced(name []byte) bool {
	if i := bytes.IndexByte(name, ' '); i >= 0 {
		rest := name[i+1:]
		raw := string(name[:i]) == "raw" && hexNumber(rest)
		pmu := len(rest) > 2 && rest[0] == '[' && rest[len(rest)-1] == ']' && bytes.IndexByte(rest, ' ') < 0
		return raw || pmu
	}
	return true
}

// maxName bounds the length of an event's name.
const maxName = 4 << 10

// distinctive reports whether a name is an event's by its form alone: a generic one, a raw
// code, or one with the signs of a PMU's or tracepoint's: pmu/event/, UNIT.EVENT, unit_event,
// sched:wakeup.
func distinctive(name []byte) bool {
	if isGeneric(name) {
		return true
	}
	base := stripModifiers(name)
	if !plausible(name) || name[0] == '/' || bytes.Contains(name, []byte("//")) {
		return false
	}
	for i, c := range base {
		switch c {
		case '_', ':':
			return i > 0
		case '/':
			// pmu/…/, and not a path such as dir/file
			return i > 0 && bytes.IndexByte(base[i+1:], '/') > 0 && bytes.Count(base, []byte("/")) == 2
		case '.':
			return i > 0 && i+1 < len(base) && isLetter(base[i+1]) && bytes.IndexByte(base, '_') > 0
		}
	}
	return false
}

// isGeneric reports whether a name is one of perf's own, or a raw code.
func isGeneric(name []byte) bool {
	base := stripModifiers(name)
	return generic()[string(base)] || isCache(base) || isRaw(base)
}

// stripModifiers returns a name without the modifiers after its last colon or
// closing slash: "cycles:u", "cpu/cycles/u".
func stripModifiers(name []byte) []byte {
	i := len(name) - 1
	for i >= 0 && isModifier(name[i]) {
		i--
	}
	switch {
	case i <= 0 || i == len(name)-1:
		return name
	case name[i] == ':':
		return name[:i]
	case name[i] == '/' && bytes.IndexByte(name[:i], '/') > 0:
		return name[:i+1]
	}
	return name
}

// isModifier reports whether a letter is one of perf's event modifiers.
func isModifier(c byte) bool { return bytes.IndexByte([]byte("ukhIGHpPSDWebR"), c) >= 0 }

func isCache(name []byte) bool {
	return slices.ContainsFunc(caches, func(c []byte) bool {
		return bytes.HasPrefix(name, c) && cacheEnds()[string(name[len(c):])]
	})
}

// isRaw reports whether a name is a raw code: "r400fa", "raw 0x400fa".
func isRaw(name []byte) bool {
	if bytes.HasPrefix(name, []byte("raw ")) {
		return hexNumber(name[4:])
	}
	return len(name) > 1 && name[0] == 'r' && hexDigits(name[1:]) && bytes.ContainsAny(name[1:], "0123456789")
}

func hexNumber(b []byte) bool {
	return len(b) > 2 && b[0] == '0' && b[1] == 'x' && hexDigits(b[2:])
}

func hexDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return len(b) > 0
}

// blankNamed reports whether a name is one of those with blanks.
func blankNamed(name []byte) bool { return len(blankName(name)) == len(name) && len(name) > 0 }

// blankName returns the name with blanks that b begins with, nil if none.
func blankName(b []byte) []byte {
	for _, n := range blankNames {
		if bytes.HasPrefix(b, n) && (len(b) == len(n) || isBlank(b[len(n)])) {
			return b[:len(n)]
		}
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isClock reports whether an event is one of the two clocks. Perf prints them in
// milliseconds, until Linux 4.19 without a unit.
func isClock(name []byte) bool {
	switch string(stripModifiers(name)) {
	case "task-clock", "cpu-clock", "task-clock-msecs", "cpu-clock-msecs", "task clock ticks", "cpu clock ticks":
		return true
	}
	return false
}
