package cli

import (
	"bufio"
	"debug/elf"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// tripsSource is a program whose loops say how often they are run through.
const tripsSource = `#include <stdlib.h>

struct cell { struct cell *next; long value; };

__attribute__((noinline)) long work(struct cell *list, long *a, long rows, long columns)
{
	long sum = 0;
	for (struct cell *p = list; p; p = p->next) // trips 300
		sum += p->value;
	for (long i = 0; i < rows; i++) { // trips 40
		for (long j = 0; j < columns; j++) { // trips 25
			if (a[j] & 3)
				sum += a[j];
			else
				sum ^= i;
		}
		if (sum == 12345678)
			abort();
	}
	long n = 12;
	do { // trips 12
		long m = 3;
		while (m > 0) { // trips 3
			sum += sum >> 3;
			m--;
			__asm__ volatile("" : "+r"(m));
		}
		n--;
		__asm__ volatile("" : "+r"(n));
	} while (n > 0);
	return sum;
}

int main(void)
{
	static struct cell cells[300];
	static long a[25];
	for (int i = 0; i < 300; i++)
		cells[i] = (struct cell){i < 299 ? &cells[i + 1] : 0, i};
	for (int i = 0; i < 25; i++)
		a[i] = i;
	long sum = 0;
	for (int i = 0; i < 20; i++)
		sum += work(cells, a, 40, 25);
	return sum == 1;
}
`

// buildProgram compiles a program, and writes the source into the same directory.
func buildProgram(t *testing.T, name, source string, command ...string) string {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("needs %s", command[0])
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "prog")
	cmd := exec.Command(command[0], append(command[1:], program, filepath.Join(dir, name))...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// executions counts how often each instruction of a function is executed, with
// valgrind.
func executions(t *testing.T, program, function string) (addrs []uint64, times []float64) {
	t.Helper()
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("needs valgrind")
	}
	file := filepath.Join(t.TempDir(), "callgrind.out")
	cmd := exec.Command("valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no", "--callgrind-out-file="+file, program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := map[uint64]float64{}
	inside, call := false, false
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		switch {
		case strings.HasPrefix(s.Text(), "fn="):
			inside = s.Text() == "fn="+function
		case strings.HasPrefix(s.Text(), "calls="):
			call = true // the next line has the cost of what is called
		case inside && len(fields) == 3 && strings.HasPrefix(fields[0], "0x"):
			addr, _ := strconv.ParseUint(fields[0], 0, 64)
			n, _ := strconv.ParseFloat(fields[2], 64)
			if !call {
				count[addr] += n
			}
			call = false
		}
	}
	for addr := range count {
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	for _, addr := range addrs {
		times = append(times, count[addr])
	}
	if len(addrs) == 0 {
		t.Fatal("valgrind has no counts")
	}
	return addrs, times
}

var tripsComment = regexp.MustCompile(`// trips (\d+)`)

// TestAnnotateTrips has the trip counts of compiled loops, from samples of instructions
// executed as often as valgrind says.
func TestAnnotateTrips(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"-O1", "-O2"} {
		t.Run(level, func(t *testing.T) {
			program := buildProgram(t, "trips.c", tripsSource, "gcc", level, "-g", "-no-pie", "-fno-inline", "-fno-tree-vectorize", "-o")
			addrs, times := executions(t, program, "work")
			file := filepath.Join(t.TempDir(), "perf.data")
			const period = 1 // so that nothing is left to chance
			s := newSampler(t, file, sampledEvent{"CPU_CLK_UNHALTED.CORE", 5 * period, 0, 0}, sampledEvent{"INST_RETIRED.ANY_P", period, 2, 0})
			s.mmap(addrs[0]&^0xfff, 0x1000, addrs[0]&^0xfff-0x400000, program)
			left := 0.0
			for i, addr := range addrs {
				s.happened(0, times[i], addr)
				for left += times[i]; left >= period/2; left -= period {
					s.sample(1, addr)
				}
			}
			s.close(core2)
			checkTrips(t, annotateJSON(t, file, "work"))
		})
	}
}

func checkTrips(t *testing.T, a annotated) {
	t.Helper()
	for n, line := range strings.Split(tripsSource, "\n") {
		m := tripsComment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		want, _ := strconv.ParseFloat(m[1], 64)
		// A compiler may give a loop's instructions to lines around it. No two of these loops
		// have the same trips.
		found := slices.ContainsFunc(a.Loops, func(l annotatedLoop) bool {
			return l.First <= n+2 && n+1 <= l.Last && math.Abs(l.Trips-want) < 0.02*want && l.TripsError < want/2
		})
		// At -O2 gcc makes of the rows a cycle that is entered at two places.
		if entered := strings.Contains(strings.Join(a.Notes, " "), "entered at more than one place"); !found && !(entered && want == 40) {
			t.Errorf("line %d: no loop with %v trips among %+v", n+1, want, a.Loops)
		}
	}
}

// perfAnnotate is what perf annotate says of a function: percentages by address.
func perfAnnotate(t *testing.T, file, symbol string) map[string]float64 {
	t.Helper()
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("perf annotate needs objdump")
	}
	c := exec.Command("perf", "annotate", "--stdio", "--stdio-color=never", "--no-source", "-i", file, "-s", symbol)
	c.Env = append(os.Environ(), "LC_ALL=C", "PERF_CONFIG=/dev/null")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		percent, rest, ok := strings.Cut(line, ":")
		addr, _, isInst := strings.Cut(strings.TrimSpace(rest), ":")
		share, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if ok && isInst && err == nil {
			list["0x"+addr] = share / 100
		}
	}
	return list
}

// TestAnnotateInlinedFunction: the code around an inlined function is annotated, where most of its
// samples are.
func TestAnnotateInlinedFunction(t *testing.T) {
	t.Parallel()
	program := buildProgram(t, "inlined.c", `
static inline double steps(double x, int n) { for (int i = 0; i < n; i++) x = x / 1.01 + 1; return x; }
__attribute__((noinline)) double most(double x) { return steps(x, 30000000); }
__attribute__((noinline)) double least(double x) { return steps(x, 1000000); }
int main(void) { return most(1) + least(2) < 0; }
`, "gcc", "-O2", "-g", "-o")
	file := filepath.Join(t.TempDir(), "perf.data")
	if out, err := exec.Command("perf", "record", "-q", "-e", "cpu-clock:u", "-o", file, program).CombinedOutput(); err != nil {
		t.Skipf("perf record: %v: %s", err, out)
	}
	for _, name := range []string{"steps", "prog:steps"} {
		if got := outOf(t, "annotate", file, name); !strings.HasPrefix(got, "most (prog), 9") || !strings.Contains(got, name+" is inlined") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestAnnotateWorkloads compares the shares of instructions with perf annotate's, and those of
// loops with what the programs do.
func TestAnnotateWorkloads(t *testing.T) {
	t.Parallel()
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			file := recordWorkload(t, w, "-e", "cpu-clock")
			a := annotateJSON(t, file)
			if a.Function.Name != w.heavy || len(a.Loops) != 1 || !(a.Loops[0].Share > 0.95) {
				t.Errorf("the hottest function is %s, with the loops %+v", a.Function.Name, a.Loops)
			}
			want := perfAnnotate(t, file, w.heavy)
			if len(want) != len(a.Instructions) {
				t.Errorf("%d instructions, perf has %d", len(a.Instructions), len(want))
			}
			seen := 0.0
			for _, i := range a.Instructions {
				share, ok := want[i.Addr]
				if !ok || !(math.Abs(share-i.Share) <= 0.0001) { // perf prints two decimals of a percentage
					t.Errorf("%s %s: %.4f, perf says %.4f (%v)", i.Addr, i.Text, i.Share, share, ok)
				}
				seen += share
			}
			if !(math.Abs(seen-1) <= 0.01) {
				t.Errorf("perf's add up to %v", seen)
			}
		})
	}
}

// TestAnnotateArchitectures finds the loop of a program in the code of each
// instruction set, the one that multiplies once.
func TestAnnotateArchitectures(t *testing.T) {
	names := map[string]string{"amd64": "imul", "arm64": "madd|mul", "ppc64le": "mulld|maddld", "riscv64": "mul"}
	for arch, name := range names {
		if arch != "amd64" && !testlong.Enabled() {
			continue // Go compiles its library anew for each
		}
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			multiply := regexp.MustCompile(`(?i)^(` + name + `)`)
			program := buildProgram(t, "main.go", workloads[1].text(), "env", "GOARCH="+arch, "CGO_ENABLED=0", "go", "build", "-trimpath=false", "-o")
			f, err := elf.Open(program)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			symbols, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "main.light" })
			j := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == ".text" })
			if i < 0 || j < 0 {
				t.Fatal("no function")
			}
			text, at := f.Sections[j], symbols[i].Value
			file := filepath.Join(t.TempDir(), "perf.data")
			s := newSampler(t, file, sampledEvent{"CPU_CLK_UNHALTED.CORE", 100, 0, 0})
			s.mmap(text.Addr, text.Size, text.Offset, program)
			s.sample(0, at)
			s.close(core2)
			a := annotateJSON(t, file)
			if a.Function.Name != "main.light" || len(a.Loops) != 1 {
				t.Fatalf("%s has %d loops: %q", a.Function.Name, len(a.Loops), a.Notes)
			}
			l := &a.Loops[0]
			multiplies := 0
			for _, b := range a.Blocks {
				for _, i := range a.Instructions {
					if b.Loop == 1 && i.Addr >= b.Start && i.Addr < blockEnd(a, b.Start) && multiply.MatchString(i.Text) {
						multiplies++
					}
				}
			}
			if multiplies != 1 || l.Depth != 1 {
				t.Errorf("the loop of %+v multiplies %d times", a.Instructions, multiplies)
			}
			if !slices.ContainsFunc(a.Instructions, func(i annotatedInst) bool {
				return multiply.MatchString(i.Text) && i.Line > 0 && strings.Contains(lineText(a, i.Line), "x*6364136223846793005")
			}) {
				t.Errorf("the multiplication is not at its line: %+v", a.Lines)
			}
		})
	}
}

// lineText is a line of the source.
func lineText(a annotated, line int) string {
	for _, l := range a.Lines {
		if l.Line == line {
			return l.Text
		}
	}
	return ""
}

// blockEnd is where the block behind the one at an address begins. Addresses of one
// function have as many digits.
func blockEnd(a annotated, start string) string {
	for i, b := range a.Blocks {
		if b.Start == start && i+1 < len(a.Blocks) {
			return a.Blocks[i+1].Start
		}
	}
	return "0xffffffffffffffff"
}
