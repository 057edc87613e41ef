package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/internal/testshared"
)

// countsByAddr returns the counts of a report by instruction, by the address.
func countsByAddr(t *testing.T, args ...string) map[uint64]map[string]float64 {
	t.Helper()
	var r struct {
		Accounts []struct {
			Scope  struct{ Addr string }
			Counts []struct {
				Event string
				Value float64
			}
		}
	}
	out := runMain(t, append([]string{"report", "--by", "instruction", "--all", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	found := map[uint64]map[string]float64{}
	for _, a := range r.Accounts {
		if addr, err := strconv.ParseUint(a.Scope.Addr, 0, 64); err == nil {
			found[addr] = map[string]float64{}
			for _, c := range a.Counts {
				found[addr][c.Event] = c.Value
			}
		}
	}
	return found
}

// sameCounts compares counts by address with those that perf's output comes to.
func sameCounts(t *testing.T, got, want map[uint64]map[string]float64) {
	t.Helper()
	if len(got) != len(want) || len(want) < 10 {
		t.Errorf("%d addresses, perf has %d", len(got), len(want))
	}
	for addr, counts := range want {
		for name, v := range counts {
			if got[addr][name] != v {
				t.Errorf("%#x: %s %v, perf has %v", addr, name, got[addr][name], v)
			}
		}
	}
}

// The address that programs of these recordings are mapped at. There is no file, so that
// instructions have their offsets.
const mappedAt = 0x400000

// TestSPELikePerf compares the counts of each instruction with the samples that perf script
// makes of the AUX area.
func TestSPELikePerf(t *testing.T) {
	file := hardware.Write(t, "perf.data", hardware.SPE(t, hardware.Midrs["neoverse"], map[int][]byte{
		0: hardware.Area(hardware.RandomSPE(1500, 1, 42, 43)), 1: hardware.Area(hardware.RandomSPE(1500, 2, 43))}))
	want := map[uint64]map[string]float64{}
	const period = 1024
	for line := range strings.Lines(hardware.Perf(t, "script", "--itrace=i1i", "-F", "hw:ip,weight", "-i", file)) {
		word := strings.Fields(line)
		ip, err := strconv.ParseUint(word[1], 16, 64)
		weight, err2 := strconv.ParseFloat(word[0], 64)
		if err != nil || err2 != nil {
			t.Fatalf("perf: %q", line)
		}
		x := want[ip-mappedAt]
		if x == nil {
			x = map[string]float64{}
			want[ip-mappedAt] = x
		}
		x["op.cycles"] += weight * period
		x["op.instructions"] += period
	}
	sameCounts(t, countsByAddr(t, file), want)
	if by := runMain(t, "report", "--by", "thread", "--format", "csv", file); !strings.Contains(by, "program-42") || !strings.Contains(by, "program-43") {
		t.Errorf("by thread: %s", by)
	}
}

var ibsField = regexp.MustCompile(`(CompToRetCtr|TagToRetCtr|OpBrnTaken|OpBrnMisp|LdOp|StOp|DcMiss|SwPf|DcMissLat|DcL1TlbMiss|TlbRefillLat) +([0-9]+)`)

// TestIBSLikePerf compares the counts of each instruction with sums of the fields that perf
// report -D prints.
func TestIBSLikePerf(t *testing.T) {
	t.Parallel()
	for name, cpu := range hardware.AMDs {
		file := hardware.Write(t, "perf.data", hardware.IBS(t, cpu, "program", hardware.RandomIBS(3000, 7), nil))
		want := map[uint64]map[string]float64{}
		const period = 1000
		var at map[string]float64
		f := map[string]float64{}
		add := func() {
			if at == nil {
				return
			}
			at["op.instructions"] += period
			at["op.cycles"] += period * f["TagToRetCtr"]
			at["op.retire_cycles"] += period * f["CompToRetCtr"]
			at["branch.taken"] += period * f["OpBrnTaken"]
			at["branch.mispredicted"] += period * f["OpBrnMisp"]
			if f["LdOp"] == 1 && f["SwPf"] == 0 {
				at["load.instructions"] += period
				at["load.cycles"] += period * f["DcMiss"] * f["DcMissLat"]
				at["op.translation_cycles"] += period * f["DcL1TlbMiss"] * f["TlbRefillLat"]
			}
			clear(f)
		}
		for line := range strings.Lines(hardware.Perf(t, "report", "-D", "-i", file)) {
			if addr, ok := strings.CutPrefix(line, "IbsOpRip:\t"); ok {
				add()
				ip, err := strconv.ParseUint(strings.TrimSpace(addr), 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				if at = want[ip-mappedAt]; at == nil {
					at = map[string]float64{}
					want[ip-mappedAt] = at
				}
			}
			if strings.HasPrefix(line, "ibs_op_data") {
				for _, m := range ibsField.FindAllStringSubmatch(line, -1) {
					f[m[1]], _ = strconv.ParseFloat(m[2], 64)
				}
			}
		}
		add()
		t.Run(name, func(t *testing.T) { sameCounts(t, countsByAddr(t, file), want) })
	}
}

// memGroups are perf's names of levels, and the groups of latency --by level in them. They
// are those of hardware.RandomMemory.
var memGroups = map[string][]string{"L1 or L1 hit": {"L1"}, "L2 or L2 hit": {"L2"}, "L3 or L3 hit": {"L3", "L3, modified there"}, "L3 miss": {"L3 miss"}, "LFB/MAB or LFB/MAB hit": {"LFB"},
	"Local RAM or RAM hit": {"RAM"}, "Remote node, same socket RAM hit": {"RAM of another node"}, "Uncached or L8 hit": {"uncached"}, "Remote Remote Cache (1 hop) or Any cache": {"remote cache"},
	"Remote Remote Cache (1 hop) or Any cache hit": {"remote cache, modified there", "cache of another core, modified there"}, "Remote node, same socket Any cache hit": {"cache of another node"}}

// snoopGroups are those of --by snoop. Perf 6.1 has no word for a peer.
var snoopGroups = map[string][]string{"None": {"None"}, "N/A": {"N/A", "Peer"}, "HitM": {"HitM"}, "Hit": {"Hit"}, "None or Miss": {"Miss"}}

// tlbGroups are those of --by tlb.
var tlbGroups = map[string][]string{"L1 or L2 hit": {"L1 or L2 hit"}, "L1 or Walker hit": {"L1 or Walker hit"}, "N/A": {"N/A"}}

var memLine = regexp.MustCompile(`(?m)^ +[0-9.]+% +([0-9]+)  (.*\S)\s*$`)

// TestLatencyLikePerf compares the loads of each level, snoop and translation with perf mem
// report.
func TestLatencyLikePerf(t *testing.T) {
	file := hardware.Write(t, "perf.data", hardware.Memory(t, hardware.RandomMemory(5000, 24)))
	for by, groups := range map[string]map[string][]string{"level": memGroups, "snoop": snoopGroups, "tlb": tlbGroups} {
		var r latencyReport
		if err := json.Unmarshal([]byte(runMain(t, "latency", "--by", by, "--format", "json", file)), &r); err != nil {
			t.Fatal(err)
		}
		samples := map[string]int{}
		for _, g := range r.Sampled[0].Groups {
			samples[g.Name] = g.Samples
		}
		sort := by
		if by == "level" {
			sort = "mem"
		}
		out := hardware.Perf(t, "mem", "report", "--stdio", "-n", "--sort="+sort, "-i", file)
		out, _, _ = strings.Cut(out, "# Samples: 768") // of stores
		if want := fmt.Sprintf("# Total weight : %.0f\n", r.Sampled[0].All.Cycles/1000); !strings.Contains(out, want) {
			t.Errorf("perf does not have %q", want)
		}
		found := 0
		for _, m := range memLine.FindAllStringSubmatch(out, -1) {
			sum := 0
			for _, name := range groups[m[2]] {
				sum += samples[name]
			}
			if found++; strconv.Itoa(sum) != m[1] {
				t.Errorf("by %s: %s has %d samples, perf has %s", by, m[2], sum, m[1])
			}
		}
		if found < len(groups) {
			t.Errorf("by %s: perf has %d lines of %d", by, found, len(groups))
		}
	}
}

// TestAnnotateHardware has the account of each instruction of a program in annotate: a load
// that waits for memory, and a branch that is mispredicted.
func TestAnnotateHardware(t *testing.T) {
	const (
		slow, quick, branch = 0x4000fa, 0x40012e, 0x400100 // of solve: a load of the list, one of a row, the branch of the list
		memory              = 1 | 1<<7 | 1<<17 | 1<<20 | 300<<32
		near                = 1 | 1<<17
	)
	var ops []hardware.IBSOp
	for i := range uint64(400) {
		ops = append(ops, hardware.IBSOp{IP: slow, Addr: 0x7f0000000000 + 64*i, Data: 20 | 400<<16, Data2: 3, Data3: memory},
			hardware.IBSOp{IP: quick, Addr: 0x7f0000000000, Data: 5 | 25<<16, Data3: near},
			hardware.IBSOp{IP: branch, Data: 2 | 20<<16 | 1<<37 | 1<<35 | (i&3/3)<<36})
	}
	file := hardware.Write(t, "perf.data", hardware.IBS(t, hardware.AMDs["zen4"], "/bin/solve", ops, nil))
	a := annotateJSON(t, "--sysroot", solveRoot, file, "solve")
	if a.Model.Name != "instruction-samples" {
		t.Errorf("the method is %s", a.Model.Name)
	}
	const all = 400 + 25 + 20 // cycles in flight
	for _, i := range a.Instructions {
		m, _ := i.node("Latency.Memory")
		retire, _ := i.node("Latency.Waiting_To_Retire")
		missed, _ := i.node("Mispredict_Ratio")
		switch i.Addr {
		case "0x4000fa":
			if !nearly(i.Share, 400.0/all, 1e-9) || !nearly(m, 300.0/all, 1e-9) || !nearly(retire, 20.0/all, 1e-9) {
				t.Errorf("the slow load: share %v, memory %v, retirement %v", i.Share, m, retire)
			}
		case "0x40012e":
			if !nearly(i.Share, 25.0/all, 1e-9) || m != 0 {
				t.Errorf("the quick load: share %v, memory %v", i.Share, m)
			}
		case "0x400100":
			if !nearly(missed, 25, 1e-9) {
				t.Errorf("the branch: %v %% mispredicted, want 25", missed)
			}
		}
	}
}

// TestPublishedBranchStacks compares published recordings of Intel's and AMD's processors with
// what perf script prints: branches, those mispredicted and predicted, and cycles.
func TestPublishedBranchStacks(t *testing.T) {
	t.Parallel()
	dir := testshared.Dir(t, "corpus", "perfdata")
	for _, name := range []string{"quipper-perf.data.branch-4.14", "quipper-perf.data.branch_stack_spec", "quipper-perf.data.raw_callgraph_branch-3.4", "jbeich-testdata_perf_b.data"} {
		file := filepath.Join(dir, name)
		want := map[string]float64{}
		for _, w := range strings.Fields(hardware.Perf(t, "script", "-F", "brstack", "-i", file)) {
			part := strings.Split(w, "/")
			cycles, err := strconv.ParseFloat(part[5], 64)
			if err != nil {
				t.Fatalf("%s: perf: %q", name, w)
			}
			want["taken.branches"]++
			want["taken.cycles"] += cycles
			want["taken.mispredicted"] += float64(strings.Count(part[1]+part[2], "M"))
			want["taken.known"] += float64(strings.Count(part[1]+part[2], "M") + strings.Count(part[1]+part[2], "P"))
		}
		var r struct {
			Accounts []struct {
				Counts []struct {
					Event string
					Value float64
				}
			}
		}
		if err := json.Unmarshal([]byte(runMain(t, "report", "--model", "taken-branches", "--by", "module", "--format", "json", file)), &r); err != nil {
			t.Fatal(err)
		}
		compared := 0
		for _, c := range r.Accounts[0].Counts {
			v, ok := want[c.Event]
			if ok {
				compared++
			}
			if ok && v != c.Value {
				t.Errorf("%s: %s %v, perf has %v", name, c.Event, c.Value, v)
			}
		}
		if want["taken.branches"] == 0 || compared != len(want) {
			t.Errorf("%s: %d counts compared, perf has %v", name, compared, want)
		}
	}
}

// TestDamagedHardware has notes about registers and packets that cannot be read. The rest
// counts.
func TestDamagedHardware(t *testing.T) {
	ops := hardware.RandomIBS(20, 1)
	b := hardware.IBS(t, hardware.AMDs["zen4"], "program", ops, nil)
	valid := hardware.Words(1<<17|1<<18|1<<19|0x1000, ops[3].IP)
	at := bytes.Index(b, valid)
	if at < 0 {
		t.Fatal("the recording has no such op")
	}
	copy(b[at:], hardware.Words(0))
	out := runMain(t, "report", "--by", "function", "--format", "json", hardware.Write(t, "ibs.data", b))
	if !strings.Contains(out, "1 samples of IBS have no registers that can be read") {
		t.Error(out)
	}
	area := hardware.Area(hardware.RandomSPE(20, 1, 42))
	area[5*64] = 0xff
	out = runMain(t, "report", "--by", "function", "--format", "json", hardware.Write(t, "spe.data", hardware.SPE(t, hardware.Midrs["neoverse"], map[int][]byte{0: area})))
	if !strings.Contains(out, "bytes of the SPE trace are no packets") {
		t.Error(out)
	}
	whole := hardware.SPE(t, hardware.Midrs["neoverse"], map[int][]byte{0: hardware.Area(hardware.RandomSPE(20, 1, 42))})
	for _, n := range []int{len(whole) / 4, len(whole) / 2, len(whole) - 100} {
		var out, msg bytes.Buffer
		status := Main(t.Context(), []string{"report", "--by", "function", hardware.Write(t, "cut.data", whole[:n])}, strings.NewReader(""), &out, &msg)
		if status > 4 || status != 0 && strings.Count(msg.String(), "\n") != 1 {
			t.Errorf("cut to %d bytes: status %d: %s", n, status, msg.String())
		}
	}
}
