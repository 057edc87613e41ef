package metric

import (
	"encoding/json"
	"errors"
	"io/fs"
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
		{"intel-perfmon", 1},
		{"arm-telemetry", 0},
		{"reference-only/linux-pmu-events", 0},
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
			t.Logf("%s: %d formulas parse, %d are empty", tt.dir, got, none)
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
