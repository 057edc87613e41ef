package emulator

import (
	"math"
	"os/exec"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// phases is a program whose first half waits for memory, along a list, and whose second half
// sorts.
const phases = `
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; char pad[120]; } *list;
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) long chase(long n, long steps) {
	list = calloc(n, sizeof *list);
	for (long i = 0; i < n; i++) list[i].next = &list[(i * 7919 + 12345) % n];
	struct node *p = list;
	for (long i = 0; i < steps; i++) p = p->next;
	return p - list;
}
__attribute__((noinline)) long sorted(long n) {
	int *a = malloc(n * sizeof *a);
	for (long i = 0, x = 1; i < n; i++) a[i] = x = x * 16807 % 2147483647;
	qsort(a, n, sizeof *a, less);
	return a[n / 2];
}
int main(int argc, char **argv) {
	long n = argc > 2 ? atol(argv[2]) : 0;
	if (*argv[1] != 's') printf("%ld\n", chase(1 << 15, n));
	if (*argv[1] != 'c') printf("%ld\n", sorted(n / 10));
	return 0;
}
`

// TestCoverage holds the error of sampling to how runs differ whose windows are elsewhere: their
// mean should be within the errors of 95 %.
func TestCoverage(t *testing.T) {
	testlong.Only(t)
	program := compiled(t, "gcc", phases)
	const runs = 12
	inside, all := 0.0, 0.0
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"chase, 300,000 blocks", []string{program, "chase", "300000"}},
		{"sort, 300,000 numbers", []string{program, "sort", "3000000"}},
		{"chase, then sort", []string{program, "both", "1000000"}},
		{"gzip of a program", []string{"gzip", "-c", program}},
		{"sh", []string{"/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do x=$x$i; done; echo $x"}},
		{"perl", []string{"perl", "-e", "for (1..30000) { $h{$_ * 7919 % 5021} .= 'x' } print scalar keys %h"}},
	} {
		if _, err := exec.LookPath(tt.args[0]); err != nil {
			continue
		}
		var cycles, errors [costs + 1][]float64
		windows := 0
		for run := range runs {
			o := usual()
			o.Period, o.Windows, o.phase = 500_000, 60, uint64(run)*1009
			s, err := Run(t.Context(), Command{Args: tt.args}, o)
			if err != nil {
				t.Skip(err)
			}
			windows += s.run.whole.windows
			sum, variance := 0.0, 0.0
			for cost := range costs {
				v := s.run.code.sum(cost)
				e := 1.96 * v * s.run.code.relative(cost)
				cycles[cost], errors[cost] = append(cycles[cost], v), append(errors[cost], e)
				sum, variance = sum+v, variance+e*e
			}
			cycles[costs], errors[costs] = append(cycles[costs], sum), append(errors[costs], math.Sqrt(variance))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for cost, name := range []string{"ideal", "lost", "waits", "all"} {
			mean, within, stated, squares := 0.0, 0.0, 0.0, 0.0
			for _, v := range cycles[cost] {
				mean += v / runs
			}
			for i, v := range cycles[cost] {
				stated += errors[cost][i] / runs
				squares += (v - mean) * (v - mean) / (runs - 1)
				if math.Abs(v-mean) <= errors[cost][i] {
					within++
				}
			}
			t.Logf("%-24s %3d windows %-6s mean %9.0f k, runs differ by ±%5.1f %%, stated ±%5.1f %%, within %2.0f of %d", tt.name, windows/runs, name, mean/1e3, 196*math.Sqrt(squares)/mean, 100*stated/mean, within, runs)
			inside, all = inside+within, all+runs
		}
	}
	if inside < 0.85*all {
		t.Errorf("%.0f of %.0f errors have the mean of all runs within them", inside, all)
	}
}

// sum returns a cost of the whole run.
func (l *library) sum(cost int) (sum float64) {
	for _, f := range l.functions {
		for _, in := range f.insts {
			sum += in.whole(cost)
		}
	}
	return sum
}
