//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import "time"

// A peak is a loop of as many floating-point operations as a core can do: multiplications and
// additions of doubles whose results nothing waits for.
type peak struct {
	name string // of the instruction set
	run  loop
	ops  float64 // multiplications and additions in one iteration
}

// peakTime bounds the time for a loop.
const peakTime = 300 * time.Millisecond

// peak measures how many floating-point operations one core does in a second. Instructions of
// all widths are tried: a wider one may be slower.
func (b *bench) peak(s *stage) {
	f := &Figure{Name: "flop-peak", Title: "floating-point operations", Unit: "operations/second"}
	b.result.Peak = f
	list := peaks()
	if len(list) == 0 {
		*f = absent(*f, "there is no loop for this architecture")
		return
	}
	why := ""
	for _, p := range list {
		t := b.timer.measure(s.budget(peakTime), program{run: p.run, ops: p.ops})[1]
		if w := doubt(t); w != "" {
			why = w
			continue
		}
		if rate := Number(1e9 / t.ns); rate > f.Value {
			f.Title = "multiplications and additions of doubles (" + p.name + ")"
			f.Value, f.Error = rate, rate*Number(t.spread)
		}
	}
	if f.Value == 0 {
		*f = absent(*f, why)
	}
}
