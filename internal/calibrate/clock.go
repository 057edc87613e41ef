//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"context"
	"errors"
	"time"
)

// Clock measures the clock of the core that the caller runs on, in Hz. It takes hardly
// longer than the budget: a twentieth of a second is enough on a quiet machine.
func Clock(ctx context.Context, budget time.Duration) (Figure, error) {
	undo, err := pin(current())
	if err != nil {
		return Figure{}, err
	}
	defer undo()
	t := newTimer(ctx, time.Now().Add(budget)).measure(budget)[0]
	if err := ctx.Err(); err != nil {
		return Figure{}, err
	}
	if why := doubt(t); why != "" {
		return Figure{}, errors.New(why)
	}
	return clockOf(t), nil
}

// clockOf is the clock by a timing of dependent additions.
func clockOf(t timing) Figure {
	return Figure{Name: "clock", Title: "clock of the core", Unit: "Hz", Value: Number(1e9 / t.ns), Error: Number(t.spread * 1e9 / t.ns)}
}
