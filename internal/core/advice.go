package core

import (
	"fmt"
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// Advice is something to try, with the reason that the model gives for it.
type Advice struct {
	Fault Fault
	Text  string
	At    int // the instruction that it is about, -1 for the whole piece
}

// A Fault is a known reason for slow code in the core.
type Fault string

// The faults.
const (
	Accumulator       Fault = "accumulator"        // a reduction with one register
	PointerChase      Fault = "pointer chase"      // an address that the iteration before has loaded
	MemoryVariable    Fault = "memory variable"    // stored and loaded again in each iteration
	DivisionChain     Fault = "division chain"     // a division that waits for the one before
	Divisions         Fault = "divisions"          // more of them than the divider can do
	MultiplyChain     Fault = "multiply chain"     // such as a hash
	SelectChain       Fault = "select chain"       // conditional moves that wait for each other
	CarryChain        Fault = "carry chain"        // long additions
	PartialRegister   Fault = "partial register"   // a write of a part that waits for the rest
	FalseDependence   Fault = "false dependence"   // on a destination that is overwritten
	BlockedForwarding Fault = "blocked forwarding" // a load of bytes from several stores
	PageAlias         Fault = "4K aliasing"        // a load that meets a store at the same place of another page
	Shuffling         Fault = "shuffles"           // more of them than their port can do
	Loading           Fault = "loads"              // more loads than ports
	Storing           Fault = "stores"             // more stores than ports
	ScalarCode        Fault = "scalar code"        // one element at a time
	PortBound         Fault = "ports"
	Width             Fault = "width" // more micro-ops than the core can dispatch
	Fetching          Fault = "fetch"
	FullQueue         Fault = "full queue"
	OtherChain        Fault = "chain"
)

// texts are what to try. %s of some is filled in.
var texts = map[Fault]string{
	Accumulator:       "keep %d partial results in registers of their own and add them after the loop; for floating point compilers do so only with -ffast-math",
	PointerChase:      "each address comes from the load before: use arrays or indexes, or follow several lists at a time",
	MemoryVariable:    "a value is stored and loaded again in each iteration: keep it in a local variable, and tell the compiler that pointers do not alias (restrict)",
	DivisionChain:     "each division waits for the one before: multiply by the reciprocal, or divide once after the loop",
	Divisions:         "divide less: multiply by a reciprocal that is computed once, or use a narrower type",
	MultiplyChain:     "each multiplication waits for the one before: split the work into %d independent parts",
	SelectChain:       "each selection waits for the one before: keep %d candidates in registers of their own, or use vectors",
	CarryChain:        "the carry goes from one addition to the next: work on several independent numbers at a time",
	PartialRegister:   "a write of 8 or 16 bits keeps the rest of the register and waits for it: use 32 bits or zero extension (movzx)",
	FalseDependence:   "the instruction keeps a part of its destination and waits for it: clear the register first (xorps, vxorps), or compile with -mavx",
	BlockedForwarding: "a load reads bytes of several stores and waits until they are in the cache: store and load the same size",
	PageAlias:         "a load waits for a store to the same place of another page of 4096 bytes (4K aliasing): move one array by 64 bytes",
	Shuffling:         "shuffles share few ports: load in the order that is needed, or blend and broadcast from memory",
	Loading:           "loads need more ports than there are: keep values in registers, or load vectors",
	Storing:           "stores need more ports than there are: store vectors, or store less",
	ScalarCode:        "the code works on one element at a time: let the compiler use vectors (-O3 -march=native), or write intrinsics",
	PortBound:         "few ports execute most instructions: replace some by others that have more ports",
	Width:             "fewer instructions: unroll, simplify addresses, or use vectors (-O3 -march=native)",
	Fetching:          "the code is fetched too slowly: align the loop, make it shorter, or unroll less",
	FullQueue:         "a queue is full: fewer long latencies at a time, or more work between them",
	OtherChain:        "instructions wait for each other from one iteration to the next: start the next iteration without the result of this one",
}

// advise finds what is known to help against the first limit.
func (r *Result) advise() {
	a := r.Main()
	if len(a.Limits) == 0 {
		return
	}
	f, at := r.fault(a)
	r.Advice = append(r.Advice, Advice{f, r.text(f), at})
	if f != ScalarCode && r.scalar() {
		r.Advice = append(r.Advice, Advice{ScalarCode, texts[ScalarCode], -1})
	}
}

// text fills in how many parts the work is to be split into: as many as keep the next
// limit busy.
func (r *Result) text(f Fault) string {
	switch f {
	case Accumulator, MultiplyChain, SelectChain:
		return fmt.Sprintf(texts[f], r.parts())
	}
	return texts[f]
}

// parts returns how many independent chains would reach the next limit.
func (r *Result) parts() int {
	const most = 16 // registers
	chain, next := 0.0, 0.25
	for _, l := range r.Main().Limits {
		switch l.Kind {
		case simulation.Chain, simulation.Forwarding:
			chain = max(chain, l.Cycles)
		case simulation.TakenBranches, simulation.Queue, simulation.Conflicts, simulation.Together:
		default:
			next = max(next, l.Cycles)
		}
	}
	return min(max(2, int(math.Ceil(chain/next-0.01))), most)
}

// fault names the reason of the first limit, and an instruction of it.
func (r *Result) fault(a *simulation.Analysis) (Fault, int) {
	const most = 0.75 // of the cycles: what else is in the way then adds little to the chain
	l := a.Limits[0]
	for _, chain := range a.Limits {
		if (l.Kind == simulation.Conflicts || l.Kind == simulation.Together || l.Kind == simulation.Queue) && chain.Kind == simulation.Chain && chain.Cycles > most*a.Cycles {
			return r.chainFault(a)
		}
	}
	switch l.Kind {
	case simulation.Chain, simulation.Forwarding:
		return r.chainFault(a)
	case simulation.Divider:
		return Divisions, r.first(func(t simulation.Traits) bool { return t.Divides })
	case simulation.PortGroup, simulation.Conflicts:
		return r.portFault(a)
	case simulation.DispatchWidth, simulation.Retirement:
		if r.scalar() {
			return ScalarCode, -1
		}
		return Width, -1
	case simulation.FrontEnd, simulation.TakenBranches:
		if r.scalar() {
			return ScalarCode, -1
		}
		return Fetching, -1
	case simulation.Queue:
		return FullQueue, -1
	}
	if len(a.Chain) > 0 && a.Limits[0].Kind == simulation.Together {
		return r.chainFault(a)
	}
	return PortBound, -1
}

// chainFault names what the chain is made of.
func (r *Result) chainFault(a *simulation.Analysis) (Fault, int) {
	if len(a.Chain) == 0 {
		return BlockedForwarding, r.first(func(t simulation.Traits) bool { return t.Loads })
	}
	find := func(is func(l *simulation.ChainLink, t simulation.Traits) bool) int {
		best := -1
		for i := range a.Chain {
			l := &a.Chain[i]
			if is(l, a.Instructions[l.Instruction].Traits) && (best < 0 || l.Latency > a.Chain[best].Latency) {
				best = i
			}
		}
		if best < 0 {
			return -1
		}
		return a.Chain[best].Instruction
	}
	register := func(l *simulation.ChainLink) bool { return l.By != "memory" && l.By != "" }
	for _, c := range []struct {
		fault Fault
		is    func(l *simulation.ChainLink, t simulation.Traits) bool
	}{
		{BlockedForwarding, func(l *simulation.ChainLink, _ simulation.Traits) bool { return l.Blocked }},
		{PageAlias, func(l *simulation.ChainLink, _ simulation.Traits) bool { return l.Aliased }},
		{MemoryVariable, func(l *simulation.ChainLink, _ simulation.Traits) bool { return l.By == "memory" }},
		{FalseDependence, func(l *simulation.ChainLink, t simulation.Traits) bool {
			return t.Merges && register(l) && len(a.Chain) == 1
		}},
		{PartialRegister, func(l *simulation.ChainLink, t simulation.Traits) bool { return t.Partial && register(l) && !t.Stores }},
		{DivisionChain, func(_ *simulation.ChainLink, t simulation.Traits) bool { return t.Divides }},
		{PointerChase, func(l *simulation.ChainLink, t simulation.Traits) bool { return t.Loads && l.Address }},
		{CarryChain, func(_ *simulation.ChainLink, t simulation.Traits) bool { return t.Carries }},
		{SelectChain, func(_ *simulation.ChainLink, t simulation.Traits) bool { return t.Selects }},
	} {
		if at := find(c.is); at >= 0 {
			return c.fault, at
		}
	}
	at := find(func(*simulation.ChainLink, simulation.Traits) bool { return true })
	adds := find(func(_ *simulation.ChainLink, t simulation.Traits) bool { return t.Adds })
	multiplies := find(func(_ *simulation.ChainLink, t simulation.Traits) bool { return t.Multiplies })
	switch {
	case multiplies >= 0 && (len(a.Chain) > 1 || !a.Instructions[multiplies].Traits.Float):
		return MultiplyChain, multiplies
	case multiplies >= 0:
		return Accumulator, multiplies
	case adds >= 0 && len(a.Chain) == 1:
		return Accumulator, adds
	}
	return OtherChain, at
}

// portFault names what the ports are busy with.
func (r *Result) portFault(a *simulation.Analysis) (Fault, int) {
	l := a.Limits[0]
	if len(l.Ports) == 0 {
		if i := slices.IndexFunc(a.Limits, func(l simulation.Limit) bool { return len(l.Ports) > 0 }); i >= 0 {
			l = a.Limits[i]
		}
	}
	var total, shuffles, loads, stores, divides float64
	most, at := 0.0, -1
	for i := range a.Instructions {
		in := &a.Instructions[i]
		use := 0.0
		for _, p := range l.Ports {
			use += in.Ports[slices.Index(a.Ports, p)]
		}
		total += use
		switch {
		case in.Traits.Divides:
			divides += use
		case in.Traits.Shuffles:
			shuffles += use
		case in.Traits.Loads && !in.Traits.Stores:
			loads += use
		case in.Traits.Stores:
			stores += use
		}
		if use > most {
			most, at = use, i
		}
	}
	switch half := total / 2; {
	case total == 0:
		return PortBound, -1
	case divides > half:
		return Divisions, at
	case shuffles > half:
		return Shuffling, at
	case stores > half && stores > loads:
		return Storing, at
	case loads > half:
		return Loading, at
	case r.scalar():
		return ScalarCode, at
	}
	return PortBound, at
}

// scalar says whether the piece computes with single elements, where vectors could do
// several at once: floating point without vectors, or a loop over memory with integers only.
// A loop of integers with calls, indirect jumps or many branches is no such loop: an
// interpreter has them.
func (r *Result) scalar() bool {
	const fewJumps = 3 // the loop's own, and those of two conditions
	float, vector, loads, jumps := 0, 0, 0, 0
	for i := range r.Main().Instructions {
		t := &r.Main().Instructions[i].Traits
		switch {
		case t.Scalar:
			float++
		case t.Vector:
			vector++
		}
		if t.Loads || t.Stores {
			loads++
		}
		switch {
		case t.Calls, i < len(r.Insts) && r.Insts[i].Flow == disasm.IndirectJump:
			jumps += fewJumps + 1
		case t.Jumps:
			jumps++
		}
	}
	return vector == 0 && (float > 0 || loads > 0 && r.Loop > 0 && jumps <= fewJumps)
}

// first returns the first instruction with a trait, or -1.
func (r *Result) first(is func(t simulation.Traits) bool) int {
	return slices.IndexFunc(r.Main().Instructions, func(in simulation.Instruction) bool { return is(in.Traits) })
}
