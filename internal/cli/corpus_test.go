package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
	"github.com/cyclestack/cyclestack/source/perfstat"
)

// TestPublishedPerfStat reports every published output of perf stat without naming its
// processor: each with a count has nodes of some method, or the count with its rate.
func TestPublishedPerfStat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "perfstat"), "*"))
	if err != nil || len(files) < 140 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	answered, rates := 0, 0
	for _, file := range files {
		var out, msg bytes.Buffer
		status := Main(context.Background(), []string{"report", "--format", "json", file}, strings.NewReader(""), &out, &msg)
		if !hasCount(t, file) {
			if status != exitInput || strings.Count(msg.String(), "\n") != 1 {
				t.Errorf("%s has no count: exit status %d: %s", file, status, msg.String())
			}
			continue
		}
		if status != 0 {
			t.Errorf("%s: exit status %d: %s", file, status, msg.String())
			continue
		}
		var got struct {
			Model    struct{ Name string }
			Accounts []struct {
				Nodes []struct{ Value *float64 }
				Also  []json.RawMessage
				Rates []struct {
					Event, Per  string
					Value, Rate *float64
				}
			}
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		known := 0
		for _, a := range got.Accounts {
			known += len(a.Also)
			for _, n := range a.Nodes {
				if n.Value != nil {
					known++
				}
			}
			for _, r := range a.Rates {
				if r.Value == nil || r.Event == "" || (r.Rate == nil) != (r.Per == "") {
					t.Errorf("%s: rate %+v", file, r)
				}
				known++
				rates++
			}
		}
		if known == 0 {
			t.Errorf("%s: nothing is known", file)
		}
		if got.Model.Name == "loop-relations" {
			t.Errorf("%s opens with relations of a loop that no processor was named for", file)
		}
		answered++
	}
	if answered < 128 || rates < 100 {
		t.Errorf("%d files are answered, %d rates", answered, rates)
	}
}

// hasCount reports whether the reader finds a count in a file.
func hasCount(t *testing.T, file string) bool {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := perfstat.NewReader(f, file, perfstat.Options{})
	for r.Next() {
		table := r.Table()
		for i := range table.Scopes {
			for _, c := range table.Row(i) {
				if c.Ok() {
					return true
				}
			}
		}
	}
	return false
}
