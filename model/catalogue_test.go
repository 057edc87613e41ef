package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

func names(infos []ModelInfo) string {
	var out []string
	for _, i := range infos {
		own := ""
		if i.Own {
			own = "*"
		}
		out = append(out, i.Name+own)
	}
	return strings.Join(out, " ")
}

func TestModels(t *testing.T) {
	cat := testCatalogue(t)
	for cpu, want := range map[string]string{
		"skylakex":       "second family first", // its default first
		"icelakex":       "family second",
		"lunarlake:core": "",
		"nothing":        "",
		"":               "family family first second",
	} {
		if got := names(cat.Models(cpu)); got != want {
			t.Errorf("Models(%q) = %q, want %q", cpu, got, want)
		}
	}
	info := cat.Models("icelakex")[0]
	if got, want := fmt.Sprintf("%+v", info), "{Name:family Version:1 Title:Family, Skylake CPUs:[icelakex] File:models/family/icelakex.toml Own:false}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDefaultModel(t *testing.T) {
	cat := testCatalogue(t)
	for cpu, want := range map[string]string{"skylakex": "second", "icelakex": "family", "GenuineIntel-6-55-4": "second", "SKX": "second"} {
		if m, err := cat.Model("", cpu); err != nil || m.Name != want {
			t.Errorf("the default model of %s: %v, %v, want %s", cpu, m, err, want)
		}
	}
	for _, tt := range []struct{ name, cpu, want string }{
		{"", "power7", "there is no model for processor power7"},
		{"third", "icelakex", `there is no model "third" for processor icelakex; it has family, second`},
		{"first", "icelak", `unknown processor "icelak"; did you mean icelakex?`},
	} {
		if _, err := cat.Model(tt.name, tt.cpu); err == nil || err.Error() != tt.want {
			t.Errorf("Model(%q, %q): %v, want %s", tt.name, tt.cpu, err, tt.want)
		}
	}
	var unknown *UnknownModelError
	if _, err := cat.Model("third", "icelakex"); !errors.As(err, &unknown) || len(unknown.Have) != 2 {
		t.Errorf("got %#v", err)
	}
}

func TestAdd(t *testing.T) {
	cat := testCatalogue(t)
	if err := cat.Add("testdata/own/family.toml"); err != nil {
		t.Fatal(err)
	}
	if got, want := names(cat.Models("skylakex")), "second family* first"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m, err := cat.Model("family", "skylakex")
	if err != nil {
		t.Fatal(err)
	}
	if *m.Parameters[0].Value != 20 || m.File != "testdata/own/family.toml" || m.Node("Issue") == nil {
		t.Errorf("got %+v", m)
	}
	other := testCatalogue(t)
	if m, err := other.Model("family", "skylakex"); err != nil || *m.Parameters[0].Value != 12 {
		t.Errorf("another catalogue: %v, %v", m, err)
	}

	// A folder may have a file that others of the folder extend, and no more.
	dir := t.TempDir()
	write(t, dir, "base.toml", "name = \"mine\"\nunit = \"cycles\"\n"+node("A", `formula = "cycles"`))
	write(t, dir, "sub/skx.toml", "extends = \"base\"\ncpus = [\"skylakex\"]\n"+node("A", `title = "mine"`))
	write(t, dir, "sub/notes.txt", "no model")
	if err := cat.Add(dir); err != nil {
		t.Fatal(err)
	}
	if m, err := cat.Model("mine", "skylakex"); err != nil || m.Node("A").Title != "mine" {
		t.Errorf("got %v, %v", m, err)
	}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAddErrors(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ text, want string }{
		"syntax.toml":  {"name = \"x\n", "syntax.toml:1: "},
		"nocpu.toml":   {"name = \"x\"\nunit = \"cycles\"\n", "nocpu.toml:1: cpus: the model does not say which processors it is for"},
		"badcpu.toml":  {"name = \"x\"\n\ncpus = [\"skylakx\"]\n", `badcpu.toml:3: cpus: unknown processor "skylakx"; did you mean skylakex?`},
		"name.toml":    {"name = \"My Model\"\ncpus = [\"skylakex\"]\nunit = \"cycles\"\n", `name.toml:1: name: "My Model" is not made of lower-case letters`},
		"formula.toml": {top + node("A", `formula = "1 +"`), "formula.toml:6: node A: formula"},
		"event.toml":   {top + node("A", `formula = "NO_EVENT"`), `event.toml:6: node A: formula: "NO_EVENT" is no node`},
		"self.toml":    {"extends = \"self\"\n" + top + node("A", `formula = "1"`), "self.toml:1: extends: self.toml extends itself, as the catalogue has none of that name"},
		"model.txt":    {top, "the name of a model file ends in .toml"},
	} {
		file := write(t, dir, name, tt.text)
		cat := testCatalogue(t)
		if err := cat.Add(file); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), dir) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if got := names(cat.Models("")); strings.Contains(got, "*") {
			t.Errorf("%s: added all the same: %s", name, got)
		}
	}
	round := write(t, dir, "round.toml", "extends = \"trip\"\n"+top)
	write(t, dir, "trip.toml", "name = \"trip\"\nextends = \"round\"\n")
	if err, want := testCatalogue(t).Add(round), filepath.Join(dir, "trip.toml")+":2: extends: round.toml extends itself, by way of trip.toml"; err == nil || err.Error() != want {
		t.Errorf("a round trip: %v, want %s", err, want)
	}
	if err := testCatalogue(t).Add(filepath.Join(dir, "absent.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent.toml: %v", err)
	}
	if err := testCatalogue(t).Add(dir); err == nil || !strings.HasPrefix(err.Error(), dir) {
		t.Errorf("a folder with broken files: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	cpus := &fstest.MapFile{Data: []byte("[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\n")}
	m := &fstest.MapFile{Data: []byte("name = \"m\"\nunit = \"cycles\"\ncpus = [\"x\"]\n")}
	_, err := Load(fstest.MapFS{"cpus.toml": cpus, "models/a.toml": m, "models/b.toml": m})
	if want := `models/b.toml:3: cpus: processor "x" has a model "m" already, in models/a.toml`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	cat, err := Load(fstest.MapFS{"cpus.toml": cpus, "models/a.toml": m, "texts.toml": {Data: []byte("x = 1")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Model("m", "x"); err == nil || !strings.HasPrefix(err.Error(), "texts.toml:1: ") {
		t.Errorf("with a broken texts.toml: %v", err)
	}
}

// TestEmbeddedModels loads every embedded model for each of its processors. With -long
// it lints all of it; without, the models of the first processors of each file.
func TestEmbeddedModels(t *testing.T) {
	cat := embeddedCatalogue(t)
	if len(cat.Models("")) == 0 {
		t.Fatal("there are none")
	}
	for _, info := range cat.Models("") {
		for _, cpu := range info.CPUs {
			if _, err := cat.Model(info.Name, cpu); err != nil {
				t.Errorf("%s for %s: %v", info.Name, cpu, err)
			}
		}
	}
	var findings []Finding
	if testlong.Enabled() {
		all, err := lintAll(cat)
		if err != nil {
			t.Fatal(err)
		}
		findings = all
	} else {
		for _, file := range lintedSample {
			i := slices.IndexFunc(cat.Models(""), func(info ModelInfo) bool { return info.File == file })
			if i < 0 {
				t.Fatalf("no model file %s", file)
			}
			info := cat.Models("")[i]
			m, err := cat.Model(info.Name, info.CPUs[0])
			if err != nil {
				t.Fatal(err)
			}
			findings = append(findings, Lint(cat, m)...)
		}
	}
	for _, f := range findings {
		switch f.Severity {
		case SevError:
			t.Error(f)
		case SevWarning:
			t.Log(f)
		}
	}
}

// lintedSample are the model files that are linted without -long: one of each vendor and
// kind of method.
var lintedSample = []string{
	"models/core2-cycles.toml", "models/power7-cpi.toml", "models/power/power10.toml", "models/tma/skylakex.toml",
	"models/tma/alderlake-atom.toml", "models/amd/zen4.toml", "models/arm/neoverse-v1.toml", "models/riscv/generic.toml",
	"models/cycles/skylakex.toml", "models/cycles/zen4.toml", "models/smt-occupancy/skylakex.toml",
	"models/generic.toml", "models/os-time.toml", "models/simulated-cycles.toml", "models/loop-relations.toml",
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	cat := testCatalogue(t)
	var wg sync.WaitGroup
	for range 4 {
		for _, p := range cat.CPUs() {
			wg.Go(func() {
				table, err := cat.Events(p)
				if err != nil {
					t.Error(err)
					return
				}
				table.Lookup("cycles:u")
				for _, info := range cat.Models(p.Name) {
					m, err := cat.Model(info.Name, p.Name)
					if err != nil {
						t.Error(err)
						continue
					}
					Lint(cat, m)
				}
			})
		}
	}
	wg.Wait()
}

// BenchmarkEmbedded is what the start of a program costs: the processors, the
// heads of the models, one processor by its identification, its event table and
// its default model. Nothing is kept from one round to the next.
func BenchmarkEmbedded(b *testing.B) {
	for _, id := range []string{"GenuineIntel-6-55-7", "graniterapids", "alderlake:core", "0x003f0203", "GenuineIntel-6-17-A"} {
		b.Run(id, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lib, err := openLibrary(embedded())
				if err != nil {
					b.Fatal(err)
				}
				benchmarkStart(b, &Catalogue{lib: lib}, id)
			}
		})
	}
}

// BenchmarkModel is what one processor's default model costs with its event
// table and its texts, once the catalogue is open: the figure that is to be
// below 5 ms.
func BenchmarkModel(b *testing.B) {
	for _, name := range []string{"cascadelakex", "graniterapids", "alderlake:core", "power10", "neoverse-v2"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				lib, err := openLibrary(embedded())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				benchmarkStart(b, &Catalogue{lib: lib}, name)
			}
		})
	}
}

func benchmarkStart(b *testing.B, cat *Catalogue, id string) {
	b.Helper()
	p, err := cat.CPU(id)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := cat.Model("", p.Name); err != nil {
		b.Fatal(err)
	}
	if _, err := cat.Events(p); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLargeCatalogue is the same for a large catalogue: 100 models of 250 nodes, 700
// KB of event tables, 400 texts.
func BenchmarkLargeCatalogue(b *testing.B) {
	fsys := largeCatalogue()
	b.ReportAllocs()
	for b.Loop() {
		lib, err := openLibrary(fsys)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkStart(b, &Catalogue{lib: lib}, "Vendor-6-2A-1")
	}
}

func largeCatalogue() fstest.MapFS {
	fsys := fstest.MapFS{}
	var cpus, events, texts strings.Builder
	events.WriteString("cpus,name,config,config1,pmu,counters,counters_smt,flags,sample_after,unit,aliases\n")
	for i := range 100 {
		fmt.Fprintf(&cpus, "[[cpu]]\nname = \"cpu%d\"\ntitle = \"Processor number %d\"\nvendor = \"intel\"\nids = [\"Vendor-6-%X(-[01234])?\"]\n"+
			"aliases = [\"c%d\"]\npmus = [\"cpu\"]\nwidth = 4\nthreads = 2\nlayout = \"intel\"\nevents = \"CPU%d\"\n\n", i, i, i, i, i)
		var m strings.Builder
		fmt.Fprintf(&m, "name = \"tma\"\nversion = \"5\"\ntitle = \"Top-down\"\nabout = \"x\"\nsource = \"x\"\ncpus = [\"cpu%d\"]\nunit = \"slots\"\n", i)
		for n := range 250 {
			fmt.Fprintf(&m, "[[node]]\nname = \"Some_Node_%d\"\n", n)
			if n > 3 {
				fmt.Fprintf(&m, "parent = \"Some_Node_%d\"\n", n/4)
			}
			fmt.Fprintf(&m, "formula = \"(GROUP_%d.SUBEVENT_NAME + 3 * GROUP_%d.SUBEVENT_NAME:c1) / (4 * GROUP_0.SUBEVENT_NAME)\"\n"+
				"threshold = \"Some_Node_%d > 0.2 & Some_Node_0 > 0.1\"\nsample = [\"GROUP_%d.SUBEVENT_NAME:pp\"]\n", n, n+1, n, n)
		}
		fsys[fmt.Sprintf("models/tma/cpu%d.toml", i)] = &fstest.MapFile{Data: []byte(m.String())}
	}
	for row := 0; events.Len() < 700<<10; row++ {
		first := row % 100
		fmt.Fprintf(&events, "CPU%d CPU%d CPU%d CPU%d CPU42,GROUP_%d.SUBEVENT_NAME,%#x,,,\"0,1,2,3,4,5,6,7\",\"0,1,2,3\",,2000003,cycles,\n",
			first, (first+7)%100, (first+11)%100, (first+17)%100, row, row)
		if row > 1500 { // the others are not this processor's
			break
		}
	}
	for events.Len() < 700<<10 {
		events.WriteString("CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7 CPU8 CPU9,OTHER.EVENT,0x1,,,\"0,1,2,3,4,5,6,7\",\"0,1,2,3\",,2000003,cycles,\n")
	}
	for n := range 400 {
		fmt.Fprintf(&texts, "[[text]]\nnode = \"Some_Node_%d\"\ntitle = \"Some node\"\nabout = \"\"\"\n%s\"\"\"\ncauses = [\"%s\", \"%s\"]\ntry = [\"%s\"]\n\n",
			n, strings.Repeat("what it means. ", 15), strings.Repeat("a cause ", 6), strings.Repeat("a cause ", 6), strings.Repeat("advice ", 10))
	}
	fsys["cpus.toml"] = &fstest.MapFile{Data: []byte(cpus.String())}
	fsys["events/intel.csv"] = &fstest.MapFile{Data: []byte(events.String())}
	fsys["texts.toml"] = &fstest.MapFile{Data: []byte(texts.String())}
	return fsys
}

// TestLargeCatalogue keeps the benchmark's catalogue loadable.
func TestLargeCatalogue(t *testing.T) {
	cat, err := Load(largeCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	m, err := cat.Model("tma", "c42")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Nodes) != 250 || m.Nodes[0].Title != "Some node" || !slices.Contains(m.CPUs, "cpu42") {
		t.Errorf("got %d nodes, %+v", len(m.Nodes), m.Nodes[0])
	}
}

// BenchmarkCandidates is the search for the processor that a recording may be of. It is
// made once, over all event tables.
func BenchmarkCandidates(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		lib, err := openLibrary(embedded())
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, known, err := (&Catalogue{lib: lib}).Candidates([]string{"cycles", "UOPS_ISSUED.ANY", "cpu/event=0xd1,umask=0x1/", "IDQ_UOPS_NOT_DELIVERED.CORE"}); err != nil || known == 0 {
			b.Fatal(known, err)
		}
	}
}
