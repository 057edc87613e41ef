package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stringsFile has every text that the program prints, for a reader who wants them on one
// page.
const stringsFile = "internal/docs/testdata/strings.txt"

// sentence is what a text for people has at least: two words with letters.
var sentence = regexp.MustCompile(`\pL{2,}[^\pL]* [^\pL]*\pL{2,}`)

// unprinted are packages whose strings nobody reads: tests' support, generators and code
// for the kernel.
var unprinted = regexp.MustCompile(`^internal/(docs|gen|guest|modeltest|test[a-z]*)(/|$)`)

// printed returns the texts for people of a file: string literals with words. Texts that
// are joined by + are one.
func printed(f *ast.File) []string {
	var list []string
	var joined func(e ast.Expr) (string, bool)
	joined = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			if e.Kind == token.STRING {
				text, err := strconv.Unquote(e.Value)
				return text, err == nil
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				a, okA := joined(e.X)
				b, okB := joined(e.Y)
				switch {
				case okA && okB:
					return a + b, true
				case okA:
					return a + "…", true
				case okB:
					return "…" + b, true
				}
			}
		}
		return "", false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case ast.Expr:
			if text, ok := joined(n); ok {
				list = append(list, text)
				return false
			}
		}
		return true
	})
	return list
}

// TestStrings compares the texts that the program prints with their list. The list is for
// reading: whoever changes a text sees it among the others.
func TestStrings(t *testing.T) {
	t.Chdir(root)
	by := map[string][]string{}
	for _, f := range sources(t) {
		if f.test() || unprinted.MatchString(f.pkg()) {
			continue
		}
		for _, text := range printed(f.syntax) {
			if text = strings.Join(strings.Fields(text), " "); sentence.MatchString(text) && !strings.ContainsAny(text, "{}\\") && !strings.HasPrefix(text, "json:") {
				by[f.pkg()] = append(by[f.pkg()], text)
			}
		}
	}
	var b strings.Builder
	b.WriteString("# Every text that the program prints, by package: go test ./internal/docs -run TestStrings -update makes it.\n")
	b.WriteString("# Read what a change adds against the rules in CONTRIBUTING.md, \"Words\".\n")
	var dirs []string
	for dir := range by {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		texts := by[dir]
		slices.Sort(texts)
		fmt.Fprintf(&b, "\n%s\n", dir)
		for _, text := range slices.Compact(texts) {
			fmt.Fprintf(&b, "\t%s\n", text)
		}
	}
	if *update {
		if err := os.WriteFile(stringsFile, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(read(t, stringsFile), "\n")
	got := strings.Split(b.String(), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in %s: %s", stringsFile, strings.TrimSpace(line))
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s has it, and no package does: %s", stringsFile, strings.TrimSpace(line))
		}
	}
	if t.Failed() {
		t.Log("accept the texts with: go test ./internal/docs -run TestStrings -update")
	}
}
