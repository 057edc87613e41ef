package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/testbrowser"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// hostileRecording is a recording whose program, modules, files and functions have hostile
// names, one on each line of the format.
func hostileRecording(t *testing.T, name string, times int) string {
	t.Helper()
	list := []string{huge[:testlong.Size(1<<14, 1<<20-100)]} // a line of the format has 1 MB at most
	for _, h := range hostile {
		list = append(list, strings.NewReplacer("\n", " ", "\x00", "").Replace(h))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# callgrind format\nversion: 1\ncmd: %s %s\npositions: line\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim Lm\n", list[1], list[2])
	for i, h := range list {
		fmt.Fprintf(&b, "\nob=/lib/%s\nfl=/src/%s.c\nfn=%s\n%d %d 9000 800 70 60 5 40 30 2 900 80 7 6 50\n", h, h, h, i+1, 100000*times+i)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHostileRecording makes every view and every export of one recording with hostile names.
// Each is well formed by its own format's reader, and shows the names as text.
func TestHostileRecording(t *testing.T) {
	t.Parallel()
	b := testbrowser.New(t)
	file, other := hostileRecording(t, "<img src=x onerror=hacked()>\u202e.out", 1), hostileRecording(t, "javascript:hacked().out", 2)
	run := func(args ...string) []byte {
		t.Helper()
		var out, msg bytes.Buffer
		status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &msg)
		if status > 1 {
			t.Errorf("%.200q: status %d: %.300s", args, status, msg.String())
		}
		text(t, fmt.Sprintf("messages of %.100q", args), msg.Bytes())
		return out.Bytes()
	}
	valid := map[string]func([]byte) error{
		"json": func(d []byte) error { return json.Unmarshal(d, new(any)) },
		"csv":  func(d []byte) error { _, err := csv.NewReader(bytes.NewReader(d)).ReadAll(); return err },
		"pprof": func(d []byte) error {
			p, err := profile.ParseData(d)
			if err == nil {
				err = p.CheckValid()
			}
			return err
		},
		"svg": func(d []byte) error {
			for dec := xml.NewDecoder(bytes.NewReader(d)); ; {
				token, err := dec.Token()
				if errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "a" || e.Name.Local == "image") {
					return fmt.Errorf("an element %s", e.Name.Local)
				}
			}
		},
		"collapsed": func(d []byte) error {
			for line := range strings.Lines(string(d)) {
				if i := strings.LastIndexByte(line, ' '); i < 0 || strings.Trim(line[i+1:], "0123456789.e+\n") != "" {
					return fmt.Errorf("a line %.100q", line)
				}
			}
			return nil
		},
	}
	for _, f := range []string{"speedscope", "firefox", "stacks", "chrome-trace"} {
		valid[f] = valid["json"]
	}
	valid["roofline"] = valid["svg"]
	pages := map[string][]byte{}
	commands := [][]string{{"report"}, {"report", "--by", "function"}, {"diff"}, {"diff", "--by", "function"}, {"audit"}, {"annotate"}, {"report", "--by", "module"}, {"report", "--by", "line"}}
	for _, args := range commands[:testlong.Size(6, len(commands))] {
		for _, format := range []string{"tree", "text", "json", "csv", "svg", "roofline", "chrome-trace", "html", "pprof", "speedscope", "firefox", "collapsed", "flamegraph", "stacks"} {
			line := append([]string{args[0], "--format", format}, args[1:]...)
			line = append(line, file)
			switch args[0] {
			case "diff":
				line = append(line, other)
			case "annotate":
				line = append(line, hostile[0])
			}
			var out, msg bytes.Buffer
			status := cli.Main(t.Context(), line, strings.NewReader(""), &out, &msg)
			what := fmt.Sprintf("%v as %s", args, format)
			text(t, what+": messages", msg.Bytes())
			if status > 1 {
				if n := strings.Count(msg.String(), "\n"); n != 1 {
					t.Errorf("%s: status %d and %d lines", what, status, n)
				}
				continue // it has no such format
			}
			switch check := valid[format]; {
			case format == "html" || format == "flamegraph":
				if len(args) == 1 || args[2] == "function" || testlong.Enabled() {
					pages[what] = out.Bytes()
				}
			case check == nil:
				text(t, what, out.Bytes())
			default:
				if err := check(out.Bytes()); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	if len(pages) < 4 {
		t.Fatalf("%d pages", len(pages))
	}
	for what, html := range pages {
		tab := b.File(html)
		tab.Wait("document.readyState === 'complete' && (window.cyclestack !== undefined || document.querySelector('#page') === null)")
		var found struct {
			Hacked  bool
			Foreign int
		}
		tab.Eval(`({Hacked: window.hacked !== undefined, Foreign: document.querySelectorAll("iframe, object, embed, link, base, form, img[onerror], svg[onload]").length})`, &found)
		if found.Hacked || found.Foreign > 0 {
			t.Errorf("%s: %+v", what, found)
		}
	}
	if out := run("report", file); !bytes.Contains(out, []byte("<script>")) {
		t.Errorf("the text has no names: %.500s", out)
	}
}

// text holds what a terminal gets: valid, without controls and marks of direction.
func text(t *testing.T, what string, data []byte) {
	t.Helper()
	if !utf8.Valid(data) {
		t.Errorf("%s: invalid UTF-8", what)
	}
	for _, r := range string(data) {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			t.Errorf("%s: the character %U", what, r)
			return
		}
	}
}

// TestManyIntervals: a page puts neighbouring intervals together where there are too many, and says so.
// All else is as if longer ones were asked for.
func TestManyIntervals(t *testing.T) {
	t.Parallel()
	args := []string{"--sysroot", "examples/functions", "examples/levels.data"}
	short := htmlOf(t, "report", append([]string{"--interval", "10us"}, args...)...)
	const why = "intervals are of 0.05 ms: a page shows at most 1000"
	if !bytes.Contains(short, []byte("  note    "+why+"\n</pre>")) {
		t.Error("the text does not say that intervals are together")
	}
	got, want := documentsIn(t, short), documentsIn(t, htmlOf(t, "report", append([]string{"--interval", "50us"}, args...)...))
	last := len(want) - 1 // it says what the page lacks
	if !slices.Equal(got[:len(got)-1], want[:last]) {
		t.Errorf("%d documents differ from the %d of longer intervals", len(got), len(want))
	}
	intervals := 0
	for _, d := range want {
		if strings.HasPrefix(d, `{"schema":"cyclestack.account/v1"`) {
			intervals = max(intervals, strings.Count(d, `"kind":"interval"`))
		}
	}
	if intervals < 300 || intervals > 1000 {
		t.Errorf("%d intervals", intervals)
	}
	tab := open(t, testbrowser.New(t), short)
	var opened float64
	tab.Eval(`performance.measure("open", {start: 0, end: cyclestack.opened}).duration`, &opened)
	t.Logf("%d intervals, %.1f MB: opened in %.0f ms", intervals, float64(len(short))/1e6, opened)
	if text := tab.Text("#trust"); !strings.Contains(text, why) {
		t.Errorf("the page does not say that intervals are together: %s", text)
	}
	selected(tab, 3, 5)
	if text := tab.Text("#what"); !strings.Contains(text, "of the 3 selected intervals") {
		t.Errorf("a selection: %s", text)
	}
}

// documentsIn returns the documents in a page, without a browser.
func documentsIn(t *testing.T, html []byte) (list []string) {
	t.Helper()
	const begin, end = `<script class="document" type="application/octet-stream">`, "</script>"
	for _, part := range strings.Split(string(html), begin)[1:] {
		coded, _, _ := strings.Cut(part, end)
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(coded)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}
