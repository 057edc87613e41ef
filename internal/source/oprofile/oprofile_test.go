package oprofile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/oprofile"
	_ "github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/internal/testshared"
)

const ocount = `Events were actively counted for 11.7 seconds.
Event counts (scaled) for the whole system:
    Event                       Count                    % time counted
    PM_CMPLU_STALL              4,055,345,362            71.42
    PM_RUN_CYC                  5,854,287,084            42.87
    PM_RUN_INST_CMPL            2,960,605,927            57.13
`

// The table of the article on POWER7, with the heading that opreport prints above it.
const opreport = `CPU: ppc64 POWER7, speed 3550 MHz (estimated)
Counted PM_DATA_FROM_L2MISS_GRP16 events (Data loaded missed L2) with a unit mask of 0x00 (No unit mask) count 1000
  samples|      %|
------------------
     1323 97.6384 no-vmlinux
       32  2.3616 cache_miss
`

// What opreport prints of programs with libraries, as its manual shows it: without a heading, and
// the parts of a program indented.
const parted = `CPU: PIII, speed 863.195 MHz (estimated)
Counted CPU_CLK_UNHALTED events (clocks processor is not halted) with a unit mask of 0x00 (No unit mask) count 50000
   506 54.01 cc1plus
\t   450 88.93 cc1plus
\t    56 11.07 libc-2.3.2.so
   431 45.99 gcc
\t     9  2.09 libc-2.3.2.so
\t   422 97.91 gcc
`

// What opreport --xml prints of two events and a library, by the schema of its authors. Callers
// have samples that were counted before.
const document = `<?xml version="1.0" ?>
<profile schemaversion="3.1" cputype="ppc64" processor="power8" mhz="3425.00" title="opreport --xml ">
<options/>
<setup>
<eventsetup id="0" eventname="PM_RUN_CYC" setupcount="1000"/><eventsetup id="1" eventname="PM_BR_MPRED_GRP7" setupcount="10"/>
</setup>
<classes><class name="c0" event="0"/><class name="c1" event="1"/></classes>
<binary name="/bin/app"><count class="c0">
9</count><count class="c1">1</count>
<symbol idref="0"><count class="c0">5</count><count class="c1">1</count>
<callers><module name="/bin/app"><count class="c0">5</count><symbol idref="1"><count class="c0">5</count></symbol></module></callers></symbol>
<symbol idref="1"><count class="c0">4</count></symbol>
<module name="/lib/c.so"><count class="c0">3</count><symbol idref="2"><count class="c0">3</count></symbol></module>
</binary>
<binary name="/vmlinux"><count class="c0">2</count></binary>
<symboltable><symboldata id="0" name="main"/><symboldata id="1" name="operator&lt;"/><symboldata id="2" name="strlen"/></symboltable>
<detailtable><symboldetails id="0"><detaildata id="0" vmaoffset="10"><count class="c0">5</count></detaildata></symboldetails></detailtable>
</profile>
`

// read returns the events with their values and coverage.
func read(text string) (list string, err error) {
	r := oprofile.NewReader(strings.NewReader(text), "file")
	if !r.Next() {
		return "", r.Err()
	}
	t := r.Table()
	list = fmt.Sprintf("%s %s %q %v s:", r.Kind(), t.CPU, t.Label, t.Duration)
	for i, c := range t.Columns {
		list += fmt.Sprintf(" %s=%.0f", c.Event, t.Cell(0, i).Value)
		if v := t.Cell(0, i).Coverage(); v == v {
			list += fmt.Sprintf("(%.4f)", v)
		}
	}
	for _, n := range t.Notes {
		list += "; " + n.Text
	}
	if r.Next() {
		list += "; and more"
	}
	return list, r.Err()
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{ocount, `ocount  "the whole system" 11.7 s: PM_CMPLU_STALL=4055345362(0.7142) PM_RUN_CYC=5854287084(0.4287) PM_RUN_INST_CMPL=2960605927(0.5713)`},
		{document, `opreport power8 "" NaN s: PM_RUN_CYC=14000 PM_BR_MPRED=10`},
		{strings.Replace(document, "9</count>", "12</count>", 1), `opreport power8 "" NaN s: PM_RUN_CYC=14000 PM_BR_MPRED=10`},
		{strings.Replace(document, `2</count></binary>`, `2</count><module name="m"><count class="c0">2</count></module></binary>`, 1), `opreport power8 "" NaN s: PM_RUN_CYC=14000 PM_BR_MPRED=10`},
		{opreport, `opreport power7 "" NaN s: PM_DATA_FROM_L2MISS=1355000`},
		{strings.ReplaceAll(parted, `\t`, "\t"), `opreport  "" NaN s: CPU_CLK_UNHALTED=46850000`},
		{strings.ReplaceAll(parted, `\t`, strings.Repeat(" ", 8)), `opreport  "" NaN s: CPU_CLK_UNHALTED=46850000`},
		{opreport + "\t  samples|      %|\n\t------------------\n\t      30 93.75 cache_miss\n\t       2  6.25 libc.so\n", `opreport power7 "" NaN s: PM_DATA_FROM_L2MISS=1355000`},
		{"Counted CPU_CLK_UNHALTED events (Cycles outside of halt state) with a unit \nmask of 0x00 (No unit mask) count 50000\nsamples  %        symbol name\n" +
			"2015420  11.1309  ep_poll_callback\n1867431  10.3136  pipe_writev\n",
			`opreport  "" NaN s: CPU_CLK_UNHALTED=194142550000; the rows have 21.4 % of the samples: counts are of these alone`},
		{"Counted A events (a) with a unit mask of 0x00 (none) count 10\nCounted B events (b) with a unit mask of 0x00 (none) count 1000\n" +
			"samples|      %|  samples|      %|\n 5 50.0000 7 70.0000 app\n 5 50.0000 3 30.0000 lib\n",
			`opreport  "" NaN s: A=100 B=10000`},
	} {
		if !oprofile.Detect([]byte(tt.text)) {
			t.Errorf("not recognised: %.60q", tt.text)
		}
		if got, err := read(tt.text); got != tt.want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
		}
	}
	if oprofile.Detect([]byte("samples are counted, 100 %\n")) {
		t.Error("a text is taken for a table")
	}
}

// TestPlaces reads the rows by image and by function. The first scope is the whole.
func TestPlaces(t *testing.T) {
	text := "Counted A events (a) with a unit mask of 0x00 (none) count 10\nsamples  %  image name  symbol name\n" +
		"5 50.0 app main\n3 30.0 lib.so (deleted) f(int, char)\n2 20.0 app loop\n"
	for _, tt := range []struct {
		text string
		by   counts.Kind
		want string
	}{
		{text, counts.Run, "100"},
		{text, counts.Module, "100 app:70 lib.so:30"},
		{text, counts.Function, "100 main  (app):50 f(int, char)  (lib.so):30 loop  (app):20"},
		{strings.ReplaceAll(parted, `\t`, "\t"), counts.Module, "4.685e+07 cc1plus:2.25e+07 libc-2.3.2.so:3.25e+06 gcc:2.11e+07"},
		{document, counts.Run, "14000"},
		{document, counts.Module, "14000 /bin/app:9000 /lib/c.so:3000 /vmlinux:2000"},
		{document, counts.Function, "14000 main  (/bin/app):5000 operator<  (/bin/app):4000 strlen  (/lib/c.so):3000 [unknown]  (/vmlinux):2000"},
	} {
		by, want := tt.by, tt.want
		r := oprofile.NewPlaceReader(strings.NewReader(tt.text), "file", by)
		if !r.Next() {
			t.Fatal(r.Err())
		}
		var got []string
		for i, s := range r.Table().Scopes {
			v := fmt.Sprint(r.Table().Cell(i, 0).Value)
			if i > 0 {
				v = s.Label + ":" + v
			}
			got = append(got, v)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("by %v: %s, want %s", by, s, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		ocount[:60]: "file:2: no counts and no samples",
		"        1  0.0766 cache_hit\n       32  2.3616 cache_miss\n":          "file:2: rows of opreport without their head do not say what they count: give all that opreport prints",
		strings.Replace(ocount, "4,055,345,362", "99999999999999999999", 1):    `file:4: "99999999999999999999" is not a count`,
		strings.Replace(ocount, "71.42", "171.42", 1):                          `file:4: "171.42" is not a percentage of the time`,
		strings.Replace(opreport, "32  2.3616", "32  x", 1):                    `file:6: "32 x" is not a number of samples with a percentage`,
		strings.Replace(opreport, "count 1000", "count 0", 1):                  `file:2: "0" is not a number of events for a sample`,
		strings.Replace(opreport, "97.6384 no", strings.Repeat("9", 70000), 1): "file:4: bufio.Scanner: token too long",
		document[:400]: "file:9: unexpected EOF",
		strings.Replace(document, `setupcount="10"`, `setupcount="x"`, 1):            `file:5: "x" is not a number of events for a sample`,
		strings.Replace(document, `<count class="c1">1`, `<count class="c7">1`, 1):   `file:9: samples of the unknown class "c7"`,
		strings.Replace(document, `<count class="c1">1`, `<count class="c1">-1`, 1):  `file:9: "-1" is not a number of samples`,
		strings.Replace(document, `event="1"/>`, `event="2"/>`, 1):                   `file:7: "2" is not one of 2 events`,
		strings.Replace(document, "<options/>", "<setup><timersetup/></setup>", 1):   "file:3: the samples are of a timer, and of no event",
		strings.Replace(document, "<options/>", strings.Repeat("<a>", 40), 1):        "file:3: elements are nested more than 32 deep",
		strings.Replace(document, "</symbol>", "</module>", 1):                       "file:11: </module> closes another element",
		strings.Replace(document, "<options/>", "<a "+strings.Repeat("9", 70000), 1): "file:3: a tag is too long",
	} {
		if _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestPublished reads the tables that others have published.
func TestPublished(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "corpus", "oprofile"), "*.*"))
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(string(text))
		if !oprofile.Detect(text) || err != nil || !strings.Contains(got, "=") {
			t.Errorf("%s: %s, %v", file, got, err)
		}
		// The samples of four images: 3167, 4, 18,632 and 39, of 100,000 cycles each.
		if strings.HasSuffix(file, ".xml") && got != `opreport power8 "" NaN s: PM_RUN_CYC=2184200000` {
			t.Errorf("%s: %s", file, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ocount)
	f.Add(opreport)
	f.Add(document)
	f.Add(strings.ReplaceAll(parted, `\t`, "\t"))
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := read(text); err == nil && got == "" {
			t.Error("neither a table nor an error")
		}
	})
}
