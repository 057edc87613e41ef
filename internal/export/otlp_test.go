package export_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cyclestack/cyclestack/internal/export"
)

// TestOTLP: OpenTelemetry's own library reads the profiles. They have the stacks and values
// that pprof's library reads from the same stacks.
func TestOTLP(t *testing.T) {
	hostile := program()
	hostile.Types = []export.Type{{"a\"\n\xff", "\x1b", ""}}
	hostile.Stacks = slices.Values([]*export.Stack{{Thread: "\xfe\"", Frames: []*export.Frame{{Function: "</script>\xff", Module: "\n"}}, Values: []float64{1e300}}})
	begin := time.Unix(1_700_000_000, 5)
	var out bytes.Buffer
	list := []export.Resource{{Attributes: map[string]string{"service.name": "web", "empty": ""}, Profile: program()}, {Attributes: map[string]string{"service.name": "\xff\"\n"}, Profile: hostile}}
	if err := export.OTLP(&out, list, "1.2", begin, begin.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	var data profiles.ProfilesData
	if err := protojson.Unmarshal(out.Bytes(), &data); err != nil { // unknown fields are errors
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(data.ResourceProfiles) != 2 || len(data.ResourceProfiles[0].Resource.Attributes) != 1 || len(data.ResourceProfiles[1].ScopeProfiles[0].Profiles) != 1 {
		t.Fatalf("%v", &data)
	}
	d := data.Dictionary
	got := map[string]int64{}
	for _, p := range data.ResourceProfiles[0].ScopeProfiles[0].Profiles {
		if p.TimeUnixNano != uint64(begin.UnixNano()) || p.DurationNano != 1e9 {
			t.Errorf("%v", p)
		}
		for _, s := range p.Samples {
			stack := []string{d.StringTable[p.SampleType.TypeStrindex], d.AttributeTable[s.AttributeIndices[0]].Value.GetStringValue()}
			for _, l := range d.StackTable[s.StackIndex].LocationIndices {
				for _, line := range d.LocationTable[l].Lines {
					f := d.FunctionTable[line.FunctionIndex]
					stack = append(stack, d.StringTable[f.NameStrindex], d.StringTable[f.FilenameStrindex], d.StringTable[d.MappingTable[d.LocationTable[l].MappingIndex].FilenameStrindex])
				}
			}
			got[strings.Join(stack, ";")] += s.Values[0]
		}
	}
	prof, err := pprof.ParseData(write(t, program(), func(b *bytes.Buffer, p *export.Profile) error { return export.Pprof(b, p) }))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for _, s := range prof.Sample {
		for i, v := range s.Value {
			stack := []string{prof.SampleType[i].Type, s.Label["thread"][0]}
			for _, l := range s.Location {
				module := ""
				if l.Mapping != nil {
					module = l.Mapping.File
				}
				for _, line := range l.Line {
					stack = append(stack, line.Function.Name, line.Function.Filename, module)
				}
			}
			if v != 0 {
				want[strings.Join(stack, ";")] += v
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 10 {
		t.Errorf("%d values (-pprof +OTLP):\n%s", len(got), diff)
	}
}
