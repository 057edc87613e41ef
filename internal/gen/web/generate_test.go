package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// unpack returns the text of a compressed file.
func unpack(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
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

// TestDrift: the script and the style that are embedded are those of the source.
func TestDrift(t *testing.T) {
	const web = "../../web/"
	fresh := t.TempDir()
	if err := generate(web+"src", fresh); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"page.js.gz", "page.css.gz"} {
		if !bytes.Equal(unpack(t, filepath.Join(fresh, name)), unpack(t, web+"page/"+name)) {
			t.Errorf("internal/web/page/%s is not what its source makes: go generate ./internal/web", name)
		}
	}
}
