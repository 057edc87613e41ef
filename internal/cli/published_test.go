package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestKeptIntervals keeps what toplev published for many intervals, and reads the file, which is
// larger than one read, again.
func TestKeptIntervals(t *testing.T) {
	dir := t.TempDir()
	csv, kept := filepath.Join(dir, "toplev.csv"), filepath.Join(dir, "kept.json")
	rows := bytes.NewBufferString("Timestamp,CPUs,Area,Value,Unit,Description,Sample,Stddev,Multiplex,Bottleneck,Idle\n")
	for i := range 1000 {
		fmt.Fprintf(rows, "%d.5,S0-C0,Frontend_Bound,%d,%% Slots,,,0.0,100.0,,\n", i, 10+i%20)
	}
	if err := os.WriteFile(csv, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	report := func(args ...string) string {
		t.Helper()
		var out, msg bytes.Buffer
		if status := Main(context.Background(), append([]string{"report", "--cpu", "skylakex", "--by", "interval"}, args...), nil, &out, &msg); status != 0 {
			t.Fatalf("%q: status %d: %s", args, status, &msg)
		}
		return out.String()
	}
	first := report("--format", "csv", csv)
	report("--format", "json", "-o", kept, csv)
	if info, err := os.Stat(kept); err != nil || info.Size() < 100_000 {
		t.Fatalf("%v, %v", info, err)
	}
	if again := report("--format", "csv", kept); again != first {
		t.Errorf("from the kept file: %d bytes of another report than the %d from toplev's", len(again), len(first))
	}
}
