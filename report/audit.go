package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
)

// auditWriter prints every check of an account with its two sides.
type auditWriter struct {
	tree
}

// NewAudit returns a writer that prints the checks of accounts, and not their
// nodes.
func NewAudit(w io.Writer, o Options) Writer {
	if o.Width == 0 {
		o.Width = 100
	}
	return &auditWriter{tree{w: w, o: o}}
}

func (t *auditWriter) Account(a *account.Account) error {
	t.out.Reset()
	if t.n > 0 {
		t.out.WriteByte('\n')
	}
	t.n++
	t.heading(a)
	t.checks(a, true, account.Fails, "FAILS")
	t.checks(a, false, account.Holds, "holds")
	t.checks(a, false, account.Fails, "does not")
	t.sound(a)
	t.skipped(a)
	for _, d := range doubts(a, t.shown) {
		t.paragraph("values", d, auditHang, plain)
	}
	for _, n := range a.Notes {
		t.paragraph("note", n, auditHang, plain)
	}
	_, err := io.WriteString(t.w, t.out.String())
	return err
}

// auditHang is the indentation of the checks.
const auditHang = 12

// sound names what holds because it must.
func (t *auditWriter) sound(a *account.Account) {
	var names []string
	for i := range a.Checks {
		if c := &a.Checks[i]; c.State == account.Holds && c.Identity {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		t.paragraph("sound", strings.Join(names, "; "), auditHang, plain)
	}
}

// checks prints those of one outcome, of identities or of findings.
func (t *auditWriter) checks(a *account.Account, identity bool, state account.State, word string) {
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != state || c.Identity != identity {
			continue
		}
		st := plain
		if state == account.Fails && identity {
			st = hot
		}
		t.paragraph(word, c.Name+": "+sides(c), auditHang, st)
		if c.Text != "" {
			t.paragraph("", c.Text, auditHang, faint)
		}
	}
}

// sides writes the two sides of a check and how they stand to each other.
func sides(c *account.Check) string {
	signs := map[string][2]string{"=": {"≈", "≠"}, "<=": {"≤", ">"}, ">=": {"≥", "<"}}[c.Op]
	sign := signs[0]
	if c.State == account.Fails {
		sign = signs[1]
	}
	s := trim(c.Left) + " " + sign + " " + trim(c.Right)
	if c.Op == "=" || c.State == account.Fails {
		s += fmt.Sprintf(" (%s apart, %s allowed)", percent(math.Abs(c.Residual)), percent(c.Tolerance))
	}
	return s
}

// skipped prints the checks that could not be made, those with one reason
// together.
func (t *auditWriter) skipped(a *account.Account) {
	by := map[string][]string{}
	var order []string
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != account.Skipped {
			continue
		}
		why := a.WhySkipped(i)
		if by[why] == nil {
			order = append(order, why)
		}
		by[why] = append(by[why], c.Name)
	}
	for _, why := range order {
		t.paragraph("skipped", strings.Join(by[why], "; ")+": "+why, auditHang, faint)
	}
}
