package measure

import "github.com/cyclestack/cyclestack/source/perfevent"

// OSEvents are the events of the operating system's method.
var OSEvents = osEvents

// SampledGroups are the groups of a recording's first part; all their events take samples
// if apart says so.
func (r *Recording) SampledGroups(apart bool) [][]perfevent.Event {
	return r.groups(r.m.parts[0], apart)
}

// Deepest is the plan for the deepest level that is reliable in a run of so many seconds.
var Deepest = deepest
