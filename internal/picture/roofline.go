package picture

import (
	"cmp"
	"fmt"
	"io"
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

func init() {
	report.RegisterWriter("roofline", func(w io.Writer, o report.Options) report.Writer { return &roofline{w: w} })
}

// A roofline draws accounts as points of the roofline model: operations per second of
// processor time over operations per byte of memory traffic. S. Williams, A. Waterman, D.
// Patterson, Roofline, CACM 2009; with instructions as operations N. Ding and S. Williams,
// An Instruction Roofline Model for GPUs, PMBS 2019.
//
// The ceilings are of one core, as calibrate measured them: what it reads from memory, and
// its peak of floating-point operations, or its clock times the width of its pipeline.
type roofline struct {
	w      io.Writer
	h      report.Header
	points []point
	left   int     // accounts without a point
	why    string  // of the first of them
	width  float64 // of the pipeline; 0 if it is not known
	whole  float64 // seconds of the last run
	more   int     // points that there is no room for
}

// A point is an account in the model.
type point struct {
	label      string
	intensity  float64 // operations for each byte
	rate       float64 // operations in a second of processor time
	seconds    float64
	operations string // what they are
	bytes      string // what they were taken from
	flop       bool
}

// flops are the events of floating-point operations, by processor: Intel's count
// instructions (a fused one twice), by their width; AMD's and Arm's count operations.
var flops = [][]weight{
	{{"FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", 1}, {"FP_ARITH_INST_RETIRED.SCALAR_SINGLE", 1},
		{"FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE", 2}, {"FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE", 4},
		{"FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE", 4}, {"FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE", 8},
		{"FP_ARITH_INST_RETIRED.512B_PACKED_DOUBLE", 8}, {"FP_ARITH_INST_RETIRED.512B_PACKED_SINGLE", 16}},
	{{"fp_ret_sse_avx_ops.all", 1}},
	{{"FP_FIXED_OPS_SPEC", 1}},
}

// line is the size of a cache line in bytes, on all processors that have these events.
const line = 64

// traffic are the events of bytes to and from memory, the best first. Misses of the last
// cache leave out what is written back and prefetched.
var traffic = [][]weight{
	{{"Lm", line}},
	{{"UNC_M_CAS_COUNT.RD", line}, {"UNC_M_CAS_COUNT.WR", line}},
	{{"BUS_TRANS_BURST.ALL_AGENTS", line}},
	{{"LONGEST_LAT_CACHE.MISS", line}},
	{{"LL_CACHE_MISS_RD", line}},
	{{"LLC-load-misses", line}, {"LLC-store-misses", line}},
	{{"cache-misses", line}},
}

// A weight is what one count of an event stands for, in operations or bytes.
type weight struct {
	event string
	times float64
}

// amountOf adds up the events of the first list that has counts. It says what they are.
func amountOf(a *account.Account, lists [][]weight) (sum float64, from string) {
	for _, list := range lists {
		n, first := 0, ""
		for _, w := range list {
			v := a.Count(w.event)
			if math.IsNaN(v) {
				continue
			}
			sum += w.times * v
			if n++; n == 1 {
				first = w.event
			}
		}
		switch {
		case n > 1:
			return sum, fmt.Sprintf("%s and %s", first, page.Several(n-1, "similar event"))
		case n == 1:
			return sum, first
		}
	}
	return math.NaN(), ""
}

// seconds is the processor time of an account.
func (r *roofline) seconds(a *account.Account) float64 {
	if ns := a.Count("task-clock"); ns > 0 {
		return ns / 1e9
	}
	cycles := math.NaN()
	if i, ok := a.Node("Cycles"); ok { // of a simulation
		cycles = a.Nodes[i].Amount
	}
	for _, e := range model.RoleCycles.Events() {
		if !(cycles > 0) {
			cycles = a.Count(e)
		}
	}
	if clock := r.machine("FREQUENCY"); clock > 0 && cycles > 0 {
		return cycles / clock
	}
	if a.Scope.Kind == counts.Run {
		return a.Duration
	}
	return math.NaN()
}

// worth is the share of the processor time of the whole that a part must have for a point.
const worth = 0.001

// machine is a figure of the calibration, or of the user.
func (r *roofline) machine(name string) float64 {
	if v, ok := r.h.Params[name]; ok {
		return v
	}
	if m := r.h.Measured; m != nil && m.Params[name] > 0 {
		return m.Params[name]
	}
	if r.h.Machine == nil {
		return math.NaN()
	}
	if v, ok := r.h.Machine()[name]; ok {
		return v
	}
	return math.NaN()
}

// Begin implements [report.Writer].
func (r *roofline) Begin(h report.Header) error {
	r.h = h
	return nil
}

// pointsMost bounds the points of a picture.
const pointsMost = 500

// Account implements [report.Writer].
func (r *roofline) Account(a *account.Account) error {
	params := a.Binding.Method.Params()
	if r.width = params["Pipeline_Width"]; r.width == 0 {
		if core := simulation.ModelledCore(r.h.CPU.Name); core != nil {
			r.width = float64(core.Dispatch())
		}
	}
	p := point{label: cmp.Or(page.Printable(a.Scope.Label), a.Label), operations: "instructions", seconds: r.seconds(a)}
	if c := a.Scope.Code; c != nil {
		p.label = c.Label(a.Scope.Kind)
	}
	if a.Scope.Kind == counts.Run {
		p.label = cmp.Or(a.Label, "all")
	}
	count, from := amountOf(a, flops)
	if p.flop = from != ""; p.flop {
		p.operations = "floating-point operations (" + from + ")"
	} else {
		count = a.Instructions()
	}
	if a.Scope.Kind == counts.Run {
		r.whole = p.seconds
	}
	bytes, of := amountOf(a, traffic)
	p.bytes, p.intensity, p.rate = of, count/bytes, count/p.seconds
	switch {
	case of == "":
		r.without("no event of the memory's traffic was counted")
	case !(count > 0):
		r.without("no instructions were counted")
	case !(p.seconds > 0):
		r.without("neither the processor time nor the clock is known: calibrate measures the clock")
	case len(r.points) == pointsMost:
		r.more++
	case bytes <= 0:
		r.without("nothing moved to or from memory")
	case a.Scope.Kind != counts.Run && p.seconds < worth*r.whole:
		r.without("less than 0.1 % of the time")
	default:
		r.points = append(r.points, p)
	}
	return nil
}

// without notes an account that has no point.
func (r *roofline) without(why string) {
	if r.left++; r.why == "" {
		r.why = why
	}
}

// End implements [report.Writer].
func (r *roofline) End() error {
	if len(r.points) == 0 {
		return fmt.Errorf("--format roofline: there is no point to draw: %s", cmp.Or(r.why, "there are no accounts"))
	}
	flop := r.points[0].flop
	r.points = sorting.Delete(r.points, func(p point) bool { return p.flop != flop })
	_, err := io.WriteString(r.w, r.draw())
	return err
}

// A ceiling bounds the rate of a program.
type ceiling struct {
	name  string
	rate  float64 // of operations in a second; 0 for one of bandwidth
	bytes float64 // in a second
}

// at is the highest rate for an intensity.
func (c *ceiling) at(intensity float64) float64 {
	if c.rate > 0 {
		return c.rate
	}
	return c.bytes * intensity
}

// ceilings are those that were measured.
func (r *roofline) ceilings() (list []ceiling, missing []string) {
	clock, bandwidth := r.machine("FREQUENCY"), r.machine(penalties.Bandwidth)
	if bandwidth > 0 {
		list = append(list, ceiling{name: fmt.Sprintf("memory, one core reads: %s GB/s", page.Trim(bandwidth/1e9)), bytes: bandwidth})
	} else {
		missing = append(missing, "bandwidth")
	}
	switch {
	case r.points[0].flop:
		if peak := r.machine(penalties.FlopPeak); peak > 0 {
			list = append(list, ceiling{name: fmt.Sprintf("floating-point peak of doubles: %s GFLOP/s", page.Trim(peak/1e9)), rate: peak})
		} else {
			missing = append(missing, "the peak of floating-point operations")
		}
	case !(clock > 0):
		missing = append(missing, "clock")
	case r.width > 0:
		list = append(list, ceiling{name: fmt.Sprintf("the pipeline's width: %s a cycle at %s GHz", page.Trim(r.width), page.Trim(clock/1e9)), rate: r.width * clock})
		fallthrough
	default:
		list = append(list, ceiling{name: "one instruction a cycle", rate: clock})
	}
	return list, missing
}
