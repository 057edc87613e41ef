package accounting

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/report"
)

// A log is a writer that notes what it was given.
type log struct {
	begun, ended int
	labels       []string
	seconds      []float64
	notes        [][]counts.Note
}

func (l *log) Begin(report.Header) error { l.begun++; return nil }
func (l *log) End() error                { l.ended++; return nil }

func (l *log) Account(a *account.Account) error {
	l.labels, l.notes, l.seconds = append(l.labels, a.Label), append(l.notes, a.Notes), append(l.seconds, a.Duration)
	return nil
}

// clock returns the method for any processor, and a table with one event.
func clock(t *testing.T, event string) (*resolve.Method, *counts.Table) {
	t.Helper()
	r, err := resolve.New(resolve.Choice{CPU: "generic"})
	if err != nil {
		t.Fatal(err)
	}
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: event}}, Scopes: []counts.Scope{counts.RunScope("")}})
	table.Duration, table.Label = 1, "./app"
	*table.Cell(0, 0) = counts.Cell{Value: 1e9, Enabled: 1e9, Running: 1e9, State: counts.Counted}
	m, err := r.Method(r.Named(), "generic")
	if err != nil {
		t.Fatal(err)
	}
	return m, table
}

// TestStream: each run has an account, named by its file if there are several.
func TestStream(t *testing.T) {
	m, table := clock(t, "task-clock")
	var l log
	s := New(&l, Options{Files: []string{"a", "b"}})
	for _, file := range s.Files {
		if err := errors.Join(s.Add(m, table, Kind{Name: "perf-stat-csv"}, file), s.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if l.begun != 1 || l.ended != 1 || len(l.labels) != 2 || l.labels[0] != "a: ./app" || l.labels[1] != "b: ./app" {
		t.Errorf("%+v", l)
	}
}

// TestNothing: a recording without a known node is an error without output; of live
// counts the account is written all the same, and the error is the machine's.
func TestNothing(t *testing.T) {
	m, table := clock(t, "nosuch")
	for _, tt := range []struct {
		options  Options
		accounts int
		reason   Reason
		kind     fault.Kind
	}{
		{Options{Files: []string{"a"}}, 0, EventsMissing, fault.Input},
		{Options{Live: true}, 1, NothingCounted, fault.Machine},
	} {
		var l log
		s := New(&l, tt.options)
		err := errors.Join(s.Add(m, table, Kind{Name: "perf-stat-csv"}, "a"))
		if err == nil {
			err = s.Finish()
		}
		var nothing *NothingError
		if !errors.As(err, &nothing) || nothing.Reason != tt.reason || fault.Of(err) != tt.kind || len(l.labels) != tt.accounts {
			t.Errorf("%v (kind %v), %d accounts, want reason %v", err, fault.Of(err), len(l.labels), tt.reason)
		}
	}
}

// TestNotes: notes of an account are not added to those of the next one.
func TestNotes(t *testing.T) {
	m, table := clock(t, "task-clock")
	var l log
	s := New(&l, Options{Live: true, Refine: func(a *account.Account) { a.Notes = append(a.Notes, counts.Notef("refined")) },
		Places: func(*counts.Table) ([]Place, error) { return []Place{{Note: "one"}, {Note: "two"}}, nil }})
	if err := errors.Join(s.Add(m, table, Kind{Name: "perf-event"}, ""), s.Finish()); err != nil {
		t.Fatal(err)
	}
	if len(l.notes) != 2 || len(l.notes[0]) != len(l.notes[1]) {
		t.Fatalf("%q", l.notes)
	}
	last := len(l.notes[0]) - 1
	if l.notes[0][last].Text != "one" || l.notes[1][last].Text != "two" || l.notes[1][last-1].Text != "refined" {
		t.Errorf("%q", l.notes)
	}
}

// TestNeighbours: intervals shorter than asked are added up, as a clock with noise times them.
func TestNeighbours(t *testing.T) {
	m, table := clock(t, "task-clock")
	for _, tt := range []struct {
		of   float64 // seconds
		want []float64
	}{{0, []float64{1, 1, 1, 1, 1}}, {0.5, []float64{1, 1, 1, 1, 1}}, {1, []float64{1, 1, 1, 1, 1}}, {2, []float64{2, 2, 1}}, {3.5, []float64{3, 2}}, {60, []float64{5}}} {
		var l log
		s := New(&l, Options{Files: []string{"a"}, By: counts.By(0).With(counts.Interval), Interval: tt.of})
		for i := range 5 {
			table.Interval, table.Start, table.Duration = true, float64(i)*1.001-1e-4, 1.001
			if err := s.Add(m, table, Kind{Name: "perf-stat-csv"}, "a"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
		for i := range l.seconds {
			l.seconds[i] = math.Round(l.seconds[i])
		}
		if !slices.Equal(l.seconds, tt.want) {
			t.Errorf("intervals of %g s: %g, want %g", tt.of, l.seconds, tt.want)
		}
	}
}
