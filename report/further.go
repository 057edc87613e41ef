package report

import (
	"fmt"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
)

// What the counts say beyond the tree of the account's method: the nodes of further
// methods, and the counts that no method uses.

const (
	// inlineMost is how many nodes outside of a tree are written without being asked for.
	inlineMost = 14
	// ratesMost is how many counts that no method uses are written without being asked for.
	ratesMost = 10
)

// further writes the nodes of further methods, and the counts that no method uses.
func (t *tree) further(a *account.Account) {
	t.processor()
	for _, f := range a.Also {
		t.also(f)
	}
	t.rates(a)
}

// processor says that the processor is not known, or why it was taken for this one.
func (t *tree) processor() {
	for _, note := range []counts.Note{t.h.Unknown, t.h.Assumed} {
		if note.Text != "" {
			t.Paragraph("cpu", t.o.note(note), 10, plain)
			t.Out.WriteByte('\n')
		}
	}
}

// also writes the nodes of a further method.
func (t *tree) also(f account.Further) {
	m := f.Model()
	own := &tree{Page: page.New(nil, t.Width, t.Color), o: t.o, h: t.h, shown: make([]bool, len(m.Nodes))}
	for _, i := range f.Nodes {
		own.shown[i] = true
	}
	var lines []page.Line
	left := 0
	for _, i := range f.Nodes {
		if len(lines) == inlineMost && !t.o.All {
			left++
			continue
		}
		l := own.line(f.Account, i)
		l.Name, l.Bar = m.Nodes[i].Name, ""
		if l.Unit == "" && !m.Share(i) && m.Nodes[i].Unit != "1" {
			l.Unit = page.UnitBehind(m, i)
		}
		if f.Account.Nodes[i].Flagged && l.Mark == "" {
			l.Mark = "◄ high"
		}
		lines = append(lines, l)
	}
	t.Table("also, by "+m.Name, lines)
	if left > 0 {
		t.left(left, "nodes")
	}
	t.Out.WriteByte('\n')
}

// left says how many lines were left out.
func (t *tree) left(n int, what string) {
	text := strings.Repeat(" ", indent) + t.o.Hint(fmt.Sprintf("%d more %s", n, what), counts.Fix{Action: counts.ShowAll})
	t.Out.WriteString(t.Paint(text, faint) + "\n")
}

// rates writes the counts that no method uses.
func (t *tree) rates(a *account.Account) {
	_, rest := leftOver(a)
	if len(rest) == 0 {
		return
	}
	n := len(rest)
	if !t.o.All {
		n = min(n, ratesMost)
	}
	t.counts("counts that no method uses", rest[:n])
	if n < len(rest) {
		t.left(len(rest)-n, "counts")
	}
	t.Out.WriteByte('\n')
}

// A jsonFurther is what a further method says of the same counts.
type jsonFurther struct {
	Model jsonModel  `json:"model"`
	Nodes []jsonNode `json:"nodes"`
}

// A jsonRate is a count that no method uses, relative to another quantity.
type jsonRate struct {
	jsonCount
	Unit string       `json:"unit,omitempty"`
	Rate *page.Number `json:"rate,omitempty"`
	Per  string       `json:"per,omitempty"`
}

// also are the nodes of further methods.
func (j *jsonWriter) also(a *account.Account) (list []jsonFurther) {
	for _, f := range a.Also {
		m := f.Model()
		shown := make([]bool, len(m.Nodes))
		for _, i := range f.Nodes {
			shown[i] = true
		}
		nodes, _ := j.nodes(f.Account, shown)
		list = append(list, jsonFurther{jsonModel{Name: m.Name, Version: m.Version}, nodes})
	}
	return list
}

// rates are counts with their rates.
func rates(of []account.Rate) (list []jsonRate) {
	for _, r := range of {
		list = append(list, jsonRate{count(r.Count), r.Unit, page.Known(r.Rate), r.Per})
	}
	return list
}
