package published

import (
	"slices"
	"testing"
)

// TestSplit splits lines with quotes, also with one that nothing ends.
func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"a, b ,":          {"a", "b", ""},
		`"a,b",c`:         {"a,b", "c"},
		`a,"b ""c"", d",`: {"a", `b "c", d`, ""},
		`a,"b,c`:          {"a", "b,c"},
		"":                {""},
	} {
		if got := split(line, ","); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
