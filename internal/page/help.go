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
// do behind them or on the next lines. A long command continues behind a backslash, to be copied as it stands.
func Help(text string) string {
	var out strings.Builder
	about, rest, _ := strings.Cut(text, "\nUsage:")
	for _, paragraph := range strings.Split(strings.TrimRight(about, "\n"), "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") { // lines that stand as they are
			for line := range strings.SplitSeq(paragraph, "\n") {
				out.WriteString(continued(line) + "\n")
			}
			out.WriteString("\n")
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
		case Runes(line) <= helpWidth:
			out.WriteString(line + "\n")
		case line[0] != ' ':
			out.WriteString(strings.Join(Wrap(line, helpWidth), "\n") + "\n")
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
			if out.WriteString(continued("  "+command) + "\n"); found {
				out.WriteString("      " + strings.TrimLeft(what, " ") + "\n")
			}
		}
	}
	return out.String()
}

// continued breaks a command that is wider than a terminal between its arguments. Each
// line but the last ends with a backslash, as a shell reads it.
func continued(line string) string {
	const end, hang = ` \`, "      "
	if Runes(line) <= helpWidth {
		return line
	}
	var out strings.Builder
	front := line[:len(line)-len(strings.TrimLeft(line, " "))]
	at := front
	args := strings.Fields(line)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if i+1 < len(args) && arg[0] == '-' && args[i+1][0] != '-' { // a flag keeps its value
			i++
			arg += " " + args[i]
		}
		if Runes(at)+1+Runes(arg) > helpWidth-len(end) && at != front && at != hang {
			out.WriteString(at + end + "\n")
			at = hang
		}
		if at != front && at != hang {
			at += " "
		}
		at += arg
	}
	return out.String() + at
}

// splitFlag divides the line of a flag behind its argument.
func splitFlag(line string) (flag, does string, ok bool) {
	trimmed := strings.TrimLeft(line, " ")
	flag, does, ok = strings.Cut(trimmed, "   ")
	return line[:len(line)-len(trimmed)] + flag, strings.TrimLeft(does, " "), ok && strings.HasPrefix(trimmed, "-")
}

func writeFlag(out *strings.Builder, flag, does string) {
	if i := strings.LastIndexByte(flag, ' '); strings.Count(flag[i+1:], "|") > 2 { // a long list of choices is said once
		choices := flag[i+1:]
		flag, does = flag[:i+1]+"NAME", strings.ReplaceAll(does, choices, strings.ReplaceAll(choices, "|", ", "))
	}
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
