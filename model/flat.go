package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A flat table is one of a list of tables without tables in them, with the line
// it begins on.
type flat[T any] struct {
	line  int
	value T
}

// readFlat reads a TOML file that is a list of flat tables of one name. field
// returns where the value of a key goes, a *string, *int, *[]string or
// *map[string]float64, and nil for a key that there is not. Faults are returned
// as [Errors].
//
// This is for the files that every start of the program reads; it takes a
// quarter of the time that decoding them into structures does.
func readFlat[T any](data []byte, file, name string, field func(t *T, key string) any) ([]flat[T], error) {
	var (
		all    []flat[T]
		faults Errors
	)
	err := expressions(data, func(e expression) bool {
		problem := ""
		switch {
		case e.kind == unstable.ArrayTable && e.key == name && !e.dotted:
			all = append(all, flat[T]{line: e.line})
		case e.kind != unstable.KeyValue || e.dotted || len(all) == 0:
			problem = fmt.Sprintf("unknown key %q: the file is a list of [[%s]]", clip(e.key), name)
		default:
			problem = assign(field(&all[len(all)-1].value, e.key), e)
		}
		if problem != "" {
			faults = append(faults, &Error{File: file, Line: e.line, Msg: problem})
		}
		return true
	})
	if err != nil { // the decoder says it with the line
		if err := decodeStrict(data, file, new(map[string]any)); err != nil {
			return nil, err
		}
		return nil, Errors{{File: file, Msg: err.Error()}}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return all, nil
}

// assign puts the value of a key where to points, and returns what is wrong
// with it.
func assign(to any, e expression) (problem string) {
	wanted, ok := "", false
	switch to := to.(type) {
	case *string:
		wanted = "a string"
		if ok = e.value.Kind == unstable.String; ok {
			*to = strings.TrimSpace(string(e.value.Data))
		}
	case *[]string:
		wanted = "a list of strings"
		*to, ok = stringList(e.value)
	case *int:
		wanted = "a whole number"
		v, err := strconv.Atoi(string(e.value.Data))
		*to, ok = v, e.value.Kind == unstable.Integer && err == nil
	case *map[string]float64:
		wanted = "a table of numbers"
		*to, ok = numberTable(e.value)
	default:
		return fmt.Sprintf("unknown key %q", clip(e.key))
	}
	if !ok {
		return fmt.Sprintf("key %q: %s is wanted", clip(e.key), wanted)
	}
	return ""
}

// stringList returns the elements of a list of strings.
func stringList(value *unstable.Node) ([]string, bool) {
	if value.Kind != unstable.Array {
		return nil, false
	}
	list := []string{}
	for it := value.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			return nil, false
		}
		list = append(list, string(it.Node().Data))
	}
	return list, true
}

// numberTable returns the keys and values of an inline table of numbers.
func numberTable(value *unstable.Node) (map[string]float64, bool) {
	if value.Kind != unstable.InlineTable {
		return nil, false
	}
	table := map[string]float64{}
	for it := value.Children(); it.Next(); {
		v := it.Node().Value()
		key := it.Node().Key()
		if v.Kind != unstable.Integer && v.Kind != unstable.Float || !key.Next() {
			return nil, false
		}
		number, err := strconv.ParseFloat(string(v.Data), 64)
		if err != nil {
			return nil, false
		}
		table[string(key.Node().Data)] = number
	}
	return table, true
}
