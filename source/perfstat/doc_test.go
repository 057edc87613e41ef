package perfstat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/source/perfstat"
)

// TestDocument reads the examples of the format's description: those in blocks
// of text are whole outputs.
func TestDocument(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "perf-stat.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, block := range strings.Split(string(content), "\n```text\n")[1:] {
		example, _, closed := strings.Cut(block, "```\n")
		if !closed {
			t.Fatalf("a block is not closed: %.60q", block)
		}
		examples++
		r := perfstat.NewReader(strings.NewReader(example), "example", perfstat.Options{})
		tables := 0
		for r.Next() {
			tables++
			for _, n := range r.Table().Notes {
				t.Errorf("a note on %.60q: %s", example, n)
			}
		}
		if tables == 0 || r.Err() != nil || !perfstat.Detect([]byte(example)) {
			t.Errorf("%d tables, error %v of %.60q", tables, r.Err(), example)
		}
	}
	if examples < 8 {
		t.Errorf("only %d examples", examples)
	}
}
