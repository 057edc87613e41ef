package source_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/source"
)

// TestStream looks at a pipe by its name several times, as commands do: to tell what
// wrote it, to open it, and to open it as another kind. No byte may be lost on the way,
// and nothing may wait for a second writer.
func TestStream(t *testing.T) {
	const recording = "perfdata/testdata/pipe.data"
	want, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.Write(want)
		w.Close()
	}()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if !source.Sampled(name) {
		t.Error("not recognised")
	}
	f, err := source.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	in, err := source.Stream(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err != nil || string(got) != string(want) {
		t.Errorf("%d bytes and %v, want %d", len(got), err, len(want))
	}
	if in, err := source.Stream(recording); in != nil || err != nil {
		t.Errorf("a file: %v and %v, want nil", in, err)
	}
}
