package ostime

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 10 1 1 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 1 0 4711 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 25 0 0"
	tests := []struct {
		text string
		want stat
		fail bool
	}{
		{text: "12 (sh)" + rest, want: stat{name: "sh", parent: 10, user: 70 * time.Millisecond, system: 30 * time.Millisecond,
			began: 47110 * time.Millisecond, io: 250 * time.Millisecond, hasIO: true}},
		{text: "12 (a) S 1 (b c)" + rest, want: stat{name: "a) S 1 (b c", parent: 10, user: 70 * time.Millisecond, system: 30 * time.Millisecond,
			began: 47110 * time.Millisecond, io: 250 * time.Millisecond, hasIO: true}},
		{text: "12 ()" + strings.Replace(rest, " S ", " Z ", 1), want: stat{parent: 10, user: 70 * time.Millisecond, system: 30 * time.Millisecond,
			began: 47110 * time.Millisecond, io: 250 * time.Millisecond, hasIO: true, ended: true}},
		{text: "12 (sh) S 10 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 4711", want: stat{name: "sh", parent: 10, user: 70 * time.Millisecond,
			system: 30 * time.Millisecond, began: 47110 * time.Millisecond}},
		{text: "", fail: true},
		{text: "12 sh S 10", fail: true},
		{text: "12 )sh( S 10", fail: true},
		{text: "12 (sh) S 10 1 1", fail: true},
		{text: strings.Replace("12 (sh)"+rest, " 10 ", " ten ", 1), fail: true},
		{text: strings.Replace("12 (sh)"+rest, " 4711 ", " 99999999999999999999 ", 1), fail: true},
		{text: strings.Replace("12 (sh)"+rest, " 7 3 ", " -7 3 ", 1), fail: true},
	}
	for _, test := range tests {
		got, err := parseStat([]byte(test.text))
		if (err != nil) != test.fail || err == nil && got != test.want {
			t.Errorf("%q: %+v, %v; want %+v, error %v", test.text, got, err, test.want, test.fail)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (init) S 0 1 1 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 1 0 4711 0 0")
	f.Add("1 (a) b) S 0")
	f.Add(")(")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStat([]byte(text))
		if err == nil && (s.user < 0 || s.system < 0 || s.began < 0 || s.io < 0) {
			t.Errorf("%q: a time below 0: %+v", text, s)
		}
	})
}

// files is a file system of the files given by name and content.
func files(list ...string) *proc {
	root := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		root[list[i]] = &fstest.MapFile{Data: []byte(list[i+1])}
	}
	return &proc{root: root}
}

func TestSchedstat(t *testing.T) {
	tests := []struct {
		text string
		want sched
		fail bool
	}{
		{text: "230032 68693 7\n", want: sched{230032, 68693, 7}},
		{text: "0 0 0"},
		{text: "5 6\n", want: sched{5, 6, 0}},
		{text: "", fail: true},
		{text: "5\n", fail: true},
		{text: "5 -1 1\n", fail: true},
		{text: "5 six 1\n", fail: true},
	}
	for _, test := range tests {
		got, err := files("d/schedstat", test.text).schedstat(new(keptFile), "d")
		if (err != nil) != test.fail || got != test.want {
			t.Errorf("%q: %+v %v", test.text, got, err)
		}
	}
	if _, err := files().schedstat(new(keptFile), "d"); err == nil {
		t.Error("no file, no error")
	}
}

func TestStatus(t *testing.T) {
	p := files("d/status", "Name:\tVmHWM:\t7 kB\nVmHWM:\t    2048 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n")
	got, err := p.status(new(keptFile), "d")
	if want := (status{12, 3, true, 2048 << 10}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := files("d/status", "Name:\tx\n").status(new(keptFile), "d"); err != nil || got.switches {
		t.Errorf("%+v, %v, want no switches", got, err)
	}
}

func TestMachine(t *testing.T) {
	got, err := files("proc/stat", "cpu  1 2 3 4 5 6 7 8 1 1\ncpu0 1 2 3 4\n").machine(new(keptFile))
	if want := (machine{360 * time.Millisecond, 80 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3 4\n", "cpu 1 2 3 4 5 6 7 x\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
		if _, err := files("proc/stat", text).machine(new(keptFile)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestDelays(t *testing.T) {
	const name = "proc/sys/kernel/task_delayacct"
	for _, test := range []struct {
		p    *proc
		want string
	}{
		{files(name, "1\n"), ""},
		{files(name, "0\n"), "sysctl kernel.task_delayacct=1"},
		{files(), "CONFIG_TASK_DELAY_ACCT"},
	} {
		if got := test.p.delays(); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestThrottled(t *testing.T) {
	const (
		v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
		v1 = "11 32 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	tests := []struct {
		name    string
		p       *proc
		sum     time.Duration
		limited bool
		fail    bool
	}{
		{name: "version 2, limited above", p: files("proc/7/cgroup", "0::/a.slice/b c\n", "proc/self/mountinfo", v2,
			"sys/fs/cgroup/cpu.stat", "usage_usec 5\n",
			"sys/fs/cgroup/a.slice/cpu.stat", "nr_throttled 3\nthrottled_usec 2000\n", "sys/fs/cgroup/a.slice/cpu.max", "20000 100000\n",
			"sys/fs/cgroup/a.slice/b c/cpu.stat", "throttled_usec 500\n", "sys/fs/cgroup/a.slice/b c/cpu.max", "max 100000\n"),
			sum: 2500 * time.Microsecond, limited: true},
		{name: "version 1", p: files("proc/7/cgroup", "3:cpu,cpuacct:/k\n0::/\n", "proc/self/mountinfo", v1,
			"sys/fs/cgroup/cpu/k/cpu.stat", "nr_periods 1\nthrottled_time 77\n", "sys/fs/cgroup/cpu/k/cpu.cfs_quota_us", "2000\n"),
			sum: 77, limited: true},
		{name: "the root", p: files("proc/7/cgroup", "0::/\n", "proc/self/mountinfo", v2, "sys/fs/cgroup/cpu.stat", "usage_usec 5\n")},
		{name: "outside of the mount", p: files("proc/7/cgroup", "0::/../x\n", "proc/self/mountinfo", strings.Replace(v2, " / ", " /own ", 1)), fail: true},
		{name: "not mounted", p: files("proc/7/cgroup", "0::/\n", "proc/self/mountinfo", "garbage\n - \n"), fail: true},
		{name: "no cgroups", p: files("proc/7/cgroup", "what\n", "proc/self/mountinfo", v2), fail: true},
		{name: "no number", p: files("proc/7/cgroup", "0::/a\n", "proc/self/mountinfo", v2, "sys/fs/cgroup/a/cpu.stat", "throttled_usec x\n"), fail: true},
		{name: "too large", p: files("proc/7/cgroup", "0::/a\n", "proc/self/mountinfo", v2, "sys/fs/cgroup/a/cpu.stat", "throttled_usec 9223372036854775807\n"), fail: true},
	}
	for _, test := range tests {
		membership, err := test.p.membership(new(keptFile), 7)
		var c cgroup
		if err == nil {
			c, err = test.p.cgroup(string(membership))
		}
		var sum time.Duration
		var limited bool
		if err == nil {
			sum, limited, err = test.p.throttled(c)
		}
		if (err != nil) != test.fail || sum != test.sum || limited != test.limited {
			t.Errorf("%s: %v, limited %v, %v; want %v, %v, error %v", test.name, sum, limited, err, test.sum, test.limited, test.fail)
		}
	}
}
