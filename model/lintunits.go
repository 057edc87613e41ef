package model

import (
	"errors"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/metric"
)

// units checks that the units of formulas add up, and come to what the model
// says its values are.
func (l *linter) units() {
	of := l.namedUnits()
	check := func(e *metric.Expr, what subject, at place, severity string, want metric.Unit, known bool) {
		if e == nil {
			return
		}
		switch got, err := e.Unit(of); {
		case comparesNumber(err):
		case err != nil:
			l.report(at, severity, "%s: %s", what, inFormula(err))
		case known && got.Known() && !got.Equal(want):
			if slices.ContainsFunc(e.Names(), func(name string) bool { _, ok := of(name); return !ok }) {
				severity = SevNote // it may be that name's unit that is missing
			}
			l.report(at, severity, "%s comes to %s, which should be %s", what, got, want)
		}
	}
	m := l.m
	unit, known := l.unitOf(m.Unit)
	check(m.of, subject{key: "of"}, m.pos.at("of"), SevError, unit, known)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		unit, known := l.amountUnit(i)
		severity := SevError
		if m.Of == "" && m.Share(i) {
			// An estimate: the vendors' formulas for shares take an instruction
			// for a uop, and multiply by latencies without saying so.
			severity = SevNote
		}
		check(n.expr, subject{"node", n.Name, "formula"}, n.pos.at("formula"), severity, unit, known)
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.left == nil || r.right == nil {
			continue
		}
		at := place{file: r.File, line: r.Line}
		if want, err := r.right.Unit(of); comparesNumber(err) {
			continue
		} else if err != nil {
			l.report(at, SevError, "relation %s: right: %s", r.Name, inFormula(err))
		} else {
			check(r.left, subject{"relation", r.Name, "left"}, at, SevError, want, want.Known())
		}
	}
}

// comparesNumber reports whether the error is a comparison of something that has a unit
// with a plain number. The number then has that unit.
func comparesNumber(err error) bool {
	var clash *metric.UnitError
	if !errors.As(err, &clash) || strings.Trim(clash.Op, "<>=!") != "" {
		return false
	}
	return clash.Left.Equal(metric.Unit{}) || clash.Right.Equal(metric.Unit{})
}

// unitOf returns a unit by its text; "" is not known. In a model of slots a uop
// is what fills a slot, and so the same unit.
func (l *linter) unitOf(text string) (u metric.Unit, known bool) {
	if text == "" {
		return u, false
	}
	if l.m.Unit == "slots" {
		text = strings.ReplaceAll(text, "uop", "slot")
	}
	u, err := metric.ParseUnit(text)
	return u, err == nil
}

// amountUnit returns the unit of what a node's formula gives: 1 where that is a
// share, otherwise the node's own, or that of the model's values.
func (l *linter) amountUnit(i int) (u metric.Unit, known bool) {
	switch n := &l.m.Nodes[i]; {
	case l.m.Of == "" && l.m.Share(i):
		return l.unitOf("1")
	case n.Unit != "":
		return l.unitOf(n.Unit)
	}
	return l.unitOf(l.m.Unit)
}

// namedUnits returns the function that gives the units of the names in formulas.
func (l *linter) namedUnits() func(name string) (metric.Unit, bool) {
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
		u, known := l.unitOf(m.Parameters[i].Unit)
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
	return l.unitOf(e.Unit)
}
