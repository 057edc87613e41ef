package measure

import (
	"errors"
	"fmt"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A Filter is what fields of tracepoints must be for a sample.
type Filter struct {
	list int // of SampleOptions.Events
	text string
}

// Filter adds a filter, in the kernel's spelling, of the events of the last list.
func (o *SampleOptions) Filter(text string) error {
	switch {
	case len(o.Events) == 0:
		return errors.New("tracepoints must precede it")
	case text == "":
		return errors.New("it is empty")
	}
	o.Filters = append(o.Filters, Filter{len(o.Events) - 1, text})
	return nil
}

// apply adds the filter to the events of a list. All filters of an event must hold.
func (f Filter) apply(list int, groups [][]perfevent.Event) error {
	if list != f.list {
		return nil
	}
	for _, g := range groups {
		for i := range g {
			e := &g[i]
			switch {
			case e.Attr.Type != perffile.TypeTracepoint:
				return fmt.Errorf("%q: %s is no tracepoint, and has no fields", spelling.Clip(f.text), e.Name)
			case e.Filter == "":
				e.Filter = f.text
			default:
				e.Filter = "(" + e.Filter + ") && (" + f.text + ")"
			}
		}
	}
	return nil
}
