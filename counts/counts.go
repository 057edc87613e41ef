// Package counts holds the table between sources of counts and methods. Its rows are
// scopes, its columns events, and each [Cell] is a count.
//
// It is the fourth step of the flow
//
//	model → plan → source → counts → account → report
//
// Nothing here knows a formula or forms a ratio. Tables of the same layout can be added cell by
// cell ([Table.Add]). A [Total] sums a stream of them over intervals and scopes. Coverage adds
// like times. So a ratio formed once, from sums, is the ratio of the whole and not a mean of
// ratios.
//
// The package promises that the order of additions changes no count beyond rounding.
package counts

import (
	"errors"
	"fmt"
	"math"
)

// Kind says what a scope is about.
type Kind uint8

// The kinds of scope that sources produce.
const (
	Run      Kind = iota // the whole recording
	Interval             // one interval of a recording (-I)
	CPU                  // one logical processor (-A)
	Core
	Die
	Cluster
	Cache
	Socket
	Node // a NUMA node
	Thread
	Process
	Comm // threads of the same name
	Cgroup
	Module
	SourceFile // of lines
	Function
	Line
	Instruction
)

var kindNames = [...]string{"run", "interval", "cpu", "core", "die", "cluster", "cache", "socket", "node",
	"thread", "process", "comm", "cgroup", "module", "srcfile", "function", "line", "instruction"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Unknown marks a scope's number (CPU, Core, …) that the source does not give.
const Unknown = -1

// A Scope is what a row of counts is about. Numbers that do not apply or are
// not known are [Unknown].
type Scope struct {
	Kind   Kind
	Label  string // as the source prints it: "CPU3", "S0-D0-C1", "bash-1234", the command line
	CPU    int    // logical processor
	Core   int
	Die    int
	Socket int
	Node   int
	TID    int
	CPUs   int    // how many logical processors were summed into it; 0 where not known
	Cgroup string // the cgroup (perf stat --for-each-cgroup), "" for none
	Code   *Code  // the place in the code; nil for none

	// Caller is the line of the user's that calls the code of a library most often. CallerShare is its part
	// of the code's cycles, if all calls take the same. Nil if it is not known: only simulations see calls.
	Caller      *Code
	CallerShare float64

	// For samples that are split by them: process and thread by name and number ("bash-1234"),
	// the process's number, and the table's interval in seconds from the start. Duration is 0
	// for all of the table.
	Process, Thread string
	Comm            string // the name that threads have in common
	PID             int
	Start, Duration float64
}

// Code is a place in a program: a module, a function, a line or an instruction,
// as the scope's Kind says. What is not known is "" or 0. A source makes one
// value for each place, so that scopes can be compared.
type Code struct {
	Module   string // the program, library or part of the kernel; "" for code that is in no file
	BuildID  string // of the module, hexadecimal
	Function string // as people read it: demangled
	File     string // of the source
	Line     int
	Addr     uint64 // in the module, as objdump shows it: of the instruction, or where the function begins
}

// RunScope is the scope of a whole run.
func RunScope(label string) Scope {
	return Scope{Kind: Run, Label: label, CPU: Unknown, Core: Unknown, Die: Unknown, Socket: Unknown, Node: Unknown, TID: Unknown, PID: Unknown}
}

// A Column is one event as one source counted it. The same event may have
// several columns, when it was counted in several groups: they are readings of
// the same thing over different windows and are never added to each other.
type Column struct {
	Event string // as the source spells it, modifiers included: "cycles:u", "cpu/event=0x9c,umask=0x1/", "raw 0x400fa"
	Unit  string // the unit the source prints: "msec", "ns", "Joules"; "" for a plain count

	// Group says which columns were counted together: columns with the same
	// Group > 0 were on their counters during the same windows. 0 is "not
	// known", and is also what events have that were counted all the time:
	// those are together by their coverage, whatever their groups.
	Group int

	// Whole > 0 marks two columns that are the parts of one exactly known whole:
	// what one has too much, the other lacks. An example is the processor time of a
	// program, which clock ticks split into user and kernel time. The Variance of
	// both is that of the split.
	Whole int

	// Parts is the number of runs of the same work that counted different events, one
	// of them this column; 0 if there was only one run. Coverage is then relative to
	// the time of all runs: counts from different runs were not counted together.
	Parts int

	// Named says that the user named the event, so that it is shown whatever uses it.
	Named bool

	// Skids says that the event was sampled, and that its samples name an instruction after the
	// one it happened at.
	Skids bool
}

// State says whether a cell holds a count.
type State uint8

// The states of a cell. The zero State is Absent, so that a cell nobody wrote
// is missing and not zero.
const (
	Absent       State = iota // the source has no such cell
	Counted                   // Value is a count
	NotCounted                // the event was never on a counter ("<not counted>")
	NotSupported              // the kernel refused it ("<not supported>")
)

func (s State) String() string {
	switch s {
	case Absent:
		return "absent"
	case Counted:
		return "counted"
	case NotCounted:
		return "not counted"
	case NotSupported:
		return "not supported"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// A Cell is one event's reading in one scope.
//
// Value is scaled to the time the event was enabled, as perf prints it. Times are in
// nanoseconds, summed over logical processors. Running/Enabled is the coverage. A source that
// gives a percentage stores it as Running, with the scope's duration as Enabled (or any
// positive number: only the ratio is used then).
type Cell struct {
	Value    float64
	Enabled  float64 // ns; 0 where not known
	Running  float64 // ns the event was on a counter; at most Enabled
	Lost     float64 // ns of Enabled in parts (intervals, CPUs) without any time on a counter
	Variance float64 // variance of Value as the source estimates it: from repeats (perf stat -r's ±, squared), or from how a whole was divided; 0 where not known
	Samples  int64   // samples behind the value; 0 for a plain count
	Repeats  int32   // runs the value is the mean of; 0 or 1 for one run
	State    State
}

// Ok reports whether the cell holds a count.
func (c *Cell) Ok() bool { return c.State == Counted }

// Coverage is the share of the enabled time during which the event was on a
// counter, 0…1; NaN where not known.
func (c *Cell) Coverage() float64 {
	if c.State == NotCounted {
		return 0
	}
	if c.State != Counted || c.Enabled <= 0 {
		return math.NaN()
	}
	return c.Running / c.Enabled
}

// Estimate is the count over the whole enabled time: Value, extrapolated over the
// parts without any time on a counter. NaN if nothing was counted.
func (c *Cell) Estimate() float64 {
	if c.State != Counted {
		return math.NaN()
	}
	if c.Lost > 0 && c.Lost < c.Enabled {
		return c.Value * (c.Enabled / (c.Enabled - c.Lost))
	}
	return c.Value
}

// Add adds another reading of the same event, from another interval or another
// logical processor. A part that was not counted adds to Enabled and Lost. The
// order of adding does not matter.
func (c *Cell) Add(o *Cell) {
	if c.State != Counted {
		c.void()
	}
	if o.State == Absent {
		return
	}
	c.Enabled += o.Enabled
	if o.State != Counted {
		c.Lost += o.Enabled
		if c.State != Counted {
			c.State = moreCounted(c.State, o.State)
		}
		return
	}
	c.State = Counted
	c.Value += o.Value
	c.Running += o.Running
	c.Lost += o.Lost
	c.Variance += o.Variance
	c.Samples += o.Samples
	c.Repeats = max(c.Repeats, o.Repeats)
}

// void leaves in a cell that holds no count only what such a cell can say: how
// long the event was enabled in vain.
func (c *Cell) void() {
	enabled := c.Enabled
	if c.State == Absent {
		enabled = 0
	}
	*c = Cell{State: c.State, Enabled: enabled, Lost: enabled}
}

// moreCounted returns the state of two parts without a count. An event that the
// kernel refused on some processors only was not counted.
func moreCounted(a, b State) State {
	if a == NotCounted || b == NotCounted {
		return NotCounted
	}
	return max(a, b)
}

// A Layout is the columns and scopes of a table. Tables of one source share the *Layout
// while it does not change. What was computed from it, such as the column of an input, is
// kept by pointer.
type Layout struct {
	Columns []Column
	Scopes  []Scope
}

// A Table is one block of counts: a whole recording or one interval of it.
type Table struct {
	*Layout
	Label    string  // what was measured: the command, "system wide", …
	Start    float64 // seconds since the recording's start; NaN where not known
	Duration float64 // seconds; NaN where not known
	Interval bool    // one interval of a longer recording
	CPU      string  // the processor, where the source says: an identification or a name, as for --cpu
	Elapsed  float64 // ± of Duration in seconds, from repeats; 0 where not known
	Line     int     // line in the source where the block begins; 0 where lines mean nothing
	Relative bool    // cells' times are proportions, not nanoseconds: the source gave percentages and no duration
	NoError  string  // why no cell has a Variance, if the counts are estimates without one
	Notes    []Note

	cells   []Cell
	spreads [][]Spread // by scope; nil if the table is no sum of intervals
	joints  []*Joint   // by scope; nil if the table is no mean of runs that were kept apart
	courses []Course   // by cell; nil if the table is no sum of intervals

	histories []history // by scope; nil if the table is no sum of intervals
}

// NewTable returns an empty table of the layout. All cells are absent.
func NewTable(l *Layout) *Table {
	t := &Table{Start: math.NaN(), Duration: math.NaN()}
	t.Reset(l)
	return t
}

// Reset empties the table and gives it a layout, keeping its memory.
func (t *Table) Reset(l *Layout) {
	t.Layout, t.spreads, t.joints, t.courses, t.histories = l, nil, nil, nil, nil
	n := len(l.Columns) * len(l.Scopes)
	if cap(t.cells) < n {
		t.cells = make([]Cell, n)
		return
	}
	t.cells = t.cells[:n]
	clear(t.cells)
}

// Cell returns the cell of a scope and a column. The pointer is valid until
// the next Reset.
func (t *Table) Cell(scope, column int) *Cell {
	return &t.cells[scope*len(t.Columns)+column]
}

// Row returns the cells of a scope, one for each column, valid until the next
// Reset.
func (t *Table) Row(scope int) []Cell {
	n := len(t.Columns)
	return t.cells[scope*n : (scope+1)*n]
}

// Clone returns a copy that shares only the layout and stays valid when the
// table is reset.
func (t *Table) Clone() *Table {
	c := &Table{}
	c.Copy(t)
	return c
}

// Copy makes the table one that [Table.Clone] of another returns, keeping its memory.
func (t *Table) Copy(of *Table) {
	cells := t.cells[:0]
	*t = *of
	t.cells = append(cells, of.cells...)
	t.Notes = append([]Note(nil), of.Notes...)
}

// errLayout is returned when tables of different layouts are added.
var errLayout = errors.New("counts: tables have different columns or scopes")

// Add adds another table of the same layout cell by cell: another interval of
// the same recording. Duration grows by the other's; Start stays.
func (t *Table) Add(o *Table) error {
	if t.Layout != o.Layout && !t.Layout.equal(o.Layout) {
		return errLayout
	}
	for i := range t.cells {
		t.cells[i].Add(&o.cells[i])
	}
	if !math.IsNaN(o.Duration) {
		if math.IsNaN(t.Duration) {
			t.Duration = 0
		}
		t.Duration += o.Duration
	}
	return nil
}

func (l *Layout) equal(o *Layout) bool {
	if len(l.Columns) != len(o.Columns) || len(l.Scopes) != len(o.Scopes) {
		return false
	}
	for i := range l.Columns {
		if l.Columns[i] != o.Columns[i] {
			return false
		}
	}
	for i := range l.Scopes {
		if l.Scopes[i] != o.Scopes[i] {
			return false
		}
	}
	return true
}
