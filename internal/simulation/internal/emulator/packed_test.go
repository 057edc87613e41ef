package emulator

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "compress the plugin's source")

// TestPacked checks that the compressed source is that of the plugin.
func TestPacked(t *testing.T) {
	files, err := os.ReadDir("plugin")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("plugin", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			var b bytes.Buffer
			z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := z.Write(text); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join("packed", f.Name()+".gz"), b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := sourceOf(f.Name()); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s was changed: go generate ./internal/simulation/internal/emulator (%v)", f.Name(), err)
		}
	}
}
