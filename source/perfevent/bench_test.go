//go:build linux

package perfevent

import (
	"os"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// BenchmarkInterval reads an interval of all processors with 20 events in five
// groups, as stat -a -I does.
func BenchmarkInterval(b *testing.B) {
	sys, err := ReadSystem(os.DirFS("/"))
	if err != nil {
		b.Fatal(err)
	}
	names := []string{"page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults"}
	spec := Spec{Target: Target{All: true}, Interval: time.Second}
	for range 4 {
		var group []Event
		for _, n := range names {
			e, err := sys.Resolve(n)
			if err != nil {
				b.Fatal(err)
			}
			group = append(group, e)
		}
		spec.Groups = append(spec.Groups, group)
	}
	s := prepare(sys, &spec, newScheme(&spec), -1, &notes{})
	defer s.close()
	if err := s.begin(); err != nil {
		b.Skip(err)
	}
	table := counts.NewTable(s.layout)
	b.ReportAllocs()
	for b.Loop() {
		s.fill(table, time.Now(), time.Millisecond)
	}
}

// BenchmarkCommand counts a command that does nothing, from before its start
// until its counts are there.
func BenchmarkCommand(b *testing.B) {
	sys, err := ReadSystem(os.DirFS("/"))
	if err != nil {
		b.Fatal(err)
	}
	e, err := sys.Resolve("task-clock")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name      string
		counted   bool
		noInherit bool
	}{{"alone", false, false}, {"counted", true, false}, {"counted without its children", true, true}} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if !bb.counted {
					p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
					if err != nil {
						b.Skip(err)
					}
					if _, err := p.Wait(); err != nil {
						b.Fatal(err)
					}
					continue
				}
				spec := Spec{Groups: [][]Event{{e}}, Target: Target{Command: []string{"/bin/true"}}, NoInherit: bb.noInherit}
				r, err := Start(b.Context(), sys, spec)
				if err != nil {
					b.Skip(err)
				}
				for r.Next() {
				}
				r.Close()
			}
		})
	}
}

// BenchmarkReadSystem reads what the kernel says about this machine.
func BenchmarkReadSystem(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadSystem(os.DirFS("/")); err != nil {
			b.Fatal(err)
		}
	}
}
