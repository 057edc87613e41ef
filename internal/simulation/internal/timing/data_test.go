package timing

import (
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// A learner is a machine that executes the sooner what it has executed more: its cycles
// tell what it has executed before.
type learner struct {
	executed int
	late     float64
}

func (l *learner) Reset()          {}
func (l *learner) Late(cycles int) { l.late = float64(cycles) }
func (l *learner) LateStore(int)   {}
func (l *learner) Execute(_ *pipeline.Op, _, _ bool) float64 {
	cycles := 1 + l.late + l.late/float64(1+l.executed%7) + 1/float64(1+l.executed)
	l.executed++
	l.late = 0
	return cycles
}

// learners are the rates of processes on such machines that execute code at these addresses,
// over and over.
type learners struct {
	*Rates
	runs []*process
}

func newLearners(t *testing.T, n int) *learners {
	t.Helper()
	i, err := newImage(made{}, disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	m := models{predictor: func() branch.Branches { return silent{} }, machine: func() machine { return &learner{} }}
	l := &learners{Rates: &Rates{code: newLibrary(), machine: m.machine, records: newRecords()}}
	l.code.images["made"] = i
	for range n {
		run := newProcess(l.Rates, m)
		run.Mapped("made", bias)
		l.runs = append(l.runs, run)
	}
	return l
}

// execute lets a process execute code again and again, in all so many blocks.
func (l *learners) execute(run int, blocks int, addrs ...uint64) {
	list := make([]uint64, blocks)
	for i := range list {
		list[i] = addrs[i%len(addrs)] + bias
	}
	l.runs[run].Blocks(list)
}

func (l *learners) end() {
	for _, run := range l.runs {
		run.End()
	}
}

// rates returns those of all instructions.
func (l *learners) rates() (list []valgrind.Rate) {
	for _, in := range l.code.ordered() {
		r, _ := l.At("made", in.addr)
		list = append(list, r)
	}
	return list
}

// missing are misses of the return of the code that is executed.
func missing(first float64) Data {
	return Data{Misses: map[valgrind.DataPlace]valgrind.DataMisses{{Object: "made", Addr: 0x1016}: {Loads: valgrind.Accesses{Number: 100, First: first}}}, Second: 10}
}

var (
	some  = []uint64{0x1000, 0x1005, 0x1010, 0x1013, 0x1015} // returns to what calls
	other = []uint64{0x1015}                                 // returns to itself
)

// TestOrder checks that rates do not depend on the order of processes, also with equally many
// blocks.
func TestOrder(t *testing.T) {
	t.Parallel()
	var all [2][]valgrind.Rate
	for first := range all {
		l := newLearners(t, 2)
		l.execute(first, 20_001, some...)
		l.execute(1-first, 20_001, other...)
		l.end()
		if n := len(l.records.list[0].steps); n == 0 || n != len(l.records.list[1].steps) {
			t.Fatalf("%d and %d steps: want as many", n, len(l.records.list[1].steps))
		}
		l.Wait(missing(37))
		all[first] = l.rates()
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("%v one way, %v the other", all[0], all[1])
	}
}

// TestThin checks that recording is bounded. The kept windows do not depend on the order of
// processes, and the waiting time stays the same.
func TestThin(t *testing.T) {
	t.Parallel()
	const blocks, pieces = 100_000, 10
	run := func(room int, order ...int) *learners {
		l := newLearners(t, 3)
		l.records.room = room
		for range pieces {
			for _, i := range order {
				l.execute(i, blocks*(i+1)/pieces, [][]uint64{some, other, other}[i]...)
			}
		}
		for _, i := range order { // not in pieces
			l.execute(i, blocks, some...)
		}
		l.end()
		l.Wait(missing(50))
		return l
	}
	const room = 20_000
	whole, one, two := run(maxSteps, 0, 1, 2), run(room, 0, 1, 2), run(room, 2, 1, 0)
	steps := 0
	for _, r := range one.records.list {
		steps += len(r.steps)
	}
	if steps+one.records.room != room || steps < room/4 || one.records.every < 2 {
		t.Errorf("%d steps, room for %d more, every %d. window is kept: want no more than %d, and not far fewer", steps, one.records.room, one.records.every, room)
	}
	if a, b := one.rates(), two.rates(); !slices.Equal(a, b) {
		t.Errorf("%v one way, %v the other", a, b)
	}
	a, _ := whole.At("made", 0x1016)
	b, _ := one.At("made", 0x1016)
	if a.Second == 0 || b.Second < 0.95*a.Second || b.Second > 1.05*a.Second {
		t.Errorf("%v cycles waited, and %v of what is kept", a.Second, b.Second)
	}
}

// TestWaitAgain checks that the last Wait is the one that counts, whatever came before.
func TestWaitAgain(t *testing.T) {
	t.Parallel()
	l := newLearners(t, 1)
	l.execute(0, 20_001, other...)
	l.end()
	if r, ok := l.At("made", 0x1016); !ok || r.Second != 0 {
		t.Errorf("%+v, %v before it is known what loads wait for", r, ok)
	}
	l.Wait(missing(50))
	want := l.rates()
	l.Wait(missing(100))
	if twice, once := l.rates()[1].Second, want[1].Second; once == 0 || twice < 1.5*once {
		t.Errorf("%v cycles waited if each load misses, %v if every other does", twice, once)
	}
	l.Wait(missing(50))
	if got := l.rates(); !slices.Equal(got, want) {
		t.Errorf("%v again, want %v", got, want)
	}
}

// TestNoMisses checks that nothing is waited for if nothing misses, by none of several
// processes.
func TestNoMisses(t *testing.T) {
	t.Parallel()
	l := newLearners(t, 3)
	for i := range l.runs {
		l.execute(i, 10_001*(i+1), some...)
	}
	l.end()
	before := l.rates()
	l.Wait(missing(0))
	if after := l.rates(); !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
}

// TestWaitLines checks that misses with a known instruction need no lines, which are slow to
// read.
func TestWaitLines(t *testing.T) {
	t.Parallel()
	l := newLearners(t, 1)
	l.execute(0, 2000, other...)
	l.end()
	l.Wait(missing(50))
	if l.lines != nil {
		t.Error("lines were looked up")
	}
	l.Wait(Data{Misses: map[valgrind.DataPlace]valgrind.DataMisses{{File: "a.c", Line: 1}: {Loads: valgrind.Accesses{Number: 1, First: 1}}}})
	if l.lines == nil {
		t.Error("lines were not looked up")
	}
}
