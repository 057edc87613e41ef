package perfevent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// tree returns the files of another machine.
func tree(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	a, err := txtar.ParseFile("testdata/sysfs/" + name + ".txtar")
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CYCLESTACK_TEST_GUEST") != "" {
		t.Skip("only the program is in the guest")
	}
	if err != nil {
		t.Fatal(err)
	}
	root := fstest.MapFS{}
	for _, f := range a.Files {
		root[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o444}
	}
	return root
}

func system(t testing.TB, root fs.FS) *perfevent.System {
	t.Helper()
	sys, err := perfevent.ReadSystem(root)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// describe prints an event as the tests have it.
func describe(e perfevent.Event) string {
	a := e.Attr
	text := fmt.Sprintf("type %d config %#x", a.Type, a.Config)
	for i, c := range []uint64{a.Config1, a.Config2, a.Config3} {
		if c != 0 {
			text += fmt.Sprintf(" config%d %#x", i+1, c)
		}
	}
	for _, f := range []struct {
		set  bool
		name string
	}{{a.ExcludeUser, "-user"}, {a.ExcludeKernel, "-kernel"}, {a.ExcludeHV, "-hv"}, {a.ExcludeGuest, "-guest"}, {a.ExcludeHost, "-host"}, {a.Pinned, "pinned"}} {
		if f.set {
			text += " " + f.name
		}
	}
	if a.Precise > 0 {
		text += fmt.Sprintf(" precise %d", a.Precise)
	}
	if e.PMU != nil {
		text += " of " + e.PMU.Name
	}
	for _, p := range e.Alike {
		text += "+" + p.Name
	}
	if e.Scale != 0 {
		text += fmt.Sprintf(" × %g", e.Scale)
	}
	if e.Unit != "" {
		text += " " + e.Unit
	}
	return text
}

func TestResolve(t *testing.T) {
	for machine, list := range map[string][][2]string{
		"skylakex": {
			{"cpu/event=0x9c,umask=0x1/", "type 4 config 0x19c of cpu"},
			{"cpu/event=0x9c,umask=0x1,cmask=4,inv,edge=1,name=NOT_DELIVERED/u", "type 4 config 0x484019c -kernel -hv of cpu"},
			{"cpu/event=0xb7,umask=1,offcore_rsp=0x3fbfc00001/", "type 4 config 0x1b7 config1 0x3fbfc00001 of cpu"},
			{"cpu/mem-loads,ldlat=30/upp", "type 4 config 0x1cd config1 0x1e -kernel -hv precise 2 of cpu"},
			{"cpu/ldlat=30,mem-loads/", "type 4 config 0x1cd config1 0x1e of cpu"},
			{"cpu/cache-misses/", "type 4 config 0x412e of cpu"},
			{"cpu/topdown-total-slots/", "type 4 config 0x3c of cpu × 4"},
			{"cpu/config=0x1c0,config1=7/", "type 4 config 0x1c0 config1 0x7 of cpu"},
			{"cpu/r1c0/k", "type 4 config 0x1c0 -user -hv of cpu"},
			{"cpu/cycles/", "type 0 config 0x0 of cpu"},
			{"cpu/LLC-load-misses/", "type 3 config 0x10002 of cpu"},
			{"topdown-total-slots", "type 4 config 0x3c of cpu × 4"},
			{"r1c0", "type 4 config 0x1c0 of cpu"},
			{"r1C0:k", "type 4 config 0x1c0 -user -hv of cpu"},
			{"cycles", "type 0 config 0x0"},
			{"cpu-cycles:uk", "type 0 config 0x0 -hv"},
			{"cycles:G", "type 0 config 0x0 -host"},
			{"instructions:HuD", "type 0 config 0x1 -kernel -hv -guest pinned"},
			{"cycles/name=x/u", "type 0 config 0x0 -kernel -hv"},
			{"L1-dcache-load-misses", "type 3 config 0x10000"},
			{"l1d-stores", "type 3 config 0x100"},
			{"dTLB-prefetch-misses", "type 3 config 0x10203"},
			{"branch-loads", "type 3 config 0x5"},
			{"node-store-misses:u", "type 3 config 0x10106 -kernel -hv"},
			{"branches", "type 0 config 0x4"},
			{"task-clock", "type 1 config 0x1 ns"},
			{"context-switches:u", "type 1 config 0x3 -kernel -hv"},
			{"cgroup-switches", "type 1 config 0xb"},
			{"msr/tsc/", "type 15 config 0x0 of msr"},
			{"msr/event=0x4/", "type 15 config 0x4 of msr"},
			{"power/energy-ram/", "type 16 config 0x3 of power × 1.52587890625e-05 Joules"},
			{"energy-pkg", "type 16 config 0x2 of power × 2.3283064365386963e-10 Joules"},
			{"uncore_imc_1/cas_count_read/", "type 21 config 0x304 of uncore_imc_1 × 6.103515625e-05 MiB"},
			{"uncore_imc/cas_count_read/", "type 20 config 0x304 of uncore_imc_0+uncore_imc_1+uncore_imc_10 × 6.103515625e-05 MiB"},
			{"imc/event=0x4,umask=0xc/", "type 20 config 0xc04 of uncore_imc_0+uncore_imc_1+uncore_imc_10"},
			{"cha/event=0x35,umask=0x21,filter_opc_0=0x202/", "type 40 config 0x2135 config1 0x4040000000000 of uncore_cha_0"},
			{"sched:sched_switch", "type 2 config 0x13d"},
			{"sched:sched_switch:u", "type 2 config 0x13d -kernel -hv"},
			{"duration_time", "type 0 config 0x0 ns"},
		},
		"alderlake": {
			{"cpu/event=0xc0/", "type 4 config 0xc0 of cpu_core"},
			{"cpu_atom/topdown-retiring/", "type 10 config 0xc2 of cpu_atom"},
			{"topdown-retiring", "type 4 config 0x8000 of cpu_core"},
			{"topdown-fe-bound", "type 10 config 0x71 of cpu_atom"},
			{"cpu_core/slots/", "type 4 config 0x400 of cpu_core"},
			{"cycles", "type 0 config 0x400000000 of cpu_core"},
			{"cpu_atom/cycles/", "type 0 config 0xa00000000 of cpu_atom"},
			{"cpu_atom/cpu-cycles/u", "type 10 config 0x3c -kernel -hv of cpu_atom"},
			{"LLC-loads", "type 3 config 0x400000002 of cpu_core"},
			{"cpu_atom/LLC-loads/", "type 3 config 0xa00000002 of cpu_atom"},
			{"r3c", "type 4 config 0x3c of cpu_core"},
			{"cbox/event=0x22/", "type 21 config 0x22 of uncore_cbox_0+uncore_cbox_1"},
		},
		"neoverse": {
			{"cpu/event=0x8/", "type 8 config 0x8 of armv8_pmuv3_0"},
			{"armv8_pmuv3/event=0x11/", "type 8 config 0x11 of armv8_pmuv3_0"},
			{"armv8_pmuv3_1/stall_backend/u", "type 8 config 0x24 -kernel -hv of armv8_pmuv3_0"},
			{"armv8_pmuv3_0/event=0x8,long=1/", "type 8 config 0x8 config1 0x1 of armv8_pmuv3_0"},
			{"inst_retired", "type 8 config 0x8 of armv8_pmuv3_0"},
			{"r23", "type 8 config 0x23 of armv8_pmuv3_0"},
			{"arm_dsu_0/cycles/", "type 9 config 0x11 of arm_dsu_0"},
			{"dsu/cycles/", ""},
		},
		"power10": {
			{"r400fa", "type 4 config 0x400fa of cpu"},
			{"cpu/event=0x34340401e0/", "type 4 config 0x34340401e0 of cpu"},
			{"cpu/pmcxsel=0xf0,pmc=4,unit=1/", "type 4 config 0x410f0 of cpu"},
			{"cpu/mem-loads/", "type 4 config 0x34340401e0 of cpu"},
			{"hv_24x7/PM_PB_CYC,chip=2/", "type 7 config 0x800020001 of hv_24x7"},
		},
	} {
		sys := system(t, tree(t, machine))
		for _, tt := range list {
			e, err := sys.Resolve(tt[0])
			if tt[1] == "" {
				if err == nil {
					t.Errorf("%s: %s is %s", machine, tt[0], describe(e))
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", machine, err)
				continue
			}
			if got := describe(e); got != tt[1] {
				t.Errorf("%s: %s\n got %s\nwant %s", machine, tt[0], got, tt[1])
			}
		}
	}
}

func TestResolveNames(t *testing.T) {
	sys := system(t, tree(t, "skylakex"))
	for spelling, want := range map[string]string{
		" cycles:u ": "cycles:u", "cpu/event=1/": "cpu/event=1/", "cpu/event=1,name=A.B:c1/": "A.B:c1",
		"cpu/name='a,b/c',event=1/u": "a,b/c", "cycles/name=x/": "x",
	} {
		if e, err := sys.Resolve(spelling); err != nil || e.Name != want {
			t.Errorf("%q: %q, %v", spelling, e.Name, err)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	sys := system(t, tree(t, "skylakex"))
	for spelling, want := range map[string]string{
		"":                                       "it is empty",
		"nonsense":                               "no event of this name",
		"nonsense:u":                             `no event "nonsense"`,
		"cycles:ux":                              "'x' is not a modifier",
		"cpu/event=1":                            "do not end in a slash",
		"cpu/event=1/z":                          "'z' is not a modifier",
		"nocpu/event=1/":                         `no PMU "nocpu" (it has breakpoint, cpu, msr, power,`,
		"cpu/evnt=1/":                            `PMU cpu has no term or event "evnt"`,
		"cpu/event=0x100/":                       `term "event": 0x100 has more than 8 bits`,
		"cpu/event=x/":                           `"x" is not a number of 64 bits`,
		"cpu/event=0x10000000000000000/":         "is not a number of 64 bits",
		"cpu/config1=-1/":                        "is not a number of 64 bits",
		"cpu/,event=1/":                          "a term without a name",
		"cpu/cycles,umask=1/":                    `the generic event takes no term "umask"`,
		"cycles/umask=1/":                        `a generic event takes no term "umask"`,
		"r12345678901234567":                     "no event of this name",
		"no:such":                                "no tracepoint of this name",
		"..:..":                                  "no event",
		"sched:..":                               "no event",
		"cpu/" + strings.Repeat("x", 2000) + "/": "longer than 1024 bytes",
	} {
		e, err := sys.Resolve(spelling)
		if ee := (*perfevent.EventError)(nil); !errors.As(err, &ee) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", spelling, describe(e), err, want)
		}
		if err != nil && (len(err.Error()) > 300 || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v", spelling, err)
		}
	}
	if _, err := system(t, fstest.MapFS{}).Resolve("sched:sched_switch"); err == nil || !strings.Contains(err.Error(), "is not mounted: mount -t tracefs") {
		t.Errorf("a tracepoint without tracefs: %v", err)
	}
	power := system(t, tree(t, "power10"))
	for spelling, want := range map[string]string{
		"hv_24x7/PM_PB_CYC/": `"PM_PB_CYC" needs a value for "chip"`,
		"hv_24x7/PM_NO_END/": `sysfs' event "PM_NO_END": term "domain"`,
	} {
		if _, err := power.Resolve(spelling); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spelling, err, want)
		}
	}
}

// topology returns what the processors of a system share.
func topology(t *testing.T, sys *perfevent.System) []perfevent.CPU {
	t.Helper()
	all, err := sys.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReadSystem(t *testing.T) {
	sys := system(t, tree(t, "skylakex"))
	if want := []perfevent.CPU{{0, 0, 0, 0, 0}, {1, 0, 0, 1, 1}, {2, 0, 0, 0, 0}, {3, 0, 0, 1, 1}}; !slices.Equal(topology(t, sys), want) {
		t.Errorf("processors %v", topology(t, sys))
	}
	var names []string
	for _, p := range sys.PMUs {
		names = append(names, p.Name)
	}
	if want := "breakpoint cpu msr power software tracepoint uncore_cha_0 uncore_imc_0 uncore_imc_1 uncore_imc_10"; strings.Join(names, " ") != want {
		t.Errorf("PMUs %v", names)
	}
	core := sys.Core()
	if len(core) != 1 || core[0].Uncore || core[0].CPUs != nil || core[0].Caps["pmu_name"] != "skylake" || core[0].Formats["umask"] != "config:8-15" {
		t.Errorf("core %+v", core)
	}
	if p := sys.PMU("uncore_imc_0"); p == nil || !p.Uncore || !slices.Equal(p.CPUs, []int{0, 1}) || p.Aliases["cas_count_read"] == "" || p.Aliases["cas_count_read.unit"] != "" {
		t.Errorf("%+v", p)
	}
	if sys.PMU("nothing") != nil {
		t.Error("a PMU that there is not")
	}
	hybrid := system(t, tree(t, "alderlake"))
	if c := hybrid.Core(); len(c) != 2 || c[0].Name != "cpu_core" || c[1].Name != "cpu_atom" || !slices.Equal(c[1].CPUs, []int{4, 5}) || c[1].Uncore {
		t.Errorf("cores %+v", c)
	}
	if c := topology(t, hybrid)[4]; c.Core != 8 || c.Die != counts.Unknown || c.Node != counts.Unknown {
		t.Errorf("%+v", c)
	}
	empty := system(t, fstest.MapFS{})
	if len(empty.PMUs) != 0 || len(empty.Core()) != 0 || len(empty.CPUs) != 0 {
		t.Errorf("%+v", empty)
	}
	if _, err := empty.Resolve("cpu/event=1/"); err == nil || !strings.Contains(err.Error(), "(it has none)") {
		t.Error(err)
	}
}

// What sysfs cannot have is an error that names the file, and costs nothing.
func TestHostileSysfs(t *testing.T) {
	for file, tt := range map[string]struct{ text, want string }{
		"sys/devices/system/cpu/online":                         {"0-1000000", "processor 1000000: there cannot be more"},
		"sys/devices/system/node/node0/cpulist":                 {"3-1", "runs backwards"},
		"sys/bus/event_source/devices/cpu/type":                 {"99999999999", "not a number of 32 bits"},
		"sys/bus/event_source/devices/power/cpumask":            {strings.Repeat("0-65535,", 8000), "too long"},
		"sys/bus/event_source/devices/uncore_imc_0/cpumask":     {strings.Repeat("1,", 1<<20), "longer than 65536 bytes"},
		"sys/bus/event_source/devices/uncore_imc_1/cpumask":     {"all", "is not a number of a processor"},
		"sys/bus/event_source/devices/uncore_imc_10/cpumask":    {"18446744073709551615", "there cannot be more"},
		"sys/devices/system/node/node1/cpulist":                 {"-1", "is not a number of a processor"},
		"sys/bus/event_source/devices/uncore_cha_0/type/nested": {"", "sys/bus/event_source/devices/uncore_cha_0/type"},
	} {
		root := tree(t, "skylakex")
		if strings.HasSuffix(file, "/nested") {
			delete(root, strings.TrimSuffix(file, "/nested"))
		}
		root[file] = &fstest.MapFile{Data: []byte(tt.text)}
		sys, err := perfevent.ReadSystem(root)
		if err == nil {
			_, err = sys.Topology()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "/"+strings.TrimSuffix(file, "/nested")) {
			t.Errorf("%s: %v", file, err)
		}
	}
	for file, tt := range map[string]struct{ text, event, want string }{
		"format/umask":                     {"config:8-70", "umask=1", "is not a range of bits"},
		"format/event":                     {"config9:0-7", "event=1", `no word "config9"`},
		"format/edge":                      {"config", "edge", "has no colon"},
		"format/inv":                       {"config:5,5", "inv", "a bit twice"},
		"format/pc":                        {"config:9-3", "pc", "is not a range of bits"},
		"format/any":                       {"config:", "any", "is not a bit"},
		"format/cmask":                     {strings.Repeat("config:1,", 20000), "cmask=1", `no term or event "cmask"`},
		"events/cpu-cycles":                {"event=0x100000000000000000", "cpu-cycles", "is not a number of 64 bits"},
		"events/instructions":              {"no_such_term=1", "instructions", "no term or event"},
		"events/topdown-total-slots.scale": {"NaN", "topdown-total-slots", `its scale is "NaN"`},
		"events/topdown-total-slots.unit":  {strings.Repeat("x", 1000), "topdown-total-slots", "its unit is too long"},
		"events/mem-loads":                 {",", "mem-loads", "a term without a name"},
	} {
		root := tree(t, "skylakex")
		root["sys/bus/event_source/devices/cpu/"+file] = &fstest.MapFile{Data: []byte(tt.text)}
		_, err := system(t, root).Resolve("cpu/" + tt.event + "/")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", file, err, tt.want)
		}
	}
	root := tree(t, "skylakex")
	for i := range 20000 {
		root[fmt.Sprintf("sys/bus/event_source/devices/p%d/type", i)] = &fstest.MapFile{Data: []byte("7")}
	}
	if _, err := perfevent.ReadSystem(root); err == nil || !strings.Contains(err.Error(), "more than 16384 entries") {
		t.Error(err)
	}
}

// Every event of this machine's sysfs can be resolved.
func TestResolveHere(t *testing.T) {
	sys := system(t, os.DirFS("/"))
	if len(sys.PMUs) == 0 {
		t.Skip("no sysfs of PMUs")
	}
	for _, p := range sys.PMUs {
		p = sys.PMU(p.Name) // which reads its events
		for name, terms := range p.Aliases {
			if _, err := sys.Resolve(p.Name + "/" + name + "/"); err != nil && !strings.Contains(terms, "?") {
				t.Error(err)
			}
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"cycles:u", "cpu/event=0x9c,umask=0x1,name=x/ukp", "r400fa", "cpu/mem-loads,ldlat=30/", "imc/cas_count_read/", "sched:sched_switch",
		"cycles/name='a,b'/", "L1-dcache-load-misses", "cpu/config=1/", "cpu//", "/", "cpu/event/"} {
		f.Add(s)
	}
	sys := system(f, tree(f, "skylakex"))
	f.Fuzz(func(t *testing.T, s string) {
		e, err := sys.Resolve(s)
		if err != nil {
			if ee := (*perfevent.EventError)(nil); !errors.As(err, &ee) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if e.Name == "" && !strings.Contains(s, "name=") {
			t.Errorf("%q has no name", s)
		}
	})
}

// FuzzFormat puts a value into the bits of any format and finds it there.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"config:0-7", "config:0-7,32-35", "config1:0-63", "config2:21", "config:8-15,40-47", "config:63,0", "config4:1", "config:1-0"} {
		f.Add(s, uint64(0xabc))
	}
	f.Fuzz(func(t *testing.T, format string, value uint64) {
		root := fstest.MapFS{
			"sys/bus/event_source/devices/p/type":     {Data: []byte("9")},
			"sys/bus/event_source/devices/p/format/x": {Data: []byte(format)},
		}
		sys, err := perfevent.ReadSystem(root)
		if err != nil {
			t.Fatal(err)
		}
		e, err := sys.Resolve(fmt.Sprintf("p/x=%d/", value))
		if err != nil {
			return
		}
		set := 0
		for _, w := range []uint64{e.Attr.Config, e.Attr.Config1, e.Attr.Config2, e.Attr.Config3} {
			set += ones(w)
		}
		if set != ones(value) {
			t.Errorf("%q: %#x became %s", format, value, describe(e))
		}
	})
}

func ones(w uint64) int {
	n := 0
	for ; w != 0; w &= w - 1 {
		n++
	}
	return n
}
