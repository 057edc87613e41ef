package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/source"
)

// TestSampled tells recordings of samples from those of counts, by their beginning.
func TestSampled(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("PERF, which is no magic"), 0o666); err != nil {
		t.Fatal(err)
	}
	const dir = "perfdata/testdata/"
	for name, want := range map[string]bool{
		dir + "plain.data": true, dir + "pipe.data": true, dir + "zstd.data": true, dir + "group.data": true,
		dir + "stat.data": false, dir + "stat-interval.pipe": false,
		text: false, text + ".none": false, t.TempDir(): false,
	} {
		if got := source.Sampled(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
