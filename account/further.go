package account

import (
	"math"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/peers"
)

// A Further is an account of the same scope by another method.
type Further struct {
	*Account
	Nodes []int // indexes of the nodes that rest on a count which no account before uses
}

// Extend appends an account of the same counts to Also, if it uses a count that no
// account before does. It reports whether it does.
func (a *Account) Extend(by *Account) bool {
	served := a.served()
	f := Further{Account: by}
	for i := range by.Nodes {
		if m := by.Model(); m.Nodes[i].Level == 0 && m.Share(i) {
			continue // the whole
		}
		news := false
		by.eachColumn(i, func(col int) { news = news || !served[col] })
		if news {
			f.Nodes = append(f.Nodes, i)
		}
	}
	if len(f.Nodes) > 0 {
		a.Also = append(a.Also, f)
	}
	return len(f.Nodes) > 0
}

// Serves counts the columns of the recording that a known node or a check of the
// method's rests on.
func (a *Account) Serves() int {
	n := 0
	for _, is := range a.served() {
		if is {
			n++
		}
	}
	return n
}

// served says of each column of the recording whether an account of the scope uses it.
func (a *Account) served() []bool {
	served := a.uses()
	if len(a.Also) == 0 {
		return served
	}
	served = slices.Clone(served)
	for _, f := range a.Also {
		for col, is := range f.served() {
			served[col] = served[col] || is
		}
	}
	return served
}

// A usage is what an account uses of the recording. It depends only on what is known.
type usage struct {
	known   []bool // the inputs, the nodes, the checks of the method that were made
	made    []bool // by check of the method
	columns []bool
}

// uses says of each column of the recording whether this account uses it. The result is
// kept for the accounts that follow, and is not to be changed.
func (a *Account) uses() []bool {
	b, u := a.Binding, &a.used
	n := len(b.live) + len(a.Nodes) + len(b.checks)
	same := len(u.known) == n
	if !same {
		*u = usage{make([]bool, n), make([]bool, len(b.checks)), make([]bool, len(b.Layout.Columns))}
	}
	set := func(at int, known bool) {
		same = same && u.known[at] == known
		u.known[at] = known
	}
	for i, k := range b.live {
		set(i, !math.IsNaN(a.in[b.slotIndex(k)]))
	}
	for _, i := range b.alive {
		set(len(b.live)+i, a.Nodes[i].Known())
	}
	clear(u.made)
	for i := range a.Checks {
		if c := &a.Checks[i]; c.State != Skipped && !c.Common && c.rule >= 0 {
			u.made[c.rule] = true
		}
	}
	for i, made := range u.made {
		set(len(b.live)+len(a.Nodes)+i, made)
	}
	if same {
		return u.columns
	}
	clear(u.columns)
	for i := range a.Nodes {
		a.eachColumn(i, func(col int) { u.columns[col] = true })
	}
	for rule, made := range u.made {
		if !made {
			continue
		}
		for _, at := range b.checks[rule].deps {
			for _, col := range b.columnsOf(b.slotAt(at)) {
				u.columns[col] = true
			}
		}
	}
	return u.columns
}

// eachColumn calls do with each column that a known node rests on, alternatives too.
func (a *Account) eachColumn(node int, do func(col int)) {
	b := a.Binding
	if !a.Nodes[node].Known() {
		return
	}
	for _, input := range b.nodes[node].inputs {
		if math.IsNaN(a.in[b.slotIndex(input)]) {
			continue
		}
		for _, alternative := range b.columns[input] {
			for _, col := range alternative {
				do(col)
			}
		}
	}
}

// A Rate is a count that no account of the scope uses, relative to another quantity.
type Rate struct {
	Count
	Unit  string  // of the count as the source prints it; "" for a plain number
	Rate  float64 // NaN if the recording has nothing to relate the count to
	Named bool    // the user named the event
	Per   string  // what Rate is relative to: "s" of elapsed time, "1000 instructions"; "" if it is not known
}

// perSecond is the preferred basis of a [Rate].
const perSecond = "s"

// Rest lists the counts that neither this account nor those in Also use, in the
// recording's order. Among them are those of all events that the user named, also if they
// were not counted.
func (a *Account) Rest() []Rate {
	served := a.served()
	var list []Rate
	per, amount := a.basis()
	for _, c := range a.listed() {
		column := &a.Binding.Layout.Columns[c.column]
		if !column.Named && (served[c.column] || c.State != counts.Counted || c.Event == "duration_time" || strings.HasPrefix(c.Event, peers.Published)) {
			continue
		}
		r := Rate{Count: c.Count, Unit: column.Unit, Rate: c.Value / amount, Per: per, Named: column.Named}
		list = append(list, r)
	}
	return list
}

// A listedCount is a count with its column.
type listedCount struct {
	Count
	column int
}

// listed lists the counts of the account's scope with their columns.
func (a *Account) listed() (list []listedCount) {
	rows := a.place.LP
	if len(rows) == 0 {
		rows = []int{a.place.Self}
	}
	all := a.Counts()
	for _, row := range rows {
		for col := range a.Binding.Layout.Columns {
			if cell, _ := a.Binding.scaled(a.table, row, col); cell.State != counts.Absent {
				list = append(list, listedCount{all[len(list)], col})
			}
		}
	}
	return list
}

// basis finds what rates are relative to, and its amount in this scope.
func (a *Account) basis() (per string, amount float64) {
	if a.Duration > 0 {
		return perSecond, a.Duration
	}
	for _, of := range []struct {
		per    string
		unit   float64
		events []string
	}{
		{"s of processor time", 1e9, []string{"task-clock", "cpu-clock"}},
		{"1000 instructions", 1e3, []string{"instructions"}},
		{"1000 cycles", 1e3, []string{"cycles"}},
	} {
		for _, name := range of.events {
			want := a.Binding.Method.identify(name).Event()
			for _, c := range a.listed() {
				if a.Binding.ids[c.column].Event() == want && c.Value > 0 {
					return of.per, c.Value / of.unit
				}
			}
		}
	}
	return "", math.NaN()
}
