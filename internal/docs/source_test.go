package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A sourceFile is a parsed Go file of this module.
type sourceFile struct {
	path   string // from the root, with slashes
	syntax *ast.File
	set    *token.FileSet
}

func (f sourceFile) pkg() string { return path.Dir(f.path) }

func (f sourceFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns the file and line of a position.
func (f sourceFile) at(p token.Pos) string {
	pos := f.set.Position(p)
	pos.Column = 0
	return pos.String()
}

// sources parses the Go files of the module below the working directory.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	var list []sourceFile
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		list = append(list, parseSource(t, filepath.ToSlash(file), nil))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no Go files found")
	}
	return list
}

// parseSource parses one file, or the text given for it.
func parseSource(t *testing.T, name string, text any) sourceFile {
	t.Helper()
	f := sourceFile{path: name, set: token.NewFileSet()}
	var err error
	if f.syntax, err = parser.ParseFile(f.set, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return f
}
