package recorded

import (
	"errors"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/profile"
)

// errStop ends the reading of a recording early.
var errStop = errors.New("stop")

// First returns the account of the first recording's first run, by the best fitting
// method that has a node. code says where the programs of a recording are.
func (r *Recordings) First(node string, code profile.Config) (*resolve.Method, *account.Account, error) {
	if m, acc := r.ofLoops(node, code); m != nil {
		return m, acc, nil
	}
	name, total := r.Names[0], counts.NewTotal(0)
	var m *resolve.Method
	err := r.eachTable(name, 0, func(t *counts.Table, _ accounting.Kind) (err error) {
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

// ofLoops returns the account of the first recording with the model's parts of its hot loops.
// Of another node it returns nil.
func (r *Recordings) ofLoops(node string, code profile.Config) (*resolve.Method, *account.Account) {
	generic, err := r.Generic(modelName)
	if err != nil {
		return nil, nil
	}
	if _, err := generic.Node(node); err != nil {
		return nil, nil
	}
	p := &placeReport{Recordings: r, o: &PlaceOptions{Symbols: code}, file: r.Names[0]}
	t, err := p.table(p.file)
	if err != nil || p.resolve(t) != nil {
		return nil, nil
	}
	d := p.looped()
	if d == nil {
		return nil, nil
	}
	t = p.divided(p.row(t), d)
	for _, m := range append([]*resolve.Method{p.method}, p.method.Also...) {
		if _, err := m.Node(node); err == nil {
			return m, m.Evaluate(t, account.Place{})
		}
	}
	return nil, nil
}
