package accounting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// evidence is what a stream has seen: it explains an empty result.
type evidence struct {
	events  []string      // of the first table
	line    int           // of the first table
	dropped []counts.Note // what the reader had to leave out
	counted bool          // there was a count
	idle    bool          // live counts: the program did not run, for a time at least
	known   bool          // there was an account with a known node
}

func (e *evidence) table(t *counts.Table) {
	if e.events == nil {
		e.events, e.line = resolve.EventNames(t), t.Line
	}
	e.counted = e.counted || anyCounted(t)
	if len(e.dropped) == 0 {
		e.dropped = slices.Clone(t.Notes)
	}
}

// anyCounted reports whether any cell of a table holds a count.
func anyCounted(t *counts.Table) bool {
	for i := range t.Scopes {
		if slices.ContainsFunc(t.Row(i), func(c counts.Cell) bool { return c.Ok() }) {
			return true
		}
	}
	return false
}

// neverRan reports whether the scopes of a live table were never on a processor.
func neverRan(t *counts.Table) bool {
	for i := range t.Scopes {
		for _, c := range t.Row(i) {
			if c.State != counts.NotCounted || c.Enabled > 0 {
				return false
			}
		}
	}
	return true
}

// A Reason says why nothing can be computed, as far as it suggests what to do.
type Reason uint8

// The reasons.
const (
	EventsMissing  Reason = iota // the recording has other events than the method needs
	NotCounted                   // none of the recording's events was counted
	NothingCounted               // live: no event could be counted
	AboutCores                   // the method is about the logical processors of cores
	SamplesOnly                  // the samples have places all the same
)

// A NothingError says that nothing of a method can be computed. Its kind is
// fault.Input, of live counts fault.Machine.
type NothingError struct {
	Reason Reason
	Files  []string
	Method *resolve.Method
	Events []string    // that the first table has
	Line   int         // where the first table begins
	Detail counts.Note // what else is known; zero for nothing
}

func (s *Stream) nothing() error {
	e := &NothingError{Files: s.Files, Method: s.method, Events: s.seen.events, Line: s.seen.line}
	switch {
	case len(s.Files) == 0:
		e.Reason = NothingCounted
		if len(s.seen.dropped) > 0 {
			e.Detail = s.seen.dropped[0]
		}
	case !s.seen.counted:
		e.Reason = NotCounted
	case s.method.Model.Name == resolve.SMTModel && !s.SMT:
		e.Reason = AboutCores
	case len(s.seen.dropped) > 0:
		e.Detail = s.seen.dropped[0]
	case s.kind.Name == "perf-data":
		e.Reason = SamplesOnly
	case s.method.Audits:
		e.Detail = s.Note(s.method)
	}
	return e
}

func (e *NothingError) Error() string {
	files, text := strings.Join(e.Files, ", "), ""
	switch e.Reason {
	case NothingCounted:
		text = fmt.Sprintf("nothing of %s could be counted", e.Method.Model.Name)
		if e.Detail.Text != "" {
			text += ": " + e.Detail.Text
		}
		return text
	case NotCounted:
		return fmt.Sprintf("%s: none of its events was counted: %s", resolve.Where(e.Files[0], e.Line), FirstOf(e.Events))
	case AboutCores:
		return fmt.Sprintf("%s: %s is about the logical processors of a core", files, resolve.SMTModel)
	}
	text = fmt.Sprintf("%s: nothing of %s can be computed from %s: it needs %s",
		files, e.Method.Model.Name, FirstOf(e.Events), FirstOf(e.Method.Account.Inputs()))
	if e.Detail.Text != "" {
		text += "; " + e.Detail.Text
	}
	return text
}

func (e *NothingError) Unwrap() error {
	kind := fault.Input
	if e.Reason == NothingCounted {
		kind = fault.Machine
	}
	return &fault.Error{Kind: kind, Err: fmt.Errorf("nothing can be computed")}
}

// Nothing returns the error of a table that has nothing for a method.
func (o *Options) Nothing(m *resolve.Method, t *counts.Table, kind Kind) error {
	s := New(nil, *o)
	s.method, s.kind = m, kind
	s.seen.events, s.seen.line, s.seen.counted = resolve.EventNames(t), t.Line, true
	return s.nothing()
}

// FirstOf names the first few of a list of events.
func FirstOf(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Names returns the names of scopes, by commas: "run" for none.
func Names(by counts.By) string {
	var names []string
	for k := counts.Run; k <= counts.Instruction; k++ {
		if by.Has(k) {
			names = append(names, k.String())
		}
	}
	if len(names) == 0 {
		return counts.Run.String()
	}
	return strings.Join(names, ",")
}
