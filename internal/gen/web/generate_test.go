package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// unpack returns the text of a compressed file, and the comment of its header.
func unpack(t *testing.T, name string) (text []byte, comment string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return text, r.Comment
}

// TestTypes: the TypeScript has no errors of types, which the bundler does not look for.
func TestTypes(t *testing.T) {
	modules := os.Getenv("CYCLESTACK_NODE_MODULES")
	if modules == "" {
		t.Skip("CYCLESTACK_NODE_MODULES names no directory with typescript: npm install typescript")
	}
	out, err := exec.Command(filepath.Join(modules, ".bin", "tsc"), "-p", "../../web/src").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDrift: the script and the style that are embedded are those of the source. With -long
// they are bundled again.
func TestDrift(t *testing.T) {
	const web = "../../web/"
	sum, err := digest(web + "src")
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	if testlong.Enabled() {
		if out, err := exec.Command("go", "run", "-tags", "esbuild", ".", web+"src", fresh).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"page.js.gz", "page.css.gz"} {
		got, comment := unpack(t, web+"page/"+name)
		stale := comment != sum
		if testlong.Enabled() {
			want, _ := unpack(t, filepath.Join(fresh, name))
			stale = stale || !bytes.Equal(got, want)
		}
		if stale {
			t.Errorf("internal/web/page/%s is not what its source makes: go generate ./internal/web", name)
		}
	}
}
