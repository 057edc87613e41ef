package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/cyclestack/cyclestack/"

// support are the packages that the flow of ARCHITECTURE.md does not have: those of
// tests, and the generators. No other package may import them.
var support = []string{"internal/docs", "internal/gen", "internal/guest", "internal/modeltest", "internal/multiplex", "internal/testbrowser", "internal/testfleet", "internal/testjitdump", "internal/testkernel", "internal/testlong", "internal/testperf", "internal/testprom", "internal/testschema", "internal/testshared"}

// TestLayers holds the packages to the table in ARCHITECTURE.md: what each of
// them may import of this module.
func TestLayers(t *testing.T) {
	t.Chdir(root)
	allowed := layers(t)
	for pkg, list := range imports(t) {
		if slices.ContainsFunc(support, func(h string) bool { return within(pkg, h) }) {
			continue
		}
		row, ok := layer(pkg, allowed)
		if !ok {
			t.Errorf("ARCHITECTURE.md has no row for package %s", pkg)
			continue
		}
		for _, dep := range list {
			if !mayImport(allowed[row], dep) {
				t.Errorf("%s imports %s, which ARCHITECTURE.md does not allow", pkg, dep)
			}
		}
	}
}

const anything = "all of them"

// tools are small packages that every other one may import.
var tools = []string{"internal/fault", "internal/spelling", "internal/shell", "internal/cpulist", "internal/cgroups", "internal/perffile", "internal/signals", "internal/output", "internal/packed", "internal/amount", "internal/limits", "internal/peers", "internal/penalties", "internal/sorting"}

// mayImport says whether a row's list of imports has a package.
func mayImport(list, dep string) bool {
	if slices.ContainsFunc(support, func(h string) bool { return within(dep, h) }) {
		return false
	}
	if list == anything || slices.Contains(tools, dep) {
		return true
	}
	for _, m := range code.FindAllStringSubmatch(list, -1) {
		if parent, ok := strings.CutSuffix(m[1], "/…"); ok && within(dep, parent) || m[1] == dep {
			return true
		}
	}
	return false
}

func within(pkg, parent string) bool { return pkg == parent || strings.HasPrefix(pkg, parent+"/") }

// layer returns the row for a package: its own, or the nearest "parent/…", which has the parent as well.
func layer(pkg string, rows map[string]string) (string, bool) {
	if _, ok := rows[pkg]; ok {
		return pkg, true
	}
	for parent := pkg; parent != "."; parent = path.Dir(parent) {
		if _, ok := rows[parent+"/…"]; ok {
			return parent + "/…", true
		}
	}
	return "", false
}

var (
	row  = regexp.MustCompile("^\\| (`[^|]+`) \\|.*\\|([^|]*)\\|$")
	code = regexp.MustCompile("`([^`]+)`")
)

// layers reads the table: by package, the last column.
func layers(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for line := range strings.Lines(read(t, "ARCHITECTURE.md")) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			for _, name := range code.FindAllStringSubmatch(m[1], -1) {
				rows[name[1]] = strings.TrimSpace(m[2])
			}
		}
	}
	if len(rows) == 0 {
		t.Fatal("ARCHITECTURE.md has no table of packages")
	}
	return rows
}

// imports returns the packages of this module with what they import of it,
// tests apart.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		list := found[f.pkg()]
		for _, s := range f.syntax.Imports {
			name, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if dep, ok := strings.CutPrefix(name, module); ok && !slices.Contains(list, dep) {
				list = append(list, dep)
			}
		}
		found[f.pkg()] = list
	}
	return found
}
