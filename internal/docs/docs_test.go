// Package docs_test keeps what is written about the program true. It runs the
// examples in the documents and follows their links. It compares imports with
// ARCHITECTURE.md, linked modules with THIRD_PARTY_NOTICES.md and public
// declarations with testdata/api.txt. It also checks words and the size of functions.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	err = filepath.WalkDir("docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// TestLinks looks for the files that the documents link to.
func TestLinks(t *testing.T) {
	found := 0
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no links found")
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
