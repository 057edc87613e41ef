package emulator

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// usual are the options of the tests.
func usual() Options {
	return Options{Core: pipeline.CoreOf("skylakex"), Period: 20_000, Warm: 2000, Windows: 1 << 20,
		Caches: caches.Config{L1I: caches.Size{Bytes: 32 << 10, Ways: 8}, L1D: caches.Size{Bytes: 32 << 10, Ways: 8}, L2: caches.Size{Bytes: 1 << 20, Ways: 16},
			L3: caches.Size{Bytes: 16 << 20, Ways: 16}, TLB1: caches.Size{Bytes: 64, Ways: 4}, TLB2: caches.Size{Bytes: 1536, Ways: 12}},
		Latencies: Latencies{L2: 10, L3: 46, Memory: 300, TLB: 7, Walk: 30, L3Line: 3, MemoryLine: 12}}
}

// emulated runs a program, or skips the test.
func emulated(t *testing.T, args ...string) *Simulation {
	t.Helper()
	return emulatedWith(t, usual(), args...)
}

func emulatedWith(t *testing.T, o Options, args ...string) *Simulation {
	t.Helper()
	target, err := TargetOf(args[0])
	if err != nil {
		t.Skip(err)
	}
	if err := Available(target); err != nil {
		t.Skip(err)
	}
	s, err := Run(t.Context(), Command{Args: args}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// compiled compiles a C program.
func compiled(t *testing.T, compiler, text string, options ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program+".c", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, append([]string{"-O1", "-g", "-o", program, program + ".c"}, options...)...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v: %s", compiler, err, out)
	}
	return program
}

// spent returns the cycles of a function, without mispredictions.
func (s *Simulation) spent(function string) (cycles float64) {
	for _, i := range s.run.code.ordered() {
		if i.file == nil {
			continue
		}
		for in := range s.run.code.sorted(i) {
			if f, ok := i.file.Symbol(in.addr); ok && f.Name == function && in.wasTimed() {
				cycles += in.whole(costIdeal) + in.whole(costWaits)
			}
		}
	}
	return cycles
}

// executed returns how often the instructions of a function were executed, all together and
// its first one.
func (s *Simulation) executed(t *testing.T, function string) (all, first int64) {
	t.Helper()
	for _, i := range s.run.code.ordered() {
		if i.file == nil {
			continue
		}
		for in := range s.run.code.sorted(i) {
			f, ok := i.file.Symbol(in.addr)
			if !ok || f.Name != function {
				continue
			}
			all += in.executed
			if in.addr == f.Addr {
				first += in.executed
			}
		}
	}
	return all, first
}

// TestCallers simulates a program with a library in headers. One line of it is inlined into
// the user's. Another one is called through a function nine times, and once directly.
func TestCallers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "include", "c++")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	header := `
static inline __attribute__((always_inline)) long inlined(long x) {
	for (int i = 0; i < 300000; i++) __asm__ volatile("imul %0, %0" : "+r"(x)); // 3
	return x;
}
static __attribute__((noinline)) long work(long x, long n) {
	for (long i = 0; i < n; i++) __asm__ volatile("imul %0, %0" : "+r"(x)); // 7
	return x;
}
static __attribute__((noinline)) long between(long x) { return work(x, 30000) + 1; }
`
	if err := os.WriteFile(filepath.Join(dir, "lib.h"), []byte(header), 0o666); err != nil {
		t.Fatal(err)
	}
	program := compiled(t, "gcc", `#include "lib.h"
int main(int argc, char **argv) {
	long sum = inlined(argc); // 3
	for (int i = 0; i < 9; i++)
		sum += between(i); // 5
	sum += work(sum, 30000); // 6
	return sum == 7;
}
`, "-I", dir)
	s := emulated(t, program)
	var kept strings.Builder
	if err := s.Write(&kept); err != nil {
		t.Fatal(err)
	}
	r := valgrind.NewReader(strings.NewReader(kept.String()), "kept", valgrind.Options{By: counts.Line})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	got := map[string]string{}
	for _, scope := range r.Table().Scopes {
		if c := scope.Caller; c != nil {
			got[fmt.Sprintf("%s:%d", filepath.Base(scope.Code.File), scope.Code.Line)] = fmt.Sprintf("%t %d %.2f", c.File == program+".c", c.Line, scope.CallerShare)
		}
	}
	if want := map[string]string{"lib.h:3": "true 3 1.00", "lib.h:7": "true 5 0.90"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

const counting = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int step(int x) { __asm__ volatile(""); return x * 3 + 1; }

static void *run(void *n) {
	int x = 0;
	for (long i = 0; i < (long)n; i++) x = step(x);
	return (void *)(long)x;
}

static char far[4 << 20];

int main(int argc, char **argv) {
	if (argc > 1 && !strcmp(argv[1], "threads")) {
		pthread_t t[4];
		for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)25000L);
		for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	} else if (argc > 1 && !strcmp(argv[1], "fork")) {
		for (int i = 0; i < 4; i++) {
			if (!fork()) { run((void *)20000L); _exit(0); }
			wait(0);
		}
		run((void *)20000L);
	} else if (argc > 1 && !strcmp(argv[1], "misses")) {
		if (!fork()) {
			for (unsigned i = 0; i < sizeof far; i += 128) far[i] = far[i + 64] = 1;
			run((void *)20000L);
			_exit(0);
		}
		wait(0);
		run((void *)80000L);
	} else if (argc > 1 && !strcmp(argv[1], "exec")) {
		for (int i = 0; i < 4; i++) {
			if (!fork()) execl("/bin/sh", "sh", "-c", "exec \"$0\" once", argv[0], (char *)0);
			wait(0);
		}
		run((void *)20000L);
	} else if (argc > 1 && !strcmp(argv[1], "once")) {
		run((void *)20000L);
	} else if (argc > 1 && !strcmp(argv[1], "die")) {
		run((void *)100000L);
		abort();
	} else {
		run((void *)100000L);
	}
	return 0;
}
`

// TestExecutions checks that each execution of a function is counted once, whatever thread or
// process it is in.
func TestExecutions(t *testing.T) {
	program := compiled(t, "gcc", counting, "-pthread")
	for _, how := range []string{"alone", "threads", "fork", "exec", "die"} {
		s := emulated(t, program, how)
		if _, n := s.executed(t, "step"); n != 100_000 {
			t.Errorf("%s: %d executions of 100,000", how, n)
		}
		if len(s.Notes) > 0 {
			t.Errorf("%s: %v", how, s.Notes)
		}
	}
}

// TestForkInSample: a process that is forked within a sample begins between samples, as its reader
// takes it. With the least distance nearly every block is in one.
func TestForkInSample(t *testing.T) {
	program := compiled(t, "gcc", counting, "-pthread")
	o := usual()
	o.Period = 4
	if _, n := emulatedWith(t, o, program, "misses").executed(t, "step"); n != 100_000 {
		t.Errorf("%d executions of 100,000", n)
	}
}

// TestSame checks that two runs of a program write the same.
func TestSame(t *testing.T) {
	program := compiled(t, "gcc", counting, "-pthread")
	var texts [2]bytes.Buffer
	for i := range texts {
		if err := emulated(t, program).Write(&texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) {
		t.Error("two runs differ")
	}
	if !strings.Contains(texts[0].String(), "\ntotals: ") {
		t.Error("there are no totals")
	}
}

// TestWindows checks that a program of few blocks has windows enough, whatever the longest
// distance. Together they stand for the whole run.
func TestWindows(t *testing.T) {
	s := emulated(t, compiled(t, "gcc", counting, "-pthread"), "once")
	if s.run.code.ops == nil {
		t.Skip("there is no model of a core for the programs of this machine")
	}
	var executed, stood float64
	for _, i := range s.run.code.ordered() {
		for in := range s.run.code.sorted(i) {
			if executed += float64(in.executed); in.wasTimed() {
				stood += in.timed * windowBlocks / (windowBlocks - fillBlocks)
			}
		}
	}
	if n := s.run.whole.windows; n < 10 || math.Abs(stood/executed-1) > 0.3 {
		t.Errorf("%d windows, which stand for %.0f of %.0f instructions", n, stood, executed)
	}
}

// TestForeign counts the executions of programs for other processors.
func TestForeign(t *testing.T) {
	for _, compiler := range []string{"aarch64-linux-gnu-gcc", "riscv64-linux-gnu-gcc"} {
		t.Run(compiler, func(t *testing.T) {
			s := emulated(t, compiled(t, compiler, counting, "-pthread", "-static"))
			if _, n := s.executed(t, "step"); n != 100_000 {
				t.Errorf("%d executions of 100,000", n)
			}
			var b bytes.Buffer
			if err := s.Write(&b); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestInterface reads what QEMU says of its version.
func TestInterface(t *testing.T) {
	for text, want := range map[string]int{
		"qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\n": 1, "qemu-x86_64 version 8.2.2 (Debian)": 1, "qemu-x86_64 version 9.0.0": 2,
		"qemu-x86_64 version 9.1.50": 3, "qemu-x86_64 version 9.2.0": 4, "qemu-x86_64 version 10.0.3": 4, "qemu-x86_64 version 10.1.0": 5, "qemu-x86_64 version 11.0.0": 6, "qemu-x86_64 version 11.1.0": 7,
		"qemu-x86_64 version 5.2.0": 0, "": 0, "qemu-x86_64 version x.y": 0,
	} {
		if got, err := interfaceIn(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestInterfaces builds the plugin for each version of QEMU's interface: without -long for the
// first, a middle one and the last.
func TestInterfaces(t *testing.T) {
	if _, err := compiler(); err != nil {
		t.Skip(err)
	}
	for api := 1; api <= 7; api += testlong.Size(3, 1) {
		if err := compile(t.Context(), api, filepath.Join(t.TempDir(), "plugin.so")); err != nil {
			t.Errorf("interface %d: %v", api, err)
		}
	}
}

// TestHasPlugins checks an emulator without plugins.
func TestHasPlugins(t *testing.T) {
	for help, ok := range map[string]bool{"-g  port\n-plugin  QEMU_PLUGIN  [file=]<file>\n": true, "-g  port\n": false} {
		file := filepath.Join(t.TempDir(), "qemu")
		if err := os.WriteFile(file, []byte("#!/bin/sh\nprintf '%s' '"+help+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := hasPlugins(file); (err == nil) != ok {
			t.Errorf("%q: %v", help, err)
		}
	}
}

// TestDecoded checks which instructions are found that need a treatment of their own.
func TestDecoded(t *testing.T) {
	for _, tt := range []struct {
		code             []byte
		streams, repeats bool
	}{
		{[]byte{0x66, 0x0f, 0xe7, 0x07}, true, false},       // movntdq %xmm0,(%rdi)
		{[]byte{0x0f, 0x2b, 0x07}, true, false},             // movntps
		{[]byte{0x48, 0x0f, 0xc3, 0x07}, true, false},       // movnti
		{[]byte{0xc5, 0xfd, 0xe7, 0x07}, true, false},       // vmovntdq %ymm0,(%rdi)
		{[]byte{0xc5, 0xfd, 0x6f, 0x07}, false, false},      // vmovdqa (%rdi),%ymm0
		{[]byte{0x0f, 0xe7, 0x07}, false, false},            // movntq, of MMX
		{[]byte{0xf3, 0x48, 0xab}, false, true},             // rep stos
		{[]byte{0xf3, 0xa4}, false, true},                   // rep movsb
		{[]byte{0xaa}, false, false},                        // stos
		{[]byte{0xf3, 0x0f, 0x10, 0x07}, false, false},      // movss
		{[]byte{0xf3, 0xc3}, false, false},                  // rep ret
		{[]byte{0x66, 0xf3, 0xab}, false, true},             // rep stos %ax
		{[]byte{0x48, 0x89, 0xe7}, false, false},            // mov %rsp,%rdi
		{[]byte{0xc4, 0x41, 0x7d, 0xe7, 0x00}, true, false}, // vmovntdq %ymm8,(%r8)
	} {
		if streams(tt.code) != tt.streams || repeats(tt.code) != tt.repeats {
			t.Errorf("%x: %v and %v, want %v and %v", tt.code, streams(tt.code), repeats(tt.code), tt.streams, tt.repeats)
		}
	}
}

// TestPrefetches checks which instructions ask for a line.
func TestPrefetches(t *testing.T) {
	for _, tt := range []struct {
		code []byte
		want bool
	}{
		{[]byte{0x0f, 0x18, 0x0c, 0x93}, true},        // prefetcht0 (%rbx,%rdx,4)
		{[]byte{0x41, 0x0f, 0x18, 0x00}, true},        // prefetchnta (%r8)
		{[]byte{0x0f, 0x0d, 0x0a}, true},              // prefetchw (%rdx)
		{[]byte{0x0f, 0x18, 0x22}, false},             // a hint to do nothing
		{[]byte{0x0f, 0x1f, 0x00}, false},             // nopl (%rax)
		{[]byte{0x48, 0x8b, 0x0f}, false},             // mov (%rdi),%rcx
		{[]byte{0x66, 0x0f, 0x18, 0xc8, 0x90}, false}, // of a register
	} {
		if got := prefetches(tt.code); got != tt.want {
			t.Errorf("% x: %v", tt.code, got)
		}
	}
}

// TestWhole checks that the part of an instruction at the end of a page is left out.
func TestWhole(t *testing.T) {
	l := newLibrary()
	if err := l.use("x86_64"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		addr  uint64
		code  []byte
		sizes []int
		want  int
	}{
		{0x1ffb, []byte{0x90, 0x66, 0x0f, 0x70, 0xc0}, []int{1, 4}, 1}, // nop; pshufd without its constant
		{0x1ff3, []byte{0x90, 0x66, 0x0f, 0x70, 0xc0}, []int{1, 4}, 2}, // somewhere else it is unknown code
		{0x1ffc, []byte{0x90, 0xe8}, []int{1, 1}, 1},                   // nop; call: QEMU reads its four further bytes at a time
		{0x1ffd, []byte{0x90, 0x31, 0xc0}, []int{1, 2}, 2},             // nop; xor %eax,%eax
		{0x1ffc, []byte{0x66, 0x0f, 0x70, 0xc0, 0}, []int{5}, 1},
	} {
		code, sizes := l.whole(tt.addr, tt.code, tt.sizes)
		bytes := 0
		for _, n := range sizes {
			bytes += n
		}
		if len(sizes) != tt.want || len(code) != bytes {
			t.Errorf("%#x: % x in %v", tt.addr, code, sizes)
		}
	}
}

// FuzzControl gives what a plugin may say of a process.
func FuzzControl(f *testing.F) {
	f.Add("maps\nmap 1000 2000 0 /bin/true\nblock 1 1000 2\n\x01\x01\x90\xc3exec\nexit\n")
	f.Add("block 2 1000 1\n\x01\x90")
	f.Add("block 1 1000 1\n\x02\x90")
	f.Add("left /bin/x\nclock 3 1\nmap z 1 2 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := newRun(&Options{}, "")
		p, _, err := r.hello("process 7 exec 1 x86_64 counts.7.0")
		if err != nil {
			t.Fatal(err)
		}
		_ = p.messages(bufio.NewReader(strings.NewReader(strings.ReplaceAll(text, "map ", "now ")))) // files of the machine are none of the input's
		_, _, _ = r.hello(text)
	})
}

// FuzzWords gives what a thread may write.
func FuzzWords(f *testing.F) {
	f.Add([]byte("\x43\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x02\x80\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, words []byte) {
		o := usual()
		o.Caches.L3.Bytes = 1 << 20
		r := newRun(&o, "")
		p, _, err := r.hello("process 7 exec 1 x86_64 counts.7.0")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.messages(bufio.NewReader(strings.NewReader("block 1 1000 3\n\x01\x01\x02\x90\x90\x75\xfc" + "block 2 1004 2\n\x03\x03\x48\x8b\x07\xf3\x48\xab"))); err != nil {
			t.Fatal(err)
		}
		p.ended = true
		_, _ = newThread(r, p).words(words)
	})
}

const blaming = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252u;
static struct node { struct node *next; char rest[56]; } nodes[1 << 17];

__attribute__((noinline)) long branches(long n) {
	long s = 0;
	for (long i = 0; i < n; i++) {
		seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
		if (seed & 1) { __asm__ volatile(""); s += i; } else { __asm__ volatile(""); s ^= i; }
		s = s * 3 + 1;
		s ^= s >> 5;
	}
	return s;
}

__attribute__((noinline)) struct node *loads(struct node *at, long n) {
	long s = 0;
	for (long i = 0; i < n; i++) { at = at->next; s = s * 3 + 1; s ^= s >> 5; __asm__ volatile("" : : "r"(s)); }
	return at;
}

int main(void) {
	long n = sizeof nodes / sizeof *nodes;
	for (long i = 0, at = 0; i < n; i++) { long to = (at + 48271) % n; nodes[at].next = &nodes[to]; at = to; }
	printf("%ld %p\n", branches(300000), (void *)loads(nodes, 300000));
	return 0;
}
`

// TestBlame checks that the cycles of mispredictions belong to the branch, and those of
// misses to the load.
func TestBlame(t *testing.T) {
	s := emulated(t, compiled(t, "gcc", blaming))
	if s.run.code.ops == nil {
		t.Skip("there is no model of a core for the programs of this machine")
	}
	of := func(function string, cycles func(*instruction) float64, right func(*instruction) bool) {
		sum, there := 0.0, 0.0
		for _, i := range s.run.code.ordered() {
			for in := range s.run.code.sorted(i) {
				if i.file == nil || in.sample == nil || in.windowed == nil {
					continue
				}
				if f, ok := i.file.Symbol(in.addr); !ok || f.Name != function {
					continue
				}
				v := float64(in.executed) * cycles(in)
				if sum += v; right(in) {
					there += v
				}
			}
		}
		if sum < 1e6 || there < 0.8*sum {
			t.Errorf("%s: %.0f of %.0f cycles are where they belong", function, there, sum)
		}
	}
	of("branches", func(in *instruction) float64 { return in.settled.lost }, func(in *instruction) bool { return in.flow == disasm.CondJump })
	of("loads", func(in *instruction) float64 {
		return in.settled.waits[lateL2] + in.settled.waits[lateL3] + in.settled.waits[lateMemory]
	}, func(in *instruction) bool { return in.op.Loads })
}

// TestThirdLevel checks that without a model of the core, misses of the second level are told
// from its hits.
func TestThirdLevel(t *testing.T) {
	s := emulated(t, compiled(t, "riscv64-linux-gnu-gcc", blaming))
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	if share := s.beyond(); share < 0.5 || !strings.Contains(out.String(), "\ndesc: Third level share: ") {
		t.Errorf("the third level answers %.2f of the misses", share)
	}
	if !strings.Contains(out.String(), "\ndesc: LL cache: 1048576 B") {
		t.Error("the last simulated cache is not the second level")
	}
}

const lines = `
#include <stdio.h>
#include <stdlib.h>
enum { LINES = 2048 };
struct line { struct line *next; long x[7]; };
static struct line list[LINES] __attribute__((aligned(4096)));

__attribute__((noinline)) struct line *chain(long n) {
	struct line *p = list;
	while (n--) p = p->next;
	return p;
}

__attribute__((noinline)) long second(long n) {
	struct line *p = list;
	long s = 0;
	for (; n--; p = p->next) s += p->x[0];
	return s;
}

__attribute__((noinline)) long apart(long n) {
	long s = 0;
	for (unsigned at = 0; n--; at += 1021) s += list[at % LINES].x[0];
	return s;
}

int main(int argc, char **argv) {
	int order[LINES];
	for (int i = 0; i < LINES; i++) order[i] = i;
	for (unsigned i = LINES - 1, x = 7; i > 0; i--) {
		int j = (x = x * 1103515245 + 12345) / 65536 % i, k = order[i];
		order[i] = order[j], order[j] = k;
	}
	for (int i = 0; i < LINES; i++) list[order[i]].next = &list[order[(i + 1) % LINES]];
	printf("%p %ld %ld\n", (void *)chain(atol(argv[1])), apart(atol(argv[2])), second(atol(argv[3])));
	return 0;
}
`

// TestLines is about lines of the second level. A load waits for its latency alone if its
// address comes from the load before: dispatch comes in bursts, and loads do not. Others
// come at the rate of lines. By themselves these take 13.7 and 2.1 to 2.3 cycles. The second load of a line waits for
// it as the first one does.
func TestLines(t *testing.T) {
	program := compiled(t, "gcc", lines)
	o := usual()
	o.Core, o.Latencies.L2Line = pipeline.CoreOf("amdzen4"), 2.2
	const rounds = 300_000
	for _, tt := range []struct {
		args     []string
		function string
		cycles   float64 // for a line
	}{
		{[]string{"300000", "0", "0"}, "chain", 4 + 10},
		{[]string{"0", "300000", "0"}, "apart", 2.2},
		{[]string{"0", "0", "300000"}, "second", 4 + 10},
	} {
		s := emulatedWith(t, o, append([]string{program}, tt.args...)...)
		if cycles := s.spent(tt.function) / rounds; math.Abs(cycles-tt.cycles) > 0.05*tt.cycles {
			t.Errorf("%s: %.2f cycles, want %.2f", tt.function, cycles, tt.cycles)
		}
	}
}

const past = `
#include <emmintrin.h>
#include <stdlib.h>
enum { SIZE = 8 << 20 };
static char at[SIZE] __attribute__((aligned(4096)));

__attribute__((noinline)) void eight(void) {
	for (long i = 0; i < SIZE; i += 8) _mm_stream_si64((long long *)(at + i), i);
}

__attribute__((noinline)) void sixteen(void) {
	for (long i = 0; i < SIZE; i += 16) _mm_stream_si128((__m128i *)(at + i), _mm_setzero_si128());
}

int main(void) { eight(); sixteen(); return 0; }
`

// TestPast is about stores past the caches: they come one in some cycles, and their lines wait for memory. The first
// stores of a window fill the queue of stores. So it has up to a seventh fewer cycles.
func TestPast(t *testing.T) {
	program := compiled(t, "gcc", past)
	o := usual()
	for _, tt := range []struct {
		core           string
		line           float64 // cycles between two lines that are read
		eight, sixteen float64 // cycles of a line
	}{
		{"amdzen4", 1, 16, 8},
		{"amdzen4", 7, 16, 8.4},
		{"amdzen4", 20, 24, 24},
		{"skylakex", 20, 20, 20},
	} {
		o.Core, o.Latencies.MemoryLine = pipeline.CoreOf(tt.core), tt.line
		s := emulatedWith(t, o, program)
		for function, want := range map[string]float64{"eight": tt.eight, "sixteen": tt.sixteen} {
			if got := s.spent(function) / (8 << 20 / 64); got > 1.03*want || got < want*6/7 {
				t.Errorf("%s, %s: %.2f cycles a line of them, %.2f of others, want %.2f", tt.core, function, got, tt.line, want)
			}
		}
	}
}

// protects is a program that loads from a page that another thread takes away, and waits for it.
const protects = `
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
static volatile long *page, count;
static volatile int done;
static void again(int n) { (void)n; }
static void *protect(void *p) {
	for (int i = 0; i < 2000; i++) {
		mprotect((void *)page, 4096, PROT_NONE);
		mprotect((void *)page, 4096, PROT_READ);
	}
	done = 1;
	return p;
}
int main(void) {
	pthread_t t;
	long sum = 0, n = 0;
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__builtin_prefetch((void *)page);
	signal(SIGSEGV, again);
	pthread_create(&t, 0, protect, 0);
	for (; !done; n++) {
		count++;
		sum += *page;
	}
	pthread_join(t, 0);
	return sum || count != n;
}
`

// TestProtectedPages checks that the plugin reads what a load has loaded without a fault of its own.
func TestProtectedPages(t *testing.T) {
	o := usual()
	o.Period, o.Warm = 500, 100
	s := emulatedWith(t, o, compiled(t, "gcc", protects, "-pthread"))
	if s.State.ExitCode() != 0 {
		t.Errorf("the program ended with %s", s.State)
	}
}
