package model

import (
	"bytes"
	"slices"
)

// The types below are a model file as it is written. Every field is a pointer, a slice or
// a map: nil is what the file does not state. Only what is stated replaces what is
// extended.

type modelFile struct {
	Name      *string
	Version   *string
	Title     *string
	About     *string
	Source    *string
	CPUs      []string
	Extends   *string
	Remove    []string
	Unit      *string
	Of        *string
	Parameter []parameterTable
	Input     []inputTable
	Node      []nodeTable
	Relation  []relationTable
	EventSet  []eventSetTable

	pos position
}

type parameterTable struct {
	Name    *string
	Value   *float64
	Unit    *string
	About   *string
	Source  *string
	Choices map[string]float64
	Min     *float64
	Max     *float64

	pos position
}

type inputTable struct {
	Name   *string
	Events []string
	LP     *int
	Any    *bool
	About  *string

	pos position
}

type nodeTable struct {
	Name       *string
	Parent     *string
	Section    *string
	Formula    *string
	Rest       *bool
	Unit       *string
	Domain     *string
	Threshold  *string
	Standalone *bool
	Min        *float64
	Max        *float64
	Negative   *string
	Overlap    *bool
	Optional   *bool
	Title      *string
	About      *string
	Causes     []string
	Try        []string
	Source     *string
	Sample     []string

	pos position
}

type relationTable struct {
	Name      *string
	Left      *string
	Right     *string
	Op        *string
	Tolerance *float64
	Identity  *bool
	When      *string
	Holds     *string
	Fails     *string
	Slack     *string
	CPUs      []string
	Each      []string
	Source    *string

	pos position
}

type eventSetTable struct {
	Name   *string
	About  *string
	Runs   *int
	Events []setEventTable

	Command, Note *string

	pos position
}

type setEventTable struct {
	Event       string
	SampleAfter uint64
}

// decodeModel decodes a model file. Its faults are returned as [Errors], with what could
// be decoded; a file that is not TOML gives nil.
func decodeModel(data []byte, file string) (*modelFile, error) {
	f := &modelFile{pos: position{file: file, line: 1}}
	f.Node = make([]nodeTable, 0, bytes.Count(data, []byte("[[node]]"))) // about as many
	last := &f.pos
	var room []keyPlace // for the places of keys, which the tables take pieces of
	err := decode(data, file, schema{
		top: f.field,
		table: func(list string, at position) func(key string) any {
			if last != &f.pos {
				room = room[min(len(last.keys), len(room)):]
				last.keys = slices.Clip(last.keys)
			}
			field, pos := f.add(list)
			if pos != nil {
				if len(room) < 32 { // no table has as many
					room = make([]keyPlace, 512)
				}
				at.keys = room[:0]
				*pos = at
				last = pos
			}
			return field
		},
		places: func() *position { return last },
	})
	if notTOML(err) {
		return nil, err
	}
	return f, err
}

// add begins another table of a list, and returns where its keys and its
// position go.
func (f *modelFile) add(list string) (field func(key string) any, pos *position) {
	switch list {
	case "parameter":
		f.Parameter = append(f.Parameter, parameterTable{})
		t := &f.Parameter[len(f.Parameter)-1]
		return t.field, &t.pos
	case "input":
		f.Input = append(f.Input, inputTable{})
		t := &f.Input[len(f.Input)-1]
		return t.field, &t.pos
	case "node":
		f.Node = append(f.Node, nodeTable{})
		t := &f.Node[len(f.Node)-1]
		return t.field, &t.pos
	case "relation":
		f.Relation = append(f.Relation, relationTable{})
		t := &f.Relation[len(f.Relation)-1]
		return t.field, &t.pos
	case "event-set":
		f.EventSet = append(f.EventSet, eventSetTable{})
		t := &f.EventSet[len(f.EventSet)-1]
		return t.field, &t.pos
	}
	return nil, nil
}

func (f *modelFile) field(key string) any {
	switch key {
	case "name":
		return &f.Name
	case "version":
		return &f.Version
	case "title":
		return &f.Title
	case "about":
		return &f.About
	case "source":
		return &f.Source
	case "cpus":
		return &f.CPUs
	case "extends":
		return &f.Extends
	case "remove":
		return &f.Remove
	case "unit":
		return &f.Unit
	case "of":
		return &f.Of
	}
	return nil
}

func (t *parameterTable) field(key string) any {
	switch key {
	case "name":
		return &t.Name
	case "value":
		return &t.Value
	case "unit":
		return &t.Unit
	case "about":
		return &t.About
	case "source":
		return &t.Source
	case "choices":
		return &t.Choices
	case "min":
		return &t.Min
	case "max":
		return &t.Max
	}
	return nil
}

func (t *inputTable) field(key string) any {
	switch key {
	case "name":
		return &t.Name
	case "events":
		return &t.Events
	case "lp":
		return &t.LP
	case "any":
		return &t.Any
	case "about":
		return &t.About
	}
	return nil
}

func (t *nodeTable) field(key string) any {
	switch key {
	case "name":
		return &t.Name
	case "parent":
		return &t.Parent
	case "section":
		return &t.Section
	case "formula":
		return &t.Formula
	case "rest":
		return &t.Rest
	case "unit":
		return &t.Unit
	case "domain":
		return &t.Domain
	case "threshold":
		return &t.Threshold
	case "standalone":
		return &t.Standalone
	case "min":
		return &t.Min
	case "max":
		return &t.Max
	case "negative":
		return &t.Negative
	case "overlap":
		return &t.Overlap
	case "optional":
		return &t.Optional
	case "title":
		return &t.Title
	case "about":
		return &t.About
	case "causes":
		return &t.Causes
	case "try":
		return &t.Try
	case "source":
		return &t.Source
	case "sample":
		return &t.Sample
	}
	return nil
}

func (t *relationTable) field(key string) any {
	switch key {
	case "name":
		return &t.Name
	case "left":
		return &t.Left
	case "right":
		return &t.Right
	case "op":
		return &t.Op
	case "tolerance":
		return &t.Tolerance
	case "identity":
		return &t.Identity
	case "when":
		return &t.When
	case "holds":
		return &t.Holds
	case "fails":
		return &t.Fails
	case "slack":
		return &t.Slack
	case "cpus":
		return &t.CPUs
	case "each":
		return &t.Each
	case "source":
		return &t.Source
	}
	return nil
}

func (t *eventSetTable) field(key string) any {
	switch key {
	case "name":
		return &t.Name
	case "about":
		return &t.About
	case "runs":
		return &t.Runs
	case "command":
		return &t.Command
	case "note":
		return &t.Note
	case "events":
		return &t.Events
	}
	return nil
}
