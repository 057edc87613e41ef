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
	"github.com/cyclestack/cyclestack/internal/testlong"
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
			t.Fatalf("%x is not an instruction", code)
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
	testlong.Alone(t)
	for _, tt := range []struct {
		file, cpu string
		mean      float64 // deviation
		wrong     int     // loops that are known to be wrong, at most
	}{
		{"testdata/loops.txt", "amdzen4", 0.04, 16},
		{"testdata/loops-redwoodcove.txt", "graniterapids", 0.02, 40},
	} {
		t.Run(tt.cpu, func(t *testing.T) {
			m := NewMachine(CoreOf(tt.cpu))
			loops, wrong, deviation := 0, 0, 0.0
			for _, l := range readLoops(t, tt.file) {
				code := bytesOf(t, strings.Repeat(l.code, l.times)+"49ffce75e0")
				got := perTurn(m, assemble(t, code, 0x1000))
				off := got/l.cycles - 1
				loops++
				if strings.HasSuffix(l.text, "# wrong") {
					wrong++
					if math.Abs(off) <= 0.15 {
						t.Errorf("%d times %s: %.2f cycles, measured %.2f, which is not wrong", l.times, l.text, got, l.cycles)
					}
					continue
				}
				deviation += math.Abs(off)
				if math.Abs(off) > 0.15 {
					t.Errorf("%d times %s: %.2f cycles, measured %.2f", l.times, l.text, got, l.cycles)
				}
			}
			if mean := deviation / float64(loops-wrong); !(mean <= tt.mean) || wrong > tt.wrong {
				t.Errorf("%d loops, off by %.1f %% on average but for %d that are wrong", loops, 100*mean, wrong)
			}
		})
	}
}

// A measuredLoop is a line of a file of loops: see testdata/loops.txt.
type measuredLoop struct {
	cycles     float64
	times      int
	code, text string
}

func readLoops(t *testing.T, file string) (list []measuredLoop) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 4 {
			t.Fatalf("%q is no loop", s.Text())
		}
		cycles, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		times, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, measuredLoop{cycles, times, fields[2], fields[3]})
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
