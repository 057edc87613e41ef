// Package pictures makes the pictures of the documents from recordings in examples:
//
//	go test ./internal/gen/pictures -update
package pictures

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

var update = flag.Bool("update", false, "write the pictures")

func TestMain(m *testing.M) { os.Exit(testbrowser.Main(m)) }

const folder = "docs/pictures"

// cyclestack runs a command in the root of the repository.
func cyclestack(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, msg bytes.Buffer
	if status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &msg); status != 0 {
		t.Fatalf("%v: status %d: %s", args, status, msg.String())
	}
	return out.Bytes()
}

// TestSVG: the pictures that are text are those of this version.
func TestSVG(t *testing.T) {
	t.Chdir("../../..")
	for name, args := range map[string][]string{
		"tree.svg":     {"report", "--format", "svg", "--level", "3", "examples/walk/columns-1.txt"},
		"roofline.svg": {"report", "--format", "roofline", "--penalties", "examples/roofline/penalties.toml", "examples/roofline/chase.callgrind", "examples/roofline/columns.callgrind"},
	} {
		file := filepath.Join(folder, name)
		got := cyclestack(t, args...)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what cyclestack %s makes (%v): go test ./internal/gen/pictures -update", file, strings.Join(args, " "), err)
		}
	}
}

// TestScreenshots: pages fit 1280, 800 and 400 pixels: nothing is wider, and no label lies on
// another. With -update the screenshots are written.
func TestScreenshots(t *testing.T) {
	b := testbrowser.New(t)
	t.Chdir("../../..")
	pages := map[string][]byte{
		"page":  cyclestack(t, "report", "--format", "html", "--sysroot", "examples/annotate", "examples/annotate.data"),
		"loops": cyclestack(t, "core", "--format", "html", "--cpu", "skylakex", "--hex", "examples/blocks.txt", "--loop"),
		"diff":  cyclestack(t, "diff", "--format", "html", "--cpu", "skylakex", "examples/diff/before.csv", "examples/diff/after.csv"),
	}
	for name, html := range pages {
		tab := b.File(html)
		tab.Wait("window.cyclestack !== undefined")
		for _, width := range []int64{1280, 800, 400} {
			theme := "light"
			if name == "diff" {
				theme = "dark"
			}
			tab.Eval(fmt.Sprintf("document.documentElement.dataset.theme = %q", theme), nil)
			tab.Resize(width, 1000)
			tab.Frames()
			var wide float64
			tab.Eval("document.documentElement.scrollWidth", &wide)
			if wide > float64(width) {
				t.Errorf("%s at %d pixels is %.0f wide", name, width, wide)
			}
			var crossed []string
			tab.Eval(crossing, &crossed)
			for _, c := range crossed {
				t.Errorf("%s at %d pixels: %s", name, width, c)
			}
			if heights[name][width] == 0 {
				continue
			}
			tab.Resize(width, heights[name][width])
			picture := filepath.Join(folder, fmt.Sprintf("%s-%d.png", name, width))
			if *update {
				if err := os.WriteFile(picture, tab.Screenshot(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, name := range []string{"page-1280.png", "page-800.png", "page-400.png", "diff-1280.png", "diff-800.png", "diff-400.png", "loops-1280.png", "loops-800.png", "loops-400.png"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// heights are those of the pictures in the documents, by page and width.
var heights = map[string]map[int64]int64{"page": {1280: 1500, 800: 1300, 400: 1300}, "diff": {1280: 1000, 800: 1000, 400: 1300},
	"loops": {1280: 900, 800: 900, 400: 1300}}

// crossing finds labels that lie on each other.
const crossing = `(() => {
	const out = [], seen = [];
	for (const svg of document.querySelectorAll("svg")) {
		const list = [...svg.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]).filter(([t, r]) => t && r.width > 0);
		for (let i = 0; i < list.length; i++) for (let k = i + 1; k < list.length; k++) {
			const [a, r] = list[i], [b, s] = list[k];
			if (r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 2 && s.top < r.bottom - 2) out.push(a + " lies on " + b);
		}
	}
	return out.concat(seen);
})()`
