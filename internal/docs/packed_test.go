package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPacked: the catalogue's files in the program are what their text makes, no more and
// no fewer.
func TestPacked(t *testing.T) {
	t.Chdir(root)
	fresh := t.TempDir()
	if out, err := exec.Command("go", "run", "./internal/gen/pack", "model/data", fresh).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := unpacked(t, "model/packed"), unpacked(t, fresh)
	if len(want) < 100 {
		t.Fatalf("%d files", len(want))
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("model/packed/%s is old or missing: go generate ./model", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("model/packed/%s has no text in model/data: go generate ./model", name)
		}
	}
}

// unpacked returns the text of the files below a directory, by name.
func unpacked(t *testing.T, dir string) map[string]string {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	files := map[string]string{}
	err = filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err == nil && strings.HasSuffix(name, ".zst") {
			data, err = d.DecodeAll(data, nil)
		}
		files[strings.TrimPrefix(name, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
