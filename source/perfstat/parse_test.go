package perfstat

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
)

func TestDistinctive(t *testing.T) {
	for _, name := range []string{
		"cycles", "cycles:u", "instructions:uk", "cpu-cycles:ppp", "L1-dcache-load-misses", "L1-icache-misses:u", "LLC-stores",
		"dTLB-loads", "branch-load-misses", "r400fa", "r53019c:u", "raw 0x400fa", "cpu/event=0x9c,umask=0x1/", "cpu/rc0/",
		"cpu_core/cycles/u", "kvm-hv/host_heap/", "uops_issued.any", "IDQ.DSB_CYCLES", "stall_slot", "INST_RETIRED",
		"sched:sched_switch", "probe:fork_entry", "duration_time", "slots", "topdown-be-bound", "CPU-migrations", "CPU cycles",
		"uncore_hisi_ddrc.flux_rcmd [hisi_sccl1_ddrc0]", "power/energy-pkg/",
	} {
		if !distinctive([]byte(name)) {
			t.Errorf("%q is not known", name)
		}
	}
	for _, name := range []string{
		"", "apples", "files", "bytes", "cpi", "branch-rate", "years", "cycle", "rabbit", "r", "dir/file", "/a/b/", "http://x/y/",
		"e.g.", "Mr.Smith", "a:", "(x)", "50%", "\"cycles\"", "one two", "instructions,",
	} {
		if distinctive([]byte(name)) {
			t.Errorf("%q is taken for an event", name)
		}
	}
}

func TestStripModifiers(t *testing.T) {
	for in, want := range map[string]string{
		"cycles": "cycles", "cycles:u": "cycles", "cycles:ppp": "cycles", "cpu/cycles/": "cpu/cycles/", "cpu/cycles/ku": "cpu/cycles/",
		"sched:sched_switch": "sched:sched_switch", "sched:sched_switch:u": "sched:sched_switch", "r1a8:u": "r1a8", ":u": ":u", "/u": "/u", "": "",
	} {
		if got := string(stripModifiers([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestParseScope(t *testing.T) {
	const no = counts.Unknown
	for in, want := range map[string]counts.Scope{
		"CPU3":           {Kind: counts.CPU, CPU: 3, Core: no, Die: no, Socket: no, Node: no, TID: no, PID: no, CPUs: 1},
		"S0-D1-C2":       {Kind: counts.Core, CPU: no, Core: 2, Die: 1, Socket: 0, Node: no, TID: no, PID: no},
		"S0-C2":          {Kind: counts.Core, CPU: no, Core: 2, Die: no, Socket: 0, Node: no, TID: no, PID: no},
		"S1-D0":          {Kind: counts.Die, CPU: no, Core: no, Die: 0, Socket: 1, Node: no, TID: no, PID: no},
		"S12":            {Kind: counts.Socket, CPU: no, Core: no, Die: no, Socket: 12, Node: no, TID: no, PID: no},
		"N1":             {Kind: counts.Node, CPU: no, Core: no, Die: no, Socket: no, Node: 1, TID: no, PID: no},
		"S0-D0-CLS7":     {Kind: counts.Cluster, CPU: no, Core: no, Die: 0, Socket: 0, Node: no, TID: no, PID: no},
		"S0-D0-L3-ID8":   {Kind: counts.Cache, CPU: no, Core: no, Die: 0, Socket: 0, Node: no, TID: no, PID: no},
		"kworker/0:1-77": {Kind: counts.Thread, CPU: no, Core: no, Die: no, Socket: no, Node: no, TID: 77, PID: no},
		"a-b c-5":        {Kind: counts.Thread, CPU: no, Core: no, Die: no, Socket: no, Node: no, TID: 5, PID: no},
	} {
		if got, ok := parseScope([]byte(in)); !ok || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "CPU", "CPUx", "S", "N", "Nx", "D0", "-5", "x-", "x-y", "cycles", "S0-D0-X1", "x-12345678901"} {
		if got, ok := parseScope([]byte(in)); ok {
			t.Errorf("%q is taken for %+v", in, got)
		}
	}
}

func TestParseCommand(t *testing.T) {
	for in, want := range map[string]command{
		" -a -I 1000 -x , -e {a,b},{c} --log-fd 1 -D 0 -- ./app -x test": {
			events: []request{{"a", 1}, {"b", 1}, {"c", 2}}, groups: 2, program: "./app -x test"},
		" -r5 -e a,b -- bash -c \"x && y\"":                    {events: []request{{"a", 0}, {"b", 0}}, program: "bash -c x && y", repeats: 5},
		" -ecycles:u,instructions:u dd if=/dev/zero":           {events: []request{{"cycles:u", 0}, {"instructions:u", 0}}, program: "dd if=/dev/zero"},
		" -e '{a,b}:k,c/on=x,y/' -ddd ls":                      {events: []request{{"a", 1}, {"b", 1}, {"c/on=x,y/", 0}}, groups: 1, program: "ls"},
		" --event=r1 --event=r2 -ae r3 sleep 1d":               {events: []request{{"r1", 0}, {"r2", 0}, {"r3", 0}}, program: "sleep 1d"},
		" -MPipelineL2 --pid=12":                               {},
		" record -o x -r 3 -e cpu/event=0x1,umask=0x2,name=Y/": {events: []request{{"cpu/event=0x1,umask=0x2,name=Y/", 0}}, repeats: 3},
		` -e cycles ./a\ b "c d" 'e"f' \\`:                     {events: []request{{"cycles", 0}}, program: `./a b c d e"f \`},
		"":                                                     {},
	} {
		if diff := cmp.Diff(want, *parseCommand(in), cmp.AllowUnexported(command{}, request{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", in, diff)
		}
	}
}

func TestCommandStart(t *testing.T) {
	for _, in := range []string{
		"perf stat ls", "$ perf stat -e x ls", "# ./perf stat", "[root@host ~]# perf stat -a", "$sudo ./perf stat", "command:# sudo ./perf stat -M x",
		"user@host:~/dir$ LC_ALL=C taskset -c 3 perf stat ls", "$> perf stat", "/usr/bin/perf stat -a", " * perf stat x", "/bin/perf stat -A",
	} {
		if commandStart([]byte(in)) < 0 {
			t.Errorf("%q is not taken for a command", in)
		}
	}
	for _, in := range []string{
		"", "This makes perf stat print more", "with perf stat, one sees", "see perf stat(1)", "perf statistics", "`perf stat`",
	} {
		if commandStart([]byte(in)) >= 0 {
			t.Errorf("%q is taken for a command", in)
		}
	}
}

func TestRequestPrints(t *testing.T) {
	for _, tt := range [][2]string{
		{"cycles", "cycles"}, {"cycles", "cycles:u"}, {"cycles:u", "cycles"}, {"r400fa", "raw 0x400fa"}, {"r400FA", "r400fa"},
		{"cpu/event=0x9c,umask=0x1,name=IDQ.CORE/", "IDQ.CORE"}, {"cycles/name=irq/", "irq"}, {"cpu/event=0x81/", "cpu/event=0x81/u"},
		{"probe:entry/on=cycles/", "probe:entry"},
	} {
		if !(request{spec: tt[0]}).prints(tt[1]) {
			t.Errorf("%q does not print %q", tt[0], tt[1])
		}
	}
	for _, tt := range [][2]string{{"cycles", "instructions"}, {"cpu/event=0x1/", "cpu/event=0x2/"}, {"r1", "raw 0x2"}, {"a/name=b/", "c"}} {
		if (request{spec: tt[0]}).prints(tt[1]) {
			t.Errorf("%q prints %q", tt[0], tt[1])
		}
	}
}

func TestParseCPU(t *testing.T) {
	for in, want := range map[string]string{
		"# cpu: skylakex": "skylakex", "# CPU: GenuineIntel-6-F": "GenuineIntel-6-F", "#cpu:power7": "power7",
		"# cpuid : GenuineIntel,6,142,10": "GenuineIntel-6-8E-A", "cpuid : 0x00000000410fd0c0": "0x00000000410fd0c0",
		"Using CPUID AuthenticAMD-25-11-1": "AuthenticAMD-25-11-1", "# CPUID: GenuineIntel-6-55-4": "GenuineIntel-6-55-4",
	} {
		if got, own, ok := parseCPU([]byte(in)); !ok || got != want || own == strings.Contains(strings.ToLower(in), "cpuid") {
			t.Errorf("%q: got %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"cpu: 3", "# cpu:", "# cpus: 4", "CPU0: x", "cpuid", "cpuid : a b", ""} {
		if got, _, ok := parseCPU([]byte(in)); ok {
			t.Errorf("%q is taken for %q", in, got)
		}
	}
}

func TestParseTitle(t *testing.T) {
	for in, want := range map[string]title{
		" Performance counter stats for 'sleep 1':":             {label: "sleep 1"},
		" Performance counter stats for 'a (2 runs)' (5 runs):": {label: "a (2 runs)", runs: 5},
		"> > Performance counter stats for process id '12':":    {label: "process id 12", prefix: []byte("> >")},
		" * Performance counter stats for thread id '12'":       {label: "thread id 12", prefix: []byte("*")},
		"Performance counter stats for ‘system wide’:":          {label: "system wide"},
		"Performance counter stats for 'it's quoted' (3 runs):": {label: "it's quoted", runs: 3},
	} {
		got, ok := parseTitle([]byte(in))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(title{}), cmp.Transformer("", func(b []byte) string { return string(b) })); !ok || diff != "" {
			t.Errorf("%q: %v -want +got:\n%s", in, ok, diff)
		}
	}
	for _, in := range []string{"See the Performance counter stats for details", "Performance counter", ""} {
		if _, ok := parseTitle([]byte(in)); ok {
			t.Errorf("%q is taken for a title", in)
		}
	}
}

func TestPeriod(t *testing.T) {
	recs := func(text string) (r []record) {
		for _, c := range text {
			r = append(r, record{event: int32(c)})
		}
		return r
	}
	for text, want := range map[string]int{
		"": 0, "a": 1, "ab": 2, "aa": 2, "aaaa": 4, "abab": 2, "ababa": 2, "aba": 3, "ababc": 5, "abcabcab": 3, "aabaab": 3, "abba": 4,
	} {
		if got := period(recs(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", maxLine+5)
	input := "a\r\nb\n\n" + long + "\nc"
	for name, src := range map[string]io.Reader{
		"whole":     strings.NewReader(input),
		"byte-wise": iotest.OneByteReader(strings.NewReader(input)),
		"with end":  iotest.DataErrReader(strings.NewReader(input)),
	} {
		l := newLineReader(src)
		var got []string
		for {
			line, ok := l.next()
			if !ok {
				break
			}
			text := string(line)
			if l.long {
				text = "long"
			}
			got = append(got, text)
		}
		if want := []string{"a", "b", "", "long", "c"}; !slices.Equal(got, want) || l.num != 5 || !l.cut || l.err != nil {
			t.Errorf("%s: got %q, line %d, cut %v, %v", name, got, l.num, l.cut, l.err)
		}
	}
	if l := newLineReader(strings.NewReader("a\n")); string(l.head(100)) != "a\n" || !bytes.Equal(l.head(1), []byte("a\n")) {
		t.Errorf("head: %q", l.head(1))
	}
}

func TestLineReaderFails(t *testing.T) {
	l := newLineReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("ab\ncd"))))
	for {
		if _, ok := l.next(); !ok {
			break
		}
	}
	if l.err != iotest.ErrTimeout {
		t.Errorf("got %v, want %v", l.err, iotest.ErrTimeout)
	}
	l = newLineReader(stuck{})
	if _, ok := l.next(); ok || l.err != io.ErrNoProgress {
		t.Errorf("got %v, want %v", l.err, io.ErrNoProgress)
	}
}

// A stuck reader never gives anything.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }
