// Package page lays out text for terminals: paragraphs, aligned tables with bars,
// colours, and numbers as people read them. Package report and package render write
// their documents with it.
package page

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Style is how a piece of text looks on a terminal that has colours.
type Style int

// The styles.
const (
	Plain Style = iota
	Bold
	Faint // labels, titles
	Dim   // values that are not reliable
	Hot   // the bottleneck
)

// sgr are the terminal's codes (ECMA-48, select graphic rendition).
var sgr = [...]string{Plain: "", Bold: "1", Faint: "2", Dim: "90", Hot: "1;31"}

// UsualWidth is the width of a page where nobody says another.
const UsualWidth = 100

// Layout of tables in columns.
const (
	Indent = 2
	Gap    = 2
)

// A Page collects text for a terminal of a width.
type Page struct {
	To    io.Writer
	Width int  // in columns
	Color bool // styles are written
	Out   strings.Builder
}

// New returns a page; a width of 0 is UsualWidth.
func New(to io.Writer, width int, color bool) Page {
	if width == 0 {
		width = UsualWidth
	}
	return Page{To: to, Width: width, Color: color}
}

// Flush writes what was collected. Names in it may come from anybody: characters that turn
// the direction of text, or end lines, are replaced.
func (p *Page) Flush() error {
	_, err := io.WriteString(p.To, strings.Map(func(r rune) rune {
		if r >= 0x80 && invisible(r) {
			return '?'
		}
		return r
	}, p.Out.String()))
	return err
}

// invisible reports whether a character shows nothing, or changes what is around it.
func invisible(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) }

// Paint gives text a style where the page has colours.
func (p *Page) Paint(s string, st Style) string {
	if !p.Color || st == Plain || s == "" {
		return s
	}
	return "\x1b[" + sgr[st] + "m" + s + "\x1b[0m"
}

// Paragraph writes text behind a label, wrapped to the width and indented.
func (p *Page) Paragraph(label, text string, hang int, st Style) {
	if hang > 0 {
		label = strings.Repeat(" ", Indent) + label
	}
	room := max(30, p.Width-hang)
	for i, l := range Wrap(text, room) {
		if i > 0 {
			label = ""
		}
		pad := strings.Repeat(" ", max(0, hang-Runes(label)))
		p.Out.WriteString(p.Paint(label, Faint) + pad + p.Paint(l, st) + "\n")
	}
}

// Runes is the number of a text's characters.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Cut shortens text to a number of columns. It leaves no part of a number at the end.
func Cut(s string, width int) string {
	if Runes(s) <= width {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:width-1]), " .,0123456789") + "…" // no part of a number is left
}

// Bare returns text without the codes of styles.
func Bare(s string) string {
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			return s
		}
		end := strings.IndexByte(s[at:], 'm')
		if end < 0 {
			return s
		}
		s = s[:at] + s[at+end+1:]
	}
}

// CutLeft shortens text at its beginning to a number of columns: the end of a path, with
// the number of a line, is what matters.
func CutLeft(s string, width int) string {
	if Runes(s) <= width {
		return s
	}
	r := []rune(s)
	return "…" + string(r[len(r)-width+1:])
}

// Padded adds blanks behind a text up to a width.
func Padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Runes(s)))
}

// Wrap breaks text at blanks into lines of at most width columns. A word that
// is longer stands alone.
func Wrap(s string, width int) []string {
	var lines []string
	for _, para := range strings.Split(s, "\n") {
		line := ""
		for _, word := range strings.Fields(para) {
			switch {
			case line == "":
				line = word
			case Runes(line)+1+Runes(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Shorter leaves out the path of a Go package if a name is too long. Of JS:*run /srv/app.js:1:13
// and py::run:/srv/app.py it leaves out the folders of the file.
func Shorter(name string, width int) string {
	if Runes(name) <= width {
		return name
	}
	head, _, _ := strings.Cut(name, "(")
	head, _, _ = strings.Cut(head, "[")
	last := strings.LastIndex(head, "/") + 1
	if first := strings.Index(head, "/"); first > 0 && (head[first-1] == ' ' || head[first-1] == ':') {
		return name[:first] + name[last:]
	}
	return name[last:]
}

// Printable replaces what would not print in a text from a file.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r < 0x7f:
			return r
		case r == unicode.ReplacementChar, unicode.IsControl(r), invisible(r):
			return '?'
		}
		return r
	}, s)
}

// Heading divides a name at underscores, hyphens, dots and colons into lines for a column, at
// least least wide. Words are cut to most columns.
func Heading(name string, least, most int) []string {
	var words []string
	for rest := name; rest != ""; {
		at := strings.IndexAny(rest, "_-.:") + 1
		if at == 0 {
			at = len(rest)
		}
		words, rest = append(words, rest[:at]), rest[at:]
	}
	width := least
	for _, w := range words {
		width = max(width, min(Runes(w), most))
	}
	var lines []string
	for _, w := range words {
		if n := len(lines); n > 0 && Runes(lines[n-1])+Runes(w) <= width {
			lines[n-1] += w
			continue
		}
		lines = append(lines, Cut(w, most))
	}
	return lines
}
