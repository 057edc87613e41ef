package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

func TestParseCounters(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want counters
	}{
		{"0", 0x1},
		{"0,1,2,3", 0xf},
		{"0-7", 0xff},
		{"1-4", 0x1e},
		{"2,6", 0x44},
		{"0,2-3", 0xd},
		{"fixed0", 1 << 32},
		{"fixed3", 1 << 35},
		{"fixed16", 1 << 48},
	} {
		if got, err := parseCounters(tt.in); err != nil || got != tt.want {
			t.Errorf("parseCounters(%q) = %#x, %v, want %#x", tt.in, uint64(got), err, uint64(tt.want))
		}
	}
	for _, in := range []string{"", ",", "0,", "-", "3-1", "32", "0-99", "fixed", "fixed32", "x", "0x1", "+1", " 1", "fixed-1"} {
		if got, err := parseCounters(in); err == nil {
			t.Errorf("parseCounters(%q) = %#x, want an error", in, uint64(got))
		}
	}
}

func FuzzParseCounters(f *testing.F) {
	for _, s := range []string{"0,1,2,3", "0-7", "fixed1", "fixed16", "2,6", "", "3-1", "0-31,fixed2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseCounters(s)
		if (c == 0) == (err == nil) && err == nil {
			t.Errorf("parseCounters(%q) has neither counters nor an error", s)
		}
		if err == nil && c.generalOnly() != 0 && c.fixed() >= 0 {
			t.Errorf("parseCounters(%q) mixes general and fixed counters", s)
		}
	})
}

func FuzzReadPMUs(f *testing.F) {
	f.Add(pmusFile)
	f.Add([]byte("[[pmu]]\ncpus = [\"x\"]\ncounters = \"0-1\"\n"))
	f.Add([]byte("[[pmu]]\ncpus = [\"[\"]\ncounters = \"0-1\"\nregisters = { omr = 0 }\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pmus, err := readPMUs(data)
		if err != nil {
			return
		}
		for i := range pmus {
			if pmus[i].general(true) == 0 || pmus[i].general(false) == 0 {
				t.Errorf("a PMU without counters was accepted: %+v", pmus[i])
			}
		}
	})
}

func TestReadPMUsRefuses(t *testing.T) {
	const head = "[[pmu]]\ncpus = [\"x\"]\ncounters = \"0-3\"\n"
	for _, tt := range []struct{ in, want string }{
		{"[[pmu]]\ncounters = \"0\"\n", "the processors are missing"},
		{"[[pmu]]\ncpus = [\"x\"]\n", "not the number of a counter"},
		{"[[pmu]]\ncpus = [\"[\"]\ncounters = \"0\"\n", "pattern"},
		{head + "widht = 4\n", `line 4: there is no key "pmu.widht"`},
		{head + "fixed = -1\n", "fixed = -1"},
		{head + "counters-smt = \"9-1\"\n", "not a range"},
		{head + "registers = { offcore = 2 }\n", "there are offcore_rsp"},
		{head + "registers = { ldlat = 0 }\n", "at least one"},
		{head + "erratum = { id = \"X\" }\n", "erratum"},
		{head + "also = { A = \"x\" }\n", "not the number"},
		{head + "ldlat-aux = { event = \"a\", counters = \"\" }\n", "not the number"},
		{head + "fixed = \n", "line 4"},
	} {
		if _, err := readPMUs([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("readPMUs(%q): error %v, want one with %q", tt.in, err, tt.want)
		}
	}
}

// TestPMUs checks the PMU of every processor against its event table.
func TestPMUs(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"intel": true, "amd": true, "ibm": true}
	for _, cpu := range cat.CPUs() {
		pmu, err := PMUOf(cpu)
		if err != nil {
			t.Errorf("%s: %v", cpu.Name, err)
			continue
		}
		if pmu.Assumed && known[cpu.Vendor] {
			t.Errorf("%s: its counters are known, not assumed", cpu.Name)
		}
		table, err := cat.Events(cpu)
		if err != nil {
			t.Fatal(err)
		}
		checkTable(t, pmu, table)
	}
}

func checkTable(t *testing.T, pmu *PMU, table *model.EventTable) {
	cpu := table.CPU().Name
	if pmu.Watchdog != "" && len(table.Events()) > 0 {
		if _, ok := table.Lookup(pmu.Watchdog); !ok {
			t.Errorf("%s: the watchdog's event %s is not in its table", cpu, pmu.Watchdog)
		}
	}
	for name := range pmu.Also {
		if _, ok := table.Lookup(name); !ok {
			t.Errorf("%s: also: there is no event %s", cpu, name)
		}
	}
	for _, smt := range []bool{false, true} {
		c, err := newCatalog(table, Options{SMT: smt})
		if err != nil {
			t.Fatal(err)
		}
		reach := c.general
		metrics := false
		for i := range table.Events() {
			e := &table.Events()[i]
			if e.PMU != "" {
				continue
			}
			d, err := c.demand(table.Resolve(model.EventRef{Name: e.Name}), e, true)
			if err != nil {
				if !errors.Is(err, errRefused) {
					t.Errorf("%s: %s: %v", cpu, e.Name, err)
				}
				continue
			}
			metrics = metrics || d.can.isMetric()
			if extra := d.can.generalOnly() &^ reach; extra != 0 && table.CPU().Layout != "power" {
				t.Errorf("%s, SMT %t: %s can use counter %s, which the PMU does not have", cpu, smt, e.Name, extra)
			}
			for _, r := range d.registers {
				if _, ok := pmu.Registers[r.kind]; slices.Contains(registerKinds, r.kind) && !ok {
					t.Errorf("%s: %s needs a register %s, of which the PMU says nothing", cpu, e.Name, r.kind)
				}
			}
		}
		if metrics != (pmu.Slots != "") {
			t.Errorf("%s: parts of slots in its table: %t; the event that leads them: %q", cpu, metrics, pmu.Slots)
		}
	}
}
