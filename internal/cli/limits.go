package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/account"
)

// A limit is one condition of --fail-on.
type limit struct {
	kind  string // "function", "module", "line"; "" for a node or all
	name  string
	less  bool
	share float64
	on    []limited
}

// A limited is a change that a limit is about.
type limited struct {
	name   string
	change *account.Change
}

// limitForm is one condition. Names of functions may have all its signs in them,
// so that the last of them count.
var limitForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(function|module|line):)?(.*\S)\s*([<>])\s*([0-9.]+)\s*$`)
})

func parseLimits(text string) ([]limit, error) {
	var list []limit
	if text == "" {
		return nil, nil
	}
	for rest := text; rest != ""; {
		one, behind, ok := strings.Cut(rest, "%")
		m := limitForm().FindStringSubmatch(one)
		if !ok || m == nil {
			return nil, usageError("--fail-on %s: it is NODE>PERCENT%% or function:NAME>PERCENT%%, such as 'cycles>3%%'", text)
		}
		share, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			return nil, usageError("--fail-on %s: %q is not a number", one, m[4])
		}
		list = append(list, limit{kind: m[1], name: m[2], less: m[3] == "<", share: share / 100})
		rest = strings.TrimSpace(behind)
		if next, ok := strings.CutPrefix(rest, ","); ok && next != "" {
			rest = next
		} else if rest != "" {
			return nil, usageError("--fail-on %s: a comma and another condition are missing behind %%", text)
		}
	}
	return list, nil
}

// find finds the changes that the limit is about.
func (l *limit) find(d diffed) (err error) {
	l.on, err = d.changes(l.kind, l.name)
	return err
}

// broken returns the change that is furthest beyond the limit, and no chance; nil if
// there is none.
func (l *limit) broken() *limited {
	var worst *limited
	for i := range l.on {
		c := l.on[i].change
		by := c.Relative()
		wrong := c.Verdict == account.More && !l.less && by > l.share || c.Verdict == account.Less && l.less && -by > l.share
		if wrong && (worst == nil || math.Abs(c.Delta) > math.Abs(worst.change.Delta)) {
			worst = &l.on[i]
		}
	}
	return worst
}

// brokenLimits is the failure of the limits that are broken, nil if none is.
func brokenLimits(limits []limit) error {
	var texts []string
	for i := range limits {
		if on := limits[i].broken(); on != nil {
			texts = append(texts, on.String())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return &failure{exitNo, fmt.Errorf("--fail-on: %s", strings.Join(texts, "; "))}
}

func (l *limited) String() string {
	if l.change.Old == 0 {
		return l.name + " is new"
	}
	return fmt.Sprintf("%s changed by %+.2f %%", l.name, 100*l.change.Relative())
}

// changes finds the change of a node, or of all.
func (d nodeDiff) changes(kind, name string) ([]limited, error) {
	if kind != "" {
		return nil, usageError("--fail-on %s:%s: --by %s compares by it", kind, name, kind)
	}
	if name == d.h.What || name == account.Cycles.String() {
		return []limited{{d.h.What, &d.Total}}, nil
	}
	for i := range d.Model.Nodes {
		n := &d.Model.Nodes[i]
		switch {
		case n.Name != name || n.Section != "":
		case math.IsNaN(d.Nodes[i].Delta):
			return nil, inputError(fmt.Errorf("--fail-on %s: it is not known of all runs", name))
		default:
			return []limited{{name, &d.Nodes[i]}}, nil
		}
	}
	return nil, usageError("--fail-on %s: %s has no such node", name, d.Model.Name)
}

// changes finds the changes of places with a name, or of all.
func (d placeDiff) changes(kind, name string) ([]limited, error) {
	switch {
	case kind == "" && (name == d.h.What || name == account.Cycles.String()):
		return []limited{{d.h.What, &d.Total}}, nil
	case kind == "":
		return nil, usageError("--fail-on %s: differences are by %s: %s:%s, or %s", name, d.h.By, d.h.By, name, d.h.What)
	case kind != d.h.By.String():
		return nil, usageError("--fail-on %s:%s: differences are by %s", kind, name, d.h.By)
	}
	var list []limited
	for i := range d.Places {
		c := &d.Places[i]
		own := c.Name
		if own == "" {
			own = c.Module
		}
		if matches(name, own) {
			list = append(list, limited{own, &c.Change})
		}
	}
	if len(list) == 0 {
		return nil, inputError(fmt.Errorf("--fail-on %s:%s: neither side has a %s of this name", kind, name, kind))
	}
	return list, nil
}

// matches reports whether a name is the one that was asked for, with * for any
// letters, and with or without the parameters of a function.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString(`^(?:`+strings.Join(parts, ".*")+`)(?:\(.*)?$`, name)
	return err == nil && ok
}
