package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/web"
)

// TestMain runs the tests in the root of the repository, as pages name recordings by their paths.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(testbrowser.Main(m))
}

// pageOf makes a page of documents.
func pageOf(t *testing.T, documents ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	p := web.New(&b, "test")
	for _, d := range documents {
		if err := p.Add(func(w io.Writer) error {
			if text, ok := d.(json.RawMessage); ok {
				_, err := w.Write(text)
				return err
			}
			return json.NewEncoder(w).Encode(d)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPlain: viewers without scripts have the account as text, line by line.
func TestPlain(t *testing.T) {
	html := string(htmlOf(t, "report", "examples/power7-cpi.txt"))
	_, plain, _ := strings.Cut(html, `<pre id="plain">`)
	plain, _, _ = strings.Cut(plain, "</pre>")
	want := string(cyclestack(t, "report", "--width", "100", "examples/power7-cpi.txt"))
	if lines := strings.Count(plain, "\n"); lines < 10 || !strings.Contains(plain, strings.Split(want, "\n")[2]) {
		t.Errorf("%d lines: %s", lines, plain)
	}
}

// TestSize: a page is small before its data.
func TestSize(t *testing.T) {
	const most = 400_000
	if n := len(pageOf(t)); n > most || n < 10_000 {
		t.Errorf("a page without data has %d bytes, at most %d", n, most)
	}
}
