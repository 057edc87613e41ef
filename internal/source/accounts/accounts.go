// Package accounts reads the accounts that the program itself has written: the
// documents and streams of --format json, with the schemas cyclestack.account/v1 and
// cyclestack.stream/v1. Their counts become tables again, so that an account that was
// kept can be reported anew and compared.
//
// What a document does not have is lost: which events were counted together, and
// the spread of repeats. Nodes are not read, but made anew from the counts.
package accounts

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// The names of the schemas.
const (
	schema       = "cyclestack.account/v1"
	streamSchema = "cyclestack.stream/v1"
)

// Bounds on what a document may hold.
const (
	bytesMost = 256 << 20
	cellsMost = 1 << 21 // of a table
)

// Detect reports whether a file's first bytes are those of such a document or stream.
func Detect(head []byte) bool { return begins(head, schema) || begins(head, streamSchema) }

// begins reports whether a file's first bytes are those of a document of a schema.
func begins(head []byte, schema string) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) {
		return false
	}
	_, behind, ok := bytes.Cut(head, []byte(`"schema"`))
	behind = bytes.TrimLeft(behind, " \t\r\n:")
	return ok && bytes.HasPrefix(behind, []byte(`"`+schema+`"`))
}

// An Error is what is wrong with a document, and where.
type Error struct {
	File   string
	Offset int64 // in bytes; 0 where it is about the document as a whole
	Msg    string
}

func (e *Error) Error() string {
	if e.Offset > 0 {
		return fmt.Sprintf("%s: at byte %d: %s", e.File, e.Offset, e.Msg)
	}
	return e.File + ": " + e.Msg
}

type document struct {
	Schema string
	CPU    struct{ ID, Name string }
	Source struct {
		Kind     string
		How      string
		Measured *bool // false for a simulation
	}
	Accounts []account
}

type account struct {
	Scope  scope
	Counts []count
	Events []count // that the user named
	Notes  []string
}

type scope struct {
	Kind     string
	Label    string
	Start    *float64 `json:"start_s"`
	Duration *float64 `json:"duration_s"`
	CPU      *int
	Core     *int
	Die      *int
	Socket   *int
	Node     *int
	CPUs     int
	Cgroup   string
	Module   string
	BuildID  string `json:"build_id"`
	Function string
	File     string
	Line     int
	Addr     string
	Of       string `json:"share_of"`
	Runs     int32
}

type count struct {
	Event    string
	As       string
	LP       *int
	Value    *float64
	Coverage *float64
	Unit     string // read of what another tool published only
	State    string
	Samples  int64
	group    int // that it was counted in; 0 if not known, as of documents
}

// A Reader yields the tables of a document: one for each account of a run or an
// interval. Accounts of several CPUs, threads and the like share a table. So do those of
// places in the code, whose first scope is the whole run.
type Reader struct {
	src   io.Reader
	file  string
	doc   document
	at    int     // the account that the next table begins with
	lines *stream // nil for a document
	read  bool
	sums  bool // only the whole, without its places
	table *counts.Table
	err   error
}

// NewReader returns a reader of the document that src holds. The name is for
// messages.
func NewReader(src io.Reader, name string) *Reader { return &Reader{src: src, file: name} }

// Keep asks for the whole without its places in the code, whatever the scopes.
func (r *Reader) Keep(counts.By) { r.sums = true }

// Kind says what the counts of the document came from at first.
func (r *Reader) Kind() string { return r.doc.Source.Kind }

// Simulated says that the counts were a simulator's.
func (r *Reader) Simulated() bool {
	m := r.doc.Source.Measured
	return m != nil && !*m
}

// How says in words how the counts were obtained; "" if the document does not say.
func (r *Reader) How() string { return r.doc.Source.How }

// Table returns the current table.
func (r *Reader) Table() *counts.Table { return r.table }

// Err returns the error that ended the reading, an [Error] if the document is
// damaged.
func (r *Reader) Err() error { return r.err }

// Next advances to the next table.
func (r *Reader) Next() bool {
	if !r.read {
		r.read = true
		r.err = r.open()
	}
	if r.lines != nil {
		return r.err == nil && r.nextOfStream()
	}
	if r.err != nil || r.at >= len(r.doc.Accounts) {
		return false
	}
	from := r.at
	for r.at++; r.at < len(r.doc.Accounts) && joins(&r.doc.Accounts[r.at-1].Scope, &r.doc.Accounts[r.at].Scope); r.at++ {
	}
	return r.use(r.doc.Accounts[from:r.at])
}

// use makes the next table of accounts.
func (r *Reader) use(list []account) bool {
	if r.sums && list[0].Scope.whole() {
		list = list[:1]
	}
	r.table, r.err = r.tableOf(list)
	return r.err == nil
}

// open reads a document, or the first line of a stream.
func (r *Reader) open() error {
	const enough = 64 // bytes, and no more: a pipe may have none for a while
	b := bufio.NewReaderSize(r.src, 64<<10)
	head, _ := b.Peek(enough)
	if r.src = b; !begins(head, streamSchema) {
		return r.decode()
	}
	r.lines = &stream{src: b, file: r.file}
	return r.lines.head(&r.doc)
}

// decode reads the document.
func (r *Reader) decode() error {
	limited := &io.LimitedReader{R: r.src, N: bytesMost + 1}
	d := json.NewDecoder(limited)
	err := d.Decode(&r.doc)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case limited.N <= 0:
		return &Error{r.file, 0, fmt.Sprintf("larger than %d MiB", bytesMost>>20)}
	case errors.As(err, &syntax):
		return &Error{r.file, syntax.Offset, syntax.Error()}
	case errors.As(err, &kind):
		return &Error{r.file, kind.Offset, fmt.Sprintf("%s is a %s", strings.ToLower(kind.Field), kind.Value)}
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		return &Error{r.file, bytesMost + 1 - limited.N, "the document ends before it is complete"}
	case err != nil:
		return fmt.Errorf("%s: %w", r.file, err)
	case r.doc.Schema != schema:
		return &Error{r.file, 0, fmt.Sprintf("its schema is %q, not %s", r.doc.Schema, schema)}
	}
	if _, err := d.Token(); err != io.EOF {
		return &Error{r.file, d.InputOffset(), "there are data behind the document"}
	}
	for i := range r.doc.Accounts {
		r.leaveTimes(&r.doc.Accounts[i])
	}
	return nil
}

// leaveTimes leaves out the times that a simulated program took without its simulator.
// They can only be compared with simulated cycles by the clock of the core, which
// documents do not have.
func (r *Reader) leaveTimes(a *account) {
	if !r.Simulated() {
		return
	}
	before := len(a.Counts)
	a.Counts = sorting.Delete(a.Counts, func(c count) bool { return c.Event == "user_time" || c.Event == "system_time" })
	if len(a.Counts) < before {
		a.Notes = append(a.Notes, "left out: the time of the run without the simulator, as the document does not have the clock of the core")
	}
}

// whole reports whether a scope is all of what was measured at a time.
func (s *scope) whole() bool {
	return s.Kind == counts.Run.String() || s.Kind == counts.Interval.String()
}

// place reports whether a scope is one of places in the code, or their whole.
func (s *scope) place() bool { return s.Of != "" }

// joins reports whether an account belongs into the table of the one before it.
func joins(last, next *scope) bool {
	switch {
	case next.whole():
		return false
	case next.place() || last.place():
		return next.place() && last.place()
	}
	same := last.Start == next.Start || last.Start != nil && next.Start != nil && *last.Start == *next.Start
	return !last.whole() && same
}

// tableOf makes a table of accounts.
func (r *Reader) tableOf(list []account) (*counts.Table, error) {
	l := &counts.Layout{}
	columns := map[string]int{}
	for i := range list {
		s, err := list[i].Scope.of(r.file)
		if err != nil {
			return nil, err
		}
		l.Scopes = append(l.Scopes, s)
		for _, c := range list[i].Counts {
			if c.LP != nil {
				return nil, &Error{r.file, 0, "its counts are those of the logical processors of a core, which cannot be read back"}
			}
			name := c.name()
			if _, ok := columns[name]; !ok {
				columns[name] = len(l.Columns)
				named := slices.ContainsFunc(list[i].Events, func(e count) bool { return e.name() == name })
				l.Columns = append(l.Columns, counts.Column{Event: name, Unit: c.unit(), Named: named, Group: max(0, c.group)})
			}
		}
		if len(l.Scopes)*len(l.Columns) > cellsMost {
			return nil, &Error{r.file, 0, fmt.Sprintf("more than %d counts", cellsMost)}
		}
	}
	first := &list[0]
	if r.table != nil && slices.Equal(r.table.Columns, l.Columns) && slices.EqualFunc(r.table.Scopes, l.Scopes, sameScope) {
		l = r.table.Layout // the same pointer: who has bound to it goes on
	}
	t := counts.NewTable(l)
	t.Start, t.Duration = value(first.Scope.Start), value(first.Scope.Duration)
	t.Interval = first.Scope.Kind == counts.Interval.String() || !first.Scope.whole() && t.Start > 0
	t.Relative = math.IsNaN(t.Duration)
	t.CPU, t.Notes = r.doc.CPU.Name, nil
	for _, text := range first.Notes {
		t.Notes = append(t.Notes, counts.Notef("%s", text))
	}
	if first.Scope.whole() {
		t.Label = first.Scope.Label
	}
	for i := range list {
		for _, c := range list[i].Counts {
			cell, err := c.cell(t.Duration, list[i].Scope.Runs)
			if err != nil {
				return nil, &Error{r.file, 0, err.Error()}
			}
			*t.Cell(i, columns[c.name()]) = cell
		}
	}
	return t, nil
}

// sameScope reports whether two scopes are one. Places in the code are never compared.
func sameScope(a, b counts.Scope) bool { return a.Code == nil && a == b }

func value(f *float64) float64 {
	if f == nil {
		return math.NaN()
	}
	return *f
}

// name is the event as the first recording spelled it.
func (c *count) name() string {
	return cmp.Or(c.As, c.Event)
}

// published reports whether it is no count, but what another tool published.
func (c *count) published() bool { return strings.HasPrefix(c.Event, peers.Published) }

// unit is the unit of an event: the documents have times in nanoseconds.
func (c *count) unit() string {
	event := c.name()
	if c.published() {
		return c.Unit
	}
	for _, clock := range []string{"task-clock", "cpu-clock", "user_time", "system_time", "duration_time"} {
		if event == clock || strings.HasPrefix(event, clock+":") {
			return "ns"
		}
	}
	return ""
}

// states are the words for counts that are not there.
var states = map[string]counts.State{
	counts.NotCounted.String():   counts.NotCounted,
	counts.NotSupported.String(): counts.NotSupported,
	counts.Absent.String():       counts.Absent,
}

// cell is the count as a cell of a table.
func (c *count) cell(seconds float64, runs int32) (counts.Cell, error) {
	state, ok := states[c.State]
	switch {
	case c.Value == nil && ok:
		return counts.Cell{State: state}, nil
	case c.Value == nil || *c.Value < 0 && !c.published() || c.Samples < 0 || runs < 0:
		return counts.Cell{}, fmt.Errorf("a count of %s is not one", c.name())
	}
	cell := counts.Cell{Value: *c.Value, Samples: c.Samples, Repeats: runs, State: counts.Counted}
	if c.Samples > 0 {
		cell.Variance = cell.Value * cell.Value / float64(c.Samples)
	}
	if v := c.Coverage; v != nil {
		if *v < 0 || *v > 1 {
			return counts.Cell{}, fmt.Errorf("the coverage of %s is %g", c.name(), *v)
		}
		cell.Enabled = 1e9
		if seconds > 0 {
			cell.Enabled = seconds * 1e9
		}
		cell.Running = *v * cell.Enabled
	}
	return cell, nil
}

// of makes the scope of a table.
func (s *scope) of(file string) (counts.Scope, error) {
	out := counts.RunScope(s.Label)
	kind, ok := kindOf(s.Kind)
	if !ok {
		return out, &Error{file, 0, fmt.Sprintf("an account of a %q", s.Kind)}
	}
	out.Kind, out.Cgroup, out.CPUs = kind, s.Cgroup, s.CPUs
	if s.whole() {
		out.Kind, out.Label = counts.Run, ""
		return out, nil
	}
	if kind == counts.Core && s.Core == nil { // documents had only the label once
		s.Core, s.Die, s.Socket = new(int), new(int), new(int)
		if n, _ := fmt.Sscanf(s.Label, "S%d-D%d-C%d", s.Socket, s.Die, s.Core); n != 3 {
			s.Core, s.Die, s.Socket = nil, nil, nil
		}
	}
	for _, p := range []struct{ to, from *int }{{&out.CPU, s.CPU}, {&out.Core, s.Core}, {&out.Die, s.Die}, {&out.Socket, s.Socket}, {&out.Node, s.Node}} {
		if p.from != nil {
			*p.to = *p.from
		}
	}
	if s.place() && kind >= counts.Module {
		addr, err := strconv.ParseUint(s.Addr, 0, 64)
		if err != nil && s.Addr != "" {
			return out, &Error{file, 0, fmt.Sprintf("%q is not an address", s.Addr)}
		}
		out.Code = &counts.Code{Module: s.Module, BuildID: s.BuildID, Function: s.Function, File: s.File, Line: s.Line, Addr: addr}
	}
	return out, nil
}

// kindOf finds a kind of scope by its name.
func kindOf(name string) (counts.Kind, bool) {
	for k := counts.Run; k <= counts.Instruction; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}
