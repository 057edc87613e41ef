package perfevent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// Limits of a list of events.
const (
	maxEventList = 1 << 16 // bytes
	maxEvents    = 1 << 10
)

// ResolveSampled finds the events of a list as perf record's -e takes it, in
// groups: "cycles,instructions", "{cycles,instructions}:S", with the period or
// the frequency of samples among an event's terms
// ("cpu/event=0x3c,period=2000003/"). Others take samples after so many as sample
// says, or with freq so many in a second. An event outside of braces is a group
// by itself. With :S one event of a group takes samples, which have the counts of
// all: the first that has a period or frequency of its own, or else the first.
//
// Errors are of type *[EventError].
func (s *System) ResolveSampled(list string, sample uint64, freq bool) ([][]Event, error) {
	if len(list) > maxEventList {
		return nil, &EventError{list, fmt.Sprintf("a list longer than %d bytes", maxEventList)}
	}
	texts, err := cutList(list)
	if err != nil {
		return nil, &EventError{list, err.Error()}
	}
	var groups [][]Event
	for _, text := range texts {
		group, sampler, err := s.sampledGroup(text)
		if err != nil {
			return nil, err
		}
		for i := range group {
			a := &group[i].Attr
			switch {
			case sampler >= 0 && i != sampler:
				a.Sample, a.Freq = 0, false
			case a.Sample == 0:
				a.Sample, a.Freq = sample, freq
			}
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// cutList cuts a list of events at its commas, but not within terms or braces.
func cutList(list string) ([]string, error) {
	var parts []string
	start, slashes, depth := 0, 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && slashes%2 == 0 && depth == 0:
			part := strings.TrimSpace(list[start:i])
			if part == "" {
				return nil, errors.New("an event between two commas, or none at all, is missing")
			}
			parts = append(parts, part)
			start = i + 1
		case list[i] == '/':
			slashes++
		case slashes%2 != 0:
		case list[i] == '{':
			depth++
		case list[i] == '}':
			depth--
		}
		if depth < 0 || depth > 1 {
			return nil, errors.New("its braces do not match")
		}
	}
	switch {
	case depth != 0:
		return nil, errors.New("its braces do not match")
	case slashes%2 != 0:
		return nil, errors.New("its terms do not end in a slash")
	case len(parts) > maxEvents:
		return nil, fmt.Errorf("%d events: at most %d", len(parts), maxEvents)
	}
	return parts, nil
}

// sampledGroup resolves an event, or a group in braces. sampler is the only one
// that takes samples, -1 if all do.
func (s *System) sampledGroup(text string) (group []Event, sampler int, err error) {
	names, mods := []string{text}, ""
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		end := strings.LastIndexByte(inner, '}')
		if end < 0 || end+1 < len(inner) && inner[end+1] != ':' {
			return nil, 0, &EventError{text, "its braces do not match"}
		}
		mods = strings.TrimPrefix(inner[end+1:], ":")
		if names, err = cutList(inner[:end]); err != nil {
			return nil, 0, &EventError{text, err.Error()}
		}
	}
	for _, name := range names {
		e, err := s.sampledEvent(name)
		if err == nil {
			err = e.modify(mods)
		}
		var is *EventError
		if errors.As(err, &is) {
			return nil, 0, err
		}
		if err != nil {
			return nil, 0, &EventError{name, err.Error()}
		}
		group = append(group, e)
	}
	if !strings.Contains(mods, "S") || len(group) == 1 {
		return group, -1, nil
	}
	return group, max(0, slices.IndexFunc(group, func(e Event) bool { return e.Attr.Sample > 0 })), nil
}

// sampledEvent resolves an event whose terms may say how often to take samples.
func (s *System) sampledEvent(spelled string) (Event, error) {
	pmu, rest, slashed := strings.Cut(spelled, "/")
	end := strings.LastIndexByte(rest, '/')
	if !slashed || end < 0 {
		return s.Resolve(spelled)
	}
	list, err := parseTerms(rest[:end])
	if err != nil {
		return Event{}, err
	}
	sample, freq, named := uint64(0), false, false
	var others []string
	for _, t := range list {
		switch t.key {
		case "period", "freq":
			if sample, err = strconv.ParseUint(t.value, 0, 63); err != nil || sample == 0 {
				return Event{}, fmt.Errorf("%s=%s: it is a number above 0", t.key, spelling.Clip(t.value))
			}
			freq = t.key == "freq"
			continue
		case "name":
			named = true
		}
		others = append(others, t.spelling())
	}
	plain := pmu + "/" + strings.Join(others, ",") + "/" + rest[end+1:]
	if len(others) == 0 { // cycles/period=1000/u
		plain = pmu
		if mods := strings.TrimPrefix(rest[end+1:], ":"); mods != "" {
			plain += ":" + mods
		}
	}
	e, err := s.Resolve(plain)
	if err != nil {
		return Event{}, err
	}
	if !named {
		e.Name = strings.TrimSpace(spelled)
	}
	e.Attr.Sample, e.Attr.Freq = sample, freq
	if slices.ContainsFunc(list, func(t term) bool { return t.key == "ldlat" || strings.HasPrefix(t.key, "mem-") }) {
		e.SampleMemory()
		e.Attr.Precise = max(e.Attr.Precise, 2) // the kernel wants these so
	}
	return e, nil
}

// SampleMemory has samples of the event say which data was accessed: its address,
// where it came from, and what that cost. The events that know are those of loads
// and stores: Intel's with ldlat (mem-loads, mem-stores), AMD's IBS, POWER's
// marked events. Of page faults it is the address.
func (e *Event) SampleMemory() {
	e.Attr.SampleType |= perffile.SampleAddr | perffile.SampleDataSrc | perffile.SampleWeightStruct
}

// spelling is the term as it was.
func (t term) spelling() string {
	if !t.hasValue {
		return t.key
	}
	if strings.ContainsAny(t.value, ",/'\" ") {
		return t.key + "='" + t.value + "'"
	}
	return t.key + "=" + t.value
}
