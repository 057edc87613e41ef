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

// parsed are the Go files of the module, which are parsed once.
var parsed []sourceFile

// sources returns the Go files of the module. The working directory must be its root.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	if parsed == nil {
		for _, file := range below(t, ".", ".go") {
			parsed = append(parsed, parseSource(t, file, nil))
		}
	}
	return parsed
}

// below returns the files with an extension in a directory and below, with
// slashes, but for test data.
func below(t *testing.T, dir, ext string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(file) == ext:
			list = append(list, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("no %s files found", ext)
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
