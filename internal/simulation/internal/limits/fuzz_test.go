package limits_test

import (
	"bufio"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/limits"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/testshared"
)

// FuzzAnalyse analyses any bytes on cores of both vendors: prefixes, VEX, EVEX and APX forms.
// Whatever they are, there is no panic, the figures are numbers, and unknown instructions are
// named.
func FuzzAnalyse(f *testing.F) {
	for _, code := range []string{
		"480fafc7", "f20f5807", "c5fc58c1", "62f17c4858c1", "d50fafc7" /* REX2 */, "62f4741c01c8" /* APX: add of three operands */, "8fe97880c1",
		"f0480fb10f", "f3a4", "c7f8", "6666666690", "c4e2f1f6c0", "62f6fd48", "0f0b", "660f3a0fc108", "e2fe", "c3", "ff10", "9bd9f6",
	} {
		b, err := hex.DecodeString(code)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, code []byte, loop bool) {
		b, err := pipeline.NewBlock(code[:min(len(code), 200)], loop)
		if err != nil {
			return
		}
		for _, cpu := range []string{"amdzen4", "skylake", "goldencove"} {
			a := limits.Analyse(pipeline.CoreOf(cpu), b, limits.Options{Explain: true})
			if !(a.Cycles >= 0) || math.IsInf(a.Cycles, 0) || len(a.Instructions) != len(b.Ops()) {
				t.Fatalf("%x on %s: %v cycles, %d of %d instructions", code, cpu, a.Cycles, len(a.Instructions), len(b.Ops()))
			}
			for _, l := range a.Limits {
				if !(l.Cycles >= 0) || math.IsInf(l.Cycles, 0) {
					t.Fatalf("%x on %s: limit %+v", code, cpu, l)
				}
			}
			for _, l := range a.Chain {
				if l.Instruction < 0 || l.Instruction >= len(b.Ops()) || !(l.Latency >= 0) {
					t.Fatalf("%x on %s: link %+v", code, cpu, l)
				}
			}
			limits.Trace(pipeline.CoreOf(cpu), b, 2)
		}
	})
}

// TestUnknown names instructions that the decoder does not know.
func TestUnknown(t *testing.T) {
	for code, want := range map[string]pipeline.Trust{"8fe97880c1": pipeline.Unknown, "62f57c4858c1": pipeline.Unknown} {
		if a := analyse(t, "amdzen4", code, limits.Options{}); a.Instructions[0].Trust != want {
			t.Errorf("%s: trust %s, want %s", code, a.Instructions[0].Trust, want)
		}
	}
	if a := analyse(t, "amdzen4", "4801f8", limits.Options{}); a.Instructions[0].Trust == pipeline.Unknown {
		t.Error("an addition is unknown")
	}
}

// BenchmarkBlocks analyses measured loops, as core --hex does.
func BenchmarkBlocks(b *testing.B) {
	file := filepath.Join(testshared.Dir(b, "blocks"), "zen4-loop.csv")
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var codes [][]byte
	for s := bufio.NewScanner(f); s.Scan(); {
		text, _, _ := strings.Cut(s.Text(), ",")
		if code, err := hex.DecodeString(text); err == nil {
			codes = append(codes, code)
		}
	}
	analyser := limits.New(pipeline.CoreOf("amdzen4"))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		block, err := pipeline.NewBlock(codes[n%len(codes)], true)
		if err != nil {
			b.Fatal(err)
		}
		analyser.Analyse(block, limits.Options{})
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "blocks/s")
}
