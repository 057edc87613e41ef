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
	t.checks(a, account.Fails, "fails")
	t.checks(a, account.Holds, "holds")
	t.skipped(a)
	for _, d := range doubts(a, t.shown) {
		t.paragraph("values", d, 10, plain)
	}
	_, err := io.WriteString(t.w, t.out.String())
	return err
}

// checks prints those of one outcome.
func (t *auditWriter) checks(a *account.Account, state account.State, word string) {
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.State != state {
			continue
		}
		st := plain
		if state == account.Fails && c.Identity {
			st = hot
		}
		t.paragraph(word, fmt.Sprintf("%s: %s and %s, %s apart (%s allowed)", c.Name, trim(c.Left), trim(c.Right),
			percent(math.Abs(c.Residual)), percent(c.Tolerance)), 10, st)
		if c.Text != "" {
			t.paragraph("", c.Text, 12, faint)
		}
	}
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
		t.paragraph("skipped", strings.Join(by[why], "; ")+": "+why, 10, faint)
	}
}
