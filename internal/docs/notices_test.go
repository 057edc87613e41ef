package docs_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// systems are those that the program is built for: what is linked differs.
var systems = []string{"linux", "windows"}

// TestNotices looks for every module that is linked into the programs in
// THIRD_PARTY_NOTICES.md.
func TestNotices(t *testing.T) {
	t.Chdir(root)
	notices := read(t, "THIRD_PARTY_NOTICES.md")
	for _, system := range systems {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/...")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		modules := strings.Fields(string(out))
		slices.Sort(modules)
		modules = slices.Compact(modules)
		if len(modules) == 0 {
			t.Errorf("%s: go list names no modules", system)
		}
		for _, m := range modules {
			if !strings.Contains(notices, "| "+m+" ") {
				t.Errorf("%s is linked into a program (on %s), and not in THIRD_PARTY_NOTICES.md", m, system)
			}
		}
	}
}
