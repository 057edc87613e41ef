package samples_test

import (
	"cmp"
	"debug/elf"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// unwindPrograms are recorded with copies of their stacks.
var unwindPrograms = []struct {
	name, build, source string
	want                string // calls that some stack must have, the outermost first
	long                bool
	perf                bool // perf 6.1 with libunwind unwinds it as well; of the others it has the innermost call
}{
	{"c", "gcc -O2 -fomit-frame-pointer", "signals.c", "main;recurse.*;recurse.*;spin", false, true},
	{"c-stripped", "gcc -O2 -fomit-frame-pointer -s", "signals.c", "qsort_r.*msort_with_tmp", true, true},
	{"c-debug-frame", "gcc -g -O2 -fno-asynchronous-unwind-tables -fno-exceptions", "signals.c", "main;recurse.*;recurse.*;spin", true, false},
	{"c-static", "gcc -O1 -static", "signals.c", "main;recurse.*;spin", true, false},
	{"c++", "g++ -g -O2", "throws.cc", "main;thrower.*;thrower.*;_Unwind_Resume", false, true},
	{"go", "go build", "deep.go", "runtime.main;main.main;main.deep;main.deep;main.deep", false, false},
	{"go-stripped", "go build -ldflags=-s", "deep.go", "runtime.main;main.main;main.deep;main.deep;main.deep", true, false},
}

// TestUnwindAgainstPerf compares stacks that are unwound from their copies with those of
// perf, which uses libunwind or libdw: sample by sample, each call's address and name.
func TestUnwindAgainstPerf(t *testing.T) {
	t.Parallel()
	for _, p := range unwindPrograms {
		t.Run(p.name, func(t *testing.T) {
			if p.long {
				testlong.Only(t)
			}
			data := recordStacks(t, p.build, p.source)
			here := stacksHere(t, data)
			if len(here) < 20 {
				t.Skipf("only %d samples", len(here))
			}
			has := regexp.MustCompile(p.want)
			if !slices.ContainsFunc(here, func(calls []stackCall) bool { return has.MatchString(stackText(calls)) }) {
				t.Errorf("no stack has %s", p.want)
			}
			found := compareStacks(t, here, stacksOfPerf(t, data), p.perf)
			if n := found[endsEarlier] - found[endsInKernel]; p.perf && n > 0 {
				t.Errorf("perf ends %d of %d stacks earlier", n, len(here))
			}
		})
	}
}

// TestUnwindOfSystem is TestUnwindAgainstPerf of programs as distributions have them.
func TestUnwindOfSystem(t *testing.T) {
	testlong.Only(t)
	dir := t.TempDir()
	compiler, _ := exec.Command("g++", "-print-prog-name=cc1plus").Output()
	if out, err := exec.Command("g++", "-E", "-o", filepath.Join(dir, "throws.ii"), "testdata/unwind/throws.cc").CombinedOutput(); err != nil {
		t.Logf("g++: %v: %s", err, out)
	}
	for _, p := range [][]string{
		{strings.TrimSpace(string(compiler)), "-fpreprocessed", "-quiet", "-O2", "-o", "/dev/null", filepath.Join(dir, "throws.ii")},
		{"perl", "-e", "sub f { my $n = shift; $n < 2 ? 1 : f($n-1) + f($n-2) } f(20); $h{$_ % 1000} .= $_ for 1..200000; $s = join ',', sort values %h; $s =~ s/(\\d+)(\\d)/$2$1/g"},
		{"/usr/bin/python3", "-c", "import json; x = [{'a': i, 'b': str(i)} for i in range(50000)]; sorted(json.loads(json.dumps(x)), key=lambda q: q['b'])"},
		{"sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x < 100000) insert into t select x, x%97 from c; create index i on t(b); select sum(a) from t where b > 50;"},
		{"bash", "-c", "for i in {1..20000}; do x=$((x+i)); y=${x//1/2}; done"},
		{"xz", "-T1", "-3", "-k", "-c", "/bin/bash"},
	} {
		t.Run(filepath.Base(p[0]), func(t *testing.T) {
			if _, err := exec.LookPath(p[0]); err != nil {
				t.Skip(err)
			}
			data := filepath.Join(t.TempDir(), "perf.data")
			cmd := exec.Command("perf", append([]string{"record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-m", "4M", "-c", "500000", "-o", data, "--"}, p...)...)
			if err := cmd.Run(); err != nil {
				t.Skipf("perf record: %v", err)
			}
			compareStacks(t, stacksHere(t, data), stacksOfPerf(t, data), true)
		})
	}
}

// A stackCall is a call of a sample's stack.
type stackCall struct {
	addr         uint64 // in the file
	name, module string
	truncated    bool // in place of calls that were not recorded
	data         bool // perf takes data of the module for a call
}

// stackText has the names of a stack's calls, the outermost first.
func stackText(calls []stackCall) string {
	var names []string
	for _, c := range slices.Backward(calls) {
		names = append(names, c.name)
	}
	return strings.Join(names, ";")
}

// stacksHere returns the stack of each sample in the order of time, the innermost call first. An interval of a
// nanosecond has one sample.
func stacksHere(t *testing.T, data string) (out [][]stackCall) {
	t.Helper()
	s, err := open(t, data).Stacks(samples.Options{By: counts.Instruction, NoInline: true, Within: counts.By(0).With(counts.Interval), Interval: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stacks := map[int][]stackCall{}
	for x := range s.All() {
		for _, f := range slices.Backward(x.Frames) {
			stacks[x.Number] = append(stacks[x.Number], stackCall{addr: f.Addr, name: f.Function, module: f.Module, truncated: f.Kind == samples.TruncatedFrame})
		}
	}
	if s.Crowded() {
		t.Fatal("no room for the samples")
	}
	for span := range s.Spans() {
		for _, p := range span.Parts {
			out = append(out, slices.Repeat([][]stackCall{stacks[p.Stack]}, int(p.Cells[0].Samples))...)
		}
	}
	return out
}

var (
	scriptSample = regexp.MustCompile(`^ *[0-9]+/[0-9]+ +([0-9]+)[.]([0-9]{9}):`)
	scriptFrame  = regexp.MustCompile(`^\s+([0-9a-f]+) (.*) \((.*)\)$`)
)

// stacksOfPerf is stacksHere of perf script, which prints offsets in files.
func stacksOfPerf(t *testing.T, data string) (out [][]stackCall) {
	t.Helper()
	text, err := exec.Command("perf", "script", "-i", data, "-F", "pid,tid,time,ip,sym,dso", "--ns", "--no-inline", "--max-stack", "2000").Output()
	if err != nil {
		t.Skipf("perf script: %v", err)
	}
	type sample struct {
		time  string
		calls []stackCall
	}
	var list []sample
	files := segments{}
	for line := range strings.Lines(string(text)) {
		if m := scriptSample.FindStringSubmatch(line); m != nil {
			list = append(list, sample{time: m[1] + m[2]})
		} else if m := scriptFrame.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && len(list) > 0 {
			x := &list[len(list)-1]
			addr, code := files.addr(m[3], must(strconv.ParseUint(m[1], 16, 64)))
			x.calls = append(x.calls, stackCall{addr: addr, name: m[2], module: m[3], data: !code})
		}
	}
	slices.SortStableFunc(list, func(a, b sample) int {
		return cmp.Or(cmp.Compare(len(a.time), len(b.time)), cmp.Compare(a.time, b.time))
	})
	for _, s := range list {
		out = append(out, s.calls)
	}
	return out
}

// segments are the code that is loaded of files, by name.
type segments map[string][]elf.ProgHeader

// addr returns the address of what is at an offset of a file, and whether it is code. Of a file that cannot be
// read all is code.
func (s segments) addr(module string, offset uint64) (addr uint64, code bool) {
	if _, ok := s[module]; !ok {
		s[module] = nil
		if f, err := elf.Open(module); err == nil {
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
					s[module] = append(s[module], p.ProgHeader)
				}
			}
			f.Close()
		}
	}
	for _, p := range s[module] {
		if offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return offset, len(s[module]) == 0
}

// The kinds of samples, by how their stacks compare. docs/profile.md explains them.
const (
	sameStack    = "same"
	signalByte   = "byte of a signal"
	unnamed      = "without symbol"
	otherName    = "another name"
	cutHere      = "cut"
	endsEarlier  = "perf ends earlier"
	endsInKernel = "perf ends earlier, in the kernel"
	outsideCode  = "perf outside code"
	different    = "different"
)

// compareStacks counts the samples by kind. None may be of the last one, unless perf lacks the tables and guesses. At
// most one of a hundred may have another name for an address.
func compareStacks(t *testing.T, here, peer [][]stackCall, perf bool) map[string]int {
	t.Helper()
	if len(here) != len(peer) {
		t.Fatalf("%d samples, perf has %d", len(here), len(peer))
	}
	found := map[string]int{}
	for i := range here {
		kind, at := stackKind(here[i], peer[i])
		if len(peer[i]) == 0 {
			kind = outsideCode // perf has not even the innermost call, once in some 2,000 samples
		}
		if found[kind]++; kind == endsEarlier && at > 0 && strings.HasPrefix(peer[i][at-1].module, "[kernel") {
			found[endsInKernel]++
		}
		if kind == different && found[kind] < 4 && (perf || at == 0) {
			t.Errorf("sample %d differs at call %d: here %+v, perf %+v", i, at, slices.Concat(here[i][at:], []stackCall{{}})[0], slices.Concat(peer[i][at:], []stackCall{{}})[0])
		}
	}
	if n := found[outsideCode]; perf && n > max(2, len(here)/50) {
		t.Errorf("perf goes outside code in %d of %d samples", n, len(here))
	}
	if found[otherName] > len(here)/100 {
		t.Errorf("%d of %d samples have other names in perf", found[otherName], len(here))
	}
	t.Logf("%d samples: %v", len(here), found)
	return found
}

// outside reports whether perf found no code for a call: it is in the heap, say, or in a library's data.
func outside(c stackCall) bool {
	return c.data || c.name == "[unknown]" && !strings.HasPrefix(c.module, "/") && !strings.HasPrefix(c.module, "[kernel")
}

// stackKind compares two stacks of a sample. It returns the number of the call that decides.
func stackKind(here, peer []stackCall) (kind string, at int) {
	kind = sameStack
	for at = range min(len(here), len(peer)) {
		a, b := here[at], peer[at]
		nowhere := outside(b)
		delta := b.addr - a.addr
		if at > 0 && strings.HasPrefix(b.module, "[kernel") {
			delta-- // perf prints what a call of the kernel returns to
		}
		switch {
		case a.truncated && nowhere && len(peer) == at+1:
			return cutHere, at
		case nowhere && (a.truncated || delta != 0):
			return outsideCode, at
		case a.truncated:
			return different, at
		case delta == math.MaxUint64 && at > 0: // perf takes one from addresses that no call returns to
			kind = signalByte
			continue
		case delta != 0:
			return different, at
		}
		switch plain := strings.NewReplacer("> >", ">>"); {
		case plain.Replace(a.name) == plain.Replace(b.name), strings.HasSuffix(a.name, "@plt"):
		case b.name == "[unknown]":
			if kind == sameStack {
				kind = unnamed
			}
		case b.module != "[kernel.kallsyms]":
			kind = otherName
		}
	}
	switch at = min(len(here), len(peer)); {
	case len(here) == len(peer):
		return kind, at
	case len(here) > len(peer) && here[at].truncated:
		return cutHere, at
	case len(here) > len(peer):
		return endsEarlier, at
	case outside(peer[at]):
		return outsideCode, at
	}
	return different, at
}

// recordStacks builds a program and records it with copies of its stack.
func recordStacks(t testing.TB, build, source string) string {
	t.Helper()
	return recordStacksOf(t, build, source, "-c", "500000")
}

// recordStacksOf is recordStacks with further arguments of perf record.
func recordStacksOf(t testing.TB, build, source string, args ...string) string {
	t.Helper()
	words := strings.Fields(build)
	for _, tool := range []string{"perf", words[0]} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	dir := t.TempDir()
	program, data := filepath.Join(dir, "prog"), filepath.Join(dir, "perf.data")
	src := must(filepath.Abs(filepath.Join("testdata", "unwind", source)))
	if out, err := exec.Command(words[0], append(words[1:], "-o", program, src)...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v\n%s", build, err, out)
	}
	for range 5 { // some versions of perf abort now and then
		words := append([]string{"record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-m", "4M", "-o", data}, args...)
		cmd := exec.Command("perf", append(words, program)...)
		cmd.Dir = dir
		if cmd.Run() == nil {
			return data
		}
	}
	t.Skip("perf record fails here")
	return ""
}
