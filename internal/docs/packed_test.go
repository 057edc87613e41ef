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
	const cores = "internal/simulation/internal/pipeline"
	for _, c := range []struct {
		dir, from string
		least     int
	}{{"model", "data", 100}, {cores, "cores", 8}} {
		fresh := t.TempDir()
		if out, err := exec.Command("go", "run", "./internal/gen/pack", c.dir+"/"+c.from, fresh).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, want := unpacked(t, c.dir+"/packed"), unpacked(t, fresh)
		if len(want) < c.least {
			t.Fatalf("%s: %d files", c.dir, len(want))
		}
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s/packed/%s is old or missing: go generate ./%s", c.dir, name, c.dir)
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("%s/packed/%s has no text in %s: go generate ./%s", c.dir, name, c.from, c.dir)
			}
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
