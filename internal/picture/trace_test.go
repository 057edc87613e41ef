package picture_test

import (
	"encoding/json"
	"math"
	"testing"
)

// TestTrace: each node of each interval is a counter event with the value of the JSON.
func TestTrace(t *testing.T) {
	args := []string{"--by", "interval", "--sysroot", "examples/functions", "examples/levels.data"}
	var trace struct {
		TraceEvents []struct {
			Ph, Name string
			PID      int
			TS       *float64
			Args     map[string]any
		}
	}
	var accounts struct {
		Accounts []struct {
			Scope struct {
				Kind  string
				Start float64 `json:"start_s"`
			}
			Nodes []struct {
				Path, Name, Section string
				Value               *float64
			}
		}
	}
	for format, to := range map[string]any{"chrome-trace": &trace, "json": &accounts} {
		if err := json.Unmarshal([]byte(draw(t, format, args...)), to); err != nil {
			t.Fatal(format, err)
		}
	}
	type key struct {
		name string
		at   float64
	}
	got := map[key]float64{}
	last := math.Inf(-1)
	for _, e := range trace.TraceEvents {
		switch e.Ph {
		case "M":
			if e.Name != "process_name" || e.Args["name"] != "./prog" {
				t.Errorf("%+v", e)
			}
		case "C":
			if e.TS == nil || *e.TS < last || len(e.Args) != 1 || e.PID != 1 {
				t.Fatalf("%+v", e)
			}
			last = *e.TS
			for _, v := range e.Args {
				got[key{e.Name, math.Round(*e.TS)}] = v.(float64)
			}
		default:
			t.Errorf("%+v", e)
		}
	}
	n := 0
	for _, a := range accounts.Accounts {
		for _, node := range a.Nodes {
			if a.Scope.Kind != "interval" || node.Section != "" || node.Value == nil {
				continue
			}
			n++
			v, ok := got[key{node.Path + " (%)", math.Round(1e6 * a.Scope.Start)}]
			if !ok || math.Abs(v-100**node.Value) > 1e-9 {
				t.Errorf("%s at %v s is %v, want %v", node.Path, a.Scope.Start, v, 100**node.Value)
			}
		}
	}
	if n < 10 || n != len(got) {
		t.Errorf("%d values in JSON, %d in the trace", n, len(got))
	}
}
