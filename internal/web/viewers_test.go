package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/testbrowser"
)

// TestSpeedscope: speedscope itself loads the export, names hostile or not, and exports the
// same: each profile with its weights by stack.
func TestSpeedscope(t *testing.T) {
	t.Parallel()
	release := filepath.Join(os.Getenv("CYCLESTACK_NODE_MODULES"), "speedscope", "dist", "release")
	if _, err := os.Stat(release); os.Getenv("CYCLESTACK_NODE_MODULES") == "" || err != nil {
		t.Skip("CYCLESTACK_NODE_MODULES has no speedscope")
	}
	b := testbrowser.New(t)
	profile := cyclestack(t, "report", "--format", "speedscope", "--sysroot", "examples/stacks", "examples/stacks.data")
	var d map[string]any
	if err := json.Unmarshal(profile, &d); err != nil {
		t.Fatal(err)
	}
	n := 0
	hostileOne, err := json.Marshal(infectAll(d, &n))
	if err != nil || n < 5 {
		t.Fatal(n, err)
	}
	for name, text := range map[string][]byte{"plain": profile, "hostile": hostileOne} {
		// speedscope's command line opens its page with a script that holds the profile.
		script := filepath.Join(t.TempDir(), "profile.js")
		call := fmt.Sprintf("speedscope.loadFileFromBase64(%q, %q)", name+".json", base64.StdEncoding.EncodeToString(text))
		if err := os.WriteFile(script, []byte(call), 0o600); err != nil {
			t.Fatal(err)
		}
		tab := b.Foreign("file://" + filepath.Join(release, "index.html") + "#localProfilePath=" + script)
		tab.Wait(`document.querySelectorAll("canvas").length > 0`)
		// Its own export is what it has understood.
		tab.Eval(`window.saved = null; HTMLAnchorElement.prototype.click = function() { window.saved = this.href; };
			const make = URL.createObjectURL; URL.createObjectURL = b => { window.blob = b; return make.call(URL, b); };
			window.dispatchEvent(new KeyboardEvent("keydown", {key: "s", ctrlKey: true, bubbles: true})); 0`, nil)
		tab.Wait(`window.saved !== null || window.blob !== undefined`)
		var saved string
		tab.Eval(`(window.blob ? window.blob.text() : fetch(window.saved).then(r => r.text()))`, &saved)
		want, got := weights(t, text), weights(t, []byte(saved))
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 2 {
			t.Errorf("%s: what speedscope has (-export +speedscope):\n%s", name, diff[:min(len(diff), 3000)])
		}
	}
}

// infectAll replaces all names of functions and files by hostile ones.
func infectAll(d map[string]any, n *int) map[string]any {
	shared, _ := d["shared"].(map[string]any)
	frames, _ := shared["frames"].([]any)
	for _, f := range frames {
		frame := f.(map[string]any)
		for _, k := range []string{"name", "file"} {
			if _, ok := frame[k]; ok {
				frame[k] = strings.ToValidUTF8(hostile[*n%len(hostile)], "?") + fmt.Sprint(*n)
				*n++
			}
		}
	}
	return d
}

// weights are the sums of weights by profile and stack in a file of speedscope.
func weights(t *testing.T, text []byte) map[string]float64 {
	t.Helper()
	var f struct {
		Shared struct {
			Frames []struct{ Name string }
		}
		Profiles []struct {
			Name    string
			Samples [][]int
			Weights []float64
			Events  []struct {
				Type  string
				Frame int
				At    float64
			}
		}
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&f); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	sums := map[string]float64{}
	for _, p := range f.Profiles {
		add := func(stack []int, weight float64) {
			key := p.Name
			for _, frame := range stack {
				key += "\n" + f.Shared.Frames[frame].Name
			}
			if weight > 0 {
				sums[key] += weight
			}
		}
		for i, s := range p.Samples {
			add(s, p.Weights[i])
		}
		var open []int
		for i, e := range p.Events {
			if i > 0 {
				add(open, e.At-p.Events[i-1].At)
			}
			if e.Type == "O" {
				open = append(open, e.Frame)
			} else {
				open = open[:len(open)-1]
			}
		}
	}
	for key, v := range sums {
		sums[key] = math.Round(v)
	}
	return sums
}
