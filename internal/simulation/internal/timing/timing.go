// Package timing finds out how fast a program's instructions are executed, without a PMU:
// how many cycles each takes, waiting for the results of others, and which branches are
// mispredicted.
//
// A simulator executes the program and reports the order of its code (package valgrind); the
// code itself is in the files (package object). They give all branches, for the model of a
// predictor (package branch). For short pieces of the run, evenly distributed, the model of a
// core says how long they take (package pipeline): with perfect prediction, with the
// predictor's, and with loads that miss caches, once their rate is known (see [Rates.Wait]).
//
//	p, err := timing.Run(ctx, valgrind.Command{Args: args}, timing.Options{Core: core, Limit: 40e6})
//	rate, ok := p.At("/usr/bin/prog", 0x1139)
//
// The rates are per execution of an instruction, and multiply the counts of other
// simulators. They are the same in each run of a program that does the same. If a run of
// several processes is cut, they differ: how far each process has come by then is chance.
package timing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/internal/simulation/internal/branch"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// Options say how a program is followed.
type Options struct {
	Core *pipeline.Core // the processor whose cycles are estimated
	// Limit is how many blocks of code are followed, of some five instructions each, by all
	// processes together. Then the program is ended.
	Limit int64
}

// Rates are the rates of the instructions of a program.
type Rates struct {
	Blocks  int64 // pieces of code that were followed
	Unknown int64 // of these, pieces of code in no file that can be read
	Cut     bool  // the program executes more than was followed

	code    *library
	blocks  int // known to the processes
	machine func() machine
	records *records
	waits   waits     // what loads wait for
	settled sync.Once // with these
	once    sync.Once
	lines   map[place][]*instruction
}

// Run follows a program, with all that it starts, from its beginning. It discards the
// program's output, and reads its standard input from the current position. The error says
// in one line why the program cannot be followed.
func Run(ctx context.Context, c valgrind.Command, o Options) (*Rates, error) {
	code := newLibrary()
	defer code.close()
	m := modelsOf(o.Core)
	p := &Rates{code: code, machine: m.machine, records: newRecords()}
	trace, err := valgrind.Follow(ctx, c, o.Limit, func() valgrind.Follower { return newProcess(p, m) })
	if err != nil {
		return nil, err
	}
	p.Blocks, p.Cut = trace.Blocks, trace.Cut
	if p.Unknown == p.Blocks {
		return nil, errUnknown
	}
	return p, nil
}

// errUnknown says that a program is for another processor, or has no code in files.
var errUnknown = errors.New("none of the program's code was found in files for x86-64")

// Takes predicts how long Run takes for a program that uses so much processor time by
// itself.
func Takes(cpu time.Duration, limit int64) time.Duration {
	const (
		start  = time.Second           // of the simulator, with the symbols of the program
		block  = 700 * time.Nanosecond // printed, read and predicted
		native = time.Nanosecond       // executed by itself
	)
	return start + time.Duration(min(int64(cpu/native), limit))*block
}

// models make the models that each process has of its own.
type models struct {
	predictor func() branch.Branches
	machine   func() machine
	loop      branch.Loop
}

func modelsOf(core *pipeline.Core) models {
	return models{
		predictor: func() branch.Branches { return branch.New() },
		loop:      branch.NewLoop(core.Streams()),
		machine:   func() machine { return pipeline.NewMachine(core) },
	}
}

// A machine executes instructions: see [pipeline.Machine].
type machine interface {
	Reset()
	Late(cycles int)
	LateStore(cycles int)
	Execute(op *pipeline.Op, taken, mispredicted bool) float64
}
