package samples_test

import (
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/samples"
)

// TestInlined compares the samples of functions with what addr2line says of the
// instructions: with inlined calls the innermost function, without the outermost.
func TestInlined(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("addr2line"); err != nil {
		t.Skip("there is no addr2line")
	}
	data := recordStacks(t, "gcc -g -O2", "inlined.c")
	program := filepath.Join(filepath.Dir(data), "prog")
	read := func(by counts.Kind, noInline bool) *counts.Table {
		return tableOf(t, open(t, data).Samples(samples.Options{By: by, NoInline: noInline, Filter: samples.Filter{Modules: []string{"prog"}}}))
	}
	insts := read(counts.Instruction, false)
	inner, outer, files := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := 1; i < len(insts.Scopes); i++ {
		c, n := insts.Scopes[i].Code, insts.Cell(i, 0).Samples
		out, err := exec.Command("addr2line", "-i", "-f", "-e", program, fmt.Sprintf("%#x", c.Addr)).Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if lines[0] == "??" || n == 0 {
			continue
		}
		inner[lines[0]] += n
		outer[lines[len(lines)-2]] += n
		file, _, _ := strings.Cut(lines[1], ":")
		files[path.Base(file)] += n
	}
	byName := func(t *counts.Table) map[string]int64 {
		out := map[string]int64{}
		for i := 1; i < len(t.Scopes); i++ {
			if c := t.Scopes[i].Code; c.Function != "" && out[c.Function] > 0 {
				out["twice "+c.Function]++
			} else if n := t.Cell(i, 0).Samples; n > 0 && c.Function != "_init" {
				out[c.Function] += n
			}
		}
		return out
	}
	if d := cmp.Diff(inner, byName(read(counts.Function, false))); d != "" {
		t.Errorf("with inlined calls (-addr2line +here)\n%s", d)
	}
	if d := cmp.Diff(outer, byName(read(counts.Function, true))); d != "" {
		t.Errorf("without (-addr2line +here)\n%s", d)
	}
	if inner["innermost"] == 0 || outer["innermost"] > 0 || inner["both"] == 0 {
		t.Errorf("the program has not the samples that it was made for: %v, %v", inner, outer)
	}
	own := map[string]int64{}
	sources := read(counts.SourceFile, false)
	for i := 1; i < len(sources.Scopes); i++ {
		if c := sources.Scopes[i].Code; c.File != "" {
			own[path.Base(c.File)] += sources.Cell(i, 0).Samples
		}
	}
	if d := cmp.Diff(files, own); d != "" {
		t.Errorf("by source file (-addr2line +here)\n%s", d)
	}
	// The same functions in the callchains, as those that samples were taken in.
	s, err := open(t, data).Stacks(samples.Options{By: counts.Function, Calls: samples.Calls{View: samples.Children}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	atRow := make([]int64, len(s.Table().Scopes))
	for x := range s.All() {
		atRow[x.Place] += x.Cells[0].Samples
	}
	for i := 1; i < len(atRow); i++ {
		if want := s.Table().Cell(i, 0).Samples; atRow[i] != want {
			t.Errorf("stacks have %d samples at %s, its row %d", atRow[i], s.Table().Scopes[i].Label, want)
		}
	}
	_, self, err := s.CallTable() // the stacks end
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]int64{}
	for i := 1; i < len(self.Scopes); i++ {
		if n := self.Cell(i, 0).Samples; n > 0 && self.Scopes[i].Code.Module == "prog" && self.Scopes[i].Code.Function != "_init" {
			called[self.Scopes[i].Code.Function] += n
		}
	}
	if d := cmp.Diff(inner, called); d != "" {
		t.Errorf("callchains (-addr2line +here)\n%s", d)
	}
}
