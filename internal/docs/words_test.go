package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// longest is the most words that a sentence has.
const longest = 20

var (
	prepositionWhich = regexp.MustCompile(`(?i)\b(of|in|with|to|from|by|for|on|at|than|as|behind|below|through|under|after|before|without|beside) (which|whom)\b`)

	// privateWords are words that a reader of perf's or Intel's manuals does not know, and
	// phrases that hide the subject.
	privateWords = regexp.MustCompile(`(?i)\b(beside|rungs?|ladder|kin|bells?|witness(es|ed)?|skim(s|med|ming)?|(take|takes|took|taken|taking|in|by|of|many|more|fewer|few|several|the|its|their) turns|teams?|told apart|tells? apart|tell (them|it|these) apart|(is|are|be) (not )?to be had|be it that|told of|tells? of|for want of|therein|thereof|whereof|upon|of one's own)\b`)
)

// faults returns what is wrong with the words and sentences of a passage.
func faults(text string) []string {
	return append(wordFaults(text), longer(text)...)
}

// longer returns the sentences of a passage that have more than longest words. A code span, or
// a list of them, is one word.
func longer(text string) (list []string) {
	for _, s := range sentences(codeList.ReplaceAllString(text, "code")) {
		n := len(slices.DeleteFunc(strings.Fields(s), func(w string) bool { return !strings.ContainsFunc(w, isWord) }))
		if n > longest {
			list = append(list, fmt.Sprintf("%d words: %q", n, s))
		}
	}
	return list
}

// isWord reports whether a rune makes a word of a field: signs alone are none.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// wordFaults returns what is wrong with the words of a passage.
func wordFaults(text string) []string {
	var list []string
	for _, m := range prepositionWhich.FindAllString(text, -1) {
		list = append(list, fmt.Sprintf("%q", m))
	}
	for _, m := range privateWords.FindAllString(text, -1) {
		list = append(list, fmt.Sprintf("private %q", m))
	}
	return list
}

var (
	sentenceEnd  = regexp.MustCompile(`[.!?:;][)"'”*]*(\s+|$)`)
	abbreviation = regexp.MustCompile(`\b(e\.g|i\.e|cf|vol|no|sect|pp|vs|etc)\.$`)
)

// sentences splits a passage. A colon and a semicolon end a sentence too.
func sentences(text string) []string {
	var list []string
	from := 0
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		if abbreviation.MatchString(text[from : m[0]+1]) {
			continue
		}
		list = append(list, strings.TrimSpace(text[from:m[1]]))
		from = m[1]
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		list = append(list, rest)
	}
	return list
}

// A passage is a text that is read at once: a paragraph, an item of a list, a
// cell of a table, a comment or a string.
type passage struct{ at, text string }

var (
	item     = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	codeList = regexp.MustCompile(`\bcode(,? code)+`)
	target   = regexp.MustCompile(`\]\([^)]*\)`)
)

// passages returns the passages of a Markdown text outside code fences. A code
// span, or a list of them, counts as one word.
func passages(file, text string) []passage {
	var list []passage
	var open []string
	first := 0
	end := func() {
		if len(open) > 0 {
			joined := codeSpan.ReplaceAllString(strings.Join(open, " "), "code")
			joined = target.ReplaceAllString(joined, "]")
			list = append(list, passage{fmt.Sprintf("%s:%d", file, first), joined})
		}
		open = nil
	}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```")
		switch {
		case fence || fenced || trimmed == "":
			end()
			fenced = fenced != fence
			continue
		case strings.HasPrefix(trimmed, "|"):
			end()
			first = i + 1
			for _, cell := range strings.Split(codeSpan.ReplaceAllString(trimmed, "code"), "|") {
				open = []string{strings.TrimSpace(cell)}
				end()
			}
			continue
		case strings.HasPrefix(trimmed, "#") || item.MatchString(line):
			end()
		}
		if open == nil {
			first = i + 1
		}
		open = append(open, item.ReplaceAllString(trimmed, ""))
	}
	end()
	return list
}

// prose returns the passages of a Go file: its comments and, outside tests, its
// string literals of three words or more.
func (f sourceFile) prose() []passage {
	var list []passage
	for _, group := range f.syntax.Comments {
		prose, _, _ := strings.Cut(group.Text(), "Output:\n") // of an example
		for _, text := range paragraphs(prose) {
			list = append(list, passage{f.at(group.Pos()), text})
		}
	}
	if f.test() {
		return list
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && len(strings.Fields(text)) >= 3 {
				for _, text := range paragraphs(text) {
					list = append(list, passage{f.at(lit.Pos()), text})
				}
			}
		}
		return true
	})
	return list
}

// commandLine is a command in the examples of a command's help.
var commandLine = regexp.MustCompile(`^  (cyclestack|perf) `)

// paragraphs splits the text of a comment at blank lines and items of lists. It leaves
// out code, which is indented, and command lines.
func paragraphs(text string) []string {
	var list []string
	open := false
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			open = false
		case item.MatchString(line):
			list, open = append(list, trimmed), true
		case strings.HasPrefix(line, "\t") || commandLine.MatchString(line):
			open = false
		case open:
			list[len(list)-1] += " " + trimmed
		default:
			list, open = append(list, trimmed), true
		}
	}
	return list
}

// tomlPassages returns the paragraphs of a TOML file, comments and texts alike. Formulas
// are among them, so the length of their sentences means nothing.
func tomlPassages(file, text string) []passage {
	var list []passage
	line := 1
	for _, block := range strings.Split(text, "\n\n") {
		joined := strings.Join(strings.Fields(tomlBreak.ReplaceAllString(block, " ")), " ")
		list = append(list, passage{fmt.Sprintf("%s:%d", file, line), joined})
		line += strings.Count(block, "\n") + 2
	}
	return list
}

// tomlBreak is what continues a comment or a text in the next line.
var tomlBreak = regexp.MustCompile(`\\?\n#?`)

// TestWords holds comments, messages, documents and models to the rule of
// CONTRIBUTING.md as far as a program can: no preposition before "which", no
// private words, no long sentences.
func TestWords(t *testing.T) {
	found := map[string][]string{}
	check := func(place string, list []passage) {
		for _, p := range list {
			for _, f := range faults(p.text) {
				found[place] = append(found[place], p.at+": "+f)
			}
		}
	}
	for _, file := range documents(t) {
		text := read(t, file)
		if file == "CONTRIBUTING.md" {
			text = withoutPairs(t, text)
		}
		check(file, passages(file, text))
	}
	for _, f := range sources(t) {
		check(f.pkg(), f.prose())
	}
	for _, file := range below(t, ".", ".toml") {
		for _, p := range tomlPassages(file, read(t, file)) {
			for _, f := range wordFaults(p.text) {
				found[path.Dir(file)] = append(found[path.Dir(file)], p.at+": "+f)
			}
		}
	}
	hold(t, "words", found)
}

// withoutPairs leaves out the table of CONTRIBUTING.md that shows bad sentences.
func withoutPairs(t *testing.T, text string) string {
	t.Helper()
	before, table, ok := strings.Cut(text, "| was | better |\n")
	_, after, ended := strings.Cut(table, "\n\n")
	if !ok || !ended {
		t.Fatal("CONTRIBUTING.md has no table of sentences, | was | better |")
	}
	return before + "\n" + after
}

func TestFaults(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", longest+1)) + "."
	for _, c := range []struct {
		text string
		want int
	}{
		{"A group is scheduled as a whole.", 0},
		{"The processor on which it ran.", 1},
		{"The one whom it counts.", 0},
		{"What stands beside the tree; threads told apart by their names.", 2},
		{"Events take turns.", 1},
		{"It turns the option off.", 0},
		{"It reads " + strings.Repeat("code, ", longest) + "and others.", 0},
		{strings.Repeat("code ", longest+1), 0},
		{"The next rung of the ladder.", 2},
		{long, 1},
		{"Short first. " + long, 1},
		{"See Intel, e.g. " + long, 1},
		{strings.Repeat("Seven words are in each of these. ", 20), 0},
	} {
		if got := faults(c.text); len(got) != c.want {
			t.Errorf("%q: got %q, want %d", c.text, got, c.want)
		}
	}
}

func TestPassages(t *testing.T) {
	got := passages("a.md", "# A title\nFirst `a b c`\n[line](x).\n\n```\ncode on which\n```\n* one\n  more\n* two\n\n| left | `a|b` right |\n")
	want := []passage{{"a.md:1", "# A title First code [line]."}, {"a.md:8", "one more"}, {"a.md:10", "two"},
		{"a.md:12", ""}, {"a.md:12", "left"}, {"a.md:12", "code right"}, {"a.md:12", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	f := parseSource(t, "a.go", "package a\n\n// First\n// line.\n//\n//\tcode on which\nvar x = \"a message of five words\" + \"short\"\n")
	if got, want := f.prose(), []passage{{"a.go:3", "First line."}, {"a.go:7", "a message of five words"}}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got, want := tomlPassages("a.toml", "# one\n# two\n\nabout = \"\"\"\nthree \\\nfour\"\"\"\n"), []passage{{"a.toml:1", "# one two"}, {"a.toml:4", `about = """ three four"""`}}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	f = parseSource(t, "a.go", "package a\n\nvar x = `  cyclestack stat -- a\n  perf stat b\n  cyclestack models   those of one\n`\n")
	if got := f.prose(); len(got) != 0 {
		t.Errorf("commands: got %q", got)
	}
	f = parseSource(t, "a_test.go", "package a\n\nvar x = \"a message of five words\"\n")
	if got := f.prose(); len(got) != 0 {
		t.Errorf("a test: got %q", got)
	}
	f = parseSource(t, "a_test.go", "package a\n\n// Words.\n\nfunc ExampleX() {\n\t// Output:\n\t// on which\n}\n")
	if got, want := f.prose(), []passage{{"a_test.go:3", "Words."}}; !slices.Equal(got, want) {
		t.Errorf("an example: got %q\nwant %q", got, want)
	}
}
