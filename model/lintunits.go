package model

import "github.com/cyclestack/cyclestack/metric"

// units checks that the units of formulas add up, and come to what the model
// says its values are.
func (l *linter) units() {
	of := l.unitOf()
	check := func(e *Expr, what string, at place, want metric.Unit, known bool) {
		if e == nil {
			return
		}
		switch got, err := e.Unit(of); {
		case err != nil:
			l.report(at, SevError, "%s: %v", what, err)
		case known && got.Known() && !got.Equal(want):
			l.report(at, SevError, "%s comes to %s, which should be %s", what, got, want)
		}
	}
	m := l.m
	unit, known := unitOf(m.Unit)
	check(m.of, "of", m.head.at("of"), unit, known)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		unit, known := l.amountUnit(i)
		check(n.expr, "node "+n.Name+": formula", n.pos.at("formula"), unit, known)
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.left == nil || r.right == nil {
			continue
		}
		at := place{file: r.File, line: r.Line}
		if want, err := r.right.Unit(of); err != nil {
			l.report(at, SevError, "relation %s: right: %v", r.Name, err)
		} else {
			check(r.left, "relation "+r.Name+": left", at, want, want.Known())
		}
	}
}

// unitOf returns a unit by its text; "" is not known.
func unitOf(text string) (u metric.Unit, known bool) {
	if text == "" {
		return u, false
	}
	u, err := metric.ParseUnit(text)
	return u, err == nil
}

// amountUnit returns the unit of what a node's formula gives: its own; for the
// nodes of a tree that of the model's values, which are shares of slots unless
// the model says of what they are amounts.
func (l *linter) amountUnit(i int) (u metric.Unit, known bool) {
	n := &l.m.Nodes[i]
	switch {
	case n.Unit != "":
		return unitOf(n.Unit)
	case l.m.Of == "" && l.m.Share(i):
		return unitOf("1")
	}
	return unitOf(l.m.Unit)
}

// unitOf returns the function that gives the units of the names in formulas.
func (l *linter) unitOf() func(name string) (metric.Unit, bool) {
	m := l.m
	units := map[string]metric.Unit{}
	add := func(name string, u metric.Unit, known bool) {
		if _, ok := units[name]; known && !ok {
			units[name] = u
		}
	}
	for i := range m.Nodes {
		u, known := l.amountUnit(i)
		add(m.Nodes[i].Name, u, known)
	}
	for i := range m.Parameters {
		u, known := unitOf(m.Parameters[i].Unit)
		add(m.Parameters[i].Name, u, known)
	}
	for i := range m.Inputs {
		for _, e := range m.Inputs[i].Events {
			u, known := l.eventUnit(e)
			add(m.Inputs[i].Name, u, known)
		}
	}
	return func(name string) (metric.Unit, bool) {
		if l.declared[name] {
			u, known := units[name]
			return u, known
		}
		return l.eventUnit(name)
	}
}

// eventUnit returns the unit of an event's counts.
func (l *linter) eventUnit(spelling string) (u metric.Unit, known bool) {
	e, ok := l.table.Lookup(spelling)
	if !ok {
		return u, false
	}
	return unitOf(e.Unit)
}
