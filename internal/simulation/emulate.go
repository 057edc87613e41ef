package simulation

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/emulator"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// emulate simulates the program with QEMU. Unused says why that is not possible.
func (o *Options) emulate(ctx context.Context) (r *Result, unused string, err error) {
	target, err := emulator.TargetOf(o.Args[0])
	if err != nil {
		return nil, "", err
	}
	if err := emulator.Available(target); err != nil {
		return nil, err.Error(), nil
	}
	stdin, err := o.stdin()
	if err != nil {
		return nil, "", err
	}
	var bad *valgrind.UnsupportedError
	core := o.coreFor(target)
	s, err := emulator.Run(ctx, emulator.Command{Args: o.Args, Stdin: stdin}, o.emulation(core))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, "", ctx.Err()
	case errors.As(err, &bad), errors.Is(err, os.ErrNotExist):
		return nil, "", err
	case err != nil:
		return nil, err.Error(), nil
	}
	name, err := written(s)
	if err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	return &Result{Tool: string(QEMU), Core: core, State: s.State, Notes: s.Notes, Partial: s.Partial, Timed: s.Timed, Hidden: s.Hidden, files: []string{name}, close: s.Close,
		keep: func(w io.Writer) error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(w, f)
			return err
		}}, "", nil
}

// armCore is the core of arm64 programs on a machine of another kind: the oldest of those with a
// model.
const armCore = "neoverse-n1"

// coreFor returns the model of a core for an instruction set, by QEMU's name of that; nil if
// there is none.
func (o *Options) coreFor(target string) *Core {
	switch target {
	case "x86_64":
		return o.Core
	case "aarch64":
		return ModelledCore(armCore)
	}
	return nil
}

// Foreign returns the command that runs a program for another processor in QEMU; nil for a
// program of this machine.
func Foreign(args []string) []string {
	target, err := emulator.TargetOf(args[0])
	if err != nil || target == emulator.HostTarget() || emulator.Available(target) != nil {
		return nil
	}
	return emulator.Native(target, args)
}

// written writes the simulation into a file of its own.
func written(s *emulator.Simulation) (name string, err error) {
	name = filepath.Join(s.Dir(), "counts.callgrind")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	err = errors.Join(s.Write(f), f.Close())
	s.Forget()
	return name, err
}

// The TLBs of most cores of the last ten years, within a factor of two: A. Fog, The
// microarchitecture of Intel, AMD and VIA CPUs.
var (
	firstTLB  = caches.Size{Bytes: 72, Ways: 6}
	secondTLB = caches.Size{Bytes: 2048, Ways: 8}
)

// thirdLines is how many lines are under way between the second and third level, as a core's
// bandwidth shows: some 16 in a latency of it.
const thirdLines = 16

// secondLine is the cycles between two lines from the second level, of loads that no prefetcher
// expects: 2.2 for distances of 1920 bytes and 2.7 for 4096, measured on a Redwood Cove.
const secondLine = 2.2

// emulation returns what to emulate.
func (o *Options) emulation(core *Core) emulator.Options {
	size := func(c Cache) caches.Size { return caches.Size{Bytes: c.Size, Ways: c.Ways} }
	c, l := &o.Caches, &o.Latencies
	tlbs := [2]caches.Size{firstTLB, secondTLB}
	for i, size := range core.TLBs() {
		if size[0] > 0 {
			tlbs[i] = caches.Size{Bytes: size[0], Ways: size[1]}
		}
	}
	line := l.Line
	if line == 0 {
		line = l.Memory / thirdLines
	}
	gap, warm, windows := samples(o.Native)
	return emulator.Options{
		Core:   core,
		Caches: caches.Config{L1I: size(c.L1I), L1D: size(c.L1D), L2: size(c.L2), L3: size(c.L3), TLB1: tlbs[0], TLB2: tlbs[1], Lifetime: l.Life, Ahead: core.AheadLines(), Next: core.NextLine()},
		Latencies: emulator.Latencies{L2: l.L2, L3: l.L3, Memory: l.Memory, TLB: l.TLB, Walk: l.Walk,
			L2Line: secondLine, L3Line: l.L3 / thirdLines, MemoryLine: line, WalkEach: l.Walk / float64(core.Walkers())},
		Period: gap, Warm: warm, Windows: windows, Progress: o.Progress, Indexes: o.Indexes,
		Ended: func() { limitMemory(enoughAlone, 400) },
	}
}

// samples returns how windows are chosen by native time: the most blocks between two, the most that the
// predictor sees before one, and their number. Where a program begins, they are nearer each other: see
// the plugin.
func samples(native time.Duration) (gap, warm, windows int64) {
	const (
		perSecond  = 1e9  // blocks that a core executes in a second
		each       = 1000 // windows for a second
		leastTotal = 60
		mostTotal  = 6000
		mostWarm   = 5000
		window     = 400
	)
	s := max(native.Seconds(), 1e-3)
	total := min(max(each*s, leastTotal), mostTotal)
	cycle := int64(s * perSecond / total)
	warm = min(mostWarm, max(cycle/3, 100))
	return max(cycle-warm-window, 200), warm, int64(total)
}
