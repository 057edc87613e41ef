package account

import (
	"math"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// A Dominance says what decides a program's way: the layout of data that its loops walk
// through, or the values of data that its branches depend on (D. Levinthal, Cycle Accounting
// Analysis on Intel Core 2 Processors: "loop vs. branch dominated"). The two want different
// events counted next, and different remedies.
type Dominance uint8

// The outcomes of [Account.Dominance].
const (
	DominanceUnknown Dominance = iota // the branches and mispredictions were not counted
	DominanceLoops
	DominanceBranches
	DominanceNeither // something of both
)

// String returns "loops", "branches" or "neither", and "" where it is not known.
func (d Dominance) String() string {
	return [...]string{DominanceUnknown: "", DominanceLoops: "loops", DominanceBranches: "branches", DominanceNeither: "neither"}[d]
}

// The rule of [Branching.Dominance]. A misprediction costs some fifteen to twenty cycles: one
// in a thousand instructions costs hardly anything. Three cost a twentieth of the time at one
// instruction a cycle.
const (
	mispredictsFew  = 1.0 / 1000 // of the instructions
	mispredictsMany = 3.0 / 1000
	tripsMany       = 100 // branches from one misprediction to the next
)

// A Branching is how often a program branches, and how well that is predicted.
type Branching struct {
	Instructions, Branches, Mispredictions float64
}

// Dominance decides by the mispredictions. The exit of a loop of fixed length is
// mispredicted once at most. So there are many branches between mispredictions if loops
// dominate; where the data decide, branches go wrong again and again. Loops dominate below
// one misprediction in 1000 instructions or in 100 branches. Branches dominate above three
// in 1000 instructions.
func (b Branching) Dominance() Dominance {
	rate := b.Mispredictions / b.Instructions
	switch {
	case math.IsNaN(rate) || !(b.Branches > 0):
		return DominanceUnknown
	case rate < mispredictsFew || b.Trips() > tripsMany:
		return DominanceLoops
	case rate > mispredictsMany:
		return DominanceBranches
	}
	return DominanceNeither
}

// Trips is the number of branches from one misprediction to the next: about the
// iterations of the loops, if these hold no other branch and the end of each is
// mispredicted. It is +Inf if nothing was mispredicted.
func (b Branching) Trips() float64 { return b.Branches / b.Mispredictions }

// BlockLength is the number of instructions from one branch to the next.
func (b Branching) BlockLength() float64 { return b.Instructions / b.Branches }

// Branching returns the counts of branches, all of the same mode: of user mode
// and the kernel together, or of one of them. It is NaN in all fields unless all
// three were counted.
func (a *Account) Branching() Branching {
	for _, mode := range []string{"", ":u", ":k"} {
		for _, set := range model.BranchSets() {
			b := Branching{a.total(set[0], mode), a.total(set[1], mode), a.total(set[2], mode)}
			if !math.IsNaN(b.Instructions + b.Branches + b.Mispredictions) {
				return b
			}
		}
	}
	return Branching{math.NaN(), math.NaN(), math.NaN()}
}

// total sums the counts of several events of a mode in the account's scope; NaN if
// one of them was not counted.
func (a *Account) total(events []string, mode string) float64 {
	sum := 0.0
	for _, name := range events {
		if e, ok := a.Binding.Method.Events.Lookup(name); ok {
			name = e.Name
		}
		sum += a.count(name + mode)
	}
	return sum
}

// count is the count of an event, by the processor's name for it: of the scope, or
// of its logical processors together.
func (a *Account) count(name string) float64 {
	if len(a.place.LP) == 0 {
		return a.countIn(a.place.Self, name)
	}
	sum := 0.0
	for _, row := range a.place.LP {
		sum += a.countIn(row, name)
	}
	return sum
}

// countIn is the first reading of an event in a row that was counted.
func (a *Account) countIn(row int, name string) float64 {
	for col := range a.Binding.Names {
		if a.Binding.Names[col] != name {
			continue
		}
		if cell := a.table.Cell(row, col); cell.State == counts.Counted {
			return cell.Estimate()
		}
	}
	return math.NaN()
}
