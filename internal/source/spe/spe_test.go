package spe_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/spe"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
)

// decode returns the records of packets.
func decode(b []byte) (list []spe.Record, d *spe.Decoder) {
	d = spe.NewDecoder(bytes.NewReader(b))
	for d.Next() {
		list = append(list, *d.Record())
	}
	return list, d
}

// perfRecords returns the packets of each record as perf report -D prints them.
func perfRecords(out string) (list [][]string) {
	var open []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, ".  ") || len(line) < 62 || line[11] != ':' {
			continue
		}
		text := strings.TrimSpace(line[62:])
		if text == "PAD" {
			continue
		}
		open = append(open, text)
		if text == "END" || strings.HasPrefix(text, "TS ") {
			list, open = append(list, open), nil
		}
	}
	return list
}

// eventNames are perf's names of the bits of Events.
var eventNames = map[spe.Events]string{spe.Exception: "EXCEPTION-GEN", spe.Retired: "RETIRED", spe.L1Access: "L1D-ACCESS", spe.L1Refill: "L1D-REFILL",
	spe.TLBAccess: "TLB-ACCESS", spe.TLBWalk: "TLB-REFILL", spe.NotTaken: "NOT-TAKEN", spe.Mispredicted: "MISPRED", spe.LastAccess: "LLC-ACCESS",
	spe.LastMiss: "LLC-REFILL", spe.RemoteAccess: "REMOTE-ACCESS", spe.Misaligned: "ALIGNMENT"}

// TestRecordsLikePerf compares 2,000 records with the packets that perf report -D prints of
// the same file.
func TestRecordsLikePerf(t *testing.T) {
	area := hardware.Area(hardware.RandomSPE(2000, 24, 42, 43))
	got, d := decode(area)
	if d.Bad != 0 || d.Cut != 0 {
		t.Errorf("%d bytes are no packets, %d records are cut", d.Bad, d.Cut)
	}
	file := hardware.Write(t, "perf.data", hardware.SPE(t, hardware.Midrs["neoverse"], map[int][]byte{0: area}))
	want := perfRecords(hardware.Perf(t, "report", "-D", "-i", file))
	if len(got) != len(want) || len(got) != 2000 {
		t.Fatalf("%d records, perf has %d", len(got), len(want))
	}
	for i := range got {
		compareRecord(t, i, &got[i], want[i])
	}
}

// compareRecord compares a record with perf's packets.
func compareRecord(t *testing.T, i int, r *spe.Record, packets []string) {
	t.Helper()
	for _, p := range packets {
		word := strings.Fields(p)
		has, is := "", ""
		switch word[0] {
		case "PC":
			has, is = fmt.Sprintf("0x%x el%d", r.PC&(1<<56-1), r.EL), strings.Join(word[1:3], " ")
		case "TGT":
			has, is = fmt.Sprintf("0x%x", r.Target), word[1]
		case "VA":
			has, is = fmt.Sprintf("0x%x", r.Addr), word[1]
		case "PA":
			has, is = fmt.Sprintf("0x%x", r.Phys), word[1]
		case "CONTEXT":
			has, is = fmt.Sprintf("0x%x", r.Context), word[1]
		case "TS":
			has, is = fmt.Sprint(r.Time), word[1]
		case "DATA-SOURCE":
			has, is = fmt.Sprint(r.Source), word[1]
		case "LAT":
			v := map[string]uint16{"TOT": r.Total, "ISSUE": r.Issue, "XLAT": r.Translation}[word[2]]
			has, is = fmt.Sprint(v), word[1]
		case "EV":
			for e, name := range eventNames {
				if (r.Events&e != 0) != strings.Contains(p+" ", " "+name+" ") {
					t.Errorf("record %d: %s, events are %x", i, p, r.Events)
				}
			}
		case "LD", "ST":
			has, is = fmt.Sprint(r.Load(), r.Store()), fmt.Sprint(word[0] == "LD", word[0] == "ST")
		case "B":
			has, is = fmt.Sprint(r.Class), fmt.Sprint(spe.Branch)
		case "OTHER", "SVE-OTHER":
			has, is = fmt.Sprint(r.Class), fmt.Sprint(spe.Other)
		default:
			t.Errorf("record %d: perf has a packet %q", i, p)
		}
		if has != is {
			t.Errorf("record %d: %s, perf has %s in %q", i, has, is, p)
		}
	}
}

// TestSourcesLikePerf compares the data sources of records with those that perf script
// makes. Three differences are meant. A load without a data source is no hit of the level-1
// cache. A store's events say its level. A remote cache is one, as for perf since 6.3.
func TestSourcesLikePerf(t *testing.T) {
	for name, midr := range hardware.Midrs {
		area := hardware.Area(hardware.RandomSPE(2000, 25, 42))
		list, _ := decode(area)
		file := hardware.Write(t, "perf.data", hardware.SPE(t, midr, map[int][]byte{0: area}))
		out := hardware.Perf(t, "script", "--itrace=i1i", "-F", "hw:addr,data_src,weight", "-i", file)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != len(list) {
			t.Fatalf("%s: perf has %d samples, want %d", name, len(lines), len(list))
		}
		id, err := strconv.ParseUint(midr, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for i, line := range lines {
			word := strings.Fields(line)
			src, err := strconv.ParseUint(word[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			r := &list[i]
			if name == "neoverse" && (r.Store() || r.Load() && (r.Has&spe.HasSource == 0 || r.Source == 0xd)) {
				continue
			}
			compared++
			if got := r.DataSrc(spe.CPU(id)); got != perffile.DataSrc(src) {
				t.Errorf("%s: record %d: %#x (%s), perf has %#x (%s)", name, i, uint64(got), got, src, perffile.DataSrc(src))
			}
			if word[len(word)-1] != fmt.Sprint(r.Total) {
				t.Errorf("%s: record %d: latency %d, perf has %s", name, i, r.Total, word[len(word)-1])
			}
		}
		if compared < 500 {
			t.Errorf("%s: %d records were compared", name, compared)
		}
	}
}

// TestOtherSources checks the numbers of processors that perf 6.1 does not know.
func TestOtherSources(t *testing.T) {
	for _, c := range []struct {
		cpu    spe.CPU
		source uint16
		want   string
	}{
		{0xc00fac40, 7, "load RAM hit, snoop none"},
		{0xc00fac40, 5, "load remote any cache, snoop peer"},
		{0x480fd060, 9, "load remote RAM hit"},
		{0x480fd060, 17, "load L2 hit, snoop hitm"},
		{0x412fd4f1, 14, "load RAM hit, snoop none"},
		{0, 14, "load L1 miss"},
	} {
		r := spe.Record{Class: spe.LoadStore, Source: c.source, Has: spe.HasSource, Events: spe.L1Access | spe.L1Refill}
		if got := r.DataSrc(c.cpu).String(); got != c.want {
			t.Errorf("%#x: source %d is %s, want %s", c.cpu, c.source, got, c.want)
		}
	}
}

// TestRealRecords decodes two records of a processor in the kernel at exception level 2. Their
// bytes and their meaning are in the tests of Google's perf_data_converter.
func TestRealRecords(t *testing.T) {
	const packets = "b0d0c2a1ed66baffc0 0000000000 65805f0000 4900 521600 990400 980c00 b2286b0903370eff00 9a0100 000000000000000000 4300 0000 712e652f6a0a000000" +
		"b0e0b0efed66baffc0 0000000000 650e000000 4a01 524200 991000 981100 b1e4b0efed66baffc0 00000000000000000000000000000000 718d652f6a0a000000"
	b, err := hex.DecodeString(strings.ReplaceAll(packets, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	list, d := decode(b)
	want := []spe.Record{
		{PC: 0xffffba66eda1c2d0, EL: 2, Addr: 0xffff0e3703096b28, Time: 44731163950, Total: 12, Issue: 4, Translation: 1, Events: spe.Retired | spe.L1Access | spe.TLBAccess,
			Class: spe.LoadStore, Context: 0x5f80, Has: spe.HasPC | spe.HasTotal | spe.HasIssue | spe.HasTranslation | spe.HasSource | spe.HasContext | spe.HasAddr},
		{PC: 0xffffba66edefb0e0, EL: 2, Target: 0xffffba66edefb0e4, Time: 44731164045, Total: 17, Issue: 16, Events: spe.Retired | spe.NotTaken, Class: spe.Branch, Op: 1, Context: 0xe,
			Has: spe.HasPC | spe.HasTotal | spe.HasIssue | spe.HasContext},
	}
	if !slices.Equal(list, want) || d.Bad+d.Cut != 0 {
		t.Errorf("got  %+v\nwant %+v", list, want)
	}
}

// TestDamage reads records with damage: those before and behind it count.
func TestDamage(t *testing.T) {
	ops := hardware.RandomSPE(3, 1)
	b := hardware.Area(ops)
	b[64+9] = 0xff // in the second record
	list, d := decode(b)
	if len(list) < 2 || list[0].PC != ops[0].PC || list[len(list)-1].PC != ops[2].PC || d.Bad == 0 || d.Cut == 0 {
		t.Errorf("%d records, %d bytes bad, %d cut", len(list), d.Bad, d.Cut)
	}
	if list, d := decode(b[:30]); len(list) != 0 && len(list) != 1 || d.Cut+int64(len(list)) == 0 {
		t.Errorf("a cut record: %d records, %d cut", len(list), d.Cut)
	}
	// Padding to a boundary, with a header of two bytes: 16 bytes from the beginning.
	if list, d := decode(append([]byte{0x01, 0x23, 0x00, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 0x01)); len(list) != 2 || d.Bad != 1 {
		t.Errorf("alignment: %d records, %d bytes bad", len(list), d.Bad)
	}
}

// FuzzDecode decodes anything. Each record takes bytes of its own.
func FuzzDecode(f *testing.F) {
	f.Add(hardware.Area(hardware.RandomSPE(4, 1)))
	f.Add(hardware.Area(hardware.RandomSPE(4, 2, 42)))
	f.Add([]byte{0x20, 0x00, 0x2f, 0x00, 0x01, 0x71})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, d := decode(b)
		if len(list) > len(b) || d.Bad > int64(len(b)) {
			t.Errorf("%d records and %d bad bytes of %d", len(list), d.Bad, len(b))
		}
		for i := range list {
			if src := list[i].DataSrc(0x413fd0c1); (src != 0) != (list[i].Class == spe.LoadStore) {
				t.Errorf("%+v has the source %s", list[i], src)
			}
		}
	})
}
