package agent

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/testkernel"
)

// BenchmarkScrape is a scrape of 5,000 series over HTTP: less than 20 ms are wanted.
func BenchmarkScrape(b *testing.B) {
	h := newFakeHost(b)
	a := h.agent(func(o *Options) { o.Listen, o.MaxSeries, o.Containers = "127.0.0.1:0", 5000, 1000 })
	go func() { _ = a.web.run(b.Context()) }()
	for i := 0; a.s.r.active < 5000; i++ {
		a.s.r.get(a.s.cpu, series.Scope, series.ByContainer, series.Namespace, "production", series.Service, fmt.Sprintf("service-%d", i%50), series.Pod, fmt.Sprintf("service-7d4b9c6f5d-%05d", i), series.Container, "main", series.Mode, "user").value = uint64(i) * 123456789
	}
	bytes := int64(0)
	for b.Loop() {
		answer, err := http.Get(a.web.url())
		if err != nil {
			b.Fatal(err)
		}
		if bytes, err = io.Copy(io.Discard, answer.Body); err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
	}
	b.SetBytes(bytes)
}

// BenchmarkTick is what the agent does for 100 containers each interval: reading, adding
// up, one scrape. Of a CPU's time at 10 seconds it is the metric %CPU.
func BenchmarkTick(b *testing.B) {
	h := newFakeHost(b)
	h.pressure = true
	for i := range 100 {
		h.use(fmt.Sprintf("kubepods.slice/kubepods-pod%08x_0000_0000_0000_000000000000.slice/cri-containerd-%s.scope", i, idOf(i)), 1000, 100)
	}
	benchmarkTick(b, h.agent(func(o *Options) { o.Containers, o.MaxSeries = 100, 5000 }))
}

// BenchmarkTickReal is the same over cgroups of this machine's kernel, made for it.
func BenchmarkTickReal(b *testing.B) {
	const top = "/sys/fs/cgroup"
	dir := top
	if _, err := os.Stat(dir + "/cgroup.controllers"); err != nil {
		dir = top + "/unified"
	}
	dir += "/cyclestack-benchmark"
	var made []string
	b.Cleanup(func() {
		for i := len(made) - 1; i >= 0; i-- {
			os.Remove(made[i])
		}
	})
	mk := func(name string) {
		if err := os.Mkdir(name, 0o755); err != nil {
			b.Skip(err)
		}
		made = append(made, name)
	}
	mk(dir)
	for i := range 100 {
		mk(fmt.Sprintf("%s/cri-containerd-%s.scope", dir, idOf(i)))
	}
	h := newFakeHost(b)
	h.remove("")
	if err := os.MkdirAll(h.root+"/sys/fs", 0o755); err != nil {
		b.Fatal(err)
	}
	target := top
	if _, err := os.Stat(top + "/cgroup.controllers"); err != nil {
		target = top + "/unified"
	}
	if err := os.Symlink(target, h.root+"/sys/fs/cgroup"); err != nil {
		b.Fatal(err)
	}
	benchmarkTick(b, h.agent(func(o *Options) { o.Containers, o.MaxSeries = 100, 5000 }))
}

func benchmarkTick(b *testing.B, a *Agent) {
	buf := []byte(nil)
	a.tick(b.Context())
	before := processTime()
	for b.Loop() {
		a.tick(b.Context())
		a.s.r.read("benchmark")
		buf = a.s.r.collect(buf[:0], true)
	}
	if a.groups.alive < 100 {
		b.Fatalf("%d containers", a.groups.alive)
	}
	each := (processTime() - before) / time.Duration(b.N)
	b.ReportMetric(100*each.Seconds()/10, "%CPU")
	b.ReportMetric(resident()/1e6, "MB")
	b.ReportMetric(float64(a.s.r.active), "series")
}

// BenchmarkWindow is a window of level 2 on a machine with a PMU, without the kernel's part:
// counts are made up, and planning is done before.
func BenchmarkWindow(b *testing.B) {
	k := testkernel.Skylake(2)
	k.Left = turnWindows
	a, err := New(Options{Root: b.TempDir(), Kernel: k.Kernel(), Source: measure.PMU, Settings: Usual})
	if err != nil {
		b.Fatal(err)
	}
	r := &rotation{a: a, kept: map[int]*kept{}, duty: map[string]*counter{}, settled: a.live}
	if err := r.turn(b.Context(), 2, nil); err != nil {
		b.Fatal(err)
	}
	before, turns := processTime(), 0
	for b.Loop() {
		if err := r.turn(b.Context(), 2, nil); err != nil {
			b.Fatal(err)
		}
		turns++
	}
	each := (processTime() - before) / time.Duration(turns*turnWindows)
	b.ReportMetric(100*each.Seconds()/10, "%CPU")
	b.ReportMetric(resident()/1e6, "MB")
}
