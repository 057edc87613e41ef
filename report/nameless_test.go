package report

import "testing"

// TestNameless checks that places without names differ without a column of modules.
func TestNameless(t *testing.T) {
	for _, tt := range [][3]string{{"main", "app", "main"}, {"[unknown]", "libc.so.6", "[libc.so.6]"}, {"[unknown]", "[kernel]", "[kernel]"},
		{"0x9a00", "cc1", "cc1 0x9a00"}, {"[unknown]", "", "[unknown]"}} {
		if got := nameless(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s of %s: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}
