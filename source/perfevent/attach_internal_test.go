//go:build linux

package perfevent

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// tasksThat returns the tasks of a lineage that are such, whether there are any of
// these numbers or not.
func (l *lineage) tasksThat(such func(*taskEvents) bool) []int {
	var tids []int
	for tid, k := range l.tasks {
		if such(k) {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids
}

// A thread that begins during the opening inherits the counters that its parent had.
// That depends on when the parent got them, and whether it could have been in clone.
func TestLineage(t *testing.T) {
	l := newLineage()
	l.opened(1, 10, 20)
	l.opened(2, 30, 40)
	l.gone(3)
	l.opened(4, 50, 60)
	l.tasks[4].sure = 70
	begins := func(maker, tid int, time uint64) fork { return fork{maker: maker, tid: tid, time: time} }
	l.note([]fork{
		begins(1, 11, 5),    // before its maker had them
		begins(11, 12, 6),   // and its child
		begins(1, 13, 15),   // while it got them
		begins(1, 14, 25),   // the first after
		begins(14, 15, 26),  // and its child
		begins(1, 16, 27),   // the second
		begins(16, 17, 28),  // and its child
		begins(3, 18, 50),   // its maker had ended before it got any
		begins(4, 19, 65),   // before its maker was seen outside
		begins(4, 20, 75),   // after
		begins(3, 1, 80),    // known already
		begins(99, 100, 80), // another process's
	})
	lacks := func(k *taskEvents) bool { return k.root == 0 && !k.over }
	doubt := func(k *taskEvents) bool { return k.doubt > 0 }
	if got, want := l.tasksThat(lacks), []int{11, 12, 18}; !slices.Equal(got, want) {
		t.Errorf("without counters %v, want %v", got, want)
	}
	if got, want := l.tasksThat(doubt), []int{13, 14, 15, 19}; !slices.Equal(got, want) {
		t.Errorf("in doubt %v, want %v", got, want)
	}
	if l.tasks[15].doubt != 25 || l.tasks[17].root != 1 || l.tasks[1].sure != 25 || l.tasks[2].sure != 0 || l.knows(100) {
		t.Errorf("%+v", l.tasks)
	}
	l.forget(1)
	if got, want := l.tasksThat(lacks), []int{1, 11, 12, 13, 14, 15, 16, 17, 18}; !slices.Equal(got, want) {
		t.Errorf("without counters %v, want %v", got, want)
	}
	if got, want := l.tasksThat(doubt), []int{19}; !slices.Equal(got, want) {
		t.Errorf("in doubt %v, want %v", got, want)
	}
	l.note([]fork{begins(16, 21, 90)})
	if k := l.tasks[21]; k == nil || k.root != 0 {
		t.Errorf("a task of one that has none: %+v", k)
	}
}

// A thread that computes is seen in user mode, and one that sleeps asleep.
func TestOutside(t *testing.T) {
	if fd, err := openEvent(&Attr{Type: perffile.TypeSoftware, Config: softwareCPUClock, ExcludeKernel: true, ExcludeHV: true, Disabled: true}, 0, -1, -1, 0); err != nil {
		t.Skipf("not allowed here: %v", err)
	} else {
		(&probe{fd, -1}).close()
	}
	for _, role := range []string{"spin 100000000000", "sleep 60000"} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "CYCLESTACK_PERFEVENT_ROLE="+role)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		p := c.Process.Pid
		l := newLineage()
		l.opened(p, 1, 2)
		for range 10000 {
			if l.look(); l.tasks[p].sure > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if l.tasks[p].sure == 0 || len(l.probes) > 0 {
			t.Errorf("%s: not seen outside of the kernel; %d probes are left", role, len(l.probes))
		}
		l.close()
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	l := newLineage()
	defer l.close()
	l.opened(os.Getpid(), 1, 2) // this thread waits for nothing: it is in a system call, or in user mode
	l.opened(1<<30, 1, 2)       // there is none
	if l.look(); l.tasks[1<<30].sure == 0 {
		t.Error("a thread that there is not is looked for")
	}
}

// When what was opened on a task is closed, the others keep their clocks.
func TestDrop(t *testing.T) {
	o := newOpener(nil, nil, &notes{}, Attr{})
	at := func(tid int, clocks ...int) set {
		return set{place: place{pid: tid}, clocks: clocks, events: []setEvent{{fd: -1}}}
	}
	shared := []int{3, 4}
	o.sets = []set{at(1), at(1, 0), at(1, 0), at(2), at(2), at(2, shared...), at(2, shared...), at(3)}
	o.clocks = map[[2]int]int{{1, 0}: 0, {2, 0}: 3, {2, 1}: 4, {3, 0}: -1}
	o.drop(1)
	if len(o.sets) != 5 {
		t.Fatalf("%d sets are left, want 5", len(o.sets))
	}
	for i, want := range [][]int{nil, nil, {0, 1}, {0, 1}, nil} {
		if got := o.sets[i].clocks; !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("set %d has the clocks %v, want %v", i, got, want)
		}
	}
	if want := map[[2]int]int{{2, 0}: 0, {2, 1}: 1, {3, 0}: -1}; !maps.Equal(o.clocks, want) {
		t.Errorf("clocks %v, want %v", o.clocks, want)
	}
}
