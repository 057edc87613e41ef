package docs_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPacked: the compressed files of the catalogue are those of its text, no more and no
// fewer.
func TestPacked(t *testing.T) {
	t.Chdir(root)
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	packed := os.DirFS("model/packed")
	files, err := fs.Glob(packed, "*/*.zst")
	if err != nil || len(files) == 0 {
		t.Fatalf("model/packed has no files: %v", err)
	}
	for _, dir := range folders(t, "model/packed") {
		entries, err := os.ReadDir(path.Join("model/data", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			i := slices.Index(files, name+".zst")
			if i < 0 {
				t.Errorf("model/data/%s is not in the program: go generate ./model", name)
				continue
			}
			files = slices.Delete(files, i, i+1)
			data, err := fs.ReadFile(packed, name+".zst")
			if err != nil {
				t.Fatal(err)
			}
			if text, err := d.DecodeAll(data, nil); err != nil || string(text) != read(t, path.Join("model/data", name)) {
				t.Errorf("the program has an old model/data/%s: go generate ./model", name)
			}
		}
	}
	for _, name := range files {
		t.Errorf("model/packed/%s has no text in model/data: go generate ./model", name)
	}
}

// folders returns the names of the folders in a directory.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
