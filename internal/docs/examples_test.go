package docs_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cyclestack/cyclestack/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the output that examples expect, but for those with elisions")

// TestExamples runs the examples of the documents: the commands in blocks
// fenced as console,
//
//	$ cyclestack version --format json
//	{
//	…
//	}
//	$ echo $?
//	0
//
// which must print what follows them, on both streams together. A line of
// nothing but "…" stands for any number of lines, and JSON may be laid out in
// another way. A command must succeed unless the next one prints its status.
func TestExamples(t *testing.T) {
	run := 0
	for _, file := range documents(t) {
		t.Run(file, func(t *testing.T) {
			d := parse(t, file, read(t, file))
			status := 0
			for i := range d.examples {
				e := &d.examples[i]
				got := e.run(t, &status)
				if status != 0 && (i+1 == len(d.examples) || !d.examples[i+1].asksStatus()) && !e.asksStatus() {
					t.Errorf("%s: %s: status %d", e.at, e.command, status)
				}
				e.check(t, got)
				run++
			}
			if *update {
				d.rewrite(t)
			}
		})
	}
	if run == 0 {
		t.Error("the documents have no examples")
	}
}

// A document is a text with examples in it.
type document struct {
	file     string
	lines    []string
	examples []example
}

// An example is a command and what it prints.
type example struct {
	at       string // file:line
	command  string
	from, to int // lines of the output in the document
	want     []string
}

const elision = "…"

// parse finds the examples of a document.
func parse(t *testing.T, file, text string) *document {
	d := &document{file: file, lines: strings.Split(text, "\n")}
	inside := false
	var open *example
	for i, line := range d.lines {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case !inside:
			inside = line == "```console"
		case line == "```":
			inside, open = false, nil
		case isCommand:
			d.examples = append(d.examples, example{at: fmt.Sprintf("%s:%d", file, i+1), command: command, from: i + 1, to: i + 1})
			open = &d.examples[len(d.examples)-1]
		case open == nil:
			t.Fatalf("%s:%d: output without a command", file, i+1)
		default:
			open.to = i + 1
			open.want = append(open.want, line)
		}
	}
	if inside {
		t.Fatalf("%s: the last console block is not closed", file)
	}
	return d
}

func (e *example) asksStatus() bool { return e.command == "echo $?" }

// run runs the command and returns the lines it prints. status is that of the
// last program, before and after.
func (e *example) run(t *testing.T, status *int) []string {
	t.Helper()
	if e.asksStatus() {
		return []string{fmt.Sprint(*status)}
	}
	args, err := words(e.command)
	if err != nil {
		t.Fatalf("%s: %v", e.at, err)
	}
	switch {
	case args[0] == "cyclestack":
		args = args[1:]
	case len(args) >= 3 && slices.Equal(args[:3], []string{"go", "run", "./cmd/cyclestack"}):
		args = args[3:]
	default:
		t.Fatalf("%s: only cyclestack can be run in a console block; fence other commands as sh", e.at)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // not what calibrate has stored on this machine
	var out bytes.Buffer
	*status = cli.Main(t.Context(), args, strings.NewReader(""), &out, &out)
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// check compares the output with the expected one.
func (e *example) check(t *testing.T, got []string) {
	t.Helper()
	want := slices.Clone(e.want)
	for len(want) > 0 && want[len(want)-1] == "" {
		want = want[:len(want)-1]
	}
	switch {
	case matches(want, got) || len(want) == 0 && slices.Equal(got, []string{""}):
	case sameJSON(want, got):
	case slices.Contains(want, elision):
		t.Errorf("%s: %s: the output does not fit the example. It is\n%s", e.at, e.command, strings.Join(got, "\n"))
	case *update:
		e.want = indentJSON(got)
	default:
		t.Errorf("%s: %s: the output differs (-example +output):\n%s", e.at, e.command,
			cmp.Diff(indentJSON(want), indentJSON(got)))
	}
}

// matches says whether lines fit a pattern with elisions for any number of
// lines. The lines between two elisions match where they first fit.
func matches(pattern, lines []string) bool {
	i := slices.Index(pattern, elision)
	if i < 0 {
		return slices.Equal(pattern, lines)
	}
	if len(lines) < i || !slices.Equal(pattern[:i], lines[:i]) {
		return false
	}
	pattern, lines = pattern[i+1:], lines[i:]
	for {
		i = slices.Index(pattern, elision)
		if i < 0 {
			return len(lines) >= len(pattern) && slices.Equal(pattern, lines[len(lines)-len(pattern):])
		}
		for len(lines) >= i && !slices.Equal(pattern[:i], lines[:i]) {
			lines = lines[1:]
		}
		if len(lines) < i {
			return false
		}
		pattern, lines = pattern[i+1:], lines[i:]
	}
}

// sameJSON says whether two texts are JSON and the same value, or several, as streams are.
// Processors that multiply and add in one step differ in the last digits.
func sameJSON(a, b []string) bool {
	values := func(lines []string) (list []any, ok bool) {
		for d := json.NewDecoder(strings.NewReader(strings.Join(lines, "\n"))); ; {
			var v any
			switch err := d.Decode(&v); err {
			case nil:
				list = append(list, v)
			case io.EOF:
				return list, true
			default:
				return nil, false
			}
		}
	}
	x, isJSON := values(a)
	y, alsoJSON := values(b)
	return isJSON && alsoJSON && cmp.Equal(x, y, cmpopts.EquateApprox(1e-12, 0))
}

// indentJSON lays out JSON for people, and leaves anything else as it is.
func indentJSON(lines []string) []string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(strings.Join(lines, "\n")), "", "  ") != nil {
		return lines
	}
	return strings.Split(out.String(), "\n")
}

// rewrite writes the document with the outputs that were found.
func (d *document) rewrite(t *testing.T) {
	t.Helper()
	lines := slices.Clone(d.lines)
	for _, e := range slices.Backward(d.examples) {
		lines = slices.Replace(lines, e.from, e.to, e.want...)
	}
	if slices.Equal(lines, d.lines) {
		return
	}
	if err := os.WriteFile(d.file, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
}

// words splits a command line as a shell does, as far as quotes go.
func words(line string) ([]string, error) {
	var (
		list  []string
		word  strings.Builder
		begun bool
		quote rune
	)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		case quote == 0 && strings.ContainsRune(`|&;<>$\*?`, r):
			return nil, fmt.Errorf("%c: only plain words and quotes can be run in a console block", r)
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%c is not closed", quote)
	}
	if begun {
		list = append(list, word.String())
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no command")
	}
	return list, nil
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, lines string
		want           bool
	}{
		{"a b", "a b", true},
		{"a b", "a b c", false},
		{"a … c", "a b b c", true},
		{"a … c", "a c", true},
		{"a … c", "a b", false},
		{"a … c", "a c d", false},
		{"… c d … e", "c c d x e", true},
		{"… c d … e", "c x d e", false},
		{"a … a", "a", false},
		{"a …", "b a", false},
		{"…", "", true},
	} {
		if got := matches(strings.Fields(c.pattern), strings.Fields(c.lines)); got != c.want {
			t.Errorf("%q fits %q: got %v, want %v", c.lines, c.pattern, got, c.want)
		}
	}
}

// TestModelExample holds the model's parts in docs/format/model.md to their file, comments and
// blank lines apart.
func TestModelExample(t *testing.T) {
	t.Chdir(root)
	var parts strings.Builder
	for _, block := range strings.Split(read(t, "docs/format/model.md"), "```toml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "extends") { // the example extends nothing
			parts.WriteString(block)
		}
	}
	got, want := bare(parts.String()), bare(read(t, "docs/format/example.toml"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/format/model.md differs from docs/format/example.toml (-file +document):\n%s", diff)
	}
}

// bare leaves out comments and blank lines of TOML.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
