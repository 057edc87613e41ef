package account

import (
	"math"
	"slices"

	"github.com/cyclestack/cyclestack/counts"
)

// A Count is one reading of the recording that an account was made from.
type Count struct {
	Event    string  // by the processor's name for it, where the processor's table knows it
	As       string  // as the recording spells it, where that differs
	Column   int     // of the layout
	LP       int     // logical processor of the core it was read on; -1 for the scope's own
	Unit     string  // of Value; "" if not known
	Value    float64 // times are in nanoseconds, whatever the recording's unit
	Coverage float64
	Enabled  float64 // ns; 0 where not known
	Running  float64 // ns that the event was on a counter
	Variance float64 // of Value, as the source estimates it; 0 where not known
	Samples  int64
	State    counts.State
	Used     bool // whether the model uses it
}

// Estimate returns the count with its 95 % interval, which is not known without a
// variance.
func (c *Count) Estimate() counts.Estimate {
	e := counts.Estimate{Value: c.Value, Error: math.NaN()}
	if c.Variance > 0 {
		e.Error = counts.Confidence * math.Sqrt(c.Variance)
	}
	return e
}

// Share returns the part that the count is of a total. The error takes the other samples
// for as large as these: with x of the whole t and the variance v of x, it is that of
// √(v·(1−x/t)) / t. It is not known without a variance.
func (c *Count) Share(total float64) counts.Estimate {
	e := counts.Estimate{Value: c.Value / total, Error: math.NaN()}
	if c.Variance > 0 && e.Value <= 1 {
		e.Error = counts.Confidence * math.Sqrt(c.Variance*(1-e.Value)) / total
	}
	return e
}

// Counts lists the readings of the account's scope, in the recording's order.
// It is valid as long as the table the account was evaluated from; a Clone's
// always is.
func (a *Account) Counts() []Count {
	var out []Count
	if len(a.place.LP) == 0 {
		return a.counts(out, a.place.Self, -1)
	}
	for lp, row := range a.place.LP {
		out = a.counts(out, row, lp)
	}
	return out
}

func (a *Account) counts(out []Count, row, lp int) []Count {
	b := a.Binding
	out = slices.Grow(out, len(b.Layout.Columns))
	for col := range b.Layout.Columns {
		cell, _ := b.scaled(a.table, row, col)
		if cell.State == counts.Absent {
			continue
		}
		c := Count{Event: b.Names[col], As: b.Layout.Columns[col].Event, Column: col, LP: lp, Unit: b.Units[col], Value: math.NaN(),
			Coverage: cell.Coverage(), Enabled: cell.Enabled, Running: cell.Running, Samples: cell.Samples, State: cell.State, Used: b.used[col]}
		if cell.Ok() {
			c.Value, c.Variance = cell.Estimate(), cell.Variance
		}
		if c.As == c.Event {
			c.As = ""
		}
		out = append(out, c)
	}
	return out
}
