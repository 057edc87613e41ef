package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) explain() *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use:     "explain NODE [FILE]",
		GroupID: "catalogue",
		Short:   "Say what a node means, what usually causes it, and what to try",
		Long: `explain says what a node of an account means, what usually causes it, and what to try.
It shows the node's formula and its source. With a recording the formula has the
recording's numbers.`,
		Example: `  cyclestack explain L2_Miss --cpu core2
  cyclestack explain LSU_STALL_CPI examples/power7-cpi.txt`,
		Args: arguments(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return a.runExplain(c, args[0], args[1:]) },
	}
	c.addModel(cmd)
	c.addParams(cmd)
	c.addOutput(cmd, report.Formats[report.Explanation]()...)
	return cmd
}

func (a *app) runExplain(c *common, name string, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return usageError("name a node (cyclestack models --cpu NAME prints the trees)")
	}
	recs, err := c.recordings(files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	var m *resolve.Method
	var acc *account.Account
	if len(files) > 0 {
		m, acc, err = recs.First(name)
	} else {
		m, err = recs.ForNode(name)
	}
	if err != nil {
		return err
	}
	node, err := m.Node(name)
	if err != nil {
		return err
	}
	e := report.Explanation{CPU: m.CPU, Model: m.Model, Node: node, Account: acc, Events: m.Events, Params: m.Account.Params(), Measured: m.Measured}
	return a.document(c, e, files...)
}
