package cli

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/measure/simulated"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// spellStep spells a next step as a complete command. After a live measurement, it counts
// the same again. After a recording that can say more, it reads the same file again.
// Otherwise it is a command of perf, for the machine where the recording was made.
func spellStep(h report.Header, a *account.Account, s account.Step) report.Step {
	m := stepMethod{h, a}
	name := ""
	if s.Node >= 0 {
		name = a.Model().Nodes[s.Node].Name
	}
	nodes := " --nodes " + shell.Quote(strings.Join(s.Nodes, ","))
	plan := "cyclestack plan --perf --cpu " + m.cpu() + m.flags()
	again := m.flags() + m.params() + " " + shell.Line(h.Again)
	switch s.Kind {
	case account.StepConfirm:
		if s.Live {
			return report.Step{Command: "cyclestack stat --no-multiplex" + nodes + again, Why: "whether it is: each group of events in a run of its own"}
		}
		return report.Step{Command: "cyclestack plan --perf --no-multiplex --cpu " + m.cpu() + m.flags() + nodes, Why: "prints the perf commands to count with: whether it is"}
	case account.StepParts, account.StepBehind:
		why := "which part of " + name + " it is"
		if s.Kind == account.StepBehind {
			why = "what can be behind " + name
		}
		if s.Level > 0 {
			nodes += fmt.Sprintf(" --level %d", s.Level)
		}
		if s.Live {
			return report.Step{Command: "cyclestack stat" + nodes + again, Why: why}
		}
		return report.Step{Command: plan + nodes, Why: "prints the perf command to count with: " + why}
	case account.StepFunctions:
		return report.Step{Command: "cyclestack report --by function" + m.reading(), Why: "which functions it is in"}
	case account.StepLines:
		return report.Step{Command: "cyclestack report --by line" + m.reading(), Why: "which lines it is in"}
	case account.StepSampleTime:
		return report.Step{Command: "cyclestack record " + shell.Line(h.Again), Why: "samples where the time goes"}
	case account.StepSample:
		if s.Live {
			return report.Step{Command: "cyclestack record --nodes " + name + m.flags() + " " + shell.Line(h.Again), Why: "which lines it is in"}
		}
		where := "run where it was counted"
		if a.Label == "" {
			where += ", or -- PROGRAM instead of -a"
		}
		return report.Step{Command: "perf record -e " + shell.Quote(s.Event) + " " + perfTarget(a.Label),
			Why: where + "; cyclestack report --by line perf.data then says where it is"}
	case account.StepSimulate:
		return report.Step{Command: "cyclestack simulate " + shell.Line(h.Again),
			Why: "caches and branches; runs it again, about " + simulated.Roughly(s.Takes)}
	case account.StepAnnotate:
		words := slices.Concat([]string{"cyclestack", "annotate"}, programsOf(h.Reading), h.Files, []string{s.Symbol})
		return report.Step{Command: shell.Line(words), Why: "its code, line by line"}
	case account.StepSet:
		return report.Step{Command: plan + " --set " + s.Set, Why: "prints the perf command that counts what matters in it"}
	case account.StepExplain:
		command := fmt.Sprintf("cyclestack explain %s --cpu %s%s", name, m.cpu(), m.flags())
		if len(h.Files) > 0 {
			command += m.params() + " " + shell.Quote(h.Files[0])
		}
		return report.Step{Command: command, Why: "what it means, and what to try"}
	}
	return report.Step{}
}

// programsOf are those of the flags that read a file which say where programs are.
func programsOf(reading []string) []string {
	var words []string
	for i := 0; i+1 < len(reading); i += 2 {
		if slices.Contains([]string{"--sysroot", "--vmlinux", "--kallsyms"}, reading[i]) {
			words = append(words, reading[i], reading[i+1])
		}
	}
	return words
}

// perfTarget is what was counted, as perf takes it at a command line's end, if the recording
// says: if the quotes of a program's words are lost, or no program is named, it is the whole
// machine.
func perfTarget(label string) string {
	const forSomeTime = " -- sleep 10"
	for _, of := range []struct{ prefix, flag string }{{"CPU(s) ", "-C "}, {"process id ", "-p "}, {"thread id ", "-t "}} {
		if list, ok := strings.CutPrefix(label, of.prefix); ok {
			return of.flag + shell.Quote(strings.Trim(list, "'")) + forSomeTime
		}
	}
	if command := strings.Fields(label); len(command) == 2 && path.Base(command[0]) == "sleep" { // the machine for a while
		return "-a" + forSomeTime
	}
	if label == "system wide" || label == "" || strings.ContainsAny(label, "&;|<>()$`\\\"'*?[]{}!#~\n") {
		return "-a" + forSomeTime
	}
	return "-- " + label
}

// A stepMethod is the method of an account, with the flags that choose it again.
type stepMethod struct {
	h report.Header
	a *account.Account
}

// cpu names the processor that finds the method: a method for any processor may have
// been used on another one.
func (m stepMethod) cpu() string {
	if m.h.ModelFlag == "" && len(m.h.Model.CPUs) > 0 && !slices.Contains(m.h.Model.CPUs, m.h.CPU.Name) {
		return m.h.Model.CPUs[0] + " --model " + shell.Quote(m.h.Model.Name)
	}
	return m.h.CPU.Name
}

// flags are those that chose the method.
func (m stepMethod) flags() string {
	var flags string
	for _, f := range m.h.ModelFiles {
		flags += " --model-file " + shell.Quote(f)
	}
	if m.h.ModelFlag != "" {
		flags += " --model " + shell.Quote(m.h.ModelFlag)
	}
	return flags
}

// params are the flags for the parameters that the user set.
func (m stepMethod) params() string {
	var flags string
	for _, name := range slices.Sorted(maps.Keys(m.h.Params)) {
		switch v := m.h.Params[name]; {
		case name == "#smt_on" && len(m.h.Again) > 0: // it was found out, and will be again
		case name == "#smt_on" && v != 0:
			flags += " --smt on"
		case name == "#smt_on":
			flags += " --smt off"
		default:
			flags += " --param " + shell.Quote(name+"="+page.Decimal(v))
		}
	}
	if w := m.a.Binding.Method.Workload; w != model.AnyWorkload {
		flags += " --workload " + string(w)
	}
	return flags
}

// reading are the flags that read a file in the same way again, and the file.
func (m stepMethod) reading() string {
	flags := ""
	if m.h.CPUID != "" {
		flags = " --cpu " + shell.Quote(m.h.CPUID)
	}
	flags += m.flags() + m.params()
	if len(m.h.Reading) > 0 {
		flags += " " + shell.Line(m.h.Reading)
	}
	if len(m.h.Files) == 0 { // what was measured last is read
		return strings.TrimSpace(flags)
	}
	return flags + " " + shell.Quote(m.h.Files[0])
}
