package recorded

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

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

// broken returns what has changed most beyond the limit, and not by chance; "" if
// nothing has.
func (l *Limit) broken(d Difference) (string, error) {
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

// limitForm is one limit. Names of functions may have all its signs in
// them, so that the last of them count.
var limitForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(function|module|line):)?(.*\S)\s*([<>])\s*([0-9.]+)\s*$`)
})

// ParseLimits reads limits such as cycles>3%, several by commas.
func ParseLimits(text string) (list []Limit, err error) {
	for rest := text; rest != ""; {
		one, behind, ok := strings.Cut(rest, "%")
		m := limitForm().FindStringSubmatch(one)
		if !ok || m == nil {
			return nil, fault.Optionf("fail-on", text, "it is NODE>PERCENT%% or function:NAME>PERCENT%%, such as 'cycles>3%%'")
		}
		share, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			return nil, fault.Optionf("fail-on", one, "%q is not a number", m[4])
		}
		list = append(list, Limit{Kind: m[1], Name: m[2], Less: m[3] == "<", Share: share / 100})
		rest = strings.TrimSpace(behind)
		if next, ok := strings.CutPrefix(rest, ","); ok && next != "" {
			rest = next
		} else if rest != "" {
			return nil, fault.Optionf("fail-on", text, "after it, a comma and another condition are missing: %%")
		}
	}
	return list, nil
}

// Broken names the changes beyond their limits, "" if there are none.
func Broken(limits []Limit, d Difference) (string, error) {
	var texts []string
	for i := range limits {
		text, err := limits[i].broken(d)
		if err != nil {
			return "", err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; "), nil
}
