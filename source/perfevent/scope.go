package perfevent

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
)

// scopes are the rows of the tables: what is kept apart.
type scopes struct {
	keep     counts.By
	interval bool
	list     []counts.Scope
	index    map[counts.Scope]int // without the number of processors
}

func newScopes(keep counts.By, interval bool) *scopes {
	return &scopes{keep: keep, interval: interval, index: map[counts.Scope]int{}}
}

// add returns the row of a scope, which it adds if there is none. The number of
// processors is that of the row's own.
func (s *scopes) add(scope counts.Scope, cpus int) int {
	i, ok := s.index[scope]
	if !ok {
		i = len(s.list)
		s.index[scope] = i
		s.list = append(s.list, scope)
	}
	s.list[i].CPUs += cpus
	return i
}

// base returns the scope of everything.
func (s *scopes) base() counts.Scope {
	scope := counts.RunScope("")
	if s.interval {
		scope.Kind = counts.Interval
	}
	return scope
}

// cgroup returns the scope of a cgroup as far as cgroups are kept apart.
func (s *scopes) cgroup(name string) counts.Scope {
	scope := s.base()
	if s.keep.Has(counts.Cgroup) {
		scope.Kind, scope.Cgroup, scope.Label = counts.Cgroup, name, name
	}
	return scope
}

// cpu returns the scope of a logical processor within a scope of all, as far as
// processors are kept apart. Its kind is the finest that is kept.
func (s *scopes) cpu(within counts.Scope, c CPU) counts.Scope {
	if s.keep.Has(counts.Node) {
		within.Kind, within.Node, within.Label = counts.Node, c.Node, fmt.Sprintf("N%d", c.Node)
	}
	if s.keep.Has(counts.Socket) {
		within.Kind, within.Socket, within.Label = counts.Socket, c.Socket, fmt.Sprintf("S%d", c.Socket)
	}
	if s.keep.Has(counts.Die) {
		within.Kind, within.Die, within.Socket = counts.Die, c.Die, c.Socket
		within.Label = fmt.Sprintf("S%d-D%d", c.Socket, c.Die)
	}
	if s.keep.Has(counts.Core) {
		within.Kind, within.Core, within.Die, within.Socket = counts.Core, c.Core, c.Die, c.Socket
		within.Label = fmt.Sprintf("S%d-D%d-C%d", c.Socket, max(c.Die, 0), c.Core)
	}
	if s.keep.Has(counts.CPU) {
		within = counts.Scope{Kind: counts.CPU, Label: fmt.Sprintf("CPU%d", c.ID), CPU: c.ID, Core: c.Core, Die: c.Die,
			Socket: c.Socket, Node: c.Node, TID: counts.Unknown, Cgroup: within.Cgroup}
	}
	return within
}

// maxThreads bounds the rows of a table. Threads that come when there are so
// many share one.
const maxThreads = 1 << 14

// thread returns the scope of a thread as far as threads are kept apart.
func (s *scopes) thread(tid int, name string) counts.Scope {
	scope := s.base()
	if !s.keep.Has(counts.Thread) {
		return scope
	}
	scope.Kind, scope.Label = counts.Thread, "further threads"
	if len(s.list) < maxThreads {
		scope.TID, scope.Label = tid, fmt.Sprintf("%s-%d", name, tid)
	}
	return scope
}
