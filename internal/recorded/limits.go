package recorded

import (
	"fmt"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/limits"
)

// broken returns what has changed most beyond the limit, and not by chance; "" if
// nothing has.
func broken(l *limits.Limit, d Difference) (string, error) {
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

// Broken names the changes beyond their limits, "" if there are none.
func Broken(list []limits.Limit, d Difference) (string, error) {
	var texts []string
	for i := range list {
		text, err := broken(&list[i], d)
		if err != nil {
			return "", err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; "), nil
}
