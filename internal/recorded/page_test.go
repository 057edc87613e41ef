package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/web"
	"github.com/cyclestack/cyclestack/report"
)

// TestManyIntervals: a page has no more intervals of counts than it has room for, and nothing is lost.
func TestManyIntervals(t *testing.T) {
	for _, tt := range []struct{ intervals, want int }{{900, 900}, {1000, 1000}, {1001, 501}, {2100, 700}} {
		var csv bytes.Buffer
		for i := range tt.intervals {
			fmt.Fprintf(&csv, "%.9f,100.00,msec,task-clock,100000000,100.00,1.000,CPUs utilized\n", float64(i+1)*0.1)
		}
		name := filepath.Join(t.TempDir(), "intervals.csv")
		if err := os.WriteFile(name, csv.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := resolve.New(resolve.Choice{CPU: "generic"})
		if err != nil {
			t.Fatal(err)
		}
		p := &pageReport{Recordings: New(r, name), o: &PageOptions{}, file: name, page: web.NewAccounts(io.Discard, report.Options{})}
		if err := p.Accounts(p.page, 0, resolve.Request{}, p.step); err != nil {
			t.Fatal(err)
		}
		p.widen()
		var text bytes.Buffer
		if err := p.intervals(&text); err != nil {
			t.Fatal(err)
		}
		var document struct {
			Accounts []struct {
				Scope struct {
					Duration float64 `json:"duration_s"`
				}
			}
		}
		if err := json.Unmarshal(text.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		seconds := 0.0
		for _, a := range document.Accounts {
			seconds += a.Scope.Duration
		}
		if n := len(document.Accounts); n != tt.want || math.Abs(seconds-float64(tt.intervals)*0.1) > 1e-6 || (len(p.left) > 0) != (n < tt.intervals) {
			t.Errorf("%d intervals: %d of %g s, %v, want %d", tt.intervals, n, seconds, p.left, tt.want)
		}
		p.Close()
	}
}
