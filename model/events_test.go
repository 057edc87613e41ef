package model

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// testCatalogue returns the small catalogue under testdata.
func testCatalogue(t testing.TB) *Catalogue {
	t.Helper()
	cat, err := Load(os.DirFS("testdata/library"))
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func testTable(t testing.TB, cpu string) *EventTable {
	t.Helper()
	cat := testCatalogue(t)
	p, err := cat.CPU(cpu)
	if err != nil {
		t.Fatal(err)
	}
	table, err := cat.Events(p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func resolve1(t testing.TB, table *EventTable, s string) Identity {
	t.Helper()
	ref, err := ParseEvent(s)
	if err != nil {
		t.Fatal(err)
	}
	return table.Resolve(ref)
}

// TestSameEvent: spellings in one list are one event, and none of another list
// is.
func TestSameEvent(t *testing.T) {
	tests := map[string][][]string{
		"skylakex": {
			{"cycles", "cpu-cycles", "CPU_CYCLES", "cpu/cycles/", "cpu/cpu-cycles/", "cpu/event=cpu-cycles,percore/", "CPU_CLK_UNHALTED.THREAD",
				"cpu_clk_unhalted.thread", "cpu_clk_unhalted_thread", "CPU_CLK_UNHALTED:THREAD", "CPU_CLK_UNHALTED.CORE", "r003c", "r3c", "0x3c", "raw 0x3c",
				"r53003c", "r43003c", "cpu/event=0x3c/", "cpu/event=0x3c,umask=0x0/", "cpu/umask=0,event=0x3C,period=1000/", "cpu/r3c/", "cpu/config=0x3c/",
				"cpu/event=0x3c,name=INST_RETIRED.ANY/", "cycles:pp", "cycles:ppp", "cycles:uk", "cpu/event=0x3c/ukh", "cycles:GH", "cycles/name=x/"},
			{"instructions", "INST_RETIRED.ANY", "INST_RETIRED.ANY_P", "rc0", "r5300c0", "cpu/event=0xc0/"},
			{"r100"}, // no event of the general counters, and not that of the fixed one
			{"CPU_CLK_UNHALTED.THREAD_ANY", "cpu_clk_unhalted_thread_any", "cpu/event=0x3c,any=1/", "cpu/event=0x3c,any/", "CPU_CLK_UNHALTED.THREAD:amt1", "r20003c", "r73003c"},
			{"ref-cycles", "CPU_CLK_UNHALTED.REF_TSC", "cpu/event=0x0,umask=0x3/", "r300"},
			{"IDQ_UOPS_NOT_DELIVERED.CORE", "r53019c", "r19c", "cpu/event=0x9c,umask=0x1/", "topdown-fetch-bubbles", "cpu/topdown-fetch-bubbles/"},
			{"IDQ_UOPS_NOT_DELIVERED.CORE:c4", "cpu/event=0x9c,umask=0x1,cmask=4/", "r400019c", "r453019c", "cpu/IDQ_UOPS_NOT_DELIVERED.CORE,cmask=4/"},
			{"IDQ_UOPS_NOT_DELIVERED.CORE:c1:i1:e1", "cpu/event=0x9c,umask=0x1,edge=1,inv=1,cmask=1/", "cpu/edge,inv,cmask=1,r19c/"},
			{"MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", "cpu/event=0xcd,umask=0x1,ldlat=4/pp", "cpu/r1cd,config1=4/", "mem_trans_retired.load_latency_gt_4:P"},
			{"cpu/event=0xcd,umask=0x1,ldlat=8/", "cpu/event=0xcd,umask=0x1,ldlat=0x8/"},
			{"OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM", "cpu/event=0xb7,umask=0x1,offcore_rsp=0x10003c0002/", "cpu/event=0xbb,umask=0x1,offcore_rsp=0x10003c0002/"},
			{"OCR.DEMAND_DATA_RD.ANY_RESPONSE", "cpu/event=0xb7,umask=0x1,config1=0x10001/"},
			{"FRONTEND_RETIRED.DSB_MISS", "cpu/event=0xc6,umask=0x1,frontend=0x11/"},
			{"EXE_ACTIVITY.3_PORTS_UTIL", "cpu/event=0xa6,umask=0x8/"},
			{"EXE_ACTIVITY.3_PORTS_UTIL:u0x80", "cpu/event=0xa6,umask=0x8,umask=0x80/", "cpu/event=0xa6,umask=0x80/"},
			{"cycles:u", "cpu/cycles/u", "r3c:u", "CPU_CLK_UNHALTED.THREAD:USER", "cycles:uh"},
			{"cycles:k", "CPU_CLK_UNHALTED.THREAD:SUP", "cpu/event=0x3c/k"},
			{"cycles:G"},
			{"cycles:R", "CPU_CLK_UNHALTED.THREAD:retire_latency"},
			{"msr/tsc/", "tsc", "TSC", "msr/event=0x0/"},
			{"branches", "branch-instructions", "BRANCHES"},
			{"branch-misses", "branch_misses"},
			{"L1-dcache-load-misses", "l1-dcache-load-misses", "L1-dcache-loads-misses", "l1d-read-miss"},
			{"L1-dcache-loads", "L1-dcache-load", "l1d-read-refs"},
			{"LLC-load-misses"},
			{"task-clock"},
			{"page-faults", "faults"},
			{"duration_time", "tool/duration_time/"},
			{"uncore_cha_0/clockticks/", "uncore_cha_17/CLOCKTICKS/", "uncore_cha/clockticks/"},
			{"UNC_CHA_CLOCKTICKS", "unc_cha_clockticks"},
			{"uncore_cha_0/event=0x35,umask=0x1/", "uncore_cha_1/umask=0x1,event=0x35/"},
			{"uncore_imc_0/event=0x35,umask=0x1/"},
			{"uncore_cha/event=0x35,filter_opc=ALL/", "uncore_cha_3/filter_opc=all,event=0x35/"},
			{"NO.SUCH_EVENT", "no_such_event", "cpu/no.such_event/"},
			{"NO.SUCH_EVENT:c1", "cpu/no_such_event,cmask=0x1/"},
			{"sched:sched_switch"},
		},
		"icelakex": {
			{"instructions", "rc0", "r100", "INST_RETIRED.PREC_DIST", "INST_RETIRED.ANY", "cpu/event=0x0,umask=0x1/"},
			{"cycles", "r3c", "r200", "cpu/event=0x0,umask=0x2/"},
			{"slots", "TOPDOWN.SLOTS", "cpu/slots/", "r400", "cpu/event=0x0,umask=0x4/", "TOPDOWN.SLOTS:perf_metrics"},
			{"topdown-retiring", "cpu/topdown-retiring/", "PERF_METRICS.RETIRING", "r8000"},
			{"EXE_ACTIVITY.3_PORTS_UTIL"},
			{"EXE_ACTIVITY.3_PORTS_UTIL:u0x80", "EXE_ACTIVITY.EXE_BOUND_0_PORTS"},
		},
		"lunarlake:core": {
			{"cycles", "cpu_core/cycles/", "cpu/cycles/", "cpu_core/event=0x3c/"},
			{"cpu_atom/cycles/"},
			{"cpu_atom/event=0x3c/"},
			{"FP_ARITH_OPS_RETIRED.VECTOR", "cpu_core/event=0xc7,umask=0xfc00/", "rfc00000000c7"},
		},
		"lunarlake:atom": {
			{"topdown-retiring", "cpu_atom/topdown-retiring/", "TOPDOWN_RETIRING.ALL", "cpu_atom/event=0xc2,umask=0x2/"},
			{"cpu_core/topdown-retiring/"},
		},
		"amdzen4": {
			{"cycles", "ls_not_halted_cyc", "r76", "cpu/event=0x76/", "LS_NOT_HALTED_CYC"},
			{"de_no_dispatch_per_slot.no_ops_from_frontend", "cpu/event=0x1a0,umask=0x1/", "r1000001a0", "r1005301a0"},
			{"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/", "cpu/event=0x1a0,umask=0x1,cmask=6/", "r1060001a0"},
			{"r1a0"},
		},
		"neoverse-n2": {
			{"cycles", "CPU_CYCLES", "cpu_cycles", "r11", "armv8_pmuv3_0/cpu_cycles/", "armv8_pmuv3_0/event=0x11/", "armv8_pmuv3_1/config=0x11/"},
			{"stall_slot", "armv8_pmuv3_0/stall_slot/", "r3f", "armv8_pmuv3_0/event=0x003f/"},
			{"r53003f"}, // no enable bits here
			{"arm_cmn_0/hnf_cache_miss/"},
			{"cycles:uk"}, // but not the hypervisor
		},
		"power7": {
			{"PM_RUN_INST_CMPL", "r400fa", "raw 0x400fa", "r500fa", "cpu/event=0x400fa/", "cpu/event=0x500fa/"},
			{"PM_RUN_CYC", "r200f4", "r600f4"},
			{"PM_CMPLU_STALL", "r4000a", "cpu/r4000a/"},
			{"r34340101ec"},
			{"kvm-hv/host_heap/"},
		},
		"bare": {
			{"cycles", "cpu-cycles"},
			{"instructions"},
			{"SOME_EVENT", "some_event"},
			{"r12345"},
		},
	}
	for cpu, lists := range tests {
		table := testTable(t, cpu)
		owner := map[Identity]string{}
		for _, list := range lists {
			want := resolve1(t, table, list[0])
			if other, ok := owner[want]; ok {
				t.Errorf("%s: %q and %q are the same, %+v", cpu, list[0], other, want)
			}
			owner[want] = list[0]
			for _, s := range list[1:] {
				if got := resolve1(t, table, s); got != want {
					t.Errorf("%s: %q is %+v, and %q %+v", cpu, s, got, list[0], want)
				}
			}
		}
	}
}

func TestLookup(t *testing.T) {
	table := testTable(t, "skylakex")
	for spelling, want := range map[string]string{
		"cycles:u":                          "CPU_CLK_UNHALTED.THREAD",
		"cpu/event=0x9c,umask=0x1/":         "IDQ_UOPS_NOT_DELIVERED.CORE",
		"r53019c":                           "IDQ_UOPS_NOT_DELIVERED.CORE",
		"INST_RETIRED.ANY_P":                "INST_RETIRED.ANY_P",
		"rc0":                               "INST_RETIRED.ANY",
		"ocr.demand_data_rd.any_response":   "OCR.DEMAND_DATA_RD.ANY_RESPONSE",
		"OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM":  "OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM",
		"UNC_CHA_CLOCKTICKS":                "UNC_CHA_CLOCKTICKS",
		"branch-misses":                     "branch-misses",
		"CPU_CLK_UNHALTED.THREAD:amt1":      "CPU_CLK_UNHALTED.THREAD_ANY",
		"msr/tsc/":                          "TSC",
		"IDQ_UOPS_NOT_DELIVERED.CORE:c4":    "",
		"NO_SUCH_EVENT":                     "",
		"not/an event":                      "",
		"MEM_TRANS_RETIRED.LOAD_LATENCY_GT": "",
	} {
		e, ok := table.Lookup(spelling)
		got := ""
		if ok {
			got = e.Name
		}
		if got != want {
			t.Errorf("Lookup(%q) = %q, want %q", spelling, got, want)
		}
	}
	e, _ := table.Lookup("INST_RETIRED.ANY")
	if e.Config != 0xc0 || e.Counters != "fixed0" {
		t.Errorf("INST_RETIRED.ANY has config %#x, counters %q; the kernel takes 0xc0 for it before Ice Lake", e.Config, e.Counters)
	}
	if e, _ := testTable(t, "icelakex").Lookup("INST_RETIRED.PREC_DIST"); e.Config != 0x100 {
		t.Errorf("INST_RETIRED.PREC_DIST has config %#x, want the pseudo code 0x100", e.Config)
	}
	if id := resolve1(t, table, "cycles:u"); id.Event() != resolve1(t, table, "cycles") {
		t.Errorf("%+v without its restriction is not the event", id)
	}
}

func TestEventTableErrors(t *testing.T) {
	const head = "cpus,name,config,config1,pmu,counters,counters_smt,flags,sample_after,unit,aliases\n"
	tests := []struct{ csv, want string }{
		{"name,config\n", "events/x.csv:1: the first columns are cpus, name and config"},
		{"# c\ncpus,name,config,colour\n", `events/x.csv:2: unknown column "colour"`},
		{head + "X,A,0x1\n", "events/x.csv:2: 3 fields where the header has 11"},
		{head + "Y,A,0x1\nX,A,one,,,,,,,,\n", `events/x.csv:3: config: "one" is not a number`},
		{head + "X,A,0x10000000000000000,,,,,,,,\n", "is not a number of 64 bits"},
		{head + "X,A,0x1,,,,,,many,,\n", `sample_after: "many"`},
		{head + "X,,0x1,,,,,,,,\n", "an event without a name"},
		{head + "X,A,0x1,,,\"0,1,,,,,\n", "a quote without its end"},
		{head + "X,A,0x1,,,\"0,1\"2,,,,,\n", "text after the end of a quoted field"},
		{head + "X,A.{B=1}.C,0x1,,,,,,,,\n", "is not of the form PREFIX"},
		{head + "X,A.{B=1}.{C},0x1,,,,,,,,\n", `"C" is not of the form NAME=BITS`},
		{head + "X,\"A.{" + strings.Repeat("B=1|", 200) + "B=1}.{" + strings.Repeat("C=1|", 200) + "C=1}\",0x1,,,,,,,,\n", "more than 10000 events"},
	}
	for _, tt := range tests {
		cat, err := Load(fstest.MapFS{
			"cpus.toml":    {Data: []byte("[[cpu]]\nname=\"x\"\nlayout=\"intel\"\nthreads=1\nevents=\"X\"\n")},
			"events/x.csv": {Data: []byte(tt.csv)},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cat.Events(cat.CPUs()[0])
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.csv[len(tt.csv)-min(len(tt.csv), 40):], err, tt.want)
		}
	}
}

// TestEventRows: rows of other processors do not matter, whatever is in them,
// and quoted fields are read as encoding/csv does.
func TestEventRows(t *testing.T) {
	cat, err := Load(fstest.MapFS{
		"cpus.toml": {Data: []byte("[[cpu]]\nname=\"x\"\nlayout=\"intel\"\nthreads=1\nevents=\"X\"\n")},
		"events/intel.csv": {Data: []byte("# a comment\r\ncpus,name,config,aliases,counters\r\n" +
			"XX,broken\r\nY X Z,\"A\"\"B\",0x1,a b,\"0,1\"\r\n\r\nX,C,0x2,,\"\"\r\nX,D,,,3\r\n")},
		"events/arm.csv": {Data: []byte("not a table: another layout's")},
	})
	if err != nil {
		t.Fatal(err)
	}
	table, err := cat.Events(cat.CPUs()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `[{A"B 1 0  [a b] false 0,1   0 } {C 2 0  [] false    0 } {D 0 0  [] true 3   0 }]`
	if got := fmt.Sprint(table.Events()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if table.CPU().Name != "x" {
		t.Errorf("CPU() = %v", table.CPU())
	}
}

func TestKernelEvents(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range slices.Concat(plainEvents[:], cacheEvents()) {
		if seen[e.Name] {
			t.Errorf("two events %s", e.Name)
		}
		seen[e.Name] = true
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			if found := kernelName(name); found == nil || found.Name != e.Name {
				t.Errorf("%s, which is %s, is found as %+v", name, e.Name, found)
			}
		}
	}
	// PERF_COUNT_HW_CACHE_LL, _OP_READ, _RESULT_MISS of include/uapi/linux/perf_event.h
	if e := kernelName("LLC-load-misses"); e == nil || e.Config != 2|0<<8|1<<16 {
		t.Errorf("LLC-load-misses: %+v", e)
	}
	for _, name := range []string{"iTLB-load-misses", "dTLB-store-misses", "branch-loads", "node-prefetch-misses", "L1-icache-loads", "LLC-stores"} {
		if kernelName(name) == nil {
			t.Errorf("no event %s", name)
		}
	}
	for _, name := range []string{"cyclesx", "L1-dcache", "L1-dcache-", "L1-dcache-loads-", "LLC-load-missed", "LLC-load-misses-miss", "L2_RQSTS.MISS", "nodeloads"} {
		if e := kernelName(name); e != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func BenchmarkParseEvent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEvent("cpu/event=0x9c,umask=0x1,cmask=4/k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	table := testTable(b, "skylakex")
	ref, err := ParseEvent("cpu/event=0x9c,umask=0x1/")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if table.Resolve(ref).Config != 0x19c {
			b.Fatal("wrong")
		}
	}
}

// TestProduct checks that room is made for as many events as a row stands for.
func TestProduct(t *testing.T) {
	bars := strings.Repeat("|", 200)
	for row, want := range map[string]int{
		"SKX,A.B,0x1":                            1,
		"SKX,OCR.{A=1|B=2|C=4}.{D=8|E=16},0x1b7": 6,
		"SKX,OCR.{A=1},0x1b7":                    1, // an error where it is parsed
		"SKX,{" + bars + "}.{" + bars + "}":      maxProduct,
	} {
		if got := product(row); got != want {
			t.Errorf("product(%.40q) = %d, want %d", row, got, want)
		}
	}
}

func TestFolder(t *testing.T) {
	var f folder
	names := []string{"INST_RETIRED.ANY", "branch-misses", "", strings.Repeat("A.", 8<<10), "cpu-cycles"}
	var got []string
	for _, name := range names {
		got = append(got, f.fold(name))
	}
	for i, name := range names {
		if got[i] != fold(name) {
			t.Errorf("%.40q: got %.40q, want %.40q", name, got[i], fold(name))
		}
	}
}
