package perfscript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/perfscript"
	_ "github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
)

// Names with blanks and parentheses, inlined calls, removed files, lines of sources and
// records that are no samples.
const text = `# ========
# cpuid : GenuineIntel,6,94,3
# cmdline : /usr/bin/perf record -e cycles ./a
# event : name = instructions, , id = { 1 }, size = 112, { sample_period, sample_freq } = 1000, sample_type = IP
# event : name = page-faults, , id = { 2 }, size = 112, { sample_period, sample_freq } = 4000, freq = 1, sample_type = IP
#
my prog 7 12.000001: PERF_RECORD_COMM: my prog:7/8
my prog     7/8     [001]    12.000001:     300 cycles:u:
	             6f1 operator()(int, char) const+0x1f (/home/a dir/a)
	             789 main (/home/a dir/a)
  a.c:12

b 9/9 [000] 12.500001:     100 cycles:u:        401000 _ZN3foo3barEi (inlined)
b 9/9 [000] 12.750001:     100 cycles:u:
	  401000 in (inlined)
	  401000 out+0x3 (/lib/x.so (deleted))

b 9/9 [000] 13.000001: instructions:
	ffffffffaee8017b [unknown] ([kernel.kallsyms])

b 9/9 [000] 13.000001: page-faults:
`

// table reads a text split by function and what else is named.
func table(t *testing.T, text string, by counts.Kind, split counts.By) *counts.Table {
	t.Helper()
	r := perfscript.NewPlaceReader(strings.NewReader(text), "x.txt", by, split)
	if !r.Next() {
		t.Fatal(r.Err())
	}
	return r.Table()
}

func TestText(t *testing.T) {
	if !perfscript.Detect([]byte(text)) {
		t.Error("it is not recognised")
	}
	got := table(t, text, counts.Function, counts.By(0).With(counts.Process).With(counts.CPU))
	list := fmt.Sprintf("%s %q %.3f s\n", got.CPU, got.Label, got.Duration)
	for row, s := range got.Scopes {
		list += s.Label
		for i := range got.Columns {
			if c := got.Cell(row, i); c.Samples > 0 {
				list += fmt.Sprintf(" %s=%.0f/%d", got.Columns[i].Event, c.Value, c.Samples)
			}
		}
		list += "\n"
	}
	const want = `GenuineIntel-6-5E-3 "/usr/bin/perf record -e cycles ./a" 1.000 s
 cycles:u=500/3 instructions=1000/1 sampled page-faults=1/1
my prog-7 CPU1 operator()(int, char) const  (a) cycles:u=300/1
b-9 CPU0 foo::bar  ([unknown]) cycles:u=100/1
b-9 CPU0 in  (x.so) cycles:u=100/1
b-9 CPU0 [unknown]  ([kernel.kallsyms]) instructions=1000/1
b-9 CPU0 [unknown]  ([unknown]) sampled page-faults=1/1
`
	if list != want {
		t.Errorf("got\n%s, want\n%s", list, want)
	}
	if len(got.Notes) != 1 {
		t.Errorf("notes %q, want that of page-faults", got.Notes)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":        "x.txt:1: no samples",
		"# top\n": "x.txt:1: no samples",
		"a 1 1.0: 5 cycles:\n\na 1 1.1: cycles:\n":                      "x.txt:3: a sample of cycles without its period, which others have",
		"a 1 1.0: " + strings.Repeat("9", 21) + " cycles:\n":            "x.txt:1: a number of this sample is too large: \"a 1 1.0: 999",
		"a 99999999999/99999999999 1.0: 5 cycles:\n\t1 main (/bin/a)\n": "x.txt:1: a number of this sample is too large: \"a 99999999999/",
		"a 1 1.0: 5 cycles:\n" + strings.Repeat("x", 1<<20+1):           "x.txt:2: a line of more than 1048576 bytes",
	} {
		r := perfscript.NewPlaceReader(strings.NewReader(text), "x.txt", counts.Function, counts.By(0).With(counts.Process))
		if r.Next() || r.Err() == nil || !strings.HasPrefix(r.Err().Error(), want) {
			t.Errorf("%.40q: error %v, want %q", text, r.Err(), want)
		}
	}
}

// What other tools print, and text for people, is none of it.
func TestDetect(t *testing.T) {
	for _, text := range []string{"", "java;read;check 1\n", "a note 3: see below\n", "1,000 cycles\n", "Counted CYCLES events: 3\n"} {
		if perfscript.Detect([]byte(text)) {
			t.Errorf("%q is taken as text of samples", text)
		}
	}
}

// Published texts have as many samples as lines that are not indented. Those of all places are
// those of the whole.
func TestPublished(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus"), "perfscript", "*"))
	read := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !perfscript.Detect(b[:min(len(b), 64<<10)]) {
			continue // folded stacks
		}
		read++
		want := int64(0)
		for line := range bytes.Lines(b) {
			if line[0] != '#' && line[0] != '\n' && line[0] != '\r' && line[0] != ' ' && line[0] != '\t' {
				want++
			}
		}
		got := table(t, string(b), counts.Function, counts.By(0).With(counts.Comm))
		all, parts := int64(0), int64(0)
		for row := range got.Scopes {
			for i := range got.Columns {
				if n := got.Cell(row, i).Samples; row == 0 {
					all += n
				} else {
					parts += n
				}
			}
		}
		if all != want || parts != want {
			t.Errorf("%s: %d samples, %d by place, want %d", filepath.Base(file), all, parts, want)
		}
	}
	if read < 18 {
		t.Errorf("%d of the files were recognised, want 18", read)
	}
}

func FuzzText(f *testing.F) {
	f.Add(text)
	f.Add("b 9/9 [000] 12.5: 100 cycles:u: 401000 foo (/bin/b)\n")
	f.Fuzz(func(t *testing.T, text string) {
		perfscript.Detect([]byte(text))
		r := perfscript.NewPlaceReader(strings.NewReader(text), "x.txt", counts.Function, counts.By(0).With(counts.Comm).With(counts.CPU))
		if r.Next() == (r.Err() != nil) {
			t.Fatal("neither a table nor an error")
		}
	})
}

// BenchmarkText reads samples with callchains of 20 calls.
func BenchmarkText(b *testing.B) {
	one := "my prog     7/8     [001]    12.000001:     300 cycles:u:\n" + strings.Repeat("\t             6f1 operator()(int, char) const+0x1f (/home/a/a)\n", 20) + "\n"
	text := strings.Repeat(one, 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := perfscript.NewPlaceReader(strings.NewReader(text), "x.txt", counts.Function, counts.By(0).With(counts.Comm))
		if !r.Next() {
			b.Fatal(r.Err())
		}
	}
}
