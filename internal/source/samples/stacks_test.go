package samples_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// chained is what samples with callchains hold.
const chained = sampleType | perffile.SampleCallchain

// newAttrRecording begins a recording of one event.
func newAttrRecording(t testing.TB, a perfdata.Attr) *recording {
	t.Helper()
	return newNamedRecording(t, "cycles", a)
}

// newNamedRecording is newAttrRecording for an event of another name.
func newNamedRecording(t testing.TB, name string, a perfdata.Attr) *recording {
	t.Helper()
	a.Flags |= perffile.FlagSampleIDAll
	r := &recording{t: t, e: []*perfdata.Event{{Name: name, IDs: []uint64{1}, Attr: a}}}
	var err error
	if r.w, err = perfwrite.NewWriter(&r.out, perfwrite.WriterOptions{Events: r.e}); err != nil {
		t.Fatal(err)
	}
	return r
}

// chain adds a sample of process 7 with a callchain, and what follows it.
func (r *recording) chain(mode perfdata.Mode, time, period uint64, chain []uint64, rest ...uint64) {
	le := binary.LittleEndian
	ip := uint64(0)
	for _, a := range chain {
		if ip == 0 && a < perffile.ContextMax {
			ip = a
		}
	}
	b := le.AppendUint64(nil, 1)
	b = le.AppendUint64(b, ip)
	b = le.AppendUint32(le.AppendUint32(b, 7), 7)
	b = le.AppendUint64(le.AppendUint64(b, time), period)
	b = le.AppendUint64(b, uint64(len(chain)))
	for _, w := range slices.Concat(chain, rest) {
		b = le.AppendUint64(b, w)
	}
	r.raw(b, perfdata.Misc(mode))
}

// program maps the code of process 7, whose functions perfMap names, and gives it a
// name.
func (r *recording) program() {
	r.add(1, &perfdata.Comm{PID: 7, TID: 7, Comm: []byte("prog")})
	r.mmap(2, 7, 0x10000, "//anon")
	r.add(2, &perfdata.Mmap{Header: perfdata.Header{Misc: perfdata.Misc(perfdata.ModeKernel)}, PID: -1, Addr: 0xffffffff80000000, Len: 0x1000000,
		Filename: []byte("[kernel.kallsyms]_text"), PgOff: 0xffffffff80000000})
}

const programMap = "10000 100 main\n10100 100 work\n10200 100 leaf\n10300 100 last\n"

// stacksOf reads the stacks of a recording of program.
func stacksOf(t testing.TB, r *recording, opts samples.Options) *samples.Stacks {
	t.Helper()
	opts.Symbols = profile.Config{Root: perfMap(t, t.TempDir(), "tmp/perf-7.map", programMap)}
	if opts.By == counts.Run {
		opts.By = counts.Function
	}
	s, err := samples.ReadStacks(bytes.NewReader(r.bytes()), "test.data", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// text writes the stacks in one line each, with the counts of the first event.
func text(s *samples.Stacks) map[string]float64 {
	out := map[string]float64{}
	for x := range s.All() {
		parts := []string{x.Thread}
		for _, f := range x.Frames {
			parts = append(parts, frameText(f))
		}
		out[strings.Join(parts, ";")] += x.Cells[0].Value
	}
	return out
}

func frameText(f *samples.Frame) string {
	name := f.Function
	switch {
	case f.Kind == samples.ModuleFrame:
		name = "<" + f.Module + ">"
	case f.Kind == samples.TruncatedFrame:
		name = "<truncated>"
	case name == "":
		name = "[" + f.Module + "]"
	}
	if f.Line > 0 {
		name += fmt.Sprintf(":%d", f.Line)
	}
	if f.Inlined {
		name += "_[i]"
	}
	return name
}

func want(t testing.TB, got, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stacks (-want +got):\n%s", diff)
	}
}

func TestStacksOfCallchains(t *testing.T) {
	const user, kernel = perffile.ContextUser, perffile.ContextKernel
	for _, tt := range []struct {
		name  string
		mode  perfdata.Mode
		chain []uint64
		want  string
	}{
		{"user", perfdata.ModeUser, []uint64{user, 0x10210, 0x10110, 0x10010}, "prog;main;work;leaf"},
		{"recursion", perfdata.ModeUser, []uint64{user, 0x10210, 0x10110, 0x10110, 0x10120, 0x10010}, "prog;main;work;work;work;leaf"},
		// A call that is its function's last instruction returns to the next function.
		{"last instruction", perfdata.ModeUser, []uint64{user, 0x10210, 0x10200, 0x10010}, "prog;main;work;leaf"},
		// A sample at a function's first instruction is in it.
		{"first instruction", perfdata.ModeUser, []uint64{user, 0x10200, 0x10110}, "prog;work;leaf"},
		{"kernel and user", perfdata.ModeKernel, []uint64{kernel, 0xffffffff80000010, user, 0x10200, 0x10110}, "prog;work;leaf;[[kernel.kallsyms]]"},
		{"kernel alone", perfdata.ModeKernel, []uint64{kernel, 0xffffffff80000010}, "prog;[[kernel.kallsyms]]"},
		{"without markers", perfdata.ModeUser, []uint64{0x10210, 0x10110}, "prog;work;leaf"},
		{"nowhere", perfdata.ModeUser, []uint64{user, 0x99990000, 0x10110}, "prog;work;[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
			r.program()
			r.chain(tt.mode, 10, 1000, tt.chain)
			r.chain(tt.mode, 11, 500, tt.chain)
			s := stacksOf(t, r, samples.Options{})
			want(t, text(s), map[string]float64{tt.want: 1500})
			if !s.Callchains() || s.Len() != 1 {
				t.Errorf("callchains %v, %d stacks; want 1", s.Callchains(), s.Len())
			}
		})
	}
}

// TestStacksOfPreciseSamples: the innermost frame is where the sample says, and not
// where the interrupt found the program.
func TestStacksOfPreciseSamples(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained, Precise: 2})
	r.program()
	le := binary.LittleEndian
	b := le.AppendUint64(nil, 1)
	b = le.AppendUint64(b, 0x10210) // leaf
	b = le.AppendUint32(le.AppendUint32(b, 7), 7)
	b = le.AppendUint64(le.AppendUint64(b, 10), 1000)
	for _, w := range []uint64{3, perffile.ContextUser, 0x10110, 0x10010} { // of work
		b = le.AppendUint64(b, w)
	}
	r.raw(b, perfdata.Misc(perfdata.ModeUser)|perffile.MiscExactIP)
	want(t, text(stacksOf(t, r, samples.Options{})), map[string]float64{"prog;main;leaf": 1000})
}

// TestStacksInOrder: stacks that begin alike follow each other, in the order of their names.
func TestStacksInOrder(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.program()
	for i, chain := range [][]uint64{{0x10210, 0x10110, 0x10010}, {0x10310}, {0x10310, 0x10010}, {0x10110, 0x10010}, {0x10010}, {0x10210, 0x10310}} {
		r.chain(perfdata.ModeUser, uint64(10+i), 1, append([]uint64{perffile.ContextUser}, chain...))
	}
	var got []string
	for x := range stacksOf(t, r, samples.Options{}).All() {
		var names []string
		for _, f := range x.Frames {
			names = append(names, f.Function)
		}
		got = append(got, strings.Join(names, ";"))
	}
	if want := []string{"last", "last;leaf", "main", "main;last", "main;work", "main;work;leaf"}; !slices.Equal(got, want) {
		t.Errorf("stacks %q, want %q", got, want)
	}
}

func TestStacksThatWereTruncated(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained, MaxStack: 3})
	r.program()
	r.chain(perfdata.ModeUser, 10, 1, []uint64{perffile.ContextUser, 0x10210, 0x10110, 0x10110})
	r.chain(perfdata.ModeUser, 11, 2, []uint64{perffile.ContextUser, 0x10210, 0x10110})
	s := stacksOf(t, r, samples.Options{})
	want(t, text(s), map[string]float64{"prog;<truncated>;work;work;leaf": 1, "prog;work;leaf": 2})
	if n := s.Notes(); len(n) != 1 || !strings.Contains(n[0].Text, "1 callchains are as long as can be recorded") {
		t.Errorf("notes %q", n)
	}
}

// TestStacksOfBranchRecords: of calls that the processor remembered (--call-graph lbr)
// the user's part of the callchain is not used.
func TestStacksOfBranchRecords(t *testing.T) {
	const callStack = 1 << 11
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained | perffile.SampleBranchStack, BranchType: callStack})
	r.program()
	branches := []uint64{2, 0x10110, 0x10200, 0, 0x10010, 0x10100, 0} // main called work, which called leaf
	r.chain(perfdata.ModeUser, 10, 100, []uint64{perffile.ContextUser, 0x10210, 0x10310}, branches...)
	r.chain(perfdata.ModeKernel, 11, 10, []uint64{perffile.ContextKernel, 0xffffffff80000010, perffile.ContextUser, 0x10310}, branches...)
	r.chain(perfdata.ModeUser, 12, 1, []uint64{perffile.ContextUser, 0x10210, 0x10110}, 0)
	want(t, text(stacksOf(t, r, samples.Options{})), map[string]float64{
		"prog;main;work;leaf": 100, "prog;main;work;leaf;[[kernel.kallsyms]]": 10, "prog;work;leaf": 1})
}

// TestStacksWithBoth: where the user's callchain was recorded, the copy of the stack is not
// unwound as well.
func TestStacksWithBoth(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained | perffile.SampleStackUser, StackUser: 16})
	r.program()
	r.chain(perfdata.ModeUser, 10, 1000, []uint64{perffile.ContextUser, 0x10210, 0x10010}, 16, 0, 0, 16)
	want(t, text(stacksOf(t, r, samples.Options{})), map[string]float64{"prog;main;leaf": 1000})
}

func TestStacksWithoutCallchains(t *testing.T) {
	r := newRecording(t, sampleType, "cycles", "instructions")
	r.program()
	r.sample(1, 7, 0x10210, 10, 100, perfdata.Misc(perfdata.ModeUser))
	r.sample(2, 7, 0x10210, 11, 70, perfdata.Misc(perfdata.ModeUser))
	r.sample(1, 7, 0x10010, 12, 10, perfdata.Misc(perfdata.ModeUser))
	s := stacksOf(t, r, samples.Options{})
	want(t, text(s), map[string]float64{"prog;<perf-7.map>;leaf": 100, "prog;<perf-7.map>;main": 10})
	for x := range s.All() {
		row := s.Table().Row(x.Place)
		if row[0].Value != x.Cells[0].Value || row[1].Value != x.Cells[1].Value {
			t.Errorf("%s has counts %v, %v, and its place %s %v, %v", x.Frames[1].Function, x.Cells[0].Value, x.Cells[1].Value,
				s.Table().Scopes[x.Place].Label, row[0].Value, row[1].Value)
		}
	}
}

func TestStacksByKind(t *testing.T) {
	for by, w := range map[counts.Kind]map[string]float64{
		counts.Module:      {"prog;<perf-7.map>": 3},
		counts.Function:    {"prog;main;work;leaf": 3},
		counts.Instruction: {"prog;main;work;leaf": 3},
	} {
		r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
		r.program()
		r.chain(perfdata.ModeUser, 10, 1, []uint64{perffile.ContextUser, 0x10210, 0x10110, 0x10010})
		r.chain(perfdata.ModeUser, 10, 2, []uint64{perffile.ContextUser, 0x10214, 0x10110, 0x10010})
		s := stacksOf(t, r, samples.Options{By: by})
		want(t, text(s), w)
		if n := s.Len(); (n == 2) != (by == counts.Instruction) {
			t.Errorf("by %s: %d stacks", by, n)
		}
	}
}

// TestStacksOfAFilter: what does not count is in no stack, and in no place.
func TestStacksOfAFilter(t *testing.T) {
	for name, f := range map[string]samples.Filter{
		"thread": {Threads: []string{"prog"}}, "process": {Processes: []string{"7"}}, "function": {Functions: []string{"leaf"}},
		"time": {Time: &samples.Window{From: 0, To: 5e-9}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
			r.program()
			r.chain(perfdata.ModeUser, 10, 1, []uint64{perffile.ContextUser, 0x10210, 0x10010})
			r.add(20, &perfdata.Comm{PID: 7, TID: 7, Comm: []byte("other")})
			r.chain(perfdata.ModeUser, 30, 2, []uint64{perffile.ContextUser, 0x10110, 0x10010})
			s := stacksOf(t, r, samples.Options{Filter: f})
			w := map[string]float64{"prog;main;leaf": 1}
			if name == "process" {
				w["other;main;work"] = 2
			}
			want(t, text(s), w)
			total := 0.0
			for v := range maps.Values(w) {
				total += v
			}
			if got := s.Table().Cell(0, 0).Value; got != total {
				t.Errorf("the whole is %v, want %v", got, total)
			}
		})
	}
}

// TestStacksAddUp: whatever the order of the file, the stacks are those of the places.
func TestStacksAddUp(t *testing.T) {
	for _, name := range []string{"dwarf.data", "group.data", "threads.data", "pipe.data", "zstd.data"} {
		t.Run(name, func(t *testing.T) {
			s, err := open(t, filepath.Join("..", "..", "..", "source", "perfdata", "testdata", name)).Stacks(samples.Options{By: counts.Function})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			table := s.Table()
			sums := counts.NewTable(table.Layout)
			for x := range s.All() {
				for col := range x.Cells {
					sums.Cell(x.Place, col).Value += x.Cells[col].Value
					sums.Cell(0, col).Value += x.Cells[col].Value
				}
			}
			for row := range table.Scopes {
				for col := range table.Columns {
					if got, want := sums.Cell(row, col).Value, table.Cell(row, col).Value; table.Cell(row, col).Ok() && math.Abs(got-want) > 1e-9*want {
						t.Errorf("%s of %s: %v in its stacks, %v in all", table.Columns[col].Event, table.Scopes[row].Label, got, want)
					}
				}
			}
		})
	}
}

// TestStacksOfAStream reads what cannot be read twice.
func TestStacksOfAStream(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.program()
	r.chain(perfdata.ModeUser, 10, 7, []uint64{perffile.ContextUser, 0x10210, 0x10010})
	root := perfMap(t, t.TempDir(), "tmp/perf-7.map", programMap)
	stream := struct{ *bytes.Buffer }{bytes.NewBuffer(r.bytes())}
	rec, err := source.New(stream, "-")
	if err != nil {
		t.Fatal(err)
	}
	s, err := rec.Stacks(samples.Options{By: counts.Function, Symbols: profile.Config{Root: root}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want(t, text(s), map[string]float64{"prog;main;leaf": 7})
}

func TestStacksOfNothing(t *testing.T) {
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.program()
	if _, err := samples.ReadStacks(bytes.NewReader(r.bytes()), "test.data", samples.Options{By: counts.Function}); err == nil || !strings.Contains(err.Error(), "test.data") {
		t.Errorf("error %v", err)
	}
}

// TestStacksAgainstPerf compares the stacks of a recording that is made on the spot with
// those that perf script prints.
func TestStacksAgainstPerf(t *testing.T) {
	t.Parallel()
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("there is no perf")
	}
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	dir := t.TempDir()
	program, data := filepath.Join(dir, "deep"), filepath.Join(dir, "perf.data")
	run := func(name string, args ...string) []byte {
		t.Helper()
		var out []byte
		// Some versions of perf abort now and then when they look for build ids.
		for range 5 {
			cmd := exec.Command(name, args...)
			cmd.Dir = dir
			if out, err = cmd.Output(); err == nil {
				return out
			}
		}
		t.Skipf("%s %s: %v", name, strings.Join(args, " "), err)
		return nil
	}
	run(compiler, "-O0", "-fno-omit-frame-pointer", "-o", program, must(filepath.Abs("testdata/deep.c")))
	run(perf, "record", "-q", "-g", "-e", "cpu-clock:u", "-c", "500000", "-o", data, program)
	perfScript := collapse(run(perf, "script", "-i", data, "-F", "comm,ip,sym"))
	s, err := open(t, data).Stacks(samples.Options{By: counts.Function})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := map[string]float64{}
	for x := range s.All() {
		parts := []string{x.Thread}
		for _, f := range x.Frames {
			name := f.Function
			if name == "" {
				name = "[unknown]"
			}
			parts = append(parts, name)
		}
		got[strings.Join(parts, ";")] += float64(x.Cells[0].Samples)
	}
	if perfScript["deep;main;work;recurse;recurse;recurse;leaf"]+perfScript["deep;__libc_start_call_main;main;work;recurse;recurse;recurse;leaf"] == 0 {
		t.Fatalf("perf script has not the program's stacks: %v", perfScript)
	}
	// Of the start of a process perf names what a call returns to, and not the call.
	started := func(stack string, _ float64) bool { return !strings.Contains(stack, ";main") }
	maps.DeleteFunc(got, started)
	maps.DeleteFunc(perfScript, started)
	want(t, got, perfScript)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// collapse makes a line of each sample that perf script prints, as
// stackcollapse-perf.pl does, and counts them.
func collapse(script []byte) map[string]float64 {
	out := map[string]float64{}
	for sample := range strings.SplitSeq(string(script), "\n\n") {
		lines := strings.Split(strings.Trim(sample, "\n"), "\n")
		if len(lines) < 2 {
			continue
		}
		parts := []string{strings.TrimSpace(lines[0])}
		for _, l := range slices.Backward(lines[1:]) {
			_, name, _ := strings.Cut(strings.TrimSpace(l), " ")
			parts = append(parts, name)
		}
		out[strings.Join(parts, ";")]++
	}
	return out
}

// TestPublishedStacksAgainstPerf compares recordings that others published with what
// perf script prints of them: without symbols, each frame is its module.
func TestPublishedStacksAgainstPerf(t *testing.T) {
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip("there is no perf")
	}
	module := func(name string) string {
		if name == "" {
			return "unknown"
		}
		return strings.TrimSuffix(strings.Trim(path.Base(name), "[]()"), ".ko")
	}
	frame := regexp.MustCompile(`^\s*[0-9a-f]+ .* \((.*)\)$`)
	for file, stacks := range map[string]int{"quipper-perf.data.callgraph-3.8": 257, "quipper-perf.data.raw_callgraph_branch-3.4": 125} {
		t.Run(file, func(t *testing.T) {
			file := testshared.Dir(t, "corpus", "perfdata", file)
			out, err := exec.Command(perf, "script", "-i", file, "-F", "comm,ip,sym,dso").Output()
			if err != nil {
				t.Skipf("perf script: %v", err)
			}
			perfScript := map[string]float64{}
			for sample := range strings.SplitSeq(string(out), "\n\n") {
				lines := strings.Split(strings.Trim(sample, "\n"), "\n")
				parts := []string{strings.TrimSpace(lines[0])}
				for _, l := range slices.Backward(lines[1:]) {
					if m := frame.FindStringSubmatch(l); m != nil {
						parts = append(parts, module(m[1]))
					} else {
						parts = append(parts, strings.TrimSpace(l))
					}
				}
				if len(parts) > 1 {
					perfScript[strings.Join(parts, ";")]++
				}
			}
			s, err := open(t, file).Stacks(samples.Options{By: counts.Function, Symbols: profile.Config{Root: t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got := map[string]float64{}
			for x := range s.All() {
				parts := []string{x.Thread}
				for _, f := range x.Frames {
					parts = append(parts, module(f.Module))
				}
				got[strings.Join(parts, ";")] += float64(x.Cells[0].Samples)
			}
			if len(got) != stacks {
				t.Errorf("%d stacks, want %d", len(got), stacks)
			}
			want(t, got, perfScript)
		})
	}
}

// manyStacks are the samples of a recording with one heavy stack and so many others, and what
// they count.
func manyStacks(t *testing.T, many int) (r *recording, total float64) {
	const callers = 12
	r = newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.add(1, &perfdata.Comm{PID: 7, TID: 7, Comm: []byte("prog")})
	r.mmap(2, 7, 0x10000, "//anon")
	chain := func(i int) []uint64 {
		list := []uint64{perffile.ContextUser, 0x10310}
		for range callers {
			list = append(list, 0x10010+uint64(i%4)*0x100)
			i /= 4
		}
		return append(list, 0x10110)
	}
	for i := range many {
		r.chain(perfdata.ModeUser, uint64(10+i), 1, chain(i*7919))
		total++
		if i%10 == 0 {
			r.chain(perfdata.ModeUser, uint64(10+i), 5, []uint64{perffile.ContextUser, 0x10210, 0x10010})
			total += 5
		}
	}
	return r, total
}

// TestSpans: what stacks counted in intervals adds up to what they counted, also if some are
// folded. Where there is no room for intervals, there are none.
func TestSpans(t *testing.T) {
	const many, each = 20000, 1000
	r, _ := manyStacks(t, many)
	for _, memory := range []int{0, 2 << 20} {
		s := stacksOf(t, r, samples.Options{Within: by(counts.Interval), Interval: each, StackMemory: memory})
		sums, n := make([]float64, s.Len()), 0
		for span := range s.Spans() {
			here := 0.0
			for _, p := range span.Parts {
				sums[p.Stack] += p.Cells[0].Value
				here += p.Cells[0].Value
			}
			if want := float64(each + 5*each/10); here != want && n < many/each-1 {
				t.Errorf("memory %d: interval %d has %v, want %v", memory, n, here, want)
			}
			if want := float64(n*each) / 1e9; math.Abs(span.Start-want) > 1e-12 {
				t.Errorf("memory %d: interval %d begins at %v, want %v", memory, n, span.Start, want)
			}
			n++
		}
		folded := 0.0
		for x := range s.All() {
			if sums[x.Number] != x.Cells[0].Value {
				t.Errorf("memory %d: a stack of %v has %v in intervals", memory, x.Cells[0].Value, sums[x.Number])
			}
			if x.Frames[len(x.Frames)-1].Kind == samples.OthersFrame {
				folded += x.Cells[0].Value
			}
		}
		if n != many/each || s.Crowded() || (folded > 0) != (memory > 0) {
			t.Errorf("memory %d: %d intervals, %v folded, crowded: %v", memory, n, folded, s.Crowded())
		}
	}
	for _, calls := range []int{0, 1} {
		s := stacksOf(t, r, samples.Options{Within: by(counts.Interval), Interval: 1, StackMemory: 1, StackCalls: calls})
		for range s.Spans() {
			t.Errorf("at most %d calls: there are intervals", calls)
		}
		if !s.Crowded() || s.Len() < 10 && calls == 0 || s.Len() == 0 {
			t.Errorf("at most %d calls: crowded: %v; %d stacks", calls, s.Crowded(), s.Len())
		}
	}
}

// TestStacksInParts: callchains that exceed the memory become stacks part by part, and the
// stacks are those of all callchains at once. Some samples repeat a callchain of another part,
// with the same period or another one.
func TestStacksInParts(t *testing.T) {
	const many, again = 50000, 3 // 34 bytes and two calls each, where some 700 kB are for them
	r := newAttrRecording(t, perfdata.Attr{SampleType: chained})
	r.program()
	want := map[string]float64{}
	for i := range uint64(many * again) {
		leaf, caller := 0x10301+i*7%many%250, 0x10010+i*7%many/250
		period := 1 + i/many%2*4
		r.chain(perfdata.ModeUser, 10+i, period, []uint64{perffile.ContextUser, leaf, caller + 1})
		want["main;last"] += float64(period)
	}
	for _, memory := range []int{1, 0} {
		got := map[string]float64{}
		s := stacksOf(t, r, samples.Options{StackMemory: memory})
		for x := range s.All() {
			var names []string
			for _, f := range x.Frames {
				names = append(names, f.Function)
			}
			got[strings.Join(names, ";")] += x.Cells[0].Value
			if x.Cells[0].Samples != many*again {
				t.Errorf("memory %d: %v has %d samples", memory, names, x.Cells[0].Samples)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(s.Notes()) > 0 {
			t.Errorf("memory %d, notes %v (-want +got):\n%s", memory, s.Notes(), diff)
		}
	}
}

// TestStacksAreFolded: what exceeds the memory ends early. The heaviest stacks stay as they
// are, nothing is lost, and a note says how much was folded.
func TestStacksAreFolded(t *testing.T) {
	const many = 20000
	r, total := manyStacks(t, many)
	s := stacksOf(t, r, samples.Options{StackMemory: 1}) // the least that is possible
	sum, folded, heavy := 0.0, 0.0, 0.0
	for x := range s.All() {
		v := x.Cells[0].Value
		sum += v
		last := x.Frames[len(x.Frames)-1]
		if last.Kind == samples.OthersFrame {
			folded += v
			if x.Place != 0 {
				t.Errorf("a folded stack has the place %d", x.Place)
			}
		}
		if len(x.Frames) == 2 && x.Frames[0].Function == "main" && x.Frames[1].Function == "leaf" {
			heavy += v
		}
	}
	if sum != total || folded == 0 || heavy != 5*many/10 {
		t.Errorf("all stacks have %v samples of %v, %v folded, the heavy one %v of %v", sum, total, folded, heavy, 5*many/10)
	}
	if s.Len() >= many {
		t.Errorf("%d stacks are kept", s.Len())
	}
	notes := s.Notes()
	if len(notes) != 1 || !strings.Contains(notes[0].Text, "[other stacks]") {
		t.Errorf("notes %+v", notes)
	}
	all := stacksOf(t, r, samples.Options{})
	if all.Len() <= s.Len() || len(all.Notes()) != 0 {
		t.Errorf("with more memory %d stacks, notes %v", all.Len(), all.Notes())
	}
}
