package model

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// errataFile lists events that count wrongly by their vendor's own account: cpus (keys of
// the event tables), event, errata.
const errataFile = relationsDir + "/errata.csv"

// Errata returns the vendor's errata that affect an event of the processor, by the event's
// name in its table: they say that it may count wrongly.
func (t *EventTable) Errata(event string) ([]string, error) {
	if t.errata == nil {
		return nil, nil
	}
	all, err := t.errata()
	return all[event], err
}

// errataFor makes the errata of a table to be read when they are asked for.
func (lib *library) errataFor(t *EventTable) func() (map[string][]string, error) {
	return sync.OnceValues(func() (map[string][]string, error) {
		if t.cpu.Events == "" {
			return nil, nil
		}
		data, err := readFile(lib.fsys, path.Clean(errataFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return readErrata(string(data), t.cpu.Events)
	})
}

// readErrata reads the rows of a key.
func readErrata(text, key string) (map[string][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment, r.FieldsPerRecord = '#', 3
	rows, err := r.ReadAll()
	if err != nil {
		var at *csv.ParseError
		if errors.As(err, &at) {
			return nil, &Error{File: errataFile, Line: at.Line, Msg: at.Err.Error()}
		}
		return nil, &Error{File: errataFile, Line: 1, Msg: err.Error()}
	}
	all := map[string][]string{}
	for _, row := range rows {
		if hasWord(row[0], key) {
			all[row[1]] = strings.Fields(row[2])
		}
	}
	return all, nil
}
