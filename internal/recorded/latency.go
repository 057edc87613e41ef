package recorded

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/latency"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// floorParam is the parameter of the models for the latency of the fastest load.
const floorParam = "MIN_LOAD_LATENCY"

// LatencyGroups are what latencies of samples can be divided by; the first is the
// default.
var LatencyGroups = []string{"level", "function", "line", "instruction", "mapping", "snoop", "tlb"}

// LatencyOptions are those of latencies.
type LatencyOptions struct {
	Floor   float64 // latency of the fastest load in cycles; NaN is the processor's
	By      string  // of samples: one of LatencyGroups
	Top     int     // of samples: how many groups
	Symbols profile.Config
}

// Latencies returns the document of the recordings' distributions: of sampled loads, or
// of counts at thresholds.
func (r *Recordings) Latencies(o LatencyOptions) (any, error) {
	if !r.HasSamples(r.Names[0]) {
		return r.thresholds(&o)
	}
	var list render.SampledLatencies
	for _, name := range r.Names {
		more, err := r.sampledLatency(&o, name)
		if errors.Is(err, samples.ErrNoLatency) && len(r.Names) == 1 {
			// The recording may have counts at thresholds.
			if l, err := r.thresholds(&o); err == nil {
				return l, nil
			}
		}
		if err != nil {
			return nil, fault.As(fault.Input, err)
		}
		list = append(list, more...)
	}
	return list, nil
}

// thresholds returns distributions from counts at thresholds.
func (r *Recordings) thresholds(o *LatencyOptions) (render.Latencies, error) {
	var list render.Latencies
	var before *resolve.Method
	for _, name := range r.Names {
		err := r.eachTable(name, 0, func(t *counts.Table, _ accounting.Kind) error {
			l, err := r.distribution(t, name, o.Floor, &before)
			list = append(list, l)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sampledLatency reads the loads of a recording, of each event by itself.
func (r *Recordings) sampledLatency(o *LatencyOptions, name string) ([]render.SampledLatency, error) {
	rec, err := r.recording(name)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	groups := map[*perfdata.Event]*latency.Groups{}
	m, err := rec.Memory(samples.Options{Symbols: o.Symbols}, func(x *samples.Access) {
		g := groups[x.Event]
		if g == nil {
			g = &latency.Groups{}
			groups[x.Event] = g
		}
		name, rank := groupOf(x, o.By)
		g.Add(name, rank, latency.Load{Latency: x.Latency, Instruction: x.Instruction, Loads: x.Loads,
			TLBMiss: x.Source.TLB()&perffile.TLBMiss != 0, Locked: x.Source.Locked(),
			Blocked: x.Source.Blocked()&(perffile.BlockedData|perffile.BlockedAddr) != 0})
	})
	if err != nil {
		return nil, err
	}
	cpu, vendor := r.recordedOn(m)
	facility, known := latency.FacilityOf(vendor)
	var list []render.SampledLatency
	for _, e := range m.Events {
		g := groups[e.Event]
		if g == nil {
			continue
		}
		l := render.SampledLatency{Label: m.Label, CPU: cpu, Event: e.Name, Threshold: e.Threshold, Duration: m.Duration,
			Facility: facility, Known: known, By: o.By, Top: o.Top, All: &g.All, Groups: g.ByCycles(), Notes: m.Notes}
		if o.By == "level" {
			l.Groups = g.ByRank()
		}
		list = append(list, l)
	}
	return list, nil
}

// groupOf names the group of an access.
func groupOf(x *samples.Access, by string) (name string, rank int) {
	switch by {
	case "function":
		return x.FunctionName(), 0
	case "line":
		return x.Line(), 0
	case "instruction":
		return x.Instr(), 0
	case "snoop":
		return snoopName(x.Source.Snoop()), 0
	case "tlb":
		return tlbName(x.Source.TLB()), 0
	case "mapping":
		return x.Data().Name, 0
	}
	return x.Level.Name, x.Level.Rank
}

// snoopName is what asking other caches came to, in perf's words.
func snoopName(s perffile.Snoop) string {
	switch {
	case s&perffile.SnoopHitM != 0:
		return "HitM"
	case s&perffile.SnoopPeer != 0:
		return "Peer"
	case s&perffile.SnoopForward != 0:
		return "Fwd"
	case s&perffile.SnoopHit != 0:
		return "Hit"
	case s&perffile.SnoopMiss != 0:
		return "Miss"
	case s&perffile.SnoopNone != 0:
		return "None"
	}
	return "N/A"
}

// tlbName is how an address was translated, in perf's words.
func tlbName(t perffile.TLB) string {
	var where []string
	for i, name := range []string{"L1", "L2", "Walker", "Fault"} {
		if t>>(3+i)&1 != 0 {
			where = append(where, name)
		}
	}
	name := strings.Join(where, " or ")
	switch {
	case t&perffile.TLBHit != 0:
		return strings.TrimSpace(name + " hit")
	case t&perffile.TLBMiss != 0:
		return strings.TrimSpace(name + " miss")
	case name == "":
		return "N/A"
	}
	return name
}

// recordedOn returns the name and vendor of a recording's processor, as far as they are known.
func (r *Recordings) recordedOn(m *samples.Memory) (name, vendor string) {
	cpu := r.Named().CPU
	if cpu == nil && m.CPU != "" {
		if known, err := r.Catalogue.CPU(m.CPU); err == nil {
			cpu = known
		}
	}
	if cpu != nil {
		return cpu.Name, cpu.Vendor
	}
	switch {
	case strings.HasPrefix(m.CPU, "GenuineIntel"):
		vendor = "intel"
	case strings.HasPrefix(m.CPU, "AuthenticAMD"):
		vendor = "amd"
	case m.Arch == "aarch64":
		vendor = "arm"
	case strings.HasPrefix(m.Arch, "ppc64"):
		vendor = "ibm"
	}
	return m.CPU, vendor
}

// distribution makes the distribution of a table's counts at thresholds.
func (r *Recordings) distribution(t *counts.Table, file string, floor float64, before **resolve.Method) (render.LatencyReport, error) {
	l := render.LatencyReport{Label: t.Label, Notes: slices.Clone(t.Notes)}
	if l.Label == "" {
		l.Label = file
	}
	var points []latency.Point
	for col := range t.Columns {
		threshold, ok := model.LatencyThreshold(t.Columns[col].Event)
		if !ok {
			continue
		}
		sum := counts.Cell{}
		for row := range t.Scopes {
			sum.Add(t.Cell(row, col))
		}
		if !sum.Ok() {
			l.Notes = append(l.Notes, counts.Notef("%s was %s", t.Columns[col].Event, sum.State))
			continue
		}
		points = append(points, latency.Point{Threshold: threshold, Count: sum.Estimate()})
	}
	if len(points) < 2 {
		return l, fault.Inputf("%s: %v", resolve.Where(file, t.Line), latency.ErrFew)
	}
	if math.IsNaN(floor) {
		cpu, fastest, err := r.fastest(t, file, before)
		if err != nil {
			return l, err
		}
		floor, l.CPU = fastest, cpu.Name
	}
	var err error
	if l.Distribution, err = latency.New(points, floor); err != nil {
		return l, fault.Inputf("%s: %v", resolve.Where(file, t.Line), err)
	}
	if l.First < floor {
		return l, &fault.OptionError{Option: "floor", Value: fmt.Sprint(floor), Err: fmt.Errorf("%s has its first drop at %v, and no load is faster than the fastest", file, l.First)}
	}
	return l, nil
}

// fastest returns the latency of a processor's fastest load in cycles. What is known of
// the processor is kept for the next table.
func (r *Recordings) fastest(t *counts.Table, file string, before **resolve.Method) (*model.CPU, float64, error) {
	if r.Named().CPU == nil && *before == nil && t.CPU == "" {
		return nil, 0, fault.Usagef("%s does not say which processor it is from: add %s NAME, or %s CYCLES, the latency of its fastest load (4 or 5 on most)", file, fault.Name("cpu"), fault.Name("floor"))
	}
	p, err := r.Processor(t, file, resolve.Request{}, *before)
	if err != nil {
		return nil, 0, err
	}
	*before = &resolve.Method{Selection: resolve.Selection{Processor: p}}
	for _, info := range r.Catalogue.Models(p.CPU.Name) {
		m, err := r.Catalogue.Model(info.Name, p.CPU.Name)
		if err != nil {
			return nil, 0, err
		}
		for i := range m.Parameters {
			if q := &m.Parameters[i]; q.Name == floorParam && q.Value != nil {
				return p.CPU, *q.Value, nil
			}
		}
	}
	return nil, 0, fault.Usagef("the fastest load of %s is not known here: add %s CYCLES (4 or 5 on most)", p.CPU.Name, fault.Name("floor"))
}
