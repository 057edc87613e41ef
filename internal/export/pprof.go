package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

// Pprof writes a profile for pprof, compressed. Sample types are the profile's. Values are
// rounded, and unknown ones are 0. Threads are labels ("thread"), for -tagroot and
// -tagfocus, unless the profile has them as frames.
func Pprof(w io.Writer, p *Profile) error {
	b := &pprofBuilder{
		p:         &profile.Profile{Comments: cleanAll(append([]string{p.Title}, p.Notes...))},
		functions: map[profile.Function]*profile.Function{}, mappings: map[module]*profile.Mapping{},
		locations: map[string]*profile.Location{}, frames: map[*Frame]uint32{}, self: map[*profile.Mapping]float64{},
		threads: map[string]*Frame{}, labels: map[string]map[string][]string{}}
	used := map[string]bool{}
	for _, t := range p.Types {
		b.p.SampleType = append(b.p.SampleType, &profile.ValueType{Type: unique(t, used), Unit: clean(t.Unit)})
	}
	if len(p.Types) > 0 {
		b.p.DefaultSampleType = b.p.SampleType[p.Default].Type
	}
	if p.Duration > 0 {
		b.p.DurationNanos = int64(p.Duration * 1e9)
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
		b.p.Comments = append(b.p.Comments, fmt.Sprintf("%d values are below zero, %.4g together; the total that pprof prints has them as if they were above", odd.Negative, odd.Sum))
	}
	return b.p.Write(w)
}

// mainFirst moves the mapping with the largest values to the front. Pprof takes the first
// mapping for the main program and prints its name as the title.
func (b *pprofBuilder) mainFirst() {
	best := -1
	for i, m := range b.p.Mapping {
		if b.self[m] > 0 && (best < 0 || b.self[m] > b.self[b.p.Mapping[best]]) {
			best = i
		}
	}
	if best > 0 {
		m := b.p.Mapping[best]
		b.p.Mapping = slices.Insert(slices.Delete(b.p.Mapping, best, best+1), 0, m)
	}
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

// A module is a file that is mapped.
type module struct{ name, buildID string }

// A pprofBuilder makes a pprof profile. Functions, mappings, locations and labels are
// shared by the samples.
type pprofBuilder struct {
	p         *profile.Profile
	functions map[profile.Function]*profile.Function // by name and file
	mappings  map[module]*profile.Mapping
	locations map[string]*profile.Location // by the frames at one address
	frames    map[*Frame]uint32
	self      map[*profile.Mapping]float64 // of the default type, the kernel's apart
	threads   map[string]*Frame
	labels    map[string]map[string][]string // by thread
	key       []byte
}

// add adds a stack.
func (b *pprofBuilder) add(s *Stack, threads bool) {
	sample := &profile.Sample{Value: make([]int64, len(s.Values))}
	any := false
	for i, v := range s.Values {
		sample.Value[i] = integer(v)
		any = any || sample.Value[i] != 0
	}
	if !any {
		return
	}
	sample.Location = make([]*profile.Location, 0, len(s.Frames)+1)
	for end := len(s.Frames); end > 0; {
		begin := end - 1
		for begin > 0 && s.Frames[begin].Inlined {
			begin--
		}
		sample.Location = append(sample.Location, b.location(s.Frames[begin:end]))
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
		sample.Location = append(sample.Location, b.location([]*Frame{f}))
	default:
		sample.Label = b.labels[s.Thread]
		if sample.Label == nil {
			sample.Label = map[string][]string{"thread": {clean(s.Thread)}}
			b.labels[s.Thread] = sample.Label
		}
	}
	b.p.Sample = append(b.p.Sample, sample)
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

// location returns the location of the frames at one address, the outermost first: a
// function and the functions inlined into it.
func (b *pprofBuilder) location(frames []*Frame) *profile.Location {
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
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.mapping(frames[0]), Address: frames[0].Addr}
	for i := len(frames) - 1; i >= 0; i-- {
		l.Line = append(l.Line, profile.Line{Function: b.function(frames[i]), Line: int64(frames[i].Line)})
		if frames[i].Line > 0 && l.Mapping != nil {
			l.Mapping.HasLineNumbers = true
		}
	}
	if l.Mapping != nil && len(frames) > 1 {
		l.Mapping.HasInlineFrames = true
	}
	b.locations[string(b.key)] = l
	b.p.Location = append(b.p.Location, l)
	return l
}

// function returns the function of a frame.
func (b *pprofBuilder) function(f *Frame) *profile.Function {
	name := f.label()
	key := profile.Function{Name: name, SystemName: name, Filename: clean(f.File)}
	fn := b.functions[key]
	if fn == nil {
		fn = &profile.Function{}
		*fn = key
		fn.ID = uint64(len(b.p.Function) + 1)
		b.functions[key] = fn
		b.p.Function = append(b.p.Function, fn)
	}
	return fn
}

// mapping returns the mapping of a frame's module; nil if it has none. HasFunctions keeps
// pprof from looking for other names.
func (b *pprofBuilder) mapping(f *Frame) *profile.Mapping {
	if f.Module == "" {
		return nil
	}
	key := module{f.Module, f.BuildID}
	m := b.mappings[key]
	if m == nil {
		m = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: clean(f.Module), BuildID: clean(f.BuildID), HasFunctions: true, HasFilenames: true}
		b.mappings[key] = m
		b.p.Mapping = append(b.p.Mapping, m)
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
