package cli

import (
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// next is the command that looks closer at a recording's places: from modules to
// functions, and from the function with the most cycles to its code.
func (p *placer) next(t *counts.Table, kept []int) report.Step {
	if p.file == "-" || p.file == "" {
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
	return report.Step{Command: p.again("annotate") + " " + report.CommandLine([]string{code.Function}), Why: "its code, line by line"}
}

// again is the command line that reads the same file with the same choices.
func (p *placer) again(command ...string) string {
	words := append([]string{"cyclestack"}, command...)
	c, f := p.s.c, p.f
	for _, of := range []struct{ flag, value string }{
		{"--cpu", c.cpu}, {"--model", c.model}, {"--smt", c.smt}, {"--workload", c.workload}, {"--penalties", c.penalties},
		{"--sysroot", f.root}, {"--vmlinux", f.vmlinux}, {"--kallsyms", f.kallsyms},
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
	return report.CommandLine(append(words, p.file))
}
