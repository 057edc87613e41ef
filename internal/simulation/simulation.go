// Package simulation estimates how long a program takes without hardware counters: it runs
// the program in a simulator and models the processor's caches and core.
//
// [Run] executes the program in QEMU, once: package emulator. Where that is not installed, it
// runs it under valgrind, twice. The first run follows the order of its code and times its
// instructions: package timing, with a model of the core's pipeline and of its branch
// predictor. The second run counts instructions, loads, stores, cache misses and mispredictions
// by line and instruction: package valgrind. Both have the same program, arguments and input,
// one after the other, so that they do not disturb each other. The first one is ended when it
// has seen enough. The second one leaves the files of a complete run.
//
// The [Result] has the counts as a [counts.Table] and keeps them in a file of callgrind's
// or cachegrind's format. [NewReader] reads such files, also those that valgrind wrote
// without this package.
//
// Nothing here is measured. The package knows counts and code; it knows no models.
package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/child"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/emulator"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/timing"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/valgrind"
)

// tracedBlocks is how many blocks of a program's code are followed. It is a number and not
// a time, so that every run follows the same blocks.
const tracedBlocks = 40e6

// A Progress is how far a simulation is.
type Progress = emulator.Progress

// Indexes keep what was read of programs.
type Indexes = object.Indexes

// A Core is the model of a processor's core.
type Core = pipeline.Core

// HostCoreOf returns the core model of an x86-64 processor by its name in the catalogue, or a
// typical core. Features are flags of /proc/cpuinfo, nil for those that are not known: virtual
// machines may name an older processor than they run on. It returns nil on machines of other
// architectures, because their programs have other instructions.
func HostCoreOf(cpu string, features []string) *Core {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return pipeline.HostCoreOf(cpu, features)
}

// Options say what to simulate.
type Options struct {
	// Args are the program, as a shell would find it, and its arguments.
	Args []string
	// Stdin opens the standard input before each run. Nil is /dev/null.
	Stdin func() (*os.File, error)

	// Caches are those to simulate.
	Caches Hierarchy
	// Resident is the most memory that the program uses, in bytes; 0 is little. Simulators
	// have two levels of caches, and it decides which two.
	Resident int64

	// Core is the core to model. Without one the time of instructions is not known.
	Core *Core
	// Latencies are the times that loads wait for data.
	Latencies Latencies
	// Simulator is the one to use; the zero value is the best of those that are installed.
	Simulator Simulator
	// Progress is told how far the simulation is, now and then. Nil: nobody asks.
	Progress func(Progress)
	// Indexes keep the symbols of programs for the next time. Nil: they are not kept.
	Indexes Indexes
	// Native is the processor time that the program uses by itself; 0 is little.
	Native time.Duration
}

// Latencies are how many cycles later than from the first-level cache a load has its data.
type Latencies struct {
	L2, L3, Memory float64
	// Least is the share of these cycles that is waited for at least: a core with many
	// misses under way still moves one line for each, and translates its address.
	Least float64
	// TLB is the delay in cycles of data whose page is only in the second TLB; Walk, that of
	// data whose page is in none. Line is the cycles between two lines from memory.
	TLB, Walk, Line float64
	// Life is the half-life in cycles of unused lines in the third level. At 0 none leaves.
	// Valgrind's simulation has a smaller third level for that.
	Life float64
}

// A Result is what the simulation of a program found. Close removes its files.
type Result struct {
	Tool  string           // the simulator
	Why   string           // the better one was not used; "" if it was
	Core  *Core            // the model that timed instructions; nil for none
	State *os.ProcessState // of the program in the run that counted
	Notes []counts.Note
	// Partial says that the simulation was interrupted, and is of the program until then.
	Partial bool
	// Timed says that the program reads the clock, or sets timers, and may do less when it is
	// simulated.
	Timed bool
	// Hidden is the share of instructions that the processor itself would not execute: it has better
	// ones, and the simulator hides them.
	Hidden float64

	files  []string
	beyond float64   // share of the misses of the last simulated cache that a further one answers
	sums   []float64 // of the one file, by event, once Tables has read it; nil if it is of valgrind
	chains bool      // instructions that are not timed are estimated by their chains of loads
	keep   func(io.Writer) error
	close  func() error
}

// Resident returns the most memory that an ended program used at a time, in bytes; 0 if
// it is not known or not more than this process uses.
func Resident(state *os.ProcessState) int64 { return child.Resident(state) }

// Moved returns how many bytes this process and those that it waited for have read and written; 0 if
// that is not known.
func Moved() int64 { return child.Moved([]int{os.Getpid()}) }

// Run simulates a program with all that it starts, and discards what it writes. The error
// is that of the context if this ended the program before anything was known of it.
func Run(ctx context.Context, o Options) (*Result, error) {
	limitMemory(enoughBeside, 400)
	defer func() {
		runtime.GC() // what is read next needs no other memory than the simulation has had
		limitMemory(enoughAlone, 1000)
	}()
	unused := ""
	if o.Simulator != Valgrind {
		r, why, err := o.emulate(ctx)
		if r != nil || err != nil {
			return r, err
		}
		if unused = why; o.Simulator == QEMU {
			return nil, errors.New(why)
		}
	}
	o.Caches.L3 = o.staying()
	r, err := o.valgrind(ctx)
	if r != nil && r.Why == "" {
		r.Why = unused
	}
	return r, err
}

// staying returns the third level for a simulation without time. Of a larger working set half of
// the lines have left when it comes round. Half of its loads are from memory. A cache that replaces
// any line answers half of the loads of a set 2 ln 2 times its size.
func (o *Options) staying() Cache {
	l, third := &o.Latencies, o.Caches.L3
	set := l.Life / ((l.L3 + l.Memory) / 2) * float64(third.Line)
	if most := int(set / (2 * math.Ln2)); l.Life > 0 && most < third.Size {
		if c, err := (Cache{Size: most, Ways: third.Ways, Line: third.Line}).Fit(); err == nil {
			return c
		}
	}
	return third
}

// The memory that is enough while the simulator runs, and after that. The garbage collector
// need not collect below.
const (
	enoughBeside = 120 << 20
	enoughAlone  = 260 << 20
)

// limitMemory has the garbage collector keep the memory of simulating and reading small, unless
// the environment says otherwise. Rarely is percent of what is in use. With little in use it is of 4 MB, and
// short programs end before a collection.
func limitMemory(enough int64, rarely int) {
	const little, never = 64 << 20, 2000
	if os.Getenv("GOMEMLIMIT") == "" {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc < little {
			rarely = never
		}
		debug.SetMemoryLimit(enough)
		debug.SetGCPercent(rarely)
		raise(int(enough))
	}
}

// raise raises a limit after a collection that has left little room below it: there would soon be
// another one.
func raise(limit int) {
	object := new(*int) // a pointer, as small objects without one may stay
	runtime.AddCleanup(object, func(limit int) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if debug.SetMemoryLimit(-1) != int64(limit) {
			return // there is another one
		}
		limit = max(limit, int(m.HeapAlloc/8+m.HeapInuse+m.Sys-m.HeapSys)) // it is of all, and not of the heap alone
		debug.SetMemoryLimit(int64(limit))
		raise(limit)
	}, limit)
}

// valgrind simulates the program with valgrind's simulators.
func (o *Options) valgrind(ctx context.Context) (*Result, error) {
	geometry, beyond := o.Caches.For(o.Resident)
	rates, untimed := o.follow(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stdin, err := o.stdin()
	if err != nil {
		return nil, err
	}
	run, err := valgrind.Run(ctx, valgrind.Command{Args: o.Args, Stdin: stdin, Geometry: geometry, Instructions: true})
	if err != nil {
		return nil, err
	}
	r := &Result{Tool: string(run.Tool), Core: o.Core, Why: run.Why, State: run.State, files: run.Files, beyond: beyond, chains: true, close: run.Close,
		keep: func(w io.Writer) error { return run.Keep(w, beyond) }}
	if rates != nil {
		untimed = o.time(run, rates, beyond)
	}
	if untimed != nil {
		r.Notes = append(r.Notes, counts.Notef("dependences between instructions are not known: %v", untimed))
	}
	if geometry.LL == o.Caches.L3 {
		r.Notes = append(r.Notes, counts.Notef("the program's memory is larger than the third-level cache, which was simulated behind the first: what hits the second or third is in L2_Hit"))
	}
	r.Notes = append(r.Notes, run.Notes...)
	return r, nil
}

func (o *Options) stdin() (*os.File, error) {
	if o.Stdin == nil {
		return nil, nil
	}
	return o.Stdin()
}

// follow finds out how long the program's instructions take; it returns nil without a
// core, or an error.
func (o *Options) follow(ctx context.Context) (*timing.Rates, error) {
	if o.Core == nil {
		return nil, nil
	}
	stdin, err := o.stdin()
	if err != nil {
		return nil, err
	}
	return timing.Run(ctx, valgrind.Command{Args: o.Args, Stdin: stdin}, timing.Options{Core: o.Core, Limit: tracedBlocks})
}

// time adds the time of the instructions to what the simulator counted.
func (o *Options) time(run *valgrind.Simulation, rates *timing.Rates, beyond float64) error {
	misses, err := run.DataMisses()
	if err != nil {
		return err
	}
	l := o.Latencies
	rates.Wait(timing.Data{Misses: misses, Beyond: beyond, Least: l.Least, Second: l.L2, Third: l.L3, Memory: l.Memory})
	return run.Time(rates, o.about(rates))
}

// about says where the rates come from.
func (o *Options) about(rates *timing.Rates) string {
	which := "all"
	if rates.Cut {
		which = "the first"
	}
	blocks := fmt.Sprint(rates.Blocks)
	if rates.Blocks >= 1e6 {
		blocks = fmt.Sprintf("%.3g million", float64(rates.Blocks)/1e6)
	}
	return fmt.Sprintf("as a model of %s's core executes them, from %s %s blocks of code; latencies of L2, L3 and memory: %.3g, %.3g and %.3g cycles",
		o.Core.Name, which, blocks, o.Latencies.L2, o.Latencies.L3, o.Latencies.Memory)
}

// Close removes the files of the simulation.
func (r *Result) Close() error { return r.close() }

// Keep writes what was simulated as one file, for [NewReader]. CPU identifies the
// processor, and core is the name of the model of its core; "" is left out.
func (r *Result) Keep(w io.Writer, cpu, core string) error {
	line := ""
	if cpu != "" {
		line = valgrind.DescribeCPU(cpu)
	}
	if core != "" {
		line += valgrind.DescribeCore(core)
	}
	if line == "" {
		return r.keep(w)
	}
	d := &described{to: w, line: line}
	return errors.Join(r.keep(d), d.flush())
}

// described adds lines to the header of a file: before the command.
type described struct {
	to   io.Writer
	line string
	head []byte // until the command
	done bool
}

// headMost bounds how much is looked at for the command.
const headMost = 1 << 16

func (d *described) Write(p []byte) (int, error) {
	if d.done {
		return d.to.Write(p)
	}
	d.head = append(d.head, p...)
	at := bytes.Index(d.head, []byte("\ncmd:"))
	if at < 0 && len(d.head) < headMost {
		return len(p), nil
	}
	if at >= 0 {
		d.head = slices.Concat(d.head[:at+1], []byte(d.line), d.head[at+1:])
	}
	return len(p), d.flush()
}

// flush writes what was held.
func (d *described) flush() error {
	if d.done {
		return nil
	}
	d.done = true
	_, err := d.to.Write(d.head)
	d.head = nil
	return err
}

// mostPlaces is how many places a table has: many more than anybody reads.
const mostPlaces = 1024

// Tables return the counts of the run, and of the functions with the most cycles, and lines within
// functions. Both are nil if nothing was counted.
func (r *Result) Tables() (functions, lines *counts.Table, err error) {
	o := ReaderOptions{By: counts.Line, Within: counts.By(0).With(counts.Function), also: counts.Function, rows: mostPlaces}
	err = r.table(o, func(t *valgrind.Reader) {
		if lines, functions = t.Table(), t.Also(); !r.chains {
			r.sums = t.Sums()
		}
	})
	return functions, lines, err
}

// Instructions gives part the counts of the run, with some of the wanted instructions at a time. Of is
// asked first, about their functions. Call Tables before.
func (r *Result) Instructions(of, wanted func(*counts.Code) bool, part func(*counts.Table)) error {
	o := ReaderOptions{By: counts.Instruction, Within: counts.By(0).With(counts.Function), Only: wanted, part: part, of: of, sums: r.sums}
	return r.table(o, func(*valgrind.Reader) {})
}

// table reads the files, and calls done with their reader.
func (r *Result) table(o ReaderOptions, done func(*valgrind.Reader)) error {
	o.beyond, o.Chains = r.beyond, r.chains
	opts, closeFinder := o.valgrind()
	defer closeFinder()
	files := valgrind.Open(r.files, opts)
	if files.Next() {
		done(files)
	}
	return files.Err()
}
