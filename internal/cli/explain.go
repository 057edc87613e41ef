package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

func (a *app) explain() *cobra.Command {
	c, full, code := &common{}, false, profile.Config{}
	cmd := &cobra.Command{
		Use:     "explain [NODE [FILE]]",
		GroupID: "catalogue",
		Short:   "Say what a node means, what usually causes it, and what to try",
		Long: `explain says what a node of an account means, what usually causes it, and what to try.
With a recording it has the node's value, and the formula has the recording's
numbers. Fifteen lines are enough for that. --formula prints the whole expression
with its operands, the node's parts and its source. Without a node it lists those of
the method.`,
		Example: `  cyclestack explain --cpu core2 --level 2
  cyclestack explain L2_Miss --cpu core2
  cyclestack explain LSU_STALL_CPI examples/power7-cpi.txt
  cyclestack explain --formula LSU_STALL_CPI examples/power7-cpi.txt
  cyclestack explain Chain_Latency --sysroot examples/annotate examples/annotate.data`,
		Args: arguments(0, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listNodes(c)
			}
			return a.runExplain(c, full, code, args[0], args[1:])
		},
	}
	cmd.ValidArgsFunction = c.nodeNames
	cmd.Flags().BoolVar(&full, "formula", false, "the whole expression with its operands, and everything that is known of the node")
	c.addModel(cmd)
	cmd.Flags().IntVar(&c.level, "level", 0, "deepest level of the list of nodes; 0 is all")
	c.addParams(cmd)
	a.addSymbols(cmd, &code)
	c.addOutput(cmd, report.Formats[report.Explanation]()...)
	return cmd
}

func (a *app) runExplain(c *common, full bool, code profile.Config, name string, files []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return usageError("name a node (cyclestack models --cpu NAME prints the trees)")
	}
	recs, err := a.recordings(c, files...)
	if err != nil {
		return err
	}
	defer recs.Close()
	var m *resolve.Method
	var acc *account.Account
	if len(files) > 0 {
		m, acc, err = recs.First(name, code)
	} else {
		m, acc, err = a.unnamed(c, recs, name)
	}
	if err != nil {
		return err
	}
	node, err := m.Node(name)
	if err != nil {
		return err
	}
	e := report.Explanation{CPU: m.CPU, Model: m.Model, Node: node, Account: acc, Events: m.Events, Params: m.Account.Params(), Measured: m.Measured, Full: full}
	return a.document(c, e, files...)
}

// listNodes prints the nodes of the method, the first if none is chosen.
func (a *app) listNodes(c *common) error {
	if err := c.check(); err != nil {
		return err
	}
	r, err := c.resolver()
	if err != nil {
		return err
	}
	if r, err = a.here(c, r, "explain"); err != nil {
		return err
	}
	return a.printModels(c, r.Catalogue, r.Choice, true)
}

// unnamed finds a node where no recording is named: without a processor in what was measured
// last, else among the methods of the processor, by default this machine's.
func (a *app) unnamed(c *common, recs *recorded.Recordings, name string) (*resolve.Method, *account.Account, error) {
	if c.cpu == "" {
		if m, acc, ok := a.measured(c, name); ok {
			return m, acc, nil
		}
	}
	r, err := a.here(c, recs.Resolver, "explain")
	if err != nil {
		return nil, nil, err
	}
	m, err := r.ForNode(name)
	return m, nil, err
}

// measured finds a node in what was measured last.
func (a *app) measured(c *common, name string) (*resolve.Method, *account.Account, bool) {
	quiet := *a
	quiet.err = io.Discard
	file, _, err := quiet.last("explain", false)
	if err != nil {
		return nil, nil, false
	}
	recs, err := a.recordings(c, file)
	if err != nil {
		return nil, nil, false
	}
	defer recs.Close()
	m, acc, err := recs.First(name, profile.Config{})
	if err != nil {
		return nil, nil, false
	}
	if _, err := m.Node(name); err != nil {
		return nil, nil, false
	}
	_, _, _ = a.last("explain", false) // says which it was
	return m, acc, true
}

// here is a resolver for this machine's processor, if the user names none. It says so on
// standard error.
func (a *app) here(c *common, r *resolve.Resolver, command string) (*resolve.Resolver, error) {
	if c.cpu != "" {
		return r, nil
	}
	id, err := model.HostID(a.kernel.Root)
	if err != nil {
		return r, nil // what follows says that a processor is missing
	}
	if _, err := r.Catalogue.CPU(id); err != nil {
		return r, nil
	}
	choice := r.Choice
	choice.CPU = id
	fmt.Fprintf(a.err, "cyclestack %s: of this machine's processor, %s (--cpu names another)\n", command, id)
	return resolve.With(r.Catalogue, choice)
}
