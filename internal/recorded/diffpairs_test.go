package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/perfwrite"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// TestInTurn: recordings are pairs if each new one was made next to an old one, and none
// while another was.
func TestInTurn(t *testing.T) {
	dir := t.TempDir()
	record := func(name string, begin, end uint64) string {
		file := filepath.Join(dir, name)
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, err := perfwrite.NewWriter(f, perfwrite.WriterOptions{Events: []*perfdata.Event{{Name: "cycles", IDs: []uint64{1}, Attr: perfdata.Attr{SampleType: perffile.SampleIdentifier | perffile.SampleIP | perffile.SampleTID | perffile.SampleTime}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(&perfdata.Features{SampleTime: [2]uint64{begin, end}}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const enough = "onnoonnoonnoonno" // eight old ones, o, and eight new ones, n
	for _, test := range []struct {
		name, order string
		length      uint64 // of a recording; one begins every 10 ns
		want        bool
	}{
		{"by turns", enough, 9, true},
		{"one ends as the next one begins", enough, 10, true},
		{"at the same time", enough, 11, false},
		{"the old ones first", "oooooooonnnnnnnn", 9, false},
		{"too few", enough[:14], 9, false},
		{"more of one side", enough + "o", 9, false},
	} {
		var sides [2]Side
		for i, who := range test.order {
			begin := uint64(10 + 10*i)
			s := &sides[map[rune]int{'o': 0, 'n': 1}[who]]
			s.Files = append(s.Files, record(fmt.Sprintf("%c%02d", who, i), begin, begin+test.length))
		}
		inTime := sides[0].Files
		sides[0].Files = slices.Clone(inTime)
		slices.Reverse(sides[0].Files) // in whatever order they are given
		if got := New(nil).inTurn(&sides); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		} else if got && !slices.Equal(sides[0].Files, inTime) {
			t.Errorf("%s: the old ones are in the order %v", test.name, sides[0].Files)
		}
	}
}
