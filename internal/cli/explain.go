package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

func (a *app) explain() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "explain NODE [FILE]",
		GroupID: "catalogue",
		Short:   "Say what a node means, what usually causes it, and what to try",
		Long: `explain says in words what a node of an account means, what usually causes it, what
to try, its formula, and where that comes from. With a recording, the formula is
shown with the recording's numbers put in.`,
		Example: `  cyclestack explain L2_Miss --cpu core2
  cyclestack explain LSU_STALL_CPI examples/power7-cpi.txt`,
		Args: arguments(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return a.runExplain(c, args[0], args[1:]) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	c.addOutput(cmd, listFormats...)
	return cmd
}

func (a *app) runExplain(c *common, name string, files []string) error {
	if err := c.check(listFormats...); err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return usageError("name a node (cyclestack models --cpu NAME prints the trees)")
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	var acc *account.Account
	if len(files) > 0 {
		acc, err = s.whole(files[0], name)
	} else {
		err = s.settleFor(name)
	}
	if err != nil {
		return err
	}
	node, err := s.node(name)
	if err != nil {
		return err
	}
	e := report.Explanation{CPU: s.cpu, Model: s.model, Node: node, Account: acc, Events: s.events, Params: s.method.Params(), Measured: s.measured}
	return a.document(c, e, files...)
}

// settleFor chooses processor and method for a node without a recording: the
// processor's first method that has the node.
func (s *session) settleFor(node string) error {
	if s.cpu == nil {
		return usageError("add --cpu NAME, or a recording: what %s means depends on the processor", node)
	}
	if s.c.model != "" {
		return s.settleModel("")
	}
	near := ""
	for _, info := range s.cat.Models(s.cpu.Name) {
		m, err := s.cat.Model(info.Name, s.cpu.Name)
		if err != nil {
			return err
		}
		if has(m, node) {
			return s.settleModel(info.Name)
		}
		near = cmp.Or(near, meant(m, node))
	}
	return usageError("no method for %s has a node %s%s (cyclestack models --cpu %s prints the trees)", s.cpu.Name, node, near, s.cpu.Name)
}

// has reports whether a model has a node, by name or path, whatever its case.
func has(m *model.Model, node string) bool {
	return slices.ContainsFunc(m.Nodes, func(n model.Node) bool {
		return strings.EqualFold(n.Name, node) || strings.EqualFold(n.Path, node)
	})
}

// node finds a node by name, whatever its case, or by path.
func (s *session) node(name string) (int, error) {
	i := slices.IndexFunc(s.model.Nodes, func(n model.Node) bool {
		return strings.EqualFold(n.Name, name) || strings.EqualFold(n.Path, name)
	})
	if i < 0 {
		return 0, usageError("%s for %s has no node %s%s (%s prints the tree)", s.model.Name, s.cpu.Name, name, meant(s.model, name), s.tree())
	}
	return i, nil
}

// errStop ends the reading of a file early.
var errStop = errors.New("stop")

// whole is the account of a file's first run, by the method that fits it best of
// those that have the node.
func (s *session) whole(file, node string) (*account.Account, error) {
	total := counts.NewTotal(0)
	s.having = node
	err := tablesOf(file, 0, func(_ source.Reader, t *counts.Table, file string) error {
		if err := s.settle(t, file, ""); err != nil {
			return err
		}
		if total.Begins(t) {
			return errStop
		}
		return total.Add(t)
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	t := total.Table()
	if t == nil {
		return nil, inputError(fmt.Errorf("%s: it holds no counts", file))
	}
	return s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil), nil
}
