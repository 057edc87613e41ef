package resolve

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/model"
)

// The errors say in their fields which option of a Choice they are about. How options
// are spelled is up to the caller.

// An UnknownCPUError says that the processor is not known. Its kind is fault.Usage.
type UnknownCPUError struct {
	File  string   // the recording that does not say its processor; "" for none
	Node  string   // the node that means nothing without a processor; "" for none
	Fits  []string // processors that have most of the recording's events; none if all have
	Known int      // how many events they have
	Of    int      // of so many
}

func (e *UnknownCPUError) Error() string {
	if e.File == "" {
		return "what " + e.Node + " means depends on the processor"
	}
	return fmt.Sprintf("%s does not say which processor it is from", e.File)
}

func (e *UnknownCPUError) Unwrap() error { return fault.Usagef("the processor is not known") }

// Candidates says which processors a recording may be from; "" if its events are
// known everywhere.
func (e *UnknownCPUError) Candidates() string {
	const most = 6
	if len(e.Fits) == 0 {
		return ""
	}
	names, more := e.Fits, ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(e.Fits)-most)
	}
	return fmt.Sprintf("%d of its %d events fit %s%s", e.Known, e.Of, strings.Join(names, ", "), more)
}

// unknownCPU names the processors that a recording may be from. The processor is
// never guessed: encodings mean different things on different processors.
func (r *Resolver) unknownCPU(t *counts.Table, file string) (*UnknownCPUError, error) {
	fits, known, err := r.Catalogue.Candidates(EventNames(t))
	if err != nil {
		return nil, err
	}
	return &UnknownCPUError{File: file, Fits: fits, Known: known, Of: len(t.Columns)}, nil
}

// A NodeError says that a method has no such node. Its kind is fault.Usage.
type NodeError struct {
	Option  string // the option that has the pattern; "" for a node by name
	Pattern string
	Near    string       // the node that may be meant; "" if none is near
	CPU     string       // the processor by name
	Model   *model.Model // nil for all methods of the processor
}

func (e *NodeError) Error() string {
	text := ""
	switch {
	case e.Option != "":
		text = fmt.Sprintf("%s %s: no node of %s matches", e.Option, e.Pattern, e.Model.Name)
	case e.Model == nil:
		text = fmt.Sprintf("no method for %s has a node %s", e.CPU, e.Pattern)
	default:
		text = fmt.Sprintf("%s for %s has no node %s", e.Model.Name, e.CPU, e.Pattern)
	}
	if e.Near != "" {
		text += "; did you mean " + e.Near + "?"
	}
	return text
}

func (e *NodeError) Unwrap() error { return fault.Usagef("there is no such node") }

// meant returns the node that a mistyped name may mean; "" if none is near.
func meant(m *model.Model, name string) string {
	names := make([]string, len(m.Nodes))
	for i := range names {
		names[i] = m.Nodes[i].Name
	}
	if near := spelling.Near(name, names, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// A PenaltiesError says that stored penalties cannot be used. The user may do without
// them, or measure them again.
type PenaltiesError struct{ Err error }

func (e *PenaltiesError) Error() string { return e.Err.Error() }
func (e *PenaltiesError) Unwrap() error { return e.Err }
