package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/model"
)

// committed is where the tables are.
const committed = "../../../model/data/events"

// TestGenerate makes the tables from the vendors' files: they are the ones that
// are committed.
func TestGenerate(t *testing.T) {
	files, err := generate(testshared.Dir(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(committed, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Data, want) {
			t.Errorf("%s is not what the generator makes of the vendors' files (go generate ./internal/gen/events)", f.Name)
		}
	}
}

// TestSize keeps the tables within their part of the 1.5 MB that the catalogue
// may add to the program.
func TestSize(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(committed, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum == 0 || sum > 750_000 {
		t.Errorf("the event tables have %d bytes, want at most 750000", sum)
	}
}

// TestProductReadsTables looks every name and alias of the generated tables up
// in the product's own tables: it must find an event of just that encoding.
func TestProductReadsTables(t *testing.T) {
	catalogue, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range []string{"intel.csv", "amd.csv", "arm.csv", "power.csv", "riscv.csv"} {
		for key, events := range readCommitted(t, name) {
			var table *model.EventTable
			for _, p := range catalogue.CPUs() {
				if p.Events == key {
					if table, err = catalogue.Events(p); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if table == nil {
				t.Logf("%s: no processor has the key %s", name, key)
				continue
			}
			for _, e := range events {
				for _, spelling := range append([]string{e.name}, e.aliases...) {
					checked++
					got, ok := table.Lookup(spelling)
					switch {
					case !ok:
						t.Errorf("%s: %s is not found", key, spelling)
					case got.Config != e.config || got.Config1 != e.config1:
						t.Errorf("%s: %s is found as %s, %#x/%#x, want %#x/%#x", key, spelling, got.Name, got.Config, got.Config1, e.config, e.config1)
					}
				}
			}
		}
	}
	if checked < 20000 {
		t.Errorf("only %d names were looked up", checked)
	}
}

// readCommitted reads a table as the format's description says, by key.
func readCommitted(t *testing.T, name string) map[string][]*event {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(committed, name))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !reflect.DeepEqual(records[0], columns) {
		t.Fatalf("%s: header %q", name, records[0])
	}
	events := map[string][]*event{}
	for _, rec := range records[1:] {
		e := &event{name: rec[1], aliases: strings.Fields(rec[10])}
		if e.config, err = linuxNumber(rec[2]); err == nil {
			e.config1, err = linuxNumber(rec[3])
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", name, rec[1], err)
		}
		r := row{event: e, matrix: parseMatrix(t, rec[1])}
		for _, cpu := range strings.Fields(rec[0]) {
			events[cpu] = append(events[cpu], r.expand()...)
		}
	}
	return events
}

// parseMatrix is the inverse of matrix.String; a plain name gives no matrix.
func parseMatrix(t *testing.T, name string) matrix {
	t.Helper()
	prefix, rest, ok := strings.Cut(name, ".{")
	if !ok {
		return matrix{}
	}
	requests, responses, ok := strings.Cut(strings.TrimSuffix(rest, "}"), "}.{")
	if !ok {
		t.Fatalf("%q is no matrix", name)
	}
	list := func(s string) []factor {
		var fs []factor
		for _, part := range strings.Split(s, "|") {
			name, bits, _ := strings.Cut(part, "=")
			v, err := linuxNumber(bits)
			if err != nil || bits == "" {
				t.Fatalf("%q: factor %q", name, part)
			}
			fs = append(fs, factor{name, v})
		}
		return fs
	}
	return matrix{prefix: prefix, requests: list(requests), responses: list(responses)}
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		name   string
		config uint64
		want   string
	}{
		{"CPU_CLK_UNHALTED.THREAD", 0x3c, "cycles"},
		{"CPU_CLK_UNHALTED.REF_TSC", 0x300, "cycles"},
		{"CPU_CLK_UNHALTED.REF_XCLK", 0x13c, "bus_cycles"},
		{"CPU_CLK_UNHALTED.PAUSE_INST", 0x10440ec, ""}, // edges: how often
		{"INST_RETIRED.ANY", 0xc0, "instructions"},
		{"INST_RETIRED.TOTAL_CYCLES_PS", 0xa8001c0, "cycles"}, // a counter mask
		{"INST_RETIRED.REP_ITERATION", 0x8c0, ""},
		{"FP_ASSIST.ANY", 0x1001eca, ""}, // a counter mask, but how often
		{"UOPS_ISSUED.ANY", 0x10e, "uops"},
		{"UOPS_ISSUED.STALL_CYCLES", 0x180010e, "cycles"},
		{"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, "slots"},
		{"UOPS_RETIRED.MS_SWITCHES", 0x14404c2, ""},
		{"UOPS_DISPATCHED_PORT.PORT_0", 0x1a1, ""},
		{"IDQ.MS_UOPS", 0x3079, "uops"},
		{"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, "slots"},
		{"IDQ_UOPS_NOT_DELIVERED.CYCLES_FE_WAS_OK", 0x180019c, "cycles"},
		{"TOPDOWN.SLOTS", 0x400, "slots"},
		{"TOPDOWN_BE_BOUND.ALL", 0x74, "slots"},
		{"PERF_METRICS.RETIRING", 0x8000, "slots"},
		{"RESOURCE_STALLS.ANY", 0x1a2, "cycles"},
		{"ILD_STALL.LCP", 0x187, "cycles"},
		{"PARTIAL_RAT_STALLS.MUL_SINGLE_UOP", 0x8059, "uops"},
		{"DTLB_LOAD_MISSES.WALK_DURATION", 0x1008, "cycles"},
		{"DTLB_LOAD_MISSES.WALK_COMPLETED", 0xe08, ""},
		{"L1D_PEND_MISS.PENDING", 0x148, "cycles"},
		{"OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", 0x160, "cycles"},
		{"OFFCORE_REQUESTS.DEMAND_DATA_RD", 0x1b0, ""},
		{"ICACHE_DATA.STALL_PERIODS", 0x1040480, ""},
		{"MEM_LOAD_RETIRED.L3_MISS", 0x20d1, ""},
	} {
		if got := intelUnit(&event{name: test.name, config: test.config}, unitRules(t, "intel")); got != test.want {
			t.Errorf("%s: unit %q, want %q", test.name, got, test.want)
		}
	}
	for _, test := range []struct {
		vendor, name, want string
	}{
		{"amd", "ls_not_halted_cyc", "cycles"},
		{"amd", "ex_ret_instr", "instructions"},
		{"amd", "ex_ret_ops", "uops"},
		{"amd", "de_no_dispatch_per_slot.no_ops_from_frontend", "slots"},
		{"amd", "ex_ret_brn_misp", ""},
		{"arm", "CPU_CYCLES", "cycles"},
		{"arm", "STALL_SLOT_FRONTEND", "slots"},
		{"arm", "STALL_BACKEND_MEM", "cycles"},
		{"arm", "INST_RETIRED", "instructions"},
		{"arm", "OP_SPEC", "uops"},
		{"arm", "L1D_CACHE_REFILL", ""},
		{"power", "PM_CMPLU_STALL_DCACHE_MISS", "cycles"},
		{"power", "PM_RUN_CYC", "cycles"},
		{"power", "PM_RUN_INST_CMPL", "instructions"},
		{"power", "PM_DISP_STALL_BR_MPRED", "cycles"},
		{"power", "PM_DATA_FROM_L3", ""},
	} {
		if got := unitOf(unitRules(t, test.vendor), test.name); got != test.want {
			t.Errorf("%s: unit %q, want %q", test.name, got, test.want)
		}
	}
}

func unitRules(t *testing.T, vendor string) []unitRule {
	t.Helper()
	rules, err := readUnits(vendor)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// offcore makes an offcore event.
func offcore(name string, config1 uint64) *event {
	return &event{name: name, config: 0x1b7, config1: config1, kind: "offcore_rsp"}
}

func TestFoldOffcore(t *testing.T) {
	var events []*event
	for r, request := range []string{"DEMAND_DATA_RD", "DEMAND_RFO", "OTHER"} {
		for s, response := range []string{"ANY_RESPONSE", "L3_HIT.SNOOP_HITM", "L3_HIT.SNOOP_NONE", "L3_MISS.SNOOP_NONE", "L4"} {
			events = append(events, offcore("OCR."+request+"."+response, 1<<r|1<<(16+s)))
		}
	}
	events = append(events, offcore("OCR.PREFETCHES.ANY_RESPONSE", 0x10010)) // has not the other responses
	table := &table{processors: []*processor{{key: "X", events: events}}}
	rows := table.rows()
	if len(rows) != 2 {
		t.Fatalf("%d rows, want one for the product and one for the event beside it", len(rows))
	}
	const want = "OCR.{DEMAND_DATA_RD=0x1|DEMAND_RFO=0x2|OTHER=0x4}." +
		"{ANY_RESPONSE=0x10000|L3_HIT.SNOOP_HITM=0x20000|L3_HIT.SNOOP_NONE=0x40000|L3_MISS.SNOOP_NONE=0x80000|L4=0x100000}"
	if got := rows[1].spelling(); got != want {
		t.Errorf("product\n%s, want\n%s", got, want)
	}
	if err := table.verify(rows); err != nil {
		t.Error(err)
	}

	// A value that is not the OR of its parts keeps everything as it is.
	events[0].config1 |= 1 << 40
	events[1].config1 |= 1 << 41
	if rows := table.rows(); len(rows) != len(events) {
		t.Errorf("%d rows, want the %d events one by one", len(rows), len(events))
	}
}

func TestVerify(t *testing.T) {
	table := &table{processors: []*processor{{key: "X", events: []*event{{name: "A", config: 1}, {name: "B", config: 2}}}}}
	rows := table.rows()
	if err := table.verify(rows); err != nil {
		t.Fatal(err)
	}
	for want, broken := range map[string][]row{
		"X B: lost":                rows[:1],
		`X A: the rows give "0x3,`: {{cpus: []string{"X"}, event: &event{name: "A", config: 3}}, rows[1]},
	} {
		if err := table.verify(broken); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s…", err, want)
		}
	}
}

func TestParsePerfmon(t *testing.T) {
	const base = `"SampleAfterValue":"2000003","MSRIndex":"0x00","MSRValue":"0x00","CounterMask":"0","Invert":"0","EdgeDetect":"0"`
	const offcoreBase = `"SampleAfterValue":"100003","MSRValue":"0x10001","CounterMask":"0"`
	for _, test := range []struct {
		fields     string
		firstFixed int
		want       event // without name
		err        string
	}{
		{`"EventCode":"0x00","UMask":"0x01","Counter":"Fixed counter 0",` + base, 0,
			event{config: 0x100, counters: "fixed0", sampleAfter: 2000003}, ""},
		{`"EventCode":"0xA","UMask":"0x0","Counter":"Fixed counter 3",` + base, 1,
			event{config: 0xa, counters: "fixed2", sampleAfter: 2000003}, ""},
		{`"EventCode":"0xA","UMask":"0x0","Counter":"Fixed counter 0",` + base, 1, event{}, `Counter is "Fixed counter 0"`},
		{`"EventCode":"0x79","UMask":"0x30","CounterMask":"1","EdgeDetect":"1","Counter":"0,1,2,3","CounterHTOff":"0,1,2,3,4,5,6,7","SampleAfterValue":"7"`, 0,
			event{config: 0x1043079, counters: "0,1,2,3,4,5,6,7", smt: "0,1,2,3", sampleAfter: 7}, ""},
		{`"EventCode":"0xc5","UMask":"0x00","UMaskExt":"0X80","Counter":"0,1","Errata":"BDM69, BDM98","Precise":"1","TakenAlone":"1","AnyThread":"1","SampleAfterValue":"7"`, 0,
			event{config: 0x8000002000c5, counters: "0,1", flags: []string{"pebs", "alone", "errata:BDM69", "errata:BDM98"}, sampleAfter: 7}, ""},
		{`"EventCode":"0xB7, 0xBB","UMask":"0x01","MSRIndex":"0x1a6,0x1a7","Counter":"0,1,2,3",` + offcoreBase, 0,
			event{config: 0x1b7, config1: 0x10001, kind: "offcore_rsp", counters: "0,1,2,3", sampleAfter: 100003}, ""},
		{`"EventCode":"0XB7","UMask":"0x01,0x02","MSRIndex":"0x1a7","Counter":"0,1",` + offcoreBase, 0,
			event{config: 0x2b7, config1: 0x10001, kind: "offcore_rsp", counters: "0,1", sampleAfter: 100003}, ""},
		{`"EventCode":"0xcd","UMask":"0x01","MSRIndex":"0x3F6","MSRValue":"0x80","Counter":"3","SampleAfterValue":"1009","Errata":"null"`, 0,
			event{config: 0x1cd, config1: 0x80, kind: "ldlat", counters: "3", sampleAfter: 1009}, ""},
		{`"EventCode":"0xcd","UMask":"0x01","Counter":"0","Surprise":"1",` + base, 0, event{}, "unknown key Surprise"},
		{`"EventCode":"0xcd","UMask":"0x01","Counter":"0","Equal":"1",` + base, 0, event{}, "Equal is set"},
		{`"EventCode":"0xcd","UMask":"0x01","MSRIndex":"0x123","MSRValue":"0x1","Counter":"0","SampleAfterValue":"1"`, 0, event{}, `unknown MSRIndex "0x123"`},
		{`"EventCode":"0xcd","UMask":"0x01","MSRIndex":"0","MSRValue":"0x1","Counter":"0","SampleAfterValue":"1"`, 0, event{}, "MSRValue 0x1 without MSRIndex"},
		{`"EventCode":"0xcd","UMask":"x","Counter":"0",` + base, 0, event{}, `UMask is "x", not a number`},
		{`"EventCode":"0xa0,0xa1","UMask":"0x01","Counter":"0",` + base, 0, event{}, "for a single register"},
		{`"EventCode":"0x1a0","UMask":"0x01","Counter":"0",` + base, 0, event{}, "EventCode is 0x1a0, more than eight bits"},
		{`"UMask":"0x01","Counter":"0",` + base, 0, event{}, "EventCode is missing"},
	} {
		p, _, err := parsePerfmon([]byte(`{"Header":{"Version":"1"},"Events":[{"EventName":"E",`+test.fields+`}]}`), test.firstFixed)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %s", test.fields, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.fields, err)
		default:
			test.want.name = "E"
			if got := *p.events[0]; !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", test.fields, got, test.want)
			}
		}
	}
}

func TestKernelCodes(t *testing.T) {
	p := &processor{events: []*event{
		{name: "INST_RETIRED.ANY", config: 0x100, counters: "fixed0"},
		{name: "CPU_CLK_UNHALTED.THREAD_ANY", config: 0x200, counters: "fixed1"},
		{name: "TOPDOWN_RETIRING.ALL", config: 0x700, counters: "fixed6"},
		{name: "BR_INST_RETIRED.ALL_BRANCHES", config: 0xc4, counters: "0,1"},
	}}
	if err := kernelCodes(p); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{0xc0, 0x20003c, 0x2c2, 0xc4} {
		if got := p.events[i].config; got != want {
			t.Errorf("%s: %#x, want %#x", p.events[i].name, got, want)
		}
	}
	for _, e := range []event{{name: "INST_RETIRED.ANY", counters: "fixed1"}, {name: "SOMETHING.NEW", counters: "fixed7"}} {
		if err := kernelCodes(&processor{events: []*event{&e}}); err == nil {
			t.Errorf("%s on %s: no error", e.name, e.counters)
		}
	}
}

func TestMerge(t *testing.T) {
	c, err := parseCorrections([]byte("cpus,name,field,from,to,reason\n"), []byte("name,synonyms\nNEW.NAME,OLD.NAME\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		events []*event
		want   []event
		err    string
	}{
		{"a deprecated name", []*event{{name: "A", config: 1, deprecated: true}, {name: "B", config: 1}},
			[]event{{name: "B", config: 1, aliases: []string{"A"}}}, ""},
		{"only deprecated names", []*event{{name: "A", config: 1, deprecated: true}},
			[]event{{name: "A", config: 1, deprecated: true}}, ""},
		{"names that the vendor calls the same", []*event{{name: "A", config: 1}, {name: "B", config: 1, sameAs: []string{"A"}}},
			[]event{{name: "A", config: 1, aliases: []string{"B"}}}, ""},
		{"listed synonyms", []*event{{name: "OLD.NAME", config: 1}, {name: "NEW.NAME", config: 1}},
			[]event{{name: "NEW.NAME", config: 1, aliases: []string{"OLD.NAME"}}}, ""},
		{"one memory", []*event{{name: "OCR.X.L3_MISS_LOCAL", config: 1}, {name: "OCR.X.L3_MISS", config: 1}},
			[]event{{name: "OCR.X.L3_MISS", config: 1, aliases: []string{"OCR.X.L3_MISS_LOCAL"}}}, ""},
		{"a fixed counter and general ones",
			[]*event{{name: "OLD.NAME", config: 1, counters: "0,1", flags: []string{"pebs"}, sampleAfter: 7}, {name: "NEW.NAME", config: 1, counters: "fixed0"}},
			[]event{{name: "NEW.NAME", config: 1, counters: "fixed0", flags: []string{"pebs"}, sampleAfter: 7, aliases: []string{"OLD.NAME"}}}, ""},
		{"different registers", []*event{offcore("A", 1), offcore("B", 2)}, []event{*offcore("A", 1), *offcore("B", 2)}, ""},
		{"a fault", []*event{{name: "A", config: 1}, {name: "B", config: 1}}, nil, "A and B both are 0x1"},
		{"counters that contradict", []*event{{name: "A", config: 1, counters: "0", deprecated: true}, {name: "B", config: 1, counters: "1"}}, nil, `counters "1" and "0"`},
	} {
		p := &processor{key: "X", events: test.events}
		err := c.merge(p)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %s", test.name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []event
		for _, e := range p.events {
			got = append(got, *e)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

func TestFixes(t *testing.T) {
	const header = "cpus,name,field,from,to,reason\n"
	const noSynonyms = "name,synonyms\n"
	apply := func(fixes string) (*processor, error) {
		p := &processor{key: "X", events: []*event{{name: "A", config: 1, counters: "0,1"}, {name: "B", config: 2}}}
		c, err := parseCorrections([]byte(header+fixes), []byte(noSynonyms))
		if err == nil {
			err = c.apply(p)
		}
		if err == nil {
			err = c.unused()
		}
		return p, err
	}
	p, err := apply("X,A,config,0x1,0x11,wrong\nX,A,counters,\"0,1\",\"0,1,2,3 0,1\",wrong\nX,B,drop,0x2,,wrong\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []*event{{name: "A", config: 0x11, counters: "0,1,2,3", smt: "0,1"}}
	if !reflect.DeepEqual(p.events, want) {
		t.Errorf("got %+v", p.events)
	}
	for fixes, want := range map[string]string{
		"# a comment\nX,A,config,0x5,0x11,wrong\n": "fixes.csv:3: A on X: the vendor has 0x1 now, not 0x5",
		"X,C,config,0x5,0x11,wrong\n":              "fixes.csv:2: X has no event C",
		"X Y,A,config,0x1,0x11,wrong\n":            "fixes.csv:2: there is no processor Y",
		"X,A,unit,0x1,0x11,wrong\n":                `fixes.csv:2: unknown field "unit"`,
		"X,A,config,0x1,0x11,\n":                   "fixes.csv:2: a fix needs processors, a name and a reason",
		"X,A,config,0x1,eleven,wrong\n":            "fixes.csv:2: A on X: strconv.ParseUint",
	} {
		if _, err := apply(fixes); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", fixes, err, want)
		}
	}
	for synonyms, want := range map[string]string{
		"A,\n":       "synonyms.csv:2: A has no synonym",
		"A,B\nC,B\n": "synonyms.csv:3: B is in two lines",
	} {
		if _, err := parseCorrections([]byte(header), []byte(noSynonyms+synonyms)); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", synonyms, err, want)
		}
	}
	c, err := parseCorrections([]byte(header), []byte(noSynonyms+"A,B\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.unused(); err == nil || !strings.HasPrefix(err.Error(), "synonyms.csv:2:") {
		t.Errorf("unused synonyms: error %v", err)
	}
}

// TestChecks shows that the faults which fixes.csv corrects would be found
// without it.
func TestChecks(t *testing.T) {
	flops := func(config uint64) *processor {
		return &processor{events: []*event{
			{name: "FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE", config: 0x8c7},
			{name: "FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", config: 0x10c7},
			{name: "FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE", config: 0x20c7},
			{name: "FP_ARITH_INST_RETIRED.512B_PACKED_DOUBLE", config: 0x40c7},
			{name: "FP_ARITH_INST_RETIRED.8_FLOPS", config: config},
		}}
	}
	if err := checkFlops(flops(0x60c7)); err != nil {
		t.Error(err)
	}
	for _, config := range []uint64{0x18c7, 0x20c7, 0x68c7} {
		if err := checkFlops(flops(config)); err == nil {
			t.Errorf("8_FLOPS %#x: no error", config)
		}
	}
	p := &processor{events: []*event{{name: "A", config: 0x8002b1}}}
	if err := checkModifiers(p); err == nil {
		t.Error("an inversion without a counter mask: no error")
	}
	p.events[0].config = 0x1a002b1
	if err := checkModifiers(p); err != nil || !reflect.DeepEqual(p.events[0].flags, []string{"any"}) {
		t.Errorf("%v, flags %q", err, p.events[0].flags)
	}
	p = &processor{events: []*event{{name: "X:request=A", config: 1, deprecated: true}, {name: "X.A", config: 1}}}
	if err := dropColonSpellings(p); err != nil || len(p.events) != 1 {
		t.Errorf("%v, %d events left", err, len(p.events))
	}
	p = &processor{events: []*event{{name: "X:request=A", config: 1, deprecated: true}}}
	if err := dropColonSpellings(p); err == nil {
		t.Error("the only name of an encoding was dropped")
	}
}

func TestParseTelemetry(t *testing.T) {
	const file = `{"document":{},"events":{
		"CPU_CYCLES":{"code":"0x0011","title":"t","description":"d","accesses":["PMU","ETE"],"architecture_defined":true,"product_defined":false},
		"IMP_X":{"code":"0x0171","title":"t","description":"d","accesses":["PMU"],"architecture_defined":false,"product_defined":true,"product_defined_attributes":{"debug":false}},
		"TRACE":{"code":"0x4010","title":"t","description":"d","accesses":["ETE"],"architecture_defined":true,"product_defined":false}}}`
	common := new(processor)
	p, err := parseTelemetry([]byte(file), common)
	if err != nil {
		t.Fatal(err)
	}
	if want := []*event{{name: "CPU_CYCLES", config: 0x11}, {name: "IMP_X", config: 0x171}}; !reflect.DeepEqual(p.events, want) {
		t.Errorf("events %+v, want %+v", p.events, want)
	}
	if want := []*event{{name: "CPU_CYCLES", config: 0x11}}; !reflect.DeepEqual(common.events, want) {
		t.Errorf("common events %+v, want %+v", common.events, want)
	}
	for _, bad := range []string{
		strings.Replace(file, `"0x0011"`, `"0x0012"`, 1), // the architecture says otherwise
		strings.Replace(file, `"0x0171"`, `"0x10171"`, 1),
		strings.Replace(file, `"title":"t",`, `"surprise":"t",`, 1),
	} {
		if _, err := parseTelemetry([]byte(bad), common); err == nil {
			t.Errorf("no error for %s", bad)
		}
	}
}

func FuzzParsePerfmon(f *testing.F) {
	f.Add([]byte(`{"Header":{"Version":"1"},"Events":[{"EventName":"E","EventCode":"0xB7, 0xBB","UMask":"0x01","MSRIndex":"0x1a6,0x1a7","MSRValue":"0x10001","Counter":"0,1","CounterHTOff":"Fixed counter 1"}]}`), 0)
	f.Add([]byte(`{"Events":[{"EventName":"E","EventCode":"0xB7","UMask":"0x01,0x02","MSRIndex":"0x1a7","Counter":"Fixed counter 3"}]}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, firstFixed int) {
		p, _, err := parsePerfmon(data, firstFixed&1)
		if err != nil {
			return
		}
		const fields = 0xff | 0xff00 | edgeBit | anyThread | invertBit | cmaskBits | 0xff<<40
		for _, e := range p.events {
			if e.name == "" || e.config&^fields != 0 {
				t.Errorf("event %+v", e)
			}
		}
	})
}

func FuzzParseLibpfm(f *testing.F) {
	f.Add("skx::UOPS_ISSUED:ANY\ttype=4 config=0x10e config1=0x0 config2=0x0 precise=0\tcode0=0x53010e\tskx::UOPS_ISSUED:ANY")
	f.Add("power9::PM_CYC\ttype=4 config=0x1001e")
	f.Fuzz(func(t *testing.T, line string) {
		if e, err := parseLibpfm(line); err == nil && !strings.Contains(line, e.name) {
			t.Errorf("%q gives %+v", line, e)
		}
	})
}
