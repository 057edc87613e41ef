package perfevent

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// An EventError says that a spelling is none of an event of this machine.
type EventError struct {
	Spelling string
	Msg      string
}

func (e *EventError) Error() string {
	return fmt.Sprintf("event %q: %s", spelling.Clip(e.Spelling), e.Msg)
}

// maxSpelling bounds the spelling of an event. The longest that occur are
// events of POWER's hypervisor with four parameters.
const maxSpelling = 1024

// Resolve finds what the kernel calls an event. Spellings are perf's:
//
//	cpu/event=0x9c,umask=0x1/   an event of a PMU, by its terms
//	r400fa                      a raw code
//	cycles, instructions:u      generic names, with modifiers
//	L1-dcache-load-misses       a generic event of a cache
//	task-clock                  a software event
//	sched:sched_switch          a tracepoint
//	duration_time               also user_time and system_time
//	inst_retired.any            a name in sysfs, or one that System.Names knows
//
// The PMU "cpu" of x86 tables, and "armv8_pmuv3_0", stand for the core PMU whatever it
// is called here. "uncore_imc" and "imc" stand for all of uncore_imc_0, uncore_imc_1, …
//
// The event's name is the spelling, unless a term name=… gives another. Errors are of
// type *[EventError] and say what does not exist: the PMU, the term, or the name.
func (s *System) Resolve(spelling string) (Event, error) {
	e, err := s.resolve(strings.TrimSpace(spelling))
	if err != nil {
		return Event{}, &EventError{spelling, err.Error()}
	}
	if e.Name == "" {
		e.Name = strings.TrimSpace(spelling)
	}
	return e, nil
}

func (s *System) resolve(spelling string) (Event, error) {
	switch {
	case spelling == "":
		return Event{}, errors.New("it is empty")
	case len(spelling) > maxSpelling:
		return Event{}, fmt.Errorf("it is longer than %d bytes", maxSpelling)
	}
	pmu, rest, slashed := strings.Cut(spelling, "/")
	if !slashed {
		return s.resolvePlain(spelling)
	}
	end := strings.LastIndexByte(rest, '/')
	if end < 0 {
		return Event{}, errors.New("its terms do not end in a slash")
	}
	e, err := s.resolveTerms(pmu, rest[:end])
	if err != nil {
		return Event{}, err
	}
	return e, e.modify(strings.TrimPrefix(rest[end+1:], ":"))
}

// resolvePlain resolves "NAME:modifiers".
func (s *System) resolvePlain(spelled string) (Event, error) {
	if e, ok, err := s.resolveKnown(spelled); ok || err != nil {
		return e, err
	}
	i := strings.LastIndexByte(spelled, ':')
	if i < 0 {
		return Event{}, errors.New("the kernel has no event of this name here")
	}
	e, ok, err := s.resolveKnown(spelled[:i])
	if err != nil {
		return Event{}, err
	}
	if !ok {
		if (&Event{}).modify(spelled[i+1:]) != nil && validName(spelled[:i]) && validName(spelled[i+1:]) {
			return Event{}, s.noTracepoint()
		}
		return Event{}, fmt.Errorf("the kernel has no event %q here", spelling.Clip(spelled[:i]))
	}
	return e, e.modify(spelled[i+1:])
}

// resolveKnown resolves a name that the kernel has, or else one that Names knows.
func (s *System) resolveKnown(name string) (e Event, ok bool, err error) {
	if e, ok, err = s.resolveName(name); ok || err != nil || s.Names == nil {
		return e, ok, err
	}
	spelled := s.Names(name)
	if spelled == "" {
		return e, false, nil
	}
	if pmu, rest, slashed := strings.Cut(spelled, "/"); slashed {
		e, err = s.resolveTerms(pmu, strings.TrimSuffix(rest, "/"))
		e.Name = ""
		return e, err == nil, err
	}
	return s.resolveName(spelled)
}

// noTracepoint says why there is no tracepoint of a name.
func (s *System) noTracepoint() error {
	var err error
	for _, dir := range tracefs {
		if _, err = fs.ReadDir(s.root, path.Join(dir, "events")); err == nil {
			return errors.New("the kernel has no tracepoint of this name here")
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("only root may read tracefs, where the kernel's tracepoints are")
	}
	return errors.New("tracefs, where the kernel's tracepoints are, is not mounted: mount -t tracefs nodev /sys/kernel/tracing")
}

// tracefs is where the kernel's tracepoints are: at one of these.
var tracefs = []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"}

// resolveName resolves a name without modifiers. ok is false if there is no
// such event.
func (s *System) resolveName(name string) (e Event, ok bool, err error) {
	switch name {
	case "duration_time":
		return Event{Unit: "ns", tool: elapsedTime}, true, nil
	case "user_time":
		return Event{Unit: "ns", tool: userTime}, true, nil
	case "system_time":
		return Event{Unit: "ns", tool: systemTime}, true, nil
	}
	if g, ok := generic(name); ok {
		return s.generic(g), true, nil
	}
	if config, ok := cacheEvent(name); ok {
		return s.generic(genericEvent{typ: perffile.TypeHWCache, config: config}), true, nil
	}
	if code, ok := rawCode(name); ok {
		return s.raw(code), true, nil
	}
	if system, point, ok := strings.Cut(name, ":"); ok {
		return s.tracepoint(system, point)
	}
	for _, p := range append(s.Core(), s.PMUs...) {
		if err := p.load(); err != nil {
			return Event{}, false, err
		}
		if _, ok := p.Aliases[name]; ok {
			e, err := s.resolveTerms(p.Name, name)
			return e, err == nil, err
		}
	}
	return Event{}, false, nil
}

// generic returns an event that the kernel itself translates. Where there are
// several core PMUs it is asked for on the first: it has no event for several.
func (s *System) generic(g genericEvent) Event {
	e := Event{Attr: Attr{Type: g.typ, Config: g.config}, Unit: g.unit}
	if g.typ == perffile.TypeSoftware {
		return e
	}
	if cores := s.Core(); len(cores) > 1 {
		e.on(cores[0])
	}
	return e
}

// on asks for a generic event on one of several core PMUs: the PMU's type is
// in the upper half of the configuration (PERF_PMU_TYPE_SHIFT).
func (e *Event) on(p *PMU) {
	e.PMU = p
	e.Attr.Config |= uint64(p.Type) << 32
}

// rawCode parses "r400fa".
func rawCode(s string) (uint64, bool) {
	digits, ok := strings.CutPrefix(s, "r")
	if !ok || len(digits) > 16 {
		return 0, false
	}
	code, err := strconv.ParseUint(digits, 16, 64)
	return code, err == nil
}

// raw returns an event of the core PMU by its code.
func (s *System) raw(code uint64) Event {
	e := Event{Attr: Attr{Type: perffile.TypeRaw, Config: code}}
	if cores := s.Core(); len(cores) > 0 {
		e.PMU, e.Attr.Type = cores[0], cores[0].Type
	}
	return e
}

// tracepoint returns one of the kernel's tracepoints, whose numbers are in
// tracefs.
func (s *System) tracepoint(system, point string) (e Event, ok bool, err error) {
	if !validName(system) || !validName(point) {
		return Event{}, false, nil
	}
	for _, dir := range tracefs {
		text, err := read(s.root, path.Join(dir, "events", system, point, "id"))
		if err != nil {
			continue
		}
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return Event{}, false, fmt.Errorf("its number in tracefs is %q", spelling.Clip(text))
		}
		format, err := read(s.root, path.Join(dir, "events", system, point, "format"))
		return Event{Attr: Attr{Type: perffile.TypeTracepoint, Config: id}, probe: err == nil && strings.Contains(format, " __probe_")}, true, nil
	}
	return Event{}, false, nil
}

// validName says whether a name can be that of a file in one directory.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}

// find returns the PMUs that a name stands for.
func (s *System) find(name string) []*PMU {
	if p := s.PMU(name); p != nil {
		return []*PMU{p}
	}
	if name == "cpu" || strings.HasPrefix(name, "armv8_pmuv3") {
		if cores := s.Core(); len(cores) > 0 {
			return cores[:1]
		}
	}
	var found []*PMU
	for _, p := range s.PMUs {
		stem, n := tail(p.Name)
		stem = strings.TrimSuffix(stem, "_")
		if n >= 0 && (stem == name || stem == "uncore_"+name) || p.Name == "uncore_"+name {
			found = append(found, p)
		}
	}
	return found
}

// resolveTerms resolves "PMU/terms/".
func (s *System) resolveTerms(pmu, terms string) (Event, error) {
	found := s.find(pmu)
	if len(found) == 0 {
		if g, ok := generic(pmu); ok { // cycles/name=x/
			e := s.generic(g)
			return e, e.plainTerms(terms)
		}
		return Event{}, fmt.Errorf("this machine has no PMU %q (it has %s)", spelling.Clip(pmu), s.names())
	}
	e := Event{PMU: found[0], Alike: found[1:], Attr: Attr{Type: found[0].Type}}
	if err := e.PMU.load(); err != nil {
		return Event{}, err
	}
	list, err := parseTerms(terms)
	if err != nil {
		return Event{}, err
	}
	if done, err := s.genericOn(&e, list); done || err != nil {
		return e, err
	}
	return e, e.apply(list)
}

// names lists the PMUs that there are, for an error.
func (s *System) names() string {
	const most = 12
	if len(s.PMUs) == 0 {
		return "none"
	}
	var names []string
	for _, p := range s.PMUs[:min(most, len(s.PMUs))] {
		names = append(names, p.Name)
	}
	if len(s.PMUs) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// genericOn resolves a generic name on a core PMU ("cpu_atom/cycles/") if sysfs has no
// event of that name.
func (s *System) genericOn(e *Event, list []term) (done bool, err error) {
	if !e.PMU.core {
		return false, nil
	}
	i := slices.IndexFunc(list, func(t term) bool { return !t.hasValue })
	if i < 0 || e.PMU.Aliases[list[i].key] != "" || e.PMU.Formats[list[i].key] != "" {
		return false, nil
	}
	g, ok := generic(list[i].key)
	if !ok {
		g.config, ok = cacheEvent(list[i].key)
		g.typ = perffile.TypeHWCache
	}
	if !ok || g.typ == perffile.TypeSoftware {
		return false, nil
	}
	e.Attr.Type, e.Attr.Config = g.typ, g.config
	if len(s.Core()) > 1 {
		e.on(e.PMU)
	}
	for _, t := range slices.Delete(slices.Clone(list), i, i+1) {
		if !e.common(t) {
			return true, fmt.Errorf("the generic event takes no term %q", spelling.Clip(t.key))
		}
	}
	return true, nil
}

// A term is one of the parts between the slashes: "umask=0x1", "inst_retired".
type term struct {
	key, value string
	hasValue   bool
}

func parseTerms(s string) ([]term, error) {
	var list []term
	for s != "" {
		var t term
		end := strings.IndexAny(s, "=,")
		if end < 0 {
			end = len(s)
		}
		t.key = strings.TrimSpace(s[:end])
		s = s[end:]
		if strings.HasPrefix(s, "=") {
			t.hasValue = true
			t.value, s = cutValue(s[1:])
		}
		s = strings.TrimPrefix(s, ",")
		if t.key == "" {
			return nil, errors.New("it has a term without a name")
		}
		list = append(list, t)
	}
	return list, nil
}

// cutValue cuts off a term's value, which may be in quotes.
func cutValue(s string) (value, rest string) {
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		if i := strings.IndexByte(s[1:], s[0]); i >= 0 {
			return s[1 : 1+i], s[i+2:]
		}
	}
	i := strings.IndexByte(s, ',')
	if i < 0 {
		i = len(s)
	}
	return strings.TrimSpace(s[:i]), s[i:]
}

// apply sets what the terms of an event of a PMU say. An event of sysfs comes
// first, so that the others can change its terms.
func (e *Event) apply(list []term) error {
	for i, t := range list {
		if !t.hasValue && e.PMU.Aliases[t.key] != "" && e.PMU.Formats[t.key] == "" {
			if err := e.alias(t.key, list); err != nil {
				return err
			}
			list = slices.Delete(slices.Clone(list), i, i+1)
			break
		}
	}
	for _, t := range list {
		if err := e.set(t); err != nil {
			return err
		}
	}
	return nil
}

// alias sets the terms of an event of sysfs, whose parameters ("domain=?") are
// among the others.
func (e *Event) alias(name string, others []term) error {
	list, err := parseTerms(e.PMU.Aliases[name])
	if err != nil {
		return fmt.Errorf("sysfs' event %q: %w", spelling.Clip(name), err)
	}
	for _, t := range list {
		if t.value == "?" {
			if !slices.ContainsFunc(others, func(o term) bool { return o.key == t.key && o.hasValue }) {
				return fmt.Errorf("%q needs a value for %q", spelling.Clip(name), spelling.Clip(t.key))
			}
			continue
		}
		if err := e.set(t); err != nil {
			return fmt.Errorf("sysfs' event %q: %w", spelling.Clip(name), err)
		}
	}
	if e.Unit = e.PMU.units[name]; len(e.Unit) > maxUnit {
		return fmt.Errorf("sysfs' event %q: its unit is too long", spelling.Clip(name))
	}
	if text, ok := e.PMU.scales[name]; ok {
		e.Scale, err = strconv.ParseFloat(text, 64)
		if err != nil || !(e.Scale > 0) || math.IsInf(e.Scale, 0) {
			return fmt.Errorf("sysfs' event %q: its scale is %q", spelling.Clip(name), spelling.Clip(text))
		}
	}
	return nil
}

const maxUnit = 64

// set sets what a term says.
func (e *Event) set(t term) error {
	if text, ok := e.PMU.Formats[t.key]; ok {
		f, err := parseFormat(text)
		if err != nil {
			return fmt.Errorf("PMU %s, term %q: %w", e.PMU.Name, spelling.Clip(t.key), err)
		}
		value, err := t.number()
		if err != nil {
			return err
		}
		if err := f.put(&e.Attr, value); err != nil {
			return fmt.Errorf("term %q: %w", spelling.Clip(t.key), err)
		}
		return nil
	}
	if e.common(t) {
		return nil
	}
	if code, ok := rawCode(t.key); ok && !t.hasValue {
		e.Attr.Config = code
		return nil
	}
	words := map[string]*uint64{"config": &e.Attr.Config, "config1": &e.Attr.Config1, "config2": &e.Attr.Config2, "config3": &e.Attr.Config3}
	if word, ok := words[t.key]; ok {
		value, err := t.number()
		*word = value
		return err
	}
	return fmt.Errorf("PMU %s has no term or event %q", e.PMU.Name, spelling.Clip(t.key))
}

// common sets what terms say that every PMU has and that are not the kernel's.
func (e *Event) common(t term) bool {
	switch t.key {
	case "name":
		e.Name = t.value
	case "metric-id", "percore":
	default:
		return false
	}
	return true
}

// plainTerms sets the terms of a generic event: those that every event has.
func (e *Event) plainTerms(terms string) error {
	list, err := parseTerms(terms)
	for _, t := range list {
		if !e.common(t) {
			return fmt.Errorf("a generic event takes no term %q", spelling.Clip(t.key))
		}
	}
	return err
}

// number returns a term's value; a term without one is 1.
func (t term) number() (uint64, error) {
	if !t.hasValue {
		return 1, nil
	}
	n, err := strconv.ParseUint(t.value, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("term %q: %q is not a number of 64 bits", spelling.Clip(t.key), spelling.Clip(t.value))
	}
	return n, nil
}

// modify sets what modifiers say: u, k and h leave out what is not named; G and
// H, too.
func (e *Event) modify(mods string) error {
	a := &e.Attr
	var user, kernel, hv, guest, host bool
	for _, c := range mods {
		switch c {
		case 'u':
			user = true
		case 'k':
			kernel = true
		case 'h':
			hv = true
		case 'G':
			guest = true
		case 'H':
			host = true
		case 'p':
			a.Precise = min(3, a.Precise+1)
		case 'P':
			a.Precise = 3
		case 'D':
			a.Pinned = true
		case 'e':
			a.Exclusive = true
		case 'I':
			a.ExcludeIdle = true
		case 'S', 'W', 'b': // how perf samples and groups
		default:
			return fmt.Errorf("%q is not a modifier", c)
		}
	}
	if user || kernel || hv {
		a.ExcludeUser, a.ExcludeKernel, a.ExcludeHV = !user, !kernel, !hv
	}
	if guest != host {
		a.ExcludeGuest, a.ExcludeHost = !guest, !host
	}
	return nil
}
