package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An event is what one processor can count.
type event struct {
	name        string
	config      uint64
	config1     uint64
	kind        string // what config1 is: "offcore_rsp", "ldlat", "frontend", "omr"; "" for none
	counters    string // "0,1,2,3", "fixed1", "" for any general one
	smt         string // the same while the core's other thread runs; "" as counters
	flags       []string
	sampleAfter uint64
	unit        string
	aliases     []string
	deprecated  bool     // until rows are formed, then a flag
	sameAs      []string // names that the vendor says mean the same
}

// An encoding is what the hardware is told, and so what an event is.
type encoding struct {
	kind            string
	config, config1 uint64
}

func (e *event) encoding() encoding {
	return encoding{e.kind, e.config, e.config1}
}

// addFlag adds a flag that is not there yet.
func (e *event) addFlag(flag string) {
	if !slices.Contains(e.flags, flag) {
		e.flags = append(e.flags, flag)
	}
}

// A processor is one key of a table with its events.
type processor struct {
	key    string
	events []*event
}

// find returns the event of a name, or nil.
func (p *processor) find(name string) *event {
	i := slices.IndexFunc(p.events, func(e *event) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return p.events[i]
}

// A table is the content of one file.
type table struct {
	heading    string
	sources    []source
	processors []*processor
}

// columns is the header row.
var columns = []string{"cpus", "name", "config", "config1", "pmu", "counters", "counters_smt", "flags", "sample_after", "unit", "aliases"}

// A row is one event of all the processors that have it in just this form.
type row struct {
	cpus []string
	*event
	matrix matrix // if it stands for several events
}

// rows puts the events of all processors together: what is the same on several
// is one row. They are ordered by name, then by the first processor.
func (t *table) rows() []row {
	type key struct{ name, rest string }
	index := map[key]int{}
	var rows []row
	for _, p := range t.processors {
		for _, e := range p.events {
			k := key{e.name, strings.Join(e.cells(), "\x00")}
			i, ok := index[k]
			if !ok {
				i = len(rows)
				index[k] = i
				rows = append(rows, row{event: e})
			}
			rows[i].cpus = append(rows[i].cpus, p.key)
		}
	}
	rows = foldOffcore(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.spelling(), b.spelling()) })
	return rows
}

// spelling is what stands in the name column.
func (r row) spelling() string {
	if r.matrix.prefix != "" {
		return r.matrix.String()
	}
	return r.name
}

// cells are the columns after the name.
func (e *event) cells() []string {
	var config1, sampleAfter string
	if e.kind != "" {
		config1 = hex(e.config1)
	}
	if e.sampleAfter != 0 {
		sampleAfter = strconv.FormatUint(e.sampleAfter, 10)
	}
	var flags []string
	if e.kind != "" {
		flags = append(flags, e.kind)
	}
	flags = append(flags, e.flags...)
	if e.deprecated {
		flags = append(flags, "deprecated")
	}
	const pmu = "" // all events are the core's
	return []string{
		hex(e.config), config1, pmu, e.counters, e.smt, strings.Join(flags, " "),
		sampleAfter, e.unit, strings.Join(e.aliases, " "),
	}
}

// write writes the table and makes sure that it says what was meant: read back
// and with its matrix rows written out, it gives every processor its events.
func (t *table) write(w io.Writer) error {
	if _, err := io.WriteString(w, t.heading); err != nil {
		return err
	}
	rows := t.rows()
	if err := t.verify(rows); err != nil {
		return err
	}
	cw := csv.NewWriter(w)
	cw.Write(columns)
	for _, r := range rows {
		cells := r.cells()
		if r.matrix.prefix != "" {
			cells[1] = ""
		}
		cw.Write(append([]string{strings.Join(r.cpus, " "), r.spelling()}, cells...))
	}
	cw.Flush()
	return cw.Error()
}

// verify compares the rows, matrices written out, with the processors' events.
func (t *table) verify(rows []row) error {
	type id struct{ cpu, name string }
	want := map[id]string{}
	for _, p := range t.processors {
		for _, e := range p.events {
			if _, dup := want[id{p.key, e.name}]; dup {
				return fmt.Errorf("%s has two events %s", p.key, e.name)
			}
			want[id{p.key, e.name}] = strings.Join(e.cells(), ",")
		}
	}
	for _, r := range rows {
		for _, e := range r.expand() {
			for _, cpu := range r.cpus {
				if got := strings.Join(e.cells(), ","); got != want[id{cpu, e.name}] {
					return fmt.Errorf("%s %s: the rows give %q, not %q", cpu, e.name, got, want[id{cpu, e.name}])
				}
				delete(want, id{cpu, e.name})
			}
		}
	}
	for id := range want {
		return fmt.Errorf("%s %s: lost", id.cpu, id.name)
	}
	return nil
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }
