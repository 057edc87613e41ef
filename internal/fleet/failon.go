package fleet

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/limits"
)

// limits reads FailOn.
func (o *Options) limits() ([]limits.Limit, error) {
	list, err := limits.Parse(o.FailOn)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if o.Against == "" && o.Before == 0 {
		return nil, fault.Usagef("%s is about a comparison: %s LABEL=VALUE or %s TIME", fault.Name("fail-on"), fault.Name("against"), fault.Name("before"))
	}
	for _, l := range list {
		if l.Kind != "" {
			return nil, fault.Optionf("fail-on", l.Kind+":"+l.Name, "the fleet has nodes, and no places in the code")
		}
		if _, err := path.Match(l.Name, ""); err != nil {
			return nil, fault.Optionf("fail-on", l.Name, "not a pattern")
		}
	}
	return list, nil
}

// beyond names the largest change beyond each limit. Only changes that are beyond chance
// count, as [Change.Changed] has it. It is "" if there are none.
func (c *Comparison) beyond(list []limits.Limit) (string, error) {
	var texts []string
	for _, l := range list {
		var worst *Change
		any := false
		for i := range c.Changes {
			x := &c.Changes[i]
			if matched, _ := path.Match(l.Name, x.Node); !matched {
				continue
			}
			any = true
			by := x.Delta / x.Old // of a node that is new, infinite
			if l.Less {
				by = -by
			}
			if x.Changed() && by > l.Share && (worst == nil || math.Abs(x.Delta) > math.Abs(worst.Delta)) {
				worst = x
			}
		}
		switch {
		case !any:
			return "", fault.Optionf("fail-on", l.Name, "no such node was compared")
		case worst != nil && worst.Old == 0:
			texts = append(texts, fmt.Sprintf("%s of %s is new", worst.Node, worst.By))
		case worst != nil:
			texts = append(texts, fmt.Sprintf("%s of %s changed by %+.2f %%", worst.Node, worst.By, 100*worst.Delta/worst.Old))
		}
	}
	return strings.Join(texts, "; "), nil
}
