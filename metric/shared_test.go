package metric

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

// A vendorFormula is one formula of the vendors' files.
type vendorFormula struct {
	file   string // below the data folder
	metric string
	field  string
	text   string
}

// broken lists the formulas of the vendors that are none, by file, metric and
// field.
var broken = map[string]string{
	"intel-perfmon/EMR/metrics/emeraldrapids_metrics.json Info_Botlnk_L0_Core_Bound_Likely BaseFormula":         "a blank inside a name, so that an if has no else",
	"intel-perfmon/SPR/metrics/sapphirerapidshbm_metrics.json Info_Memory_Mix_Offcore_Read_HBM_PKI BaseFormula": "begins with if",
	"intel-perfmon/SPR/metrics/sapphirerapidshbm_metrics.json Info_Memory_SoC_R2C_HBM_BW BaseFormula":           "begins with if",
}

// TestVendorFormulas parses every formula and threshold of Intel's, Arm's and
// Linux's files.
func TestVendorFormulas(t *testing.T) {
	data := testshared.Dir(t, "data")
	for _, tt := range []struct {
		dir  string
		want int // formulas that parse
	}{
		{"intel-perfmon", 14809},
		{"arm-telemetry", 1542},
		{"reference-only/linux-pmu-events", 6349},
	} {
		t.Run(tt.dir, func(t *testing.T) {
			got, none := 0, 0
			for _, f := range vendorFormulas(t, data, tt.dir) {
				key := f.file + " " + f.metric + " " + f.field
				switch why := broken[key]; {
				case f.text == "":
					none++ // a metric without a threshold
				case why != "":
					var syntax *SyntaxError
					if _, err := Parse(f.text); !errors.As(err, &syntax) {
						t.Errorf("%s: got %v, want a syntax error: %s", key, err, why)
					}
				default:
					checkRoundTrip(t, key, f.text)
					got++
				}
			}
			t.Logf("%d formulas parse, %d are empty", got, none)
			if got != tt.want {
				t.Errorf("%d formulas parse, want %d", got, tt.want)
			}
		})
	}
}

// vendorFormulas returns the formulas of all JSON files below a folder.
func vendorFormulas(t *testing.T, data, dir string) []vendorFormula {
	var all []vendorFormula
	err := filepath.WalkDir(filepath.Join(data, filepath.FromSlash(dir)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || text[0] != '{' && text[0] != '[' { // two of Arm's files are only the name of another
			return err
		}
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			return err
		}
		file, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		collectFormulas(filepath.ToSlash(file), "", "", doc, &all)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// collectFormulas appends every formula in a JSON value. All three vendors keep
// them in fields of these names; Intel has the same names in a Threshold.
func collectFormulas(file, metric, within string, v any, all *[]vendorFormula) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collectFormulas(file, metric, within, e, all)
		}
	case map[string]any:
		if name, ok := v["MetricName"].(string); ok {
			metric = name
		}
		for key, e := range v {
			switch text, isText := e.(string); {
			case isText && (strings.HasSuffix(key, "ormula") || key == "MetricExpr" || key == "MetricThreshold"):
				*all = append(*all, vendorFormula{file, metric, within + key, text})
			case key == "Threshold":
				collectFormulas(file, metric, "Threshold.", e, all)
			default:
				collectFormulas(file, metric, within, e, all)
			}
		}
	}
}

// An intelMetric is what an Intel file says of one metric twice: as a formula
// over aliases of events, expanded, and as one over events and other metrics.
type intelMetric struct {
	MetricName        string
	Category          string
	UnitOfMeasure     string
	Formula           string
	BaseFormula       string
	Events, Constants []struct{ Name, Alias string }
}

// contradicting lists the metrics whose two formulas differ upstream, besides
// those in broken.
var contradicting = map[string]string{
	"EMR Bottleneck_Data_Cache_Memory_Bandwidth": "BaseFormula uses hbm_bound, which is nothing",
	"EMR Bottleneck_Data_Cache_Memory_Latency":   "the same",
	"EMR Bottleneck_Other_Bottlenecks":           "uses the other two",
}

// TestIntelFormulasAgree evaluates both formulas of each of Intel's top-down
// metrics on random counts: parsing, substitution, compilation and evaluation
// must give one value.
func TestIntelFormulasAgree(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testshared.Dir(t, "data", "intel-perfmon"), "*", "metrics", "*_metrics*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var all comparison
	for _, file := range files {
		cpu := filepath.Base(filepath.Dir(filepath.Dir(file)))
		metrics := readIntelMetrics(t, file)
		bases := baseFormulas(metrics)
		for _, m := range metrics {
			base, ok := bases["tma_"+strings.ToLower(m.MetricName)]
			if !ok {
				continue
			}
			c := m.compare(t, expand(base, bases))
			if why := contradicting[cpu+" "+m.MetricName]; (c.differ > 0) != (why != "") {
				t.Errorf("%s %s: the formulas differ on %d of %d random counts; listed as %q", cpu, m.MetricName, c.differ, seeds, why)
			}
			all.agree += c.agree
			all.unknown += c.unknown
		}
	}
	t.Logf("%d values agree, %d are unknown both ways", all.agree, all.unknown)
	if all.agree < 16000 || all.unknown > all.agree/100 {
		t.Error("too little is compared")
	}
}

// A comparison counts values.
type comparison struct{ agree, unknown, differ int }

const seeds = 4 // sets of random counts

// compare evaluates Formula and the other, expanded, formula of a metric.
func (m *intelMetric) compare(t *testing.T, base *Expr) (c comparison) {
	formula, aliases := mustParse(t, m.Formula), m.aliases()
	scale := 1.0
	if m.UnitOfMeasure == "percent" && !strings.HasPrefix(strings.TrimSpace(m.BaseFormula), "100 *") {
		scale = 100 // Formula always gives a share in percent
	}
	for seed := range seeds {
		want := evalOnCounts(t, formula, aliases, seed)
		got := evalOnCounts(t, base, nil, seed) * scale
		switch {
		case math.IsNaN(got) && math.IsNaN(want):
			c.unknown++
		case math.Abs(got-want) <= 1e-9*math.Abs(want):
			c.agree++
		default:
			c.differ++
		}
	}
	return c
}

func readIntelMetrics(t *testing.T, file string) []intelMetric {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Metrics []intelMetric }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return doc.Metrics
}

// baseFormulas returns the BaseFormula of each top-down metric that has a good one. The
// key is the name that others use for it.
func baseFormulas(metrics []intelMetric) map[string]*Expr {
	bases := make(map[string]*Expr)
	for _, m := range metrics {
		if m.Category != "TMA" {
			continue
		}
		if e, err := Parse(m.BaseFormula); err == nil { // TestVendorFormulas reports the others
			bases["tma_"+strings.ToLower(m.MetricName)] = e
		}
	}
	return bases
}

// expand replaces references to other metrics until there are none.
func expand(e *Expr, bases map[string]*Expr) *Expr {
	for {
		expanded := e.Substitute(func(name string) *Expr { return bases[name] })
		if expanded == e {
			return e
		}
		e = expanded
	}
}

// aliases maps the names in Formula to those in BaseFormula.
func (m *intelMetric) aliases() map[string]string {
	names := make(map[string]string)
	for _, e := range m.Events {
		names[e.Alias] = strings.ToLower(e.Name)
	}
	for _, c := range m.Constants {
		names[c.Alias] = map[string]string{
			"HYPERTHREADING_ON":          "smt_on",
			"THREADS_PER_CORE":           "threads",
			"DURATIONTIMEINMILLISECONDS": "milliseconds",
			"SYSTEM_TSC_FREQ":            "tsc",
			"20":                         "twenty",
			"system.sockets[0].cpus.count * system.socket_count": "num_cpus",
		}[c.Name]
	}
	return names
}

// evalOnCounts evaluates a formula on counts that are random, but the same for
// each name and seed.
func evalOnCounts(t *testing.T, e *Expr, aliases map[string]string, seed int) float64 {
	p := mustCompile(t, e)
	var in []float64
	for _, name := range e.Names() {
		if alias, ok := aliases[name]; ok {
			name = alias
		}
		in = append(in, count(name, seed))
	}
	return p.Eval(in)
}

func count(name string, seed int) float64 {
	switch name {
	case "smt_on":
		return float64(seed % 2)
	case "threads":
		return float64(seed%2 + 1)
	case "milliseconds":
		return 1000 * count("duration_time", seed)
	case "twenty":
		return 20
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", name, seed)
	return float64(h.Sum64()%1_000_000 + 1)
}
