package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestEvents(t *testing.T) {
	for _, want := range []Event{
		{Output: []byte("two\nlines\r\n\x00\x1eguest {}\n")},
		{End: &End{Status: 139}},
		{End: &End{Status: 127, Error: "no such file"}},
	} {
		line, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(line, []byte("\n")) != 2 {
			t.Errorf("%q is not a line", line)
		}
		// A terminal turns a line feed into two characters.
		got, ok := Decode(append([]byte("[    0.5] noise "), bytes.ReplaceAll(line, []byte("\n"), []byte("\r\n"))...))
		if !ok {
			t.Errorf("%q has no event", line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, line := range []string{"", "noise", "\x1eguest ", "\x1eguest {\"Output\":\"aGk[ 1.0] noise"} {
		if got, ok := Decode([]byte(line)); ok {
			t.Errorf("Decode(%q) = %v, want none", line, got)
		}
	}
}
