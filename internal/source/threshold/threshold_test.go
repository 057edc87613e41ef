package threshold

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
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
		seed:                              true,
		"threshold,count\n4,100\n8,50":    true,
		"# threshold, count\n4,100\n":     false,
		"threshold count\n4 x\n5 6\n":     false,
		"3 | 4\n5 | 6\n":                  false,
		"threshold|count\n3 | 9\n-5 | 8":  true, // the reader says what is wrong
		"threshold|count\nnan|9\n1e400|8": true,
		"threshold|count\n---|---\n3 | 9": false,
		"threshold|count\n3 | 9\n":        false, // one row is no distribution
		"":                                false,
	} {
		if got := Detect([]byte(text)); got != want {
			t.Errorf("Detect(%q) = %v", text, got)
		}
	}
}

// TestUnreadable checks that an unreadable row is an error with its line, and never the end of
// a table.
func TestUnreadable(t *testing.T) {
	const threshold = " is not a threshold: it must be an integer number of cycles"
	const count = " is not a count of loads: it must be an integer, or <10 for one below 10"
	for row, want := range map[string]string{
		"-5 | 100":                       `"-5"` + threshold,
		"nan | 100":                      `"nan"` + threshold,
		"1e400 | 100":                    `"1e400"` + threshold,
		"4.5 | 100":                      `"4.5"` + threshold,
		"five | 100 << Drop 1":           `"five"` + threshold,
		"five,100":                       `"five"` + threshold,
		"4294967296 100":                 `"4294967296"` + threshold,
		strings.Repeat("9", 90) + " | 1": `"` + strings.Repeat("9", 80) + `…"` + threshold,
		"5 | -5":                         `"-5"` + count,
		"5 NaN":                          `"NaN"` + count,
		"5 | 1e400":                      `"1e400"` + count,
		"5 | 99999999999999999999999":    `"99999999999999999999999"` + count,
		"5 | <0":                         `"<0"` + count,
		"5 | 1,426,934":                  `"1,426,934"` + count,
		"5 | many":                       `"many"` + count,
		"5,\r":                           `""` + count,
		"text\n5 | 80":                   "a row outside a table: the text in line 5 ended it",
		"# cpu: haswell\n5 | 80":         "a row outside a table: the text in line 5 ended it",
	} {
		text := "Case 1\nThreshold | Count\n3 | 100\n4 | 90\n" + row + "\n6 | 70\n"
		line := 5 + strings.Count(row, "\n")
		r := NewReader(strings.NewReader(text), "l.txt")
		for r.Next() {
			if line == 5 {
				t.Errorf("%q: a table was read", row)
			}
		}
		if want := fmt.Sprintf("l.txt:%d: %s", line, want); r.Err() == nil || r.Err().Error() != want {
			t.Errorf("%q: got %v, want %s", row, r.Err(), want)
		}
	}
}

// TestText checks what is no row: titles, and remarks within a table.
func TestText(t *testing.T) {
	text := "# threshold, count\nthreshold,count\n# 4 100\n4,100\n\n# a remark\n8,50, 9\n" +
		"3 runs of the loop, unrolled\nthreshold,count\n3,10\n4,5\nCase3, 2 runs\n# cpu: haswell\nthreshold,count\n4,7\n"
	want := []string{
		"  line 4: GT_4=100 GT_8=500",
		" 3 runs of the loop, unrolled line 10: GT_3=10 GT_4=50",
		"haswell Case3, 2 runs line 15: GT_4=70",
	}
	if got := read(t, text); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
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
	f.Add("threshold | count\n4 | 1,000\n-5 | nan\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text), "x")
		for r.Next() {
			if len(r.Table().Columns) == 0 {
				t.Fatal("a table without columns")
			}
		}
	})
}
