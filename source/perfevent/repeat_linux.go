package perfevent

import (
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/counts"
)

// repeats joins the tables of several runs of a command into one: means, with
// the variances that come of the runs' differences.
type repeats struct {
	groups   []int // what each run counts: the index of a group, -1 for all
	parts    int   // in how many runs all are counted once
	next     int
	layout   *counts.Layout
	label    string
	notes    []counts.Note // of the last run
	sums     []spread      // by cell
	joint    counts.Runs
	duration stats
	shortest float64
	longest  float64
}

// A spread is what several runs counted in one cell.
type spread struct {
	value                  stats
	enabled, running, lost float64
	state                  counts.State // of a cell that no run counted
}

// stats are the mean of some values and the sum of squared differences from it, updated
// as by Welford (1962).
type stats struct {
	n           int
	mean, about float64
}

func (s *stats) add(v float64) {
	s.n++
	d := v - s.mean
	s.mean += d / float64(s.n)
	s.about += d * (v - s.mean)
}

// variance returns the variance of the mean, 0 where it is not known.
func (s *stats) variance() float64 {
	if s.n < 2 {
		return 0
	}
	return s.about / float64(s.n-1) / float64(s.n)
}

// newRepeats plans the runs. All groups are counted once before any is counted
// again.
func newRepeats(spec *Spec) *repeats {
	r := &repeats{shortest: math.Inf(1), parts: 1}
	if spec.Separate {
		r.parts = max(1, len(spec.Groups))
	}
	for range max(1, spec.Repeat) {
		if !spec.Separate || len(spec.Groups) == 0 {
			r.groups = append(r.groups, -1)
			continue
		}
		for g := range spec.Groups {
			r.groups = append(r.groups, g)
		}
	}
	return r
}

// group returns what the next run counts.
func (r *repeats) group() int { return r.groups[r.next] }

// add adds the table of a run.
func (r *repeats) add(t *counts.Table) {
	r.layout, r.label, r.notes = t.Layout, t.Label, t.Notes
	r.duration.add(t.Duration)
	r.joint.Add(t)
	r.shortest, r.longest = min(r.shortest, t.Duration), max(r.longest, t.Duration)
	if r.sums == nil {
		r.sums = make([]spread, len(t.Scopes)*len(t.Columns))
	}
	for i := range t.Scopes {
		row := t.Row(i)
		for j := range row {
			r.sums[i*len(row)+j].add(&row[j])
		}
	}
}

func (s *spread) add(c *counts.Cell) {
	if !c.Ok() {
		if c.State != counts.Absent && s.state != counts.NotCounted {
			s.state = c.State
		}
		return
	}
	s.value.add(c.Value)
	s.enabled += c.Enabled
	s.running += c.Running
	s.lost += c.Lost
}

func (s *spread) cell() counts.Cell {
	if s.value.n == 0 {
		return counts.Cell{State: s.state}
	}
	n := float64(s.value.n)
	return counts.Cell{State: counts.Counted, Value: s.value.mean, Variance: s.value.variance(), Repeats: int32(s.value.n),
		Enabled: s.enabled / n, Running: s.running / n, Lost: s.lost / n}
}

// table returns the joined table.
func (r *repeats) table(n *notes) *counts.Table {
	layout := *r.layout
	layout.Columns = slices.Clone(layout.Columns)
	for j := range layout.Columns {
		if r.parts > 1 && layout.Columns[j].Group > 0 { // others are counted in all runs
			layout.Columns[j].Parts = r.parts
		}
	}
	t := counts.NewTable(&layout)
	t.Label, t.Start = r.label, 0
	t.Duration, t.Elapsed = r.duration.mean, math.Sqrt(r.duration.variance())
	for i := range t.Scopes {
		for j := range t.Columns {
			c := t.Cell(i, j)
			if *c = r.sums[i*len(t.Columns)+j].cell(); layout.Columns[j].Parts > 1 {
				c.OfRuns(r.parts)
			}
		}
	}
	t.Notes = slices.Clone(n.list)
	for _, note := range r.notes {
		if !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
	}
	r.joint.Put(t)
	return t
}

// nextRepeated makes all the runs and joins their tables.
func (r *Run) nextRepeated() bool {
	p := r.repeats
	for {
		t := counts.NewTable(r.session.layout)
		whole := r.session.next(t) && !r.stopped() && !r.interrupted()
		if whole || p.next == 0 {
			p.add(r.observed(t))
		}
		p.next++
		if !whole {
			if p.next > 1 {
				r.notes.add("stopped in run %d of %d, which is left out", p.next, len(p.groups))
			} else {
				r.notes.add("stopped in run 1 of %d", len(p.groups))
			}
			break
		}
		if p.next == len(p.groups) {
			break
		}
		if err := r.again(); err != nil {
			r.err = err
			break
		}
	}
	if r.spec.Separate && len(p.groups) > 1 {
		r.notes.add("counted in %d runs of %.3g to %.3g s: figures of different runs differ as much as these do", p.next, p.shortest, p.longest)
	}
	r.table = p.table(&r.notes)
	r.finish()
	return true
}

// stopped says whether the counting was ended from outside.
func (r *Run) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// interrupted says whether the run was ended by a signal that asks for it.
func (r *Run) interrupted() bool {
	if r.last.Load() {
		return true
	}
	c := r.session.command
	select {
	case <-c.done:
		if c.state == nil {
			return false
		}
		ws, ok := c.state.Sys().(syscall.WaitStatus)
		return ok && ws.Signaled() && (ws.Signal() == unix.SIGINT || ws.Signal() == unix.SIGQUIT)
	default:
		return false
	}
}

// again begins the next run.
func (r *Run) again() error {
	r.keepState()
	r.session.close()
	r.progress(r.repeats.next + 1)
	s, err := newSession(r.sys, &r.spec, r.scheme, r.repeats.group(), &r.notes, r.stop)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.session = s
	r.mu.Unlock()
	return nil
}
