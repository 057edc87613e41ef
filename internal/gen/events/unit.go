package main

import "regexp"

// A unitRule says what one count of the events of some names is. The first rule
// of a list that matches a name holds; "" is an event that is just an event.
type unitRule struct {
	pattern *regexp.Regexp
	unit    string
}

func unitOf(rules []unitRule, name string) string {
	for _, r := range rules {
		if r.pattern.MatchString(name) {
			return r.unit
		}
	}
	return ""
}

// readUnits returns a vendor's rules of units.csv.
func readUnits(vendor string) (rules []unitRule, err error) {
	return rules, eachRow("units.csv", "pattern,unit", vendor, func(r []string) error {
		pattern, err := regexp.Compile(r[0])
		rules = append(rules, unitRule{pattern, r[1]})
		return err
	})
}

// intelUnit says what one count of an event is. Two bits of the code say it
// without looking at the name: with a counter mask an event counts cycles, and
// with edge detection how often something began.
func intelUnit(e *event, rules []unitRule) string {
	switch {
	case e.config&edgeBit != 0:
		return ""
	case e.name == "FP_ASSIST.ANY": // the mask only keeps an assist with two causes from counting twice
		return ""
	case e.config&cmaskBits != 0:
		return "cycles"
	}
	return unitOf(rules, e.name)
}
