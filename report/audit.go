package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/sorting"
)

// auditWriter prints every check of an account with its two sides.
type auditWriter struct {
	tree
}

func (t *auditWriter) Account(a *account.Account) error {
	t.Out.Reset()
	if t.n > 0 {
		t.Out.WriteByte('\n')
	}
	t.n++
	if t.o.Lines > 0 {
		return t.brief(a)
	}
	t.heading(a)
	t.checks(a, "FAILS", hot, (*account.Check).Contradicts)
	t.checks(a, "holds", plain, func(c *account.Check) bool { return c.State == account.Holds && !c.Identity })
	t.checks(a, "does not", plain, func(c *account.Check) bool {
		return c.State == account.Fails && !c.Identity && c.Side == account.Machine
	})
	t.checks(a, "suspect", plain, func(c *account.Check) bool {
		return c.State == account.Fails && !c.Identity && c.Side == account.Measurement
	})
	t.sound(a)
	t.skipped(a)
	for _, d := range doubts(a, t.shown) {
		t.Paragraph("values", d, auditHang, plain)
	}
	t.verdict(a)
	for _, n := range t.o.Texts(a.Notes) {
		t.Paragraph("note", n, auditHang, plain)
	}
	return t.Flush()
}

// brief writes on one screen the verdict, what fails, and what is found.
func (t *auditWriter) brief(a *account.Account) error {
	t.heading(a)
	foot := &auditWriter{*t.emptyPage()}
	own := &auditWriter{*t.emptyPage()}
	sound, skipped := 0, 0
	for i := range a.Checks {
		switch c := &a.Checks[i]; {
		case c.State == account.Holds && c.Identity:
			sound += max(c.For, 1)
		case c.State == account.Skipped && !c.Common:
			skipped++
		}
	}
	if sound > 0 {
		foot.Paragraph("sound", t.o.Hint(page.Several(sound, "check")+" that must hold", counts.Fix{Action: counts.ShowMore}), auditHang, plain)
	}
	if skipped > 0 {
		foot.Paragraph("skipped", t.o.Hint(page.Several(skipped, "check"), counts.Fix{Action: counts.ShowMore}), auditHang, faint)
	}
	foot.verdict(a)
	own.checks(a, "FAILS", hot, (*account.Check).Contradicts)
	own.findings(a, "does not", foot.lines(), func(c *account.Check) bool {
		return c.State == account.Fails && !c.Identity && c.Side == account.Machine
	})
	own.findings(a, "suspect", foot.lines(), func(c *account.Check) bool {
		return c.State == account.Fails && !c.Identity && c.Side == account.Measurement
	})
	own.findings(a, "holds", foot.lines(), func(c *account.Check) bool { return c.State == account.Holds && !c.Identity })
	t.Out.WriteString(strings.TrimSuffix(own.first(t.o.Lines-t.lines()-foot.lines()-1), "\n\n"))
	if !strings.HasSuffix(t.Out.String(), "\n") {
		t.Out.WriteByte('\n')
	}
	t.Out.WriteString(foot.Out.String())
	if n := len(t.o.Texts(a.Notes)) + len(doubts(a, t.shown)); n > 0 {
		t.Paragraph("notes", t.o.Hint(fmt.Sprint(n), counts.Fix{Action: counts.ShowMore}), auditHang, plain)
	}
	return t.Flush()
}

// findings writes what checks come to, without their figures: a failing one with its events. What that means follows for the
// first of them, if less than half of the page is used then.
func (t *auditWriter) findings(a *account.Account, word string, below int, wanted func(*account.Check) bool) {
	for i := range a.Checks {
		c := &a.Checks[i]
		if !wanted(c) {
			continue
		}
		name := c.Name
		if c.State == account.Fails && len(c.Events) > 0 {
			name += ": " + listed(c.Events)
		}
		t.Paragraph(word, name, auditHang, plain)
		if c.Text != "" && t.lines()+below < t.o.Lines/2 {
			t.Paragraph("", c.Text, auditHang, faint)
		}
	}
}

// auditHang is the indentation of the checks.
const auditHang = 12

// soundMost is how many checks that hold because they must are named.
const soundMost = 12

// sound names what holds because it must.
func (t *auditWriter) sound(a *account.Account) {
	var names []string
	for i := range a.Checks {
		if c := &a.Checks[i]; c.State == account.Holds && c.Identity {
			names = append(names, c.Name+forText(c))
		}
	}
	if n := len(names); n > soundMost {
		names = append(names[:soundMost], t.o.Hint(fmt.Sprintf("and %d more", n-soundMost), counts.Fix{Action: counts.ShowData}))
	}
	if len(names) > 0 {
		t.Paragraph("sound", strings.Join(names, "; "), auditHang, plain)
	}
}

// forText says how many events a line stands for, if they are several.
func forText(c *account.Check) string {
	if c.For > 1 {
		return fmt.Sprintf(" (%d of them)", c.For)
	}
	return ""
}

// checks prints those that a word stands for.
func (t *auditWriter) checks(a *account.Account, word string, st style, wanted func(*account.Check) bool) {
	var list []*account.Check
	for i := range a.Checks {
		if c := &a.Checks[i]; wanted(c) {
			list = append(list, c)
		}
	}
	if len(list) > 0 && list[0].State == account.Fails { // what is about the fewest events says the most
		sorting.Stable(list, func(x, y *account.Check) int { return len(x.Events) - len(y.Events) })
	}
	for _, c := range list {
		t.Paragraph(word, strings.TrimSuffix(c.Name+": "+sides(c)+room(c), ": "), auditHang, st)
		if c.State == account.Fails && len(c.Events) > 0 {
			t.Paragraph("", "of "+listed(c.Events), auditHang, plain)
		}
		if c.Text != "" && t.o.Lines == 0 {
			t.Paragraph("", c.Text, auditHang, faint)
		}
	}
}

// verdict says who is behind what does not hold.
func (t *auditWriter) verdict(a *account.Account) {
	contradictions, must := 0, 0
	for i := range a.Checks {
		c := &a.Checks[i]
		if !c.Identity || c.State == account.Skipped {
			continue
		}
		must += max(c.For, 1)
		if c.Contradicts() {
			contradictions++
		}
	}
	switch {
	case contradictions > 0:
		t.Paragraph("verdict", fmt.Sprintf("the measurement is at fault, and not the machine: %d of the %d checks that hold in every correct recording %s. "+
			"Suspect: %s. What rests on these counts says nothing about the program.", contradictions, must, verb(contradictions), listed(a.Suspects())), auditHang, hot)
	case must == 0:
		t.Paragraph("verdict", "no relation between these counts holds in every recording: there is nothing to check", auditHang, plain)
	}
}

// verb is what one, or several, do that do not hold.
func verb(n int) string {
	if n == 1 {
		return "fails"
	}
	return "fail"
}

// listed names a few events.
func listed(events []string) string {
	const most = 4
	if n := len(events); n > most {
		return strings.Join(events[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(events, ", ")
}

// sides writes the two sides of a check and how they stand to each other.
func sides(c *account.Check) string {
	if math.IsNaN(c.Left) {
		return "" // it compares no two counts
	}
	signs := map[string][2]string{"=": {"≈", "≠"}, "<=": {"≤", ">"}, ">=": {"≥", "<"}}[c.Op]
	sign := signs[0]
	if c.State == account.Fails {
		sign = signs[1]
	}
	s := page.Exact(c.Left) + " " + sign + " " + page.Exact(c.Right)
	switch {
	case c.Op != "=" && (c.State != account.Fails || c.Tolerance+c.Error == 0) || math.IsNaN(c.Residual):
	default:
		s += fmt.Sprintf(" (%s apart, %s allowed)", page.Percent(math.Abs(c.Residual)), page.Percent(c.Tolerance))
	}
	return s
}

// room says what was allowed in addition to the tolerance.
func room(c *account.Check) string {
	if c.Error == 0 {
		return ""
	}
	return fmt.Sprintf("; %s more are allowed as they were not counted together all of the time", page.Percent(c.Error))
}

// skipped prints the checks that could not be made, those with one reason
// together.
func (t *auditWriter) skipped(a *account.Account) {
	by := map[string][]string{}
	var order []string
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != account.Skipped || c.Common {
			continue
		}
		why := t.o.note(a.WhySkipped(i))
		if by[why] == nil {
			order = append(order, why)
		}
		by[why] = append(by[why], c.Name)
	}
	for _, why := range order {
		t.Paragraph("skipped", strings.Join(by[why], "; ")+": "+why, auditHang, faint)
	}
}
