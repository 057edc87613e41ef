package object

import "testing"

// TestSkimmer compares what a skimmer and package dwarf read of programs: the same entries, and
// the same ones behind children that are passed over.
func TestSkimmer(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			o := open(t, p.build(t), Options{})
			entries, skimmed := 0, 0
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
					if got.Offset != want.Offset || got.Tag != want.Tag || got.Children != want.Children || len(got.Field) > 0 && len(got.Field) != len(want.Field) {
						t.Fatalf("%v, want %v", got, want)
					}
					if entries++; want.Children && n > 0 && n%3 == 0 {
						s.SkipChildren()
						r.SkipChildren()
					}
				}
			}
			if skimmed == 0 && p.inline != "" {
				t.Fatal("no unit was skimmed")
			}
			t.Logf("%d of %d units, %d entries", skimmed, len(o.dwarf.units), entries)
		})
	}
}
