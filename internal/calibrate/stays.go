//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"math"
	"time"
	"unsafe"
)

// The lines that are left alone are more than most second levels have. Those that are read again
// are the ones read longest ago, so that only the third level has them.
const (
	stayLines = 4 << 20 / lineBytes
	stayLoads = 32 * loadsPerChase
	tries     = 5
)

// lifetimes measures how long unused lines stay in the third level. Others that share the cache
// take their places, such as guests of the same host.
func (b *bench) lifetimes() {
	memory := b.result.Level("memory")
	if memory == nil || len(b.big.bytes) < stayLines*lineBytes {
		return
	}
	p := b.chaser.lines(b.big, stayLines*lineBytes)
	at := float64(memory.Nanos) / 2 // of a load; if it takes longer, they do not fit the caches
	for range keptBest {
		if now := b.stay(&p, 0); now < at {
			at = now
		}
		all := float64(memory.Nanos) - at
		half := halfLife(func(ns float64) float64 { return (b.stay(&p, ns) - at) / all })
		if all > at && half > 0 { // otherwise it was disturbed
			b.lives = append(b.lives, half)
		}
	}
}

// stay returns the ns of a load of a line that was left alone for some ns. It returns NaN if each
// try was disturbed. The thread does not sleep: other programs would use its core meanwhile.
func (b *bench) stay(p *program, wait float64) float64 {
	alone := *p
	alone.warm = 2 * stayLines / loadsPerChase // afterwards the list is where it was
	alone.run = func(n uint64, at, _, _ unsafe.Pointer) {
		p.run(n, at, nil, nil)
		for begin := time.Now(); n == alone.warm && float64(time.Since(begin)) < wait; {
		}
	}
	for range tries {
		if b.timer.late() {
			break
		}
		if took, undisturbed := b.timer.sample(&alone, stayLoads/loadsPerChase); undisturbed {
			return took / stayLoads
		}
	}
	return math.NaN()
}
