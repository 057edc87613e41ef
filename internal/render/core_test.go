package render_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testschema"
	"github.com/cyclestack/cyclestack/report"
)

// solved analyses the program of the examples.
func solved(t *testing.T) render.Cores {
	t.Helper()
	p := &core.Program{File: "../../examples/annotate/bin/solve", Function: "solve",
		Cores: []*simulation.Core{simulation.ModelledCore("amdzen4"), simulation.ModelledCore("skylake")}}
	d, err := p.Analyse()
	if err != nil {
		t.Fatal(err)
	}
	return render.Cores{Document: d}
}

func coreText(t *testing.T, d render.Cores, format string) string {
	t.Helper()
	var out strings.Builder
	if err := report.Write(&out, format, d, report.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCoreJSON holds the JSON to its schema.
func TestCoreJSON(t *testing.T) {
	text := coreText(t, solved(t), "json")
	schema := testschema.Rendered(t, "core")
	if err := testschema.Validate(t, schema, text); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if testschema.Validate(t, schema, strings.Replace(text, `"chain":`, `"chained":`, 1)) == nil {
		t.Error("the schema allows any key")
	}
}

// TestCoreScreen holds the text to a screen, with the line and the reason.
func TestCoreScreen(t *testing.T) {
	text := coreText(t, solved(t), "text")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > 24 || slices.ContainsFunc(lines, func(l string) bool { return utf8.RuneCountInString(l) > 80 }) {
		t.Errorf("%d lines, or one over 80 columns:\n%s", len(lines), text)
	}
	for _, want := range []string{"solve.c:13", "chain", "each address comes from the load before", "on skylake"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	d := solved(t)
	d.Full = true
	if full := coreText(t, d, "text"); !strings.Contains(full, "imported") || !strings.Contains(full, "solve, loop 3 (") {
		t.Errorf("with everything:\n%s", full)
	}
}

// TestAssembly analyses a loop of assembly, if there is an assembler.
func TestAssembly(t *testing.T) {
	if _, err := exec.LookPath("as"); err != nil {
		t.Skip("no assembler")
	}
	cores := []*simulation.Core{simulation.ModelledCore("skylake")}
	a := core.Assembly{Name: "-", In: strings.NewReader("f: xor %eax,%eax\n1: imul %rdi,%rax\n dec %rcx\n jne 1b\n ret\n"), Cores: cores}
	d, err := a.Analyse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := d.Pieces[0]
	if len(r.Insts) != 3 || r.Main().Limits[0].Kind != simulation.Chain || r.Insts[0].Line != 2 || r.First != 2 || r.Last != 4 {
		t.Errorf("%d instructions from line %d to %d, limit %v", len(r.Insts), r.First, r.Last, r.Main().Limits[0])
	}
	a.In = strings.NewReader("nop\nbogus %eax\n")
	if _, err = a.Analyse(t.Context()); err == nil || !strings.Contains(err.Error(), "standard input:2: no such instruction") {
		t.Errorf("error %v", err)
	}
}
