package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
)

// A fakeHost has files like those of a host: cgroups of version 2. Each knows what
// it and all below it took, also those that are gone.
type fakeHost struct {
	t        testing.TB
	root     string
	pressure bool // cgroups have files of it
}

func newFakeHost(t testing.TB) *fakeHost {
	dir, err := os.MkdirTemp("/dev/shm", "cyclestack") // in memory, as the kernel's files are
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &fakeHost{t: t, root: dir}
	h.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n")
	h.write("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
	h.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nstepping\t: 4\n")
	h.use("", 0, 0)
	return h
}

func (h *fakeHost) write(name, text string) {
	h.t.Helper()
	name = filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// use has a cgroup take time, in microseconds, and all above it.
func (h *fakeHost) use(path string, user, system int) {
	h.t.Helper()
	for at := path; ; at = filepath.Dir(at) {
		if at == "." || at == "/" {
			at = ""
		}
		var u, s int
		file := filepath.Join("sys/fs/cgroup", at, "cpu.stat")
		if text, err := os.ReadFile(filepath.Join(h.root, file)); err == nil {
			if _, err := fmt.Sscanf(string(text), "usage_usec %d\nuser_usec %d\nsystem_usec %d", new(int), &u, &s); err != nil {
				h.t.Fatal(err)
			}
		}
		u, s = u+user, s+system
		h.write(file, fmt.Sprintf("usage_usec %d\nuser_usec %d\nsystem_usec %d\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", u+s, u, s))
		for _, p := range [...]string{"cpu", "io", "memory"} {
			if !h.pressure {
				break
			}
			h.write(filepath.Join("sys/fs/cgroup", at, p+".pressure"), fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", s))
		}
		if at == "" {
			return
		}
	}
}

func (h *fakeHost) remove(path string) {
	if err := os.RemoveAll(filepath.Join(h.root, "sys/fs/cgroup", path)); err != nil {
		h.t.Fatal(err)
	}
}

// agent returns an agent of the host, without a server.
func (h *fakeHost) agent(change func(*Options)) *Agent {
	h.t.Helper()
	o := Options{Root: h.root, Kernel: measure.Kernel{Root: os.DirFS(h.root)}, Source: measure.OS, Version: "test", Settings: Usual}
	o.Containers = 10
	if change != nil {
		change(&o)
	}
	a, err := New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// value returns a series' value.
func (a *Agent) value(name string, labels ...string) float64 {
	c := a.s.r.find(name, labels...)
	if c == nil {
		return -1
	}
	return c.number()
}

// text is what a scrape gets.
func (a *Agent) text() string {
	a.s.r.mu.Lock()
	defer a.s.r.mu.Unlock()
	a.s.r.read("test")
	return string(a.s.r.collect(nil, true))
}

// sum adds up the processor time of all series of a scope.
func (a *Agent) sum(scope string) (seconds float64) {
	a.s.r.mu.Lock()
	defer a.s.r.mu.Unlock()
	for _, c := range a.s.r.byName[series.CPU].list {
		if strings.Contains(c.text, `scope="`+scope+`"`) {
			seconds += c.number()
		}
	}
	return seconds
}

const (
	idA = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	idB = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	uid = "8a2b7c11-1234-4321-aaaa-bbbbccccdddd"
)

// idOf makes an identifier of a container.
func idOf(i int) string { return fmt.Sprintf("%012x%052x", i+1, 0) }

// TestIdentify: paths as runtimes make them, with nothing of ours in between.
func TestIdentify(t *testing.T) {
	slice := "kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	for path, want := range map[string]identity{
		"":                                       {unit: "root"},
		"/system.slice":                          {unit: "system"},
		"/system.slice/nginx.service":            {unit: "nginx"},
		"/system.slice/a\\x2db@1.service":        {unit: "a-b@1"},
		"/docker/" + idA:                         {runtime: "docker", id: idA},
		"/system.slice/docker-" + idA + ".scope": {runtime: "docker", id: idA},
		"/machine.slice/libpod-" + idA + ".scope":                                                 {runtime: "podman", id: idA},
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + idA + ".scope":       {runtime: "podman", id: idA},
		"/kubepods/burstable/pod" + uid + "/" + idA:                                               {runtime: "cri", id: idA, pod: uid},
		"/kubepods.slice/kubepods-burstable.slice/" + slice + "/cri-containerd-" + idA + ".scope": {runtime: "containerd", id: idA, pod: uid},
		"/kubepods.slice/kubepods-burstable.slice/" + slice + "/crio-" + idA + ".scope":           {runtime: "crio", id: idA, pod: uid},
		"/system.slice/containerd.service/" + slice + ":cri-containerd:" + idA:                    {runtime: "containerd", id: idA, pod: uid},
		"/k3s/kubepods/besteffort/pod" + uid + "/" + idA:                                          {runtime: "cri", id: idA, pod: uid},
		"/docker/" + idB + "/kubepods/burstable/pod" + uid + "/" + idA:                            {runtime: "cri", id: idA, pod: uid},
		"/lxc/web":         {runtime: "lxc", id: "web"},
		"/lxc.payload.web": {runtime: "lxc", id: "web"},
		"/machine.slice/machine-debian\\x2dvm.scope": {runtime: "machine", id: "debian-vm"},
	} {
		if got, ok := identify(path); !ok || got != want {
			t.Errorf("%q: %+v %v, want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{"/kubepods/burstable/pod" + uid, "/kubepods.slice/kubepods-burstable.slice/" + slice,
		"/machine.slice/libpod-conmon-" + idA + ".scope", "/user.slice/user-1000.slice/session-3.scope", "/docker/buildkit"} {
		if got, ok := identify(path); ok {
			t.Errorf("%q: %+v", path, got)
		}
	}
}

// TestService: what made a pod, from its name.
func TestService(t *testing.T) {
	for pod, want := range map[string]string{"web-7d4b9c6f5d-x2x8v": "web", "api-gateway-85d4f-zzz2z": "api-gateway-85d4f", "db-0": "db", "node-exporter-tkw7z": "node-exporter",
		"etcd-master": "etcd-master", "a": "a", "-": "-", "": ""} {
		if got := serviceOf(pod); got != want {
			t.Errorf("%q: %q, want %q", pod, got, want)
		}
	}
}

// TestCgroups: all that the root took is somewhere, once; containers that nobody saw too.
func TestCgroups(t *testing.T) {
	h := newFakeHost(t)
	inner := "docker/" + idB + "/kubepods/burstable/pod" + uid + "/" + idA
	h.use("system.slice/nginx.service", 5e6, 1e6)
	h.use("docker/"+idB, 7e6, 0)
	h.use(inner, 2e6, 0)
	a := h.agent(nil)
	a.tick(t.Context())
	if got := a.sum(series.Workload); got != 0 {
		t.Errorf("%g seconds before the agent began", got)
	}
	_ = a.text() // a store sees all series as 0 first
	h.use("system.slice/nginx.service", 1e6, 500e3)
	h.use("docker/"+idB, 2e6, 0)
	h.use("docker/"+idB+"/init.scope/ssh.service", 250e3, 0) // is the container's own
	h.use(inner, 3e6, 0)
	h.use("system.slice/new.service", 4e6, 0)
	h.use("system.slice/short.service", 8e6, 0)
	h.remove("system.slice/short.service")
	h.use("", 16e6, 0)
	a.tick(t.Context()) // new.service is seen as 0 first
	for name, want := range map[string]float64{"nginx": 1, "docker": 2.25, "pod": 3, "system": 8, "root": 16, "other": 4, "new": 0} {
		if got := a.value(series.CPU, series.Scope, series.Workload, series.Service, name, series.Processor, "skylakex", series.Method, series.OS, series.Mode, "user"); got != want {
			t.Errorf("service %s: %g, want %g", name, got, want)
		}
	}
	if got := a.sum(series.Workload); got != 34.75 {
		t.Errorf("%g seconds in all, want 34.75", got)
	}
	if got := a.sum(series.ByContainer); got != 5.25 {
		t.Errorf("%g seconds of containers, want 5.25", got)
	}
	_ = a.text()
	h.use("system.slice/new.service", 1e6, 0)
	a.tick(t.Context())
	if got := a.value(series.CPU, series.Scope, series.Workload, series.Service, "new", series.Processor, "skylakex", series.Method, series.OS, series.Mode, "user"); got != 1 {
		t.Errorf("%g seconds after the first scrape, want 1", got)
	}
}

// TestReaders: a new series rises when every scraper has seen it as 0. It does not wait for
// those that have not come for some time, nor for longer than a minute.
func TestReaders(t *testing.T) {
	h, now := newFakeHost(t), time.Now()
	a := h.agent(nil)
	a.s.r.now = func() time.Time { return now }
	tick := func() { now = now.Add(10 * time.Second); a.tick(t.Context()) }
	scrape := func(by string) { a.s.r.read(by) }
	used := func(name string) float64 {
		h.use("system.slice/"+name+".service", 1e6, 0)
		tick()
		return a.value(series.CPU, series.Scope, series.Workload, series.Service, name, series.Processor, "skylakex", series.Method, series.OS, series.Mode, "user")
	}
	scrape("prometheus-a")
	scrape("prometheus-b")
	tick()
	used("new")
	scrape("prometheus-a")
	if got := used("new"); got != 0 {
		t.Errorf("%g seconds before the second scraper came, want 0", got)
	}
	scrape("prometheus-b")
	if got := used("new"); got != 1 {
		t.Errorf("%g seconds when both have come, want 1", got)
	}
	for range 12 { // b has ended
		tick()
		scrape("prometheus-a")
	}
	used("newer")
	scrape("prometheus-a")
	if got := used("newer"); got != 1 {
		t.Errorf("%g seconds without the scraper that ended, want 1", got)
	}
	used("newest")
	for range 5 {
		tick()
	}
	if got := used("newest"); got != 1 {
		t.Errorf("%g seconds after a minute without scrapes, want 1", got)
	}
	for i := range 100 {
		scrape(fmt.Sprint("one of many ", i))
	}
	if len(a.s.r.readers) > mostReaders {
		t.Errorf("%d scrapers are known", len(a.s.r.readers))
	}
}

// TestOther: beyond the places everything is in one series, and nothing is lost or counted
// twice while places change hands.
func TestOther(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	name := func(i int) string { return "docker/" + idOf(i) }
	for i := range 30 {
		h.use(name(i), 1, 0)
	}
	a := h.agent(func(o *Options) { o.Containers = 5; o.MaxSeries = 400 })
	now := time.Now()
	sum := 0
	scan := func() {
		if err := a.groups.scan(); err != nil {
			t.Fatal(err)
		}
		a.s.r.mu.Lock()
		a.groups.report(a.work, a.single, now)
		a.s.r.mu.Unlock()
	}
	scan()
	last := map[*counter]uint64{}
	for round := range 40 {
		now = now.Add(30 * time.Second)
		for i := range 30 {
			used := 1000 * (1 + (i+round/10*7)%30) // who takes most changes
			h.use(name(i), used, 0)
			sum += used
		}
		scan()
		_ = a.text()
		a.s.r.mu.Lock()
		for _, c := range a.s.r.byKey {
			if c.value < last[c] {
				t.Errorf("%s%s fell", c.family.name, c.text)
			}
			last[c] = c.value
		}
		if a.s.r.active > 400 {
			t.Errorf("%d series", a.s.r.active)
		}
		a.s.r.mu.Unlock()
	}
	// Series that are gone took what they had with them: it is in last.
	total := 0.0
	for c, v := range last {
		if c.family.name == series.CPU && strings.Contains(c.text, `scope="container"`) {
			total += float64(v) / 1e3
		}
	}
	if total != float64(sum) {
		t.Errorf("%g µs in the series, %d were used", total, sum)
	}
	if a.s.r.dropped == 0 {
		t.Error("no series was left out")
	}
}

// TestHostile: a name that nobody should give, and files that are no numbers.
func TestHostile(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	long := strings.Repeat("x", 200)
	for _, name := range []string{"a\"b\\c\n}evil 1\n# EOF\n.service", "\xff\xfe.service", long + ".service", "{}.service", "system-\\x.service"} {
		h.use("system.slice/"+name, 1e6, 0)
	}
	for name, text := range map[string]string{"bad.service": "usage_usec 99999999999999999999\nuser_usec -1\n", "empty.service": "", "nul.service": "\x00\x00", "big.service": "usage_usec 18446744073709551615\n"} {
		h.write("sys/fs/cgroup/system.slice/"+name+"/cpu.stat", text)
	}
	a := h.agent(nil)
	a.tick(t.Context())
	a.tick(t.Context())
	text := a.text()
	if strings.Count(text, "# EOF") != strings.Count(text, `\n# EOF`)+1 || !strings.HasSuffix(text, "\n# EOF\n") {
		t.Error("a name ended the text")
	}
	for line := range strings.Lines(text) {
		if len(line) > 1000 || strings.HasPrefix(line, "}") {
			t.Errorf("%.80q", line)
		}
	}
	if !strings.Contains(text, `service="a\"b\\c\n}evil 1\n# EOF\n"`) {
		t.Error("the name is not escaped")
	}
}

// TestVanishing: 5,000 cgroups come and go within a minute of scans; memory stays, and all
// of their time is somewhere.
func TestVanishing(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	a := h.agent(nil)
	a.tick(t.Context())
	now := time.Now()
	sum := 0.0
	for round := range 6 {
		now = now.Add(10 * time.Second)
		for i := range 834 {
			h.use("docker/"+idOf(round*1000+i), 1000, 0)
			sum += 0.001
		}
		if round > 0 {
			for i := range 834 {
				h.remove("docker/" + idOf((round-1)*1000+i))
			}
		}
		if err := a.groups.scan(); err != nil {
			t.Fatal(err)
		}
		a.s.r.mu.Lock()
		a.groups.report(a.work, a.single, now)
		a.s.r.mu.Unlock()
	}
	if got := a.sum(series.Workload); got < sum-1e-6 || got > sum+1e-6 {
		t.Errorf("%g seconds, want %g", got, sum)
	}
	if n := len(a.groups.byID); n > 900 {
		t.Errorf("%d cgroups are remembered", n)
	}
	if a.s.r.active > Usual.MaxSeries || len(a.single.own) > 10 {
		t.Errorf("%d series, %d containers with their own", a.s.r.active, len(a.single.own))
	}
	if a.groups.ended < 4000 {
		t.Errorf("%d containers ended", a.groups.ended)
	}
}

// TestVersion1: cgroups of version 1 have other files.
func TestVersion1(t *testing.T) {
	h := newFakeHost(t)
	if err := os.RemoveAll(filepath.Join(h.root, "sys/fs/cgroup")); err != nil {
		t.Fatal(err)
	}
	put := func(nanos, user, system, throttled int) {
		for _, at := range []string{"", "/docker/" + idA} {
			h.write("sys/fs/cgroup/cpuacct"+at+"/cpuacct.usage", fmt.Sprintln(nanos))
			h.write("sys/fs/cgroup/cpuacct"+at+"/cpuacct.stat", fmt.Sprintf("user %d\nsystem %d\n", user, system))
			h.write("sys/fs/cgroup/cpu"+at+"/cpu.stat", fmt.Sprintf("nr_periods 0\nnr_throttled 0\nthrottled_time %d\n", throttled))
		}
	}
	put(5e9, 400, 100, 0)
	a := h.agent(nil)
	a.tick(t.Context())
	_ = a.text()
	put(8e9, 600, 200, 7e8)
	a.tick(t.Context())
	get := func(name string, more ...string) float64 {
		return a.value(name, append([]string{series.Scope, series.ByContainer, series.Service, "docker", series.Container, idA[:12], series.Processor, "skylakex", series.Method, series.OS}, more...)...)
	}
	if u, s, th := get(series.CPU, series.Mode, "user"), get(series.CPU, series.Mode, "system"), get(series.Throttled); u != 2 || s != 1 || th != 0.7 {
		t.Errorf("user %g, system %g, throttled %g", u, s, th)
	}
}

// TestAgainstKernel compares with what this machine's kernel says by another way: the time
// of all cgroups together is that of the processors.
func TestAgainstKernel(t *testing.T) {
	t.Parallel()
	if _, err := cgroupfs.Open("/sys/fs/cgroup"); err != nil {
		t.Skip(err)
	}
	o := Options{Root: "/", Kernel: measure.ThisKernel(), Source: measure.OS, Settings: Usual}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.tick(t.Context())
	_ = a.text()
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		_ = strings.Repeat("x", 1<<12)
	}
	a.tick(t.Context())
	if got := a.sum(series.Workload); got < 0.5 {
		t.Errorf("%g seconds of all cgroups, and the test alone took one", got)
	}
	if got := a.sum(series.Host); got < 0.5 {
		t.Errorf("%g seconds of the host", got)
	}
}

// find returns a series by its name and labels; nil if there is none.
func (r *registry) find(name string, labels ...string) *counter {
	return r.byKey[name+labelText(labels)]
}
