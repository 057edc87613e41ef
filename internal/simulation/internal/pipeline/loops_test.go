package pipeline

import (
	"bufio"
	"encoding/hex"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/disasm"
)

// assemble makes the ops of code that lies at an address.
func assemble(t testing.TB, code []byte, addr uint64) []Op {
	t.Helper()
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := NewDecoder(disasm.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	var ops []Op
	for len(code) > 0 {
		i := d.Decode(code, addr)
		if i.Bad {
			t.Fatalf("%x is no instruction", code)
		}
		ops = append(ops, decoder.Op(i, code))
		code, addr = code[i.Len:], i.Next()
	}
	return ops
}

func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// perTurn returns the cycles of a turn of a loop whose last instruction jumps back.
func perTurn(m *Machine, ops []Op) float64 {
	const warm, turns = 100, 300
	m.Reset()
	cycles := 0.0
	for n := range warm + turns {
		for i := range ops {
			last := i == len(ops)-1
			c := m.Execute(&ops[i], last, false)
			if n >= warm {
				cycles += c
			}
		}
	}
	return cycles / turns
}

// TestMeasuredLoops compares loops with what they really take.
func TestMeasuredLoops(t *testing.T) {
	f, err := os.Open("testdata/loops.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := NewMachine(CoreOf("amdzen4"))
	loops, wrong, deviation := 0, 0, 0.0
	s := bufio.NewScanner(f)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 4 {
			t.Fatalf("%q is no loop", s.Text())
		}
		want, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		times, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		code := bytesOf(t, strings.Repeat(fields[2], times)+"49ffce75e0")
		got := perTurn(m, assemble(t, code, 0x1000))
		off := got/want - 1
		loops++
		if strings.HasSuffix(fields[3], "# wrong") {
			wrong++
			if math.Abs(off) <= 0.15 {
				t.Errorf("%d times %s: %.2f cycles, measured %.2f, which is not wrong", times, fields[3], got, want)
			}
			continue
		}
		deviation += math.Abs(off)
		if math.Abs(off) > 0.15 {
			t.Errorf("%d times %s: %.2f cycles, measured %.2f", times, fields[3], got, want)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if mean := deviation / float64(loops-wrong); !(mean <= 0.04) || wrong > 16 {
		t.Errorf("%d loops, off by %.1f %% on average but for %d that are wrong", loops, 100*mean, wrong)
	}
}
