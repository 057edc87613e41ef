package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A sharedReport is what the tests read of shared lines in JSON.
type sharedReport struct {
	Size  int `json:"line_size"`
	All   map[string]float64
	Lines []struct {
		Address string
		Data    string
		Sharing string
		Share   float64
		Threads int
		Nodes   []int
		Counts  map[string]float64
		Places  []struct {
			Offset  int
			Code    string `json:"code_address"`
			Threads int
			Counts  map[string]float64
		}
	}
}

// shared reads the shared lines of a recording.
func shared(t *testing.T, args ...string) (r sharedReport) {
	t.Helper()
	out := runMain(t, append([]string{"c2c", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if err := testschema.Validate(t, testschema.Rendered(t, "c2c"), out); err != nil {
		t.Error(err)
	}
	return r
}

// traceEvents are perf's names of what it counts, and ours.
var traceEvents = map[string][]string{"Total records": {"records"}, "Load Operations": {"loads"}, "Load Fill Buffer Hit": {"fill_buffer"}, "Load L1D hit": {"l1"}, "Load L2D hit": {"l2"},
	"Load LLC hit": {"llc", "local_hitm"}, "Load Local HITM": {"local_hitm"}, "Load Remote HITM": {"remote_hitm"}, "Load Remote HIT": {"remote_hit"}, "Load Local DRAM": {"local_dram"},
	"Load Remote DRAM": {"remote_dram"}, "Store Operations": {"stores"}, "Store L1D Hit": {"store_l1_hit"}, "Store L1D Miss": {"store_l1_miss"},
	"Store No available memory level": {"store_na"}, "Locked Load/Store Operations": {"locked"}, "Load access blocked by data": {"blocked_data"}, "Loads - Miss": {"load_miss"},
	"Load HIT Local Peer": {"local_peer"}, "Load HIT Remote Peer": {"remote_peer"}}

var traceEvent = regexp.MustCompile(`(?m)^  ([A-Z][^:\n]*[^: \n]) +: +([0-9]+)$`)

// TestC2CLikePerf compares figures with what perf c2c report prints of the same recording:
// of all accesses, of each line, and of each place.
func TestC2CLikePerf(t *testing.T) {
	for name, ops := range map[string][]hardware.MemOp{"few": hardware.Sharing, "random": hardware.RandomMemory(5000, 24)} {
		t.Run(name, func(t *testing.T) {
			file := hardware.Write(t, "perf.data", hardware.Memory(t, ops))
			r := shared(t, file)
			out := hardware.Perf(t, "c2c", "report", "--stdio", "--no-source", "-d", "tot", "-i", file)
			found := map[string]bool{}
			for _, m := range traceEvent.FindAllStringSubmatch(out, -1) {
				sum := 0.0
				for _, of := range traceEvents[m[1]] {
					sum += r.All[of]
				}
				if len(traceEvents[m[1]]) > 0 {
					if found[m[1]] = true; fmt.Sprint(sum) != m[2] {
						t.Errorf("%s: %v, perf has %s", m[1], sum, m[2])
					}
				}
			}
			if len(found) != len(traceEvents) {
				t.Errorf("perf prints %d of %d figures", len(found), len(traceEvents))
			}
			compareLines(t, &r, out)
		})
	}
}

// compareLines compares the two tables of perf c2c report.
func compareLines(t *testing.T, r *sharedReport, out string) {
	t.Helper()
	lines := map[string]int{}
	for i, l := range r.Lines {
		lines[l.Address] = i
	}
	compared, places, line := 0, 0, -1
	for text := range strings.Lines(out) {
		word := strings.Fields(strings.ReplaceAll(text, "%", ""))
		switch {
		case len(word) == 23 && strings.HasPrefix(word[1], "0x"):
			i, ok := lines[word[1]]
			if !ok {
				t.Errorf("perf has a line %s", word[1])
				continue
			}
			compared++
			c := r.Lines[i].Counts
			for k, of := range map[int]string{6: "local_hitm", 7: "remote_hitm", 10: "stores", 11: "store_l1_hit", 12: "store_l1_miss", 13: "store_na", 14: "fill_buffer", 15: "l1", 16: "l2",
				17: "llc", 18: "local_hitm", 19: "remote_hit", 20: "remote_hitm", 21: "local_dram", 22: "remote_dram"} {
				if fmt.Sprint(c[of]) != word[k] {
					t.Errorf("line %s: %s %v, perf has %s", word[1], of, c[of], word[k])
				}
			}
			if fmt.Sprint(perfRecords(c)) != word[8] {
				t.Errorf("line %s: %v records, perf has %s", word[1], perfRecords(c), word[8])
			}
			if share, err := strconv.ParseFloat(word[4], 64); err != nil || math.Abs(share/100-r.Lines[i].Share) > 0.00006 {
				t.Errorf("line %s: share %v, perf has %s", word[1], r.Lines[i].Share, word[4])
			}
		case len(word) == 7 && strings.HasPrefix(word[6], "0x"):
			line = lines[word[6]]
		case len(word) >= 17 && line >= 0 && strings.HasPrefix(word[5], "0x") && strings.HasPrefix(word[8], "0x"):
			places++
			comparePlace(t, r, line, word)
		}
	}
	hitm := 0
	for _, l := range r.Lines {
		if l.Counts["local_hitm"]+l.Counts["remote_hitm"] > 0 {
			hitm++
		}
	}
	if compared != hitm || places < compared {
		t.Errorf("%d lines and %d places were compared, %d lines have loads that found them modified", compared, places, hitm)
	}
}

// perfRecords is what perf calls records: the sum of what it names. A load from remote
// memory and a remote cache counts twice, and one of no level not at all.
func perfRecords(c map[string]float64) (sum float64) {
	for _, of := range []string{"fill_buffer", "l1", "l2", "llc", "local_hitm", "remote_hit", "remote_hitm", "local_dram", "remote_dram", "store_l1_hit", "store_l1_miss", "store_na"} {
		sum += c[of]
	}
	return sum
}

// comparePlace compares a line of perf's second table: shares of the line's loads and
// stores, and mean latencies, which perf rounds down.
func comparePlace(t *testing.T, r *sharedReport, line int, word []string) {
	t.Helper()
	l := &r.Lines[line]
	for _, p := range l.Places {
		if fmt.Sprintf("%#x", p.Offset) != word[5] || p.Code != word[8] {
			continue
		}
		for k, of := range []string{"remote_hitm", "local_hitm", "store_l1_hit", "store_l1_miss", "store_na"} {
			share := 100 * p.Counts[of] / max(1, l.Counts[of])
			if v, err := strconv.ParseFloat(word[k], 64); err != nil || math.Abs(v-share) > 0.006 {
				t.Errorf("%s + %s: %s %.2f %%, perf has %s", l.Address, word[5], of, share, word[k])
			}
		}
		for k, of := range []string{"remote_hitm_cycles", "local_hitm_cycles", "load_cycles"} {
			if v, err := strconv.ParseFloat(word[9+k], 64); err != nil || math.Abs(v-p.Counts[of]) > 1 {
				t.Errorf("%s + %s: %s %v, perf has %s", l.Address, word[5], of, p.Counts[of], word[9+k])
			}
		}
		if fmt.Sprint(perfRecords(p.Counts)) != word[12] {
			t.Errorf("%s + %s: %v records, perf has %s", l.Address, word[5], perfRecords(p.Counts), word[12])
		}
		return
	}
	t.Errorf("%s has no place %s at %s", l.Address, word[5], word[8])
}

// TestC2C checks what perf does not say: how threads share lines, their data and nodes, and
// refusals.
func TestC2C(t *testing.T) {
	file := hardware.Write(t, "perf.data", hardware.Memory(t, hardware.Sharing))
	r := shared(t, file)
	if len(r.Lines) != 2 || r.Size != 64 {
		t.Fatalf("%d lines of %d bytes, want 2 of 64", len(r.Lines), r.Size)
	}
	first, second := r.Lines[0], r.Lines[1]
	if first.Sharing != "false" || first.Threads != 2 || first.Data != "anonymous memory" || fmt.Sprint(first.Nodes) != "[0 1]" || second.Sharing != "both" || second.Threads != 3 {
		t.Errorf("%+v", r.Lines)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--line", "x", file}, "not an address"},
		{[]string{"--line", "0x10", file}, "no shared line has the address 0x10"},
		{[]string{"../../examples/stacks.data"}, "name no accesses to memory"},
	} {
		var out, msg bytes.Buffer
		status := Main(t.Context(), append([]string{"c2c"}, c.args...), strings.NewReader(""), &out, &msg)
		if status == 0 || !strings.Contains(msg.String(), c.want) || strings.Count(msg.String(), "\n") != 1 {
			t.Errorf("%v: status %d, %q", c.args, status, msg.String())
		}
	}
	if out := runMain(t, "c2c", "--line", "0x7f0000000084", file); !strings.Contains(out, "line 0x7f0000000080") || !strings.Contains(out, "set apart what threads do not share") {
		t.Error(out)
	}
}

// TestExampleSharing has the recording of the examples of docs/c2c.md, which is made here.
func TestExampleSharing(t *testing.T) {
	t.Parallel()
	const example = "../../examples/sharing.data"
	b := hardware.Memory(t, hardware.Sharing)
	if *update {
		if err := os.WriteFile(example, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(example); err != nil || string(got) != string(b) {
		t.Errorf("%s is not what is made here (%v)", example, err)
	}
}

// TestC2CProcesses has two processes that map the same memory at different addresses. Lines
// of shared mappings are one for both, as for perf; those of private mappings, of the same
// file as well, are a process's own.
func TestC2CProcesses(t *testing.T) {
	const parts = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime | perffile.SampleAddr | perffile.SampleCPU | perffile.SampleWeight | perffile.SampleDataSrc
	f := hardware.New(t, &perfdata.Event{Name: "cpu/mem-loads,ldlat=30/P", Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x1cd, Precise: 3, SampleType: parts}},
		&perfdata.Event{Name: "cpu/mem-stores/P", Attr: perfdata.Attr{Type: perffile.TypeRaw, Config: 0x82d0, Precise: 3, SampleType: parts}})
	at := map[uint64]uint64{42: 0x7e0000000000, 50: 0x7d0000400000}
	time := uint64(1000)
	for _, pid := range []int{42, 50} {
		f.Process("//anon", pid, pid)
		for i, m := range []struct {
			flags uint32
			inode uint64
			name  string
		}{{1, 77, "/dev/shm/ring"}, {2, 78, "/tmp/copied"}, {1, 79, "/memfd:x (deleted)"}} {
			f.Add(&perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser) | perffile.MiscMmapData}, PID: pid, TID: pid,
				Addr: at[uint64(pid)] + uint64(i)<<20, Len: 1 << 16, PgOff: 0x1000, Maj: 8, Min: 1, Inode: m.inode + uint64(i/2*(pid-42)), Prot: 3, Flags: m.flags, Filename: []byte(m.name)},
				perfdata.Trailer{PID: pid, TID: pid, Time: 2})
		}
	}
	for range 60 {
		for _, pid := range []uint64{42, 50} {
			for m := range uint64(3) {
				time += 1000
				addr := at[pid] + m<<20 + 0x80 + pid/8%2*8
				f.Sample(hardware.User, 1, 0x400010+m, pid|pid<<32, time, addr, pid/8%2, 100, hardware.LoadHITM)
				f.Sample(hardware.User, 2, 0x400020+m, pid|pid<<32, time+1, addr, pid/8%2, 0, hardware.StoreL1)
			}
		}
	}
	file := hardware.Write(t, "perf.data", f.Bytes(&perfdata.Features{Hostname: "test", Arch: "x86_64", CPUID: "GenuineIntel,6,85,4", CPUs: 4, Online: 4, Cmdline: []string{"perf", "c2c", "record"},
		NUMA: []perfdata.NUMANode{{Node: 0, CPUs: "0-3"}}, PMUs: []perfdata.PMU{{Type: 4, Name: "cpu"}}}))
	threads := map[int]int{} // lines by their number of threads
	for _, l := range shared(t, file).Lines {
		threads[l.Threads]++
		if l.Threads == 2 && (l.Counts["loads"] != 120 || l.Counts["stores"] != 120 || l.Sharing != "false") {
			t.Errorf("%s: %v, %s", l.Address, l.Counts, l.Sharing)
		}
	}
	out := hardware.Perf(t, "c2c", "report", "--stdio", "--no-source", "-d", "tot", "-i", file)
	if !regexp.MustCompile(`(?m)^ +0 +0x7e0000000080 .* 120 +120 +0 +240 `).MatchString(out) || !regexp.MustCompile(`Total Shared Cache Lines +: +4\n`).MatchString(out) {
		t.Errorf("perf has other lines: it joins the copies, too\n%s", out)
	}
	// The memfds have one name, and are two; lines of one process stay in the list for
	// their loads from other caches.
	if threads[2] != 1 || threads[1] != 4 {
		t.Errorf("lines by threads: %v", threads)
	}
}
