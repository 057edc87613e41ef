package output

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/signals"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// TestGatherer checks that no way of writing gathers more than a gatherer may
// hold: io.WriteString takes another way than Write where there is one.
func TestGatherer(t *testing.T) {
	line := strings.Repeat("x", 100) + "\n"
	for name, write := range map[string]func(io.Writer) error{
		"Write":       func(w io.Writer) error { _, err := w.Write([]byte(line)); return err },
		"WriteString": func(w io.Writer) error { _, err := io.WriteString(w, line); return err },
		"ReadFrom":    func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader(line)); return err },
	} {
		var out bytes.Buffer
		f := gatherer{to: &out}
		for range 10 * flushAt / len(line) {
			if err := write(&f); err != nil {
				t.Fatal(err)
			}
			if f.buf.Len() > flushAt {
				t.Fatalf("%s: %d bytes gathered", name, f.buf.Len())
			}
		}
	}
}

// TestPlace finds where files come to be.
func TestPlace(t *testing.T) {
	far, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if here, err = filepath.EvalSymlinks(here); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(far, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": filepath.Join(far, "below"), "hangs": "nothing", "again": "hangs", "farther": "link/../other",
		"a": "b", "b": "a", "broken": "no/such/file"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"x": filepath.Join(here, "x"), "link/../x": filepath.Join(far, "x"), "hangs": filepath.Join(here, "nothing"),
		"again": filepath.Join(here, "nothing"), "farther": filepath.Join(far, "other"), "a": "", "broken": "", "no/such/file": "", "no/": ""} {
		to, err := placeOf(name, nil)
		if path, _ := filepath.Abs(to.path); (err == nil) != (want != "") || err == nil && path != want {
			t.Errorf("%s: %q, %v; want %q", name, to.path, err, want)
		}
	}
}

// TestUnnamed checks that a recording which cannot be given its name is not lost.
func TestUnnamed(t *testing.T) {
	dir := t.TempDir()
	g := signals.NewGuard()
	defer g.End()
	to := place{path: filepath.Join(dir, "perf.data")}
	f, err := g.Make(to.neighbour)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(to.path, "directory"), 0o700); err != nil { // made meanwhile
		t.Fatal(err)
	}
	if err := os.WriteFile(to.path+".old", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Recording{to: to, out: f, file: f, name: "perf.data", guard: g}
	if err := r.Keep(); err == nil || !strings.Contains(err.Error(), "the recording is in "+f.Name()) {
		t.Errorf("error %v", err)
	}
	r.Discard()
	if _, err := os.Stat(f.Name()); err != nil {
		t.Error(err)
	}
}

func TestWatched(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer pipe.Close()
	for _, tt := range []struct {
		name string
		out  io.Writer
		want bool
	}{{"a file", file, false}, {"nowhere", null, false}, {"a pipe", pipe, true}, {"a buffer", &bytes.Buffer{}, true}} {
		if got := (&Stream{out: tt.out}).Watched(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
