package export

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"
)

// A Resource is a profile of something that has attributes, such as a service.
type Resource struct {
	Attributes map[string]string
	Profile    *Profile
}

// OTLP writes profiles as JSON of OpenTelemetry: see profiles.proto, version v1development, of
// github.com/open-telemetry/opentelemetry-proto. All resources share its tables. Each type of
// values is a profile of its own. Values are rounded; unknown ones and zeros are left out.
func OTLP(w io.Writer, list []Resource, release string, begin, end time.Time) error {
	b := &otlpBuilder{strings: map[string]int{}, functions: map[otlpFunction]int{}, mappings: map[module]int{}, locations: map[string]int{}, stacks: map[string]int{}, frames: map[*Frame]uint32{}, attributes: map[string]int{}}
	b.string("")
	b.d.Mappings, b.d.Locations, b.d.Functions = []otlpMapping{{}}, []otlpLocation{{}}, []otlpFunction{{}}
	b.d.Links, b.d.Attributes, b.d.Stacks = []struct{}{{}}, []otlpAttribute{{}}, []otlpStack{{}}
	doc := otlpData{Resources: []otlpResource{}, Dictionary: &b.d}
	for _, r := range list {
		x := otlpResource{Resource: otlpAttributes(r.Attributes)}
		x.Scopes = []otlpScope{{Profiles: b.profiles(r.Profile, begin, end)}}
		x.Scopes[0].Scope.Name, x.Scopes[0].Scope.Version = "github.com/cyclestack/cyclestack", clean(release)
		doc.Resources = append(doc.Resources, x)
	}
	return json.NewEncoder(w).Encode(&doc)
}

// The messages of profiles.proto, in its JSON. Integers of 64 bits are strings there.
type (
	otlpData struct {
		Resources  []otlpResource  `json:"resourceProfiles"`
		Dictionary *otlpDictionary `json:"dictionary"`
	}
	otlpDictionary struct {
		Mappings   []otlpMapping   `json:"mappingTable"`
		Locations  []otlpLocation  `json:"locationTable"`
		Functions  []otlpFunction  `json:"functionTable"`
		Links      []struct{}      `json:"linkTable"`
		Strings    []string        `json:"stringTable"`
		Attributes []otlpAttribute `json:"attributeTable"`
		Stacks     []otlpStack     `json:"stackTable"`
	}
	otlpResource struct {
		Resource otlpLabels  `json:"resource"`
		Scopes   []otlpScope `json:"scopeProfiles"`
	}
	otlpLabels struct {
		Attributes []otlpLabel `json:"attributes"`
	}
	otlpLabel struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String string `json:"stringValue"`
	}
	otlpScope struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Profiles []otlpProfile `json:"profiles"`
	}
	otlpProfile struct {
		Type     otlpType     `json:"sampleType"`
		Samples  []otlpSample `json:"samples"`
		Time     int64        `json:"timeUnixNano,string"`
		Duration int64        `json:"durationNano,string"`
	}
	otlpType struct {
		Type int `json:"typeStrindex"`
		Unit int `json:"unitStrindex"`
	}
	otlpSample struct {
		Stack      int   `json:"stackIndex"`
		Attributes []int `json:"attributeIndices,omitempty"`
		Values     []int `json:"values"`
	}
	otlpStack struct {
		Locations []int `json:"locationIndices,omitempty"`
	}
	otlpLocation struct {
		Mapping int        `json:"mappingIndex,omitempty"`
		Address uint64     `json:"address,omitempty,string"`
		Lines   []otlpLine `json:"lines,omitempty"`
	}
	otlpLine struct {
		Function int `json:"functionIndex"`
		Line     int `json:"line,omitempty"`
	}
	otlpFunction struct {
		Name int `json:"nameStrindex,omitempty"`
		File int `json:"filenameStrindex,omitempty"`
	}
	otlpMapping struct {
		File       int   `json:"filenameStrindex,omitempty"`
		Attributes []int `json:"attributeIndices,omitempty"`
	}
	otlpAttribute struct {
		Key   int        `json:"keyStrindex,omitempty"`
		Value *otlpValue `json:"value,omitempty"`
	}
)

func otlpAttributes(m map[string]string) (l otlpLabels) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] != "" {
			l.Attributes = append(l.Attributes, otlpLabel{clean(key), otlpValue{clean(m[key])}})
		}
	}
	return l
}

// An otlpBuilder fills the tables. Index 0 of each means nothing.
type otlpBuilder struct {
	d          otlpDictionary
	strings    map[string]int
	functions  map[otlpFunction]int
	mappings   map[module]int
	locations  map[string]int // by the frames at one address
	stacks     map[string]int // by locations
	frames     map[*Frame]uint32
	attributes map[string]int // by key and value
	key        []byte
}

// profiles are those of one resource: one for each type that has values.
func (b *otlpBuilder) profiles(p *Profile, begin, end time.Time) []otlpProfile {
	list := []otlpProfile{}
	used := map[string]bool{}
	for _, t := range p.Types {
		list = append(list, otlpProfile{Type: otlpType{b.string(unique(t, used)), b.string(clean(t.Unit))}, Samples: []otlpSample{},
			Time: begin.UnixNano(), Duration: max(0, end.Sub(begin).Nanoseconds())})
	}
	for s := range p.Stacks {
		stack, thread := 0, []int(nil)
		for i, v := range s.Values {
			n := integer(v)
			if n == 0 {
				continue
			}
			if stack == 0 {
				stack = b.stack(s.Frames)
				if s.Thread != "" {
					thread = []int{b.attribute("thread.name", s.Thread)}
				}
			}
			list[i].Samples = append(list[i].Samples, otlpSample{stack, thread, []int{int(n)}})
		}
	}
	return slices.DeleteFunc(list, func(p otlpProfile) bool { return len(p.Samples) == 0 })
}

// string returns the index of a string.
func (b *otlpBuilder) string(text string) int {
	return put(&b.d.Strings, b.strings, text, func() string { return text })
}

// put returns the index of an element, which it appends if the key is new.
func put[K comparable, T any](list *[]T, known map[K]int, key K, element func() T) int {
	i, ok := known[key]
	if !ok {
		x := element()
		i = len(*list)
		*list = append(*list, x)
		known[key] = i
	}
	return i
}

func (b *otlpBuilder) attribute(key, value string) int {
	value = clean(value)
	return put(&b.d.Attributes, b.attributes, key+"\x00"+value, func() otlpAttribute { return otlpAttribute{b.string(key), &otlpValue{value}} })
}

// stack returns the index of a stack, whose frames have the outermost first.
func (b *otlpBuilder) stack(frames []*Frame) int {
	var at []int
	var key []byte
	for end := len(frames); end > 0; {
		begin := end - 1
		for begin > 0 && frames[begin].Inlined {
			begin--
		}
		l := b.location(frames[begin:end])
		at, key = append(at, l), binary.LittleEndian.AppendUint32(key, uint32(l))
		end = begin
	}
	return put(&b.d.Stacks, b.stacks, string(key), func() otlpStack { return otlpStack{at} })
}

// location returns the index of the frames at one address, the outermost first.
func (b *otlpBuilder) location(frames []*Frame) int {
	b.key = b.key[:0]
	for _, f := range frames {
		n, ok := b.frames[f]
		if !ok {
			n = uint32(len(b.frames))
			b.frames[f] = n
		}
		b.key = binary.LittleEndian.AppendUint32(b.key, n)
	}
	return put(&b.d.Locations, b.locations, string(b.key), func() otlpLocation {
		l := otlpLocation{Mapping: b.mapping(frames[0]), Address: frames[0].Addr}
		for i := len(frames) - 1; i >= 0; i-- {
			f := otlpFunction{b.string(frames[i].label()), b.string(clean(frames[i].File))}
			l.Lines = append(l.Lines, otlpLine{put(&b.d.Functions, b.functions, f, func() otlpFunction { return f }), frames[i].Line})
		}
		return l
	})
}

// mapping returns the index of a frame's module.
func (b *otlpBuilder) mapping(f *Frame) int {
	if f.Module == "" {
		return 0
	}
	return put(&b.d.Mappings, b.mappings, module{f.Module, f.BuildID}, func() otlpMapping {
		m := otlpMapping{File: b.string(clean(f.Module))}
		if f.BuildID != "" {
			m.Attributes = []int{b.attribute("process.executable.build_id.gnu", f.BuildID)}
		}
		return m
	})
}
