package web

import (
	"cmp"
	"io"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/report"
)

// numbersMost bounds the numbers of functions in intervals that a page has.
const numbersMost = 2 << 20

// Functions in intervals, for pages: the values of nodes by function and interval, without what
// all of them have in common.
type (
	jsonFunctions struct {
		Schema    string              `json:"schema"`
		Nodes     []string            `json:"nodes"`
		Functions [][3]string         `json:"functions"` // name, module, address
		List      []jsonFunctionsPart `json:"intervals"`
	}
	jsonFunctionsPart struct {
		Start float64        `json:"start_s"`
		Rows  []functionsRow `json:"rows"` // index of the function, share, its samples, values, and those in doubt
	}
)

// A functionsRow is a function in an interval.
type functionsRow struct {
	function int
	share    float64
	samples  int64
	values   []float64
	doubtful []int // of the values
}

// MarshalJSON implements [json.Marshaler]. Nine digits are more than the page shows.
func (r functionsRow) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte{'['}, int64(r.function), 10)
	number := func(v float64) {
		b = append(b, ',')
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			return
		}
		const digits = 9
		b = strconv.AppendFloat(b, v, 'g', digits, 64)
	}
	number(r.share)
	b = strconv.AppendInt(append(b, ','), r.samples, 10)
	for _, v := range r.values {
		number(v)
	}
	if len(r.doubtful) > 0 {
		b = append(b, ",["...)
		for i, n := range r.doubtful {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(n), 10)
		}
		b = append(b, ']')
	}
	return append(b, ']'), nil
}

// Functions is the writer of the accounts of functions in intervals, for pages.
type Functions struct {
	// Kept is how many functions are written, those with the largest shares; 0 for all.
	Kept int

	to    io.Writer
	event string // that shares are of
	total float64
	out   jsonFunctions
	at    map[[3]string]int // of the functions
	part  map[float64]int   // of the intervals, by their beginning
}

// NewFunctions returns a writer of the accounts of functions in intervals.
func NewFunctions(w io.Writer) *Functions { return &Functions{to: w} }

// Begin implements [report.Writer].
func (f *Functions) Begin(h report.Header) error {
	f.out.Schema, f.out.Nodes, f.out.Functions, f.out.List = "cyclestack.functions_intervals/v1", []string{}, [][3]string{}, []jsonFunctionsPart{}
	f.at, f.part = map[[3]string]int{}, map[float64]int{}
	if h.Profile != nil {
		f.event = h.Profile.Event
	}
	return nil
}

// Account implements [report.Writer].
func (f *Functions) Account(a *account.Account) error {
	own, samples, counted := 0.0, int64(0), false
	for _, c := range a.Counts() {
		counted = counted || c.Value > 0
		if c.Event == f.event && c.Value > 0 {
			own, samples = own+c.Value, samples+c.Samples
		}
	}
	if a.Scope.Kind == counts.Run {
		f.total = own
		for i := range a.Model().Nodes {
			f.out.Nodes = append(f.out.Nodes, a.Model().Nodes[i].Path)
		}
		return nil
	}
	c := a.Scope.Code
	if c == nil || !counted || math.IsNaN(a.Start) {
		return nil
	}
	name := [3]string{c.Function, c.Module, ""}
	if c.Addr > 0 {
		name[2] = "0x" + strconv.FormatUint(c.Addr, 16)
	}
	n, ok := f.at[name]
	if !ok {
		n = len(f.out.Functions)
		f.at[name] = n
		f.out.Functions = append(f.out.Functions, name)
	}
	row := functionsRow{n, own / f.total, samples, make([]float64, len(a.Nodes)), nil}
	for i := range a.Nodes {
		v := &a.Nodes[i]
		if row.values[i] = v.Value; v.Known() && !v.Reliable() {
			row.doubtful = append(row.doubtful, i)
		}
	}
	k, ok := f.part[a.Start]
	if !ok {
		k = len(f.out.List)
		f.part[a.Start] = k
		f.out.List = append(f.out.List, jsonFunctionsPart{Start: a.Start})
	}
	f.out.List[k].Rows = append(f.out.List[k].Rows, row)
	return nil
}

// End implements [report.Writer].
func (f *Functions) End() error {
	f.bound()
	f.narrow()
	return page.JSON(f.to, f.out)
}

// narrow leaves out the nodes that are not known anywhere.
func (f *Functions) narrow() {
	at, nodes := make([]int, len(f.out.Nodes)), []string{} // by node: its column, from 1; 0 for none
	each := func(do func(r *functionsRow)) {
		for k := range f.out.List {
			for i := range f.out.List[k].Rows {
				do(&f.out.List[k].Rows[i])
			}
		}
	}
	each(func(r *functionsRow) {
		for i, v := range r.values {
			if !math.IsNaN(v) {
				at[i] = 1
			}
		}
	})
	for i, used := range at {
		if used > 0 {
			nodes = append(nodes, f.out.Nodes[i])
			at[i] = len(nodes)
		}
	}
	f.out.Nodes = nodes
	each(func(r *functionsRow) {
		values := make([]float64, 0, len(nodes))
		for i, v := range r.values {
			if at[i] > 0 {
				values = append(values, v)
			}
		}
		r.values = values
		for i, n := range r.doubtful {
			r.doubtful[i] = at[n] - 1
		}
	})
}

// bound leaves out the functions with the smallest shares, if there are too many numbers.
func (f *Functions) bound() {
	shares, rows := make([]float64, len(f.out.Functions)), make([]int, len(f.out.Functions))
	order := make([]int, len(shares))
	for _, p := range f.out.List {
		for _, r := range p.Rows {
			shares[r.function] += r.share
			rows[r.function]++
		}
	}
	for i := range order {
		order[i] = i
	}
	sorting.Stable(order, func(x, y int) int { return cmp.Compare(shares[y], shares[x]) })
	left, keep := numbersMost, make([]bool, len(order))
	for n, i := range order {
		if left -= rows[i] * len(f.out.Nodes); left < 0 {
			f.Kept = n
			break
		}
		keep[i] = true
	}
	if f.Kept == 0 {
		return
	}
	for k := range f.out.List {
		f.out.List[k].Rows = sorting.Delete(f.out.List[k].Rows, func(r functionsRow) bool { return !keep[r.function] })
	}
}
