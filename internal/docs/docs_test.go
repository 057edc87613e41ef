// Package docs_test keeps what is written about the program true. It runs the
// examples in the documents and follows their links. It compares imports with
// ARCHITECTURE.md, linked modules with THIRD_PARTY_NOTICES.md and public
// declarations with testdata/api.txt. It also checks words and the size of functions.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository's root, seen from this package.
var root = filepath.Join("..", "..")

// documents returns the paths of the documents, from the repository's root,
// which becomes the working directory of the test.
func documents(t *testing.T) []string {
	t.Helper()
	t.Chdir(root)
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(files, below(t, "docs", ".md")...)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link    = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks looks for the files and headings that the documents link to.
func TestLinks(t *testing.T) {
	found := 0
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(read(t, to)), m[2]) {
				t.Errorf("%s links to %s%s: there is no such heading", file, m[1], m[2])
			}
		}
	}
	if found == 0 {
		t.Error("no links found")
	}
}

// anchors returns the anchors that GitHub gives the headings of a document.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, "#"+strings.ReplaceAll(name, " ", "-"))
	}
	return list
}

func TestAnchors(t *testing.T) {
	got := anchors("# Counting: `cyclestack stat`\ntext # no\n## With the processor's counters\n")
	if want := []string{"#counting-cyclestack-stat", "#with-the-processors-counters"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIndex looks for each document in the list of them.
func TestIndex(t *testing.T) {
	index := filepath.Join("docs", "index.md")
	listed := map[string]bool{index: true}
	files := documents(t)
	for _, m := range link.FindAllStringSubmatch(read(t, index), -1) {
		listed[filepath.Join("docs", m[1])] = true
	}
	for _, file := range files {
		if strings.HasPrefix(file, "docs") && !listed[file] {
			t.Errorf("%s does not list %s", index, file)
		}
	}
}
