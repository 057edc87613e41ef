package kept_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/kept"
)

// store returns a store below a directory of the test.
func store(t *testing.T) (*kept.Store, string) {
	t.Helper()
	top := t.TempDir()
	s, err := kept.Open(func() (string, error) { return top, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s, filepath.Join(top, "cyclestack", "runs")
}

// keep keeps a run with an account and so many bytes of samples.
func keep(t *testing.T, s *kept.Store, text string, size int64) {
	t.Helper()
	r, err := s.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(kept.Account, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		t.Fatal(err)
	}
	if size > 0 {
		f, err := r.Create(kept.Samples)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil { // a hole takes no room
			t.Fatal(err)
		}
		f.Close()
	}
	if err := r.Keep(); err != nil {
		t.Fatal(err)
	}
}

// TestStore checks that the last run comes first, that nobody else can read it, and the bounds.
func TestStore(t *testing.T) {
	s, dir := store(t)
	for _, text := range []string{"one", "two", "three"} {
		keep(t, s, text, 0)
		time.Sleep(time.Millisecond) // the names have microseconds
	}
	runs := s.Runs()
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	for i, want := range []string{"three", "two", "one"} {
		if text, err := os.ReadFile(runs[i].Path(kept.Account)); err != nil || string(text) != want {
			t.Errorf("run %d is %q: %v", i, text, err)
		}
		if runs[i].Path(kept.Samples) != "" {
			t.Errorf("run %d has samples", i)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, runs[0].Dir: 0o700, runs[0].Path(kept.Account): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for range 25 {
		keep(t, s, "many", 0)
		time.Sleep(time.Millisecond)
	}
	if n := len(s.Runs()); n != 20 {
		t.Errorf("%d runs are kept", n)
	}
	keep(t, s, "large", 200<<20)
	time.Sleep(time.Millisecond)
	keep(t, s, "larger", 300<<20)
	if runs := s.Runs(); len(runs) != 1 || runs[0].Path(kept.Samples) == "" {
		t.Errorf("%d runs are kept beside a large one", len(runs))
	}
}

// TestDiscard checks that a run that was given up leaves nothing.
func TestDiscard(t *testing.T) {
	s, dir := store(t)
	r, err := s.New()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs()) != 0 {
		t.Error("a run that is measured counts as kept")
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestHostile checks directories that are not what the store has made.
func TestHostile(t *testing.T) {
	s, dir := store(t)
	keep(t, s, "one", 0)
	for _, name := range []string{"x", "20261125T184307.123456-1.new", "99999999T999999.999999-1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "20991125T184307.123456-1")
	if err := os.Mkdir(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(link, kept.Account)); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "cyclestack"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(top, "cyclestack", "runs")); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Open(func() (string, error) { return top, nil }); err == nil {
		t.Error("a link is taken for the directory")
	}
}

// TestLast checks which of several is the last.
func TestLast(t *testing.T) {
	s, _ := store(t)
	t.Chdir(t.TempDir())
	if kept.Last(s, false, "perf.data") != nil || kept.Last(nil, false) != nil {
		t.Error("nothing was measured")
	}
	if err := os.WriteFile("perf.data", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes("perf.data", old, old); err != nil {
		t.Fatal(err)
	}
	if l := kept.Last(s, false, "callgrind.data", "perf.data"); l == nil || l.File != "perf.data" {
		t.Errorf("%+v", l)
	}
	keep(t, s, "one", 0)
	if l := kept.Last(s, false, "perf.data"); l == nil || l.Run == nil {
		t.Errorf("%+v", l)
	}
	if l := kept.Last(s, true, "perf.data"); l == nil || l.File != "perf.data" {
		t.Errorf("a run without samples, for places: %+v", l)
	}
	soon := time.Now().Add(time.Hour)
	if err := os.Chtimes("perf.data", soon, soon); err != nil {
		t.Fatal(err)
	}
	if l := kept.Last(s, false, "perf.data"); l == nil || l.File != "perf.data" {
		t.Errorf("%+v", l)
	}
}
