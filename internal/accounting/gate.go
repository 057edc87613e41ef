package accounting

import (
	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/report"
)

// A gate holds back accounts without known nodes, until one comes that has some. A
// recording without any known node is an error, and must not leave output.
type gate struct {
	w        report.Writer
	header   report.Header
	begun    bool // there is a header
	released bool // the header has been written
	held     []*account.Account
}

// heldMost bounds how many accounts are held back.
const heldMost = 50

func (g *gate) begin(h report.Header) { g.begun, g.header = true, h }

// write writes an account, and before it those that were held back.
func (g *gate) write(a *account.Account, known bool) error {
	if !g.released && !known && len(g.held) < heldMost {
		g.held = append(g.held, a.Clone())
		return nil
	}
	if err := g.release(); err != nil {
		return err
	}
	return g.w.Account(a)
}

// release writes the header, and what was held back.
func (g *gate) release() error {
	if g.released || !g.begun {
		return nil
	}
	g.released = true
	if err := g.w.Begin(g.header); err != nil {
		return err
	}
	for _, a := range g.held {
		if err := g.w.Account(a); err != nil {
			return err
		}
	}
	g.held = nil
	return nil
}
