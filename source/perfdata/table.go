package perfdata

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// TableOptions are what a [TableReader] makes of a file.
type TableOptions struct {
	// By is what samples are kept apart by: counts.Process, Thread, CPU (which
	// Core, Die, Socket and Node follow from) and Cgroup; each set of them that
	// occurs becomes a scope. Without any there is one scope, the run. Files of
	// perf stat record are by CPU or thread as they were recorded.
	By counts.By

	// Interval makes a table of each interval of that length that has samples.
	// With counts.Interval in By and none given it is a second. Files of perf
	// stat record have their own.
	Interval time.Duration

	Reader Options
}

// A TableReader yields tables of counts: of a file of perf stat record one for
// each interval, or one in all; of a file with samples one for each interval
// asked for, or one in all, with events × periods.
//
// The count of an event is the sum of its samples' periods. Samples of a group with one
// sampling event (perf's :S) hold the counters of all its members: the count is what they grew
// by since the sample before. In scopes smaller than the run, a cell's Variance sums the
// squares of what was added, as for independent arrivals. For the run it is 0, "not known": the
// run lacks at most one period for each counter.
//
// It keeps all that it creates: a table is valid until the next call of Next. Its *Layout stays
// the same pointer as long as columns and scopes do.
type TableReader struct {
	src  io.Reader
	name string
	opts TableOptions

	r       *Reader
	tables  maker
	kind    string
	table   counts.Table
	scopes  scopeSet
	layout  *counts.Layout
	columns []*Event // of the layout
	threads perffile.Threads
	cgroups map[uint64]string
	paths   int   // bytes of their names
	anyCPU  bool  // events were not opened for single processors
	tids    []int // that events were opened on
	ended   bool
	noted   bool // the last table has what notes returns
	err     error
}

// A maker makes tables of records: of those of perf stat record, or of samples.
type maker interface {
	take(rec Record)
	ready(end bool) bool // a table is complete, or has to be as no more will come
	fill()               // puts it into TableReader.table
}

// NewTableReader returns a reader of the file that src holds, which is as for
// [NewReader]. The name is for messages.
func NewTableReader(src io.Reader, name string, opts TableOptions) *TableReader {
	t := &TableReader{src: src, name: name, opts: opts, kind: kindSamples,
		cgroups: map[uint64]string{}}
	t.table.Start, t.table.Duration = math.NaN(), math.NaN()
	return t
}

// The kinds of files.
const (
	kindSamples = "perf-data"
	kindStat    = "perf-stat-record"
)

// Keep sets TableOptions.By, before the first call of Next.
func (t *TableReader) Keep(by counts.By) { t.opts.By = by }

// Kind says what the tables come from: "perf-data" of samples,
// "perf-stat-record" of perf stat record.
func (t *TableReader) Kind() string { return t.kind }

// Table returns the current table, which is valid until the next call of Next.
func (t *TableReader) Table() *counts.Table { return &t.table }

// Err returns the error that ended the reading: that of the input, or of a file without
// counts. If something was counted, damage that ended the reading is in the last
// table's notes, or in [TableReader.Notes].
func (t *TableReader) Err() error { return t.err }

// Reader returns the reader of the records, nil before the first call of Next.
func (t *TableReader) Reader() *Reader { return t.r }

// Next advances to the next table.
func (t *TableReader) Next() bool {
	if t.err != nil {
		return false
	}
	if t.r == nil {
		if t.r, t.err = NewReader(t.src, t.name, t.opts.Reader); t.err != nil {
			return false
		}
	}
	for {
		if t.tables != nil && t.tables.ready(false) {
			return t.emit()
		}
		if !t.r.Next() {
			return t.last()
		}
		rec := t.r.Record()
		t.know(rec)
		if t.tables == nil {
			t.choose(rec)
		}
		if t.tables != nil {
			t.tables.take(rec)
		}
	}
}

// last yields the tables that the end of the file completes.
func (t *TableReader) last() bool {
	t.ended = true
	if t.tables != nil && t.tables.ready(true) {
		return t.emit()
	}
	if t.r.failed {
		t.err = t.r.Err()
	} else if t.table.Layout == nil { // none was ever yielded
		t.err = t.r.Empty()
	}
	return false
}

// Empty returns, after the last record, the error for a file without samples and
// counts. It says why.
func (r *Reader) Empty() error {
	if r.err != nil {
		return r.err
	}
	return &Error{File: r.name, Offset: r.data.win.offset(), Msg: r.nothing()}
}

func (r *Reader) nothing() string {
	s := r.Stats()
	switch {
	case r.known.features.Has(perffile.FeatureDirFormat) && !r.data.split:
		return "it is the head of a directory (perf record --threads): name the directory, for its other files to be read too"
	case s.AuxBytes > 0:
		return "it holds a hardware trace and no samples: decode it with perf first (perf inject --itrace)"
	case s.Malformed > 0:
		return "no samples or counts that can be read: " + s.Notes[0]
	case s.Unterminated || s.Truncated >= 0:
		return "the recording was cut off before it held samples or counts"
	}
	return "it holds neither samples nor counts"
}

// choose decides by a record what the file is.
func (t *TableReader) choose(rec Record) {
	switch rec.(type) {
	case *StatConfig, *Stat, *StatRound:
		t.kind = kindStat
		t.tables = newStatTables(t)
	case *Sample:
		t.tables = newSampleTables(t)
	}
}

// know remembers the names of threads and cgroups, and what perf stat record
// counted on.
func (t *TableReader) know(rec Record) {
	switch rec := rec.(type) {
	case *Comm:
		t.threads.Say(rec.TID, rec.Trailer().Time, rec.Comm)
	case *Task:
		if rec.Type == perffile.RecordFork {
			t.threads.Fork(rec.TID, rec.PTID, rec.Time)
		}
	case *Cgroup:
		if t.paths += len(rec.Path); t.paths <= maxText && len(t.cgroups) < maxScopes {
			t.cgroups[rec.ID] = counts.Name(string(rec.Path))
		}
	case *CPUMap:
		t.anyCPU = !slices.ContainsFunc(rec.CPUs, func(cpu int) bool { return cpu >= 0 })
	case *ThreadMap:
		t.tids = t.tids[:0]
		for _, m := range rec.Threads {
			t.tids = append(t.tids, m.TID)
			if len(m.Comm) > 0 {
				t.threads.Say(m.TID, 0, m.Comm)
			}
		}
	}
}

// Limits of what a file can make a reader of tables remember.
const (
	maxScopes = 1 << 18
	maxSpans  = 1 << 14 // intervals that are open
	maxCells  = 1 << 20 // of a table, and of all open intervals
)

// emit puts the complete table together.
func (t *TableReader) emit() bool {
	t.tables.fill()
	t.table.Label = t.r.Features().Command()
	t.table.CPU = t.r.Features().CPUIDString()
	if t.ended && !t.tables.ready(true) {
		t.table.Notes = append(t.table.Notes, t.r.Losses()...)
		t.noted = true
	}
	return true
}

// Command returns what was measured: the command behind perf's own arguments,
// where it can be told from them.
func (f *Features) Command() string {
	args := f.Cmdline
	if i := slices.Index(args, "--"); i >= 0 && i+1 < len(args) {
		args = args[i+1:]
	}
	return counts.Name(strings.Join(args, " "))
}

// Notes returns, behind the last table, what the whole file lacks beyond that table's notes: an
// interval of perf stat record is yielded before what follows it is read.
func (t *TableReader) Notes() []counts.Note {
	if t.noted || !t.ended || t.table.Layout == nil {
		return nil
	}
	return t.r.Losses()
}

// Losses says, behind the last record, what the recording is short of, one line
// each.
func (r *Reader) Losses() []counts.Note {
	s := r.Stats()
	var out []counts.Note
	add := func(format string, args ...any) { out = append(out, counts.Notef(format, args...)) }
	incomplete := func(format string, args ...any) {
		add(format, args...)
		out[len(out)-1].Kind = counts.NoteIncomplete
	}
	if err := r.Err(); err != nil && !r.failed {
		var e *Error
		if errors.As(err, &e) {
			incomplete("the file is damaged at 0x%x (%s): what is behind was not counted%s", e.Offset, e.Msg, r.unread(e.Offset))
		}
	}
	if s.Unterminated {
		incomplete("the recording was not ended properly: what perf had not written yet is missing")
	}
	if s.Truncated >= 0 {
		incomplete("the file ends inside a record, at 0x%x%s", s.Truncated, r.missing(s.Truncated))
	}
	if lost := r.lost(&s); lost > 0 {
		add("%d records were lost while recording, next to %d samples: counts are too low by about %.2g %%",
			lost, s.Samples, 100*float64(lost)/float64(lost+s.Samples))
	}
	if s.Throttled > 0 {
		add("sampling was throttled %d times: what happened then is missing", s.Throttled)
	}
	if s.Orphans > 0 {
		add("%d samples were not counted: their ids are no event's", s.Orphans)
	}
	if s.Malformed > s.Orphans {
		add("%d records cannot be read: %s", s.Malformed-s.Orphans, s.Notes[0])
	}
	if s.AuxBytes > 0 {
		add("%d bytes of hardware trace were passed over", s.AuxBytes)
	}
	if s.Unknown > 0 {
		add("%d records are of types that are not known, and were passed over: %s", s.Unknown, s.unknownTypes())
	}
	return out
}

// unread says how much lies behind damage at an offset, as far as that is known.
func (r *Reader) unread(off int64) string {
	text := ""
	end := r.data.bound
	if s, ok := r.data.win.r.(*io.SectionReader); ok {
		end = r.data.begin + s.Size() // not more than is there
	}
	if n := end - r.data.begin; off >= r.data.begin && off < end {
		text = fmt.Sprintf(", %d of %d bytes (%.2g %%)", end-off, n, 100*float64(end-off)/float64(n))
	}
	if n := len(r.data.parts); n > 0 {
		text += fmt.Sprintf(", nor the next of the directory's files (%d)", n)
	}
	return text
}

// missing says how much is missing of a file that ends at an offset, if it states its length.
func (r *Reader) missing(off int64) string {
	n := r.data.bound - r.data.begin
	if r.data.bound <= off || off < r.data.begin {
		return ""
	}
	return fmt.Sprintf(": of %d bytes of data, as its header says, %d are missing (%.2g %%)", n, r.data.bound-off, 100*float64(r.data.bound-off)/float64(n))
}

// lost is how many records were lost. If events count their losses (PERF_FORMAT_LOST),
// perf writes these into LOST_SAMPLES at the end. LOST has counted them before.
func (r *Reader) lost(s *Stats) int64 {
	if slices.ContainsFunc(r.Events(), func(e *Event) bool { return e.ReadFormat&perffile.FormatLost != 0 }) {
		return max(s.Lost, s.LostSamples)
	}
	return s.Lost + s.LostSamples
}

// unknownTypes lists the types that are not known, the first of them.
func (s *Stats) unknownTypes() string {
	const most = 4
	types := slices.Collect(maps.Keys(s.Records))
	sorting.Sort(types, cmp.Compare)
	var list []string
	for _, t := range types {
		if t != otherTypes && !t.known() {
			list = append(list, t.String())
		}
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return strings.Join(list, ", ")
}

// A scopeKey identifies a scope; counts.Unknown is for what is not known or not split.
type scopeKey struct {
	kind     counts.Kind
	cpu, tid int
	cgroup   uint64
	lump     bool // all that the limit left no room for
}

// A scopeSet numbers scopes in the order of their occurrence.
type scopeSet struct {
	keys   []scopeKey
	index  map[scopeKey]int
	recent scopeKey
	at     int
	lumped bool
}

// of returns the number of a scope, in a table of so many columns.
func (s *scopeSet) of(k scopeKey, columns int) int {
	if k == s.recent && len(s.keys) > 0 {
		return s.at
	}
	i, ok := s.index[k]
	if !ok {
		if n := len(s.keys); n >= maxScopes || n > 1 && (n+1)*columns > maxCells {
			s.lumped = true
			k = scopeKey{kind: k.kind, cpu: counts.Unknown, tid: counts.Unknown, lump: true}
			if i, ok = s.index[k]; ok {
				return i
			}
		}
		if s.index == nil {
			s.index = map[scopeKey]int{}
		}
		i = len(s.keys)
		s.index[k] = i
		s.keys = append(s.keys, k)
	}
	s.recent, s.at = k, i
	return i
}

// columnFits reports whether a table can have another column.
func (s *scopeSet) columnFits(columns int) bool { return (columns+1)*max(len(s.keys), 1) <= maxCells }

// makeLayout gives t.table the layout of the columns and scopes so far: the same
// pointer as before if nothing was added.
func (t *TableReader) makeLayout(columns []*Event) {
	t.r.settle()
	if t.layout == nil || len(t.layout.Scopes) != len(t.scopes.keys) || !slices.Equal(t.columns, columns) {
		l := &counts.Layout{}
		for _, e := range columns {
			l.Columns = append(l.Columns, e.Column())
		}
		for _, k := range t.scopes.keys {
			l.Scopes = append(l.Scopes, t.scope(k))
		}
		t.layout, t.columns = l, slices.Clone(columns)
	}
	t.table.Reset(t.layout)
	t.table.Notes = t.table.Notes[:0]
	t.table.Relative, t.table.Interval = false, false
}

// Column returns how a table of counts calls the event.
func (e *Event) Column() counts.Column {
	c := counts.Column{Event: e.Name, Unit: e.Unit}
	if c.Unit == "" && e.isClock() {
		c.Unit = "ns"
	}
	if e.Leader != nil {
		c.Group = e.Leader.Index + 1
	}
	return c
}

// scope describes a scope by what the file says of the machine and its threads.
func (t *TableReader) scope(k scopeKey) counts.Scope {
	s := counts.RunScope("")
	s.Kind = k.kind
	if k.lump {
		s.Label = "others"
		return s
	}
	if k.cpu != counts.Unknown {
		s.CPU, s.CPUs, s.Label = k.cpu, 1, fmt.Sprintf("CPU%d", k.cpu)
		t.r.Features().Locate(&s)
	}
	if k.cgroup != 0 {
		if s.Cgroup = t.cgroups[k.cgroup]; s.Cgroup == "" {
			s.Cgroup = fmt.Sprintf("cgroup 0x%x", k.cgroup)
		}
		s.Label = s.Cgroup
	}
	if k.tid != counts.Unknown {
		s.TID, s.Label = k.tid, strconv.Itoa(k.tid)
		if name := counts.Name(t.threads.Name(k.tid)); name != "" {
			s.Label = name + "-" + s.Label
		}
	}
	return s
}

// Locate fills in where a scope's logical processor is, as far as the file says:
// its core, die, socket and node.
func (f *Features) Locate(s *counts.Scope) {
	if s.CPU >= 0 && s.CPU < len(f.Topology) {
		p := f.Topology[s.CPU]
		s.Core, s.Socket = p.Core, p.Socket
		if p.Die >= 0 {
			s.Die = p.Die
		}
	}
	for _, n := range f.NUMA {
		if inList(n.CPUs, s.CPU) {
			s.Node = n.Node
		}
	}
}

// inList reports whether a list such as "0-3,8" has n.
func inList(list string, n int) bool {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err == nil && err2 == nil && lo <= n && n <= hi {
			return true
		}
	}
	return false
}
