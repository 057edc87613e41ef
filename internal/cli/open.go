package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/progress"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// choice is the user's choice of method. Parameters have been checked to be NAME=VALUE.
func (c *common) choice() resolve.Choice {
	choice := resolve.Choice{CPU: c.cpu, Model: c.model, ModelFiles: c.files, Penalties: c.penalties, SMT: c.smt,
		Workload: model.Workload(c.workload), Level: c.level, Nodes: c.nodes}
	for _, p := range c.params {
		name, value, _ := strings.Cut(p, "=")
		choice.Params = append(choice.Params, resolve.Param{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return choice
}

// resolver resolves the user's choice.
func (c *common) resolver() (*resolve.Resolver, error) { return resolve.New(c.choice()) }

// recordings are those of a command, with the user's choice.
func (c *common) recordings(files ...string) (*recorded.Recordings, error) {
	choice := c.choice()
	choice.Here, _ = model.HostID(os.DirFS("/")) // "" where it is not known
	r, err := resolve.New(choice)
	if err != nil {
		return nil, err
	}
	recs := recorded.New(r, files...)
	recs.Say, recs.Note = spelled, noteText
	return recs, nil
}

// recordings are those of a command that shows on a terminal how far it is.
func (a *app) recordings(c *common, files ...string) (*recorded.Recordings, error) {
	recs, err := c.recordings(files...)
	if err != nil {
		return nil, err
	}
	if a.files == nil {
		a.files = progress.Of(a.err)
	}
	recs.Progress = func(name string, read, size int64) { a.files.Read(oneLine(filepath.Base(name)), read, size) }
	return recs, nil
}

// spelled is the text of an error with the flags and commands that would change it.
// Packages name options only; how these are spelled is known here.
func spelled(err error) string {
	var nothing *accounting.NothingError
	if errors.As(err, &nothing) {
		return nothingText(nothing)
	}
	text := err.Error()
	var option *fault.OptionError
	var node *resolve.NodeError
	switch {
	case errors.As(err, &option):
		flag := "--" + option.Error()
		if option.Option == "output" {
			flag = "-o" + strings.TrimPrefix(option.Error(), option.Option)
		}
		text = strings.Replace(text, option.Error(), flag, 1)
	case errors.As(err, &node) && node.Option != "":
		text = strings.Replace(text, node.Error(), "--"+node.Error(), 1)
	}
	return fault.Spell(text, err, func(n fault.Name) string { return "--" + string(n) }) + suggestion(err)
}

// suggestion is what could change an error: flags to add, commands to run.
func suggestion(err error) string {
	var cpu *resolve.UnknownCPUError
	var node *resolve.NodeError
	switch {
	case errors.As(err, &cpu):
		return cpuSuggestion(cpu)
	case errors.As(err, &node) && node.Model == nil:
		return fmt.Sprintf(" (cyclestack models --cpu %s prints the trees)", node.CPU)
	case errors.As(err, &node):
		return fmt.Sprintf(" (%s prints the tree)", treeCommand(node.CPU, node.Model))
	case errors.As(err, new(*resolve.PenaltiesError)):
		return " (--penalties none goes without, cyclestack calibrate measures them anew)"
	}
	return recordedSuggestion(err) + liveSuggestion(err) + catalogueSuggestion(err)
}

// liveSuggestion is suggestion for errors of package measure.
func liveSuggestion(err error) string {
	var target *perfevent.TargetError
	switch {
	case errors.As(err, new(*measure.NoPMUError)):
		return "; cyclestack doctor says what would change that"
	case errors.Is(err, measure.ErrNoEvents):
		return "; -e names others"
	case errors.As(err, &target):
		return noteText(counts.Note{Fix: target.Fix})
	}
	return ""
}

// catalogueSuggestion is what could change an error of the catalogue, "" for others.
func catalogueSuggestion(err error) string {
	var cpu *model.UnknownCPUError
	var method *model.UnknownModelError
	var faults model.Errors
	switch {
	case errors.As(err, &cpu) && cpu.Hint == "" && len(cpu.Near) == 0:
		return "; cyclestack models lists those that are known"
	case errors.As(err, &method) && len(method.Have) == 0:
		return "; --model-file can give one"
	case errors.As(err, &faults) && len(faults) > 1:
		return "; cyclestack lint prints them all"
	case errors.Is(err, model.ErrNoHostID):
		return ": name it with --cpu"
	}
	return ""
}

func cpuSuggestion(e *resolve.UnknownCPUError) string {
	if e.File == "" {
		return ": add --cpu NAME, or a recording"
	}
	hint := e.Candidates()
	if hint == "" {
		hint = "its events are known everywhere: cyclestack models lists the names; --cpu generic is any"
	}
	return ": add --cpu NAME, or --cpu native if it is this machine's (" + hint + ")"
}

// nothingText is the text of an error with what is known besides, and what to do.
func nothingText(e *accounting.NothingError) string {
	bare := *e
	bare.Detail = counts.Note{}
	text, detail := bare.Error(), noteText(e.Detail)
	switch e.Reason {
	case accounting.NothingCounted:
		if detail != "" {
			text += ": " + detail
		}
		return text + "; cyclestack doctor says what can be counted here"
	case accounting.NotCounted:
		return text
	case accounting.AboutCores:
		return text + ": cyclestack smt " + strings.Join(e.Files, " ")
	case accounting.SamplesOnly:
		detail = "--by function says where the samples are"
	}
	text += fmt.Sprintf(" (%s prints the tree)", treeCommand(e.Method.CPU.Name, e.Method.Model))
	if detail != "" {
		text += "; " + detail
	}
	return text
}

// recordedSuggestion is suggestion for errors of package recorded.
func recordedSuggestion(err error) string {
	switch {
	case errors.As(err, new(*recorded.SamplesError)):
		return "; --interval is for --by interval, and --top, --expand, --sysroot, --vmlinux, --kallsyms and the filters are about samples: --by " + strings.Join(placeNames(), ", ")
	case errors.As(err, new(*recorded.MixtureError)):
		return ": cyclestack diff compares them, and --together adds them up"
	}
	return ""
}

// treeCommand is the command that prints a method's tree. The method may be one for
// other processors, such as that for the operating system's counters.
func treeCommand(cpu string, m *model.Model) string {
	if list := m.CPUs; len(list) > 0 && !slices.Contains(list, cpu) {
		cpu = list[0]
	}
	return shell.Line([]string{"cyclestack", "models", "--cpu", cpu, "--model", m.Name})
}
