package published_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/peers"
	"github.com/cyclestack/cyclestack/internal/source/published"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testshared"
)

// read reads all tables of a file.
func read(text string, by counts.By) (list []*counts.Table, kind string, err error) {
	r := published.NewReader(strings.NewReader(text), "x.txt")
	r.Keep(by)
	for r.Next() {
		list = append(list, r.Table())
	}
	return list, r.Kind() + ", " + r.How(), r.Err()
}

// describe writes out what tables have.
func describe(list []*counts.Table) string {
	text := ""
	for _, t := range list {
		text += fmt.Sprintf("%q %s %v s", t.Label, t.CPU, t.Duration)
		for i, s := range t.Scopes {
			text += "\n" + s.Kind.String() + " " + s.Label
			for col, c := range t.Row(i) {
				if c.Ok() {
					text += fmt.Sprintf("; %s %s %.5g", strings.TrimPrefix(t.Columns[col].Event, peers.Published), t.Columns[col].Unit, c.Value)
					if cover := c.Coverage(); !math.IsNaN(cover) {
						text += fmt.Sprintf(" (%.4g)", cover)
					}
					if c.Variance > 0 {
						text += fmt.Sprintf(" ±%.3g", math.Sqrt(c.Variance))
					}
				}
			}
		}
		for _, n := range t.Notes {
			text += "\n" + n.Text
		}
		text += "\n"
	}
	return text
}

const old = `$ toplev -l2 -v ./app
S0-C0    FE             Frontend_Bound:          13.50 +-     0.20 % Slots below
S0-C0    BE             Backend_Bound:           50.00 +-     0.00 % Slots
	What a description says.
S0-C0-T1BE/Mem          Backend_Bound.Memory_Bound:   40.50 +-     0.00 % Slots_Estimated <==
S0-C0-T0                MUX:                     25.00 +-     0.00 %
its own output
`

const now = `# 5.1-full-perf on Some(R) CPU @ 2.00GHz [adl-glc/cpu_core]
1.000000000 C0     FE               Frontend_Bound      % Slots               30.0  < [25.0%] +-      0.5
1.000000000 C1     FE               ...Frontend_Bound   % Slots               10.0    [20.0%]
2.000000000 C0     FE               Frontend_Bound      % Slots               20.0    [20.0%]<==
SUMMARY     C0     FE               Frontend_Bound      % Slots               25.0    [22.0%]
SUMMARY     C1     Info.Inst_Mix    IpLoad              Inst_Metric            3.20
Run toplev --describe Frontend_Bound^ to get more information on bottleneck
`

const csv = `Per core:
Timestamp,CPUs,Area,Value,Unit,Description,Sample,Stddev,Multiplex,Bottleneck,Idle
1.0,S0-C1,Frontend_Bound,10.0,% Slots <,"a ""b"", c",,0.0,50.0,,
1.0,S1-C1,Frontend_Bound,20.0,% Slots,,,0.0,40.0,<==,
1.0,S1-C2,Frontend_Bound,90.0,% Slots,,,0.0,40.0,,Y
Global:
Timestamp,Area,Value,Unit,Description,Sample,Stddev,Multiplex,Bottleneck,Idle
1.0,Bad_Speculation,7.0,% Slots,,,0.0,45.0,,
2.5,S1-C1,Frontend_Bound,30.0,% Slots,,,0.0,40.0,,
2.5,Bad_Speculation,8.0,% Slots,,,0.0,45.0,,
2.5,Bad_Speculation
# 4.1 on Some(R) CPU @ 2.00GHz [skx]
`

const columns = `Timestamp,Area,Node,C0,C1,Description,Sample,Stddev,Multiplex
1.0,FE,Frontend_Bound,0.25,0.5,,,0.0,[25.0%]
1.0,Info.Thread,IPC,1.5,,,,0.0,[25.0%]
`

const values = `Timestamp;CPU;Group;Event;Value;Perf-event;Index;STDDEV;MULTI;Nodes
1.0;0;3;inst_retired.any;1000;cpu/event=0xc0/;0;0.0;25.0;IPC
1.0;1;3;inst_retired.any;2000;cpu/event=0xc0/;0;0.0;50.0;IPC
2.0;0;3;;500;cycles;1;10.0;75.0;IPC
`

const spect = `metrics,avg,p95,min,max
metric_CPU operating frequency (in GHz),3.5,4,3,4
metric_CPU utilization %,90,99,1,100
metric_memory bandwidth read (MB/sec),120.5,1,2,3
metric_TMA_Backend_Bound(%),60,1,2,3
metric_TMA_..Memory_Bound(%),40,1,2,3
metric_TMA_....L1_Bound(%),10,1,2,3
metric_TMA_..Core_Bound(%),20,1,2,3
metric_TMA_Info_CoreIPC,1.25,1,2,3
`

const frames = `TS,SKT,CPU,CID,CPI,TMA_Retiring(%)
1700000005,0,,,1.5,20
1700000005,1,,,2.5,40
1700000010,0,,,,30
`

func TestFormats(t *testing.T) {
	by := func(kinds ...counts.Kind) (b counts.By) {
		for _, k := range kinds {
			b = b.With(k)
		}
		return b
	}
	const perfspect = "\nPerfSpect averages ratios: an interval with little work weighs as much as one with much\n"
	for _, tt := range []struct {
		name, text string
		by         counts.By
		want       string
	}{
		{"old text", old, 0, `toplev, computed by toplev
"toplev -l2 -v ./app"  NaN s
run ; Frontend_Bound slots 0.135 (0.25) ±0.002; marked.Frontend_Bound  0; Backend_Bound slots 0.5 (0.25); marked.Backend_Bound  2; Backend_Bound.Memory_Bound slots 0.405 (0.25); marked.Backend_Bound.Memory_Bound  2; rows  1
not understood, and passed over: line 7 (its own output)
`},
		{"text, the summary", now, 0, `toplev, computed by toplev 5.1-full-perf
"" adl:core 2 s
run ; Frontend_Bound slots 0.25 (0.22); marked.Frontend_Bound  1; IpLoad Inst_Metric 3.2; rows  1
`},
		{"text by interval", now, by(counts.Interval), `toplev, computed by toplev 5.1-full-perf
"" adl:core 1 s
run ; Frontend_Bound slots 0.2 (0.2) ±0.0025; marked.Frontend_Bound  1; rows  2
means of up to 2 rows of toplev's file, each with the same weight: it has no counts to sum
"" adl:core 1 s
run ; Frontend_Bound slots 0.2 (0.2); marked.Frontend_Bound  2; rows  1
`},
		{"CSV", csv, 0, `toplev, computed by toplev 4.1
"" skx 2.5 s
run ; Frontend_Bound slots 0.2 (0.4); marked.Frontend_Bound  2; Bad_Speculation slots 0.075 (0.45); marked.Bad_Speculation  1; rows  3
means of up to 3 rows of toplev's file, each with the same weight: it has no counts to sum
not understood, and passed over: line 11 (2.5,Bad_Speculation)
`},
		{"CSV by core", csv, by(counts.Core), `toplev, computed by toplev 4.1
"" skx 2.5 s
core S0-C1; Frontend_Bound slots 0.1 (0.5); marked.Frontend_Bound  0; rows  1
core S1-C1; Frontend_Bound slots 0.25 (0.4); marked.Frontend_Bound  2; rows  2
core S1-C2; Frontend_Bound slots 0.9 (0.4); marked.Frontend_Bound  1; rows  1
means of up to 2 rows of toplev's file, each with the same weight: it has no counts to sum
not understood, and passed over: line 11 (2.5,Bad_Speculation)
`},
		{"CSV with a column for each core", columns, by(counts.Core), `toplev, computed by toplev
""  1 s
core C0; Frontend_Bound share 0.25 (0.25); IPC 1 1.5 (0.25); rows  1
core C1; Frontend_Bound share 0.5 (0.25); rows  1
`},
		{"counts", values, 0, `toplev, counted by toplev
""  1 s
cpu CPU0; inst_retired.any  1000 (0.25)
cpu CPU1; inst_retired.any  2000 (0.5)
""  1 s
cpu CPU0; cycles  500 (0.75) ±10
cpu CPU1
`},
		{"summary", spect, 0, `perfspect, computed by PerfSpect
""  NaN s
run ; CPU operating frequency (in GHz) GHz 3.5; CPU utilization % percent 90; memory bandwidth read (MB/sec) MB/s 120.5; Backend_Bound share 0.6; Backend_Bound.Memory_Bound share 0.4; Backend_Bound.Memory_Bound.L1_Bound share 0.1; Backend_Bound.Core_Bound share 0.2; TMA_Info_CoreIPC 1 1.25; rows  1` + perfspect},
		{"frames", frames, 0, `perfspect, computed by PerfSpect
""  NaN s
run ; CPI 1 2; Retiring share 0.3; rows  3` + perfspect},
		{"frames by interval and socket", frames, by(counts.Interval, counts.Socket), `perfspect, computed by PerfSpect
""  NaN s
socket S0; CPI 1 1.5; Retiring share 0.2; rows  1
socket S1; CPI 1 2.5; Retiring share 0.4; rows  1` + perfspect + `""  NaN s
socket S0; Retiring share 0.3; rows  1
socket S1
`},
		{"a column for each CPU", "metric,CPU0,CPU1\nCPI,1,3\n", by(counts.CPU), `perfspect, computed by PerfSpect
""  NaN s
cpu CPU0; CPI 1 1; rows  1
cpu CPU1; CPI 1 3; rows  1` + perfspect},
	} {
		if !published.Detect([]byte(tt.text)) {
			t.Errorf("%s: it is not recognised", tt.name)
		}
		list, kind, err := read(tt.text, tt.by)
		if got := kind + "\n" + describe(list); err != nil || got != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, err, got, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	many := &strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(many, "FE N%d %% Slots 1.0\n", i)
	}
	for text, want := range map[string]string{
		"":                            "x.txt:1: no figures of toplev or PerfSpect are in it",
		"metric,mean\nnan,nan\n":      "x.txt:2: no figures of toplev or PerfSpect are in it; not understood, and passed over: line 2 (nan,nan)",
		strings.Repeat("x", 2<<20):    "x.txt:1: a line of more than 1024 KiB",
		many.String():                 "nodes and other figures, or a name of more than 200 bytes",
		"metric,mean\nCPI,1e999\n":    "not understood, and passed over: line 2",
		"metric,mean\nCPI,1e20\n":     "not understood, and passed over: line 2",
		"FE Frontend_Bound % Slots x": "not understood, and passed over: line 1",
	} {
		_, _, err := read(text, 0)
		var line *fault.LineError
		if !errors.As(err, &line) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// TestDetect: what others print is not taken for toplev's.
func TestDetect(t *testing.T) {
	for _, text := range []string{"", "a,b,c\n1,2,3\n", "metric,value\nCPI,1\n", "Frontend_Bound is 13.5 of all\n", "Retiring:    41.9%\n", "  13.9 %  tma_frontend_bound\n", "12,345 cycles # 3.5 GHz\n"} {
		if published.Detect([]byte(text)) {
			t.Errorf("%q is recognised", text)
		}
	}
}

// TestCorpus holds files that people published to the figures in them, in percent for shares.
func TestCorpus(t *testing.T) {
	dir, files := testshared.Dir(t, "corpus"), 0
	for name, want := range corpus {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := read(string(text), 0)
		if err != nil || len(list) != 1 || !published.Detect(text) {
			t.Errorf("%s: %v, %d tables", name, err, len(list))
			continue
		}
		files++
		for _, w := range want {
			got := math.NaN()
			for col, c := range list[0].Columns {
				if c.Event == peers.Published+w.name {
					if got = list[0].Cell(0, col).Value; c.Unit == "slots" || c.Unit == "cycles" || c.Unit == "uops" || c.Unit == "share" {
						got *= 100
					}
				}
			}
			if !(math.Abs(got-w.value) <= 1e-9*math.Abs(w.value)) {
				t.Errorf("%s: %s is %v, want %v", name, w.name, got, w.value)
			}
		}
	}
	if files != 22 {
		t.Errorf("%d files, want 22", files)
	}
}

func FuzzReader(f *testing.F) {
	for _, text := range []string{old, now, csv, columns, values, spect, frames} {
		f.Add(text, uint32(0))
		f.Add(text, uint32(1<<counts.Interval|1<<counts.Core))
	}
	f.Fuzz(func(t *testing.T, text string, by uint32) {
		published.Detect([]byte(text))
		list, _, err := read(text, counts.By(by))
		if (len(list) == 0) != (err != nil) {
			t.Fatalf("%d tables, %v", len(list), err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("an error of several lines: %q", err)
		}
		total := counts.NewTotal(counts.By(by))
		for _, table := range list {
			for i := range table.Scopes {
				for _, c := range table.Row(i) {
					if math.IsInf(c.Value, 0) || math.IsNaN(c.Value) || c.Running > c.Enabled {
						t.Fatalf("a cell of %+v", c)
					}
				}
			}
			if total.Add(table) != nil {
				return
			}
		}
	})
}
