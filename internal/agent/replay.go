package agent

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// replay plays a recording in place of counters: each interval of it is a window. It begins
// again at its end.
func (a *Agent) replay(ctx context.Context) error {
	r, err := resolve.New(a.o.Choice)
	if err != nil {
		return err
	}
	w := &paced{windows: windows{s: a.s, method: series.Replayed}, ctx: ctx, a: a}
	for {
		played := w.played
		w.last = math.NaN()
		recs := recorded.New(r, a.o.Replay)
		err := errors.Join(recs.Accounts(w, counts.By(0).With(counts.Interval), resolve.Request{}, nil), recs.Close())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case a.o.Once || w.played == played:
			<-ctx.Done()
			return nil
		}
	}
}

// A paced writer takes one interval's accounts in each window.
type paced struct {
	windows
	ctx    context.Context
	a      *Agent
	last   float64 // begin of the interval before
	played int
}

// Account implements [report.Writer].
func (p *paced) Account(a *account.Account) error {
	if p.played > 0 && a.Start != p.last {
		o, _ := p.a.settings()
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case <-time.After(o.Interval):
		}
	}
	if p.played == 0 {
		p.begin(a)
	}
	p.last = a.Start
	p.played++
	return p.windows.Account(a)
}

// begin makes the series of the first account, and waits until a store has seen them.
func (p *paced) begin(a *account.Account) {
	shown := func() bool {
		r := p.s.r
		r.mu.Lock()
		defer r.mu.Unlock()
		seen := true
		for _, g := range p.groups {
			if !g.some {
				g.settle(a)
			}
			if len(g.nodes) > 0 {
				seen = r.shown(p.seriesOf(p.hostLabels(), g, true, true).whole) && seen
			}
		}
		return seen
	}
	for !shown() && p.ctx.Err() == nil {
		select {
		case <-p.ctx.Done():
		case <-time.After(pollScrape):
		}
	}
}

// pollScrape is how often a recording looks whether it was scraped.
const pollScrape = 20 * time.Millisecond
