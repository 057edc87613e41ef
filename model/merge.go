package model

import (
	"reflect"
	"slices"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A namedTable is merged with the one of the same name in the file that is
// extended.
type namedTable[T any] interface {
	*T
	id() string
	position() *position
}

func (p *Parameter) id() string { return p.Name }
func (in *Input) id() string    { return in.Name }
func (n *Node) id() string      { return n.Name }
func (r *Relation) id() string  { return r.Name }
func (s *EventSet) id() string  { return s.Name }

func (p *Parameter) position() *position { return &p.pos }
func (in *Input) position() *position    { return &in.pos }
func (n *Node) position() *position      { return &n.pos }
func (r *Relation) position() *position  { return &r.pos }
func (s *EventSet) position() *position  { return &s.pos }

// extend returns base with what f states put over it: keys replace keys, named tables are
// merged by name, new ones are appended. Those that f removes are left out. It adds what
// is wrong with f to faults.
func (f *modelFile) extend(base *modelFile, faults *Errors) *modelFile {
	f.dropDuplicates(faults)
	removed := f.removals(base, faults)
	out := *base
	overlay(&out, f, f.pos)
	out.Extends, out.Remove = "", nil
	out.Parameters = mergeTables(base.Parameters, f.Parameters, removed)
	out.Inputs = mergeTables(base.Inputs, f.Inputs, removed)
	out.Nodes = mergeNodes(base.Nodes, f.Nodes, removed)
	out.Relations = mergeTables(base.Relations, f.Relations, removed)
	out.EventSets = mergeTables(base.EventSets, f.EventSets, removed)
	out.pos = base.pos.with(f.pos)
	return &out
}

// removals returns the names that f removes. base must have each.
func (f *modelFile) removals(base *modelFile, faults *Errors) map[string]bool {
	if len(f.Remove) == 0 {
		return nil
	}
	have := make(map[string]bool, len(base.Nodes)+len(base.Inputs)+len(base.Parameters))
	collectNames(base.Parameters, have)
	collectNames(base.Inputs, have)
	collectNames(base.Nodes, have)
	collectNames(base.Relations, have)
	collectNames(base.EventSets, have)
	removed := make(map[string]bool, len(f.Remove))
	for _, name := range f.Remove {
		if !have[name] {
			*faults = append(*faults, f.pos.at("remove").errorf("remove: %s has nothing named %q", f.Extends, name))
		}
		removed[name] = true
	}
	return removed
}

func collectNames[T any, P namedTable[T]](tables []T, into map[string]bool) {
	for i := range tables {
		into[P(&tables[i]).id()] = true
	}
}

// dropDuplicates drops each table of f with the name of an earlier one of its kind. It
// adds a fault for it. It must come before merging, which cannot distinguish the second
// from a replacement of the first.
func (f *modelFile) dropDuplicates(faults *Errors) {
	f.Parameters = firstOfName("parameter", f.Parameters, faults)
	f.Inputs = firstOfName("input", f.Inputs, faults)
	f.Nodes = firstOfName("node", f.Nodes, faults)
	f.Relations = firstOfName("relation", f.Relations, faults)
	f.EventSets = firstOfName("event-set", f.EventSets, faults)
}

// firstOfName returns the first table of each name, in place, and all without a
// name: these are reported where the table is built.
func firstOfName[T any, P namedTable[T]](kind string, tables []T, faults *Errors) []T {
	first := make(map[string]int, len(tables))
	return sorting.Delete(tables, func(table T) bool {
		t := P(&table)
		name := t.id()
		line, again := first[name]
		if again {
			*faults = append(*faults, t.position().at("name").errorf("there is already a %s %q, at line %d", kind, name, line))
		} else if name != "" {
			first[name] = t.position().line
		}
		return again
	})
}

func mergeTables[T any, P namedTable[T]](base, over []T, removed map[string]bool) []T {
	out, at := keepTables[T, P](base, removed)
	for i := range over {
		t := P(&over[i])
		if j, ok := at[t.id()]; ok {
			overlay(&out[j], &over[i], *t.position())
			pos := P(&out[j]).position()
			*pos = pos.with(*t.position())
			continue
		}
		out = append(out, over[i])
	}
	return out
}

// keepTables drops the tables that are removed, in place: what is extended was
// read for this. It says where each name is.
func keepTables[T any, P namedTable[T]](base []T, removed map[string]bool) ([]T, map[string]int) {
	at := make(map[string]int, len(base))
	n := 0
	for i := range base {
		name := P(&base[i]).id()
		if removed[name] {
			continue
		}
		at[name] = n
		if n < i {
			base[n] = base[i]
		}
		n++
	}
	return base[:n], at
}

// mergeNodes merges nodes as mergeTables does. A formula replaces a rest and a
// rest a formula; and a new node goes before the sibling that is their rest,
// which is displayed last.
func mergeNodes(base, over []Node, removed map[string]bool) []Node {
	kept, at := keepTables(base, removed)
	added := map[string][]int{} // indexes in over, by parent
	var order []string          // of the parents in added
	more := 0
	for i := range over {
		n := &over[i]
		if j, ok := at[n.id()]; ok {
			overlay(&kept[j], n, n.pos)
			kept[j].pos = kept[j].pos.with(n.pos)
			settleRest(&kept[j], n)
			continue
		}
		if len(added[n.Parent]) == 0 {
			order = append(order, n.Parent)
		}
		added[n.Parent] = append(added[n.Parent], i)
		more++
	}
	if len(order) == 0 {
		return kept
	}
	out := make([]Node, 0, len(kept)+more)
	take := func(parent string) {
		for _, i := range added[parent] {
			out = append(out, over[i])
		}
		delete(added, parent)
	}
	for i := range kept {
		if kept[i].Parent != "" && kept[i].Rest {
			take(kept[i].Parent)
		}
		out = append(out, kept[i])
	}
	for _, parent := range order {
		take(parent)
	}
	return out
}

// settleRest drops from a merged node what the node over it has made untrue.
func settleRest(merged, over *Node) {
	switch formula := over.pos.states("formula"); {
	case formula && !over.pos.states("rest"):
		merged.Rest = false
	case over.Rest && !formula:
		merged.Formula = ""
	}
}

// overlay replaces in dst what src states at pos. Both are pointers to one type.
func overlay(dst, src any, pos position) {
	d, s := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	for _, k := range pos.keys {
		field := keysOf(d.Type())[k.key]
		d.FieldByIndex(field).Set(s.FieldByIndex(field))
	}
}

// maxExtends bounds a chain of files that extend each other.
const maxExtends = 8

// resolve merges f with what it extends, which open reads by its stem, and
// fails for an endless chain. With [Errors] it returns what could be merged, nil
// if that is nothing.
func resolve(f *modelFile, open func(stem string) (*modelFile, error)) (*modelFile, error) {
	var chain []*modelFile
	var faults Errors
	for f.Extends != "" {
		chain = append(chain, f)
		base, err := open(f.Extends)
		read := asFaults(err)
		switch {
		case base == nil && read == nil:
			return nil, faults.with(Errors{f.pos.at("extends").errorf("%v", err)})
		case base == nil:
			return nil, faults.with(read)
		}
		faults = append(faults, read...)
		f = base
	}
	f.dropDuplicates(&faults)
	for _, over := range slices.Backward(chain) {
		f = over.extend(f, &faults)
	}
	if n := len(f.Nodes); n > maxNodes {
		faults = append(faults, f.pos.at("node").errorf("%d nodes: more than %d", n, maxNodes))
		f = nil
	}
	if len(faults) > 0 {
		return f, faults
	}
	return f, nil
}
