package recorded

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestChangedBetween changes a program, a script or a source before, between and after the
// recordings of two sides.
func TestChangedBetween(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	at := func(name string, minute int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		when := time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sides := [2]Side{{Files: []string{at("old-1", 10), at("old-2", 12)}}, {Files: []string{at("new-1", 20), at("new-2", 22)}}}
	for _, tt := range []struct {
		name, command   string
		minute, program int
		source          bool
		want            string
	}{
		{"app", "./app -n 5", 5, 15, false, "./app changed between the old runs and the new ones"},
		{"app", "./app -n 5", 5, 11, false, ""}, // between two old runs
		{"app", "./app -n 5", 5, 30, false, ""}, // since
		{"run.sh", "sh -e run.sh", 5, 15, false, "run.sh changed between the old runs and the new ones"},
		{"data", "./app data", 5, 15, false, ""}, // an argument may be what the program writes
		{"app.c", "./app", 5, 15, true, "app.c changed between the old runs and the new ones: the same line may be other code"},
	} {
		at("app", tt.minute)
		at(tt.name, tt.program)
		var sources []string
		if tt.source {
			sources = []string{tt.name, "gone.c"}
		}
		got := ""
		if notes := changedBetween(sides, [2]string{tt.command, tt.command}, sources); len(notes) > 0 {
			got = notes[0].Text
		}
		if got != tt.want {
			t.Errorf("%s at %d: %q, want %q", tt.name, tt.program, got, tt.want)
		}
	}
	sides[0], sides[1] = sides[1], sides[0]
	at("app", 15)
	if notes := changedBetween(sides, [2]string{"./app", "./app"}, nil); len(notes) > 0 {
		t.Errorf("sides that are not one after the other: %v", notes)
	}
}
