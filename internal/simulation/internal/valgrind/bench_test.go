package valgrind

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

// large makes a callgrind file of about so many bytes as a large program's looks:
// thousands of functions in many files, calls, and costs by instruction and line.
func large(size int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 1\ncmd: ./large\npart: 1\n\n" +
		"positions: instr line\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\n")
	for fn, addr := 1, 0x1000; b.Len() < size; fn++ {
		addr += 0x40 + rnd.IntN(0x1000)
		fmt.Fprintf(&b, "fl=(%d) source/file%d.cc\nfn=(%d) ns::function_%d(int, char const*)\n%#x %d 7 2 1\n", fn%2000, fn%2000, fn, fn, addr, 10+rnd.IntN(2000))
		for range 10 + rnd.IntN(200) {
			switch rnd.IntN(10) {
			case 0:
				fmt.Fprintf(&b, "cfn=(%d)\ncalls=%d %#x +3 \n* * %d %d %d\n", 1+rnd.IntN(fn), 1+rnd.IntN(1000), addr, rnd.IntN(1e6), rnd.IntN(1e5), rnd.IntN(1e5))
			case 1:
				fmt.Fprintf(&b, "+%d +%d %d 0 0 0 0 0 0 0 0 %d %d\n", 1+rnd.IntN(9), rnd.IntN(4), rnd.IntN(1e6), rnd.IntN(1e6), rnd.IntN(1e3))
			default:
				fmt.Fprintf(&b, "+%d * %d %d %d 0 %d\n", 1+rnd.IntN(9), rnd.IntN(1e6), rnd.IntN(1e5), rnd.IntN(1e5), rnd.IntN(1e3))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func BenchmarkReader(b *testing.B) {
	data := large(20 << 20)
	for _, by := range []counts.Kind{counts.Run, counts.Function, counts.Line, counts.Instruction} {
		b.Run(by.String(), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(bytes.NewReader(data), "large", Options{By: by})
				if !r.Next() {
					b.Fatal(r.Err())
				}
			}
		})
	}
}

func BenchmarkTiming(b *testing.B) {
	data := large(20 << 20)
	var out buffer
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := newTimer(bytes.NewReader(data), "large", &out, made(odd), "on a core").run(); err != nil {
			b.Fatal(err)
		}
	}
}
