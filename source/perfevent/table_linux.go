package perfevent

import (
	"os"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// fill reads the counters into a table. elapsed is how long they counted since
// the last one.
func (s *session) fill(t *counts.Table, now time.Time, elapsed time.Duration) {
	t.Reset(s.layout)
	t.Label = s.label
	t.Interval = s.spec.Interval > 0
	t.Start, t.Duration = s.times.last.Sub(s.times.start).Seconds(), elapsed.Seconds()
	for _, r := range s.opener.refusals {
		t.Cell(r.scope, r.column).Add(&counts.Cell{State: r.state})
	}
	s.reader.fill(t, s.opener.sets, float64(elapsed))
	if s.later.past != nil {
		s.later.past = widen(s.later.past, s.layout)
		if err := t.Add(s.later.past); err != nil {
			s.notes.add("threads that ended are left out: %v", err)
		}
		s.later.past.Reset(s.layout)
	}
	s.fillTools(t, float64(elapsed))
	s.times.last = now
	t.Notes = s.notes.list
}

// silent returns how long a processor should have counted since the last reading, if
// nothing was enabled there. An offline processor does nothing to count. When it is
// back, the kernel does not enable its counters again, and its counts are missed.
func (s *session) silent(cpu int) float64 {
	switch {
	case !s.enabled:
		return 0
	case slices.Contains(s.sys.onlineNow(), cpu):
		s.notes.add("processor %d was offline for a time, and is not counted since", cpu)
		return s.reader.elapsed
	}
	s.notes.add("processor %d went offline and is not counted", cpu)
	return 0
}

// fillTools writes what no counter counts, to the first scope alone: it is the
// same for all of them and not to be summed. The kernel tells a command's
// processor time when it has ended.
func (s *session) fillTools(t *counts.Table, ns float64) {
	if len(t.Scopes) == 0 {
		return
	}
	state := s.ownState()
	if s.spec.Interval > 0 {
		state = nil // it would be that of all intervals
	}
	for _, tool := range s.scheme.tools {
		c := counts.Cell{State: counts.Counted, Value: ns, Enabled: ns, Running: ns}
		switch {
		case tool.kind == elapsedTime:
		case state == nil:
			c = counts.Cell{State: counts.NotSupported}
		case tool.kind == userTime:
			c.Value, c.Variance = float64(state.UserTime()), ostime.TickVariance(state.UserTime(), state.SystemTime())
		case tool.kind == systemTime:
			c.Value, c.Variance = float64(state.SystemTime()), ostime.TickVariance(state.UserTime(), state.SystemTime())
		}
		*t.Cell(0, tool.column) = c
	}
}

// ownState is how the command ended that was counted as a whole; nil if there
// was none, or it runs.
func (s *session) ownState() *os.ProcessState {
	if s.command == nil || !s.spec.Target.ownCommand() || !s.ended {
		return nil
	}
	select {
	case <-s.command.done:
		return s.command.state
	default:
		return nil
	}
}

// conclude says what can be known only at the end: what was never on a counter,
// and that a command was not counted at all.
func (s *session) conclude(t *counts.Table) {
	if !s.enabled || s.shed() {
		s.void(t)
	}
	var never []string
	for i := range s.opener.sets {
		if set := &s.opener.sets[i]; set.running == 0 && set.enabled > 0 {
			for _, e := range set.events {
				if e.column >= 0 {
					never = append(never, s.layout.Columns[e.column].Event)
				}
			}
		}
	}
	slices.Sort(never)
	s.tardy()
	if never = slices.Compact(never); len(never) > 0 {
		s.notes.add("never on a counter: %s: the run was too short for all groups, or something else holds the counters", some(never))
	}
}

// shed says whether a command's counters were taken from it: the kernel does
// that when a program is executed that changes the user.
func (s *session) shed() bool {
	state := s.ownState()
	if state == nil || !s.command.changesUser {
		return false
	}
	enabled := uint64(0)
	for i := range s.opener.sets {
		enabled = max(enabled, s.opener.sets[i].enabled)
	}
	if time.Duration(enabled) > (state.UserTime()+state.SystemTime())/2 {
		return false // the bits of its file were not honoured
	}
	s.notes.add("the command was not counted: the kernel stops counting when a program is executed that changes the user (set-user-ID)")
	return true
}

// void takes back what was counted.
func (s *session) void(t *counts.Table) {
	for i := range t.Scopes {
		row := t.Row(i)
		for j := range row {
			if row[j].Ok() && !slices.ContainsFunc(s.scheme.tools, func(t tool) bool { return t.column == j }) {
				row[j] = counts.Cell{State: counts.NotCounted}
			}
		}
	}
}
