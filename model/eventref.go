package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// An EventRef is an event as somebody spelt it, taken apart. What its terms
// mean for a processor says [EventTable.Resolve].
type EventRef struct {
	PMU   string // "cpu", "cpu_core", "uncore_cha_0"; "" where the spelling names none
	Name  string // the event's name without PMU, terms and modifiers; "" where only its encoding is given
	Label string // the name that perf was told to print (name=…), which says nothing about the event

	HasConfig bool
	Config    uint64 // the whole code: r400fa, config=0x400fa, "raw 0x400fa"
	Terms     []Term // fields of the code, in order: event=0x9c, cmask=4

	Privilege Privilege // what the count is restricted to; 0 is nothing
	Precise   int       // 0 to 3, the number of p
	Latency   bool      // the mean retire latency of the event (:R, :retire_latency), not its count
}

// A Term is a field of an event's code: event=0x9c, or "edge" for edge=1.
type Term struct {
	Key   string // in lower case
	Value uint64
	Text  string // a value that is no number
}

// Privilege is the restriction of a count to privilege levels and to sides of
// virtualisation. The zero Privilege is no restriction.
type Privilege uint8

// The parts of a Privilege, with perf's modifiers.
const (
	User       Privilege = 1 << iota // u
	Kernel                           // k
	Hypervisor                       // h
	Guest                            // G
	Host                             // H
)

const levels = User | Kernel | Hypervisor

// String returns the privilege as perf's modifiers: "u", "uk", "".
func (p Privilege) String() string {
	var b strings.Builder
	for i, letter := range "ukhGH" {
		if p&(1<<i) != 0 {
			b.WriteRune(letter)
		}
	}
	return b.String()
}

// maxSpelling bounds an event's spelling. The longest of real files are uncore
// events of some 200 bytes.
const maxSpelling = 1024

// An eventError says that a text is not an event.
type eventError struct {
	Spelling string
	Msg      string
}

func (e *eventError) Error() string {
	return fmt.Sprintf("event %q: %s", spelling.Clip(e.Spelling), e.Msg)
}

// ParseEvent parses an event in any spelling that perf prints or accepts, or that formulas
// use:
//
//	cycles   L1-dcache-load-misses:u   INST_RETIRED.ANY
//	cpu/event=0x9c,umask=0x1,name=FOO/k   cpu_core/cycles/   msr/tsc/   cycles/name=x/
//	r400fa   raw 0x400fa   cpu/rc0/   cpu/config=0xc0/
//	IDQ.MS_UOPS:c1:e1:u0x30   BR_INST_RETIRED.ALL:SUP      (Intel's metric files)
func ParseEvent(s string) (EventRef, error) {
	ref, problem := parseEvent(strings.TrimSpace(s))
	if problem != "" {
		return EventRef{}, &eventError{Spelling: s, Msg: problem}
	}
	return ref, nil
}

func parseEvent(s string) (ref EventRef, problem string) {
	switch {
	case s == "":
		return ref, "it is empty"
	case len(s) > maxSpelling:
		return ref, fmt.Sprintf("longer than %d bytes", maxSpelling)
	case strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) >= 0:
		return ref, "it has a character that is not of text"
	}
	if hex, ok := cutPrefixFold(s, "raw "); ok {
		s = strings.TrimLeft(hex, " ")
		if !strings.HasPrefix(s, "0x") {
			s = "0x" + s
		}
	}
	first, last := strings.IndexByte(s, '/'), strings.LastIndexByte(s, '/')
	if first < 0 || strings.HasPrefix(s, "mem:") { // mem:0x1000/4:rw is a breakpoint
		return parsePlain(s)
	}
	return parseSlashed(s[:first], s[first+1:max(first+1, last)], s[last+1:], last > first)
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// parsePlain parses "NAME:modifier:…". What follows a colon and is no modifier
// is part of the name: "sched:sched_switch".
func parsePlain(s string) (ref EventRef, problem string) {
	base, mods := s, []string(nil)
	for {
		i := strings.LastIndexByte(base, ':')
		if i <= 0 || !new(EventRef).modifier(base[i+1:]) {
			break
		}
		mods = append(mods, base[i+1:])
		base = base[:i]
	}
	for _, m := range slices.Backward(mods) {
		ref.modifier(m)
	}
	if code, ok := rawCode(base); ok {
		ref.HasConfig, ref.Config = true, code
		return ref, ""
	}
	if looksRaw(base) {
		return ref, "its code has more than 64 bits"
	}
	if strings.HasSuffix(base, ":") || strings.HasPrefix(base, ":") {
		return ref, "nothing next to a colon"
	}
	ref.Name = base
	return ref, ""
}

// rawCode returns the code of "r400fa" or "0x400fa".
func rawCode(s string) (uint64, bool) {
	if !looksRaw(s) {
		return 0, false
	}
	code, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(s, "r"), "0x"), 16, 64)
	return code, err == nil
}

func looksRaw(s string) bool {
	hex, ok := strings.CutPrefix(s, "0x")
	if !ok {
		hex, ok = strings.CutPrefix(s, "r")
		hex = strings.TrimPrefix(hex, "0x")
	}
	return ok && hex != "" && strings.Trim(hex, "0123456789abcdefABCDEF") == ""
}

// parseSlashed parses "PMU/terms/modifiers".
func parseSlashed(pmu, terms, mods string, closed bool) (ref EventRef, problem string) {
	switch {
	case !closed:
		return ref, "the slash before the terms needs another one after them"
	case pmu == "":
		return ref, "no PMU before the slash"
	case strings.ContainsAny(pmu, " ,="):
		return ref, fmt.Sprintf("%q is not the name of a PMU", spelling.Clip(pmu))
	}
	ref.PMU = pmu
	if kernelName(pmu) != nil { // cycles/name=x/
		ref.PMU, ref.Name = "", pmu
	}
	for _, t := range splitTerms(terms) {
		if problem := ref.term(t); problem != "" {
			return ref, problem
		}
	}
	if ref.Name == "" && !ref.HasConfig && len(ref.Terms) == 0 {
		return ref, "no event between the slashes"
	}
	mods = strings.TrimPrefix(mods, ":")
	if mods == "" {
		return ref, ""
	}
	for m := range strings.SplitSeq(mods, ":") {
		if !ref.modifier(m) {
			return ref, fmt.Sprintf("unknown modifier %q", spelling.Clip(m))
		}
	}
	return ref, ""
}

// splitTerms splits at the commas that are not between single quotes, which
// perf's name='…' may have.
func splitTerms(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
}

// aside are the terms that do not say which event it is. They say how perf counts, prints
// or samples it.
var aside = []string{
	"period", "freq", "time", "call-graph", "stack-size", "max-stack", "nr", "inherit", "no-inherit",
	"overwrite", "no-overwrite", "percore", "aux-output", "aux-action", "aux-sample-size", "metric-id", "branch_type", "driver-config", "pc",
}

// flags are the fields that may stand without a value for 1.
var flagTerms = []string{"edge", "inv", "any", "in_tx", "in_tx_cp", "eq", "long"}

// term takes in one term of those between slashes.
func (ref *EventRef) term(t string) (problem string) {
	key, value, valued := strings.Cut(strings.TrimSpace(t), "=")
	lower := strings.ToLower(key)
	switch {
	case key == "":
		return "a term has no name"
	case slices.Contains(aside, lower):
		return ""
	case valued && value == "":
		return fmt.Sprintf("no value after %q", spelling.Clip(t))
	case valued && lower == "name":
		ref.Label = strings.Trim(value, "'\"")
		return ""
	case valued:
		return ref.field(lower, value)
	case slices.Contains(flagTerms, lower):
		ref.Terms = append(ref.Terms, Term{Key: lower, Value: 1})
		return ""
	}
	if code, ok := rawCode(key); ok && !ref.alphabetic(key) {
		ref.HasConfig, ref.Config = true, code
		return ""
	}
	if ref.Name != "" {
		return fmt.Sprintf("two names, %q and %q", spelling.Clip(ref.Name), spelling.Clip(key))
	}
	ref.Name = key
	return ""
}

// alphabetic reports whether a term of some other PMU than the core's is rather
// a word than a code: "read" of the memory controllers.
func (ref *EventRef) alphabetic(term string) bool {
	core := strings.HasPrefix(ref.PMU, "cpu") || strings.HasPrefix(ref.PMU, "arm")
	return !core && !strings.ContainsAny(term, "0123456789")
}

// field takes in "key=value".
func (ref *EventRef) field(key, value string) (problem string) {
	v, err := parseNumber(value)
	switch {
	case err == nil && key == "config":
		ref.HasConfig, ref.Config = true, v
	case err == nil:
		ref.Terms = append(ref.Terms, Term{Key: key, Value: v})
	case key == "event" && ref.Name == "": // event=cpu-cycles
		ref.Name = value
	case isCodeField(key):
		return fmt.Sprintf("%s=%s is not a number of 64 bits", key, spelling.Clip(value))
	default:
		ref.Terms = append(ref.Terms, Term{Key: key, Text: value})
	}
	return ""
}

// parseNumber parses a number as C does: 0x9c, 156, 0234.
func parseNumber(s string) (uint64, error) {
	if strings.Contains(s, "_") { // which Go would skip
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(s, 0, 64)
}

// modifier takes in what stands between colons behind an event, and reports
// whether it is a modifier: perf's letters, or one of Intel's words.
func (ref *EventRef) modifier(m string) bool {
	return m != "" && (ref.word(m) || ref.intelField(m) || ref.letters(m))
}

// word takes in the modifiers of Intel's metric files that are words.
func (ref *EventRef) word(m string) bool {
	switch strings.ToLower(m) {
	case "sup":
		ref.Privilege |= Kernel
	case "user":
		ref.Privilege |= User
	case "retire_latency":
		ref.Latency = true
	case "perf_metrics", "percore", "one_unit": // how to collect it
	default:
		return false
	}
	return true
}

// intelNames are the fields of Intel's modifiers: c1, i1, e1, eq1, u0x80, amt1.
var intelNames = []struct{ prefix, key string }{
	{"ocr_msr_val", "offcore_rsp"}, {"opc", "opc"}, {"tid", "tid"}, {"filter0", "filter0"}, {"filter1", "filter1"},
	{"cmask", "cmask"}, {"umask", "umask"}, {"edge", "edge"}, {"inv", "inv"}, {"any", "any"},
	{"amt", "any"}, {"eq", "eq"}, {"c", "cmask"}, {"i", "inv"}, {"e", "edge"}, {"u", "umask"}, {"t", "any"},
}

// intelField takes in "c1" or "cmask=1".
func (ref *EventRef) intelField(m string) bool {
	lower := strings.ToLower(m)
	for _, f := range intelNames {
		value, ok := strings.CutPrefix(lower, f.prefix)
		if !ok {
			continue
		}
		if v, err := parseNumber(strings.TrimPrefix(value, "=")); err == nil {
			ref.Terms = append(ref.Terms, Term{Key: f.key, Value: v})
			return true
		}
	}
	return false
}

// letters takes in perf's modifiers. Those that say how events are put on the
// counters (pinned, weak group, …) say nothing about the event.
func (ref *EventRef) letters(m string) bool {
	if strings.Trim(m, "ukhGHIpPSDWebRX") != "" {
		return false
	}
	for _, letter := range m {
		switch letter {
		case 'u':
			ref.Privilege |= User
		case 'k':
			ref.Privilege |= Kernel
		case 'h':
			ref.Privilege |= Hypervisor
		case 'G':
			ref.Privilege |= Guest
		case 'H':
			ref.Privilege |= Host
		case 'p':
			ref.Precise = min(ref.Precise+1, 3)
		case 'P':
			ref.Precise = 3
		case 'R':
			ref.Latency = true
		}
	}
	return true
}
