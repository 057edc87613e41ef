package core_test

import (
	"math"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// looped returns what the model of Skylake says of a loop in hexadecimal code.
func looped(t *testing.T, text string) *core.Result {
	t.Helper()
	b := core.Blocks{Cores: []*simulation.Core{simulation.ModelledCore("skylake")}, Loop: true, Source: strings.NewReader(text), Name: "loop"}
	d, err := b.Bytes(disasm.Intel)
	if err != nil {
		t.Fatal(err)
	}
	d.Pieces[0].Loop = 1
	return d.Pieces[0]
}

// TestSplit divides loops by what limits them. The nodes of the account and its rest add up
// to the whole, and the largest is the limit's.
func TestSplit(t *testing.T) {
	const run = 1000
	for _, tt := range []struct{ code, largest string }{
		{"f20f58c1 49ffcf 75f7", "Chain_Latency"},                       // addsd, dec, jne
		{"f20f5ec8 f20f5ed0 0f28c8 0f28d0 49ffcf 75ed", "Divider_Busy"}, // two divisions that wait for nothing
		{"660f6fc1 660f70c8 1b 660f70d0 1b 660f70d8 1b 660f70e0 1b 49ffcf 75e1", "Port_Contention"},
		{"90 90 90 90 90 90 90 90 49ffcf 75f3", "Useful_Dispatch"},
		{"884708 884709 668b5f08 6689d8 49ffcf 75ef", "Parts_And_Forwarding"}, // two bytes stored, read as one word
	} {
		r := looped(t, tt.code)
		table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "cycles"}}, Scopes: []counts.Scope{counts.RunScope("all")}})
		*table.Cell(0, 0) = counts.Cell{Value: run, State: counts.Counted}
		table = core.SplitColumns(table, []*core.Result{r}, func(*core.Result) float64 { return 0.8 * run }, run)
		m, err := account.Load("generic", "hot-loops", account.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := m.Bind(table.Layout).Evaluate(table, account.Place{}, nil)
		sum, largest := 0.0, ""
		for i := range a.Nodes {
			if a.Model().Nodes[i].Level != 1 {
				continue
			}
			v := a.Nodes[i].Value
			if sum += v; largest == "" || v > a.Value(largest) {
				largest = a.Model().Nodes[i].Name
			}
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(a.Value("Elsewhere")-0.2) > 1e-9 {
			t.Errorf("%s: the nodes add up to %v, elsewhere %v", tt.code, sum, a.Value("Elsewhere"))
		}
		if largest != tt.largest {
			t.Errorf("%s: %s is the largest, want %s; limits %v", tt.code, largest, tt.largest, r.Main().Limits)
		}
	}
}
