package valgrind

import (
	"bytes"
	"slices"
	"strings"
)

// A derivedEvent is a sum of others: a line "event: L1m = I1mr + 2 D1mr : misses".
type derivedEvent struct {
	name  string
	terms []term
}

type term struct {
	times float64
	event string
}

// define takes the definition of an event. A definition that only gives an event a longer
// name says nothing about counts.
func (r *Reader) define(value []byte) error {
	value, _, _ = bytes.Cut(value, []byte{':'})
	left, right, ok := bytes.Cut(value, []byte{'='})
	if !ok {
		return nil
	}
	d := derivedEvent{name: string(bytes.TrimSpace(left))}
	if d.name == "" {
		return r.fault("an event without a name")
	}
	for _, text := range bytes.Split(right, []byte{'+'}) {
		t, ok := parseTerm(text)
		if !ok {
			return r.fault("not a sum of events: %s", quote(right))
		}
		d.terms = append(d.terms, t)
	}
	if len(r.derived) == maxEvents {
		return r.fault("more than %d derived events", maxEvents)
	}
	if !slices.ContainsFunc(r.derived, func(o derivedEvent) bool { return o.name == d.name }) {
		r.derived = append(r.derived, d)
	}
	return nil
}

// parseTerm parses "Dr", "2 Dr" or "2*Dr".
func parseTerm(text []byte) (term, bool) {
	text = bytes.TrimSpace(text)
	t := term{times: 1}
	if v, rest, ok := decimal(text); ok {
		t.times, text = float64(v), bytes.TrimLeft(rest, " \t*")
	}
	t.event = string(text)
	return t, t.event != "" && !strings.ContainsAny(t.event, " \t*=")
}

// weigh returns a derived event in terms of those that are counted: a weight for each. It
// is false for an event that needs events that are not counted.
func (r *Reader) weigh(d *derivedEvent, known map[string][]float64) ([]float64, bool) {
	sum := make([]float64, len(r.events))
	for _, t := range d.terms {
		if i := slices.Index(r.events, t.event); i >= 0 {
			sum[i] += t.times
			continue
		}
		weights, ok := known[t.event]
		if !ok {
			return nil, false
		}
		for i, w := range weights {
			sum[i] += t.times * w
		}
	}
	return sum, true
}

// weights returns the derived events that can be computed. Each may use those before it.
func (r *Reader) weights() (list []derivedEvent, weights [][]float64) {
	known := map[string][]float64{}
	for i := range r.derived {
		d := &r.derived[i]
		if slices.Contains(r.events, d.name) {
			continue
		}
		if w, ok := r.weigh(d, known); ok {
			known[d.name] = w
			list, weights = append(list, *d), append(weights, w)
		}
	}
	return list, weights
}
