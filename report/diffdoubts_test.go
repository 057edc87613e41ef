package report

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
)

// TestDiffDoubts has what precedes the figures of a comparison by place.
func TestDiffDoubts(t *testing.T) {
	h := DiffHeader{What: "cycles", Per: "run", By: counts.Function, Commands: [2]string{"./a", "gzip x"},
		Notes: []counts.Note{counts.Notef("a plain note"), {Kind: counts.NoteOtherBuild, Text: "a is another build"}}}
	var b strings.Builder
	d := &account.PlaceDifference{Total: account.Change{Old: 1, New: 20, Delta: 19}}
	if err := Write(&b, "tree", PlaceComparison{Header: h, PlaceDifference: d}, Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(b.String(), "\n\n")
	for _, want := range []string{"the command lines differ: ./a → gzip x", "a is another build"} {
		if !strings.Contains(head, want) || strings.Contains(rest, want) {
			t.Errorf("%q is not before the figures, or again after them:\n%s", want, b.String())
		}
	}
	if !strings.Contains(rest, "a plain note") {
		t.Errorf("a plain note is lost:\n%s", b.String())
	}
}

func TestSigned(t *testing.T) {
	for share, want := range map[float64]string{0.5: "+50.00 %", -1: "-100.00 %", 10: "+1000.00 %", 18673.7: "+18674 ×"} {
		if got := signed(share); got != want {
			t.Errorf("signed(%v) = %s, want %s", share, got, want)
		}
	}
}
