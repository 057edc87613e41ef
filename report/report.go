// Package report renders accounts: as a tree for a terminal, as JSON and as
// CSV. It is the last step of the flow
//
//	model → plan → source → counts → account → report
//
// and does not know where the counts came from beyond the words in [Header]. Writers take one
// account at a time: a recording of any number of intervals is written in bounded memory. The
// package promises JSON that follows the schemas of [Schema]. It changes nothing of what it is
// given.
package report

import (
	"slices"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// A Header says what all accounts of a report have in common.
type Header struct {
	CPU   *model.CPU
	CPUID string // the processor as the user or the source named it; "" if by CPU.Name
	// Unknown says that the processor is not known; the zero Note if it is. CPU is then any.
	Unknown counts.Note
	// Assumed says why CPU was taken for the recording's; the zero Note if it is known.
	Assumed counts.Note
	Model   *model.Model
	Kind    string             // of the source: "perf-stat-text"
	How     string             // how the counts were obtained: "counted by the PMU in 8 groups"; "" if all that is known is Kind
	Files   []string           // that were read; none if the counts were taken live
	Params  map[string]float64 // parameters the user set

	Measured *account.Measured // where parameters come from that were measured; nil if none were
	// Machine returns what a calibration measured of the processor, by names of parameters
	// of any method. It may be nil.
	Machine func() map[string]float64

	Workload model.Workload     // the kind of program, if the user said
	From     account.Provenance // of the counts; the number of files is that of Files

	// What [Options].Step needs to spell a command, and report does not read: of samples
	// the user's flags that say how the file is read, as {"--sysroot", "root"}; of live
	// counts the end of the command line that counts the same again, as {"--", "./app"}.
	Reading, Again []string

	Profile *Profile // of what places in the code are parts; nil for other scopes

	ModelFlag  string   // the method the user asked for by name; "" for none
	ModelFiles []string // files of models of the user's own
}

// stream reports whether json and csv write each account as its values alone.
func (o Options) stream() bool { return o.Layout == LayoutRows && !o.Long }

// Options say how much is shown and how.
type Options struct {
	Long   bool   // in json and csv, everything of each account, where [LayoutRows] is compact otherwise
	Checks bool   // all that is known of the checks, and those of the processor's counts that hold, which are many
	Level  int    // deepest level of the tree; 0 is all
	Nodes  string // only nodes whose name or path matches this shell pattern (with their parents); "" is all
	All    bool   // in the tree format, also the nodes outside the main tree
	Known  bool   // only known nodes: of counts that no method asked for
	Layout Layout // of the tree format
	Expand string // of LayoutParts: also the parts of the nodes whose name or path matches; "bottleneck" for those that the bottleneck path goes through
	// Lines is how many lines a tree takes at most: what matters is shown, and the number of
	// notes. 0 is all that is known.
	Lines  int
	Notes  bool // with Lines, the notes as well
	Top    bool // of LayoutParts: the number of parts was chosen, all are written
	Width  int  // of the terminal in columns; 0 is 100
	Color  bool
	Titles bool // titles of nodes after the figures, where the width allows
	Line   bool // in the tree format, of Account.Times no more than a line: it follows by itself

	// Step spells a next step as a command; nil leaves next steps out.
	Step func(Header, *account.Account, account.Step) Step
	// Note is a note's text with its Fix in the reader's words, such as the flag that does it;
	// nil is the note's Text alone.
	Note func(counts.Note) string
}

// withMeasured adds to notes where parameters come from that were measured.
func (h Header) withMeasured(notes []string) []string {
	if h.Measured == nil {
		return notes
	}
	return append(slices.Clone(notes), h.Measured.String())
}

// A Step is something to do next, in the reader's words.
type Step struct {
	Command string `json:"command"`
	Why     string `json:"why"` // what it answers
}

// steps are the next steps that the options spell.
func (o Options) steps(h Header, a *account.Account) []Step {
	if o.Step == nil {
		return nil
	}
	var list []Step
	for _, s := range a.Next(h.provenance()) {
		if spelled := o.Step(h, a, s); spelled.Command != "" {
			list = append(list, spelled)
		}
	}
	return list
}

// provenance is where the counts are from.
func (h Header) provenance() account.Provenance {
	from := h.From
	from.Files = len(h.Files)
	return from
}

// A Layout is how accounts are arranged.
type Layout uint8

// The layouts.
const (
	LayoutTree    Layout = iota // each account is a tree
	LayoutRows                  // each account is a line: for many of them, in json and csv too
	LayoutParts                 // each account is a line, with its share of the whole: see Header.Profile
	LayoutColumns               // each account is a column: for a few of different things
	LayoutChecks                // the checks of each account, without its nodes
)

// shown says which nodes of a model a report shows.
func (o Options) shown(m *model.Model) []bool { return m.Shown(o.Nodes, o.Level) }

// bottleneckMark stands behind the deepest node of the bottleneck path.
const (
	bottleneckMark = "◄ bottleneck"
	usefulMark     = "◄ most of it" // where the path leads through useful work
)
