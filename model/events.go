package model

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// An EventTable holds the events of one processor, and knows which spellings
// mean the same one. It is safe for concurrent use.
type EventTable struct {
	cpu    *CPU
	events []Event
	names  map[string]int32  // by folded name or alias
	exact  map[string]int32  // by name or alias in lower case, where folded it is another event's
	codes  map[codeKey]int32 // the first event of each code
	pseudo bool              // Intel's pseudo codes of the fixed counters are known to it

	relations func() (*relationSet, error)        // reads them, once; nil if there are none
	errata    func() (map[string][]string, error) // by event, likewise

	listed int // events of the user's folder, which are before the others
}

type codeKey struct {
	pmu  string
	code code
}

// An Identity is what a spelling of an event comes to on one processor. Equal
// identities are the same event, counted under the same restrictions.
type Identity struct {
	PMU                      string // "" for the core's PMU; else the kind of PMU, without instance numbers: "msr", "uncore_cha"
	Config, Config1, Config2 uint64
	Name                     string // of an event whose code is not known, in a form to be compared
	Privilege                Privilege
	Latency                  bool // the mean retire latency, not the count
}

// Event returns the identity of the same event without its restrictions.
func (id Identity) Event() Identity {
	id.Privilege = 0
	return id
}

// Events returns all events of the processor's own table, in the order of the
// file. The caller must not change them.
func (t *EventTable) Events() []Event { return t.events }

// CPU returns the processor whose table it is.
func (t *EventTable) CPU() *CPU { return t.cpu }

// Lookup returns the event that a spelling means, if the processor is known to
// have it. Restrictions (":u") do not matter.
func (t *EventTable) Lookup(spelling string) (*Event, bool) {
	ref, err := ParseEvent(spelling)
	if err != nil {
		return nil, false
	}
	return t.Find(ref)
}

// Find is Lookup for a spelling that is parsed already.
func (t *EventTable) Find(ref EventRef) (*Event, bool) {
	if ref.Name != "" && len(ref.Terms) == 0 && !ref.HasConfig {
		e := t.byName(ref.Name, t.pmuClass(ref.PMU))
		return e, e != nil
	}
	id := t.Resolve(ref)
	if id.Name != "" {
		return nil, false
	}
	i, ok := t.codes[codeKey{id.PMU, code{id.Config, id.Config1, id.Config2}}]
	if !ok {
		return nil, false
	}
	return &t.events[i], true
}

// knows reports whether the processor may have the event of a formula: its table has it,
// it is on another PMU than the core's, or it is given by its code. A table without rows
// knows nothing, and so excludes nothing.
func (t *EventTable) knows(ref EventRef) bool {
	if len(t.events) == 0 || ref.HasConfig || t.pmuClass(ref.PMU) != "" {
		return true
	}
	if slices.ContainsFunc(ref.Terms, func(term Term) bool { return term.Key == "event" }) {
		return true
	}
	return t.byName(ref.Name, "") != nil
}

// Resolve returns the identity of an event. A name or alias that the processor's table
// has gives its code; otherwise the encoding counts, and without one the name as it
// stands. The order of terms, the case of letters, the number of p and the uncore PMU's
// instance do not matter.
func (t *EventTable) Resolve(ref EventRef) Identity {
	id := Identity{PMU: t.pmuClass(ref.PMU), Privilege: t.privilege(ref.Privilege), Latency: ref.Latency}
	var c code
	known := ref.Name == ""
	if e := t.byName(ref.Name, id.PMU); e != nil {
		c, known = code{config: e.Config, config1: e.Config1}, !e.NoCode
		id.PMU, ref.Name = e.PMU, e.Name
	}
	if ref.HasConfig {
		c.config = ref.Config
	}
	for _, term := range ref.Terms {
		if !c.set(t.cpu.Layout, term) {
			known = false
		}
	}
	if !known {
		id.Name = textual(ref)
		return id
	}
	c = t.canonical(id.PMU, c)
	id.Config, id.Config1, id.Config2 = c.config, c.config1, c.config2
	return id
}

// canonical returns the code that stands for c on a PMU. If c is another code of an event
// in the table, that is the event's own.
func (t *EventTable) canonical(pmu string, c code) code {
	if pmu == "" {
		c = c.normal(t.cpu.Layout, t.pseudo)
	}
	if i, ok := t.codes[codeKey{pmu, c}]; ok {
		return t.codeOf(int(i))
	}
	return c
}

// codeOf returns the canonical code of an event of the table.
func (t *EventTable) codeOf(i int) code {
	e := &t.events[i]
	c := code{config: e.Config, config1: e.Config1}
	if e.PMU == "" {
		c = c.normal(t.cpu.Layout, t.pseudo)
	}
	return c
}

// textual returns the form of an event of unknown code for comparisons.
func textual(ref EventRef) string {
	terms := make([]string, 0, len(ref.Terms)+2)
	for _, t := range ref.Terms {
		if t.Text != "" {
			terms = append(terms, t.Key+"="+strings.ToLower(t.Text))
		} else {
			terms = append(terms, fmt.Sprintf("%s=%#x", t.Key, t.Value))
		}
	}
	slices.Sort(terms)
	if ref.HasConfig {
		terms = append([]string{fmt.Sprintf("config=%#x", ref.Config)}, terms...)
	}
	if ref.Name != "" {
		terms = append([]string{fold(ref.Name)}, terms...)
	}
	return strings.Join(terms, ",")
}

// byName returns the event of a name on a kind of PMU: of the processor's
// table, or one that every machine has.
func (t *EventTable) byName(name, pmu string) *Event {
	if name == "" {
		return nil
	}
	if e := t.own(name, pmu); e != nil {
		return e
	}
	if bare := withoutGroup(name); t.cpu.Layout == layoutPower && bare != name {
		return t.own(bare, pmu)
	}
	e := kernelName(name)
	if e == nil || pmu != "" && pmu != e.PMU {
		return nil
	}
	if len(t.events) == 0 {
		return e
	}
	for _, alias := range append([]string{e.Name}, e.Aliases...) {
		if own := t.own(alias, pmu); own != nil {
			return own
		}
	}
	return e
}

// withoutGroup leaves out the number of an event's group, which oprofile puts behind the
// names of POWER's events: PM_DATA_FROM_L2MISS_GRP16.
func withoutGroup(name string) string {
	i := strings.LastIndex(strings.ToUpper(name), "_GRP")
	if i < 0 || i+4 == len(name) || strings.Trim(name[i+4:], "0123456789") != "" {
		return name
	}
	return name[:i]
}

// own returns the event of a name in the processor's table. Without a PMU
// before it, a name may also be that of another PMU's event.
func (t *EventTable) own(name, pmu string) *Event {
	var space [64]byte
	i, ok := t.names[string(appendFolded(space[:0], name))]
	if !ok {
		return nil
	}
	if t.exact != nil {
		if j, ok := t.exact[strings.ToLower(name)]; ok {
			i = j
		}
	}
	if e := &t.events[i]; e.PMU == pmu || pmu == "" {
		return e
	}
	return nil
}

// pmuClass returns the kind of PMU of a name: "" for the core's own, the name
// without the number of the instance for others.
func (t *EventTable) pmuClass(pmu string) string {
	if pmu == "" || pmu == "cpu" {
		return ""
	}
	for _, pattern := range t.cpu.PMUs {
		if ok, _ := path.Match(pattern, pmu); ok {
			return ""
		}
	}
	if i := strings.LastIndexByte(pmu, '_'); i > 0 && i+1 < len(pmu) && strings.Trim(pmu[i+1:], "0123456789") == "" {
		return pmu[:i]
	}
	return pmu
}

// privilege returns p without restrictions that restrict nothing.
func (t *EventTable) privilege(p Privilege) Privilege {
	all := levels
	if t.cpu.Layout == layoutIntel || t.cpu.Layout == layoutAMD {
		all &^= Hypervisor // there is no such level
		if p&all != 0 {
			p &^= Hypervisor
		}
	}
	if p&all == all {
		p &^= levels
	}
	if sides := Guest | Host; p&sides == sides {
		p &^= sides
	}
	return p
}

// events returns the table of a processor, read once.
func (lib *library) events(p *CPU) (*EventTable, error) {
	return lib.tables.get(p.Name, func() (*EventTable, error) { return lib.readEvents(p) })
}

// text returns the text of an event table, which is kept.
func (lib *library) text(file string) ([]byte, error) {
	return lib.tableText.get(file, func() ([]byte, error) { return readFile(lib.fsys, file) })
}

// readEvents reads the rows of a processor from all the event tables that may have some:
// those of its folder, and the library's.
func (lib *library) readEvents(p *CPU) (*EventTable, error) {
	t := &EventTable{cpu: p}
	t.relations, t.errata = lib.relationsFor(t), lib.errataFor(t)
	if p.Events == "" {
		return t, nil
	}
	var faults Errors
	if f := p.folder; f != nil {
		files, err := tableFiles(f.fsys, p.Layout)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			data, err := readFile(f.fsys, name)
			if err != nil {
				return nil, err
			}
			faults = append(faults, t.read(data, f.label(name), p.Events)...)
		}
		t.listed = len(t.events)
	}
	files, err := tableFiles(lib.fsys, p.Layout)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		data, err := lib.text(name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, t.read(data, name, p.Events)...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	t.index()
	return t, nil
}

// tableFiles returns the event tables that may have rows for processors of a layout.
func tableFiles(fsys fs.FS, layout string) ([]string, error) {
	files, err := fs.Glob(fsys, "events/*.csv")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(name string) bool {
		stem := strings.TrimSuffix(path.Base(name), ".csv")
		return slices.Contains(layouts, stem) && stem != layout
	}), nil
}

// read reads the rows for key of an event table: CSV with a header and comment lines that
// begin with #. It skips to the next row with the key without parsing the rows of other
// processors.
func (t *EventTable) read(data []byte, file, key string) (faults Errors) {
	var (
		columns []column
		fields  []string
		rows    []string // of the key, as they are written
		starts  []int    // where each begins
		events  int      // how many they stand for
	)
	for at := 0; at < len(data); {
		if len(rows) > 0 { // there is a header
			next := bytes.Index(data[at:], []byte(key))
			if next < 0 {
				break
			}
			at = max(at, bytes.LastIndexByte(data[:at+next], '\n')+1)
		}
		start := at
		line, _, _ := bytes.Cut(data[at:], []byte("\n"))
		at += len(line) + 1
		row := strings.TrimRight(string(line), "\r")
		if row == "" || row[0] == '#' || len(rows) > 0 && !hasWord(firstField(row), key) {
			continue
		}
		rows, starts = append(rows, row), append(starts, start)
		events += product(row)
	}
	t.events = slices.Grow(t.events, events)
	for i, row := range rows {
		var err error
		if columns, fields, err = t.readRow(row, columns, fields[:0]); err != nil {
			faults = append(faults, &Error{File: file, Line: bytes.Count(data[:starts[i]], []byte("\n")) + 1, Msg: err.Error()})
		}
		if columns == nil {
			break // without a header nothing is known of the rows
		}
	}
	return faults
}

// product returns about how many events a row stands for: see [expand].
func product(row string) int {
	_, factors, ok := strings.Cut(row, "{")
	requests, responses, two := strings.Cut(factors, "}.{")
	if !ok || !two {
		return 1
	}
	return min((strings.Count(requests, "|")+1)*(strings.Count(responses, "|")+1), maxProduct)
}

// readRow reads the header, if columns is nil, or a row.
func (t *EventTable) readRow(row string, columns []column, fields []string) ([]column, []string, error) {
	fields, err := splitRow(row, fields)
	if err != nil {
		return columns, fields, err
	}
	if columns == nil {
		columns, err = parseHeader(fields)
		return columns, fields, err
	}
	e, err := parseEventRow(columns, fields)
	if err == nil {
		t.events, err = expand(t.events, e)
	}
	return columns, fields, err
}

func firstField(row string) string {
	if i := strings.IndexByte(row, ','); i >= 0 {
		row = row[:i]
	}
	return strings.Trim(row, `"`)
}

// hasWord reports whether word is one of the blank-separated words of s.
func hasWord(s, word string) bool {
	for s != "" {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			return s == word
		}
		if s[:i] == word {
			return true
		}
		s = s[i+1:]
	}
	return false
}

// splitRow appends the fields of a row to fields. A field in double quotes may
// have commas, and a quote written twice.
func splitRow(row string, fields []string) ([]string, error) {
	for {
		if !strings.HasPrefix(row, `"`) {
			field, rest, more := strings.Cut(row, ",")
			fields = append(fields, field)
			if !more {
				return fields, nil
			}
			row = rest
			continue
		}
		end := 1
		for {
			i := strings.IndexByte(row[end:], '"')
			if i < 0 {
				return nil, errors.New("a quote without its end")
			}
			end += i
			if !strings.HasPrefix(row[end:], `""`) {
				break
			}
			end += 2
		}
		fields = append(fields, strings.ReplaceAll(row[1:end], `""`, `"`))
		row = row[end+1:]
		if row == "" {
			return fields, nil
		}
		if row[0] != ',' {
			return nil, errors.New("text after the end of a quoted field")
		}
		row = row[1:]
	}
}

// A column takes its field of a row into an event.
type column struct {
	name string
	set  func(e *Event, field string) error
}

// eventColumns are the columns of the event tables.
var eventColumns = []column{
	{"cpus", func(*Event, string) error { return nil }},
	{"name", func(e *Event, s string) error { e.Name = s; return nil }},
	{"config", func(e *Event, s string) (err error) {
		if s == "" {
			e.NoCode = true
			return nil
		}
		e.Config, err = parseNumber(s)
		return err
	}},
	{"config1", func(e *Event, s string) (err error) {
		if s != "" {
			e.Config1, err = parseNumber(s)
		}
		return err
	}},
	{"pmu", func(e *Event, s string) error { e.PMU = s; return nil }},
	{"counters", func(e *Event, s string) error { e.Counters = s; return nil }},
	{"counters_smt", func(e *Event, s string) error { e.CountersSMT = s; return nil }},
	{"flags", func(e *Event, s string) error { e.Flags = s; return nil }},
	{"sample_after", func(e *Event, s string) (err error) {
		if s != "" {
			e.SampleAfter, err = strconv.ParseUint(s, 10, 64)
		}
		return err
	}},
	{"unit", func(e *Event, s string) error { e.Unit = s; return nil }},
	{"aliases", func(e *Event, s string) error {
		if s != "" {
			e.Aliases = strings.Fields(s)
		}
		return nil
	}},
}

func parseHeader(fields []string) ([]column, error) {
	var columns []column
	for _, name := range fields {
		i := slices.IndexFunc(eventColumns, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown column %q", spelling.Clip(name))
		}
		columns = append(columns, eventColumns[i])
	}
	if len(columns) < 3 || columns[0].name != "cpus" || columns[1].name != "name" || columns[2].name != "config" {
		return nil, errors.New("the first columns are cpus, name and config")
	}
	return columns, nil
}

func parseEventRow(columns []column, fields []string) (Event, error) {
	var e Event
	if len(fields) != len(columns) {
		return e, fmt.Errorf("%d fields where the header has %d", len(fields), len(columns))
	}
	for i, c := range columns {
		if err := c.set(&e, fields[i]); err != nil {
			return e, fmt.Errorf("%s: %q is not a number of 64 bits", c.name, spelling.Clip(fields[i]))
		}
	}
	if e.Name == "" {
		return e, errors.New("an event without a name")
	}
	return e, nil
}

// maxProduct bounds the events that one row stands for.
const maxProduct = 10_000

// expand appends the events that a row stands for. Nearly always that is one. The names
// of offcore response events are a product of requests and responses. Their config1 is
// the OR of their bits. They are written as one:
//
//	OCR.{DEMAND_DATA_RD=0x1|DEMAND_RFO=0x2}.{ANY_RESPONSE=0x10000|L3_MISS=0x3fbfc00000}
func expand(events []Event, row Event) ([]Event, error) {
	prefix, rest, product := strings.Cut(row.Name, "{")
	if !product {
		return append(events, row), nil
	}
	requests, responses, ok := strings.Cut(rest, "}.{")
	responses, closed := strings.CutSuffix(responses, "}")
	if !ok || !closed {
		return nil, fmt.Errorf("name: %q is not of the form PREFIX.{A=1|B=2}.{C=4|D=8}", spelling.Clip(row.Name))
	}
	first, err := parseFactors(requests)
	if err != nil {
		return nil, err
	}
	second, err := parseFactors(responses)
	if err != nil {
		return nil, err
	}
	if len(first)*len(second) > maxProduct {
		return nil, fmt.Errorf("name: it stands for more than %d events", maxProduct)
	}
	events = slices.Grow(events, len(first)*len(second))
	var names strings.Builder // all of them, in one piece
	names.Grow(len(first)*len(second)*(len(prefix)+1) + len(second)*len(requests) + len(first)*len(responses))
	for _, a := range first {
		for _, b := range second {
			e := row
			begin := names.Len()
			for _, part := range []string{prefix, a.name, ".", b.name} {
				names.WriteString(part)
			}
			e.Name = names.String()[begin:]
			e.Config1 = a.bits | b.bits
			events = append(events, e)
		}
	}
	return events, nil
}

// A factor is one request or response of a product.
type factor struct {
	name string
	bits uint64
}

func parseFactors(s string) ([]factor, error) {
	var all []factor
	for f := range strings.SplitSeq(s, "|") {
		name, bits, _ := strings.Cut(f, "=")
		v, err := parseNumber(bits)
		if err != nil || name == "" {
			return nil, fmt.Errorf("name: %q is not of the form NAME=BITS", spelling.Clip(f))
		}
		all = append(all, factor{name, v})
	}
	return all, nil
}

// index makes the maps of a table whose events are read.
func (t *EventTable) index() {
	names := len(t.events)
	for i := range t.events {
		e := &t.events[i]
		names += len(e.Aliases)
		if e.PMU == "" && e.Config == fixedSlots && t.cpu.Layout == layoutIntel {
			t.pseudo = true
		}
	}
	t.names = make(map[string]int32, names)
	t.codes = make(map[codeKey]int32, len(t.events))
	for i := range t.events {
		t.indexCode(i)
	}
	var f folder
	for i := range t.events {
		t.indexName(&f, t.events[i].Name, i)
	}
	for i := range t.events {
		for _, alias := range t.events[i].Aliases {
			t.indexName(&f, alias, i)
		}
	}
}

// indexCode notes the code of an event. Vendors' tables give the events of the
// fixed counters pseudo codes that kernels before Ice Lake's do not know.
func (t *EventTable) indexCode(i int) {
	e := &t.events[i]
	if e.NoCode {
		return
	}
	if e.PMU == "" && !t.pseudo && strings.HasPrefix(e.Counters, "fixed") {
		c := code{config: e.Config}.normal(t.cpu.Layout, true)
		e.Config = c.config
	}
	k := codeKey{e.PMU, t.codeOf(i)}
	if _, taken := t.codes[k]; !taken {
		t.codes[k] = int32(i)
	}
}

// indexName notes a name or an alias of an event. An alias may also be another
// code of the event. Where folding makes names of different events equal, the
// later one is found by its own spelling only.
func (t *EventTable) indexName(f *folder, name string, i int) {
	if strings.Contains(name, "/") { // msr/tsc/: the PMU is known from its column
		ref, err := ParseEvent(name)
		if err != nil || ref.Name == "" || len(ref.Terms) > 0 {
			return
		}
		name = ref.Name
	}
	if raw, ok := rawCode(name); ok {
		c := code{config: raw}.normal(t.cpu.Layout, t.pseudo)
		k := codeKey{t.events[i].PMU, c}
		if _, taken := t.codes[k]; !taken {
			t.codes[k] = int32(i)
		}
		return
	}
	folded := f.fold(name)
	j, taken := t.names[folded]
	if !taken {
		t.names[folded] = int32(i)
		return
	}
	if t.sameCode(i, int(j)) {
		return
	}
	if t.exact == nil {
		t.exact = map[string]int32{}
	}
	lower := strings.ToLower(name)
	if _, ok := t.exact[lower]; !ok && lower != strings.ToLower(t.events[j].Name) {
		t.exact[lower] = int32(i)
	}
}

// sameCode reports whether two events of the table are one.
func (t *EventTable) sameCode(i, j int) bool {
	a, b := &t.events[i], &t.events[j]
	return !a.NoCode && !b.NoCode && a.PMU == b.PMU && a.Config == b.Config && a.Config1 == b.Config1
}
