package page

import (
	"fmt"
	"strings"
)

// Help texts fit a terminal of 80 columns, and break between words.
const (
	helpWidth = 80
	flagWidth = 30 // of a flag with its argument, in front of what it does
)

// Help is a help text of cobra whose lines fit a terminal of 80 columns. Paragraphs are filled, and flags have what they
// do behind them or on the next lines. A command of an example is never broken.
func Help(text string) string {
	var out strings.Builder
	about, rest, _ := strings.Cut(text, "\nUsage:")
	for _, paragraph := range strings.Split(strings.TrimRight(about, "\n"), "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") { // lines that stand as they are
			out.WriteString(paragraph + "\n\n")
			continue
		}
		for _, line := range Wrap(strings.ReplaceAll(paragraph, "\n", " "), helpWidth) {
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
		case Runes(line) <= helpWidth || line[0] != ' ':
			out.WriteString(line + "\n")
		case section != "Examples:": // the list of commands
			column := len(line) - len(does)
			for i, part := range Wrap(does, helpWidth-column) {
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
	if Runes(flag)+2 > flagWidth {
		out.WriteString(flag + "\n")
		front = indent
	}
	for _, part := range Wrap(does, helpWidth-flagWidth) {
		out.WriteString(front + part + "\n")
		front = indent
	}
}
