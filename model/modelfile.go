package model

import (
	"bytes"
	"slices"
)

// A modelFile is a model as a file states it. The positions of its tables, and its own,
// have the keys that are stated: only these replace what is extended.
type modelFile struct {
	Model
	Extends string
	Remove  []string
}

// decodeModel decodes a model file. Its faults are returned as [Errors], with what could
// be decoded; a file that is not TOML gives nil.
func decodeModel(data []byte, file string) (*modelFile, error) {
	f := &modelFile{Model: Model{pos: position{file: file, line: 1}}}
	f.Nodes = make([]Node, 0, bytes.Count(data, []byte("[[node]]"))) // about as many
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
		return grow(&f.Parameters)
	case "input":
		return grow(&f.Inputs)
	case "node":
		return grow(&f.Nodes)
	case "relation":
		return grow(&f.Relations)
	case "event-set":
		return grow(&f.EventSets)
	}
	return nil, nil
}

// grow appends a table to a list.
func grow[T any, P namedTable[T]](list *[]T) (table any, pos *position) {
	*list = append(*list, *new(T))
	last := P(&(*list)[len(*list)-1])
	return last, last.position()
}
