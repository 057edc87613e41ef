package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readIntel reads all core event files of the perfmon repository.
func readIntel(dir string, t *table) error {
	dir = filepath.Join(dir, "intel-perfmon")
	commit, err := os.ReadFile(filepath.Join(dir, "COMMIT"))
	if err != nil {
		return err
	}
	if err := t.onlyKnown(dir, "*/events/*_core.json", func(string) bool { return false }); err != nil {
		return err
	}
	var versions []string
	for _, s := range t.sources {
		data, err := os.ReadFile(filepath.Join(dir, s.files[0]))
		if err != nil {
			return err
		}
		p, version, err := parsePerfmon(data, s.firstFixed)
		if err != nil {
			return fmt.Errorf("%s: %w", s.files[0], err)
		}
		p.key = s.key
		t.processors = append(t.processors, p)
		versions = append(versions, s.key+" "+version)
	}
	t.heading = strings.NewReplacer(
		"COMMIT", strings.TrimSpace(string(commit)),
		"VERSIONS", strings.Join(wrap(strings.Join(versions, ", "), 78), "\n# "),
	).Replace(t.heading)
	return nil
}

// checkIntel finds faults in the vendor's file, and puts in the kernel's codes.
func checkIntel(p *processor) error {
	for _, check := range []func(*processor) error{kernelCodes, checkFlops, checkModifiers, dropColonSpellings} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

func finishIntel(e *event, units []unitRule) { e.unit = intelUnit(e, units) }

// parsePerfmon decodes an event file of the perfmon repository.
func parsePerfmon(data []byte, firstFixed int) (p *processor, version string, err error) {
	var f struct {
		Header struct {
			Copyright, Info, DatePublished, Version, Legend string
		}
		Events []map[string]string
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, "", err
	}
	p = new(processor)
	for _, fields := range f.Events {
		e, err := perfmonEvent(fields, firstFixed)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", fields["EventName"], err)
		}
		p.events = append(p.events, e)
	}
	return p, f.Header.Version, nil
}

// perfmonKeys are the keys of an event that mean something for a table. Those
// that do not: descriptions, but for a note of theirs; which counters of a precise event take part in
// what (PEBScounters, PDISTCounter, PDIR_COUNTER, CollectPEBSRecord); what a
// precise record holds (Data_LA, L1_Hit_Indication, PRECISE_STORE);
// whether an event counts speculative work; and what MSRIndex says as well
// (Offcore, ELLC, Offmodule, CounterType).
var (
	perfmonKeys = []string{
		"EventName", "EventCode", "UMask", "UMaskExt", "CounterMask", "Invert", "EdgeDetect", "AnyThread", "Equal",
		"MSRIndex", "MSRValue", "Counter", "CounterHTOff", "PEBS", "Precise", "TakenAlone", "SampleAfterValue",
		"Errata", "Deprecated", "ProgrammingRestriction",
	}
	perfmonIgnored = []string{
		"BriefDescription", "PublicDescription", "PEBScounters", "PDISTCounter", "PDIR_COUNTER", "CollectPEBSRecord",
		"Data_LA", "L1_Hit_Indication", "PRECISE_STORE", "Speculative", "Offcore", "ELLC", "Offmodule", "CounterType",
	}
)

// aliasNote is how a description says that another event is the same one.
var aliasNote = regexp.MustCompile(`\[This event is alias to ([^\s\]]+)\]`)

// perfmonEvent decodes one event.
func perfmonEvent(fields map[string]string, firstFixed int) (*event, error) {
	for key := range fields {
		if !slices.Contains(perfmonKeys, key) && !slices.Contains(perfmonIgnored, key) {
			return nil, fmt.Errorf("unknown key %s", key)
		}
	}
	r := &perfmonRecord{fields: fields}
	e := &event{
		name:        fields["EventName"],
		sampleAfter: r.number("SampleAfterValue"),
		deprecated:  r.bit("Deprecated"),
	}
	for _, m := range aliasNote.FindAllStringSubmatch(fields["BriefDescription"], -1) {
		e.sameAs = append(e.sameAs, m[1])
	}
	r.encode(e)
	e.counters = r.counters("CounterHTOff", firstFixed)
	if smt := r.counters("Counter", firstFixed); e.counters == "" {
		e.counters = smt
	} else if smt != e.counters {
		e.smt = smt
	}
	if r.number("PEBS") > 0 || r.bit("Precise") {
		e.addFlag("pebs")
	}
	if r.bit("TakenAlone") {
		e.addFlag("alone")
	}
	for _, erratum := range strings.Split(fields["Errata"], ",") {
		if erratum = strings.TrimSpace(erratum); erratum != "" && erratum != "0" && erratum != "null" {
			e.addFlag("errata:" + erratum)
		}
	}
	if e.name == "" || strings.ContainsAny(e.name, " ,{}|") {
		r.fail("bad name")
	}
	return e, r.err
}

// A perfmonRecord reads the fields of an event and keeps the first error.
type perfmonRecord struct {
	fields map[string]string
	err    error
}

func (r *perfmonRecord) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// number reads a number; a field that is absent, "null" or "NA" is 0.
func (r *perfmonRecord) number(key string) uint64 {
	list := r.list(key)
	if len(list) == 0 {
		return 0
	}
	if len(list) > 1 {
		r.fail("%s is %q, not one number", key, r.fields[key])
	}
	return list[0]
}

// octet reads a number of eight bits.
func (r *perfmonRecord) octet(key string) uint64 {
	v := r.number(key)
	if v > 0xff {
		r.fail("%s is %s, more than eight bits", key, hex(v))
	}
	return v
}

// bit reads a field that is 0 or 1.
func (r *perfmonRecord) bit(key string) bool {
	v := r.number(key)
	if v > 1 {
		r.fail("%s is %d, neither 0 nor 1", key, v)
	}
	return v == 1
}

// list reads numbers separated by commas: decimal, or hexadecimal in any case
// with any number of zeros.
func (r *perfmonRecord) list(key string) []uint64 {
	var list []uint64
	switch r.fields[key] {
	case "", "null", "NA":
		return nil
	}
	for _, s := range strings.Split(r.fields[key], ",") {
		v, err := strconv.ParseUint(strings.ToLower(strings.TrimSpace(s)), 0, 64)
		if err != nil {
			r.fail("%s is %q, not a number", key, r.fields[key])
		}
		list = append(list, v)
	}
	return list
}

// Extra registers, by number of the MSR.
var extraRegisters = map[uint64]string{
	0x1a6: "offcore_rsp", 0x1a7: "offcore_rsp",
	0x3f6: "ldlat",
	0x3f7: "frontend",
	0x3e0: "omr", 0x3e1: "omr", 0x3e2: "omr", 0x3e3: "omr",
}

// encode sets config, config1 and its kind.
//
// An offcore event can be counted with either of two registers (the newest processors have
// four, "omr"). The code or the unit mask says which. The first is taken, as perf does,
// unless the file allows only the other one: the kernel moves the event to a free register.
func (r *perfmonRecord) encode(e *event) {
	msrs := r.list("MSRIndex")
	which := 0
	switch {
	case len(msrs) == 0 || slices.Equal(msrs, []uint64{0}):
		if v := r.number("MSRValue"); v != 0 {
			r.fail("MSRValue %s without MSRIndex", hex(v))
		}
		if e.name == "OFFCORE_RESPONSE" { // the user gives the value
			e.kind = "offcore_rsp"
		}
	default:
		for _, msr := range msrs {
			if kind := extraRegisters[msr]; kind == "" || e.kind != "" && kind != e.kind {
				r.fail("unknown MSRIndex %q", r.fields["MSRIndex"])
			} else {
				e.kind = kind
			}
		}
		e.config1 = r.number("MSRValue")
		if msrs[0] == 0x1a7 {
			which = 1
		}
	}
	e.config = r.choose("EventCode", which, e.kind) | r.choose("UMask", which, e.kind)<<8 |
		r.octet("CounterMask")<<24 | r.octet("UMaskExt")<<40
	if r.bit("EdgeDetect") {
		e.config |= edgeBit
	}
	if r.bit("AnyThread") {
		e.config |= anyThread
	}
	if r.bit("Invert") {
		e.config |= invertBit
	}
	if r.bit("Equal") {
		r.fail("Equal is set: there is no bit for it here")
	}
	switch r.fields["ProgrammingRestriction"] {
	case "", "None", "MSRIndex-UMask": // the latter: each register has its unit mask
	default:
		r.fail("unknown ProgrammingRestriction %q", r.fields["ProgrammingRestriction"])
	}
}

// Bits of config that change what is counted.
const (
	edgeBit   = 1 << 18    // not the event, but how often it begins
	anyThread = 1 << 21    // on both threads of the core
	invertBit = 1 << 23    // the cycles when the counter mask is not reached
	cmaskBits = 0xff << 24 // the cycles when the event happens so often, or more
)

// choose reads an event code or unit mask that may be one for each offcore
// register.
func (r *perfmonRecord) choose(key string, which int, kind string) uint64 {
	list := r.list(key)
	if len(list) == 0 {
		r.fail("%s is missing", key)
		return 0
	}
	if len(list) == 1 {
		return r.octet(key)
	}
	if kind != "offcore_rsp" && kind != "omr" || which >= len(list) {
		r.fail("%s is %q for a single register", key, r.fields[key])
		return 0
	}
	if list[which] > 0xff {
		r.fail("%s is %q, more than eight bits", key, r.fields[key])
	}
	return list[which]
}

// counters reads "0,1,2,3" or "Fixed counter 1".
func (r *perfmonRecord) counters(key string, firstFixed int) string {
	s := r.fields[key]
	if n, ok := strings.CutPrefix(s, "Fixed counter "); ok {
		v, err := strconv.Atoi(n)
		if err != nil || v < firstFixed {
			r.fail("%s is %q", key, s)
		}
		return "fixed" + strconv.Itoa(v-firstFixed)
	}
	var out []string
	for _, v := range r.list(key) {
		out = append(out, strconv.FormatUint(v, 10))
	}
	return strings.Join(out, ",")
}

// dropColonSpellings removes the deprecated names of the form
// OFFCORE_RESPONSE:request=X:response=Y of CLX. There are a thousand of them, and
// each has the encoding of the current OCR.X.Y. perf takes such a name only in
// quotes.
func dropColonSpellings(p *processor) error {
	current := map[encoding]bool{}
	for _, e := range p.events {
		if !e.deprecated {
			current[e.encoding()] = true
		}
	}
	for _, e := range p.events {
		if strings.Contains(e.name, ":") && !(e.deprecated && current[e.encoding()]) {
			return fmt.Errorf("%s is the only name of its encoding", e.name)
		}
	}
	p.events = slices.DeleteFunc(p.events, func(e *event) bool { return strings.Contains(e.name, ":") })
	return nil
}

// checkModifiers makes sure that no event has an inversion without a counter mask, which
// does nothing. It marks events that count both threads of a core.
func checkModifiers(p *processor) error {
	for _, e := range p.events {
		if e.config&invertBit != 0 && e.config&cmaskBits == 0 {
			return fmt.Errorf("%s is %s: inverted without a counter mask", e.name, hex(e.config))
		}
		if e.config&anyThread != 0 {
			e.addFlag("any")
		}
	}
	return nil
}

// checkFlops makes sure that events of several kinds of floating-point instructions have the
// unit masks of just these kinds.
func checkFlops(p *processor) error {
	const umask = 0xff00
	for _, family := range []string{"FP_ARITH_INST_RETIRED", "FP_ARITH_OPS_RETIRED"} {
		for _, sum := range flopSums {
			e := p.find(family + "." + sum.name)
			if e == nil {
				continue
			}
			var parts, others uint64
			for _, kind := range flopKinds {
				x := p.find(family + "." + kind)
				switch {
				case x == nil:
				case slices.Contains(sum.parts, kind):
					parts |= x.config & umask
				default:
					others |= x.config & umask
				}
			}
			// Masks of kinds that this processor has not are no harm.
			if e.config&parts != parts || e.config&others != 0 {
				return fmt.Errorf("%s is %s, but its parts have the unit mask %s", e.name, hex(e.config), hex(parts>>8))
			}
		}
	}
	return nil
}

// flopKinds are the events of one kind of floating-point instruction each.
var flopKinds = []string{
	"SCALAR_SINGLE", "SCALAR_DOUBLE", "128B_PACKED_SINGLE", "128B_PACKED_DOUBLE",
	"256B_PACKED_SINGLE", "256B_PACKED_DOUBLE", "512B_PACKED_SINGLE", "512B_PACKED_DOUBLE",
}

var flopSums = []struct {
	name  string
	parts []string
}{
	{"SCALAR", []string{"SCALAR_SINGLE", "SCALAR_DOUBLE"}},
	{"4_FLOPS", []string{"128B_PACKED_SINGLE", "256B_PACKED_DOUBLE"}},
	{"8_FLOPS", []string{"256B_PACKED_SINGLE", "512B_PACKED_DOUBLE"}},
	{"VECTOR_128B", []string{"128B_PACKED_SINGLE", "128B_PACKED_DOUBLE"}},
	{"VECTOR_256B", []string{"256B_PACKED_SINGLE", "256B_PACKED_DOUBLE"}},
	{"VECTOR_512B", []string{"512B_PACKED_SINGLE", "512B_PACKED_DOUBLE"}},
	{"VECTOR", flopKinds[2:]},
}

// wrap breaks text at blanks after commas into lines of at most width.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, part := range strings.Split(text, ", ") {
		switch {
		case line == "":
			line = part
		case len(line)+2+len(part)+1 > width:
			lines = append(lines, line+",")
			line = part
		default:
			line += ", " + part
		}
	}
	return append(lines, line+".")
}
