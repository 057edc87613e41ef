// Package multiplex simulates programs that a kernel counts by multiplexing groups of
// events, and tries the stated errors on them: how often an interval holds the truth,
// and how wide it is against the ideal. It knows how a program behaves and how a kernel
// multiplexes. The arithmetic that it tries is the product's, and none of it is here.
//
//	go test ./internal/multiplex -run ErrorsHold -long -update
package multiplex

import (
	"math"
	"math/rand/v2"
)

// stepSeconds is the resolution of a simulated program.
const stepSeconds = 0.001

// A Kind is a kind of program: how its rates vary with time.
type Kind struct {
	Name string
	// Dwell is the mean length of a phase in seconds, 0 for a program without phases.
	// Recurring is the number of different phases; 0 makes each a new one.
	Dwell     float64
	Recurring int
	// Burst is the chance that a step has five times as many of every third event.
	Burst float64
	// Drift is the time constant of two factors that all rates follow, in seconds.
	Drift float64
	// Loop is the period of a loop that changes the rates, in seconds.
	Loop float64
	// Swap is the most that the program stays in one of two states, in seconds. The least is a step.
	Swap float64
	// Quiet leaves out the noise of each step.
	Quiet bool
}

// Kinds are the programs of the table.
var Kinds = []Kind{
	{Name: "noise"},
	{Name: "bursts", Burst: 0.05},
	{Name: "short phases", Dwell: 0.02, Recurring: 3},
	{Name: "phases", Dwell: 0.2, Recurring: 3},
	{Name: "long phases", Dwell: 2, Recurring: 3},
	{Name: "phases and bursts", Dwell: 0.2, Recurring: 4, Burst: 0.05},
	{Name: "autocorrelation", Drift: 0.3},
	{Name: "new phases", Dwell: 0.2},
}

// powers are those of e to 0.3 x for x from -8 in steps of 1/256: to raise e for each event and
// step takes most of the time of a trial.
var powers = func() (list [16<<8 + 2]float64) {
	for i := range list {
		list[i] = math.Exp(0.3 * (float64(i)/256 - 8))
	}
	return list
}()

// power is e to the power of 0.3 x, to seven digits.
func power(x float64) float64 {
	at := 256 * (x + 8)
	if !(at >= 0 && at < float64(len(powers)-1)) {
		return math.Exp(0.3 * x)
	}
	i := int(at)
	return powers[i] + (at-float64(i))*(powers[i+1]-powers[i])
}

// A program yields the counts of its events, step by step.
type program struct {
	kind   Kind
	rng    *rand.Rand
	rates  []float64   // counts in a step
	phases [][]float64 // of the recurring phases: factors by event
	now    []float64   // factors of the phase
	load   [][2]float64
	swap   int // steps until the state changes
	drift  [2]float64
	step   int
	start  float64 // where the loop begins, in steps
	counts []float64
}

// newProgram returns a program of a kind whose events have these rates, in counts per
// step.
func newProgram(k Kind, rates []float64, rng *rand.Rand) *program {
	p := &program{kind: k, rng: rng, rates: rates, counts: make([]float64, len(rates)), load: make([][2]float64, len(rates))}
	if k.Swap > 0 {
		p.phases = [][]float64{p.factors(), p.factors()}
	}
	for range k.Recurring {
		p.phases = append(p.phases, p.factors())
	}
	for e := range p.load {
		p.load[e] = [2]float64{rng.NormFloat64(), rng.NormFloat64()}
	}
	p.drift = [2]float64{rng.NormFloat64(), rng.NormFloat64()}
	p.start = rng.Float64()
	return p
}

// factors are those of a new phase.
func (p *program) factors() []float64 {
	f := make([]float64, len(p.rates))
	for e := range f {
		f[e] = math.Exp(0.5 * p.rng.NormFloat64())
	}
	return f
}

// next returns the counts of the next step, valid until the one after.
func (p *program) next() []float64 {
	k := &p.kind
	if k.Dwell > 0 && (p.now == nil || p.rng.Float64() < stepSeconds/k.Dwell) {
		if k.Recurring > 0 {
			p.now = p.phases[p.rng.IntN(len(p.phases))]
		} else {
			p.now = p.factors()
		}
	}
	if p.swap--; k.Swap > 0 && p.swap <= 0 {
		p.phases[0], p.phases[1] = p.phases[1], p.phases[0]
		p.now, p.swap = p.phases[0], 1+p.rng.IntN(int(k.Swap/stepSeconds))
	}
	if k.Drift > 0 {
		a := math.Exp(-stepSeconds / k.Drift)
		for i := range p.drift {
			p.drift[i] = a*p.drift[i] + math.Sqrt(1-a*a)*p.rng.NormFloat64()
		}
	}
	swing := 1.0
	if k.Loop > 0 {
		at := (float64(p.step)*stepSeconds/k.Loop + p.start)
		swing = 1 + 0.5*math.Copysign(1, math.Sin(2*math.Pi*at))
	}
	p.step++
	shared, burst := math.Exp(0.2*p.rng.NormFloat64()), p.rng.Float64() < k.Burst
	for e, r := range p.rates {
		if !k.Quiet {
			r *= shared * power(p.rng.NormFloat64())
		}
		if p.now != nil {
			r *= p.now[e]
		}
		if k.Drift > 0 {
			r *= power(p.load[e][0]*p.drift[0] + p.load[e][1]*p.drift[1])
		}
		if burst && e%3 == 0 {
			r *= 5
		}
		if e%2 == 1 {
			r *= swing
		}
		p.counts[e] = r
	}
	return p.counts
}
