package annotate

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSources(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.c"), []byte("one\ntwo\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := NewSources(root)
	for range 2 * maxSources {
		if text, err := s.Line("/a.c", 2); text != "two" || err != nil {
			t.Fatalf("got %q, %v", text, err)
		}
	}
	for _, test := range []struct {
		file string
		line int
	}{{"/a.c", 3}, {"/a.c", 0}, {"/b.c", 1}, {"a.c", 1}, {"/", 1}} {
		if text, err := s.Line(test.file, test.line); err == nil {
			t.Errorf("%s:%d is %q", test.file, test.line, text)
		}
	}
	if n := s.recent.Len(); n != len(s.files) || n > maxSources {
		t.Errorf("%d and %d files are kept", n, len(s.files))
	}
}
