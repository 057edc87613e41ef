package model

import (
	"reflect"
	"slices"
)

// A namedTable is merged with the one of the same name in the file that is
// extended.
type namedTable[T any] interface {
	*T
	id() string
	position() *position
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (t *parameterTable) id() string { return str(t.Name) }
func (t *inputTable) id() string     { return str(t.Name) }
func (t *nodeTable) id() string      { return str(t.Name) }
func (t *relationTable) id() string  { return str(t.Name) }
func (t *eventSetTable) id() string  { return str(t.Name) }

func (t *parameterTable) position() *position { return &t.pos }
func (t *inputTable) position() *position     { return &t.pos }
func (t *nodeTable) position() *position      { return &t.pos }
func (t *relationTable) position() *position  { return &t.pos }
func (t *eventSetTable) position() *position  { return &t.pos }

// extend returns base with what f states put over it: keys replace keys, named tables are
// merged by name, new ones are appended. Those that f removes are left out. It adds what
// is wrong with f to faults.
func (f *modelFile) extend(base *modelFile, faults *Errors) *modelFile {
	f.dropDuplicates(faults)
	removed := f.removals(base, faults)
	out := *base
	out.Extends, out.Remove = nil, nil
	out.Parameter = mergeTables(base.Parameter, f.Parameter, removed)
	out.Input = mergeTables(base.Input, f.Input, removed)
	out.Node = mergeNodes(base.Node, f.Node, removed)
	out.Relation = mergeTables(base.Relation, f.Relation, removed)
	out.EventSet = mergeTables(base.EventSet, f.EventSet, removed)

	head := *f
	head.Extends, head.Remove = nil, nil
	head.Parameter, head.Input, head.Node, head.Relation, head.EventSet = nil, nil, nil, nil, nil
	overlay(&out, &head)
	out.pos = base.pos.with(f.pos)
	return &out
}

// removals returns the names that f removes. base must have each.
func (f *modelFile) removals(base *modelFile, faults *Errors) map[string]bool {
	if len(f.Remove) == 0 {
		return nil
	}
	have := make(map[string]bool, len(base.Node)+len(base.Input)+len(base.Parameter))
	collectNames(base.Parameter, have)
	collectNames(base.Input, have)
	collectNames(base.Node, have)
	collectNames(base.Relation, have)
	collectNames(base.EventSet, have)
	removed := make(map[string]bool, len(f.Remove))
	for _, name := range f.Remove {
		if !have[name] {
			*faults = append(*faults, f.pos.at("remove").errorf("remove: %s has nothing named %q", str(f.Extends), name))
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
	f.Parameter = firstOfName("parameter", f.Parameter, faults)
	f.Input = firstOfName("input", f.Input, faults)
	f.Node = firstOfName("node", f.Node, faults)
	f.Relation = firstOfName("relation", f.Relation, faults)
	f.EventSet = firstOfName("event-set", f.EventSet, faults)
}

// firstOfName returns the first table of each name, in place, and all without a
// name: these are reported where the table is built.
func firstOfName[T any, P namedTable[T]](kind string, tables []T, faults *Errors) []T {
	first := make(map[string]int, len(tables))
	return slices.DeleteFunc(tables, func(table T) bool {
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
			overlay(&out[j], &over[i])
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
func mergeNodes(base, over []nodeTable, removed map[string]bool) []nodeTable {
	kept, at := keepTables(base, removed)
	added := map[string][]int{} // indexes in over, by parent
	var order []string          // of the parents in added
	more := 0
	for i := range over {
		n := &over[i]
		if j, ok := at[n.id()]; ok {
			overlay(&kept[j], n)
			kept[j].pos = kept[j].pos.with(n.pos)
			settleRest(&kept[j], n)
			continue
		}
		parent := str(n.Parent)
		if len(added[parent]) == 0 {
			order = append(order, parent)
		}
		added[parent] = append(added[parent], i)
		more++
	}
	if len(order) == 0 {
		return kept
	}
	out := make([]nodeTable, 0, len(kept)+more)
	take := func(parent string) {
		for _, i := range added[parent] {
			out = append(out, over[i])
		}
		delete(added, parent)
	}
	for i := range kept {
		if parent := str(kept[i].Parent); parent != "" && isTrue(kept[i].Rest) {
			take(parent)
		}
		out = append(out, kept[i])
	}
	for _, parent := range order {
		take(parent)
	}
	return out
}

// settleRest drops from a merged node what the node over it has made untrue.
func settleRest(merged, over *nodeTable) {
	switch {
	case over.Formula != nil && over.Rest == nil:
		merged.Rest = nil
	case isTrue(over.Rest) && over.Formula == nil:
		merged.Formula = nil
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// overlay replaces in dst what src states. Both are pointers to one of the types
// of a model file.
func overlay(dst, src any) {
	d, s := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	for i := range d.NumField() {
		if d.Type().Field(i).IsExported() && !s.Field(i).IsNil() {
			d.Field(i).Set(s.Field(i))
		}
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
	for f.Extends != nil {
		chain = append(chain, f)
		base, err := open(*f.Extends)
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
	if n := len(f.Node); n > maxNodes {
		faults = append(faults, f.pos.at("node").errorf("%d nodes: more than %d", n, maxNodes))
		f = nil
	}
	if len(faults) > 0 {
		return f, faults
	}
	return f, nil
}
