package account

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// Hotspots say where the time of a run went: what its threads did, and which code ran. All
// shares are of one whole.
type Hotspots struct {
	// Whole is what the shares are of: Elapsed, or Time if more than one thread wanted a
	// processor on average. Time is then that of the processors and the run queue. It is
	// Cycles if the account has cycles: there are no states then.
	Whole   Resource
	Seconds float64     // of the whole
	States  []TimeShare // in the order of a page
	Running float64     // share of the time that code ran: that of all places

	Places  []Hot   // the largest first
	Others  float64 // share of the code that is not among Places
	Left    int     // functions that are not among Places
	Samples int64   // of the code; 0 if it was not sampled

	// Takes is how long a simulation of the same run takes. It is 0 if there is none.
	Takes time.Duration
}

// A TimeShare is the share of the time that threads were in a state: "user", "kernel",
// "running" for either, "blocked", "run queue", or "start and end": the program did not
// exist then.
type TimeShare struct {
	State string
	Share float64
	Error float64 // half-width of the 95 % interval; NaN if it cannot be known
	// Events are what happened in the state, such as page faults. NaN if not counted.
	Events float64
	What   string // the events
}

// A Hot is a function with much of the time, and its hottest loop.
type Hot struct {
	Function string // demangled; "" if it has no name
	Module   string
	Kernel   bool
	File     string // of the hottest line; "" if it is not known
	Line     int
	Addr     uint64  // of the hottest instruction, in the module
	Share    float64 // of the whole
	Error    float64
	Samples  int64
	// Caller is the line of the user's that calls the hottest line most often, if that is of a library.
	// CallerShare is its part. Nil if it is not known.
	Caller      *counts.Code
	CallerShare float64
	Loop        *HotLoop // with most of the function's samples; nil for none
	Cause       *Cause   // what holds the place back; nil if that is not known
}

// A HotLoop is a loop of a hot function.
type HotLoop struct {
	Start, End   uint64 // addresses of the first instruction and behind the last, in the module
	First, Last  int    // lines of the source; 0 if they are not known
	Instructions int
	Share        float64 // of the whole
}

// A Cause says what holds a place in the code back, if the code itself or a simulation tells.
type Cause struct {
	Kind string // such as "core bound", or a node
	Text string // such as "chain of additions, 4.0 cycles"; "" for nothing
	Try  string // what helps against it; "" if that is not known
}

// share returns the share of a state; 0 if it is not among them.
func (h *Hotspots) share(state string) float64 {
	i := slices.IndexFunc(h.States, func(t TimeShare) bool { return t.State == state })
	if i < 0 {
		return 0
	}
	return h.States[i].Share
}

// simulateFrom is the least share where caches and branches can matter: of user mode of the
// processor time, and of the time that the program wanted a processor.
const simulateFrom = 0.2

// computes reports whether the program computed for a share of the time that is worth a
// simulation.
func computes(h *Hotspots) bool {
	return h.Running >= Hotspot && h.Running-h.share("kernel") >= simulateFrom*h.Running && h.Running+h.share("run queue") >= simulateFrom
}

// nextOfTime lists the steps that say more about where the time went: a simulation of a
// program that computes, and the code of the first place.
func (a *Account) nextOfTime(from Provenance) []Step {
	h := a.Hotspots
	var steps []Step
	if from.Live && from.Started && h.Takes > 0 && computes(h) {
		steps = append(steps, Step{Kind: StepSimulate, Node: -1, Takes: h.Takes, Live: true})
	}
	i := slices.IndexFunc(h.Places, func(p Hot) bool { return !p.Kernel && p.Function != "" })
	switch {
	case i >= 0 && IsHotspot(h.Places[i].Share/h.Running):
		steps = append(steps, Step{Kind: StepAnnotate, Node: -1, Symbol: symbolOf(&h.Places[i])})
	case from.Files == 1:
		steps = append(steps, Step{Kind: StepFunctions, Node: -1})
	case len(a.Bottleneck) > 0:
		steps = append(steps, Step{Kind: StepExplain, Node: a.Bottleneck[len(a.Bottleneck)-1]})
	}
	return steps
}

// symbolOf names the function of a place for annotate: by its hottest instruction, if it has
// an address in the place of a name.
func symbolOf(p *Hot) string {
	if strings.HasPrefix(p.Function, "0x") && p.Addr > 0 {
		return fmt.Sprintf("%s:%#x", p.Module, p.Addr)
	}
	return p.Function
}
