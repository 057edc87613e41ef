package main

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testshared"
)

func TestKendall(t *testing.T) {
	list := []result{{want: 1, got: 1}, {want: 2, got: 3}, {want: 3, got: 2}}
	if got := kendall(list); math.Abs(got-1.0/3) > 1e-9 {
		t.Errorf("tau is %v", got)
	}
}

// TestTable holds the errors of the model on real blocks, and those of the test halves, to
// what they are.
func TestTable(t *testing.T) {
	dir := testshared.Dir(t, "blocks")
	var out bytes.Buffer
	if err := run(dir, options{}, &out); err != nil {
		t.Fatal(err)
	}
	most := map[string]float64{
		"Zen 4 loops, measured": 4, "Zen 4 loops, undisturbed": 2.4, "Zen 4 unrolled, no further pages, measured": 5, "Skylake loops, uiCA": 2.5,
		"Skylake unrolled, uiCA": 5, "Haswell unrolled, uiCA": 6, "Haswell unrolled, measured": 6.5,
	}
	rows := regexp.MustCompile(`(?m)^(\S.*?) +(\d+) +([\d.]+)% +([\d.]+)% +([\d.]+)% `).FindAllStringSubmatch(out.String(), -1)
	found := 0
	for _, row := range rows {
		if limit, ok := most[row[1]]; ok {
			found++
			if got, err := strconv.ParseFloat(row[3], 64); err != nil || got > limit {
				t.Errorf("%s: an error of %s %%, want at most %g %%", row[1], row[3], limit)
			}
		}
	}
	if found != len(most) {
		t.Errorf("%d sets of %d in\n%s", found, len(most), out.String())
	}
}

// BenchmarkBlocks evaluates all blocks of all sets.
func BenchmarkBlocks(b *testing.B) {
	dir := testshared.Dir(b, "blocks")
	blocks, took := 0, 0.0
	for b.Loop() {
		for i := range sets {
			list, t, err := sets[i].evaluate(dir)
			if err != nil {
				b.Fatal(err)
			}
			blocks, took = blocks+len(list), took+t.Seconds()
		}
	}
	b.ReportMetric(float64(blocks)/took, "blocks/cpu-s")
}
