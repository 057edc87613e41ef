package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	"github.com/cyclestack/cyclestack/internal/testperf/hardware"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A sampler writes a recording whose counts are known: each event happens so often at each
// address, and is sampled once in a period. What is left of a period at one address goes over
// to the next: sums are right to a period.
type sampler struct {
	t      testing.TB
	f      *os.File
	w      *perfwrite.Writer
	events []*perfdata.Event
	time   uint64
}

// A sampledEvent is an event of a recording.
type sampledEvent struct {
	name    string
	period  uint64
	precise uint8
	more    perfdata.SampleType // that samples hold
}

const samplerType = perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime

func newSampler(t testing.TB, file string, events ...sampledEvent) *sampler {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &sampler{t: t, f: f}
	for i, e := range events {
		s.events = append(s.events, &perfdata.Event{Name: e.name, IDs: []uint64{uint64(i + 1)}, Attr: perfdata.Attr{
			Type: perffile.TypeRaw, SamplePeriod: e.period, Precise: e.precise, Flags: perffile.FlagSampleIDAll, SampleType: samplerType | e.more}})
	}
	if s.w, err = perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: s.events}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sampler) mmap(addr, size, offset uint64, file string) {
	s.t.Helper()
	m := &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeUser)}, PID: 42, TID: 42, Addr: addr, Len: size, PgOff: offset, Filename: []byte(file)}
	if err := s.w.WriteRecord(m, perfdata.Trailer{ID: 1}); err != nil {
		s.t.Fatal(err)
	}
}

// happened samples an event that happened n times in all, evenly at some addresses.
func (s *sampler) happened(event int, n float64, addrs ...uint64) {
	s.t.Helper()
	period := s.events[event].SamplePeriod
	left := 0.0
	for _, addr := range addrs {
		left += n / float64(len(addrs))
		for left >= float64(period)/2 {
			left -= float64(period)
			s.sample(event, addr)
		}
	}
}

func (s *sampler) sample(event int, addr uint64) {
	s.t.Helper()
	s.time += 20_000
	misc := uint16(perfdata.ModeUser)
	if s.events[event].Precise > 0 {
		misc |= uint16(perffile.MiscExactIP)
	}
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), misc), 40)
	b = le.AppendUint64(le.AppendUint64(b, uint64(event+1)), addr)
	if _, err := s.w.Write(le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 42), 42), s.time)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sampler) close(cpu string) {
	s.t.Helper()
	if err := s.w.Close(&perfdata.Features{CPUID: cpu, Cmdline: []string{"perf", "record", "--", "./solve"}}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// core2 is the identification of a Core 2.
const core2 = "GenuineIntel,6,15,11"

// The code of solve in examples/annotate/bin/solve, as objdump shows it.
var (
	solveChase = []uint64{0x4000f6, 0x4000fa, 0x4000fd, 0x400100}
	solveInner = []uint64{0x40012e, 0x400131, 0x400135, 0x400138, 0x40013c, 0x40013f}
	solveOuter = []uint64{0x400141, 0x400144, 0x400148, 0x40014b, 0x40014e, 0x400150, 0x400154, 0x400159, 0x40015c}
	solveStart = []uint64{0x4000e8, 0x4000eb, 0x4000ee, 0x4000f0}
)

// recordSolve writes a recording of solve on a Core 2: the events of the first pass,
// sample-after values scaled by penalty. It is called a million times: the list has 1000 nodes
// and the matrix 100 rows of 20. Half of the steps along the list miss the caches, and the
// program waits for them. Some loads of the matrix miss too, but the program does not wait for
// these.
func recordSolve(t testing.TB, file string) {
	t.Helper()
	const sav = 4e7
	s := newSampler(t, file, sampledEvent{"CPU_CLK_UNHALTED.CORE", sav, 0, 0}, sampledEvent{"RS_UOPS_DISPATCHED.CYCLES_NONE", sav, 0, 0},
		sampledEvent{"UOPS_RETIRED.ANY", 5 * sav, 0, 0}, sampledEvent{"UOPS_RETIRED.FUSED", 5 * sav, 0, 0}, sampledEvent{"RS_UOPS_DISPATCHED", 5 * sav, 0, 0},
		sampledEvent{"MEM_LOAD_RETIRED.L2_LINE_MISS", sav / 200, 2, 0}, sampledEvent{"INST_RETIRED.ANY_P", sav / 4, 2, 0})
	s.mmap(0x400000, 0x1000, 0, "/bin/solve")
	const calls = 1e6
	chase, inner, outer := 1000*calls, 2000*calls, 100*calls
	loop := func(n float64, cycles, stalls, missed float64, insts []uint64, load, waits uint64) {
		s.happened(0, n*stalls, waits)
		s.happened(0, n*(cycles-stalls), insts...)
		s.happened(1, n*stalls, waits)
		s.happened(2, n*float64(len(insts)), insts...)
		s.happened(3, n*0.25, load)
		s.happened(4, n*float64(len(insts)+1), insts...)
		s.happened(5, n*missed, load)
		s.happened(6, n*float64(len(insts)), insts...)
	}
	loop(chase, 10, 7, 0.05, solveChase, 0x4000fa, 0x4000fd)
	loop(inner, 2, 0, 0.004, solveInner, 0x40012e, 0x400131)
	loop(outer, 4, 0, 0, solveOuter, 0x400150, 0x400150)
	s.happened(6, calls*float64(len(solveStart)), solveStart...)
	s.close(core2)
}

// TestAnnotateExample has the recording of the examples, which is made here: -update
// makes it anew.
func TestAnnotateExample(t *testing.T) {
	const name = "../../examples/annotate.data"
	if *update {
		recordSolve(t, name)
	}
	file := filepath.Join(t.TempDir(), "perf.data")
	recordSolve(t, file)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what is made here (%v)", name, err)
	}
}

// solveRoot has the program and its source.
const solveRoot = "../../examples/annotate"

// An annotated is what the tests read of an annotation in JSON.
type annotated struct {
	Model    struct{ Name string }
	Source   struct{ Measured bool }
	Function struct {
		Name, Module, Start, End string
		annotatedPart
	}
	Costs []struct {
		Node, Stalls string
		Hidden       float64
	}
	Lines []struct {
		File, Text string
		Line       int
		annotatedPart
	}
	Instructions []annotatedInst
	Blocks       []struct {
		Start      string
		Loop       int
		Executions *executed
		Cycles     *executed
		Branch     *struct {
			Taken               int
			Mispredicted, Error float64
		}
		annotatedPart
	}
	Loops      []annotatedLoop
	Executions string
	Relative   bool
	Notes      []string
}

type annotatedInst struct {
	Addr, Text string
	Line       int
	annotatedPart
}

type annotatedLoop struct {
	Header              string
	Depth, Inside       int
	Iterations, Entries *executed
	Trips               float64
	TripsError          float64   `json:"trips_error"`
	Cycles              *executed `json:"cycles_per_iteration"`
	First               int       `json:"first_line"`
	Last                int       `json:"last_line"`
	PerIteration        []struct {
		Event        string
		Value, Error float64
	} `json:"per_iteration"`
	annotatedPart
}

type annotatedPart struct {
	Share, Error float64
	OfRun        float64 `json:"share_of_run"`
	Samples      int
	Nodes        []struct {
		Node, Verdict        string
		Value, Error, Amount float64
		Reliable             bool
	}
	Counts []struct {
		Event          string
		Value, Samples float64
	}
}

type executed struct {
	Value, Error float64
	Samples      int
}

// node is a part's figure of a node, 0 if it has none.
func (p *annotatedPart) node(path string) (value float64, verdict string) {
	for _, n := range p.Nodes {
		if n.Node == path {
			return n.Value, n.Verdict
		}
	}
	return 0, ""
}

// annotateJSON annotates in JSON, which must be as its schema says.
func annotateJSON(t testing.TB, args ...string) annotated {
	t.Helper()
	text := runMain(t, append([]string{"annotate", "--format", "json"}, args...)...)
	if err := testschema.Validate(t, testschema.Rendered(t, "annotation"), text); err != nil {
		t.Errorf("annotate %s: %v", strings.Join(args, " "), err)
	}
	var out annotated
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func nearly(got, want, within float64) bool { return math.Abs(got-want) <= within }

// TestAnnotate has the figures that the recording was made from.
func TestAnnotate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	recordSolve(t, file)
	a := annotateJSON(t, "--sysroot", solveRoot, file, "solve")
	if a.Model.Name != "core2-cycles" || a.Function.Name != "solve" || a.Function.Start != "0x4000e8" || a.Function.OfRun != 1 {
		t.Errorf("got %s, %+v", a.Model.Name, a.Function)
	}
	const cycles = 10e9 + 4e9 + 0.4e9
	lines, insts, stalls := 0.0, 0.0, 0.0
	for _, l := range a.Lines {
		lines += l.Share
	}
	for _, i := range a.Instructions {
		insts += i.Share
		v, _ := i.node("Cycles.Stalls")
		stalls += v
	}
	if !nearly(lines, 1, 1e-9) || !nearly(insts, 1, 1e-9) || !nearly(stalls, 7e9/cycles, 0.01) {
		t.Errorf("shares of lines add up to %v, those of instructions to %v, and stalls to %v", lines, insts, stalls)
	}
	const miss = "Cycles.Stalls.L2_Miss"
	verdicts := map[string]string{}
	for _, i := range a.Instructions {
		if v, verdict := i.node(miss); v > 0 {
			verdicts[i.Addr] = verdict
		}
	}
	if len(verdicts) != 2 || verdicts["0x4000fa"] != "stalls" || verdicts["0x40012e"] != "hidden" {
		t.Errorf("verdicts %v", verdicts)
	}
	for _, l := range a.Lines {
		if _, verdict := l.node(miss); l.Line == 20 && verdict != "hidden" || l.Line == 13 && verdict != "stalls" {
			t.Errorf("line %d: %s", l.Line, verdict)
		}
	}
	for _, c := range a.Costs {
		if want := 0.004 * 2e9 * 165 / cycles; c.Node == miss && (c.Stalls != "Cycles.Stalls" || !nearly(c.Hidden, want, 0.01)) {
			t.Errorf("%+v, want %v hidden", c, want)
		}
	}
	if a.Executions != "INST_RETIRED.ANY_P" || len(a.Loops) != 3 {
		t.Fatalf("executions by %s, %d loops", a.Executions, len(a.Loops))
	}
	for i, want := range []float64{1e9, 1e8, 2e9} {
		l := &a.Loops[i]
		if l.Iterations == nil || !nearly(l.Iterations.Value, want, l.Iterations.Error) || l.Iterations.Error > want/2 {
			t.Errorf("loop %d: %+v, want %v iterations", i+1, l.Iterations, want)
		}
		for _, p := range l.PerIteration {
			events := map[string]float64{"CPU_CLK_UNHALTED.CORE": []float64{10, 44, 2}[i], "INST_RETIRED.ANY_P": []float64{4, 129, 6}[i], "MEM_LOAD_RETIRED.L2_LINE_MISS": []float64{0.05, 0.08, 0.004}[i]}
			if want := events[p.Event]; want > 0 && (!nearly(p.Value, want, p.Error) || p.Error > want/2) {
				t.Errorf("loop %d, %s: %v ± %v in an iteration, want %v", i+1, p.Event, p.Value, p.Error, want)
			}
		}
	}
	if l := a.Loops[2]; l.Inside != 2 || !nearly(l.Trips, 20, l.TripsError) || l.TripsError > 10 || l.First != 19 {
		t.Errorf("inner loop: %+v", l)
	}
}

// TestAnnotateSimulated: what a simulator counted is exact, at lines that have no
// addresses, and is not called measured.
func TestAnnotateSimulated(t *testing.T) {
	t.Parallel()
	c := annotateJSON(t, "../simulation/internal/valgrind/testdata/calls.callgrind", "work")
	if c.Source.Measured || c.Function.Start != "" || len(c.Instructions) != 0 {
		t.Errorf("got %+v of %+v, and %d instructions", c.Source, c.Function, len(c.Instructions))
	}
	counted := func(p *annotatedPart, event string) float64 {
		for _, k := range p.Counts {
			if k.Event == event {
				return k.Value
			}
		}
		return 0
	}
	sum := 0.0
	for i := range c.Lines {
		sum += counted(&c.Lines[i].annotatedPart, "Ir")
	}
	if want := counted(&c.Function.annotatedPart, "Ir"); want == 0 || sum != want {
		t.Errorf("the lines have %v instructions, the function %v", sum, want)
	}
	if a := annotateJSON(t, "--sysroot", solveRoot, "../../examples/annotate.data", "solve"); !a.Source.Measured || a.Function.Start == "" {
		t.Errorf("of samples: %+v of %+v", a.Source, a.Function)
	}
}

// TestAnnotateCSV has the same figures as JSON.
func TestAnnotateCSV(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	recordSolve(t, file)
	a := annotateJSON(t, "--sysroot", solveRoot, file)
	rows, err := csv.NewReader(strings.NewReader(runMain(t, "annotate", "--format", "csv", "--sysroot", solveRoot, file))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	kinds := map[string]int{}
	for _, row := range rows[1:] {
		get := func(name string) string { return row[column[name]] }
		kinds[get("kind")]++
		if get("kind") != "instruction" || get("node") != "Cycles.Stalls" {
			continue
		}
		for _, i := range a.Instructions {
			if v, _ := i.node("Cycles.Stalls"); i.Addr == get("addr") && strconv.FormatFloat(v, 'g', -1, 64) != get("value") {
				t.Errorf("%s: %s, in JSON %v", i.Addr, get("value"), v)
			}
		}
	}
	for _, k := range []string{"function", "line", "instruction", "block", "loop"} {
		if kinds[k] == 0 {
			t.Errorf("no row of a %s", k)
		}
	}
}

// TestAnnotateWithoutCode annotates without the program: the addresses remain, and
// the mark of hidden events.
func TestAnnotateWithoutCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	recordSolve(t, file)
	a := annotateJSON(t, "--sysroot", t.TempDir(), file)
	if len(a.Instructions) != len(solveChase)+len(solveInner)+len(solveOuter) || len(a.Loops) != 0 || a.Function.OfRun != 1 {
		t.Errorf("%d instructions, %d loops, %+v", len(a.Instructions), len(a.Loops), a.Function)
	}
	if len(a.Notes) == 0 || !strings.Contains(strings.Join(a.Notes, " "), "only addresses") {
		t.Errorf("notes %q", a.Notes)
	}
	for _, i := range a.Instructions {
		if _, verdict := i.node("Cycles.Stalls.L2_Miss"); i.Addr == "0x12e" && verdict != "hidden here" || i.Addr == "0xfa" && verdict != "stalls" {
			t.Errorf("%s: %s", i.Addr, verdict)
		}
	}
}

// TestAnnotateBranches has executions and trips by branch stacks: those of an event
// that counts taken branches are absolute.
func TestAnnotateBranches(t *testing.T) {
	for _, test := range []struct {
		event    string
		relative bool
	}{{"BR_INST_RETIRED.NEAR_TAKEN", false}, {"CPU_CLK_UNHALTED.THREAD", true}} {
		file := filepath.Join(t.TempDir(), "perf.data")
		const period = 1000
		recordStacks(t, file, test.event, period)
		a := annotateJSON(t, "--sysroot", solveRoot, file)
		if a.Relative != test.relative || !strings.HasPrefix(a.Executions, "branch stacks") || len(a.Loops) != 3 {
			t.Fatalf("%s: relative %v, by %s, %d loops", test.event, a.Relative, a.Executions, len(a.Loops))
		}
		for i, want := range []float64{10, 5, 20} {
			if l := a.Loops[i]; !nearly(l.Trips, want, l.TripsError) || l.TripsError > want/2 {
				t.Errorf("%s, loop %d: %v ± %v trips, want %v", test.event, i+1, l.Trips, l.TripsError, want)
			}
		}
		// Each call has 9 branches back along the list and 5 × 19 along rows. It has the
		// jump to the first row, 5 jumps into rows and 4 back. Call and return are one each.
		if it := a.Loops[2].Iterations; !test.relative && !nearly(it.Value, stackCalls*100, it.Error) {
			t.Errorf("%+v iterations, want %v", it, stackCalls*100)
		}
		if list, row := a.Loops[0].Cycles, a.Loops[2].Cycles; list == nil || list.Value != 12 || row == nil || row.Value != 4 {
			t.Errorf("cycles of iterations: %+v and %+v, want 12 and 4", list, row)
		}
		for _, b := range a.Blocks {
			switch {
			case b.Start == "0x4000f6" && (b.Cycles == nil || b.Cycles.Value != 12 || b.Branch == nil || b.Branch.Mispredicted != 0):
				t.Errorf("the block of the list: %+v, %+v, want 12 cycles, nothing mispredicted", b.Cycles, b.Branch)
			case b.Branch != nil && b.Branch.Mispredicted > 0 && !nearly(b.Branch.Mispredicted, 0.5, b.Branch.Error):
				t.Errorf("block %s: %+v mispredicted, want a half", b.Start, b.Branch)
			}
		}
	}
}

// TestTakenBranchesLikePerf compares the account of branch stacks with the branches that perf
// script prints: how many there are at each address, mispredicted, and their cycles.
func TestTakenBranchesLikePerf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	recordStacks(t, file, "CPU_CLK_UNHALTED.THREAD", 1000)
	type tally struct{ branches, mispredicted, cycles, after float64 }
	want := map[uint64]*tally{}
	for line := range strings.Lines(hardware.Perf(t, "script", "-F", "brstack", "-i", file)) {
		words := strings.Fields(line)
		for i, w := range words {
			part := strings.Split(w, "/")
			from, err := strconv.ParseUint(part[0], 0, 64)
			cycles, err2 := strconv.ParseFloat(part[5], 64)
			if err != nil || err2 != nil {
				t.Fatalf("perf: %q", w)
			}
			x := want[from]
			if x == nil {
				x = &tally{}
				want[from] = x
			}
			x.branches++
			x.cycles += cycles
			if part[2] == "M" {
				x.mispredicted++
			}
			if i+1 < len(words) && strings.Contains(words[i+1], "/M/") {
				x.after += cycles
			}
		}
	}
	var r struct {
		Accounts []struct {
			Scope  struct{ Addr string }
			Counts []struct {
				Event string
				Value float64
			}
		}
	}
	out := runMain(t, "report", "--model", "taken-branches", "--by", "instruction", "--all", "--format", "json", "--sysroot", solveRoot, file)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, a := range r.Accounts {
		addr, err := strconv.ParseUint(a.Scope.Addr, 0, 64)
		if err != nil {
			continue // the whole
		}
		x, got := want[addr], map[string]float64{}
		for _, c := range a.Counts {
			got[c.Event] = c.Value
		}
		if got["taken.branches"] == 0 {
			continue // where a sample was taken
		}
		if found++; x == nil || got["taken.branches"] != x.branches || got["taken.mispredicted"] != x.mispredicted || got["taken.cycles"] != x.cycles || got["taken.after_misprediction_cycles"] != x.after {
			t.Errorf("%#x: %v, perf has %+v", addr, got, x)
		}
	}
	if found != len(want) || found < 5 {
		t.Errorf("%d addresses, perf has %d", found, len(want))
	}
}

// stackCalls is how often solve is called in recordStacks.
const stackCalls = 2000

// recordStacks writes a recording of solve with the stack of the last 16 branches, sampled
// regularly: a list of 10 and a matrix of 5 rows of 20. An iteration of the list takes 12
// cycles and one of a row 4. The jump from the list is mispredicted every other time.
func recordStacks(t testing.TB, file, event string, period int) {
	t.Helper()
	s := newSampler(t, file, sampledEvent{event, uint64(period), 0, perffile.SampleBranchStack})
	s.mmap(0x400000, 0x1000, 0, "/bin/solve")
	var stack [16][3]uint64
	n, lists := 0, 0
	taken := func(from, to uint64) {
		flags, cycles := uint64(2), uint64(20)
		switch from {
		case 0x400100:
			cycles = 12
		case 0x40013f:
			cycles = 4
		case 0x400124:
			if lists++; lists%2 == 0 {
				flags = 1
			}
		}
		copy(stack[1:], stack[:])
		stack[0] = [3]uint64{from, to, flags | cycles<<4}
		if n++; n%period == 0 {
			s.stack(to, stack[:])
		}
	}
	for range stackCalls {
		taken(0x400190, 0x4000e8)
		for range 9 {
			taken(0x400100, 0x4000f6)
		}
		taken(0x400124, 0x400150)
		for row := range 5 {
			taken(0x40015c, 0x40012e)
			for range 19 {
				taken(0x40013f, 0x40012e)
			}
			if row == 4 {
				taken(0x40014e, 0x400160)
			}
		}
		taken(0x400164, 0x400195)
	}
	s.close("GenuineIntel,6,85,4")
}

// stack writes a sample with a branch stack.
func (s *sampler) stack(ip uint64, stack [][3]uint64) {
	s.t.Helper()
	s.time += 20_000
	le := binary.LittleEndian
	size := 8 + 4*8 + 8 + 24*len(stack)
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, uint32(perffile.RecordSample)), uint16(perfdata.ModeUser)), uint16(size))
	b = le.AppendUint64(le.AppendUint64(b, 1), ip)
	b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 42), 42), s.time)
	b = le.AppendUint64(b, uint64(len(stack)))
	for _, e := range stack {
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, e[0]), e[1]), e[2])
	}
	if _, err := s.w.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// TestAnnotateWidths has lines that fit into terminals of usual widths, and something
// for those of others.
func TestAnnotateWidths(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"--full", "--source-only", "--asm-only"} {
		for _, root := range []string{solveRoot, t.TempDir()} {
			for _, width := range []int{1, 7, 20, 40, 80, 90, 100, 120, 160, 200} {
				out := runMain(t, "annotate", "--width", strconv.Itoa(width), mode, "--sysroot", root, "../../examples/annotate.data")
				if width < 80 {
					continue
				}
				for line := range strings.Lines(out) {
					if n := len([]rune(strings.TrimRight(line, "\n"))); n > width && !strings.Contains(line, root) {
						t.Errorf("%s, width %d: a line of %d: %s", mode, width, n, line)
					}
				}
			}
		}
	}
}

// TestAnnotateMissing says of a file that is not there how to make one.
func TestAnnotateMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for args, want := range map[string]string{
		"annotate nofile":      "nor is there a file nofile",
		"annotate nofile main": "cyclestack record -o nofile makes a recording",
	} {
		if _, stderr, status := call(testkernel.Skylake(1), strings.Fields(args)...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q; want %q", args, status, stderr, want)
		}
	}
	if _, stderr, _ := call(testkernel.Skylake(1), "annotate", "--format", "none", "nofile"); strings.Contains(stderr, "nofile") {
		t.Errorf("a wrong format: %q", stderr)
	}
}
