package gen

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/model"
)

// A Writer writes TOML for people to read.
type Writer struct {
	bytes.Buffer
	Width   int    // where long lines are broken, as far as they can be
	Indent  string // of the lines of a long formula; without it operands hang on no operator
	OneEach bool   // each value of a long list has a line of its own
	// Prose writes a key with a text of several sentences.
	Prose func(w *Writer, key, value string)
	Node  []string // the fields of a node in the order of their keys
}

// Line writes a line.
func (w *Writer) Line(s string) { w.WriteString(s + "\n") }

// Comment writes a text as comment lines.
func (w *Writer) Comment(s string) {
	for _, line := range Fill(s, 78) {
		w.Line("# " + line)
	}
}

// Text writes a key with a string.
func (w *Writer) Text(key, value string) { w.Line(key + " = " + strconv.Quote(value)) }

// short writes a key with a value if that fits a line.
func (w *Writer) short(key, value string) bool {
	fits := len(key+" = "+value) <= w.Width
	if fits {
		w.Line(key + " = " + value)
	}
	return fits
}

// List writes a key with a list of strings, over several lines if it is long.
func (w *Writer) List(key string, values []string) {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	if w.short(key, "["+strings.Join(quoted, ", ")+"]") {
		return
	}
	w.Line(key + " = [")
	start := " "
	if w.OneEach {
		start = "   "
	}
	line := start
	for i, q := range quoted {
		if i > 0 && (w.OneEach || len(line)+len(q)+2 > w.Width) {
			w.Line(line)
			line = start
		}
		line += " " + q + ","
	}
	w.Line(line)
	w.Line("]")
}

// Formula writes a key with a formula, over several lines if it is long.
func (w *Writer) Formula(key, value string) {
	if w.short(key, strconv.Quote(value)) {
		return
	}
	w.Line(key + ` = """`)
	for _, line := range Wrap(value, w.Width-len(w.Indent), w.Indent != "") {
		w.Line(w.Indent + line)
	}
	w.Line(`"""`)
}

// Removed writes the names that base has and a model lacks, if there are any.
func (w *Writer) Removed(names, base []string) {
	gone := slices.DeleteFunc(base, func(name string) bool { return slices.Contains(names, name) })
	if len(gone) > 0 {
		w.List("remove", gone)
	}
}

// Number is a pointer to a number.
func Number(v float64) *float64 { return &v }

// Keys writes fields of a table of a model that differ from those of base. Both are
// pointers to a type of package model.
func (w *Writer) Keys(table, base any, fields ...string) {
	t, b := reflect.ValueOf(table).Elem(), reflect.ValueOf(base).Elem()
	for _, field := range fields {
		key, value := strings.ToLower(field), t.FieldByName(field)
		if before := b.FieldByName(field); reflect.DeepEqual(value.Interface(), before.Interface()) || value.Kind() == reflect.Slice && value.Len()+before.Len() == 0 {
			continue
		}
		switch v := value.Interface().(type) {
		case bool:
			w.Line(key + " = " + strconv.FormatBool(v))
		case *float64:
			if v != nil {
				w.Line(key + " = " + strconv.FormatFloat(*v, 'g', -1, 64))
			}
		case []string:
			w.List(key, v)
		case []model.Advice:
			w.Line("advice = [")
			for _, a := range v {
				w.Line("    { try = " + strconv.Quote(a.Try) + ", when = " + strconv.Quote(a.When) + " },")
			}
			w.Line("]")
		case string:
			w.text(key, v)
		}
	}
}

// text writes a string as its key asks for.
func (w *Writer) text(key, value string) {
	switch {
	case key == "formula" && value == "": // of the rest
	case key == "formula", key == "threshold":
		w.Formula(key, value)
	case key == "about":
		w.Prose(w, key, value)
	case key == "domain" && value == "":
		w.Text(key, "thread")
	default:
		w.Text(key, value)
	}
}

// Parameter writes a parameter, or what it has otherwise than base.
func (w *Writer) Parameter(p, base *model.Parameter) {
	w.Line("\n[[parameter]]")
	w.Text("name", p.Name)
	w.Keys(p, base, "Value", "Unit", "Min")
	if p.About != base.About {
		w.Text("about", p.About)
	}
	w.Keys(p, base, "Source")
}

// Nodes writes the nodes that are not the same in base, under their headings.
func Nodes[N any](w *Writer, nodes, base []N, of func(*N) *model.Node, heading func(*N) string) {
	above := ""
	for i := range nodes {
		n, b := of(&nodes[i]), new(model.Node)
		if j := slices.IndexFunc(base, func(b N) bool { return of(&b).Name == n.Name }); j >= 0 {
			b = of(&base[j])
		}
		keys := Writer{Width: w.Width, Indent: w.Indent, OneEach: w.OneEach, Prose: w.Prose}
		if keys.Keys(n, b, w.Node...); keys.Len() == 0 {
			continue
		}
		if h := heading(&nodes[i]); h != above {
			above = h
			w.Line("\n# " + h)
		}
		w.Line("\n[[node]]")
		w.Text("name", n.Name)
		w.Write(keys.Bytes())
	}
}

// Fill breaks a text into lines of at most the given width, at blanks.
func Fill(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// loosest are the operators where a formula may be broken into lines, those that
// bind loosest first.
var loosest = [][]string{{" if ", " else "}, {" | "}, {" & "}, {" + ", " - "}, {" * ", " / "}}

// Wrap breaks a formula in canonical form into lines of about the given width. It breaks
// before the operators that bind loosest. What is in parentheses or a call is broken
// likewise, deeper indented. With hang, further lines of an operand are indented by the
// operator before it.
func Wrap(s string, room int, hang bool) []string {
	if len(s) <= room {
		return []string{s}
	}
	for _, ops := range loosest {
		if parts, found := SplitTop(s, ops...); len(found) > 0 {
			return wrapParts(parts, found, room, hang)
		}
	}
	return wrapInner(s, room, hang)
}

// wrapParts fills lines with the operands of a chain of operators.
func wrapParts(parts, found []string, room int, hang bool) []string {
	var lines []string
	line := parts[0]
	flush := func() {
		lines = append(lines, wrapOperand(line, room, hang)...)
	}
	for i, op := range found {
		next := strings.TrimSpace(op) + " " + parts[i+1]
		if len(line)+1+len(next) <= room {
			line += " " + next
			continue
		}
		flush()
		line = next
	}
	flush()
	return lines
}

// wrapOperand breaks an operand, with the operator before it if there is one.
func wrapOperand(s string, room int, hang bool) []string {
	if len(s) <= room {
		return []string{s}
	}
	lead := ""
	for _, op := range []string{"if ", "else ", "| ", "& ", "+ ", "- ", "* ", "/ "} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			lead, s = op, rest
			break
		}
	}
	indent := ""
	if hang {
		indent = strings.Repeat(" ", len(lead))
	}
	lines := Wrap(s, room-len(lead), hang)
	for i := range lines {
		if i == 0 {
			lines[i] = lead + lines[i]
		} else {
			lines[i] = indent + lines[i]
		}
	}
	return lines
}

// wrapInner breaks what is between the parentheses that s ends with.
func wrapInner(s string, room int, hang bool) []string {
	open := strings.IndexByte(s, '(')
	if open < 0 || !strings.HasSuffix(s, ")") {
		return []string{s}
	}
	lines := []string{s[:open+1]}
	args := splitArguments(s[open+1 : len(s)-1])
	for i, a := range args {
		sub := Wrap(a, room-2, hang)
		for j := range sub {
			sub[j] = "  " + sub[j]
		}
		if i < len(args)-1 {
			sub[len(sub)-1] += ","
		}
		lines = append(lines, sub...)
	}
	return append(lines, ")")
}

// splitArguments splits at the commas outside parentheses.
func splitArguments(s string) (args []string) {
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, s[start:i])
				start = i + len(", ")
			}
		}
	}
	return append(args, s[start:])
}

// SplitTop splits s at the separators that stand outside parentheses, and
// returns the separators too.
func SplitTop(s string, separators ...string) (parts, found []string) {
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ' ':
			for _, sep := range separators {
				if depth == 0 && strings.HasPrefix(s[i:], sep) {
					parts, found = append(parts, s[start:i]), append(found, sep)
					i += len(sep) - 1
					start = i + 1
					break
				}
			}
		}
	}
	return append(parts, s[start:]), found
}

// InParentheses returns what is between the parentheses around all of s.
func InParentheses(s string) (string, bool) {
	if !strings.HasPrefix(s, "(") || !strings.HasSuffix(s, ")") {
		return "", false
	}
	depth := 0
	for i := range len(s) - 1 {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return "", false
		}
	}
	return s[1 : len(s)-1], true
}
