package ibs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/ibs"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// cpus are the processors of the recordings as the decoder takes them.
var cpus = map[string]ibs.CPU{"zen2": {Family: 23, Model: 49}, "zen3": {Family: 25, Model: 1}, "zen4": {Family: 25, Model: 17}}

// field finds the fields in what perf prints of a register: a name and a number.
var field = regexp.MustCompile(`([A-Z][A-Za-z0-9]+) +(?:bytes )?=?([0-9]+)\b`)

// A dump is what perf report -D prints of a sample: its fields by name, and whole lines of
// registers.
type dump struct {
	fields map[string]string
	lines  map[string]string
}

// dumps takes the samples of a kind out of perf's output.
func dumps(out, first string) []dump {
	var list []dump
	for line := range strings.Lines(out) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), ":\t")
		switch {
		case !ok || !strings.HasPrefix(strings.ToLower(name), "ibs") && name != "ic_ibs_ext_ctl":
			continue
		case name == first:
			list = append(list, dump{map[string]string{}, map[string]string{}})
		case len(list) == 0:
			continue
		}
		d := list[len(list)-1]
		d.lines[name] = text
		for _, m := range field.FindAllStringSubmatch(text, -1) {
			d.fields[m[1]] = m[2]
		}
	}
	return list
}

// samples hands on the raw parts of an event's samples.
func samples(t *testing.T, b []byte, event string) (list [][]byte) {
	t.Helper()
	r, err := perfdata.NewReader(bytes.NewReader(b), "test", perfdata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		if s, ok := r.Record().(*perfdata.Sample); ok && s.Event().Name == event {
			list = append(list, bytes.Clone(s.Raw()))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// flag is a bit as perf prints it.
func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// TestOpsLikePerf decodes the registers of 2,000 ops of each processor. It compares each
// field with what perf report -D prints of the same file.
func TestOpsLikePerf(t *testing.T) {
	for name, amd := range hardware.AMDs {
		t.Run(name, func(t *testing.T) {
			b := hardware.IBS(t, amd, "program", hardware.RandomIBS(2000, 24), nil)
			raw := samples(t, b, "ibs_op//")
			want := dumps(hardware.Perf(t, "report", "-D", "-i", hardware.Write(t, "perf.data", b)), "ibs_op_ctl")
			if len(want) != len(raw) || len(raw) != 2000 {
				t.Fatalf("%d samples, perf has %d", len(raw), len(want))
			}
			for i := range raw {
				op, ok := ibs.DecodeOp(raw[i], cpus[name])
				if !ok {
					t.Fatalf("sample %d is not valid", i)
				}
				compareOp(t, i, &op, want[i], name == "zen3")
			}
		})
	}
}

// compareOp compares an op with what perf prints of it. The kernel takes no state of a line
// from a stateless processor, and perf prints it all the same.
func compareOp(t *testing.T, i int, op *ibs.Op, want dump, stateless bool) {
	t.Helper()
	hex := func(v uint64) string { return fmt.Sprintf("%016x", v) }
	got := map[string]string{"CompToRetCtr": fmt.Sprint(op.ToRetire), "TagToRetCtr": fmt.Sprint(op.ToRetire + op.ToComplete),
		"BrnRet": flag(op.Branch), "CntCtl": flag(!op.ByCycles), "Microcode": flag(op.Microcode), "LdOp": flag(op.Load), "StOp": flag(op.Store)}
	if op.Branch {
		got["OpReturn"], got["OpBrnTaken"], got["OpBrnMisp"] = flag(op.Return), flag(op.Taken), flag(op.Mispredicted)
	}
	if op.Load || op.Store {
		got["SwPf"], got["DcMisAcc"], got["DcMiss"], got["DcL1TlbMiss"] = flag(op.Prefetch), flag(op.Misaligned), flag(op.Miss), flag(op.TLBMiss)
		got["DcLockedOp"] = flag(op.Source.Locked())
		if op.TLBMiss {
			got["DcL2TlbMiss"], got["TlbRefillLat"] = flag(op.TLBWalk), fmt.Sprint(op.TLBLatency)
		}
		if op.Load && op.Miss {
			got["DcMissLat"] = fmt.Sprint(op.MissLatency)
		}
		if op.Width > 0 {
			got["OpMemWidth"] = fmt.Sprint(op.Width)
		}
	}
	for name, v := range got {
		if want.fields[name] != v {
			t.Errorf("sample %d: %s is %s, perf has %q", i, name, v, want.fields[name])
		}
	}
	for name, v := range map[string]uint64{"IbsOpRip": op.RIP, "IbsDCLinAd": op.Addr, "IbsDCPhysAd": op.Phys} {
		if v != 0 && want.lines[name] != hex(v) || v == 0 && (want.lines[name] != "") {
			t.Errorf("sample %d: %s is %x, perf has %q", i, name, v, want.lines[name])
		}
	}
	if op.Target != 0 && want.lines["IbsBrTarget"] != hex(op.Target) {
		t.Errorf("sample %d: target %x, perf has %q", i, op.Target, want.lines["IbsBrTarget"])
	}
	if where := place(op, want, stateless); where != "" && where != op.Source.String() {
		t.Errorf("sample %d: %s, perf's fields say %s", i, op.Source, where)
	}
}

// place is what the fields that perf prints of a load say of its data, in the words of
// DataSrc: that of the kernel's rules, but by perf's fields and not by the registers.
func place(op *ibs.Op, d dump, stateless bool) string {
	data2, f := d.lines["ibs_op_data2"], d.fields
	switch {
	case !op.Load || f["DcUcMemAcc"] == "1" || f["SwPf"] == "1" || f["DcMissNoMabAlloc"] == "1":
		return ""
	case f["DcMiss"] == "0":
		return "load L1 hit" + ending(d, false)
	case f["L2Miss"] == "0":
		return "load L2 hit" + ending(d, false)
	}
	_, source, _ := strings.Cut(data2, "DataSrc ")
	remote := f["RmtNode"] == "1"
	modified := strings.Contains(data2, "CacheHitSt 0=M-state") && !stateless
	where := ""
	switch _, source, _ = strings.Cut(strings.TrimSpace(source), "="); source {
	case "DRAM":
		if where = "load RAM hit"; remote {
			where = "load remote RAM hit"
		}
	case "Local L3 or other L1/L2 in CCX":
		where = "load L3 hit"
	case "Local node cache", "Another CCX cache in the same NUMA node":
		where = "load remote any cache hit"
	case "Another CCX cache in a different NUMA node", "Remote node cache":
		where, modified = "load remote any cache hit", modified && source != "Remote node cache"
	case "MMIO/Config/PCI/APIC", "Other":
		where = "load I/O hit"
	default:
		return "" // nothing that perf names
	}
	return where + ending(d, modified)
}

// ending is the rest of a place: snoop, translation, lock.
func ending(d dump, modified bool) string {
	end := ""
	if modified {
		end = ", snoop hitm"
	}
	switch {
	case d.fields["DcL1TlbMiss"] == "0":
		end += ", TLB L1 hit"
	case d.fields["DcL2TlbMiss"] == "0":
		end += ", TLB L2 hit"
	default:
		end += ", TLB L2 miss"
	}
	if d.fields["DcLockedOp"] == "1" {
		end += ", locked"
	}
	return end
}

// TestFetchesLikePerf is TestOpsLikePerf for instruction fetches.
func TestFetchesLikePerf(t *testing.T) {
	for name, amd := range hardware.AMDs {
		b := hardware.IBS(t, amd, "program", nil, hardware.RandomFetches(500, 24))
		raw := samples(t, b, "ibs_fetch//")
		want := dumps(hardware.Perf(t, "report", "-D", "-i", hardware.Write(t, "perf.data", b)), "ibs_fetch_ctl")
		if len(want) != len(raw) || len(raw) != 500 {
			t.Fatalf("%s: %d samples, perf has %d", name, len(raw), len(want))
		}
		for i := range raw {
			f, ok := ibs.DecodeFetch(raw[i], cpus[name])
			got := map[string]string{"Lat": fmt.Sprint(f.Latency), "Comp": flag(f.Complete), "L1TlbMiss": flag(f.TLBMiss), "IbsItlbRefillLat": fmt.Sprint(f.TLBLatency)}
			if f.MissKnown {
				got["IcMiss"] = flag(f.Miss)
			}
			if f.TLBMiss {
				got["L2TlbMiss"] = flag(f.TLBWalk)
			}
			if f.Complete {
				got["L2Miss"] = flag(f.L2Miss)
			}
			if name == "zen4" {
				got["FetchL3Miss"] = flag(f.L3Miss)
			}
			for field, v := range got {
				if !ok || want[i].fields[field] != v {
					t.Errorf("%s: sample %d: %s is %s, perf has %q", name, i, field, v, want[i].fields[field])
				}
			}
			if addr, err := strconv.ParseUint(want[i].lines["IbsFetchLinAd"], 16, 64); err != nil || addr != f.Addr {
				t.Errorf("%s: sample %d: address %x, perf has %q", name, i, f.Addr, want[i].lines["IbsFetchLinAd"])
			}
			if _, has := want[i].fields["IcMiss"]; has != f.MissKnown {
				t.Errorf("%s: sample %d: whether the miss is known is %v", name, i, f.MissKnown)
			}
		}
	}
}

// TestSource checks data sources against the kernel's tables of perf_ibs_get_mem_lvl.
func TestSource(t *testing.T) {
	const load, store, miss, miss2, noMAB, lin = 1, 2, 1 << 7, 1 << 20, 1 << 16, 1 << 17
	zen2, zen4 := hardware.AMDs["zen2"].Caps, hardware.AMDs["zen4"].Caps
	for _, c := range []struct {
		caps         uint32
		cpu          string
		data2, data3 uint64
		want         string
	}{
		{zen4, "zen4", 6, load | miss | miss2 | lin, "load PMEM, TLB L1 hit"},
		{zen4, "zen4", 6 | 1<<4, load | miss | miss2 | lin, "load remote PMEM, TLB L1 hit"},
		{zen4, "zen4", 1 << 6, load | miss | miss2 | lin, "load CXL, TLB L1 hit"},
		{zen4, "zen4", 1, load | miss | miss2 | lin, "load L3 hit, snoop hitm, TLB L1 hit"},
		{zen4, "zen4", 1 | 1<<5, load | miss | miss2 | lin, "load L3 hit, TLB L1 hit"},
		{zen4, "zen4", 0, load | miss | miss2 | noMAB, "load LFB hit"},
		{zen4, "zen4", 0, load | miss | miss2, "load unknown"},
		{zen4, "zen4", 3, load | 1<<14 | miss | lin, "load uncached hit, TLB L1 hit"},
		{zen4, "zen4", 1, store | miss | miss2 | lin, "store unknown, TLB L1 hit"},
		{zen2, "zen2", 2, load | miss | miss2 | lin, "load remote any cache hit, snoop hitm, TLB L1 hit"},
		{zen2, "zen3", 2, load | miss | miss2 | lin, "load remote any cache hit, TLB L1 hit"},
		{zen2, "zen3", 3, load | miss | noMAB | lin, "load LFB hit, TLB L1 hit"},
		{zen2, "zen2", 4, load | miss | miss2 | lin, "load remote any cache hit, TLB L1 hit"},
	} {
		raw := append(binary.LittleEndian.AppendUint32(nil, c.caps), hardware.Words(1<<17|1<<18, 0x400000, 0, c.data2, c.data3, 0x1000, 0, 0)...)
		op, ok := ibs.DecodeOp(raw, cpus[c.cpu])
		if !ok || op.Source.String() != c.want {
			t.Errorf("%s, %#x, %#x: %s (%v), want %s", c.cpu, c.data2, c.data3, op.Source, ok, c.want)
		}
	}
}

// TestRealOp decodes an op that AMD published on the Linux kernel list with perf report -D: of a
// recording of ibs_op/l3missonly=1/ on Zen 4.
func TestRealOp(t *testing.T) {
	raw := append(binary.LittleEndian.AppendUint32(nil, 0xbff), hardware.Words(0x4500070008, 0x1000, 0x710002, 2, 0x681d1700a1, 0x2000, 0x3000, 0)...)
	got, ok := ibs.DecodeOp(raw, ibs.CPU{Family: 25, Model: 17})
	want := ibs.Op{RIP: 0x1000, ToComplete: 111, ToRetire: 2, ByCycles: true, Filtered: true, Load: true, Miss: true, MissLatency: 104, Width: 8, Addr: 0x2000, Phys: 0x3000, Source: got.Source}
	if !ok || got != want || got.Source.String() != "load remote any cache hit, snoop hitm, TLB L1 hit" {
		t.Errorf("%+v, %s", got, got.Source)
	}
}

// TestShort refuses raw parts that are too short, and those that are not valid.
func TestShort(t *testing.T) {
	whole := append(make([]byte, 4), hardware.Words(1<<17|1<<18, 1, 2, 3, 1, 5, 6)...)
	for n := range len(whole) {
		if _, ok := ibs.DecodeOp(whole[:n], ibs.CPU{}); ok != (n >= 44) {
			t.Errorf("%d bytes: %v", n, ok)
		}
	}
	if _, ok := ibs.DecodeOp(append(make([]byte, 4), hardware.Words(1<<17, 1, 2, 3, 4)...), ibs.CPU{}); ok {
		t.Error("an op without its mark is valid")
	}
	if _, ok := ibs.DecodeFetch(append(make([]byte, 4), hardware.Words(1<<48, 1)...), ibs.CPU{}); ok {
		t.Error("a fetch without its mark is valid")
	}
}

// FuzzDecode decodes anything: latencies are parts of each other, and loads have a source.
func FuzzDecode(f *testing.F) {
	for _, x := range hardware.RandomIBS(20, 1) {
		f.Add(append([]byte{0xff, 0x0b, 0, 0}, hardware.Words(1<<17|1<<18, x.IP, x.Data, x.Data2, x.Data3, x.Addr, 0, x.Target)...), 25, 17)
	}
	for _, x := range hardware.RandomFetches(5, 1) {
		f.Add(append([]byte{0xff, 0x0b, 0, 0}, hardware.Words(x[:]...)...), 25, 1)
	}
	f.Fuzz(func(t *testing.T, raw []byte, family, model int) {
		cpu := ibs.CPU{Family: family, Model: model}
		if op, ok := ibs.DecodeOp(raw, cpu); ok {
			if op.ToRetire+op.ToComplete > 0xffff || op.MissLatency > 0 && !op.Miss || op.TLBLatency > 0 && !op.TLBMiss {
				t.Errorf("%+v", op)
			}
			if access := op.Source.Op() &^ perffile.OpNA; (access != 0) != (op.Load || op.Store) {
				t.Errorf("%+v has the source %s", op, op.Source)
			}
		}
		if x, ok := ibs.DecodeFetch(raw, cpu); ok && (x.TLBWalk && !x.TLBMiss || x.L2Miss && !x.Complete) {
			t.Errorf("%+v", x)
		}
	})
}
