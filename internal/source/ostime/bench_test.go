package ostime_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// BenchmarkCommand measures the cost of watching a command that ends before the first
// poll. Counting any program costs this much more.
func BenchmarkCommand(b *testing.B) {
	for _, listen := range []bool{false, true} {
		b.Run(fmt.Sprintf("listen=%t", listen), func(b *testing.B) {
			b.ReportAllocs()
			t := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})
			for b.Loop() {
				w := ostime.New(os.DirFS("/"), ostime.Spec{Listen: listen})
				w.Started(os.Getpid())
				w.Ended(os.Getpid())
				w.Join(t)
				w.Close()
			}
		})
	}
}
