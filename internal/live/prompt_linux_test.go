package live

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrompt writes to a file behind what is there, to a pipe with room and without, and to
// what is no file.
func TestPrompt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, Prompt(f), f, Prompt(f)} {
		if n, err := io.WriteString(w, "line\n"); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if got, err := os.ReadFile(name); string(got) != strings.Repeat("line\n", 4) {
		t.Errorf("%q, %v", got, err)
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<14) // more than a pipe holds
	done := make(chan []byte)
	go func() {
		got, _ := io.ReadAll(r)
		done <- got
	}()
	p := Prompt(w)
	for _, text := range [][]byte{[]byte("first\n"), nil, large} {
		if n, err := p.Write(text); n != len(text) || err != nil {
			t.Errorf("%d of %d, %v", n, len(text), err)
		}
	}
	w.Close()
	if got := <-done; !bytes.Equal(got, append([]byte("first\n"), large...)) {
		t.Errorf("%d bytes came out of a pipe, want %d", len(got), 6+len(large))
	}
	r.Close()
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("a closed file was written to")
	}

	var b bytes.Buffer
	if _, err := Prompt(&b).Write([]byte("x")); err != nil || b.String() != "x" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
