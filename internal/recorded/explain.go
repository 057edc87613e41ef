package recorded

import (
	"errors"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// errStop ends the reading of a recording early.
var errStop = errors.New("stop")

// First returns the account of the first recording's first run, by the best fitting
// method that has a node.
func (r *Recordings) First(node string) (*resolve.Method, *account.Account, error) {
	name, total := r.Names[0], counts.NewTotal(0)
	var m *resolve.Method
	err := r.eachTable(name, 0, func(t *counts.Table, _ string) (err error) {
		if m, err = r.Table(t, name, resolve.Request{Node: node}, m); err != nil {
			return err
		}
		if total.Begins(t) {
			return errStop
		}
		return total.Add(t)
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, nil, err
	}
	t := total.Table()
	if t == nil {
		return nil, nil, fault.Inputf("%s: it holds no counts", name)
	}
	return m, m.Evaluate(t, account.Place{}), nil
}
