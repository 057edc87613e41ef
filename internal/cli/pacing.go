package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/pace"
	"github.com/cyclestack/cyclestack/internal/simulation/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/valgrind"
)

// tracedBlocks is how many blocks of a program's code are traced: a number, and not a
// time, so that every run traces the same. See [pace.Takes] for how long that takes.
const tracedBlocks = 40e6

// A pacing finds out how long a program's instructions take: from the order in which
// they are executed, in another run than that in which they are counted. The two are not
// at the same time, so that files that the program writes and ports that it listens on
// are those of one of them only. And the trace, which may be ended in the middle of the
// program, comes first: the other leaves files as the program does.
type pacing struct {
	core  *pipeline.Core
	input *input
	paces *pace.Paces
	err   error // why there are none
}

// pacing returns one for the processor that is simulated; nil if that or the one here
// has other instructions than those of which there is a model.
func (s *simulating) pacing() *pacing {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	cat, err := s.j.catalogue()
	if err != nil {
		return nil
	}
	name := ""
	if cpu, err := cat.CPU(s.j.id()); err == nil {
		if name = cpu.Name; cpu.Layout != "intel" && cpu.Layout != "amd" {
			return nil
		}
	}
	return &pacing{core: pipeline.CoreOf(name), input: s.input}
}

// takes predicts how long both runs take of a program that uses so much processor time
// by itself.
func (p *pacing) takes(cpu time.Duration) time.Duration {
	simulation := valgrind.Takes(cpu)
	if p == nil {
		return simulation
	}
	return simulation + pace.Takes(cpu, tracedBlocks)
}

// trace follows a program. The error is the context's.
func (p *pacing) trace(ctx context.Context, program []string) error {
	if p == nil {
		return nil
	}
	stdin, err := p.input.rewind()
	if err == nil {
		p.paces, err = pace.Run(ctx, valgrind.Command{Args: program, Stdin: stdin}, pace.Options{Core: p.core, Limit: tracedBlocks})
	}
	p.err = err
	return ctx.Err()
}

// add adds what the program's instructions take to what was simulated, with penalties for
// data; or it says why that is not known.
func (p *pacing) add(to *valgrind.Simulation, data pace.Data) (note string) {
	if p == nil {
		return ""
	}
	err := p.err
	if err == nil {
		err = p.time(to, data)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf("how long instructions wait for each other is not known: %v", err)
}

// time adds to what was simulated what its instructions take.
func (p *pacing) time(to *valgrind.Simulation, data pace.Data) (err error) {
	if data.Misses, err = to.LoadMisses(); err != nil {
		return err
	}
	p.paces.Wait(data)
	return to.Time(p.paces, p.about(data))
}

// about says where the rates come from.
func (p *pacing) about(data pace.Data) string {
	which := "all"
	if p.paces.Cut {
		which = "the first"
	}
	blocks := fmt.Sprint(p.paces.Blocks)
	if p.paces.Blocks >= 1e6 {
		blocks = fmt.Sprintf("%.3g million", float64(p.paces.Blocks)/1e6)
	}
	return fmt.Sprintf("as a model of %s's core executes them, from %s %s blocks of code, with data behind the first level %.3g, %.3g and %.3g cycles later",
		p.core.Name, which, blocks, data.Second, data.Third, data.Memory)
}
