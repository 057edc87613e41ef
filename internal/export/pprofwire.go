package export

import (
	"compress/gzip"
	"encoding/binary"
	"io"
)

// What follows is the part of pprof's format that is written here: messages of
// profile.proto (github.com/google/pprof/proto), with their names and the numbers of
// their fields, in protocol buffers' encoding. Pprof's own package compiles its regular
// expressions whenever a program starts that it is linked into: 0.3 ms of every command
// (GODEBUG=inittrace=1), also of stat, which is to add little to a program. It reads what
// is written here in the tests.

type pprofProfile struct {
	sampleTypes   []*pprofType     // 1
	samples       []*pprofSample   // 2
	mappings      []*pprofMapping  // 3
	locations     []*pprofLocation // 4
	functions     []*pprofFunction // 5
	durationNanos int64            // 10
	comments      []string         // 13
	defaultType   string           // 14
}

type pprofType struct{ name, unit string } // ValueType: 1, 2

type pprofSample struct {
	locations []*pprofLocation // 1, the leaf first
	values    []int64          // 2
	thread    string           // 3, a label of that name; "" for none
}

type pprofMapping struct {
	id            uint64 // 1
	file, buildID string // 5, 6
	functions     bool   // 7
	files         bool   // 8
	lines         bool   // 9
	inlined       bool   // 10
}

type pprofLocation struct {
	id      uint64        // 1
	mapping *pprofMapping // 2, by its number; nil for none
	address uint64        // 3
	lines   []pprofLine   // 4, what was inlined before what it was inlined into
}

type pprofLine struct {
	function *pprofFunction // 1, by its number
	line     int64          // 2
}

type pprofFunction struct {
	id         uint64 // 1
	name, file string // 2 and 3, 4
}

// write writes the profile, compressed.
func (p *pprofProfile) write(w io.Writer) error {
	zw := gzip.NewWriter(w)
	if _, err := zw.Write(p.encode()); err != nil {
		return err
	}
	return zw.Close()
}

// encode returns the message Profile.
func (p *pprofProfile) encode() []byte {
	texts := &pprofTexts{at: map[string]uint64{}}
	texts.number("") // the first is empty
	var out message
	for _, t := range p.sampleTypes {
		out.message(1, t.message(texts))
	}
	for _, s := range p.samples {
		out.message(2, s.message(texts))
	}
	for _, m := range p.mappings {
		out.message(3, m.message(texts))
	}
	for _, l := range p.locations {
		out.message(4, l.message())
	}
	for _, f := range p.functions {
		out.message(5, f.message(texts))
	}
	out.number(10, uint64(p.durationNanos))
	var comments []uint64
	for _, c := range p.comments {
		comments = append(comments, texts.number(c))
	}
	out.numbers(13, comments)
	out.number(14, texts.number(p.defaultType))
	for _, text := range texts.list {
		out.message(6, message(text))
	}
	return out
}

func (t *pprofType) message(texts *pprofTexts) (m message) {
	m.number(1, texts.number(t.name))
	m.number(2, texts.number(t.unit))
	return m
}

func (s *pprofSample) message(texts *pprofTexts) (m message) {
	numbers := make([]uint64, 0, max(len(s.locations), len(s.values)))
	for _, l := range s.locations {
		numbers = append(numbers, l.id)
	}
	m.numbers(1, numbers)
	numbers = numbers[:0]
	for _, v := range s.values {
		numbers = append(numbers, uint64(v))
	}
	m.numbers(2, numbers)
	if s.thread != "" {
		var label message
		label.number(1, texts.number("thread"))
		label.number(2, texts.number(s.thread))
		m.message(3, label)
	}
	return m
}

func (f *pprofMapping) message(texts *pprofTexts) (m message) {
	m.number(1, f.id)
	m.number(5, texts.number(f.file))
	m.number(6, texts.number(f.buildID))
	m.flag(7, f.functions)
	m.flag(8, f.files)
	m.flag(9, f.lines)
	m.flag(10, f.inlined)
	return m
}

func (l *pprofLocation) message() (m message) {
	m.number(1, l.id)
	if l.mapping != nil {
		m.number(2, l.mapping.id)
	}
	m.number(3, l.address)
	for i := range l.lines {
		var line message
		line.number(1, l.lines[i].function.id)
		line.number(2, uint64(l.lines[i].line))
		m.message(4, line)
	}
	return m
}

func (f *pprofFunction) message(texts *pprofTexts) (m message) {
	m.number(1, f.id)
	m.number(2, texts.number(f.name))
	m.number(3, texts.number(f.name))
	m.number(4, texts.number(f.file))
	return m
}

// pprofTexts are the texts of a profile, which stand in a table and elsewhere by their
// numbers in it.
type pprofTexts struct {
	list []string
	at   map[string]uint64
}

func (t *pprofTexts) number(text string) uint64 {
	n, ok := t.at[text]
	if !ok {
		n = uint64(len(t.list))
		t.list, t.at[text] = append(t.list, text), n
	}
	return n
}

// A message is one of protocol buffers, in their encoding: each field with its number
// and the way in which its value is written. Fields that are 0 are left out.
type message []byte

// Ways of writing a value.
const (
	wireVarint = 0
	wireBytes  = 2
)

func (m *message) key(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *message) number(field, v uint64) {
	if v != 0 {
		m.key(field, wireVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *message) flag(field uint64, v bool) {
	if v {
		m.number(field, 1)
	}
}

func (m *message) message(field uint64, v message) {
	m.key(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

// numbers writes several numbers of a field, packed.
func (m *message) numbers(field uint64, list []uint64) {
	if len(list) == 0 {
		return
	}
	var packed message
	for _, v := range list {
		packed = binary.AppendUvarint(packed, v)
	}
	m.message(field, packed)
}
