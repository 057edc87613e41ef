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
	Mode      *string
	Parameter []parameterTable `key:"-"`
	Input     []inputTable     `key:"-"`
	Node      []nodeTable      `key:"-"`
	Relation  []relationTable  `key:"-"`
	EventSet  []eventSetTable  `key:"-"`

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
	Places     *bool
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
	Advice     []adviceTable
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
	Times     *bool
	Plausible *bool
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

// An adviceTable is one piece of advice that holds under a condition.
type adviceTable struct{ Try, When, Unless string }

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
		top: f,
		table: func(list string, at position) any {
			if last != &f.pos {
				room = room[min(len(last.keys), len(room)):]
				last.keys = slices.Clip(last.keys)
			}
			table, pos := f.add(list)
			if pos != nil {
				if len(room) < 32 { // no table has as many
					room = make([]keyPlace, 512)
				}
				at.keys = room[:0]
				*pos = at
				last = pos
			}
			return table
		},
		places: func() *position { return last },
	})
	if notTOML(err) {
		return nil, err
	}
	return f, err
}

// add begins another table of a list, and returns it with its position.
func (f *modelFile) add(list string) (table any, pos *position) {
	switch list {
	case "parameter":
		return grow(&f.Parameter)
	case "input":
		return grow(&f.Input)
	case "node":
		return grow(&f.Node)
	case "relation":
		return grow(&f.Relation)
	case "event-set":
		return grow(&f.EventSet)
	}
	return nil, nil
}

// grow appends a table to a list.
func grow[T any, P namedTable[T]](list *[]T) (table any, pos *position) {
	*list = append(*list, *new(T))
	last := P(&(*list)[len(*list)-1])
	return last, last.position()
}
