package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/core"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/report"
)

// A Cores is a document: what the model says of pieces of code, and how much of it is
// shown.
type Cores struct {
	*core.Document
	Full bool // everything, not one screen

	pictures []string // of the first pieces, as SVG
}

// picturesMost bounds the pictures of a page.
const picturesMost = 4

// WithPictures returns the document with the pictures of its first pieces, which its JSON then
// has.
func (d Cores) WithPictures(o report.Options) (Cores, error) {
	one := *d.Document
	one.Pieces = one.Pieces[:min(len(one.Pieces), picturesMost)]
	all, err := one.Trace(0)
	if err != nil {
		return d, err
	}
	for _, p := range all.List {
		var b strings.Builder
		if err := writePicturesSVG(&b, Pictures{Pictures: &core.Pictures{Title: all.Title, List: []*core.Picture{p}}}, o); err != nil {
			return d, err
		}
		d.pictures = append(d.pictures, b.String())
	}
	return d, nil
}

// A coreWriter writes a document of the core model as text.
type coreWriter struct {
	page.Page
	d Cores
}

// How much of one screen its parts may take, in lines.
const (
	coreRows   = 7 // of the table of pieces
	coreLimits = 4
	coreLinks  = 4
)

func writeCores(w io.Writer, d Cores, o report.Options) error {
	t := &coreWriter{Page: page.New(w, o.Width, o.Color), d: d}
	switch n := len(d.Pieces); {
	case n == 0:
		t.line("no loop was found in %s", d.Title)
	case d.Full:
		t.table()
		for _, r := range d.Pieces {
			t.piece(r)
		}
	default:
		t.table()
		t.piece(d.Pieces[0])
	}
	t.end()
	return t.Flush()
}

func (t *coreWriter) line(format string, args ...any) {
	t.Out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// table writes a line for each piece, if there are several.
func (t *coreWriter) table() {
	list := t.d.Pieces
	if len(list) < 2 {
		return
	}
	rows := min(len(list), coreRows)
	if t.d.Full {
		rows = len(list)
	}
	measured := slices.ContainsFunc(list, func(r *core.Result) bool { return r.Measured != nil })
	head := "cycles  limit"
	if measured {
		head = "cycles  measured  limit"
	}
	if t.d.Of != "" {
		head = page.Padded("share", 8) + head
	}
	t.line("%s", t.Paint(page.Padded("", 34)+head, faint))
	for i, r := range list[:rows] {
		share := ""
		if t.d.Of != "" {
			share = page.Padded(page.PercentOf(r.Weight), 8)
		}
		st := plain
		if i == 0 {
			st = bold
		}
		m := ""
		switch {
		case measured && r.Measured == nil:
			m = page.Padded("–", 10)
		case measured:
			m = page.Padded(cycles(r.Measured.Cycles), 10)
		}
		name := page.Cut(page.Printable(r.Name()), 32)
		t.line("%s", t.Paint(page.Padded(name, 34)+share+page.Padded(cycles(r.Main().Cycles), 8)+m+sayLimits(r.Main()), st))
	}
	if left := len(list) - rows + t.d.More; left > 0 {
		t.line("  and %s: -v", page.Several(left, "more loop"))
	}
	t.line("")
}

func cycles(c float64) string { return fmt.Sprintf("%.2f", c) }

// sayLimits says what limits a block.
func sayLimits(a *simulation.Analysis) string {
	if len(a.Limits) == 0 {
		return "nothing"
	}
	return core.Say(a.Limits[0])
}

// piece writes what is known of a piece.
func (t *coreWriter) piece(r *core.Result) {
	a := r.Main()
	where := ""
	if r.First > 0 {
		where = fmt.Sprintf(" (%s:%d–%d)", page.Printable(path.Base(r.File)), r.First, r.Last)
		if r.First == r.Last {
			where = fmt.Sprintf(" (%s:%d)", page.Printable(path.Base(r.File)), r.First)
		}
	}
	t.Paragraph("", fmt.Sprintf("%s%s, modelled on %s: caches and predictions are perfect", page.Printable(r.Name()), where, a.Core), 0, bold)
	t.line("")
	t.line("  %s cycles an iteration   %s, %.3g micro-ops%s", cycles(a.Cycles), page.Several(len(a.Instructions), "instruction"), a.Slots, t.measured(r))
	if m := r.Measured; m != nil && m.Why != "" {
		t.Paragraph("", "the difference: "+m.Why, indent, plain)
	}
	t.line("")
	t.limits(a)
	t.chain(r)
	if t.d.Full {
		t.instructions(r)
	}
	t.whatIfs(r)
	t.trust(a)
	for _, n := range r.Notes {
		t.Paragraph("note", page.Printable(n), hang, plain)
	}
	for i, adv := range r.Advice {
		if i == 0 || t.d.Full {
			t.Paragraph("advice", adv.Text+t.at(r, adv.At), hang, plain)
		}
	}
	if t.d.Full {
		t.line("")
	}
}

// at names the line of an instruction, "" if it is not known.
func (t *coreWriter) at(r *core.Result, i int) string {
	if i < 0 {
		return ""
	}
	if p := place(r, i); p != "" {
		return " (" + p + ")"
	}
	return fmt.Sprintf(" (at %#x)", r.Insts[i].Addr)
}

func place(r *core.Result, i int) string {
	in := &r.Insts[i]
	if in.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", page.Printable(path.Base(in.File)), in.Line)
}

func (t *coreWriter) measured(r *core.Result) string {
	m, how := r.Measured, "measured"
	if m != nil && m.Simulated {
		how = "simulated"
	}
	switch {
	case m == nil:
		return ""
	case math.IsNaN(m.Error):
		return fmt.Sprintf("   %s %s", how, cycles(m.Cycles))
	}
	return fmt.Sprintf("   %s %s ±%.2g", how, cycles(m.Cycles), m.Error)
}

// limits writes the limits with bars.
func (t *coreWriter) limits(a *simulation.Analysis) {
	t.line("%s", t.Paint("  limit                         cycles", faint))
	list := a.Limits
	if !t.d.Full {
		list = list[:min(len(list), coreLimits)]
	}
	most := a.Cycles
	for _, l := range list {
		most = max(most, l.Cycles)
	}
	for i, l := range list {
		st, mark := plain, ""
		if i == 0 {
			st, mark = bold, "  ◄"
		}
		name := page.Cut(core.Say(l), 27)
		if t.d.Full {
			name = core.Say(l)
		}
		t.line("%s", t.Paint(fmt.Sprintf("  %s %8s  %s%s", page.Padded(name, 27), cycles(l.Cycles), page.Bar(l.Cycles, most), mark), st))
	}
}

// chain writes the instructions of the chain.
func (t *coreWriter) chain(r *core.Result) {
	a := r.Main()
	if len(a.Chain) == 0 || !t.d.Full && !matters(a) {
		return
	}
	head := "  chain   cycles, each waits for the one before"
	if a.ChainSpan > 1 {
		head += fmt.Sprintf("; it returns after %d iterations", a.ChainSpan)
	}
	t.line("%s", t.Paint(head, faint))
	list, left := a.Chain, 0
	if !t.d.Full && len(list) > coreLinks {
		list = slices.Clone(list)
		sorting.Stable(list, func(x, y simulation.ChainLink) int { return cmp.Compare(y.Latency, x.Latency) })
		list = list[:coreLinks-1]
		sorting.Stable(list, func(x, y simulation.ChainLink) int { return x.Instruction - y.Instruction })
		left = len(a.Chain) - len(list)
	}
	for _, l := range list {
		where := place(r, l.Instruction)
		by := l.By
		if l.Blocked {
			by += ", once the store is in the cache"
		}
		if l.Aliased {
			by += ", 4K aliasing"
		}
		text := page.Cut(t.text(r, l.Instruction), 38)
		t.line("  %8.3g  %s %s %s", l.Latency, page.Padded(text, 38), page.Padded(where, 14), by)
	}
	if left > 0 {
		t.line("            and %s: -v", page.Several(left, "more instruction"))
	}
}

// matters says whether the chain takes most of the time.
func matters(a *simulation.Analysis) bool {
	const most = 0.75
	return slices.ContainsFunc(a.Limits, func(l simulation.Limit) bool {
		return (l.Kind == simulation.Chain || l.Kind == simulation.Forwarding) && l.Cycles > most*a.Cycles
	})
}

// text is an instruction without tabs.
func (t *coreWriter) text(r *core.Result, i int) string {
	return page.Printable(strings.Join(strings.Fields(r.Insts[i].Text), " "))
}

// instructions writes the use of ports of each instruction.
func (t *coreWriter) instructions(r *core.Result) {
	a := r.Main()
	t.line("%s", t.Paint("  uops  latency  trust          instruction, and the cycles that it holds ports", faint))
	for i := range a.Instructions {
		in := &a.Instructions[i]
		uops := fmt.Sprintf("%.3g", in.Slots)
		if in.Fused {
			uops = "fused"
		}
		mark := " "
		if in.Chained {
			mark = "│"
		}
		var use []string
		for p, u := range in.Ports {
			if u >= 0.005 {
				use = append(use, fmt.Sprintf("%s %.2f", a.Ports[p], u))
			}
		}
		t.line("  %5s %7.3g %s %s %s  %s", uops, in.Latency, mark, page.Padded(in.Trust.String(), 13), t.text(r, i), t.Paint(strings.Join(use, " "), faint))
		if i == 0 {
			continue
		}
	}
	var sum []string
	for p, u := range a.PortUse {
		if u >= 0.005 {
			sum = append(sum, fmt.Sprintf("%s %.2f", a.Ports[p], u))
		}
	}
	t.Paragraph("ports", strings.Join(sum, ", "), hang, plain)
}

// whatIfs writes what the model says of changes, and of other cores.
func (t *coreWriter) whatIfs(r *core.Result) {
	var list []string
	for _, w := range r.WhatIfs {
		if change := math.Abs(w.Cycles-r.Main().Cycles) / r.Main().Cycles; change < 0.02 && !t.d.Full {
			continue
		}
		list = append(list, fmt.Sprintf("%s %s", cycles(w.Cycles), w.If))
	}
	for _, a := range r.Cores[1:] {
		list = append(list, fmt.Sprintf("%s on %s (%s)", cycles(a.Cycles), a.Core, sayLimits(a)))
	}
	if len(list) > 0 {
		t.Paragraph("what if", strings.Join(list, "; "), hang, plain)
	}
}

// trust counts the instructions by how well their figures are known.
func (t *coreWriter) trust(a *simulation.Analysis) {
	count := map[string]int{}
	for i := range a.Instructions {
		count[a.Instructions[i].Trust.String()]++
	}
	var list []string
	for _, name := range []string{"measured", "imported", "class default", "unknown"} {
		if n := count[name]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, name))
		}
	}
	t.Paragraph("trust", "figures of instructions: "+strings.Join(list, ", "), hang, plain)
}

// end writes notes, and next commands.
func (t *coreWriter) end() {
	for _, n := range t.d.Notes {
		t.Paragraph("note", page.Printable(n), hang, plain)
	}
}
