// Package fleet makes accounts of many hosts. It asks a store for sums of the counters that
// exporters wrote, and judges them as it would one machine's. The store is a Prometheus, or
// what has its HTTP API.
//
// It stands where a source does in the flow
//
//	model → plan → source → counts → account → report
//
// Sums come first and ratios last: no mean of ratios is formed. Errors come from the spread
// over hosts. Accounts of different processors, models or versions are never summed.
package fleet

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/model"
)

// Options are what a user asks for.
type Options struct {
	Access  Access
	By      string
	Range   time.Duration
	At      string   // a time as RFC 3339 has it, or in seconds since 1970; "" is now
	Where   []string // LABEL=VALUE, LABEL!=VALUE
	Level   int
	All     bool
	Raw     bool
	Against string        // LABEL=VALUE: the hosts with it are compared with the rest
	Before  time.Duration // how much earlier the other side of a comparison is; 0 for none
	FailOn  string        // limits of a comparison, such as 'Memory_Bound>3%'; see [Comparison].Broken
	Models  []string      // files and directories of further models

	Say  func(error) string                          // puts an error into words for the user; nil is its own text
	Next func(store string, where []string) []string // the command about these labels alone; nil for none
}

// Run asks a store. The document is a [Report] or a [*Comparison].
func Run(ctx context.Context, o Options) (document any, err error) {
	q, err := o.question(time.Now())
	if err != nil {
		return nil, err
	}
	list, err := o.limits()
	if err != nil {
		return nil, err
	}
	if o.Access.URL == "" {
		return nil, fault.Usagef("%s names the store, such as http://localhost:9090", fault.Name("prom"))
	}
	store, err := Open(o.Access)
	if err != nil {
		return nil, err
	}
	cat, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	if err := cat.Add(o.Models...); err != nil {
		return nil, fault.As(fault.Input, err)
	}
	if o.Against != "" || o.Before != 0 {
		c, err := contrast(ctx, store, q, &o)
		if err != nil {
			return nil, err
		}
		c.Broken, err = c.beyond(list)
		return c, err
	}
	a, err := Ask(ctx, store, q)
	if err != nil {
		return nil, err
	}
	sets, err := Accounts(a, cat)
	if err != nil {
		return nil, err
	}
	return Report{Store: store, Answer: a, Sets: sets, Together: Together(sets, false), Total: Together(sets, true), next: o.Next}, nil
}

func (o *Options) say(err error) string {
	if o.Say == nil {
		return err.Error()
	}
	return o.Say(err)
}

// question is what is asked of the store.
func (o *Options) question(now time.Time) (Question, error) {
	q := Question{By: o.By, At: now, Range: o.Range, Level: o.Level, Raw: o.Raw}
	if o.At != "" {
		at, err := instant(o.At)
		if err != nil {
			return q, err
		}
		q.At = at
	}
	for _, text := range o.Where {
		m, err := ParseMatch("where", text)
		if err != nil {
			return q, err
		}
		q.Where = append(q.Where, m)
	}
	return q, q.check()
}

// instant reads a point in time.
func instant(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	const most = 1 << 40 // seconds
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(s) < most) {
		return time.Time{}, fault.Optionf("at", text, "not a time, such as 2026-01-31T12:00:00Z or seconds since 1970")
	}
	return time.UnixMilli(int64(s * 1000)), nil
}

// contrast asks for both sides of a comparison.
func contrast(ctx context.Context, s *Store, q Question, o *Options) (*Comparison, error) {
	old, new := q, q
	var what [2]string
	switch {
	case o.Against != "" && o.Before != 0:
		return nil, fault.Usagef("%s and %s: choose one", fault.Name("against"), fault.Name("before"))
	case o.Against != "":
		m, err := ParseMatch("against", o.Against)
		if err != nil {
			return nil, err
		}
		rest := m
		rest.Not = !m.Not
		new.Where = append(new.Where[:len(new.Where):len(new.Where)], m)
		old.Where = append(old.Where[:len(old.Where):len(old.Where)], rest)
		what = [2]string{"the rest", o.Against}
	case o.Before < q.Range:
		return nil, fault.Optionf("before", o.Before.String(), "less than %s: the two would overlap", fault.Name("range"))
	default:
		old.At, new.Earlier = q.At.Add(-o.Before), o.Before
		what = [2]string{"the range " + o.Before.String() + " earlier", fmt.Sprintf("%s to %s", q.Range, q.At.UTC().Format("2006-01-02 15:04 UTC"))}
	}
	a, err := Ask(ctx, s, new)
	if err != nil {
		return nil, err
	}
	b, err := Ask(ctx, s, old)
	if err != nil {
		return nil, err
	}
	for i, x := range []*Answer{b, a} {
		if len(x.Rows) == 0 {
			return nil, fault.Inputf("the store has no counters of cyclestack for one side: %s", what[i])
		}
	}
	c := Compare(b, a, what)
	if o.Before != 0 && a.Rules {
		c.Notes = append(c.Notes, o.say(fault.Errorf("recording rules have no hosts to pair: %s pairs them, and changes are surer then", fault.Name("raw"))))
	}
	return c, nil
}
