package perfdata

import (
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

// A Meter says what samples count: the events since the sample before. That is a
// sample's period. In a group with one sampling event (perf's :S) it is what the counters
// of all members grew by. Samples must come in the order of the file, because the kernel
// wrote each processor's in order.
type Meter struct {
	r       *Reader
	reading Reading
	amounts []Amount
	grown   map[growthKey]growth // of counters that samples read
	mute    map[*Event]int64     // samples of events whose periods are not known
}

// An Amount is what a sample adds to the count of an event.
type Amount struct {
	Event *Event
	Value float64 // events, to be multiplied by Event.Scale

	// Enabled and Running are what the times of the event grew by, in
	// nanoseconds; 0 if they were not read.
	Enabled, Running float64
}

// A growthKey is a counter that samples read: of an inherited event each thread
// has its own behind one id.
type growthKey struct {
	id  uint64
	tid int
}

type growth struct{ value, enabled, running uint64 }

// NewMeter returns a meter for the samples of a reader.
func NewMeter(r *Reader) *Meter {
	return &Meter{r: r, amounts: make([]Amount, 1), grown: map[growthKey]growth{}, mute: map[*Event]int64{}}
}

// Of returns what a sample adds to the counts of events, valid until the next call. It
// is empty if that is not known.
func (m *Meter) Of(s *Sample) []Amount {
	e := s.event
	if e.layout.index[partRead] >= 0 && s.Read(&m.reading) {
		return m.counters(s)
	}
	if e.IsDummy() {
		return nil
	}
	period := s.Period()
	if period == 0 && e.layout.period < 0 {
		m.mute[e]++
		return nil
	}
	m.amounts = append(m.amounts[:0], Amount{Event: e, Value: float64(period)})
	return m.amounts
}

// counters is Of for a sample that read counters. Those of a group share the
// times of their leader.
func (m *Meter) counters(s *Sample) []Amount {
	e := s.event
	tid := 0
	if e.Has(perffile.FlagInherit) {
		tid = s.TID()
	}
	m.amounts = m.amounts[:0]
	for i := range m.reading.Values {
		v := &m.reading.Values[i]
		of, id := e, v.ID
		if id == 0 {
			if i > 0 {
				break // without ids only the first one's event is known
			}
			id = s.ID()
		} else if in := m.r.d.instance(id); in != nil {
			of = in.event
		}
		key := growthKey{id, tid}
		before, seen := m.grown[key]
		if of.IsDummy() || !seen && len(m.grown) >= maxIDs {
			continue
		}
		now := growth{v.Value, m.reading.Enabled, m.reading.Running}
		m.grown[key] = now
		if now.value < before.value || now.enabled < before.enabled || now.running < before.running {
			before = growth{} // it was opened anew
		}
		if grown := now.value - before.value; grown > 0 {
			m.amounts = append(m.amounts, Amount{of, float64(grown),
				float64(now.enabled - before.enabled), float64(now.running - before.running)})
		}
	}
	return m.amounts
}

// Known reports whether the samples so far say how many of an event there were.
func (m *Meter) Known(e *Event) bool { return m.mute[e] == 0 }

// Notes names the events whose number is not known.
func (m *Meter) Notes() []counts.Note {
	var out []counts.Note
	for _, e := range m.r.Events() {
		if n := m.mute[e]; n > 0 {
			out = append(out, counts.Notef("%s: %d samples without their periods, taken at a frequency of %d Hz: how many events they stand for is not known",
				e.Name, n, e.SamplePeriod))
		}
	}
	return out
}

// A Sum adds up the amounts of one event in one scope.
type Sum struct {
	value, squares   float64
	samples          int64
	enabled, running float64
}

// Add adds an amount.
func (s *Sum) Add(a *Amount) {
	s.value += a.Value
	s.squares += a.Value * a.Value
	s.samples++
	s.enabled += a.Enabled
	s.running += a.Running
}

// AddAll adds so many amounts by their sum and the sum of their squares.
func (s *Sum) AddAll(value, squares float64, samples int64) {
	s.value += value
	s.squares += squares
	s.samples += samples
}

// Merge adds another sum.
func (s *Sum) Merge(o *Sum) {
	s.value += o.value
	s.squares += o.squares
	s.samples += o.samples
	s.enabled += o.enabled
	s.running += o.running
}

// Cell makes a cell of a sum, scaled to the time the event was enabled. Its Variance is the sum
// of the squares of what was added, as of independent arrivals.
func (s *Sum) Cell(e *Event) counts.Cell {
	out := counts.Cell{State: counts.Counted, Value: s.value * e.Scale, Variance: s.squares * e.Scale * e.Scale, Samples: s.samples}
	if s.enabled > 0 && s.running > 0 {
		out.Enabled, out.Running = s.enabled, min(s.running, s.enabled)
		if s.running < s.enabled {
			out.Value *= s.enabled / s.running
			out.Variance *= s.enabled / s.running * (s.enabled / s.running)
		}
	}
	return out
}

// Samples returns how many amounts were added.
func (s *Sum) Samples() int64 { return s.samples }
