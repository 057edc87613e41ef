// Package flow says how often the parts of a function were executed: its basic blocks, by
// samples of retired instructions or by branch stacks, and its loops with their average
// trip counts.
//
// The blocks and loops come from package disasm, the counts from the caller, by address:
//
//	g := flow.NewGraph(insts, callee)
//	blocks := flow.FromInstructions(g, func(addr uint64) flow.Count { … })
//	loops := flow.Trips(g, blocks)
//
// It also finds the instructions near another one, because samples slip.
package flow

import (
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
)

// NewGraph finds the blocks and loops of a function, as [disasm.NewGraph] does. A call of a
// function that never returns ends a block and leads nowhere. The callee names the function
// at an address, "" if it is not known; it may be nil.
func NewGraph(insts []disasm.Inst, callee func(addr uint64) string) *disasm.Graph {
	if callee == nil {
		return disasm.NewGraph(insts)
	}
	list := slices.Clone(insts)
	for i := range list {
		if in := &list[i]; in.Flow == disasm.Call && NeverReturns(callee(in.Target)) {
			in.Flow = disasm.Trap
		}
	}
	return disasm.NewGraph(list)
}

// never has functions that do not return, by their names in symbol tables: of the C, C++, Rust
// and Go libraries and Linux.
var never = []string{
	"abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "__assert_perror_fail", "__stack_chk_fail", "__fortify_fail",
	"__chk_fail", "longjmp", "siglongjmp", "__longjmp_chk", "pthread_exit", "err", "errx", "verr", "verrx",
	"__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_throw_bad_array_new_length", "__cxa_call_unexpected", "_Unwind_Resume", "__clang_call_terminate",
	"std::terminate", "_ZSt9terminatev", "rust_panic", "rust_begin_unwind",
	"runtime.gopanic", "runtime.goexit", "runtime.throw", "runtime.fatal", "runtime.fatalthrow", "runtime.panicshift", "runtime.panicdivide",
	"runtime.panicnil", "runtime.panicdottypeE", "runtime.panicdottypeI", "runtime.panicwrap", "runtime.panicunsafeslicelen",
	"runtime.panicmakeslicelen", "runtime.panicmakeslicecap", "runtime.panicmem", "runtime.panicoverflow", "runtime.panicfloat", "runtime.sigpanic",
	"panic", "do_exit", "do_group_exit", "make_task_dead",
}

// neverBeginnings are the beginnings of further such names. The functions that grow a
// goroutine's stack return to a jump to the beginning of the function: it repeats the call,
// and is no loop of the program.
var neverBeginnings = []string{
	"std::__throw_", "_ZSt17__throw_", "_ZSt19__throw_", "_ZSt20__throw_", "_ZSt24__throw_", "_ZSt28__throw_",
	"core::panicking::", "core::option::unwrap_failed", "core::option::expect_failed", "core::result::unwrap_failed",
	"core::slice::index::slice_", "alloc::alloc::handle_alloc_error", "alloc::raw_vec::capacity_overflow", "std::panicking::", "std::process::exit", "std::process::abort",
	"runtime.panicIndex", "runtime.panicSlice", "runtime.goPanic", "runtime.morestack",
}

// NeverReturns says whether a function, by its name, is known not to return to
// its caller.
func NeverReturns(name string) bool {
	name, _, _ = strings.Cut(name, "@") // memcpy@plt, exit@GLIBC_2.2.5
	if name == "" {
		return false
	}
	return slices.Contains(never, name) ||
		slices.ContainsFunc(neverBeginnings, func(s string) bool { return strings.HasPrefix(name, s) })
}

// A Count is how often something happened, estimated from samples.
type Count struct {
	Value    float64 // NaN if it is not known
	Variance float64 // of Value
	Samples  int64   // the samples that it rests on
}

// Error returns the half-width of the 95 % interval of the count.
func (c Count) Error() float64 { return counts.Confidence * math.Sqrt(c.Variance) }

// Unknown is the count of what is not known.
var Unknown = Count{Value: math.NaN(), Variance: math.NaN()}

// FromInstructions returns how often each block of a graph was executed, from the number of
// instructions retired at each address. The samples of that event are not spread evenly over a
// block. All instructions of a block are executed equally often, though. The estimate is
// therefore the mean over the block: the instructions retired in it divided by its length (D.
// Levinthal, Cycle Accounting Analysis on Intel Core 2 Processors, First Pass Events).
//
// One is the count that a single sample stands for: a block without samples might have had
// one.
func FromInstructions(g *disasm.Graph, retired func(addr uint64) Count, one float64) []Count {
	list := make([]Count, len(g.Blocks))
	for b := range g.Blocks {
		n := float64(len(g.Blocks[b].Insts))
		sum := Count{}
		for _, in := range g.Blocks[b].Insts {
			c := retired(in.Addr)
			sum.Value += c.Value
			sum.Samples += c.Samples
			if c.Samples > 0 {
				sum.Variance += c.Variance
			}
		}
		if sum.Samples == 0 {
			sum.Variance = one * one
		}
		list[b] = Count{sum.Value / n, sum.Variance / (n * n), sum.Samples}
	}
	return list
}

// A Loop is how often a loop of a graph was run through.
type Loop struct {
	Iterations Count // executions of its header
	Entries    Count // how often it was entered from outside; Unknown if the code does not tell
	// Trips is the mean number of iterations for each entry, and Error the half-width of
	// its 95 % interval. Least is a lower bound with 97.5 % confidence. They are NaN if
	// they are not known; without a sample of an entry only Least is known.
	Trips, Error, Least float64
	Why                 string // why Trips is not known; "" if it is
}

// Trips returns the average trip count of each loop of a graph from how often its
// blocks were executed.
func Trips(g *disasm.Graph, blocks []Count) []Loop {
	list := make([]Loop, len(g.Loops))
	edges := solve(g, blocks)
	for i := range g.Loops {
		l := &g.Loops[i]
		var entries Count
		if entered(g, l) {
			for _, b := range l.Runs {
				entries = entries.plus(blocks[b])
			}
		} else {
			entries = edges.entries(l)
		}
		list[i] = trips(blocks[l.Header], entries)
	}
	return list
}

// entered says whether the counts of Runs together are how often a loop was entered. The
// function's first block is also executed when the function is called: it does not count
// the exits from a loop, if it is in Runs because of them.
func entered(g *disasm.Graph, l *disasm.Loop) bool {
	first := &g.Blocks[0]
	return l.Runs != nil && (!slices.Contains(l.Runs, 0) || slices.Equal(l.Runs, l.Entries) && len(first.Succs) == 1 && !first.Leaves)
}

func (c Count) plus(o Count) Count {
	out := Count{c.Value + o.Value, c.Variance + o.Variance, c.Samples + o.Samples}
	// Blocks without samples might together have had one sample.
	switch {
	case c.Samples == 0 && o.Samples == 0:
		out.Variance = max(c.Variance, o.Variance)
	case c.Samples == 0:
		out.Variance = o.Variance
	case o.Samples == 0:
		out.Variance = c.Variance
	}
	return out
}

// trips divides iterations by entries, which were sampled independently.
func trips(iterations, entries Count) Loop {
	l := Loop{Iterations: iterations, Entries: entries, Trips: math.NaN(), Error: math.NaN(), Least: math.NaN()}
	switch {
	case math.IsNaN(iterations.Value):
		l.Why = "its executions are not known"
		return l
	case iterations.Samples == 0:
		l.Why = "no sample of its header"
		return l
	case math.IsNaN(entries.Value):
		l.Why = "the code does not tell how often it is entered"
		return l
	}
	sd := math.Sqrt(entries.Variance)
	low := max(0, iterations.Value-counts.Confidence*math.Sqrt(iterations.Variance))
	if most := entries.Value + counts.Confidence*sd; most > 0 {
		l.Least = max(1, low/most)
	}
	if entries.Samples == 0 || entries.Value <= 0 {
		l.Why = "no sample of an entry"
		return l
	}
	l.Trips = iterations.Value / entries.Value
	rel := iterations.Variance/(iterations.Value*iterations.Value) + entries.Variance/(entries.Value*entries.Value)
	l.Error = counts.Confidence * l.Trips * math.Sqrt(rel)
	return l
}
