package collector_test

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/collector"
)

// After the first collection the limit of Late is lifted, but not one that a command has set.
// Each case has a process of its own, as one rule would lift the other's limit.
func TestLate(t *testing.T) {
	const name = "CYCLESTACK_COLLECTOR_LIMIT"
	if own := os.Getenv(name); own != "" {
		limit, err := strconv.ParseInt(own, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		late(t, limit)
		return
	}
	for _, own := range []string{"0", "200000000"} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLate$", "-test.count=1")
		child.Env = append(os.Environ(), name+"="+own, "GOGC=", "GOMEMLIMIT=")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("own limit %s: %v\n%s", own, err, out)
		}
	}
}

// late calls collector.Late and then sets an own limit in bytes; 0 for none.
func late(t *testing.T, own int64) {
	collector.Late()
	if first := debug.SetMemoryLimit(-1); first == math.MaxInt64 {
		t.Error("memory has no limit at first")
	}
	want := int64(math.MaxInt64)
	if own > 0 {
		want = own
		debug.SetMemoryLimit(own)
	}
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		runtime.GC()
		metrics.Read(sample)
		growth := sample[0].Value.Uint64()
		if growth < 100 && debug.SetMemoryLimit(-1) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the limit is %d, want %d; the heap grows by %d %%", debug.SetMemoryLimit(-1), want, growth)
		}
	}
}
