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

// A platform is one event file of Intel's perfmon repository: a processor, or
// one core type of a hybrid.
type platform struct {
	key  string // in the tables: the folder's name, with ":core" etc. for a core type
	file string

	firstFixed int       // number of the first fixed counter in this file: 0, or 1 in the older ones
	topdown    topdown   // the kernel's events for top-down analysis
	stalled    [2]uint64 // codes of the kernel's stalled-cycles-frontend and -backend, 0 for none
	memAux     bool      // mem-loads needs mem-loads-aux before it
}

// intelPlatforms are all of them, the oldest first.
var intelPlatforms = []platform{
	{key: "BNL", file: "BNL/events/bonnell_core.json", firstFixed: 1},
	{key: "NHM-EP", file: "NHM-EP/events/NehalemEP_core.json", firstFixed: 1, stalled: nehalemStalls},
	{key: "NHM-EX", file: "NHM-EX/events/NehalemEX_core.json", firstFixed: 1, stalled: nehalemStalls},
	{key: "WSM-EP-SP", file: "WSM-EP-SP/events/WestmereEP-SP_core.json", firstFixed: 1, stalled: nehalemStalls},
	{key: "WSM-EP-DP", file: "WSM-EP-DP/events/WestmereEP-DP_core.json", firstFixed: 1, stalled: nehalemStalls},
	{key: "WSM-EX", file: "WSM-EX/events/WestmereEX_core.json", firstFixed: 1, stalled: nehalemStalls},
	{key: "SNB", file: "SNB/events/sandybridge_core.json", topdown: topdownSlots, stalled: sandyBridgeStalls},
	{key: "JKT", file: "JKT/events/Jaketown_core.json", topdown: topdownSlots, stalled: sandyBridgeStalls},
	{key: "IVB", file: "IVB/events/ivybridge_core.json", topdown: topdownSlots, stalled: ivyBridgeStalls},
	{key: "IVT", file: "IVT/events/ivytown_core.json", topdown: topdownSlots, stalled: ivyBridgeStalls},
	{key: "SLM", file: "SLM/events/Silvermont_core.json", firstFixed: 1},
	{key: "HSW", file: "HSW/events/haswell_core.json", topdown: topdownSlots},
	{key: "HSX", file: "HSX/events/haswellx_core.json", topdown: topdownSlots},
	{key: "BDW", file: "BDW/events/broadwell_core.json", topdown: topdownSlots},
	{key: "BDW-DE", file: "BDW-DE/events/broadwellde_core.json", topdown: topdownSlots},
	{key: "BDX", file: "BDX/events/broadwellx_core.json", topdown: topdownSlots},
	{key: "KNL", file: "KNL/events/knightslanding_core.json"},
	{key: "SKL", file: "SKL/events/skylake_core.json", topdown: topdownSlots},
	{key: "SKX", file: "SKX/events/skylakex_core.json", topdown: topdownSlots},
	{key: "CLX", file: "CLX/events/cascadelakex_core.json", topdown: topdownSlots},
	{key: "GLM", file: "GLM/events/goldmont_core.json", topdown: topdownGoldmont},
	{key: "GLP", file: "GLP/events/goldmontplus_core.json", topdown: topdownGoldmont},
	{key: "ICL", file: "ICL/events/icelake_core.json", topdown: topdownMetrics4},
	{key: "ICX", file: "ICX/events/icelakex_core.json", topdown: topdownMetrics4},
	{key: "RKL", file: "RKL/events/rocketlake_core.json", topdown: topdownMetrics4},
	{key: "TGL", file: "TGL/events/tigerlake_core.json", topdown: topdownMetrics4},
	{key: "EHL", file: "EHL/events/elkhartlake_core.json", topdown: topdownTremont},
	{key: "SNR", file: "SNR/events/snowridgex_core.json", topdown: topdownTremont},
	{key: "ADL:core", file: "ADL/events/alderlake_goldencove_core.json", topdown: topdownMetrics8, memAux: true},
	{key: "ADL:atom", file: "ADL/events/alderlake_gracemont_core.json", topdown: topdownGracemont},
	{key: "SPR", file: "SPR/events/sapphirerapids_core.json", topdown: topdownMetrics8, memAux: true},
	{key: "EMR", file: "EMR/events/emeraldrapids_core.json", topdown: topdownMetrics8, memAux: true},
	{key: "MTL:core", file: "MTL/events/meteorlake_redwoodcove_core.json", topdown: topdownMetrics8},
	{key: "MTL:atom", file: "MTL/events/meteorlake_crestmont_core.json", topdown: topdownCrestmont},
	{key: "GNR", file: "GNR/events/graniterapids_core.json", topdown: topdownMetrics8},
	{key: "SRF", file: "SRF/events/sierraforest_core.json", topdown: topdownCrestmont},
	{key: "GRR", file: "GRR/events/grandridge_core.json", topdown: topdownCrestmont},
	{key: "LNL:core", file: "LNL/events/lunarlake_lioncove_core.json", topdown: topdownMetrics8},
	{key: "LNL:atom", file: "LNL/events/lunarlake_skymont_core.json", topdown: topdownSkymont},
	{key: "ARL:core", file: "ARL/events/arrowlake_lioncove_core.json", topdown: topdownMetrics8},
	{key: "ARL:atom", file: "ARL/events/arrowlake_skymont_core.json", topdown: topdownSkymont},
	{key: "ARL:lowpower", file: "ARL/events/arrowlake_crestmont_core.json", topdown: topdownCrestmont},
	{key: "CWF", file: "CWF/events/clearwaterforest_core.json", topdown: topdownSkymont},
	{key: "PTL:core", file: "PTL/events/pantherlake_cougarcove_core.json", topdown: topdownMetrics8},
	{key: "PTL:atom", file: "PTL/events/pantherlake_darkmont_core.json", topdown: topdownSkymont},
	{key: "NVL:core", file: "NVL/events/novalake_coyotecove_core.json", topdown: topdownMetrics8},
	{key: "NVL:atom", file: "NVL/events/novalake_arcticwolf_core.json", topdown: topdownSkymont},
}

// readIntel reads all core event files of the perfmon repository.
func readIntel(vendor string, c *corrections) (*table, error) {
	dir := filepath.Join(vendor, "intel-perfmon")
	commit, err := os.ReadFile(filepath.Join(dir, "COMMIT"))
	if err != nil {
		return nil, err
	}
	if err := onlyKnownPlatforms(dir); err != nil {
		return nil, err
	}
	t := new(table)
	var versions []string
	for i := range intelPlatforms {
		pl := &intelPlatforms[i]
		p, version, err := pl.read(dir)
		if err != nil {
			return nil, err
		}
		if err := finishIntel(pl, p, c); err != nil {
			return nil, fmt.Errorf("%s: %w", pl.file, err)
		}
		t.processors = append(t.processors, p)
		versions = append(versions, pl.key+" "+version)
	}
	t.comment = []string{
		"Core events of Intel's processors.",
		"",
		"Made by internal/gen/events; corrections belong there, not here. The format is",
		"described in docs/format/event-tables.md.",
		"",
		"Facts from Intel's perfmon repository (Copyright Intel Corporation, BSD-3-Clause,",
		"see THIRD_PARTY_NOTICES.md), commit " + strings.TrimSpace(string(commit)) + ",",
		"in the versions",
	}
	t.comment = append(t.comment, wrap(strings.Join(versions, ", "), 78)...)
	return t, nil
}

// onlyKnownPlatforms makes sure that no core event file is left out.
func onlyKnownPlatforms(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "events", "*_core.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(intelPlatforms, func(p platform) bool { return p.file == filepath.ToSlash(rel) }) {
			return fmt.Errorf("%s: a new platform; add it to intelPlatforms", rel)
		}
	}
	return nil
}

// finishIntel makes a table's events of what the vendor's file says.
func finishIntel(pl *platform, p *processor, c *corrections) error {
	if err := c.apply(p); err != nil {
		return err
	}
	if err := kernelCodes(p); err != nil {
		return err
	}
	if err := checkFlops(p); err != nil {
		return err
	}
	if err := checkModifiers(p); err != nil {
		return err
	}
	if err := dropColonSpellings(p); err != nil {
		return err
	}
	if err := c.merge(p); err != nil {
		return err
	}
	if err := addIntelGenerics(pl, p); err != nil {
		return err
	}
	for _, e := range p.events {
		e.unit = intelUnit(e)
	}
	return nil
}

// read reads one event file, as the vendor has it.
func (pl *platform) read(dir string) (p *processor, version string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(pl.file)))
	if err != nil {
		return nil, "", err
	}
	p, version, err = parsePerfmon(data, pl.firstFixed)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", pl.file, err)
	}
	p.key = pl.key
	return p, version, nil
}

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
// An offcore event can be counted with either of two registers (the newest
// processors have four, "omr"), and then the code or the unit mask says which.
// The first is taken, as perf does, unless the file allows only the other one:
// the kernel moves the event to a free register.
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

// checkModifiers makes sure that no event has an inversion without a counter
// mask, which does nothing, and marks those that count both threads of a core.
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

// checkFlops makes sure that the events which count several kinds of
// floating-point instructions have the unit masks of just these kinds.
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
