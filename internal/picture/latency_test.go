package picture_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
)

// TestLatency: each bar of the picture of latencies is as long as its share, and says it.
func TestLatency(t *testing.T) {
	for _, args := range [][]string{{"examples/loop-latency-case1.txt"}, {"--sysroot", "examples/loads", "examples/loads.data"}} {
		run := func(format string) []byte {
			t.Chdir("../..")
			var out, msg bytes.Buffer
			status := cli.Main(t.Context(), append([]string{"latency", "--format", format}, args...), strings.NewReader(""), &out, &msg)
			t.Chdir("internal/picture")
			if status != 0 {
				t.Fatalf("%v: status %d: %s", args, status, msg.String())
			}
			return out.Bytes()
		}
		var svg struct {
			Rect []struct {
				Width float64 `xml:"width,attr"`
				Class string  `xml:"class,attr"`
			} `xml:"rect"`
			Text []string `xml:"text"`
		}
		if err := xml.Unmarshal(run("svg"), &svg); err != nil {
			t.Fatal(err)
		}
		var d any
		if err := json.Unmarshal(run("json"), &d); err != nil {
			t.Fatal(err)
		}
		shares := binsOf(d)
		most := 0.0
		for _, s := range shares {
			most = max(most, s)
		}
		var widths []float64
		for _, r := range svg.Rect {
			if r.Class == "bar" {
				widths = append(widths, r.Width)
			}
		}
		if len(widths) == 0 || len(widths) > len(shares) {
			t.Fatalf("%v: %d bars, %d bins", args, len(widths), len(shares))
		}
		for i, w := range widths {
			if math.Abs(w-650*shares[i]/most) > 0.2 {
				t.Errorf("%v: bar %d is %.1f long, want %.1f", args, i, w, 650*shares[i]/most)
			}
			if text := fmt.Sprintf("%.1f %%", 100*shares[i]); !strings.Contains(strings.Join(svg.Text, "\n"), text) {
				t.Errorf("%v: %s is not printed", args, text)
			}
		}
	}
}

// binsOf finds the shares of the first list of bins in a document.
func binsOf(d any) []float64 {
	switch v := d.(type) {
	case []any:
		for _, x := range v {
			if s := binsOf(x); s != nil {
				return s
			}
		}
	case map[string]any:
		if list, ok := v["bins"].([]any); ok {
			var out []float64
			for _, b := range list {
				share, _ := b.(map[string]any)["share"].(float64)
				out = append(out, share)
			}
			return out
		}
		for _, key := range []string{"sampled", "all", "distributions", "events", "latencies", "reports", "groups"} {
			if s := binsOf(v[key]); s != nil {
				return s
			}
		}
	}
	return nil
}
