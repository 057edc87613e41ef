package valgrind

import (
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// A cache miss costs its latency only if the core does nothing else meanwhile. Two things
// keep it from doing so:
//
//   - A load whose address comes from another load that missed begins when that one
//     has ended.
//   - Loads behind a mispredicted branch begin when the misprediction is known. If
//     there are as many mispredicted branches as misses, each miss is by itself.
//
// The reader adds events for the misses that nothing hides for these reasons: those of
// chained loads, and of the others one for each mispredicted branch. The second number is
// known for the run as a whole. Each place gets it in proportion to its misses, so that
// places sum to the run. Further events are the misses of the last simulated level that go
// to memory.
//
// In a file with rates, these events are those of the instructions without a rate: for the
// others the waiting time is known.
//
// See T. Karkhanis and J. Smith, A First-Order Superscalar Processor Model (2004).
const (
	exposedFirst  = "D1mr.exposed"        // loads that miss the first level, and nothing hides it
	exposedLast   = "DLmr.exposed"        // of them those that miss the last level as well
	memory        = "DLm.memory"          // loads and stores that go to memory
	exposedMemory = "DLmr.memory.exposed" // loads that do, and nothing hides it
)

// missEvents are the names of load misses in the first and last level, in all versions of the
// simulators.
var missEvents = [2][]string{{"D1mr"}, {"DLmr", "D2mr"}}

// storeMissEvents are those of stores.
var storeMissEvents = [2][]string{{"D1mw"}, {"DLmw", "D2mw"}}

// chain reports whether an instruction is a chained load with misses, and adds them to those of
// the run.
func (r *Reader) chain(costs []float64) bool {
	at := r.misses[0][0]
	if at < 0 || at >= len(costs) || costs[at] == 0 {
		return false
	}
	if r.lacks >= 0 && (r.lacks >= len(costs) || costs[r.lacks] == 0) { // it has a rate
		return false
	}
	if !r.opts.Chained(r.ob.text[r.at.ob], r.at.addr) {
		return false
	}
	r.chainedMisses(costs, &r.chained)
	return true
}

// chainedMisses adds the misses of a chained load.
func (r *Reader) chainedMisses(costs []float64, to *[2]float64) {
	for i, at := range r.misses[0] {
		if at >= 0 && at < len(costs) {
			to[i] += costs[at]
		}
	}
}

// indirectShare is the share of the simulated mispredictions of indirect jumps that real
// predictors have as well: these know the path to the jump.
const indirectShare = 0.05

// An exposure computes these events from the others and from the chained misses.
type exposure struct {
	first, last int     // columns of the misses of loads
	writes      int     // of stores of the last level; -1 for none
	share       float64 // of misses that are not chained
	memory      float64 // share of the last level's misses
}

// exposure returns how misses are exposed, given the sums of the run; false if the file
// lacks the events.
func (r *Reader) exposure(total []float64) (exposure, bool) {
	end := ""
	if slices.Contains(r.events, untimed) {
		end = ofUntimed
	}
	at := func(names ...string) int {
		return slices.IndexFunc(r.events, func(e string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return e == name+end })
		})
	}
	e := exposure{first: at(missEvents[0]...), last: at(missEvents[1]...), writes: at(storeMissEvents[1]...), memory: 1 - r.beyond}
	conditional, indirect := at("Bcm"), at("Bim")
	if e.first < 0 || e.last < 0 || conditional < 0 {
		return e, false
	}
	branches := total[conditional]
	if indirect >= 0 {
		branches += indirectShare * total[indirect]
	}
	if misses := total[e.first]; misses > 0 {
		e.share = min(1, branches/misses)
	}
	return e, true
}

// columns are those of the events.
func (e *exposure) columns() []counts.Column {
	return []counts.Column{{Event: exposedFirst}, {Event: exposedLast}, {Event: memory}, {Event: exposedMemory}}
}

// put writes the counts of a scope, given its sums by event and its chained misses of the
// two levels.
func (e *exposure) put(cells []counts.Cell, sums []float64, chained [2]float64) {
	expose := func(misses, chained float64) float64 { return chained + e.share*(misses-chained) }
	first, last := expose(sums[e.first], chained[0]), expose(sums[e.last], chained[1])
	misses := sums[e.last]
	if e.writes >= 0 {
		misses += sums[e.writes]
	}
	for i, v := range []float64{first, last, e.memory * misses, e.memory * last} {
		cells[i] = counted(v)
	}
}
