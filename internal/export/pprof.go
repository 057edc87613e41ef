package export

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Pprof writes a profile for pprof, compressed. Sample types are the profile's. Values are
// rounded, and unknown ones are 0. Threads are labels ("thread"), for -tagroot and
// -tagfocus, unless the profile has them as frames. Samples are written as they come:
// memory holds the places and names alone.
func Pprof(w io.Writer, p *Profile) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	b := newPprofWriter(z, p)
	for s := range p.Stacks {
		b.known = min(b.known, s.Same)
		b.sample(s)
	}
	b.end()
	if err := b.out.Flush(); err != nil {
		return err
	}
	return z.Close()
}

// unique returns a type's name, or another one if that is used already: an event that was
// counted in several groups is several types.
func unique(t Type, used map[string]bool) string {
	name := clean(t.Name)
	if used[name] && t.Path != "" {
		name = clean(t.Path)
	}
	for n := 2; used[name]; n++ {
		name = fmt.Sprintf("%s (%d)", clean(t.Name), n)
	}
	used[name] = true
	return name
}

// A pprofWriter writes a pprof profile. Functions, mappings, places and names are shared by
// the samples.
type pprofWriter struct {
	out *bufio.Writer // keeps the first error
	p   *Profile
	odd Omission

	names     map[string]uint64 // their numbers; 0 is ""
	texts     []string
	functions map[pprofFunction]uint64 // their numbers, from 1 on
	mappings  map[module]*pprofMapping
	modules   []*pprofMapping
	places    map[pprofPlace]uint64 // their numbers, from 1 on
	list      []pprofPlace
	used      []bool // places that are locations of samples
	threads   map[string]*Frame
	labels    map[string]message // by thread

	thread string
	known  int // of the frames of the stack before, how many the next one has as well
	at     []pprofAt
	base   int    // bytes of the thread's location
	packed []byte // locations of the stack, at its end: the outermost is the last
	msg    message
	values message
	part   message
}

// A module is a file that is mapped.
type module struct{ name, buildID string }

// A pprofMapping is a module in the profile.
type pprofMapping struct {
	module
	id             uint64
	self           float64 // of the default type, the kernel's apart
	lines, inlined bool
}

// A pprofFunction is a function by the numbers of its name and file.
type pprofFunction struct{ name, file uint64 }

// A pprofPlace is a frame of a location: a function, or a call that was inlined into the
// outer place.
type pprofPlace struct {
	outer uint64 // 0 for none
	frame *Frame
}

// A pprofAt says where a frame of the stack is: its place, and how many bytes the locations
// of the frames around it take.
type pprofAt struct {
	place uint64
	outer int
}

func newPprofWriter(w io.Writer, p *Profile) *pprofWriter {
	b := &pprofWriter{out: bufio.NewWriterSize(w, 1<<16), p: p, names: map[string]uint64{"": 0}, texts: []string{""}, functions: map[pprofFunction]uint64{},
		mappings: map[module]*pprofMapping{}, places: map[pprofPlace]uint64{}, list: make([]pprofPlace, 1), used: make([]bool, 1),
		threads: map[string]*Frame{}, labels: map[string]message{}, packed: make([]byte, 1<<10), part: make(message, 0, 1<<10)}
	used := map[string]bool{}
	for i, t := range p.Types {
		name := b.name(unique(t, used))
		b.write(profileSampleType, b.part.empty().number(typeName, name).number(typeUnit, b.name(clean(t.Unit))))
		if i == p.Default {
			b.out.Write(b.part.empty().number(profileDefaultType, name))
		}
	}
	return b
}

// write writes a part of the profile.
func (b *pprofWriter) write(field int, m message) {
	b.out.Write(binary.AppendUvarint(b.out.AvailableBuffer(), uint64(field<<3|wireBytes)))
	b.out.Write(binary.AppendUvarint(b.out.AvailableBuffer(), uint64(len(m))))
	b.out.Write(m)
}

// name returns the number of a text.
func (b *pprofWriter) name(text string) uint64 {
	n, ok := b.names[text]
	if !ok {
		n = uint64(len(b.texts))
		b.names[text] = n
		b.texts = append(b.texts, text)
	}
	return n
}

// sample writes a stack.
func (b *pprofWriter) sample(s *Stack) {
	any := false
	b.values = b.values[:0]
	for _, v := range s.Values {
		n := integer(v)
		any = any || n != 0
		b.values = binary.AppendUvarint(b.values, uint64(n))
		b.odd.add(v)
	}
	if !any {
		return
	}
	m := b.msg.empty().bytes(sampleLocations, b.locations(s)).bytes(sampleValues, b.values)
	if s.Thread != "" && !b.p.Threads {
		label, ok := b.labels[s.Thread]
		if !ok {
			label = message{}.number(labelKey, b.name("thread")).number(labelText, b.name(clean(s.Thread)))
			b.labels[s.Thread] = label
		}
		m = m.bytes(sampleLabel, label)
	}
	b.write(profileSample, m)
	b.msg = m
	if n := len(s.Frames); n > 0 && !s.Frames[n-1].Kernel && s.Values[b.p.Default] > 0 {
		if m := b.mapping(s.Frames[n-1]); m != nil {
			m.self += s.Values[b.p.Default]
		}
	}
}

// locations returns the numbers of a stack's locations, the innermost first.
func (b *pprofWriter) locations(s *Stack) []byte {
	if b.p.Threads && s.Thread != b.thread {
		b.thread, b.known, b.base = s.Thread, 0, 0
		if s.Thread != "" {
			f := b.threads[s.Thread]
			if f == nil {
				f = &Frame{Function: s.Thread}
				b.threads[s.Thread] = f
			}
			b.base = b.locate(b.place(0, f), 0)
		}
	}
	b.at = b.at[:b.known]
	for i, f := range s.Frames[b.known:] {
		at := pprofAt{outer: b.base}
		if i += b.known; i > 0 {
			at = b.at[i-1]
		}
		if i > 0 && !f.Inlined {
			at = pprofAt{outer: b.locate(at.place, at.outer)}
		}
		at.place = b.place(at.place, f)
		b.at = append(b.at, at)
	}
	b.known = len(s.Frames)
	length := b.base
	if n := len(b.at); n > 0 {
		length = b.locate(b.at[n-1].place, b.at[n-1].outer)
	}
	return b.packed[len(b.packed)-length:]
}

// locate puts a location before those that take so many bytes. It returns the bytes of all.
func (b *pprofWriter) locate(place uint64, behind int) int {
	b.used[place] = true
	var number [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(number[:], place)
	if behind+n > len(b.packed) {
		larger := make([]byte, 2*len(b.packed))
		copy(larger[len(b.packed):], b.packed)
		b.packed = larger
	}
	copy(b.packed[len(b.packed)-behind-n:], number[:n])
	return behind + n
}

// place returns the number of a place.
func (b *pprofWriter) place(outer uint64, f *Frame) uint64 {
	if outer == 0 && f.writer == b {
		return f.place
	}
	key := pprofPlace{outer, f}
	n, ok := b.places[key]
	if !ok {
		n = uint64(len(b.list))
		b.places[key] = n
		b.list, b.used = append(b.list, key), append(b.used, false)
	}
	if outer == 0 {
		f.writer, f.place = b, n
	}
	return n
}

// integer rounds a value.
func integer(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(math.Round(v))
}

// mapping returns the mapping of a frame's module; nil if it has none.
func (b *pprofWriter) mapping(f *Frame) *pprofMapping {
	if f.Module == "" {
		return nil
	}
	key := module{f.Module, f.BuildID}
	m := b.mappings[key]
	if m == nil {
		m = &pprofMapping{module: key, id: uint64(len(b.modules) + 1)}
		b.mappings[key], b.modules = m, append(b.modules, m)
	}
	return m
}

// end writes what the samples refer to.
func (b *pprofWriter) end() {
	for n := range b.list {
		if b.used[n] {
			b.location(uint64(n))
		}
	}
	b.moduleList()
	comments := append([]string{b.p.Title}, b.p.Notes...)
	if b.odd.Negative > 0 {
		comments = append(comments, fmt.Sprintf("%d values are below zero, %.4g together; the total that pprof prints has them as if they were above", b.odd.Negative, b.odd.Sum))
	}
	for _, text := range cleanAll(comments) {
		b.out.Write(b.part.empty().number(profileComment, b.name(text)))
	}
	if b.p.Duration > 0 {
		b.out.Write(b.part.empty().number(profileDuration, uint64(int64(b.p.Duration*1e9))))
	}
	for _, text := range b.texts {
		b.write(profileString, message(text))
	}
}

// location writes a location: a function, and the functions inlined into it.
func (b *pprofWriter) location(n uint64) {
	m := b.msg.empty().number(locationID, n)
	outer, frames := b.list[n].frame, 0
	lines := b.values[:0]
	for ; n > 0; n = b.list[n].outer {
		outer = b.list[n].frame
		line := b.part.empty().number(lineFunction, b.function(outer)).number(lineNumber, uint64(max(outer.Line, 0)))
		lines = lines.bytes(locationLine, line)
		if m := b.mapping(outer); m != nil && outer.Line > 0 {
			m.lines = true
		}
		frames++
	}
	if of := b.mapping(outer); of != nil {
		of.inlined = of.inlined || frames > 1
		m = m.number(locationMapping, of.id)
	}
	m = m.number(locationAddr, outer.Addr)
	b.write(profileLocation, append(m, lines...))
	b.msg, b.values = m, lines
}

// function returns the number of a frame's function, and writes it the first time.
func (b *pprofWriter) function(f *Frame) uint64 {
	key := pprofFunction{b.name(f.label()), b.name(clean(f.File))}
	n, ok := b.functions[key]
	if !ok {
		n = uint64(len(b.functions) + 1)
		b.functions[key] = n
		b.write(profileFunction, message{}.number(functionID, n).number(functionName, key.name).number(functionSystemName, key.name).number(functionFile, key.file))
	}
	return n
}

// moduleList writes the mappings, that with the largest values first. Pprof takes the first
// mapping for the main program and prints its name as the title. HasFunctions keeps pprof
// from looking for other names.
func (b *pprofWriter) moduleList() {
	var best *pprofMapping
	for _, m := range b.modules {
		if m.self > 0 && (best == nil || m.self > best.self) {
			best = m
		}
	}
	write := func(m *pprofMapping) {
		b.write(profileMapping, b.part.empty().number(mappingID, m.id).number(mappingFile, b.name(clean(m.name))).number(mappingBuildID, b.name(clean(m.buildID))).
			truth(mappingFunctions, true).truth(mappingFilenames, true).truth(mappingLines, m.lines).truth(mappingInlined, m.inlined))
	}
	if best != nil {
		write(best)
	}
	for _, m := range b.modules {
		if m != best {
			write(m)
		}
	}
}
