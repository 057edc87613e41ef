package counts_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/counts"
)

func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"main": "main", "größe": "größe", "": "",
		"a\x1b[31mred": "a\ufffd[31mred", "two\nlines": "two\ufffdlines", "c1\u009b2J": "c1\ufffd2J", "\xff\xfe": "\ufffd", "tab\t": "tab\ufffd",
	} {
		if got := counts.Name(text); got != want {
			t.Errorf("Name(%q) = %q, want %q", text, got, want)
		}
	}
}
