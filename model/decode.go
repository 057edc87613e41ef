package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxFileSize bounds every file of the catalogue that is read whole.
const maxFileSize = 4 << 20

// The types below are a model file as it is written. Every field is a pointer,
// a slice or a map, so that what a file does not state can be told from what it
// states as zero: only what is stated replaces what is extended.

type modelFile struct {
	Name      *string
	Version   *string
	Title     *string
	About     *string
	Source    *string
	CPUs      []string `toml:"cpus"`
	Extends   *string
	Remove    []string
	Unit      *string
	Of        *string
	Parameter []parameterTable
	Input     []inputTable
	Node      []nodeTable
	Relation  []relationTable
	EventSet  []eventSetTable `toml:"event-set"`

	pos position
}

type parameterTable struct {
	Name    *string
	Value   *float64
	Unit    *string
	About   *string
	Source  *string
	Choices map[string]float64

	pos position
}

type inputTable struct {
	Name   *string
	Events []string
	LP     *int `toml:"lp"`
	Any    *bool
	About  *string

	pos position
}

type nodeTable struct {
	Name      *string
	Parent    *string
	Section   *string
	Formula   *string
	Rest      *bool
	Unit      *string
	Domain    *string
	Threshold *string
	Min       *float64
	Max       *float64
	Negative  *string
	Overlap   *bool
	Optional  *bool
	Title     *string
	About     *string
	Causes    []string
	Try       []string
	Source    *string
	Sample    []string

	pos position
}

type relationTable struct {
	Name      *string
	Left      *string
	Right     *string
	Op        *string
	Tolerance *float64
	Identity  *bool
	When      *string
	Holds     *string
	Fails     *string
	Source    *string

	pos position
}

type eventSetTable struct {
	Name   *string
	About  *string
	Runs   *int
	Events []setEventTable

	pos position
}

type setEventTable struct {
	Event       string
	SampleAfter uint64 `toml:"sample-after"`
}

// A position is where a table of a file is written, and where its keys are. In
// a table merged from several files every key has a place of its own.
type position struct {
	file string
	line int
	keys map[string]place
}

type place struct {
	file  string
	line  int
	block bool // a multi-line string that begins on the line after its quotes
}

// at returns the place of a key, or that of the table where it has none.
func (p position) at(key string) place {
	if k, ok := p.keys[key]; ok {
		return k
	}
	return place{file: p.file, line: p.line}
}

func (p place) errorf(format string, args ...any) *Error {
	return &Error{File: p.file, Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

// readFile reads a file of at most maxFileSize bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var buf bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() < maxFileSize {
		buf.Grow(int(info.Size()) + bytes.MinRead) // so that it never has to grow again
	}
	if _, err := buf.ReadFrom(io.LimitReader(f, maxFileSize+1)); err != nil {
		return nil, err
	}
	if buf.Len() > maxFileSize {
		return nil, &Error{File: name, Msg: fmt.Sprintf("larger than %d MiB", maxFileSize>>20)}
	}
	return buf.Bytes(), nil
}

// decodeModel decodes a model file. Its faults are returned as [Errors].
func decodeModel(data []byte, file string) (*modelFile, error) {
	f := new(modelFile)
	if err := decodeStrict(data, file, f); err != nil {
		return nil, err
	}
	places, err := locate(data, file)
	if err != nil {
		return nil, err
	}
	f.pos = places.top
	for i := range f.Parameter {
		f.Parameter[i].pos = places.table("parameter", i)
	}
	for i := range f.Input {
		f.Input[i].pos = places.table("input", i)
	}
	for i := range f.Node {
		f.Node[i].pos = places.table("node", i)
	}
	for i := range f.Relation {
		f.Relation[i].pos = places.table("relation", i)
	}
	for i := range f.EventSet {
		f.EventSet[i].pos = places.table("event-set", i)
	}
	return f, nil
}

// decodeStrict decodes TOML into v. Unknown keys and values of the wrong type
// are errors with their lines.
func decodeStrict(data []byte, file string, v any) error {
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var all Errors
		for i := range unknown.Errors {
			e := &unknown.Errors[i]
			line, _ := e.Position()
			all = append(all, &Error{File: file, Line: line, Msg: unknownKey(e.Key())})
		}
		return all
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, _ := bad.Position()
		return Errors{{File: file, Line: line, Msg: decodeMessage(bad)}}
	}
	return Errors{{File: file, Msg: strings.TrimPrefix(err.Error(), "toml: ")}}
}

func unknownKey(key toml.Key) string {
	last := len(key) - 1
	if last < 1 {
		return fmt.Sprintf("unknown key %q", strings.Join(key, "."))
	}
	return fmt.Sprintf("unknown key %q in %q", clip(key[last]), clip(strings.Join(key[:last], ".")))
}

// decodeMessage puts the decoder's message in the terms of the file: its own
// names the Go types that the values are decoded into.
func decodeMessage(e *toml.DecodeError) string {
	msg := strings.TrimPrefix(e.Error(), "toml: ")
	if found, wanted, ok := mismatch(msg); ok {
		return fmt.Sprintf("key %q: %s where %s is wanted", strings.Join(e.Key(), "."), found, wanted)
	}
	return msg
}

// mismatch takes "cannot decode TOML string into struct field T.F of type
// *float64" apart.
func mismatch(msg string) (found, wanted string, ok bool) {
	rest, ok := strings.CutPrefix(msg, "cannot decode TOML ")
	if !ok {
		return "", "", false
	}
	found, rest, ok = strings.Cut(rest, " into ")
	if !ok {
		return "", "", false
	}
	typ := rest[strings.LastIndexByte(rest, ' ')+1:]
	switch strings.TrimLeft(typ, "*") {
	case "string":
		wanted = "a string"
	case "bool":
		wanted = "true or false"
	case "float64":
		wanted = "a number"
	case "int", "uint64":
		wanted = "a whole number"
	case "[]string":
		wanted = "a list of strings"
	default:
		wanted = "a table or a list"
	}
	return "a value of type " + found, wanted, true
}

// places are the lines of a file's tables and keys.
type places struct {
	file   string
	top    position
	tables map[string][]position
}

func (p *places) table(kind string, i int) position {
	if i < len(p.tables[kind]) {
		return p.tables[kind][i]
	}
	// Written inline, "node = [{…}]": the key's line is the best there is.
	at := p.top.at(kind)
	return position{file: at.file, line: at.line}
}

// locate finds the lines of the tables and keys of a TOML document that is
// known to be well-formed.
func locate(data []byte, file string) (*places, error) {
	p := &places{file: file, top: position{file: file, line: 1, keys: map[string]place{}}, tables: map[string][]position{}}
	keys := p.top.keys
	err := expressions(data, func(e expression) bool {
		switch {
		case e.kind == unstable.KeyValue:
			if _, ok := keys[e.key]; !ok && keys != nil {
				keys[e.key] = place{file, e.line, isBlock(data, e.value)}
			}
		case e.kind == unstable.ArrayTable && !e.dotted:
			keys = map[string]place{}
			p.tables[e.key] = append(p.tables[e.key], position{file: file, line: e.line, keys: keys})
		default: // a table within a table: its keys are its own
			keys = nil
		}
		return true
	})
	if err != nil {
		return nil, Errors{{File: file, Msg: err.Error()}}
	}
	return p, nil
}

// An expression is one key with its value, or one table header.
type expression struct {
	kind   unstable.Kind
	key    string // its first part, if dotted
	dotted bool
	offset int // of the line it begins on
	line   int
	value  *unstable.Node // of a key; good until the next expression
}

// expressions calls f for each expression of a TOML document until f returns
// false.
func expressions(data []byte, f func(expression) bool) error {
	var p unstable.Parser
	p.Reset(data)
	lines := lineCounter{data: data, line: 1}
	for p.NextExpression() {
		n := p.Expression()
		it := n.Key()
		if !it.Next() {
			continue
		}
		first := it.Node()
		e := expression{kind: n.Kind, key: string(first.Data), dotted: it.Next()}
		e.line = lines.at(int(first.Raw.Offset))
		e.offset = lines.start
		if n.Kind == unstable.KeyValue {
			e.value = n.Value()
		}
		if !f(e) {
			return nil
		}
	}
	return p.Error()
}

// isBlock reports whether a value is a multi-line string with a newline, which
// is not part of it, right after the quotes.
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

// A lineCounter turns offsets, asked for in rising order, into line numbers.
type lineCounter struct {
	data  []byte
	line  int
	start int // offset of the line's first byte
	seen  int
}

func (c *lineCounter) at(offset int) int {
	for c.seen < offset {
		i := bytes.IndexByte(c.data[c.seen:offset], '\n')
		if i < 0 {
			break
		}
		c.seen += i + 1
		c.start = c.seen
		c.line++
	}
	c.seen = max(c.seen, offset)
	return c.line
}

// overlay replaces in dst what src states. Both are pointers to one of the
// table types above. The places of the keys that are replaced go along.
func overlay(dst, src any, dstPos *position, srcPos position) {
	d, s := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	for i := range d.NumField() {
		if !d.Type().Field(i).IsExported() || s.Field(i).IsNil() {
			continue
		}
		d.Field(i).Set(s.Field(i))
	}
	merged := position{file: srcPos.file, line: srcPos.line, keys: make(map[string]place, len(dstPos.keys)+len(srcPos.keys))}
	for k, v := range dstPos.keys {
		merged.keys[k] = v
	}
	for k, v := range srcPos.keys {
		merged.keys[k] = v
	}
	*dstPos = merged
}
