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
	rest := rest(a)
	if len(rest) == 0 {
		return
	}
	var lines []page.Line
	per := ""
	for i, r := range rest {
		if i == ratesMost && !t.o.All {
			break
		}
		l := page.Line{Name: r.Event, Value: page.Trim(r.Value)}
		if r.As != "" {
			l.Name = r.As
			l.Title = r.Event
		}
		switch {
		case page.IsTime(r.Unit):
			l.Value = page.Duration(r.Value / 1e9)
		case r.Unit != "":
			l.Value += " " + r.Unit
		}
		if r.Per != "" && !page.IsTime(r.Unit) {
			per = r.Per
			l.Unit = page.Trim(r.Rate)
		}
		if r.Coverage < 1 {
			l.Cover = page.Coverage(r.Coverage)
		}
		lines = append(lines, l)
	}
	title := "counts that no method uses"
	if per != "" {
		title += ", and each per " + per
	}
	t.Table(title, lines)
	if n := len(rest) - len(lines); n > 0 {
		t.left(n, "counts")
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

func rates(a *account.Account) (list []jsonRate) {
	for _, r := range rest(a) {
		list = append(list, jsonRate{count(r.Count), r.Unit, page.Known(r.Rate), r.Per})
	}
	return list
}
