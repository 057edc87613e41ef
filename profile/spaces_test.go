package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// at says, in short, what is found at an address.
// Modes of code that is unknown: see PERF_RECORD_MISC_CPUMODE_MASK.
const (
	hypervisor Mode = 3 + iota
	guestKernel
)

func at(s *Spaces, time uint64, pid int, addr uint64) string {
	p := s.Find(time, pid, addr, User)
	if p.File == nil {
		return "-"
	}
	return fmt.Sprintf("%s+%#x", p.File.Name, p.Offset)
}

func TestSpaces(t *testing.T) {
	s := NewSpaces()
	m := func(time uint64, pid int, start, length, off uint64, file string) {
		s.Map(time, Mapping{PID: pid, Start: start, Len: length, PgOff: off, File: file})
	}
	// Handed in out of order on purpose.
	m(30, 1, 0x2000, 0x1000, 0, "/lib/b")     // over the middle of /bin/a
	m(10, 1, 0x1000, 0x3000, 0x400, "/bin/a") //
	s.Fork(20, 2, 2, 1, 1)                    // before /lib/b
	s.SetComm(15, 1, 1, "parent", false)      //
	s.SetComm(40, 2, 2, "child", true)        // exec
	m(41, 2, 0x1000, 0x1000, 0, "/bin/c")     //
	m(50, 1, 0x8000, 0x1000, 0, "/lib/late")  // where nothing was
	s.Fork(60, 1, 9, 1, 1)                    // a thread
	s.Map(5, Mapping{PID: kernelPID, Kernel: true, Start: 0xffffffff80000000, Len: ^uint64(0), PgOff: 0xffffffff80000100, File: "[kernel.kallsyms]_text"})
	s.Map(6, Mapping{PID: kernelPID, Kernel: true, Start: 0xffffffffc0000000, Len: 0x1000, File: "[ext4]"})
	s.KernelSymbol(20, 0xffffffffc0005000, 0x100, "bpf_prog_1", false)
	s.KernelSymbol(30, 0xffffffffc0005000, 0x100, "bpf_prog_1", true)
	s.Settle()

	tests := []struct {
		time uint64
		pid  int
		addr uint64
		want string
	}{
		{10, 1, 0x0fff, "-"},
		{10, 1, 0x1000, "/bin/a+0x400"},
		{29, 1, 0x2010, "/bin/a+0x1410"},
		{30, 1, 0x2010, "/lib/b+0x10"},
		{99, 1, 0x3000, "/bin/a+0x2400"}, // behind the hole
		{99, 1, 0x4000, "-"},
		{5, 1, 0x1000, "/bin/a+0x400"}, // nothing else was known before
		{45, 1, 0x8001, "/lib/late+0x1"},
		{20, 2, 0x2010, "/bin/a+0x1410"}, // inherited
		{35, 2, 0x2010, "/bin/a+0x1410"}, // the parent's change is not the child's
		{40, 2, 0x2010, "-"},             // after exec
		{41, 2, 0x1010, "/bin/c+0x10"},
		{99, 3, 0x1000, "-"}, // no such process
	}
	for _, test := range tests {
		if got := at(s, test.time, test.pid, test.addr); got != test.want {
			t.Errorf("time %d, process %d, %#x: got %s, want %s", test.time, test.pid, test.addr, got, test.want)
		}
		if again := at(s, test.time, test.pid, test.addr); again != test.want {
			t.Errorf("time %d, process %d, %#x: got %s the second time, want %s", test.time, test.pid, test.addr, again, test.want)
		}
	}
	kernel := []struct {
		time uint64
		addr uint64
		want string
	}{
		{10, 0xffffffff81234567, "[kernel.kallsyms]"},
		{10, 0xffffffffc0000010, "[ext4]"},
		{10, 0xffffffffc0005010, "[kernel.kallsyms]"},
		{20, 0xffffffffc0005010, "bpf_prog_1"},
		{30, 0xffffffffc0005010, "[kernel]"},
	}
	for _, test := range kernel {
		p := s.Find(test.time, 7, test.addr, Kernel)
		if p.File.Base() != test.want || p.Offset != test.addr {
			t.Errorf("time %d, kernel %#x: got %+v, want %s", test.time, test.addr, p, test.want)
		}
		if any := s.Find(test.time, 1, test.addr, 0); any != p && any.File != nil {
			t.Errorf("time %d, %#x of unknown mode: got %+v, want %+v", test.time, test.addr, any, p)
		}
		if g := s.Find(test.time, 1, test.addr, guestKernel); g.File != nil {
			t.Errorf("a guest's address is in %s", g.File.Name)
		}
	}
	comms := []struct {
		time uint64
		tid  int
		want string
	}{{0, 1, "parent"}, {39, 2, "parent"}, {40, 2, "child"}, {99, 9, "parent"}, {99, 3, ""}, {99, 0, "swapper"}}
	for _, test := range comms {
		if got := s.Comm(test.time, test.tid); got != test.want {
			t.Errorf("time %d, thread %d: got %q, want %q", test.time, test.tid, got, test.want)
		}
	}
	if s.Late != 0 {
		t.Errorf("%d events were late", s.Late)
	}
	m(20, 1, 0x1000, 0x1000, 0, "/lib/too-late")
	s.Settle()
	if got := at(s, 59, 1, 0x1000); s.Late != 1 || got != "/bin/a+0x400" {
		t.Errorf("a late event: counted %d, and at its time is %s", s.Late, got)
	}
}

func TestForget(t *testing.T) {
	s := NewSpaces()
	for i := range uint64(1000) {
		s.Map(i, Mapping{PID: 1, Start: 0x1000, Len: 0x1000, PgOff: i << 12, File: "/bin/a"})
		s.SetComm(i, 1, 1, fmt.Sprint(i), false)
		s.Fork(i, int(i)+2, int(i)+2, 1, 1)
		s.Exit(i, int(i)+2, int(i)+2)
	}
	s.Settle()
	s.Forget(900)
	if n := len(s.processes); n > 101 {
		t.Errorf("%d processes are left", n)
	}
	if n := len(s.processes[1].versions); n != 100 {
		t.Errorf("%d versions are left, want 100", n)
	}
	for time, want := range map[uint64]string{900: "/bin/a+0x384010", 950: "/bin/a+0x3b6010", 5000: "/bin/a+0x3e7010"} {
		if got := at(s, time, 1, 0x1010); got != want {
			t.Errorf("time %d: got %s, want %s", time, got, want)
		}
	}
	if got := s.Comm(950, 1); got != "950" {
		t.Errorf("got the name %q", got)
	}
}

func TestKinds(t *testing.T) {
	tests := []struct {
		m    Mapping
		want kind
		name string
	}{
		{Mapping{PID: 1, File: "/bin/a"}, kindBinary, "/bin/a"},
		{Mapping{PID: 7, File: "//anon"}, kindPerfMap, "/tmp/perf-7.map"},
		{Mapping{PID: 7, File: "//anon", Data: true}, kindMemory, "//anon"},
		{Mapping{PID: 7, File: "[heap]"}, kindPerfMap, "/tmp/perf-7.map"},
		{Mapping{PID: 7, File: "/dev/zero (deleted)"}, kindPerfMap, "/tmp/perf-7.map"},
		{Mapping{PID: 7, File: "/memfd:doublemapper (deleted)"}, kindPerfMap, "/tmp/perf-7.map"},
		{Mapping{PID: 7, File: "/memfd:sealed (deleted)"}, kindBinary, "/memfd:sealed (deleted)"},
		{Mapping{PID: 7, File: "[vdso]"}, kindVDSO, "[vdso]"},
		{Mapping{PID: 7, File: "/home/u/.debug/jit/x/jit-7.dump"}, kindJitdump, "/home/u/.debug/jit/x/jit-7.dump"},
		{Mapping{PID: kernelPID, Kernel: true, File: "[kernel.kallsyms]_stext", PgOff: 5}, kindKernel, "[kernel.kallsyms]_stext"},
		{Mapping{PID: kernelPID, Kernel: true, File: "/lib/modules/6.1/kernel/fs/ext4.ko"}, kindModule, "/lib/modules/6.1/kernel/fs/ext4.ko"},
	}
	for _, test := range tests {
		f := NewSpaces().file(test.m)
		if f.kind != test.want || f.Name != test.name {
			t.Errorf("%+v: got %v %s, want %v %s", test.m, f.kind, f.Name, test.want, test.name)
		}
	}
	f := NewSpaces().file(Mapping{PID: kernelPID, Kernel: true, File: "[kernel.kallsyms]_stext", PgOff: 5})
	if f.reference != "_stext" || f.referenceAddress != 5 || f.Base() != "[kernel.kallsyms]" {
		t.Errorf("got reference %q at %d, base %q", f.reference, f.referenceAddress, f.Base())
	}
}

func TestBuildIDs(t *testing.T) {
	s := NewSpaces()
	s.Map(0, Mapping{PID: 1, Start: 1, Len: 1, File: "/early"})
	s.BuildID("/early", "aa")
	s.Map(0, Mapping{PID: 2, Start: 1, Len: 1, File: "/early"})
	s.Map(0, Mapping{PID: 3, Start: 1, Len: 1, File: "/early", BuildID: "aa"})
	s.BuildID("/late", "bb")
	s.Map(0, Mapping{PID: 1, Start: 2, Len: 1, File: "/late"})
	s.Map(0, Mapping{PID: 1, Start: 3, Len: 1, File: "/late", BuildID: "cc"})
	got := ""
	for _, f := range s.Files() {
		got += f.Name + ":" + f.BuildID + " "
	}
	if want := "/early:aa /late:bb /late:cc "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestKernelBuildID has the kernel's build id in a table. That does not name the symbol that
// the mapping does.
func TestKernelBuildID(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := NewSpaces()
		m := Mapping{PID: kernelPID, Kernel: true, Start: 1 << 40, Len: 1 << 20, PgOff: 1 << 40, File: "[kernel.kallsyms]_text"}
		if late {
			s.Map(0, m)
		}
		s.BuildID("[kernel.kallsyms]", "aabb")
		if !late {
			s.Map(0, m)
		}
		if f := s.Files()[0]; f.BuildID != "aabb" || f.reference != "_text" {
			t.Errorf("late %v: build id %q, reference %q", late, f.BuildID, f.reference)
		}
	}
}

// naive is an address space as an array of pages.
type naive [64]string

// TestSpacesAgainstPages compares histories of mappings, forks and execs with
// arrays of pages.
func TestSpacesAgainstPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSpaces()
		now := map[int]*naive{1: {}, 2: {}, 3: {}}
		history := map[int][]naive{}
		known := map[numbered]Place{}
		pid := rapid.IntRange(1, 3)
		const steps = 40
		for time := range uint64(steps) {
			p := pid.Draw(t, "pid")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				q := pid.Draw(t, "parent")
				if q != p {
					s.Fork(time, p, p, q, q)
					c := *now[q]
					now[p] = &c
				}
			case 1:
				s.SetComm(time, p, p, "x", true)
				now[p] = &naive{}
			default:
				start := rapid.IntRange(0, 62).Draw(t, "start")
				n := rapid.IntRange(1, 63-start).Draw(t, "pages")
				s.Map(time, Mapping{PID: p, Start: uint64(start) << 12, Len: uint64(n) << 12, File: fmt.Sprintf("/f%d", time)})
				for i := range n {
					now[p][start+i] = fmt.Sprintf("/f%d+%#x", time, i<<12)
				}
			}
			for p := range now {
				history[p] = append(history[p], *now[p])
			}
			if rapid.IntRange(0, 5).Draw(t, "settle") == 0 {
				s.Settle()
				checkNumbers(t, s, known, time+1)
			}
		}
		s.Settle()
		checkNumbers(t, s, known, steps)
		for p := range now {
			for time := range uint64(steps) {
				for page, want := range history[p][time] {
					addr := uint64(page) << 12
					got := at(s, time, p, addr)
					// Where nothing was mapped yet, what was mapped first may be told.
					if got != want && !(want == "" && (got == "-" || mappedLater(history[p][time:], page, got))) {
						t.Fatalf("process %d, time %d, page %d: got %s, want %q", p, time, page, got, want)
					}
					if fresh := placeIn(s.processes[p].at(time).find(addr), nil, addr); fresh != s.Find(time, p, addr, User) {
						t.Fatalf("process %d, time %d, page %d: found at %+v, it is at %+v", p, time, page, s.Find(time, p, addr, User), fresh)
					}
				}
			}
		}
	})
}

// numbered is an address in a space of a number.
type numbered struct {
	number uint32
	addr   uint64
}

// checkNumbers checks that addresses in spaces of the same numbers are the same places, also
// before the last events settle.
func checkNumbers(t *rapid.T, s *Spaces, known map[numbered]Place, until uint64) {
	last := space{}
	for time := range until {
		for pid := range 5 {
			for page := range uint64(len(naive{})) {
				addr, mode := page<<12, []Mode{User, Kernel, hypervisor}[page%3]
				fresh, number := s.space(time, int32(pid), mode), s.Number(time, int32(pid), mode)
				if mode == Kernel {
					fresh = s.kernelView(time).space
					fresh.pid = int32(pid)
				}
				if number != fresh.number || last.has(time, int32(pid), mode) && last.number != number {
					t.Fatalf("process %d, time %d: number %d, and %d still holds", pid, time, number, last.number)
				}
				last = fresh
				key, got := numbered{number, addr}, s.Find(time, pid, addr, mode)
				if before, ok := known[key]; ok && before != got || number == 0 {
					t.Fatalf("process %d, time %d, %v: %+v, number %d, was %+v", pid, time, mode, got, number, before)
				}
				known[key] = got
			}
		}
	}
}

func mappedLater(rest []naive, page int, name string) bool {
	for _, h := range rest {
		if h[page] != "" {
			return h[page] == name
		}
	}
	return false
}

// spacesOf makes a recording with many processes, as a build of a program has.
func spacesOf(processes int) *Spaces {
	s := NewSpaces()
	for p := range processes {
		time := uint64(p) * 100
		s.Fork(time, p+2, p+2, 1, 1)
		s.SetComm(time+1, p+2, p+2, "cc1", true)
		for lib := range uint64(8) {
			s.Map(time+2+lib, Mapping{PID: p + 2, Start: 0x7f0000000000 + lib<<24, Len: 1 << 20, File: fmt.Sprintf("/lib/lib%d.so", lib)})
		}
	}
	s.Settle()
	return s
}

func BenchmarkMap(b *testing.B) {
	const processes = 2000
	b.ReportAllocs()
	for b.Loop() {
		spacesOf(processes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(processes*10), "ns/event")
}

func benchmarkFind(b *testing.B, find func(time uint64, pid int, addr uint64, mode Mode) Place, run int) {
	r := rand.New(rand.NewPCG(1, 2))
	type query struct {
		pid  int
		addr uint64
	}
	queries := make([]query, 1<<16)
	for i := range queries {
		if i%run == 0 {
			queries[i] = query{r.IntN(2000) + 2, 0x7f0000000000 + r.Uint64N(8)<<24 + 100}
		} else {
			queries[i] = queries[i-1]
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := queries[i%len(queries)]
		if find(1<<40, q.pid, q.addr, User).File == nil {
			b.Fatal("nothing is there")
		}
	}
}

func BenchmarkFind(b *testing.B) { benchmarkFind(b, spacesOf(2000).Find, 1) }

// BenchmarkFindRuns has runs of ten samples of one process in one library.
func BenchmarkFindRuns(b *testing.B) { benchmarkFind(b, spacesOf(2000).Find, 10) }

// TestRenamedAfterFork: a thread that starts another one and is renamed afterwards has its
// later name, though both are settled together.
func TestRenamedAfterFork(t *testing.T) {
	s := NewSpaces()
	s.SetComm(10, 1, 1, "before", true)
	s.Fork(20, 1, 2, 1, 1)
	s.SetComm(30, 1, 1, "after", false)
	s.Settle()
	for time, want := range map[uint64]string{15: "before", 29: "before", 30: "after", 35: "after"} {
		if got := s.Comm(time, 1); got != want {
			t.Errorf("at %d: %q, want %q", time, got, want)
		}
	}
	if got := s.Comm(35, 2); got != "before" {
		t.Errorf("the thread that was started is called %q", got)
	}
}
