package cli

import (
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/report"
)

// next is the command that looks closer at a recording's places: from modules to
// functions, and from the function with the most cycles to its code.
func (p *placer) next(t *counts.Table, kept []int) report.Step {
	if p.file == "" || slices.Contains(p.files, "-") {
		return report.Step{} // there is none that could be read again
	}
	switch kinds := p.by.kinds; {
	case len(kinds) == 0 || slices.Equal(kinds, []counts.Kind{counts.Module}):
		return report.Step{Command: p.again("report", "--by", "function"), Why: "which functions it is in"}
	case !slices.Equal(kinds, []counts.Kind{counts.Function}) || len(kept) == 0:
		return report.Step{}
	}
	code := t.Scopes[kept[0]].Code
	switch {
	case isSimulated(p.kind):
		return report.Step{Command: p.again("report", "--by", "line"), Why: "which lines it is in"}
	case code == nil || code.Function == "" || strings.HasPrefix(code.Module, "[") || strings.HasSuffix(code.Module, ".map"):
		return report.Step{} // its code is not in a file
	}
	return report.Step{Command: p.again("annotate") + " " + shell.Line([]string{code.Function}), Why: "its code, line by line"}
}

// again is the command line that reads the same recording with the same choices: a
// report all that was given, with what says which samples count; another command, which
// has no such flags, the first file.
func (p *placer) again(command ...string) string {
	words := append([]string{"cyclestack"}, command...)
	c := p.s.c
	for _, of := range []struct{ flag, value string }{
		{"--cpu", c.cpu}, {"--model", c.model}, {"--smt", c.smt}, {"--workload", c.workload}, {"--penalties", c.penalties},
	} {
		if of.value != "" {
			words = append(words, of.flag, of.value)
		}
	}
	for _, file := range c.files {
		words = append(words, "--model-file", file)
	}
	for _, param := range c.params {
		words = append(words, "--param", param)
	}
	words = append(words, p.f.programs()...)
	if command[0] != "report" {
		return shell.Line(append(words, p.file))
	}
	words = append(words, p.f.choice()...)
	if p.f.together {
		words = append(words, "--together")
	}
	return shell.Line(append(words, p.files...))
}

// programs are the flags that are given of those that say where programs are.
func (f *placeFlags) programs() []string {
	var words []string
	for _, of := range []struct{ flag, value string }{
		{"--sysroot", f.symbols.Root}, {"--vmlinux", f.symbols.Vmlinux}, {"--kallsyms", f.symbols.Kallsyms},
	} {
		if of.value != "" {
			words = append(words, of.flag, of.value)
		}
	}
	return words
}

// choice are the flags that are given of those that say which samples count.
func (f *placeFlags) choice() []string {
	var words []string
	for _, g := range f.filter.given() {
		words = append(words, g.flag, g.text)
	}
	return words
}
