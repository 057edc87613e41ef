package core

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/source/code"
)

// InCore is the kind of the causes that the model of the core finds.
const InCore = "core"

// Causes returns a function that says what limits a loop of a listing in a processor's core.
// The processor is given by identification and features (flags as in /proc/cpuinfo). samples
// are by address. Its result is nil for a loop with loops inside, and for code that is not
// modelled.
func Causes(cpu func() (id string, features []string)) func(l *code.Listing, loop int, samples map[uint64]int64) *account.Cause {
	core := sync.OnceValue(func() *simulation.Core {
		id, features := cpu()
		r, err := resolve.New(resolve.Choice{CPU: id})
		if err != nil || r.Named().CPU == nil {
			return simulation.ModelledCore("")
		}
		return HostCore(r.Named().CPU.Name, features)
	})
	return func(l *code.Listing, loop int, samples map[uint64]int64) *account.Cause {
		if !modelled(l.Arch) {
			return nil
		}
		g := l.Graph
		loops := &Loops{Listing: l, Weight: func(b int) float64 {
			sum := int64(0)
			for _, in := range g.Blocks[b].Insts {
				sum += samples[in.Addr]
			}
			return float64(sum) / float64(len(g.Blocks[b].Insts))
		}}
		for _, p := range loops.Find() {
			if p.Loop != loop+1 {
				continue
			}
			r, err := Limits(p, []*simulation.Core{core()})
			if err != nil || len(r.Main().Limits) == 0 {
				return nil
			}
			return r.Cause(InCore)
		}
		return nil
	}
}

// Cause says in one line what limits a piece, and where, and what helps. The kind is that of
// the account's time in the core.
func (r *Result) Cause(kind string) *account.Cause {
	a := r.Main()
	text := fmt.Sprintf("%s, %.2f cycles an iteration", reason(r, a), a.Cycles)
	if at := r.at(); at != "" {
		text += " (" + at + ")"
	}
	c := &account.Cause{Kind: kind, Text: text}
	if len(r.Advice) > 0 {
		c.Try = r.Advice[0].Text
	}
	return c
}

// reason names the fault of a piece.
func reason(r *Result, a *simulation.Analysis) string {
	if len(r.Advice) > 0 {
		if name := named[r.Advice[0].Fault]; name != "" {
			return name
		}
	}
	return Say(a.Limits[0])
}

// named are the faults in the words of a one-line report.
var named = map[Fault]string{
	Accumulator:       "each sum waits for the one before",
	PointerChase:      "each address comes from the load before",
	MemoryVariable:    "a variable in memory waits for its last store",
	DivisionChain:     "each division waits for the one before",
	Divisions:         "the divider is busy",
	MultiplyChain:     "each multiplication waits for the one before",
	SelectChain:       "each selection waits for the one before",
	CarryChain:        "each carry waits for the one before",
	PartialRegister:   "a partial register waits for the rest of it",
	FalseDependence:   "a false dependence on a register",
	BlockedForwarding: "loads wait for stores that cannot forward",
	PageAlias:         "loads meet stores at the same place of other pages",
	Shuffling:         "shuffles share few ports",
	Loading:           "the ports of loads are busy",
	Storing:           "the ports of stores are busy",
	ScalarCode:        "one element at a time, without vectors",
	OtherChain:        "instructions wait for each other",
}

// at names the instruction that the first advice is about, with its line.
func (r *Result) at() string {
	if len(r.Advice) == 0 || r.Advice[0].At < 0 {
		return ""
	}
	in := &r.Insts[r.Advice[0].At]
	text := strings.Join(strings.Fields(in.Text), " ")
	if in.Line > 0 {
		return fmt.Sprintf("line %d: %s", in.Line, text)
	}
	return text
}
