package cli

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) models() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "models [NAME]",
		GroupID: "catalogue",
		Short:   "List the methods and processors; with --cpu, print a method's tree",
		Example: `  cyclestack models
  cyclestack models --cpu power7
  cyclestack models --cpu core2 core2-cycles --format json`,
		Args: arguments(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			cat, err := c.catalogue()
			if err != nil {
				return err
			}
			choice := c.choice()
			if len(args) == 1 {
				choice.Model = args[0]
			}
			if choice.CPU == "" && choice.Model == "" {
				return a.document(c, report.Methods{List: cat.Models(""), CPUs: cat.CPUs()})
			}
			return a.printModels(c, cat, choice, false)
		},
	}
	c.addModel(cmd)
	cmd.Flags().IntVar(&c.level, "level", 0, "deepest level of the trees; 0 is all")
	c.addOutput(cmd, report.Formats[report.Methods]()...)
	return cmd
}

// printModels prints the trees of a processor's methods, or only of the first, or the
// one method asked for.
func (a *app) printModels(c *common, cat *model.Catalogue, choice resolve.Choice, first bool) error {
	r, err := resolve.With(cat, choice)
	if err != nil {
		return err
	}
	cpu := r.Named().CPU
	if cpu == nil {
		return usageError("add --cpu NAME: the tree of %s depends on the processor", choice.Model)
	}
	list, err := resolve.Models(cat, cpu.Name, choice.Model)
	if err != nil {
		return fault.As(fault.Usage, err)
	}
	if first {
		list = list[:1]
	}
	return a.document(c, report.Trees{CPU: cpu, List: list})
}

func (a *app) events() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "events [PATTERN]",
		GroupID: "catalogue",
		Short:   "List a processor's events with their encodings",
		Long: `events lists the events of a processor whose name matches a pattern (*, ?; case
does not matter; a pattern without them matches anywhere in the name), or whose
encoding is the one given.`,
		Example: `  cyclestack events --cpu core2 'LOAD_BLOCK*'
  cyclestack events --cpu power7 0x400fa
  cyclestack events --cpu core2 cpu/event=0xa0,cmask=1,inv/`,
		Args: arguments(0, 1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runEvents(c, args) },
	}
	c.addModel(cmd)
	c.addOutput(cmd, report.Formats[report.Events]()...)
	return cmd
}

func (a *app) runEvents(c *common, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	r, err := c.resolver()
	if err != nil {
		return err
	}
	if r, err = a.here(c, r, "events"); err != nil {
		return err
	}
	cpu := r.Named().CPU
	if cpu == nil {
		return usageError("add --cpu NAME: events differ from processor to processor")
	}
	table, err := r.Catalogue.Events(cpu)
	if err != nil {
		return err
	}
	pattern := "*"
	if len(args) == 1 {
		pattern = args[0]
	}
	list, err := resolve.FindEvents(table, pattern)
	if err != nil {
		return err
	}
	switch {
	case len(table.Events()) == 0:
		return usageError("%s has no events of its own, only those that the kernel names for any processor: perf list hw cache prints them", cpu.Name)
	case len(list) == 0:
		return usageError("no event of %s matches %q", cpu.Name, pattern)
	}
	return a.document(c, report.Events{CPU: cpu, List: list})
}

func (a *app) lint() *cobra.Command {
	c := &common{}
	notes := false
	cmd := &cobra.Command{
		Use:     "lint [FILE…]",
		GroupID: "catalogue",
		Short:   "Check model files; without a file, the embedded ones",
		Long: `lint checks model files: names are defined, units add up, children can sum to their
parent, thresholds are reachable, events exist on the processor. The exit status is 1 if there is an error.`,
		Example: `  cyclestack lint
  cyclestack lint my-model.toml`,
		RunE: func(_ *cobra.Command, files []string) error { return a.runLint(c, notes, files) },
	}
	cmd.Flags().BoolVar(&notes, "notes", false, "also what is only good to know")
	c.addOutput(cmd, report.Formats[report.Findings]()...)
	return cmd
}

func (a *app) runLint(c *common, notes bool, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	cat, err := model.Embedded()
	if err != nil {
		return err
	}
	found, unread := resolve.Lint(cat, files)
	if unread != nil {
		unread = inputError(unread)
		if len(found) == 0 {
			return unread
		}
	}
	err = errors.Join(unread, a.document(c, report.Findings{List: found, All: notes}))
	if err == nil && slices.ContainsFunc(found, func(f model.Finding) bool { return f.Severity == model.SevError }) {
		return errNo
	}
	return err
}
