package agent

import (
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// osModel is the method of the operating system's account, and osGroup the group of its
// nodes.
const (
	osModel = "os-time"
	osGroup = "os"
)

// A sink has the series of an agent.
type sink struct {
	r         *registry
	processor string // by the catalogue's name
	osVersion string // of the operating system's method
	pressures bool   // of cgroups

	cpu, idle, throttled, pressure, wholeSeconds *family
	runQueue, switches                           *family
	enabled, running, windows                    *family
	instructions, info                           *family
	wholes                                       map[string]*family // by unit
	nodes                                        map[string][]*family
}

// newSink makes the families. The names and what they mean are in docs/fleet.md.
func newSink(r *registry, processor, osVersion string) *sink {
	s := &sink{r: r, processor: processor, osVersion: osVersion, wholes: map[string]*family{}, nodes: map[string][]*family{}}
	s.cpu = r.family(series.CPU, "processor time by the operating system's account", seconds)
	s.idle = r.family(series.Idle, "processor time that nothing of this host ran in", seconds)
	s.throttled = r.family(series.Throttled, "time of processors stopped at the cgroup's limit", seconds)
	s.pressure = r.family(series.Pressure, "time that some or all tasks waited for a resource", seconds)
	s.runQueue = r.family(series.RunQueue, "time of threads in the run queue", seconds)
	s.switches = r.family(series.ContextSwitches, "context switches", count)
	s.enabled = r.family(series.Enabled, "time that the group's events were enabled, summed over processors", seconds)
	s.running = r.family(series.Running, "of that, time that they were on counters", seconds)
	s.windows = r.family(series.Windows, "intervals of the group; only those that are ok are in the counters", count)
	s.instructions = r.family(series.Instructions, "instructions in the group's windows", count)
	s.info = r.family(series.ModelInfo, "1; the method of an account, with its version", gauge)
	s.wholeSeconds = s.whole(series.CPUSeconds)
	return s
}

// kindOf returns how the values of a unit are kept.
func kindOf(u series.Unit) familyKind {
	if u == series.CPUSeconds {
		return seconds
	}
	return count
}

// whole returns the family of what accounts in a unit divide.
func (s *sink) whole(u series.Unit) *family {
	f := s.wholes[u.Name]
	if f == nil {
		f = s.r.family(u.Whole, "what the nodes are parts of, in the windows of their group", kindOf(u))
		s.wholes[u.Name] = f
	}
	return f
}

// level returns the family of the nodes of a level.
func (s *sink) level(u series.Unit, level int) *family {
	list := s.nodes[u.Name]
	for len(list) <= level {
		list = append(list, nil)
	}
	s.nodes[u.Name] = list
	if list[level] == nil {
		list[level] = s.r.family(u.Node(level), "the parts of the whole, by node of this level", kindOf(u))
	}
	return list[level]
}

func (s *sink) secondsOf(level int) *family { return s.level(series.CPUSeconds, level) }

// drop removes the series of a bundle.
func (s *sink) drop(b *bundle) {
	s.r.remove(b.all)
	var more []*counter // those of counts in bursts have the same first labels
	begin := strings.TrimSuffix(labelText(b.scope), "}") + ","
	for _, c := range s.r.byKey {
		if strings.HasPrefix(c.text, begin) {
			more = append(more, c)
		}
	}
	s.r.remove(more)
}

// describe exports which method an account has, with the labels of its series.
func (s *sink) describe(model, version, processor, method, unit string) {
	cpu, coreType, _ := strings.Cut(processor, ":")
	s.r.get(s.info, series.Model, model, series.ModelVersion, version, series.Processor, cpu, series.CoreType, coreType, series.Method, method, "unit", unit).set(1)
}

// nanosOf converts to nanoseconds.
func nanosOf(seconds float64) int64 { return int64(seconds * float64(time.Second)) }
