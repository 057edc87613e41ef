package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestThreadTimes counts a program that sleeps while another computes.
func TestThreadTimes(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("the kernel does not tell how long threads wait: ", err)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, by := range []string{"run", "process", "thread"} {
		file := t.TempDir() + "/account.json"
		var errs bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &errs, kernel: thisKernel()}
		cmd := a.stat()
		cmd.SetArgs([]string{"--source", "os", "--by", by, "--format", "json", "-o", file, "--", sh, "-c", "sleep 0.4; :"})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.Execute(); err != nil {
			t.Skip("no program may be counted here: ", err, errs.String())
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Accounts []struct {
				Scope struct{ Label string }
				Nodes []struct {
					Name  string
					Value *float64
				}
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"run": 1, "process": 2, "thread": 2}[by]; len(d.Accounts) != want {
			t.Fatalf("by %s: %d accounts, want %d", by, len(d.Accounts), want)
		}
		for _, account := range d.Accounts {
			values := map[string]float64{}
			for _, n := range account.Nodes {
				if n.Value != nil {
					values[n.Name] = *n.Value
				}
			}
			if all := values["Threads"]; !(values["Blocked"] > 0.5*all) || !(all > 0.3) || all > 3 {
				t.Errorf("by %s, %q: blocked %v of %v threads", by, account.Scope.Label, values["Blocked"], all)
			}
			if _, ok := values["Runqueue_Wait"]; !ok {
				t.Errorf("by %s, %q: no Runqueue_Wait", by, account.Scope.Label)
			}
		}
	}
}
