package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/cyclestack/cyclestack/internal/packed"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// maxFileSize bounds every file of the catalogue that is read whole.
const maxFileSize = 4 << 20

// readFile reads a file of at most maxFileSize bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	if own, ok := fsys.(packed.FS); ok {
		return own.ReadFile(name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var buf bytes.Buffer
	if info, err := f.Stat(); err == nil {
		buf.Grow(int(min(info.Size(), maxFileSize)) + bytes.MinRead) // for all of it
	}
	if _, err := buf.ReadFrom(io.LimitReader(f, maxFileSize+1)); err != nil {
		return nil, err
	}
	if buf.Len() > maxFileSize {
		return nil, &Error{File: name, Msg: fmt.Sprintf("larger than %d MiB", maxFileSize>>20)}
	}
	return buf.Bytes(), nil
}

// The files of the catalogue are TOML of a simple shape: keys with their values, then lists of
// tables whose values may be inline tables. They are decoded from the parser's expressions and
// not by its Unmarshal, because every start reads several of them: that takes a third of the
// time, and gives the line of every key. What the shape excludes, and every key that nobody
// asks for, is an error.

// A schema says where the keys of a file go. A table is a pointer to a structure, whose
// exported fields are the keys, see [keysOf], or nil.
type schema struct {
	// top is for the keys before the first table.
	top any
	// table begins another table of a list; nil for an unknown list.
	table func(list string, at position) any
	// places gets the positions of the keys of the table begun last, or of the top before
	// any table. It may be nil.
	places func() *position
}

// keys has the fields of the types of tables, which [keysOf] has found.
var keys sync.Map

// keysOf returns the index of the field of each key: the field's name in lower case, or its
// tag; "-" is none.
func keysOf(t reflect.Type) map[string][]int {
	if known, ok := keys.Load(t); ok {
		return known.(map[string][]int)
	}
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if key := cmp.Or(f.Tag.Get("key"), strings.ToLower(f.Name)); f.IsExported() && !f.Anonymous && key != "-" {
			all[key] = f.Index
		}
	}
	keys.Store(t, all)
	return all
}

// fieldOf returns a pointer to the field of a table for a key, nil for an unknown key.
func fieldOf(table any, key string) any {
	if table == nil {
		return nil
	}
	v := reflect.ValueOf(table).Elem()
	field, ok := keysOf(v.Type())[key]
	if !ok {
		return nil
	}
	return v.FieldByIndex(field).Addr().Interface()
}

// decode decodes a TOML file. Its faults are returned as [Errors].
func decode(data []byte, file string, s schema) error {
	d := decoder{file: file, schema: s, in: s.top, known: true, names: map[string]string{}, values: values{text: string(data)}}
	d.parser.Reset(data)
	d.lines = newLineCounter(data)
	for d.parser.NextExpression() {
		d.expression(d.parser.Expression())
	}
	if d.parser.Error() != nil {
		return append(d.faults, syntaxFault(data, file, d.parser.Error()))
	}
	if len(d.faults) > 0 {
		return d.faults
	}
	return nil
}

// syntaxFault returns the fault of a file that is not TOML. The parser's error
// has no line, so the file is decoded again by what gives it one.
func syntaxFault(data []byte, file string, err error) *Error {
	fault := &Error{File: file, Msg: err.Error(), syntax: true}
	var located *toml.DecodeError
	if errors.As(toml.Unmarshal(data, new(map[string]any)), &located) {
		fault.Line, _ = located.Position()
		fault.Msg = strings.TrimPrefix(located.Error(), "toml: ")
	}
	return fault
}

// notTOML reports whether an error of decode is that the file is not TOML.
func notTOML(err error) bool {
	return slices.ContainsFunc(asFaults(err), func(e *Error) bool { return e.syntax })
}

// A decoder is a run of decode.
type decoder struct {
	schema
	values
	parser unstable.Parser
	lines  lineCounter
	file   string
	in     any               // the table being read
	known  bool              // it is no fault
	list   string            // its name
	seen   []string          // its keys
	names  map[string]string // keys met so far: there are few, and each comes often
	faults Errors
}

// name returns a key as a string.
func (d *decoder) name(key []byte) string {
	if s, ok := d.names[string(key)]; ok {
		return s
	}
	s := string(key)
	d.names[s] = s
	return s
}

// where says which table the decoder is in.
func (d *decoder) where() string {
	if d.list == "" {
		return ""
	}
	return fmt.Sprintf(" in %q", d.list)
}

func (d *decoder) fault(line int, format string, args ...any) {
	d.faults = append(d.faults, &Error{File: d.file, Line: line, Msg: fmt.Sprintf(format, args...)})
}

// expression takes in one key with its value, or one table header.
func (d *decoder) expression(n *unstable.Node) {
	keys := n.Key()
	keys.Next()
	first := keys.Node()
	name := d.name(first.Data)
	dotted := keys.Next()
	line := d.lines.at(int(first.Raw.Offset))
	switch {
	case n.Kind == unstable.KeyValue && dotted:
		d.fault(line, "key %q: write it as an inline table, %s = { … }", spelling.Clip(name), spelling.Clip(name))
	case n.Kind == unstable.KeyValue:
		d.keyValue(name, n.Value(), line)
	case n.Kind == unstable.ArrayTable && !dotted:
		d.list, d.seen = name, d.seen[:0]
		if d.in, d.known = d.table(name, position{file: d.file, line: line}), true; d.in == nil {
			d.known = false
			d.fault(line, "unknown key %q", spelling.Clip(name))
		}
	default:
		d.known = false
		d.fault(line, "table %q: lists of tables are written [[%s]], tables in them inline, key = { … }", spelling.Clip(name), spelling.Clip(name))
	}
}

func (d *decoder) keyValue(key string, value *unstable.Node, line int) {
	if !d.known {
		return // in a table that is unknown
	}
	to := fieldOf(d.in, key)
	switch {
	case to == nil:
		d.fault(line, "unknown key %q%s", spelling.Clip(key), d.where())
		return
	case slices.Contains(d.seen, key):
		d.fault(line, "key %q%s: there is one already", key, d.where())
		return
	}
	d.seen = append(d.seen, key)
	if wanted := d.assign(to, value); wanted != "" {
		d.fault(line, "key %q%s: want %s", key, d.where(), wanted)
	}
	if d.places != nil {
		p := d.places()
		p.keys = append(p.keys, keyPlace{key, place{d.file, line, isBlock(d.parser.Data(), value)}})
	}
}

// values makes Go values of those of a file, with few allocations: a file has
// thousands of strings, and most are parts of its text as they stand.
type values struct {
	text string // of the file, "" if strings are to be copied
}

// str returns the value of a string: the part of the text that it is, or a copy
// where it has escapes.
func (v *values) str(value *unstable.Node) string {
	const quotes = len("\"\"\"\r\n") // before the text of a string, at most
	n := len(value.Data)
	for at := int(value.Raw.Offset) + 1; at <= int(value.Raw.Offset)+quotes && at+n <= len(v.text); at++ {
		if part := v.text[at : at+n]; part == string(value.Data) {
			return part
		}
	}
	return string(value.Data)
}

// assign puts a value where to points, and returns what was wanted if the value
// is something else.
func (v *values) assign(to any, value *unstable.Node) (wanted string) {
	ok := value.Kind == unstable.String
	switch to := to.(type) {
	case *string:
		wanted = "a string"
		*to = v.str(value)
	case *bool:
		wanted = "true or false"
		*to, ok = string(value.Data) == "true", value.Kind == unstable.Bool
	case *int:
		wanted = "an integer"
		*to, ok = wholeNumber(value)
	case **int:
		wanted = "an integer"
		var i int
		i, ok = wholeNumber(value)
		*to = &i
	case *uint64:
		wanted = "an integer, 0 or more"
		var i int
		i, ok = wholeNumber(value)
		ok = ok && i >= 0
		*to = uint64(max(i, 0))
	case *float64:
		wanted = "a number"
		*to, ok = number(value)
	case **float64:
		wanted = "a number"
		var f float64
		f, ok = number(value)
		*to = &f
	case *[]string:
		wanted = "a list of strings"
		*to, ok = v.stringList(value)
	case *map[string]float64:
		wanted = "an inline table of numbers"
		*to, ok = numberTable(value)
	case *[]Advice:
		wanted = "a list of inline tables { try = \"…\", when = \"…\" }"
		*to, ok = inlineTables[Advice](v, value)
	case *[]SetEvent:
		wanted = "a list of inline tables { event = \"…\", sample-after = … }"
		*to, ok = inlineTables[SetEvent](v, value)
	default:
		panic(fmt.Sprintf("model: no way to decode into %T", to)) // a schema's mistake, not a file's
	}
	if ok {
		return ""
	}
	return wanted
}

func wholeNumber(value *unstable.Node) (int, bool) {
	i, err := strconv.ParseInt(string(value.Data), 0, strconv.IntSize)
	return int(i), value.Kind == unstable.Integer && err == nil
}

// number returns the value of a TOML float or integer; nan and inf are floats.
func number(value *unstable.Node) (float64, bool) {
	text := strings.ReplaceAll(string(value.Data), "_", "")
	switch value.Kind {
	case unstable.Float:
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case unstable.Integer:
		i, err := strconv.ParseInt(text, 0, 64)
		return float64(i), err == nil
	}
	return 0, false
}

// stringList returns the elements of a list of strings.
func (v *values) stringList(value *unstable.Node) ([]string, bool) {
	if value.Kind != unstable.Array {
		return nil, false
	}
	n := 0
	for it := value.Children(); it.Next(); n++ {
	}
	list := make([]string, 0, n)
	for it := value.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			return nil, false
		}
		list = append(list, v.str(it.Node()))
	}
	return list, true
}

// numberTable returns the keys and values of an inline table of numbers.
func numberTable(value *unstable.Node) (map[string]float64, bool) {
	table := map[string]float64{}
	ok := inlineTable(value, func(key string, v *unstable.Node) bool {
		f, ok := number(v)
		_, twice := table[key]
		table[key] = f
		return ok && !twice
	})
	return table, ok
}

// inlineTables returns the elements of a list of inline tables.
func inlineTables[T any](v *values, value *unstable.Node) (list []T, ok bool) {
	if value.Kind != unstable.Array {
		return nil, false
	}
	for it := value.Children(); it.Next(); {
		var e T
		var seen []string
		ok := inlineTable(it.Node(), func(key string, field *unstable.Node) bool {
			to, twice := fieldOf(&e, key), slices.Contains(seen, key)
			seen = append(seen, key)
			return to != nil && !twice && v.assign(to, field) == ""
		})
		if !ok {
			return nil, false
		}
		list = append(list, e)
	}
	return list, true
}

// inlineTable calls f for each key of an inline table until it returns false,
// and reports whether it never did.
func inlineTable(value *unstable.Node, f func(key string, v *unstable.Node) bool) bool {
	if value.Kind != unstable.InlineTable {
		return false
	}
	for it := value.Children(); it.Next(); {
		keys := it.Node().Key()
		keys.Next()
		key := string(keys.Node().Data)
		if keys.Next() || !f(key, it.Node().Value()) {
			return false
		}
	}
	return true
}

// A position is where a table of a file is written, and where its keys are. In
// a table merged from several files every key has a place of its own.
type position struct {
	file string
	line int
	keys []keyPlace
}

type keyPlace struct {
	key string
	place
}

type place struct {
	file  string
	line  int
	block bool // a multi-line string that begins on the line after its quotes
}

// at returns the place of a key, or that of the table where it has none.
func (p position) at(key string) place {
	for _, k := range p.keys {
		if k.key == key {
			return k.place
		}
	}
	return place{file: p.file, line: p.line}
}

// states says whether the table has a key.
func (p position) states(key string) bool {
	return slices.ContainsFunc(p.keys, func(k keyPlace) bool { return k.key == key })
}

// with returns the position of a table at p when one at q is put over it.
func (p position) with(q position) position {
	keys := slices.Clone(p.keys)
	for _, k := range q.keys {
		if i := slices.IndexFunc(keys, func(old keyPlace) bool { return old.key == k.key }); i >= 0 {
			keys[i] = k
		} else {
			keys = append(keys, k)
		}
	}
	return position{file: q.file, line: q.line, keys: keys}
}

func (p place) errorf(format string, args ...any) *Error {
	return &Error{File: p.file, Line: p.line, Msg: oneLine(fmt.Sprintf(format, args...))}
}

// oneLine makes a message with names out of a file fit on a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// isBlock reports whether a value is a multi-line string with a newline right after the
// quotes. That newline is not part of it.
func isBlock(data []byte, value *unstable.Node) bool {
	if value.Kind != unstable.String {
		return false
	}
	raw := data[value.Raw.Offset:]
	if !bytes.HasPrefix(raw, []byte(`"""`)) && !bytes.HasPrefix(raw, []byte("'''")) {
		return false
	}
	raw = bytes.TrimPrefix(raw[3:], []byte("\r"))
	return bytes.HasPrefix(raw, []byte("\n"))
}

// A lineCounter finds the lines of offsets, which are asked for in rising order.
type lineCounter struct {
	data []byte
	line int
	seen int
}

func newLineCounter(data []byte) lineCounter { return lineCounter{data: data, line: 1} }

func (c *lineCounter) at(offset int) int {
	if offset > c.seen {
		c.line += bytes.Count(c.data[c.seen:offset], []byte("\n"))
		c.seen = offset
	}
	return c.line
}
