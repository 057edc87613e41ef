package collector_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/collector"
)

// After the first collection the limit of Late is lifted, but not one that a command has set.
func TestLate(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for _, own := range []int64{0, 200 << 20} {
		collector.Late()
		if first := debug.SetMemoryLimit(-1); first == math.MaxInt64 {
			t.Error("memory has no limit at first")
		}
		want := int64(math.MaxInt64)
		if own > 0 {
			want = own
			debug.SetMemoryLimit(own)
		}
		for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
			runtime.GC()
			metrics.Read(sample)
			growth := sample[0].Value.Uint64()
			if growth < 100 && debug.SetMemoryLimit(-1) == want {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the limit is %d, want %d; the heap grows by %d %%", debug.SetMemoryLimit(-1), want, growth)
			}
		}
		debug.SetGCPercent(percent) // ends the rule
	}
}
