package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// Pprof writes a profile for pprof, compressed. Sample types are the profile's; values
// are rounded, and those that are not known are 0. Threads are labels ("thread"), for
// -tagroot and -tagfocus, unless the profile has them as frames.
func Pprof(w io.Writer, p *Profile) error {
	b := &pprofBuilder{
		p:         &pprofProfile{comments: cleanAll(append([]string{p.Title}, p.Notes...))},
		functions: map[pprofFunction]*pprofFunction{}, mappings: map[module]*pprofMapping{},
		locations: map[string]*pprofLocation{}, frames: map[*Frame]uint32{}, self: map[*pprofMapping]float64{}, threads: map[string]*Frame{}}
	taken := map[string]bool{}
	for _, t := range p.Types {
		b.p.sampleTypes = append(b.p.sampleTypes, &pprofType{name: unique(t, taken), unit: clean(t.Unit)})
	}
	if len(p.Types) > 0 {
		b.p.defaultType = b.p.sampleTypes[p.Default].name
	}
	if p.Duration > 0 {
		b.p.durationNanos = int64(p.Duration * 1e9)
	}
	var odd Omission
	for s := range p.Stacks {
		b.add(s, p.Threads)
		for _, v := range s.Values {
			odd.add(v)
		}
		if n := len(s.Frames); n > 0 && !s.Frames[n-1].Kernel && s.Values[p.Default] > 0 {
			b.self[b.mapping(s.Frames[n-1])] += s.Values[p.Default]
		}
	}
	b.mainFirst()
	if odd.Negative > 0 {
		b.p.comments = append(b.p.comments, fmt.Sprintf("%d values are below zero, %.4g together; the total that pprof prints has them as if they were above", odd.Negative, odd.Sum))
	}
	return b.p.write(w)
}

// mainFirst puts the mapping with the most to the front, where pprof looks for the main
// program: its name is the title.
func (b *pprofBuilder) mainFirst() {
	best := -1
	for i, m := range b.p.mappings {
		if b.self[m] > 0 && (best < 0 || b.self[m] > b.self[b.p.mappings[best]]) {
			best = i
		}
	}
	if best > 0 {
		m := b.p.mappings[best]
		b.p.mappings = slices.Insert(slices.Delete(b.p.mappings, best, best+1), 0, m)
	}
}

// unique returns a type's name, or where that is taken another one: an event that was
// counted in several groups is several types.
func unique(t Type, taken map[string]bool) string {
	name := clean(t.Name)
	if taken[name] && t.Path != "" {
		name = clean(t.Path)
	}
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", clean(t.Name), n)
	}
	taken[name] = true
	return name
}

// A module is what code was mapped from.
type module struct{ name, buildID string }

// A pprofBuilder makes a pprof profile.
type pprofBuilder struct {
	p         *pprofProfile
	functions map[pprofFunction]*pprofFunction
	mappings  map[module]*pprofMapping
	locations map[string]*pprofLocation // by the frames at one address
	frames    map[*Frame]uint32
	self      map[*pprofMapping]float64 // of the default type, the kernel's apart
	threads   map[string]*Frame
	key       []byte
}

// add adds a stack.
func (b *pprofBuilder) add(s *Stack, threads bool) {
	sample := &pprofSample{values: make([]int64, len(s.Values))}
	any := false
	for i, v := range s.Values {
		sample.values[i] = integer(v)
		any = any || sample.values[i] != 0
	}
	if !any {
		return
	}
	for end := len(s.Frames); end > 0; {
		begin := end - 1
		for begin > 0 && s.Frames[begin].Inlined {
			begin--
		}
		sample.locations = append(sample.locations, b.location(s.Frames[begin:end]))
		end = begin
	}
	switch {
	case s.Thread == "":
	case threads:
		f := b.threads[s.Thread]
		if f == nil {
			f = &Frame{Function: s.Thread}
			b.threads[s.Thread] = f
		}
		sample.locations = append(sample.locations, b.location([]*Frame{f}))
	default:
		sample.thread = clean(s.Thread)
	}
	b.p.samples = append(b.p.samples, sample)
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

// location returns the location of frames at one address, the outermost first: a
// function and what was inlined into it.
func (b *pprofBuilder) location(frames []*Frame) *pprofLocation {
	b.key = b.key[:0]
	for _, f := range frames {
		n, ok := b.frames[f]
		if !ok {
			n = uint32(len(b.frames))
			b.frames[f] = n
		}
		b.key = binary.LittleEndian.AppendUint32(b.key, n)
	}
	if l := b.locations[string(b.key)]; l != nil {
		return l
	}
	l := &pprofLocation{id: uint64(len(b.p.locations) + 1), mapping: b.mapping(frames[0]), address: frames[0].Addr}
	for i := len(frames) - 1; i >= 0; i-- {
		l.lines = append(l.lines, pprofLine{function: b.function(frames[i]), line: int64(frames[i].Line)})
		if frames[i].Line > 0 && l.mapping != nil {
			l.mapping.lines = true
		}
	}
	if l.mapping != nil && len(frames) > 1 {
		l.mapping.inlined = true
	}
	b.locations[string(b.key)] = l
	b.p.locations = append(b.p.locations, l)
	return l
}

// function returns the function of a frame.
func (b *pprofBuilder) function(f *Frame) *pprofFunction {
	key := pprofFunction{name: f.label(), file: clean(f.File)}
	fn := b.functions[key]
	if fn == nil {
		fn = &pprofFunction{id: uint64(len(b.p.functions) + 1), name: key.name, file: key.file}
		b.functions[key] = fn
		b.p.functions = append(b.p.functions, fn)
	}
	return fn
}

// mapping returns the mapping of a frame's module. That it has functions keeps pprof
// from looking for other names.
func (b *pprofBuilder) mapping(f *Frame) *pprofMapping {
	if f.Module == "" {
		return nil
	}
	key := module{f.Module, f.BuildID}
	m := b.mappings[key]
	if m == nil {
		m = &pprofMapping{id: uint64(len(b.p.mappings) + 1), file: clean(f.Module), buildID: clean(f.BuildID), functions: true, files: true}
		b.mappings[key] = m
		b.p.mappings = append(b.p.mappings, m)
	}
	return m
}

func cleanAll(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, clean(s))
		}
	}
	return out
}
