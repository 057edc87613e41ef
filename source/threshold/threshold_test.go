package threshold

import (
	"fmt"
	"strings"
	"testing"
)

const seed = `# cpu: sandybridge
Case 1
Lat Threshold | Sample Count
 3 | 1426934
 6 | 1032657 << Drop 1
11 | <10 << Drop 3
Case 2
Lat Threshold | Sample Count
3 | 1532028
4 | 1536547
`

func read(t *testing.T, text string) (tables []string) {
	t.Helper()
	r := NewReader(strings.NewReader(text), "x")
	for r.Next() {
		tb := r.Table()
		s := fmt.Sprintf("%s %s line %d:", tb.CPU, tb.Label, tb.Line)
		for i, c := range tb.Columns {
			s += fmt.Sprintf(" %s=%v", strings.TrimPrefix(c.Event, "MEM_TRANS_RETIRED.LOAD_LATENCY_"), tb.Cell(0, i).Value)
		}
		tables = append(tables, s+fmt.Sprint(len(tb.Notes)))
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return tables
}

func TestRead(t *testing.T) {
	want := []string{
		"sandybridge Case 1 line 4: GT_3=1.426934e+06 GT_6=1.032657e+06 GT_11=91",
		"sandybridge Case 2 line 9: GT_3=1.532028e+06 GT_4=1.536547e+060",
	}
	if got := read(t, seed); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	comma := "threshold,count\r\n4,100\r\n8,50\r\n"
	if got := read(t, comma); len(got) != 1 || !strings.Contains(got[0], "GT_4=100 GT_8=50") {
		t.Errorf("got %q", got)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		seed:                           true,
		"threshold,count\n4,100\n8,50": true,
		"# threshold, count\n4,100\n":  false,
		"threshold count\n4 x\n5 6\n":  false,
		"3 | 4\n5 | 6\n":               false,
		"":                             false,
	} {
		if got := Detect([]byte(text)); got != want {
			t.Errorf("Detect(%q) = %v", text, got)
		}
	}
}

func TestTooMany(t *testing.T) {
	text := "threshold | count\n" + strings.Repeat("3 | 4\n", rowsMost+1)
	r := NewReader(strings.NewReader(text), "big.txt")
	if r.Next() {
		t.Fatal("a table of too many rows was read")
	}
	if want := "big.txt:1002: more than 1000 thresholds"; r.Err() == nil || r.Err().Error() != want {
		t.Errorf("got %v, want %s", r.Err(), want)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(seed)
	f.Add("threshold,count\n4,100\n8,50")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text), "x")
		for r.Next() {
			if len(r.Table().Columns) == 0 {
				t.Fatal("a table without columns")
			}
		}
	})
}
