package cli

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/kept"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/report"
)

// common are the flags that several commands share.
type common struct {
	cpu       string
	model     string
	files     []string // --model-file
	params    []string
	penalties string
	smt       string
	workload  string
	level     int
	all       bool
	verbose   bool
	notes     bool
	nodes     string
	by        string
	format    string
	formats   []string // that format may be
	output    string
	color     string
	width     int
}

// addModel adds the flags that choose processor and model.
func (c *common) addModel(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*processor)(&c.cpu), "cpu", "processor, by `ID` or name: GenuineIntel-6-55-4, 0x00000000410fd0c0, skylakex, power7; native is this machine's")
	f.StringVar(&c.model, "model", "", "`NAME` of the method (default: the processor's first)")
	f.StringArrayVar(&c.files, "model-file", nil, "`FILE` or directory of further models (may be repeated)")
	_ = cmd.RegisterFlagCompletionFunc("cpu", completeNames(resolve.CPUNames))
	_ = cmd.RegisterFlagCompletionFunc("model", completeNames(resolve.ModelNames))
}

// A processor is a flag that names one, which is replaced by its identification if it is
// this machine's.
type processor string

func (p *processor) String() string { return string(*p) }
func (p *processor) Type() string   { return "ID" }

func (p *processor) Set(text string) error {
	if text == "native" {
		id, err := model.HostID(os.DirFS("/"))
		if err != nil {
			return err
		}
		text = id
	}
	*p = processor(text)
	return nil
}

// addParams adds the flags that set a model's parameters.
func (c *common) addParams(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&c.params, "param", "P", nil, "set a parameter of the model, `NAME=VALUE` (may be repeated)")
	f.StringVar(&c.smt, "smt", "", "whether logical processors shared their cores: `on|off`")
	f.StringVar(&c.workload, "workload", "", "kind of program, for the judgement of values: `client|server|hpc`")
	f.StringVar(&c.penalties, "penalties", "", "take parameters from a `FILE` of NAME = VALUE lines (TOML); auto is what calibrate has stored for the very processor, none is the method's own (default: auto)")
	completeWords(cmd, "smt", "on", "off")
	completeWords(cmd, "workload", "client", "server", "hpc")
}

// addNodes adds the flags that choose nodes.
func (c *common) addNodes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&c.level, "level", 0, "deepest level shown; 0 is all")
	f.BoolVar(&c.all, "all", false, "also the nodes outside the main tree")
	f.StringVar(&c.nodes, "nodes", "", "only nodes whose name or path matches `PATTERN` (*, ?; several by commas), with their parents")
	_ = cmd.RegisterFlagCompletionFunc("nodes", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return c.nodeNames(cmd, nil, word)
	})
}

// addScreen adds the flags that print more than a screen.
func (c *common) addScreen(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&c.verbose, "verbose", "v", false, "all nodes, checks and notes, on as many lines as they take; the long form of streams in json and csv")
	f.BoolVar(&c.notes, "notes", false, "the notes instead of their number")
}

// addOutput adds the flags that say how and where to print.
func (c *common) addOutput(cmd *cobra.Command, formats ...string) {
	c.formats = formats
	f := cmd.Flags()
	f.StringVar(&c.format, "format", formats[0], "output format: `"+strings.Join(formats, "|")+"`")
	f.StringVarP(&c.output, "output", "o", "", "write to `FILE` instead of standard output")
	f.StringVar(&c.color, "color", "auto", "colours: `auto|always|never`")
	f.IntVar(&c.width, "width", 0, "columns to print in (default: the terminal's)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
}

// addSymbols adds the flags that say where the programs and the kernel of a recording are. What
// is read of programs is kept.
func (a *app) addSymbols(cmd *cobra.Command, to *profile.Config) {
	to.Indexes = kept.NewIndexes(a.kernel.Cache)
	f := cmd.Flags()
	f.StringVar(&to.Root, "sysroot", "", "`DIRECTORY` with the recorded programs, their debug files and sources")
	f.StringVar(&to.Root, "symfs", "", "the same, as perf calls it")
	f.Var((*readable)(&to.Vmlinux), "vmlinux", "kernel with symbols, a `FILE`")
	f.Var((*readable)(&to.Kallsyms), "kallsyms", "copy of /proc/kallsyms of the machine that was recorded, a `FILE`")
}

// A readable is a flag that names a file to read: one that cannot be opened is refused
// at once, for its names would be missing without a word.
type readable string

func (r *readable) Set(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return output.Reason(err)
	}
	*r = readable(name)
	return f.Close()
}

func (r *readable) String() string { return string(*r) }
func (r *readable) Type() string   { return "string" }

// knownModel refuses the name of a model that no processor has, whatever source is going
// to be used.
func (c *common) knownModel() error {
	if c.model == "" {
		return nil
	}
	cat, err := c.catalogue()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(cat.Models(""), func(m model.ModelInfo) bool { return m.Name == c.model }) {
		return usageError("--model %s: there is none of that name (cyclestack models lists them)", c.model)
	}
	return nil
}

// check refuses values of flags that mean nothing.
func (c *common) check() error {
	if !slices.Contains(c.formats, c.format) {
		return usageError("--format %s: there are %s", c.format, strings.Join(c.formats, ", "))
	}
	if c.color != "" && !slices.Contains([]string{"auto", "always", "never"}, c.color) {
		return usageError("--color %s: must be auto, always or never", c.color)
	}
	if c.level < 0 {
		return usageError("--level %d: levels begin at 1; 0 is all", c.level)
	}
	if c.workload != "" && !slices.Contains(model.Workloads, model.Workload(c.workload)) {
		return usageError("--workload %s: must be client, server or hpc", c.workload)
	}
	for _, p := range c.params {
		if name, _, ok := strings.Cut(p, "="); !ok || strings.TrimSpace(name) == "" {
			return usageError("--param %s: must be NAME=VALUE", p)
		}
	}
	if c.width < 0 || c.width > 10000 {
		return usageError("--width %d: not a usable number of columns", c.width)
	}
	return nil
}

// catalogue loads the embedded models and the user's own.
func (c *common) catalogue() (*model.Catalogue, error) {
	choice := c.choice()
	return choice.Catalogue()
}

// brief reports whether an account is one screen: nothing more was asked for.
func (c *common) brief() bool { return !c.verbose && !c.all && c.level == 0 && c.nodes == "" }

// screenLines is how many lines of a screen an account takes.
const screenLines = 24

// options are the report's options for an output.
func (c *common) options(out io.Writer) report.Options {
	o := report.Options{Long: c.verbose, Level: c.level, All: c.all, Nodes: c.nodes, Width: c.width, Titles: true, Color: c.color == "always", Note: spell.Note, Step: spell.Step}
	if c.brief() {
		o.Lines = screenLines
	}
	o.Notes = c.notes
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	if c.color == "auto" && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		o.Color = true
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && o.Width == 0 {
		o.Width = w
	}
	return o
}

// completeNames completes with names of the catalogue.
func completeNames(names func() []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), cobra.ShellCompDirectiveNoFileComp
	}
}
