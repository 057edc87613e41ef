// Package limits reads the limits of --fail-on: how much may change.
package limits

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A Limit is how much a node or place may change.
type Limit struct {
	Kind  string // "function", "module", "line"; "" for a node or all
	Name  string
	Less  bool    // the limit is about less, and not more
	Share float64 // of the old value
}

// limitForm is one limit. Names of functions may have all its signs in
// them, so that the last of them count.
var limitForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(function|module|line):)?(.*\S)\s*([<>])\s*([0-9.]+)\s*$`)
})

// Parse reads limits such as cycles>3%, several by commas.
func Parse(text string) (list []Limit, err error) {
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
