package ostime

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// A fakeMachine is a /proc that changes as a test wants, and its clock.
type fakeMachine struct {
	root fstest.MapFS
	now  time.Duration
}

func (m *fakeMachine) put(name, text string) { m.root[name] = &fstest.MapFile{Data: []byte(text)} }

// thread puts a thread, with its times in milliseconds.
func (m *fakeMachine) thread(pid, tid, parent int, name, state string, began, run, wait, io int) {
	for _, dir := range []string{fmt.Sprintf("proc/%d/task/%d", pid, tid), fmt.Sprintf("proc/%d", pid)} {
		if dir == fmt.Sprintf("proc/%d", pid) && tid != pid {
			continue
		}
		m.put(dir+"/stat", fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 %d 0 0",
			tid, name, state, parent, run/10, began/10, io/10))
		m.put(dir+"/schedstat", fmt.Sprintf("%d %d 1\n", run*1e6, wait*1e6))
		m.put(dir+"/status", fmt.Sprintf("Name:\tx\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", run, wait))
	}
}

// gone takes a thread away.
func (m *fakeMachine) gone(pid, tid int) {
	for name := range m.root {
		if strings.HasPrefix(name, fmt.Sprintf("proc/%d/task/%d/", pid, tid)) || pid == tid && strings.HasPrefix(name, fmt.Sprintf("proc/%d/", pid)) {
			delete(m.root, name)
		}
	}
}

// millis returns the cells of a row, in milliseconds for times, by name; NaN for
// those that are not counted.
func millis(t *counts.Table, row int) map[string]float64 {
	all := map[string]float64{}
	for i, c := range t.Columns {
		cell := t.Cell(row, i)
		switch {
		case !cell.Ok():
			all[c.Event] = math.NaN()
		case c.Unit == "ns":
			all[c.Event] = cell.Value / 1e6
		default:
			all[c.Event] = cell.Value
		}
	}
	return all
}

func check(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if g, ok := got[name]; !ok || !(math.Abs(g-v) < 1e-6 || math.IsNaN(g) && math.IsNaN(v)) {
			t.Errorf("%s: %v, want %v", name, g, v)
		}
	}
}

func runTable() *counts.Table {
	t := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})
	t.Start, t.Duration = 0, 1
	return t
}

// TestCommand has a command start a process, which ends, and two threads.
func TestCommand(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/sys/kernel/task_delayacct", "1\n")
	m.thread(50, 50, 1, "other", "R", 1000, 5000, 0, 0) // not the command's
	m.thread(100, 100, 50, "a (b) c", "R", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
	w.Close() // looks only when told
	w.Started(100)

	m.now += 400 * time.Millisecond
	m.thread(100, 100, 50, "a (b) c", "S", 10000, 100, 200, 50)
	m.thread(100, 101, 50, "worker", "R", 10200, 100, 90, 0) // began 200 to 210 ms after the start
	m.thread(110, 110, 100, "child", "R", 10300, 40, 50, 0)
	m.thread(111, 111, 50, "stranger", "R", 10300, 40, 50, 0)
	m.thread(99, 99, 110, "wrapped", "R", 10300, 10, 0, 0) // of a smaller number than its parent: before the first look
	w.mu.Lock()
	w.scan(false)
	w.mu.Unlock()
	m.gone(110, 110)

	m.now += 600 * time.Millisecond
	m.thread(100, 100, 50, "a (b) c", "Z", 10000, 150, 300, 60)
	m.gone(100, 101)
	w.Ended(100)
	m.gone(100, 100)
	out := w.Join(runTable())
	check(t, millis(out, 0), map[string]float64{
		"thread_time":   1000 + 195 + 95,
		"thread_run":    150 + 100 + 40,
		"runqueue_wait": 300 + 90 + 50,
		"io_wait":       60,
		"thread_user":   150 + 100 + 40,
	})
	if v := out.Cell(0, 0).Variance; math.Abs(v-2*1e14/12) > 1 {
		t.Errorf("variance %g, want that of two beginnings in a tick", v)
	}
}

// TestIntervals checks that the intervals of a process that runs sum to what it did
// since the first.
func TestIntervals(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/stat", "cpu 0 0 0 100 0 0 0 0 0 0\n")
	m.thread(7, 7, 1, "server", "S", 500, 4000, 300, 0)
	m.thread(8, 8, 7, "before", "R", 500, 4000, 300, 0) // was there before: not counted
	w := newWatch(m.root, Spec{PIDs: []int{7}, Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.Attach()
	w.mu.Lock()
	w.surroundings()
	w.mu.Unlock()
	for i := 1; i <= 5; i++ {
		m.now += 500 * time.Millisecond
		m.thread(7, 7, 1, "server", "S", 500, 4000+20*i, 300+30*i, 0)
		m.put("proc/stat", fmt.Sprintf("cpu 0 0 0 %d 0 0 0 %d 0 0\n", 100+95*i, 5*i))
		machine, steal := 1000.0, 50.0
		switch { // of the machine the kernel is asked only so often
		case i%2 == 0:
			machine, steal = math.NaN(), math.NaN()
		case i > 1:
			machine, steal = 2000, 100
		}
		check(t, millis(w.Join(runTable()), 0), map[string]float64{"thread_time": 500, "thread_run": 20, "runqueue_wait": 30,
			"io_wait": math.NaN(), "voluntary_switches": 20, "involuntary_switches": 30, "machine_time": machine, "steal_time": steal,
			"cgroup_throttled": math.NaN(), "max_resident": math.NaN()})
	}
}

// TestAsleep checks that only time passes where the counters say that nothing ran. The
// next poll finds what a skipped poll would have found.
func TestAsleep(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/stat", "cpu 0 0 0 100 0 0 0 0 0 0\n")
	m.put("proc/7/cgroup", "0::/a\n")
	m.put("proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	m.put("sys/fs/cgroup/a/cpu.max", "50000 100000\n")
	m.put("sys/fs/cgroup/a/cpu.stat", "throttled_usec 0\n")
	m.thread(7, 7, 1, "server", "S", 500, 4000, 300, 0)
	w := newWatch(m.root, Spec{PIDs: []int{7}, Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.Attach()
	w.mu.Lock()
	w.surroundings()
	w.mu.Unlock()
	counted := counts.NewTable(&counts.Layout{
		Columns: []counts.Column{{Event: "duration_time", Unit: "ns"}, {Event: "task-clock", Unit: "ns"}, {Event: "cycles"}},
		Scopes:  []counts.Scope{counts.RunScope("")},
	})
	for i, clock := range []counts.Cell{
		{Value: 1e7, State: counts.Counted, Enabled: 1e7, Running: 1e7},
		{State: counts.Counted},
		{State: counts.Counted, Enabled: 1000}, // it ran, if not in what is counted
		{State: counts.NotCounted},             // then nothing tells that nothing ran
	} {
		m.now += 100 * time.Millisecond
		m.thread(7, 7, 1, "server", "S", 500, 4000+20*(i+1), 300+30*(i+1), 0)
		m.put("sys/fs/cgroup/a/cpu.stat", fmt.Sprintf("throttled_usec %d\n", 5000*(i+1)))
		copy(counted.Row(0), []counts.Cell{{Value: 1e8, State: counts.Counted}, clock, {State: counts.NotSupported}})
		want := map[string]float64{"thread_time": 100, "thread_run": 20, "thread_user": 20, "runqueue_wait": 30, "voluntary_switches": 20}
		switch i {
		case 1:
			want = map[string]float64{"thread_time": 100, "thread_run": 0, "thread_user": 0, "runqueue_wait": 0, "voluntary_switches": 0}
		case 2:
			want = map[string]float64{"thread_time": 100, "thread_run": 40, "thread_user": 40, "runqueue_wait": 60, "voluntary_switches": 40}
		}
		want["cgroup_throttled"] = 5 // the cgroup stands still while nothing runs
		check(t, millis(w.Join(counted), 0), want)
	}
}

// TestMissing checks that what is not there is not 0.
func TestMissing(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.thread(7, 7, 1, "old", "S", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
	w.Close()
	w.Started(7)
	m.now += time.Second
	m.thread(7, 7, 1, "old", "Z", 10000, 100, 0, 0)
	delete(m.root, "proc/7/task/7/schedstat")
	w.mu.Lock()
	w.surroundings()
	w.mu.Unlock()
	w.Ended(7)
	out := w.Join(runTable())
	check(t, millis(out, 0), map[string]float64{"thread_time": 1000, "thread_run": 100, "runqueue_wait": math.NaN(), "io_wait": math.NaN(),
		"machine_time": math.NaN(), "steal_time": math.NaN(), "cgroup_throttled": math.NaN()})
	notes := strings.Join(counts.Texts(out.Notes), "\n")
	for _, want := range []string{"waiting for a processor (", "CONFIG_SCHED_INFO", "waiting for disks (", "stolen time (", "throttling ("} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}

	// A machine without /proc knows nothing.
	w = newWatch(fstest.MapFS{}, Spec{}, func() time.Duration { return m.now })
	w.Close()
	w.Started(7)
	w.Ended(7)
	for name, v := range millis(w.Join(runTable()), 0) {
		if !math.IsNaN(v) {
			t.Errorf("%s: %v of nothing", name, v)
		}
	}
}

// TestMissed checks that processor time which nobody saw is added, and said.
func TestMissed(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.thread(7, 7, 1, "sh", "S", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
	w.Close()
	w.Started(7)
	m.now += time.Second
	m.thread(7, 7, 1, "sh", "Z", 10000, 100, 50, 0)
	w.Ended(7)
	in := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "task-clock"}}, Scopes: []counts.Scope{counts.RunScope("")}})
	*in.Cell(0, 0) = counts.Cell{State: counts.Counted, Value: 400e6}
	out := w.Join(in)
	check(t, millis(out, 0), map[string]float64{"task-clock": 400e6, "thread_time": 1300, "thread_run": 400, "runqueue_wait": 50})
	if notes := strings.Join(counts.Texts(out.Notes), "\n"); !strings.Contains(notes, "75 % of the processor time") {
		t.Errorf("notes: %s", notes)
	}
}

// TestApart checks the rows of threads and of processes.
func TestApart(t *testing.T) {
	for _, keep := range []counts.Kind{counts.Thread, counts.Process} {
		m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
		m.thread(100, 100, 1, "main", "S", 10000, 0, 0, 0)
		w := newWatch(m.root, Spec{Keep: counts.By(0).With(keep)}, func() time.Duration { return m.now })
		w.Close()
		w.Started(100)
		m.now += time.Second
		m.thread(100, 100, 1, "main", "S", 10000, 10, 20, 0)
		m.thread(100, 101, 1, "worker", "S", 10500, 30, 40, 0)
		m.thread(102, 102, 100, "child", "S", 10600, 50, 60, 0)
		in := &counts.Layout{}
		for _, tid := range []int{101, 100, 102, 103} { // the last ended before anybody looked
			s := counts.RunScope(fmt.Sprint(tid))
			s.Kind, s.TID = counts.Thread, tid
			in.Scopes = append(in.Scopes, s)
		}
		out := w.Join(counts.NewTable(in))
		if keep == counts.Process {
			if len(out.Scopes) != 2 || out.Scopes[0].Label != "main-100" || out.Scopes[1].Label != "child-102" || out.Scopes[1].Kind != counts.Process {
				t.Fatalf("%v", out.Scopes)
			}
			check(t, millis(out, 0), map[string]float64{"thread_run": 40, "runqueue_wait": 60, "thread_time": 1495})
			check(t, millis(out, 1), map[string]float64{"thread_run": 50, "runqueue_wait": 60, "thread_time": 395})
			continue
		}
		for i, want := range []float64{30, 10, 50, math.NaN()} {
			check(t, millis(out, i), map[string]float64{"thread_run": want})
		}
		if notes := strings.Join(counts.Texts(out.Notes), "\n"); !strings.Contains(notes, "1 of 4 threads ended") {
			t.Errorf("notes: %s", notes)
		}
	}
}

func TestBeginning(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct{ began, after, now, from, unsure time.Duration }{
		{200 * ms, 100 * ms, 300 * ms, 205 * ms, 10 * ms},
		{200 * ms, 206 * ms, 300 * ms, 208 * ms, 4 * ms},
		{200 * ms, 100 * ms, 204 * ms, 202 * ms, 4 * ms},
		{200 * ms, 250 * ms, 300 * ms, 250 * ms, 0},
		{900 * ms, 250 * ms, 300 * ms, 300 * ms, 0}, // of another clock
	} {
		if from, unsure := beginning(test.began, test.after, test.now); from != test.from || unsure != test.unsure {
			t.Errorf("%+v: %v, %v", test, from, unsure)
		}
	}
}

// TestRecorded reads a copy of a machine's /proc: hostile names, a thread that has
// ended, files that cannot be understood.
func TestRecorded(t *testing.T) {
	w := newWatch(os.DirFS(filepath.Join("testdata", "machine")), Spec{}, func() time.Duration { return 11 * time.Second })
	w.Close()
	w.Started(100)
	w.mu.Lock()
	w.surroundings()
	w.scan(false)
	w.mu.Unlock()
	w.Ended(100)
	check(t, millis(w.Join(runTable()), 0), map[string]float64{"thread_run": 150, "runqueue_wait": 20})
}

// TestNumbers has a command start processes and threads while the kernel says which number
// was given last: what has a number that was given before is not looked for.
func TestNumbers(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	last := func(n int) { m.put("proc/loadavg", fmt.Sprintf("0.10 0.20 0.30 2/150 %d\n", n)) }
	process := func(pid, parent, run int) {
		m.thread(pid, pid, parent, "x", "S", 10000, run, 0, 0)
		m.put(fmt.Sprintf("proc/%d/status", pid), fmt.Sprintf("Name:\tx\nTgid:\t%d\n", pid))
	}
	ran := 0
	w := newWatch(m.root, Spec{Interval: true}, func() time.Duration { return m.now })
	w.Close()
	step := func(want ...int) {
		t.Helper()
		m.now += 100 * time.Millisecond
		ran += 10
		process(100, 50, ran)
		w.Join(runTable())
		if got := w.pids(); !slices.Equal(got, want) {
			t.Errorf("processes %v, want %v", got, want)
		}
	}
	last(100)
	process(100, 50, 0)
	process(20, 50, 0)
	w.Started(100)
	step(100)
	step(100)

	process(105, 100, 1)
	process(103, 50, 1) // not the command's
	// Any thread has a directory, whose parent is that of its process.
	m.thread(100, 104, 50, "thread", "S", 10000, 1, 0, 0)
	m.thread(105, 106, 100, "thread", "S", 10000, 1, 0, 0)
	m.put("proc/106/stat", string(m.root["proc/105/task/106/stat"].Data))
	m.put("proc/106/status", "Name:\tx\nTgid:\t105\n")
	last(106)
	step(100, 105)
	if w.tasks.live[104] == nil || w.tasks.live[106] == nil || w.tasks.live[106].pid != 105 {
		t.Errorf("threads %v, want 104 of 100 and 106 of 105", w.tasks.live)
	}

	last(107) // has its number, and is seen a moment later
	step(100, 105)
	process(107, 105, 1)
	step(100, 105, 107)
	process(108, 107, 1)
	step(100, 105, 107) // nothing was given a number
	last(108)
	step(100, 105, 107, 108)
	m.gone(108, 108)
	for pid := 110; pid < 110+2*probeMost; pid++ {
		process(pid, 50, 1)
	}
	process(300, 107, 1)
	last(300) // too many to be looked at one by one
	step(100, 105, 107, 300)
	m.gone(20, 20) // and numbers have begun again
	process(20, 300, 1)
	last(20)
	step(20, 100, 105, 107, 300)
}

// TestLateNumbers has the command start a process that is seen some looks after it was given
// its number.
func TestLateNumbers(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/loadavg", "0.10 0.20 0.30 2/150 100\n")
	m.thread(100, 100, 50, "x", "R", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.Started(100)
	for n := range 40 {
		m.now += firstLook
		switch n {
		case 20:
			m.put("proc/loadavg", "0.10 0.20 0.30 2/150 103\n")
		case 28:
			m.thread(102, 102, 100, "y", "R", 10100, 0, 0, 0)
			m.put("proc/102/status", "Name:\ty\nTgid:\t102\n")
		}
		w.Join(runTable())
	}
	if got := w.pids(); !slices.Equal(got, []int{100, 102}) {
		t.Errorf("processes %v, want 100 and 102", got)
	}
}

// TestNumbersOfOthers has lxcfs say which number was given last: on the host.
func TestNumbersOfOthers(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/self/mountinfo", "25 20 0:22 / /proc rw - proc proc rw\n92 25 0:45 /proc/loadavg /proc/loadavg rw,nosuid,nodev - fuse.lxcfs lxcfs rw\n")
	m.thread(100, 100, 50, "x", "R", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.Started(100)
	for n := range 5 {
		m.now += 100 * time.Millisecond
		m.put("proc/loadavg", fmt.Sprintf("0.10 0.20 0.30 2/150 %d\n", 70000+n/4))
		if n == 3 {
			m.thread(101, 101, 100, "y", "R", 10300, 0, 0, 0)
			m.put("proc/101/status", "Name:\ty\nTgid:\t101\n")
		}
		w.Join(runTable())
	}
	if got := w.pids(); !slices.Equal(got, []int{100, 101}) {
		t.Errorf("processes %v, want 100 and 101", got)
	}
}

// TestBrief runs a command twice that ends before anybody looks: what the machine did
// meanwhile is not known, and it is from the end of the first run on.
func TestBrief(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.put("proc/100/cgroup", "0::/a\n")
	m.put("proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	m.put("sys/fs/cgroup/a/cpu.max", "50000 100000\n")
	m.put("sys/fs/cgroup/a/cpu.stat", "throttled_usec 7000\n")
	w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
	w.Close()
	for run, want := range []map[string]float64{
		{"machine_time": math.NaN(), "steal_time": math.NaN(), "cgroup_throttled": math.NaN()},
		{"machine_time": math.NaN(), "steal_time": math.NaN(), "cgroup_throttled": 5},
		{"machine_time": 80, "steal_time": 10, "cgroup_throttled": 5},
	} {
		m.thread(100, 100, 50, "x", "R", 10000, 1, 0, 0)
		w.Started(100)
		n := run + 1
		m.put("proc/stat", fmt.Sprintf("cpu  %d %d %d %d %d %d %d %d 0 0\n", n, n, n, n, n, n, n, n))
		m.put("sys/fs/cgroup/a/cpu.stat", fmt.Sprintf("throttled_usec %d\n", 7000+5000*n))
		w.Ended(100)
		check(t, millis(w.Join(runTable()), 0), want)
	}
}

// TestThrottledToTheEnd checks that the time until a process ended counts: as a zombie it is in
// no cgroup of its own any more, and later nowhere.
func TestThrottledToTheEnd(t *testing.T) {
	for name, end := range map[string]func(*fakeMachine){
		"a zombie": func(m *fakeMachine) {
			m.thread(100, 100, 50, "x", "Z", 10000, 100, 0, 0)
			m.put("proc/100/cgroup", "1:cpu:/\n0::/\n")
		},
		"gone": func(m *fakeMachine) {
			m.gone(100, 100)
			delete(m.root, "proc/100/cgroup")
		},
	} {
		m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
		m.put("proc/100/cgroup", "1:cpu:/k\n0::/\n")
		m.put("proc/self/mountinfo", "11 32 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
		m.put("sys/fs/cgroup/cpu/cpu.stat", "nr_throttled 0\nthrottled_time 0\n")
		m.put("sys/fs/cgroup/cpu/k/cpu.cfs_quota_us", "20000\n")
		m.put("sys/fs/cgroup/cpu/k/cpu.stat", "nr_throttled 9\nthrottled_time 7000000\n")
		m.thread(100, 100, 50, "x", "R", 10000, 0, 0, 0)
		w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
		w.Close()
		w.Started(100)
		w.mu.Lock()
		w.surroundings()
		w.mu.Unlock()
		m.now += 2 * time.Second
		m.put("sys/fs/cgroup/cpu/k/cpu.stat", "nr_throttled 20\nthrottled_time 907000000\n")
		end(m)
		w.Ended(100)
		if got := millis(w.Join(runTable()), 0)["cgroup_throttled"]; got != 900 {
			t.Errorf("%s: %v ms, want 900", name, got)
		}
		// A further run that ends before the first poll.
		m.thread(200, 200, 50, "x", "R", 12000, 0, 0, 0)
		w.Started(200)
		m.thread(200, 200, 50, "x", "Z", 12000, 10, 0, 0)
		m.put("proc/200/cgroup", "1:cpu:/\n0::/\n")
		m.put("sys/fs/cgroup/cpu/k/cpu.stat", "nr_throttled 21\nthrottled_time 917000000\n")
		w.Ended(200)
		if got := millis(w.Join(runTable()), 0)["cgroup_throttled"]; got != 10 {
			t.Errorf("%s, a further run: %v ms, want 10", name, got)
		}
	}
}

// TestIdle checks that who did not run is not asked what it started.
func TestIdle(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.thread(100, 100, 50, "x", "S", 10000, 0, 0, 0)
	w := newWatch(m.root, Spec{Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.Started(100)
	m.thread(101, 101, 100, "y", "S", 10000, 1, 0, 0)
	for _, step := range []struct {
		run   int
		state string
		want  []int
	}{{0, "S", []int{100}}, {0, "R", []int{100, 101}}} {
		m.now += 100 * time.Millisecond
		m.thread(100, 100, 50, "x", step.state, 10000, step.run, 0, 0)
		w.Join(runTable())
		if got := w.pids(); !slices.Equal(got, step.want) {
			t.Errorf("%q, ran for %d ms: processes %v, want %v", step.state, step.run, got, step.want)
		}
	}
}
