package ostime_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// BenchmarkCommand is what the watching of a command costs that ends before it is looked
// at: beside the counting of any program.
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
