package cli

import (
	"encoding/json"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

// TestComms compares the samples of each thread name with those of perf report --sort comm.
func TestComms(t *testing.T) {
	for _, test := range []struct {
		file string
		want map[string]int
	}{
		{"quipper-perf.data.systemwide.0-3.8", map[string]int{"perf": 9, "sleep": 1, "swapper": 18}},
		{"jbeich-testdata_perf_with_multiple_pids_and_tids.data", map[string]int{"t1": 527, "simpleperf": 6}},
	} {
		var got struct {
			Accounts []struct {
				Scope struct {
					Kind, Comm string
					Samples    int `json:"share_samples"`
				}
			}
		}
		out := runMain(t, "report", "--by", "comm", "--format", "json", testshared.Dir(t, "corpus", "perfdata", test.file))
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, a := range got.Accounts {
			if a.Scope.Kind != "comm" {
				continue
			}
			if n++; test.want[a.Scope.Comm] != a.Scope.Samples {
				t.Errorf("%s: %d samples of %q, perf has %d", test.file, a.Scope.Samples, a.Scope.Comm, test.want[a.Scope.Comm])
			}
		}
		if n != len(test.want) {
			t.Errorf("%s: %d comms, perf has %d", test.file, n, len(test.want))
		}
	}
}
