// Package parquet writes counts, accounts and places as tables of Apache Parquet, for
// engines such as DuckDB and Polars. A row group is held in memory, and no more.
package parquet

import (
	"cmp"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// groupRows is how many rows a row group has at most. It bounds the memory of a table.
const groupRows = 1 << 16

// Tables are the names of the tables.
var Tables = []string{"counts", "accounts", "places"}

// A Writer writes accounts of any number of recordings into tables. It is a [report.Writer]:
// Begin and End once for each recording, and Close for all.
type Writer struct {
	// Recording names the recording that is read.
	Recording string
	// Note puts a note into the reader's words.
	Note func(counts.Note) string

	counts   *parquet.GenericWriter[countRow]
	accounts *parquet.GenericWriter[accountRow]
	places   *parquet.GenericWriter[placeRow]

	header report.Header
	n      int64   // accounts so far
	total  float64 // of the event that places are compared by
	nodes  []accountRow
	events []countRow
}

// New returns a writer of tables, each into the file of its name in to. The version is that
// of this program.
func New(to map[string]io.Writer, version string) *Writer {
	w := &Writer{Note: func(n counts.Note) string { return n.Text }}
	if f := to["counts"]; f != nil {
		w.counts = table[countRow](f, "counts", version)
	}
	if f := to["accounts"]; f != nil {
		w.accounts = table[accountRow](f, "accounts", version)
	}
	if f := to["places"]; f != nil {
		w.places = table[placeRow](f, "places", version)
	}
	return w
}

// table begins a table.
func table[T any](w io.Writer, name, version string) *parquet.GenericWriter[T] {
	return parquet.NewGenericWriter[T](w, parquet.MaxRowsPerRowGroup(groupRows), parquet.DataPageVersion(1),
		parquet.CreatedBy("cyclestack", version, ""), parquet.KeyValueMetadata("cyclestack.schema", "cyclestack."+name+"/v1"),
		parquet.KeyValueMetadata("cyclestack.version", version))
}

// Begin takes the header of a recording.
func (w *Writer) Begin(h report.Header) error {
	w.header, w.total = h, 0
	return nil
}

// Account writes the rows of an account.
func (w *Writer) Account(a *account.Account) error {
	s := scopeOf(&w.header, w.Recording, w.n, a)
	w.n++
	list := a.Counts()
	if err := w.placed(&s, a, list); err != nil {
		return err
	}
	if w.counts != nil {
		w.events = w.events[:0]
		for i := range list {
			w.events = append(w.events, countOf(&s, &list[i]))
		}
		if _, err := w.counts.Write(w.events); err != nil {
			return err
		}
	}
	if w.accounts == nil || w.header.Profile != nil && w.header.Profile.Flat != "" {
		return nil
	}
	w.nodes = w.nodes[:0]
	w.add(&s, a, nodesOf(a.Model()), true)
	for _, f := range a.Also {
		w.add(&s, f.Account, f.Nodes, false)
	}
	if a.Times != nil {
		w.add(&s, a.Times, nodesOf(a.Times.Model()), false)
	}
	_, err := w.accounts.Write(w.nodes)
	return err
}

// add gathers rows of nodes.
func (w *Writer) add(s *scope, a *account.Account, nodes []int, main bool) {
	for _, i := range nodes {
		w.nodes = append(w.nodes, nodeOf(s, a, i, main, w.Note))
	}
}

// placed writes the row of a place, if the account is that of one.
func (w *Writer) placed(s *scope, a *account.Account, list []account.Count) error {
	p := w.header.Profile
	if p == nil || w.places == nil {
		return nil
	}
	var of *account.Count
	for i := range list {
		if cmp.Or(list[i].As, list[i].Event) == p.Event {
			of = &list[i]
			break
		}
	}
	if of != nil && a.Scope.Kind == counts.Run {
		w.total = of.Value
	}
	_, err := w.places.Write([]placeRow{placeOf(s, p.Event, of, w.total)})
	return err
}

// End ends a recording.
func (w *Writer) End() error { return nil }

// Close completes the tables.
func (w *Writer) Close() error {
	if w.counts != nil {
		if err := w.counts.Close(); err != nil {
			return err
		}
	}
	if w.accounts != nil {
		if err := w.accounts.Close(); err != nil {
			return err
		}
	}
	if w.places != nil {
		return w.places.Close()
	}
	return nil
}
