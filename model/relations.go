package model

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/metric"
)

// relationsDir is the folder of the files of relations in a library: any.toml
// for every processor, and one for the processors of each layout of event codes.
const relationsDir = "relations"

// widthName stands in the formulas of relations for the slots that the
// processor has in a cycle.
const widthName = "WIDTH"

// usualSlack is why a tolerance is what it is, of a relation that does not say so.
const usualSlack = "counters start, stop and are read one after the other"

// eachName stands in the formulas of a relation for each of its events.
const eachName = "EACH"

// A relationSet is what holds between the counts of a processor's events whatever
// the method: what the events' definitions leave no choice about, and bounds
// that no processor passes. They are immutable.
type relationSet struct {
	Inputs    []Input // names that stand in the relations for one of several events
	Relations []Relation
}

// formulas returns the formulas of a relation, nil for one that it has not.
func (r *Relation) formulas() [3]*metric.Expr { return [3]*metric.Expr{r.left, r.right, r.when} }

// Relations returns the relations between the events of the table's processor, and the
// inputs that they name: of the relations of its family and of every processor, those
// whose events it has. They hold whatever the method. Faults in their files are returned
// as [Errors].
func (t *EventTable) Relations() ([]Input, []Relation, error) {
	if t.relations == nil {
		return nil, nil, nil
	}
	set, err := t.relations()
	if err != nil {
		return nil, nil, err
	}
	return set.Inputs, set.Relations, nil
}

// relationsFor makes the relations of a table to be read when they are asked
// for.
func (lib *library) relationsFor(t *EventTable) func() (*relationSet, error) {
	return sync.OnceValues(func() (*relationSet, error) {
		out := &relationSet{}
		for _, stem := range []string{"any", t.cpu.Layout} {
			file := path.Join(relationsDir, stem+".toml")
			m, err := lib.readRelations(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out.add(m, t)
		}
		return out, nil
	})
}

// readRelations reads a file of relations: a model file that has a head, inputs
// and relations only.
func (lib *library) readRelations(file string) (*Model, error) {
	f, err := lib.decode(lib.fsys, file, file)
	if err != nil {
		return nil, err
	}
	f.File = file
	b := &builder{m: &f.Model, names: map[string]meaning{}, units: map[string]bool{}}
	f.dropDuplicates(&b.faults)
	b.inputs()
	b.relations()
	if n := len(f.Nodes) + len(f.Parameters) + len(f.EventSets); n > 0 || f.Extends != "" {
		b.fault(f.pos.at("name"), "a file of relations has inputs and relations, and nothing else")
	}
	for i := range f.Relations {
		for _, event := range f.Relations[i].Each {
			b.formula(f.Relations[i].pos.at("each"), subject{"relation", f.Relations[i].Name, "each"}, event)
		}
	}
	if len(b.faults) > 0 {
		b.faults.sort()
		return nil, b.faults
	}
	for i := range b.m.Relations {
		r := &b.m.Relations[i]
		r.Source = cmp.Or(r.Source, f.Source)
		if r.Tolerance > 0 {
			r.Slack = cmp.Or(r.Slack, usualSlack)
		}
	}
	return b.m, nil
}

// add adds the relations of a file that are about events of the table.
func (r *relationSet) add(m *Model, t *EventTable) {
	known := map[string]bool{widthName: t.cpu.Width > 0, eachName: true}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		known[in.Name] = slices.ContainsFunc(in.Events, t.lists)
		if known[in.Name] {
			r.Inputs = append(r.Inputs, *in)
		}
	}
	width := metric.Constants{Value: func(name string) (float64, bool) { return float64(t.cpu.Width), name == widthName }}
	for i := range m.Relations {
		rel := m.Relations[i]
		if !rel.isFor(t.cpu) || !rel.bound(known, t) {
			continue
		}
		rel.change(func(e *metric.Expr) *metric.Expr { return e.Fold(width) })
		if rel.Each == nil {
			r.Relations = append(r.Relations, rel)
			continue
		}
		done := map[Identity]bool{}      // under whichever of its names
		for _, event := range rel.Each { // or inputs
			ref, err := ParseEvent(event)
			if id := t.Resolve(ref); err == nil && (known[event] || t.lists(event)) && !done[id] {
				done[id] = true
				one := rel
				one.about(event)
				r.Relations = append(r.Relations, one)
			}
		}
	}
}

// change replaces the formulas of a relation.
func (r *Relation) change(f func(*metric.Expr) *metric.Expr) {
	for _, e := range []**metric.Expr{&r.left, &r.right, &r.when} {
		if *e != nil {
			*e = f(*e)
		}
	}
}

// about makes of a relation that is one for each of several events the one for
// one of them.
func (r *Relation) about(event string) {
	r.change(func(e *metric.Expr) *metric.Expr {
		return e.Substitute(func(name string) *metric.Expr {
			if name != eachName {
				return nil
			}
			named, _ := metric.Parse(event) // as readRelations has found out
			return named
		})
	})
}

// isFor reports whether a relation is for a processor.
func (r *Relation) isFor(p *CPU) bool {
	if len(r.CPUs) == 0 {
		return true
	}
	return slices.ContainsFunc(r.CPUs, func(pattern string) bool {
		ok, _ := path.Match(pattern, p.Name)
		return ok
	})
}

// bound reports whether the processor has all events that a relation names.
// What it finds out about a name it notes in known.
func (r *Relation) bound(known map[string]bool, t *EventTable) bool {
	for _, e := range r.formulas() {
		if e == nil {
			continue
		}
		for _, name := range e.Names() {
			have, seen := known[name]
			if !seen {
				have = t.lists(name)
				known[name] = have
			}
			if !have {
				return false
			}
		}
	}
	return true
}

// lists reports whether an event is one of the processor's, or of every machine.
// A table without rows excludes nothing.
func (t *EventTable) lists(spelling string) bool {
	_, ok := t.Lookup(spelling)
	return ok || len(t.events) == 0
}

// Unrelated returns the table without the relations between its events, for counts that
// cannot be checked by any: the relations need not be read.
func (t *EventTable) Unrelated() *EventTable {
	alone := *t
	alone.relations = nil
	return &alone
}
