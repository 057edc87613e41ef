package extra

import (
	"context"
	"errors"
	"fmt"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/report"
)

// A counting counts in the background.
type counting struct {
	run    *measure.Run
	done   chan struct{} // closed at its end
	failed chan struct{} // closed if it ends with an error
	err    error
}

// count starts to count, with the accounts for a writer.
func count(ctx context.Context, k *cli.Kit, o measure.Options, w report.Writer) (*counting, error) {
	o.Client.Writer = func(report.Options) (report.Writer, error) { return w, nil }
	m, err := measure.New(k.Kernel, o)
	if err != nil {
		return nil, err
	}
	if err := m.Plan(); err != nil {
		return nil, err
	}
	run, err := m.Start(ctx)
	if err != nil {
		return nil, err
	}
	c := &counting{run: run, done: make(chan struct{}), failed: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer run.Close()
		defer func() { // the terminal is put back before anything else
			if p := recover(); p != nil {
				c.err = fmt.Errorf("internal error: %v", p)
				close(c.failed)
			}
		}()
		if err := errors.Join(run.Count(), run.Finish(ctx)); err != nil && ctx.Err() == nil {
			c.err = err
			close(c.failed)
		}
	}()
	return c, nil
}

// end stops counting, and returns its error.
func (c *counting) end() error {
	c.run.Stop()
	<-c.done
	return c.err
}
