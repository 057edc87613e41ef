package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestFlusher checks that no way of writing gathers more than a flusher may
// hold: io.WriteString takes another way than Write where there is one.
func TestFlusher(t *testing.T) {
	line := strings.Repeat("x", 100) + "\n"
	for name, write := range map[string]func(io.Writer) error{
		"Write":       func(w io.Writer) error { _, err := w.Write([]byte(line)); return err },
		"WriteString": func(w io.Writer) error { _, err := io.WriteString(w, line); return err },
		"ReadFrom":    func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader(line)); return err },
	} {
		var out bytes.Buffer
		f := flusher{to: &out}
		for range 10 * flushAt / len(line) {
			if err := write(&f); err != nil {
				t.Fatal(err)
			}
			if f.buf.Len() > flushAt {
				t.Fatalf("%s: %d bytes gathered", name, f.buf.Len())
			}
		}
	}
}
