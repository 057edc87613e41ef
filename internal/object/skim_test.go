package object

import (
	"debug/dwarf"
	"slices"
	"testing"
)

// TestSkimmer compares what a skimmer and package dwarf read of programs: the same entries, with
// the same ranges and origins, and the same ones behind children that are passed over.
func TestSkimmer(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			o := open(t, p.build(t), Options{})
			entries, codes, skimmed := 0, 0, 0
			for _, u := range o.debugInfo().units {
				s := o.skimmer(u)
				if s == nil {
					continue
				}
				skimmed++
				r := o.dwarf.data.Reader()
				r.Seek(u.position)
				for n := 0; ; n++ {
					got, err := s.Next()
					want, wantErr := r.Next()
					if err != nil || wantErr != nil {
						t.Fatalf("errors %v, %v", err, wantErr)
					}
					if got == nil || want == nil || want.Offset >= u.end {
						if got != nil || want != nil && want.Tag != 0 && want.Offset < u.end {
							t.Fatalf("one ends before the other: %v, %v", got, want)
						}
						break
					}
					if want.Tag == 0 { // without an offset
						want.Offset = got.Offset
					}
					if got.Offset != want.Offset || got.Tag != want.Tag || got.Children != want.Children {
						t.Fatalf("%v, want %v", got, want)
					}
					if got.Field != nil {
						codes++
						ranges, _ := s.unit.entryRanges(got)
						if same, err := o.dwarf.data.Ranges(want); err != nil || !slices.Equal(ranges, same) {
							t.Fatalf("%v has %x, want %x, %v", want, ranges, same, err)
						}
						for _, a := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrCallFile, dwarf.AttrCallLine} {
							if got.Val(a) != want.Val(a) {
								t.Fatalf("%v has %v of %v, want %v", want, got.Val(a), a, want.Val(a))
							}
						}
					}
					if entries++; want.Children && n > 0 && n%3 == 0 {
						s.SkipChildren()
						r.SkipChildren()
					}
				}
			}
			if codes == 0 && p.inline != "" {
				t.Fatal("no entry with code was skimmed")
			}
			t.Logf("%d of %d units, %d entries, %d with code", skimmed, len(o.dwarf.units), entries, codes)
		})
	}
}
