package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEvent(t *testing.T) {
	num := func(key string, v uint64) Term { return Term{Key: key, Value: v} }
	raw := func(v uint64) EventRef { return EventRef{HasConfig: true, Config: v} }
	tests := []struct {
		in   string
		want EventRef
	}{
		{"cycles", EventRef{Name: "cycles"}},
		{"  cycles ", EventRef{Name: "cycles"}},
		{"cycles:u", EventRef{Name: "cycles", Privilege: User}},
		{"cycles:uk", EventRef{Name: "cycles", Privilege: User | Kernel}},
		{"cycles:ukhGH", EventRef{Name: "cycles", Privilege: User | Kernel | Hypervisor | Guest | Host}},
		{"instructions:upp", EventRef{Name: "instructions", Privilege: User, Precise: 2}},
		{"cycles:P", EventRef{Name: "cycles", Precise: 3}},
		{"cycles:pppp", EventRef{Name: "cycles", Precise: 3}},
		{"cycles:D", EventRef{Name: "cycles"}},
		{"cycles:u:k", EventRef{Name: "cycles", Privilege: User | Kernel}},
		{"MEM_LOAD_RETIRED.L3_MISS:R", EventRef{Name: "MEM_LOAD_RETIRED.L3_MISS", Latency: true}},
		{"L1-dcache-load-misses:u", EventRef{Name: "L1-dcache-load-misses", Privilege: User}},
		{"sched:sched_switch", EventRef{Name: "sched:sched_switch"}},
		{"sched:sched_switch:u", EventRef{Name: "sched:sched_switch", Privilege: User}},
		{"RS_UOPS_DISPATCHED:CYCLES_NONE", EventRef{Name: "RS_UOPS_DISPATCHED:CYCLES_NONE"}},
		{"mem:0x1000/4:w", EventRef{Name: "mem:0x1000/4:w"}},

		{"r400fa", raw(0x400fa)},
		{"r003c", raw(0x3c)},
		{"r003c:u", EventRef{HasConfig: true, Config: 0x3c, Privilege: User}},
		{"r53019C", raw(0x53019c)},
		{"r8735340401e0", raw(0x8735340401e0)},
		{"raw 0x400fa", raw(0x400fa)},
		{"raw 0x1a8:u", EventRef{HasConfig: true, Config: 0x1a8, Privilege: User}},
		{"RAW 400fa", raw(0x400fa)},
		{"0x400fa", raw(0x400fa)},
		{"cpu/rc0/", EventRef{PMU: "cpu", HasConfig: true, Config: 0xc0}},
		{"cpu/r1a8/", EventRef{PMU: "cpu", HasConfig: true, Config: 0x1a8}},
		{"cpu/config=0x53003c/k", EventRef{PMU: "cpu", HasConfig: true, Config: 0x53003c, Privilege: Kernel}},
		{"rest", EventRef{Name: "rest"}},

		{"cpu/event=0x9c,umask=0x1,name=IDQ_UOPS_NOT_DELIVERED.CORE/", EventRef{PMU: "cpu", Label: "IDQ_UOPS_NOT_DELIVERED.CORE",
			Terms: []Term{num("event", 0x9c), num("umask", 1)}}},
		{"cpu/event=0xA8,umask=0x01,cmask=4/u", EventRef{PMU: "cpu", Privilege: User,
			Terms: []Term{num("event", 0xa8), num("umask", 1), num("cmask", 4)}}},
		{"cpu/event=0x3c/:u", EventRef{PMU: "cpu", Privilege: User, Terms: []Term{num("event", 0x3c)}}},
		{"cpu/event=0xa0,cmask=1,inv,edge/", EventRef{PMU: "cpu",
			Terms: []Term{num("event", 0xa0), num("cmask", 1), num("inv", 1), num("edge", 1)}}},
		{"cpu/cmask=1,edge/", EventRef{PMU: "cpu", Terms: []Term{num("cmask", 1), num("edge", 1)}}},
		{"cpu/event=0x3c,period=100003,percore,metric-id=x/", EventRef{PMU: "cpu", Terms: []Term{num("event", 0x3c)}}},
		{"cpu/event=0x3c,name='A:cmask=1,B'/", EventRef{PMU: "cpu", Label: "A:cmask=1,B", Terms: []Term{num("event", 0x3c)}}},
		{"cpu/event=cpu-cycles,percore/", EventRef{PMU: "cpu", Name: "cpu-cycles"}},
		{"cpu_core/cycles/u", EventRef{PMU: "cpu_core", Name: "cycles", Privilege: User}},
		{"cpu/mem-loads,ldlat=30/P", EventRef{PMU: "cpu", Name: "mem-loads", Precise: 3, Terms: []Term{num("ldlat", 30)}}},
		{"armv8_pmuv3_0/stall_slot/", EventRef{PMU: "armv8_pmuv3_0", Name: "stall_slot"}},
		{"armv8_pmuv3_0/event=0x3f/", EventRef{PMU: "armv8_pmuv3_0", Terms: []Term{num("event", 0x3f)}}},
		{"msr/tsc/", EventRef{PMU: "msr", Name: "tsc"}},
		{"kvm-hv/host_heap/", EventRef{PMU: "kvm-hv", Name: "host_heap"}},
		{"thread_imc/CPM_CS_FROM_L4_MEM_X_DPTEG/", EventRef{PMU: "thread_imc", Name: "CPM_CS_FROM_L4_MEM_X_DPTEG"}},
		{"uncore_imc/read/", EventRef{PMU: "uncore_imc", Name: "read"}},
		{"uncore_cha_0/event=0x35,umask=0xc817fe01,filter_opc=all/", EventRef{PMU: "uncore_cha_0",
			Terms: []Term{num("event", 0x35), num("umask", 0xc817fe01), {Key: "filter_opc", Text: "all"}}}},
		{"cycles/name=cycles_irq/", EventRef{Name: "cycles", Label: "cycles_irq"}},

		{"IDQ.MS_UOPS:c1:e1", EventRef{Name: "IDQ.MS_UOPS", Terms: []Term{num("cmask", 1), num("edge", 1)}}},
		{"IDQ.MITE_UOPS:c8:i1:eq1", EventRef{Name: "IDQ.MITE_UOPS", Terms: []Term{num("cmask", 8), num("inv", 1), num("eq", 1)}}},
		{"EXE_ACTIVITY.3_PORTS_UTIL:u0x80", EventRef{Name: "EXE_ACTIVITY.3_PORTS_UTIL", Terms: []Term{num("umask", 0x80)}}},
		{"CPU_CLK_UNHALTED.REF_XCLK:amt1", EventRef{Name: "CPU_CLK_UNHALTED.REF_XCLK", Terms: []Term{num("any", 1)}}},
		{"CPU_CLK_UNHALTED.THREAD:SUP", EventRef{Name: "CPU_CLK_UNHALTED.THREAD", Privilege: Kernel}},
		{"BR_INST_RETIRED.FAR_BRANCH:USER", EventRef{Name: "BR_INST_RETIRED.FAR_BRANCH", Privilege: User}},
		{"TOPDOWN.SLOTS:perf_metrics", EventRef{Name: "TOPDOWN.SLOTS"}},
		{"CPU_CLK_UNHALTED.DISTRIBUTED:percore", EventRef{Name: "CPU_CLK_UNHALTED.DISTRIBUTED"}},
		{"MEM_INST_RETIRED.STLB_HIT_LOADS:retire_latency", EventRef{Name: "MEM_INST_RETIRED.STLB_HIT_LOADS", Latency: true}},
		{"OCR.DEMAND_RFO:ocr_msr_val=0x103b800002", EventRef{Name: "OCR.DEMAND_RFO", Terms: []Term{num("offcore_rsp", 0x103b800002)}}},
		{"UNC_ARB_TRK_REQUESTS.RD:opc=0x182:c1", EventRef{Name: "UNC_ARB_TRK_REQUESTS.RD", Terms: []Term{num("opc", 0x182), num("cmask", 1)}}},
		{"RS_UOPS_DISPATCHED:C=1:I=1", EventRef{Name: "RS_UOPS_DISPATCHED", Terms: []Term{num("cmask", 1), num("inv", 1)}}},
	}
	for _, tt := range tests {
		got, err := ParseEvent(tt.in)
		if err != nil {
			t.Errorf("ParseEvent(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseEvent(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseEventErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "it is empty"},
		{"  ", "it is empty"},
		{"a\x00b", "not of text"},
		{"a\xffb", "not of text"},
		{strings.Repeat("a", 2000), "longer than 1024 bytes"},
		{"cpu/event=0x3c", "another one after"},
		{"/event=0x3c/", "no PMU"},
		{"cpu//", "no event between"},
		{"cpu/name=x/", "no event between"},
		{"a b/cycles/", "not the name of a PMU"},
		{"cpu/event=/", "no value after"},
		{"cpu/=1/", "a term has no name"},
		{"cpu/event=0x3c,umask=zz/", "umask=zz is not a number"},
		{"cpu/event=0x1_0,event=0x1_0/", "event=0x1_0 is not a number"},
		{"cpu/config=0x10000000000000000/", "not a number of 64 bits"},
		{"cpu/cycles,instructions/", "two names"},
		{"cpu/cycles/z", `unknown modifier "z"`},
		{"r12345678901234567", "more than 64 bits"},
		{"cycles:", "nothing next to a colon"},
		{":u", "nothing next to a colon"},
	}
	for _, tt := range tests {
		ref, err := ParseEvent(tt.in)
		var bad *eventError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseEvent(%q) = %+v, %v, want an error with %q", tt.in, ref, err, tt.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("ParseEvent(%q): the error is not one line: %q", tt.in, err)
		}
	}
}

func TestPrivilegeString(t *testing.T) {
	for want, p := range map[string]Privilege{"": 0, "u": User, "kh": Kernel | Hypervisor, "ukhGH": User | Kernel | Hypervisor | Guest | Host} {
		if got := p.String(); got != want {
			t.Errorf("Privilege(%d).String() = %q, want %q", p, got, want)
		}
	}
}

// FuzzParseEvent makes sure that what is parsed can be resolved on every processor. It
// resolves to the same thing when asked again.
func FuzzParseEvent(f *testing.F) {
	for _, s := range []string{
		"cycles", "cycles:u", "cpu/event=0x9c,umask=0x1,name=FOO/k", "cpu_core/cycles/u", "r400fa", "raw 0x400fa", "cpu/rc0/",
		"cpu/config=0x1/", "uncore_cha_0/event=1/", "msr/tsc/", "EV:c1:i1:e1:u0x80", "EV:SUP", "L1-dcache-load-misses",
		"cpu/cmask=1,edge/", "cycles/name=x/", "a:b:c", "mem:0x1/4:w", "cpu/event=0x3c,name='a,b'/", "r", "0x", "::", "//", "a/b/c/d/",
	} {
		f.Add(s)
	}
	cat := testCatalogue(f)
	var tables []*EventTable
	for _, p := range cat.CPUs() {
		table, err := cat.Events(p)
		if err != nil {
			f.Fatal(err)
		}
		tables = append(tables, table)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseEvent(s)
		if err != nil {
			return
		}
		if ref.Name == "" && !ref.HasConfig && len(ref.Terms) == 0 {
			t.Fatalf("ParseEvent(%q) = %+v: no event", s, ref)
		}
		for _, table := range tables {
			id := table.Resolve(ref)
			if again := table.Resolve(ref); again != id {
				t.Fatalf("%q resolves to %+v and %+v", s, id, again)
			}
			e, ok := table.Find(ref)
			if !ok {
				continue
			}
			back := table.Resolve(EventRef{PMU: pmuOf(e), Name: e.Name})
			if back != (Identity{PMU: id.PMU, Config: id.Config, Config1: id.Config1, Name: id.Name}) {
				t.Fatalf("%q is the event %s, but resolves to %+v and not %+v", s, e.Name, id, back)
			}
		}
	})
}

func pmuOf(e *Event) string {
	if e.PMU == pmuHardware || e.PMU == pmuCache || e.PMU == pmuSoftware || e.PMU == pmuTool {
		return "" // written without one
	}
	return e.PMU
}
