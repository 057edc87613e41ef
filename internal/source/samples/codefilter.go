package samples

import (
	"github.com/cyclestack/cyclestack/counts"
)

// A CodeFilter says which places in the code count, for counts of places, such as a
// simulator's.
type CodeFilter struct {
	s   *selection
	any bool // of the places some matched
}

// Code returns the part of a filter that is about places in the code; nil if there is
// none.
func (f *Filter) Code() *CodeFilter {
	s := newSelection(&Filter{Modules: f.Modules, Functions: f.Functions, Lines: f.Lines, Addresses: f.Addresses})
	if s == nil {
		return nil
	}
	return &CodeFilter{s: s}
}

// Match reports whether a place counts. What is not known of it is empty, and matches
// nothing.
func (c *CodeFilter) Match(at *counts.Code) bool {
	s := c.s
	switch {
	case s.modules != nil && !s.modules.match(orUnknown(at.Module)):
		return false
	case s.functions != nil && !s.functions.matchFunction(at.Function, ""):
		return false
	case s.lines != nil && !s.line(at.File, at.Line):
		return false
	case s.instructions != nil && !s.address(at.Addr):
		return false
	}
	c.any = true
	return true
}

// Err is a [NoMatchError] if nothing of a file matched, else nil.
func (c *CodeFilter) Err(file string) error {
	if c.any {
		return nil
	}
	return c.s.failure(file)
}
