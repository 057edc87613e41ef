package cli

import (
	"slices"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A timekeeper makes the operating system's account of what other counters count:
// what the threads did with their time, or the processors. It stands beside the account
// of their cycles, as a program that waits has none to explain.
type timekeeper struct {
	perfevent.Observer // of the run
	by                 counts.By
	each               bool // there is a table for each of the counting's: of intervals that were asked for, or of runs
	find               func() (*session, error)

	total   *counts.Total
	pending []*counts.Table // of intervals that have not been reported
	whole   *counts.Table   // of what has not been taken yet: without columns
	of      *counts.Layout  // of the last table
	scopes  *counts.Layout  // its scopes alone
	binding *account.Binding
	reuse   *account.Account
}

// timekeeper returns the one of the job's runs, with who watches the next of them.
func (j *job) timekeeper(w perfevent.Observer) *timekeeper {
	if j.times == nil {
		j.times = &timekeeper{by: j.by, total: counts.NewTotal(j.by), each: j.f.interval > 0 || j.f.separate || j.f.repeat > 1,
			find: sync.OnceValues(j.timeSession)}
	}
	j.times.Observer = w
	return j.times
}

// timeSession finds the method.
func (j *job) timeSession() (*session, error) {
	s, err := j.osSession()
	if err == nil {
		err = s.compile()
	}
	return s, err
}

// Join takes notice of a table of the counters', and leaves it as it is. Tables that
// are only of the turns that events take add up to one: nobody is looked at for them.
func (k *timekeeper) Join(t *counts.Table) *counts.Table {
	if k.of != t.Layout {
		k.of, k.scopes = t.Layout, &counts.Layout{Scopes: t.Scopes}
	}
	sofar := 0.0
	if k.whole != nil {
		sofar = k.whole.Duration
	}
	bare := *t
	bare.Layout, bare.Notes, bare.Duration = k.scopes, nil, sofar+t.Duration
	k.whole = &bare
	if k.each {
		k.take()
	}
	return t
}

// take has a table made of what there is.
func (k *timekeeper) take() {
	if k.whole == nil {
		return
	}
	t := k.Observer.Join(k.whole)
	k.whole = nil
	if k.by.Has(counts.Interval) {
		k.pending = append(k.pending, t.Clone())
		return
	}
	// Who reports the counting's own tables adds them in the same way, and says if they
	// cannot be.
	_ = k.total.Add(t)
}

// step goes on to the next interval: account is about it from now on.
func (k *timekeeper) step() {
	if len(k.pending) == 0 {
		return
	}
	k.total.Reset()
	_ = k.total.Add(k.pending[0]) // as in take
	k.pending = k.pending[1:]
}

// account returns the account of a scope, nil if there is none. It is valid until the
// next call.
func (k *timekeeper) account(scope *counts.Scope) *account.Account {
	t := k.total.Table()
	if t == nil {
		return nil
	}
	self := slices.IndexFunc(t.Scopes, func(s counts.Scope) bool {
		return s.Kind == scope.Kind && s.TID == scope.TID && s.CPU == scope.CPU
	})
	s, err := k.find()
	if err != nil || self < 0 {
		return nil
	}
	if k.binding == nil || k.binding.Layout != t.Layout {
		k.binding, k.reuse = s.method.Bind(t.Layout), nil
	}
	k.reuse = k.binding.Evaluate(t, account.Place{Self: self}, k.reuse)
	return k.reuse
}

// A timed is a counting beside which somebody watches.
type timed struct {
	counting
	times *timekeeper // nil if what is watched stands in the counting's own tables
	end   func()      // of the watching
}

func (t *timed) Next() bool {
	if t.counting.Next() {
		return true
	}
	if t.times != nil {
		t.times.take()
	}
	return false
}

func (t *timed) Close() error {
	t.end()
	return t.counting.Close()
}
