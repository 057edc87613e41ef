package render

import (
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// A LoopInCore is a loop of annotated code on the model of a core.
type LoopInCore struct {
	Loop   int // of the annotation
	Result *core.Result
}

// chain returns the cycles of the chain in an iteration, 0 if there is none.
func (l *LoopInCore) chain() float64 {
	for _, limit := range l.Result.Main().Limits {
		if limit.Kind == simulation.Chain || limit.Kind == simulation.Forwarding {
			return limit.Cycles
		}
	}
	return 0
}

// inCore writes what the model of the core says of the loops with samples. If a loop's
// executions are known, executions times the chain's length stand next to what was measured:
// the estimate of D. Levinthal, Cycle Accounting Analysis on Intel Core 2.
func (t *annotation) inCore() {
	for i := range t.d.Core {
		l := &t.d.Core[i]
		a := l.Result.Main()
		text := fmt.Sprintf("loop %d on a model of the core (%s): %s", l.Loop+1, a.Core, l.Result.Cause("").Text)
		if e := t.chainEstimate(l); e != "" {
			text += "; " + e
		}
		t.Paragraph("core", text, hang, plain)
	}
}

// chainEstimate multiplies the executions of a loop by its chain.
func (t *annotation) chainEstimate(l *LoopInCore) string {
	loop, chain := &t.c.Loops[l.Loop], l.chain()
	for _, per := range loop.PerIter {
		n := loop.Executed.Iterations.Value
		if per.Event != t.clock() || t.c.Relative || !(n > 0) || math.IsNaN(per.Value) {
			continue
		}
		return fmt.Sprintf("%s iterations of a chain of %s are %s of %s %s, the rest of %s waits for something else",
			counted(n), manyCycles(chain), counted(n*chain), counted(n*per.Value), t.d.what(t.clock()), counted(max(0, n*(per.Value-chain))))
	}
	return ""
}

// coreMark is what the model says of an instruction: its part of the chain, and the port
// that it holds longest.
func (t *annotation) coreMark(addr uint64) string {
	for i := range t.d.Core {
		r := t.d.Core[i].Result
		for k := range r.Insts {
			if r.Insts[k].Addr == addr {
				return markOf(r.Main(), k)
			}
		}
	}
	return ""
}

// coreLine is the same of all instructions of a line of the source.
func (t *annotation) coreLine(file string, line int) string {
	for i := range t.d.Core {
		r := t.d.Core[i].Result
		var of []int
		for k := range r.Insts {
			if line > 0 && r.Insts[k].Line == line && r.Insts[k].File == file {
				of = append(of, k)
			}
		}
		if len(of) > 0 {
			return markOf(r.Main(), of...)
		}
	}
	return ""
}

// markOf adds up what instructions add to the chain, and how long they hold ports.
func markOf(a *simulation.Analysis, of ...int) string {
	mark, chain := "", 0.0
	for _, l := range a.Chain {
		if slices.Contains(of, l.Instruction) {
			chain += l.Latency
		}
	}
	if chain > 0 {
		mark = fmt.Sprintf("  ⟲ chain %.3g", chain)
	}
	use, best := make([]float64, len(a.Ports)), -1
	for _, k := range of {
		for p, n := range a.Instructions[k].Ports {
			use[p] += n
		}
	}
	for p, n := range use {
		if n >= 0.05 && (best < 0 || n > use[best]) {
			best = p
		}
	}
	if best >= 0 && a.Core != simulation.TypicalCore { // whose ports are those of no processor
		mark += fmt.Sprintf("  %s %.2g", a.Ports[best], use[best])
	}
	return mark
}

type jsonInCore struct {
	Core   string       `json:"core"`
	Cycles *page.Number `json:"cycles"`
	Limit  string       `json:"limit"`
	Chain  *page.Number `json:"chain"`
	Text   string       `json:"text"`
}

// inCoreOf returns what the model says of a loop, nil for nothing.
func (t *annotation) inCoreOf(loop int) *jsonInCore {
	for i := range t.d.Core {
		if l := &t.d.Core[i]; l.Loop == loop {
			a := l.Result.Main()
			return &jsonInCore{a.Core, page.Known(a.Cycles), sayLimits(a), page.Known(l.chain()), l.Result.Cause("").Text}
		}
	}
	return nil
}

// manyCycles is a number of cycles in words.
func manyCycles(n float64) string {
	if n == 1 {
		return "1 cycle"
	}
	return fmt.Sprintf("%.3g cycles", n)
}
