package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/page"
)

// Help texts fit a terminal of 80 columns, and break between words.
const (
	helpWidth = 80
	flagWidth = 30 // of a flag with its argument, in front of what it does
)

// shells are those that completion has a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// addHelp gives the program help texts that fit a terminal, and errors for help about
// what does not exist.
func addHelp(root *cobra.Command) {
	plain := (&cobra.Command{}).HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		var b bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&b)
		plain(c, args)
		c.SetOut(out)
		_, _ = io.WriteString(out, fitted(b.String()))
	})
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		GroupID: "catalogue",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 && len(args) > 0 {
				return usageError("%q is not a command: cyclestack help lists them", strings.Join(args, " "))
			}
			return c.Help()
		},
	})
}

// noSuchShell refuses the completion of a shell that has none.
func noSuchShell(args []string) error {
	if len(args) > 1 && args[0] == "completion" && !strings.HasPrefix(args[1], "-") && !slices.Contains(shells, args[1]) {
		return usageError("completion %s: there are %s", args[1], strings.Join(shells, ", "))
	}
	return nil
}

// fitted is a help text whose lines fit. Paragraphs are filled, and flags have what they
// do behind them or on the next lines. A command of an example is never broken.
func fitted(text string) string {
	var out strings.Builder
	about, rest, _ := strings.Cut(text, "\nUsage:")
	for _, paragraph := range strings.Split(strings.TrimRight(about, "\n"), "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") { // lines that stand as they are
			out.WriteString(paragraph + "\n\n")
			continue
		}
		for _, line := range page.Wrap(strings.ReplaceAll(paragraph, "\n", " "), helpWidth) {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	section := ""
	for line := range strings.Lines("Usage:" + rest) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != ' ' {
			section = line
		}
		switch flag, does, ok := splitFlag(line); {
		case strings.HasSuffix(section, "lags:") && ok:
			writeFlag(&out, flag, does)
		case page.Runes(line) <= helpWidth || line[0] != ' ':
			out.WriteString(line + "\n")
		case section != "Examples:": // the list of commands
			column := len(line) - len(does)
			for i, part := range page.Wrap(does, helpWidth-column) {
				if i == 0 {
					out.WriteString(line[:column] + part + "\n")
				} else {
					out.WriteString(strings.Repeat(" ", column) + part + "\n")
				}
			}
		default:
			command, what, found := strings.Cut(strings.TrimLeft(line, " "), "   ")
			if out.WriteString("  " + command + "\n"); found {
				out.WriteString("      " + strings.TrimLeft(what, " ") + "\n")
			}
		}
	}
	return out.String()
}

// splitFlag divides the line of a flag behind its argument.
func splitFlag(line string) (flag, does string, ok bool) {
	trimmed := strings.TrimLeft(line, " ")
	flag, does, ok = strings.Cut(trimmed, "   ")
	return line[:len(line)-len(trimmed)] + flag, strings.TrimLeft(does, " "), ok && strings.HasPrefix(trimmed, "-")
}

func writeFlag(out *strings.Builder, flag, does string) {
	indent := strings.Repeat(" ", flagWidth)
	front := fmt.Sprintf("%-*s", flagWidth, flag)
	if page.Runes(flag)+2 > flagWidth {
		out.WriteString(flag + "\n")
		front = indent
	}
	for _, part := range page.Wrap(does, helpWidth-flagWidth) {
		out.WriteString(front + part + "\n")
		front = indent
	}
}
