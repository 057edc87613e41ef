package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// The parts of a line of a stream.

// A grouping has columns by what is to be said of them.
type grouping struct {
	said    []string
	columns [][]int

	apart, flagged, path []int
	values, cover        []float64
	samples              []int64
}

func (g *grouping) clear() {
	g.said = g.said[:0]
	g.apart, g.flagged, g.path = g.apart[:0], g.flagged[:0], g.path[:0]
	g.values, g.cover, g.samples = g.values[:0], g.cover[:0], g.samples[:0]
}

// room makes room for a count, and for all events of the logical processors up to its own.
func (g *grouping) room(at, events int) {
	for len(g.values) <= at || events > 0 && len(g.values)%events != 0 {
		g.values, g.cover, g.samples = append(g.values, math.NaN()), append(g.cover, math.NaN()), append(g.samples, 0)
	}
}

// add says something of a column.
func (g *grouping) add(text string, column int) {
	for k, said := range g.said {
		if said == text {
			g.columns[k] = append(g.columns[k], column)
			return
		}
	}
	k := len(g.said)
	g.said = append(g.said, text)
	if k == len(g.columns) {
		g.columns = append(g.columns, nil)
	}
	g.columns[k] = append(g.columns[k][:0], column)
}

// texts appends an object of lists of columns by what was said of them, and forgets it.
// Where nothing was said there is none.
func (g *grouping) texts(b []byte, key string) []byte {
	if len(g.said) == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":{`...)
	for k, text := range g.said {
		b = append(appendString(comma(b, k), text), ':')
		b = appendInts(b, g.columns[k])
	}
	g.said = g.said[:0]
	return append(b, '}')
}

// list appends a key with a list of columns, if there are any.
func list(b []byte, key string, columns []int) []byte {
	if len(columns) == 0 {
		return b
	}
	return appendInts(append(append(append(b, `,"`...), key...), `":`...), columns)
}

func appendInts(b []byte, list []int) []byte {
	b = append(b, '[')
	for k, n := range list {
		b = strconv.AppendInt(comma(b, k), int64(n), 10)
	}
	return append(b, ']')
}

// comma appends one before all elements but the first.
func comma(b []byte, element int) []byte {
	if element > 0 {
		b = append(b, ',')
	}
	return b
}

// appendNumber appends a number as JSON has it: null if it is not known.
func appendNumber(b []byte, f float64) []byte {
	const exact = 1 << 53
	size := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(b, "null"...)
	case f == math.Trunc(f) && size < exact:
		return strconv.AppendInt(b, int64(f), 10)
	case size < 1e-6 || size >= 1e21:
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// appendString appends a text as JSON has it.
func appendString(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			_ = e.Encode(text) // a string always can
			return append(b, bytes.TrimRight(out.Bytes(), "\n")...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// scopeTexts are the scopes that were written, but for their times.
type scopeTexts map[scopeText][]byte

// A scopeText is what the text of a scope depends on.
type scopeText struct {
	scope counts.Scope
	label string
	runs  int
}

// scopesMost is how many texts of scopes are kept.
const scopesMost = 1 << 14

// append appends the scope of an account.
func (s *scopeTexts) append(b []byte, a *account.Account) ([]byte, error) {
	key := scopeText{a.Scope, a.Label, a.Runs}
	key.scope.Start, key.scope.Duration = 0, 0
	text, ok := (*s)[key]
	if !ok {
		of := scope(a, nil, nil)
		of.Start, of.Duration = nil, nil
		var err error
		if text, err = json.Marshal(of); err != nil {
			return b, err
		}
		if *s == nil || len(*s) >= scopesMost {
			*s = scopeTexts{}
		}
		(*s)[key] = text
	}
	b = append(b, text[:len(text)-1]...)
	if page.Known(a.Start) != nil {
		b = appendNumber(append(b, `,"start_s":`...), a.Start)
	}
	if page.Known(a.Duration) != nil {
		b = appendNumber(append(b, `,"duration_s":`...), a.Duration)
	}
	return append(b, '}'), nil
}
