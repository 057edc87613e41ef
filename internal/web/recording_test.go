package web_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
