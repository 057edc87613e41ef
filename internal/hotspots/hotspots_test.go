package hotspots_test

import (
	"math"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/hotspots"
)

// osAccount is the operating system's account of one second, with so many seconds of each
// kind.
func osAccount(t *testing.T, threads, ran, kernel, queued float64) *account.Account {
	t.Helper()
	m, err := account.Load("generic", "os-time", account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	events := []string{"task-clock", "user_time", "system_time", "thread_time", "thread_run", "runqueue_wait", "page-faults", "duration_time"}
	values := []float64{ran * 1e9, (ran - kernel) * 1e9, kernel * 1e9, threads * 1e9, ran * 1e9, queued * 1e9, 42, 1e9}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("all")}}
	for _, e := range events {
		l.Columns = append(l.Columns, counts.Column{Event: e, Unit: "ns"})
	}
	table := counts.NewTable(l)
	table.Duration = 1
	for i, v := range values {
		*table.Cell(0, i) = counts.Cell{Value: v, State: counts.Counted}
	}
	return m.Bind(l).Evaluate(table, account.Place{}, nil)
}

// TestStates checks that all shares are of one whole: of elapsed time, or of the time that
// threads wanted processors if that is more.
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		name                         string
		threads, ran, kernel, queued float64
		total, inKernel              int64 // samples
		whole                        account.Resource
		want                         map[string]float64
	}{
		{"one thread that computes", 1, 0.9, 0.1, 0.04, 0, 0, account.Elapsed, map[string]float64{"user": 0.8, "kernel": 0.1, "blocked": 0.06, "run queue": 0.04}},
		{"samples divide the processor time", 1, 0.9, 0.9, 0.04, 1000, 250, account.Elapsed, map[string]float64{"user": 0.675, "kernel": 0.225, "blocked": 0.06, "run queue": 0.04}},
		{"too few samples", 1, 0.9, 0.1, 0.04, 3, 1, account.Elapsed, map[string]float64{"running": 0.9, "blocked": 0.06, "run queue": 0.04}},
		{"a thread that came late", 0.5, 0.5, 0.25, 0, 0, 0, account.Elapsed, map[string]float64{"user": 0.25, "kernel": 0.25, "start and end": 0.5, "run queue": 0, "blocked": 0}},
		{"four threads on three processors", 4, 3, 0.3, 1, 0, 0, account.Time, map[string]float64{"user": 0.675, "kernel": 0.075, "run queue": 0.25}},
		{"a parent that waits for its child", 2, 0.95, 0.05, 0, 0, 0, account.Elapsed, map[string]float64{"user": 0.9, "kernel": 0.05, "blocked": 0.05, "run queue": 0}},
	} {
		a := osAccount(t, tt.threads, tt.ran, tt.kernel, tt.queued)
		var s *hotspots.Samples
		if tt.total > 0 {
			s = &hotspots.Samples{Total: tt.total, Kernel: tt.inKernel}
		}
		h := hotspots.Of(a, s)
		if h == nil {
			t.Fatalf("%s: nothing is known: %+v", tt.name, a.Nodes)
		}
		if h.Whole != tt.whole || len(h.States) != len(tt.want) {
			t.Errorf("%s: of %v: %+v", tt.name, h.Whole, h.States)
		}
		sum := 0.0
		for _, got := range h.States {
			sum += got.Share
			if want, ok := tt.want[got.State]; !ok || math.Abs(got.Share-want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", tt.name, got.State, got.Share, want)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: the shares add up to %v", tt.name, sum)
		}
	}
}

// TestInKernel checks which modules are the kernel's code, by the names that perf gives
// them.
func TestInKernel(t *testing.T) {
	for name, want := range map[string]bool{"[kernel.kallsyms]": true, "[guest.kernel.kallsyms]": true, "[xfs]": true, "ext4.ko": true, "ext4.ko.xz": true,
		"[vdso]": false, "[unknown]": false, "[heap]": false, "libc.so.6": false, "": false, "[bpf_prog]": true} {
		if got := hotspots.InKernel(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// TestTables checks the functions of a simulation: their shares, their hottest lines, and
// what is left.
func TestTables(t *testing.T) {
	place := func(function, file string, line int) counts.Scope {
		s := counts.RunScope("")
		s.Code = &counts.Code{Module: "app", Function: function, File: file, Line: line}
		return s
	}
	table := func(scopes []counts.Scope, values ...float64) *counts.Table {
		t := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cycles"}}, Scopes: scopes})
		for i, v := range values {
			*t.Cell(i, 0) = counts.Cell{Value: v, State: counts.Counted}
		}
		return t
	}
	all := counts.RunScope("all")
	tables := hotspots.Tables{
		Functions: table([]counts.Scope{all, place("small", "a.c", 0), place("large", "a.c", 0), place("tiny", "a.c", 0)}, 1000, 290, 700, 10),
		Lines:     table([]counts.Scope{all, place("large", "a.c", 3), place("large", "a.c", 4), place("small", "a.c", 9)}, 1000, 100, 600, 290),
	}
	h := tables.Hotspots(0.5)
	if len(h.Places) != 2 || h.Places[0].Function != "large" || h.Places[0].Line != 4 || math.Abs(h.Places[0].Share-0.35) > 1e-9 {
		t.Fatalf("%+v", h.Places)
	}
	if math.Abs(h.Others-0.005) > 1e-9 || h.Left != 1 {
		t.Errorf("%v in %d others", h.Others, h.Left)
	}
}
