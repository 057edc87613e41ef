package ostime

import (
	"math"
	"os"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/counts"
)

func TestProcessors(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}}
	m.put("proc/stat", "cpu  300 20 100 1000 50 5 5 20 0 0\ncpu0 200 0 50 500 50 0 0 0 0 0\ncpu2 100 20 50 500 0 5 5 20 0 0\nintr 1 2 3\n")
	cpu := func(n int) counts.Scope {
		s := counts.RunScope("")
		s.Kind, s.CPU = counts.CPU, n
		return s
	}
	core := counts.RunScope("")
	core.Kind, core.Core, core.Socket = counts.Core, 1, 0
	table := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope(""), cpu(2), cpu(7), core}})
	all, some := NewMachine(m.root, nil, nil), NewMachine(m.root, []int{0}, nil)
	m.put("proc/stat", "cpu  400 20 150 1100 60 10 5 30 0 0\ncpu0 250 0 50 549 60 0 0 0 0 0\ncpu2 150 20 100 551 0 10 5 30 0 0\n")

	out := all.Join(table)
	check(t, millis(out, 0), map[string]float64{"processor_user": 1000, "processor_system": 550, "processor_idle": 1000, "processor_iowait": 100, "processor_steal": 100})
	check(t, millis(out, 1), map[string]float64{"processor_user": 500, "processor_system": 550, "processor_idle": 510, "processor_iowait": 0, "processor_steal": 100})
	for _, row := range []int{2, 3} { // one that does not exist, and one without a known number
		check(t, millis(out, row), map[string]float64{"processor_user": math.NaN(), "processor_idle": math.NaN()})
	}
	if v := out.Cell(0, 0).Variance; math.Abs(v-4e14/12) > 1 {
		t.Errorf("variance %g, want that of two ticks on two processors", v)
	}
	check(t, millis(some.Join(table), 0), map[string]float64{"processor_user": 500, "processor_idle": 490, "processor_iowait": 100})
	check(t, millis(all.Join(table), 0), map[string]float64{"processor_user": 0, "processor_idle": 0})

	delete(m.root, "proc/stat")
	out = all.Join(table)
	check(t, millis(out, 0), map[string]float64{"processor_user": math.NaN()})
	if len(out.Notes) == 0 {
		t.Error("no note on why nothing is known")
	}
}

// TestProcessorsOfParts checks the sums of what shares a core, a die, a socket or a node.
func TestProcessorsOfParts(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}}
	m.put("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\n")
	place := func(kind counts.Kind, socket, core, cpu int) counts.Scope {
		s := counts.RunScope("")
		s.Kind, s.Socket, s.Core, s.CPU = kind, socket, core, cpu
		return s
	}
	const any = counts.Unknown
	// Cores have the same numbers in both sockets.
	places := []counts.Scope{place(counts.CPU, 0, 0, 0), place(counts.CPU, 1, 0, 1), place(counts.CPU, 0, 0, 2), place(counts.CPU, 1, 1, 3)}
	table := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope(""), place(counts.Core, 0, 0, any),
		place(counts.Core, 1, 0, any), place(counts.Socket, 1, any, any), place(counts.Core, 7, 0, any)}})
	all, some := NewMachine(m.root, nil, places), NewMachine(m.root, []int{1, 2}, places)
	m.put("proc/stat", "cpu  15 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 2 0 0 0 0 0 0 0 0 0\ncpu2 4 0 0 0 0 0 0 0 0 0\ncpu3 8 0 0 0 0 0 0 0 0 0\n")
	for _, tt := range []struct {
		m    *Machine
		want []float64
	}{{all, []float64{150, 50, 20, 100, math.NaN()}}, {some, []float64{60, 40, 20, 20, math.NaN()}}} {
		out := tt.m.Join(table)
		for row, want := range tt.want {
			check(t, millis(out, row), map[string]float64{"processor_user": want})
		}
	}
}

func TestProcessorLines(t *testing.T) {
	for _, text := range []string{"", "intr 1\n", "cpu 1 2 3\n", "cpu  1 2 3 4 5 6 7 x\n", "cpux 1 2 3 4 5 6 7 8 9 10\n", "cpu 1 2 3 4 5 6 7 8\ncpu70000 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8\n"} {
		if _, err := parseProcessors(nil, []byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// BenchmarkMachine is what an interval of the whole machine costs.
func BenchmarkMachine(b *testing.B) {
	m := NewMachine(os.DirFS("/"), nil, nil)
	if m.err != nil {
		b.Skip(m.err)
	}
	t := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})
	b.ReportAllocs()
	for b.Loop() {
		m.Join(t)
	}
}
