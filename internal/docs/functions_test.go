package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

const (
	mostLines      = 80
	mostComplexity = 25
)

// tables are the functions that may be larger, and why.
var tables = map[string]string{
	"internal/simulation/internal/pipeline.oneByteSpecs": "the one-byte opcodes of x86, in the order of the manual's opcode map",
}

// TestFunctions finds functions that are too long or too complex to be read at
// once, outside tests.
func TestFunctions(t *testing.T) {
	t.Chdir(root)
	found := map[string][]string{}
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		for _, fn := range f.functions() {
			if !fn.large() {
				continue
			}
			name := f.pkg() + "." + fn.name
			if _, ok := tables[name]; ok {
				used[name] = true
				continue
			}
			found[f.pkg()] = append(found[f.pkg()], fn.String())
		}
	}
	hold(t, "functions", found)
	for name := range tables {
		if !used[name] {
			t.Errorf("%s is small or gone: take it off the list of tables", name)
		}
	}
}

// A function is the size of a function.
type function struct {
	at, name          string
	lines, complexity int
}

func (f function) large() bool { return f.lines > mostLines || f.complexity > mostComplexity }

func (f function) String() string {
	return fmt.Sprintf("%s: %s: %d lines (at most %d), complexity %d (at most %d)", f.at, f.name, f.lines, mostLines, f.complexity, mostComplexity)
}

// functions measures the functions of a file. Function literals count as part of
// the function around them.
func (f sourceFile) functions() []function {
	var list []function
	for _, d := range f.syntax.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			lines := f.set.Position(d.End()).Line - f.set.Position(d.Pos()).Line + 1
			list = append(list, function{f.at(d.Pos()), d.Name.Name, lines, complexity(d.Body)})
		}
	}
	return list
}

// complexity is McCabe's cyclomatic complexity: one more than the number of
// branches.
func complexity(body *ast.BlockStmt) int {
	n := 1
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestComplexity(t *testing.T) {
	f := parseSource(t, "a.go", `package a

func straight() {}

func branches(x int) {
	for x > 0 && x < 9 {
		if x == 3 || func() bool { return x > 4 && x < 6 }() {
			return
		}
		switch x {
		case 1, 2:
		default:
		}
	}
}
`)
	got := f.functions()
	if len(got) != 2 || got[0].complexity != 1 || got[0].lines != 1 || got[1].complexity != 7 || got[1].lines != 11 {
		t.Errorf("got %v", got)
	}
	for _, c := range []struct {
		f    function
		want bool
	}{
		{function{lines: mostLines, complexity: mostComplexity}, false},
		{function{lines: mostLines + 1, complexity: 1}, true},
		{function{lines: 1, complexity: mostComplexity + 1}, true},
	} {
		if c.f.large() != c.want {
			t.Errorf("%v: got %v", c.f, c.f.large())
		}
	}
}
