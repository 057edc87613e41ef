package perfstat

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// perCore joins a core's logical processors if perf repeats the core's count for each
// (--percore-show-thread with the percore term). So a sum has it once. perf does not print
// which processors share a core: those do whose counts per core are equal.
type perCore struct {
	cmd     *command
	columns []int  // counted by core
	first   []int  // by scope: the first scope of the same core
	alike   []int  // by scope: the first that has had the same counts so far
	told    []bool // by scope: it has had a count
	source  *counts.Layout
	layout  *counts.Layout // of source with cores for processors
	into    []int          // by scope of source: the scope of layout
	cells   []counts.Cell
	text    []byte // memory of key
	joined  bool   // a core has more than one processor
}

// isPerCore reports whether an event was counted by core: its terms say so, or
// those that the command line gave it.
func (b *block) isPerCore(event string) bool {
	if strings.Contains(event, "percore") {
		return true
	}
	return b.cmd != nil && slices.ContainsFunc(b.cmd.events, func(q request) bool {
		return strings.Contains(q.spec, "percore") && q.prints(event)
	})
}

// join puts cores in the place of the table's logical processors, if events
// were counted by core. It reports whether there are such events.
func (p *perCore) join(t *counts.Table, b *block) bool {
	if t.Layout != p.source || b.cmd != p.cmd {
		p.adopt(t.Layout, b)
	}
	if len(p.columns) == 0 {
		return false
	}
	if p.pair(t) || p.layout == nil {
		p.lay()
	}
	p.sum(t)
	return true
}

// adopt makes ready for another layout.
func (p *perCore) adopt(l *counts.Layout, b *block) {
	p.source, p.cmd, p.layout = l, b.cmd, nil
	p.columns = p.columns[:0]
	if !slices.ContainsFunc(l.Scopes, func(s counts.Scope) bool { return s.Kind == counts.CPU }) {
		return // cores, each printed once
	}
	for j, c := range l.Columns {
		if b.isPerCore(c.Event) {
			p.columns = append(p.columns, j)
		}
	}
	if len(p.columns) == 0 {
		return
	}
	n := len(l.Scopes)
	p.first, p.alike, p.told = make([]int, n), make([]int, n), make([]bool, n)
	for i := range p.first {
		p.first[i] = i
	}
}

// maxThreads is the most logical processors that a core has: those of Power.
const maxThreads = 8

// pair finds the processors that share a core, and reports whether they are
// others than before. What once had different counts are different cores, so
// that the longer a recording is, the less chance decides. Counts of 0 alone
// tell nothing.
func (p *perCore) pair(t *counts.Table) (changed bool) {
	heads := map[string]int{} // by counts
	size := map[int]int{}     // by head
	first := map[int]int{}    // by head
	for i, s := range t.Scopes {
		if s.Kind != counts.CPU {
			continue
		}
		key := p.key(t, i)
		head, found := heads[string(key)]
		if !found {
			head = i
			heads[string(key)] = i
		}
		p.alike[i] = head
		p.told[i] = p.told[i] || p.tells(t, i)
		if !p.told[i] {
			continue
		}
		if size[head]%maxThreads == 0 {
			first[head] = i
		}
		size[head]++
		changed = changed || p.first[i] != first[head]
		p.first[i] = first[head]
	}
	return changed
}

// tells reports whether a scope has a count that identifies its core.
func (p *perCore) tells(t *counts.Table, scope int) bool {
	return slices.ContainsFunc(p.columns, func(j int) bool { return t.Cell(scope, j).Value > 0 })
}

// key returns what the processors of a core have in common: its counts, those
// of earlier intervals, and their cgroup. It is valid until the next call.
func (p *perCore) key(t *counts.Table, scope int) []byte {
	p.text = binary.LittleEndian.AppendUint32(p.text[:0], uint32(p.alike[scope]))
	p.text = append(p.text, t.Scopes[scope].Cgroup...)
	for _, j := range p.columns {
		c := t.Cell(scope, j)
		p.text = append(p.text, byte(c.State))
		p.text = binary.LittleEndian.AppendUint64(p.text, math.Float64bits(c.Value))
		p.text = binary.LittleEndian.AppendUint64(p.text, math.Float64bits(c.Running))
	}
	return p.text
}

// lay makes the layout with a scope for each core. A core is numbered by its
// first logical processor, since perf does not print its own number.
func (p *perCore) lay() {
	l := &counts.Layout{Columns: p.source.Columns}
	p.into, p.joined = p.into[:0], false
	for i, s := range p.source.Scopes {
		if head := p.first[i]; head != i {
			c := &l.Scopes[p.into[head]]
			c.Label += "+" + s.Label
			c.CPUs++
			p.into = append(p.into, p.into[head])
			p.joined = true
			continue
		}
		if s.Kind == counts.CPU {
			s.Kind, s.Core, s.CPU = counts.Core, s.CPU, counts.Unknown
		}
		p.into = append(p.into, len(l.Scopes))
		l.Scopes = append(l.Scopes, s)
	}
	p.layout = l
}

// sum replaces the table's processors: counts per core are taken once, others
// added.
func (p *perCore) sum(t *counts.Table) {
	n := len(t.Columns)
	p.cells = p.cells[:0]
	for i := range t.Scopes {
		p.cells = append(p.cells, t.Row(i)...)
	}
	t.Reset(p.layout)
	for i, to := range p.into {
		row, from := t.Row(to), p.cells[i*n:(i+1)*n]
		for j := range row {
			if p.first[i] == i {
				row[j] = from[j]
			} else if !slices.Contains(p.columns, j) {
				row[j].Add(&from[j])
			}
		}
	}
}

// joinCores takes counts that stand for a whole core once, and notes it.
func (r *Reader) joinCores() {
	switch {
	case !r.cores.join(&r.table, &r.cur):
	case r.cores.joined:
		r.cur.notes.add("counts of whole cores, repeated for each of their logical processors: processors with equal counts were taken for one core, and each core's count once")
	default:
		r.cur.notes.add("counts of whole cores, by logical processor: no two are equal, so that each was taken for a core of its own")
	}
}
