package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPacked: the files that the program has compressed are what their text makes, no more and
// no fewer.
func TestPacked(t *testing.T) {
	t.Chdir(root)
	for _, c := range []struct {
		of, text string
		least    int
	}{{"model", "data", 100}, {"internal/simulation/internal/pipeline", "cores", 15}} {
		fresh := t.TempDir()
		if out, err := exec.Command("go", "run", "./internal/gen/pack", c.of+"/"+c.text, fresh).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, want := unpacked(t, c.of+"/packed"), unpacked(t, fresh)
		if len(want) < c.least {
			t.Fatalf("%s: %d files", c.of, len(want))
		}
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s/packed/%s is old or missing: go generate ./%[1]s", c.of, name)
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("%s/packed/%s has no text in %[1]s/%s: go generate ./%[1]s", c.of, name, c.text)
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
