package docs_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

// public are the packages that others may import: those whose names are promised
// in CONTRIBUTING.md. All others are commands or under internal/.
var public = []string{".", "account", "counts", "metric", "model", "plan", "profile", "report",
	"source", "source/perfdata", "source/perfevent", "source/perfstat"}

// mostNames is the number of names that the public packages may have together.
const mostNames = 808

// apiFile has the declarations of the public packages, a line each.
const apiFile = "internal/docs/testdata/api.txt"

var updateAPI = flag.Bool("update-api", false, "accept the public declarations as they are")

// TestPublicPackages finds packages that are importable by mistake, and public ones without a
// comment or an example.
func TestPublicPackages(t *testing.T) {
	t.Chdir(root)
	comment, example, lacking := map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, f := range sources(t) {
		pkg := f.pkg()
		if importable(pkg, f.syntax.Name.Name) && !f.test() && !slices.Contains(public, pkg) {
			t.Errorf("%s: package %s can be imported: it belongs under internal/, or on the list of public packages", f.path, pkg)
		}
		comment[pkg] = comment[pkg] || f.syntax.Doc != nil && !f.test()
		for _, fn := range f.functions() {
			example[pkg] = example[pkg] || f.test() && strings.HasPrefix(fn.name, "Example")
		}
	}
	for _, pkg := range public {
		if !comment[pkg] {
			lacking[pkg] = append(lacking[pkg], "no package comment")
		}
		if !example[pkg] {
			lacking[pkg] = append(lacking[pkg], "no example")
		}
	}
	hold(t, "public", lacking)
}

// importable reports whether another module can import a package.
func importable(pkg, name string) bool {
	return name != "main" && !slices.Contains(strings.Split(pkg, "/"), "internal")
}

// TestPublicNames holds the number of public names to a limit, by package and
// in all. Fields are not counted.
func TestPublicNames(t *testing.T) {
	t.Chdir(root)
	found := map[string][]string{}
	total := 0
	for _, pkg := range public {
		found[pkg] = names(declarations(t, pkg))
		total += len(found[pkg])
	}
	if total > mostNames {
		t.Errorf("the public packages have %d names, at most %d", total, mostNames)
	}
	limits := readBudgets(t)["names"]
	for _, pkg := range public {
		if n := len(found[pkg]); n > limits[pkg] {
			t.Errorf("names %s: %d, allowed %d", pkg, n, limits[pkg])
		}
	}
	lower(t, "names", found)
}

// TestAPI compares the public declarations with those that were promised. One
// that is new, gone or changed fails until -update-api accepts it.
func TestAPI(t *testing.T) {
	t.Chdir(root)
	var now []string
	for _, pkg := range public {
		now = append(now, declarations(t, pkg)...)
	}
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(strings.Join(now, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	gone, added := compareAPI(strings.Split(strings.TrimSpace(read(t, apiFile)), "\n"), now)
	if len(gone) > 0 {
		t.Errorf("removed or changed, which breaks programs that use it (CONTRIBUTING.md, Promise):\n\t%s", strings.Join(gone, "\n\t"))
	}
	if len(added) > 0 {
		t.Errorf("new, or changed into:\n\t%s", strings.Join(added, "\n\t"))
	}
	if t.Failed() {
		t.Log("accept it with: go test ./internal/docs -run TestAPI -update-api")
	}
}

// compareAPI returns the lines that only one of the lists has.
func compareAPI(before, now []string) (gone, added []string) {
	for _, line := range before {
		if !slices.Contains(now, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			added = append(added, line)
		}
	}
	return gone, added
}

// declarations returns the exported declarations of a package on all systems, a
// sorted line each: "account, func Evaluate(...)". Fields and methods of
// interfaces are lines of their own. Names of parameters are left out.
func declarations(t *testing.T, pkg string) []string {
	t.Helper()
	entries, err := os.ReadDir(pkg)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := parseSource(t, strings.TrimPrefix(pkg+"/"+name, "./"), nil)
		for _, line := range f.exported() {
			set[pkg+", "+line] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// exported returns the exported declarations of a file.
func (f sourceFile) exported() []string {
	var list []string
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			list = append(list, exportedFunc(d)...)
		case *ast.GenDecl:
			for i, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					list = append(list, exportedType(s)...)
				case *ast.ValueSpec:
					list = append(list, exportedValues(d, s, i)...)
				}
			}
		}
	}
	return list
}

func exportedFunc(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() {
		return nil
	}
	signature := strings.TrimPrefix(typeText(d.Type), "func")
	if d.Recv == nil {
		return []string{"func " + d.Name.Name + signature}
	}
	receiver := typeText(d.Recv.List[0].Type)
	if base, _, _ := strings.Cut(strings.TrimPrefix(receiver, "*"), "["); !ast.IsExported(base) {
		return nil
	}
	return []string{"method (" + receiver + ") " + d.Name.Name + signature}
}

func exportedType(s *ast.TypeSpec) []string {
	if !s.Name.IsExported() {
		return nil
	}
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		head += "[" + fieldsText(s.TypeParams, true) + "]"
	}
	var fields *ast.FieldList
	switch u := s.Type.(type) {
	case *ast.StructType:
		head, fields = head+" struct", u.Fields
	case *ast.InterfaceType:
		head, fields = head+" interface", u.Methods
	default:
		if s.Assign.IsValid() {
			head += " ="
		}
		return []string{head + " " + typeText(s.Type)}
	}
	list := []string{head}
	for _, field := range fields.List {
		text := typeText(field.Type)
		for _, n := range field.Names {
			if n.IsExported() {
				list = append(list, head+", "+n.Name+" "+text)
			}
		}
		if len(field.Names) == 0 {
			list = append(list, head+", embeds "+text)
		}
	}
	return list
}

// exportedValues returns the names of constants and variables with their types,
// where they are written.
func exportedValues(d *ast.GenDecl, s *ast.ValueSpec, i int) []string {
	typ := s.Type
	if d.Tok == token.CONST && typ == nil && len(s.Values) == 0 {
		for i > 0 && typ == nil { // a constant repeats the type of the last one with a value
			i--
			before := d.Specs[i].(*ast.ValueSpec)
			if typ = before.Type; len(before.Values) > 0 {
				break
			}
		}
	}
	var list []string
	for _, n := range s.Names {
		if n.IsExported() {
			text := d.Tok.String() + " " + n.Name
			if typ != nil {
				text += " " + typeText(typ)
			}
			list = append(list, text)
		}
	}
	return list
}

// typeText prints a type in one line, functions without names of parameters.
func typeText(e ast.Expr) string {
	if f, ok := e.(*ast.FuncType); ok {
		text := "func(" + fieldsText(f.Params, false) + ")"
		if f.TypeParams != nil {
			text = "func[" + fieldsText(f.TypeParams, true) + "](" + fieldsText(f.Params, false) + ")"
		}
		switch results := fieldsText(f.Results, false); {
		case results == "":
			return text
		case f.Results.NumFields() == 1:
			return text + " " + results
		default:
			return text + " (" + results + ")"
		}
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// fieldsText prints the types of a list, once for each name.
func fieldsText(fields *ast.FieldList, named bool) string {
	if fields == nil {
		return ""
	}
	var list []string
	for _, f := range fields.List {
		text := typeText(f.Type)
		for i := range max(1, len(f.Names)) {
			if named {
				list = append(list, f.Names[i].Name+" "+text)
			} else {
				list = append(list, text)
			}
		}
	}
	return strings.Join(list, ", ")
}

var declared = regexp.MustCompile(`^[^,]+, (func|type|const|var|method \([^)]*\)) (\w+)`)

// names returns the names that lines declare, methods with their receivers, once
// each.
func names(lines []string) []string {
	set := map[string]bool{}
	for _, line := range lines {
		if m := declared.FindString(line); m != "" {
			set[m] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func TestDeclarations(t *testing.T) {
	text := `package a

type T struct {
	A, b int
	C    func(x, y int) (n int, err error)
	E
}

type I interface{ M(x T) error }

type L = []string

type G[K comparable] map[K]int

type hidden struct{ X int }

const (
	First T = iota
	Second
	third
)

var V, W = 1, 2

func F(a, b int, c ...string) (*T, error) { return nil, nil }
func (t *T) M()          {}
func (g G[K]) Len() int  { return 0 }
func (hidden) Exported() {}
func private()           {}
`
	got := parseSource(t, "a.go", text).exported()
	want := []string{
		"type T struct", "type T struct, A int", "type T struct, C func(int, int) (int, error)", "type T struct, embeds E",
		"type I interface", "type I interface, M func(T) error",
		"type L = []string", "type G[K comparable] map[K]int",
		"const First T", "const Second T", "var V", "var W",
		"func F(int, int, ...string) (*T, error)", "method (*T) M()", "method (G[K]) Len() int",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, line := range got {
		got[i] = "a, " + line
	}
	if n := len(names(got)); n != 11 {
		t.Errorf("got %d names, want 11: %q", n, names(got))
	}
	gone, added := compareAPI([]string{"a, func F(int)", "a, func G()"}, []string{"a, func F(string)", "a, func G()"})
	if !slices.Equal(gone, []string{"a, func F(int)"}) || !slices.Equal(added, []string{"a, func F(string)"}) {
		t.Errorf("got %q and %q", gone, added)
	}
	for _, c := range []struct {
		pkg, name string
		want      bool
	}{{"source/x", "x", true}, {".", "cyclestack", true}, {"internal/x", "x", false}, {"source/internal/x", "x", false}, {"cmd/x", "main", false}} {
		if got := importable(c.pkg, c.name); got != c.want {
			t.Errorf("%s: importable is %v", c.pkg, got)
		}
	}
}

// heavy are modules and packages that a program which only measures itself does not need.
var heavy = []string{"golang.org/x/arch", "github.com/spf13/cobra", module + "internal/calibrate", module + "internal/simulation"}

// TestImports looks for a disassembler, a command line, the calibration and the simulation in
// what the root package imports.
func TestImports(t *testing.T) {
	t.Chdir(root)
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	if !slices.Contains(modules, strings.TrimSuffix(module, "/")) {
		t.Fatal("go list does not list the root package")
	}
	found := map[string][]string{}
	for _, m := range heavy {
		if slices.Contains(modules, m) {
			found["."] = append(found["."], "imports "+m)
		}
	}
	hold(t, "imports", found)
}
