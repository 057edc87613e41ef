package recorded

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/fault"
)

// A Limit is how much a node or place may change.
type Limit struct {
	Kind  string // "function", "module", "line"; "" for a node or all
	Name  string
	Less  bool    // the limit is about less, and not more
	Share float64 // of the old value
}

// Broken returns what has changed most beyond the limit, and not by chance; "" if
// nothing has.
func (l *Limit) Broken(d Difference) (string, error) {
	list, err := d.Changes(l.Kind, l.Name)
	if err != nil {
		return "", err
	}
	var worst *Change
	for i := range list {
		c := &list[i]
		by := c.Relative()
		wrong := c.Verdict == account.More && !l.Less && by > l.Share || c.Verdict == account.Less && l.Less && -by > l.Share
		if wrong && (worst == nil || math.Abs(c.Delta) > math.Abs(worst.Delta)) {
			worst = c
		}
	}
	switch {
	case worst == nil:
		return "", nil
	case worst.Old == 0:
		return worst.Name + " is new", nil
	}
	return fmt.Sprintf("%s changed by %+.2f %%", worst.Name, 100*worst.Relative()), nil
}

// limitError is the error of a limit that makes no sense for a comparison.
func limitError(kind fault.Kind, limit, format string, args ...any) error {
	return &fault.Error{Kind: kind, Err: &fault.OptionError{Option: "fail-on", Value: limit, Err: fmt.Errorf(format, args...)}}
}
