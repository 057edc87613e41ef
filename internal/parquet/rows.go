package parquet

import (
	"fmt"
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// A scope is what the rows of every table begin with. Pointers are columns that may be null.
type scope struct {
	Recording string   `parquet:"recording,dict,zstd"`
	Account   int64    `parquet:"account,zstd"`
	Processor string   `parquet:"processor,dict,zstd"`
	Vendor    string   `parquet:"vendor,dict,zstd"`
	Source    string   `parquet:"source,dict,zstd"`
	Measured  bool     `parquet:"measured,zstd"`
	Kind      string   `parquet:"scope,dict,zstd"`
	Label     *string  `parquet:"label,optional,dict,zstd"`
	Start     *float64 `parquet:"start_s,optional,zstd"`
	Duration  *float64 `parquet:"duration_s,optional,zstd"`
	Runs      int64    `parquet:"runs,zstd"`
	CPU       *int64   `parquet:"cpu,optional,dict,zstd"`
	CPUs      *int64   `parquet:"cpus,optional,dict,zstd"`
	Core      *int64   `parquet:"core,optional,dict,zstd"`
	Die       *int64   `parquet:"die,optional,dict,zstd"`
	Socket    *int64   `parquet:"socket,optional,dict,zstd"`
	Node      *int64   `parquet:"numa_node,optional,dict,zstd"`
	PID       *int64   `parquet:"pid,optional,dict,zstd"`
	TID       *int64   `parquet:"tid,optional,dict,zstd"`
	Process   *string  `parquet:"process,optional,dict,zstd"`
	Thread    *string  `parquet:"thread,optional,dict,zstd"`
	Comm      *string  `parquet:"comm,optional,dict,zstd"`
	Cgroup    *string  `parquet:"cgroup,optional,dict,zstd"`
	Module    *string  `parquet:"module,optional,dict,zstd"`
	BuildID   *string  `parquet:"build_id,optional,dict,zstd"`
	Function  *string  `parquet:"function,optional,dict,zstd"`
	File      *string  `parquet:"file,optional,dict,zstd"`
	Line      *int64   `parquet:"line,optional,dict,zstd"`
	Addr      *string  `parquet:"addr,optional,dict,zstd"`
}

// A countRow is one event of an account.
type countRow struct {
	scope
	Event     string   `parquet:"event,dict,zstd"`
	As        string   `parquet:"spelled,dict,zstd"`
	LP        *int64   `parquet:"lp,optional,dict,zstd"`
	Value     *float64 `parquet:"value,optional,zstd"`
	Unit      *string  `parquet:"unit,optional,dict,zstd"`
	Error     *float64 `parquet:"error,optional,zstd"`
	Coverage  *float64 `parquet:"coverage,optional,zstd"`
	EnabledNS *float64 `parquet:"enabled_ns,optional,zstd"`
	RunningNS *float64 `parquet:"running_ns,optional,zstd"`
	Samples   int64    `parquet:"samples,zstd"`
	Used      bool     `parquet:"used,zstd"`
	Reliable  bool     `parquet:"reliable,zstd"`
	Reason    *string  `parquet:"reason,optional,dict,zstd"`
}

// An accountRow is one node of an account.
type accountRow struct {
	scope
	Model       string   `parquet:"model,dict,zstd"`
	Version     string   `parquet:"model_version,dict,zstd"`
	Path        string   `parquet:"path,dict,zstd"`
	Name        string   `parquet:"name,dict,zstd"`
	Level       int64    `parquet:"level,dict,zstd"`
	Section     *string  `parquet:"section,optional,dict,zstd"`
	Value       *float64 `parquet:"value,optional,zstd"`
	Amount      *float64 `parquet:"amount,optional,zstd"`
	Unit        string   `parquet:"unit,dict,zstd"`
	Error       *float64 `parquet:"error,optional,zstd"`
	NoError     *string  `parquet:"error_reason,optional,dict,zstd"`
	Bound       *float64 `parquet:"error_bound,optional,zstd"`
	Coverage    *float64 `parquet:"coverage,optional,zstd"`
	Together    bool     `parquet:"together,zstd"`
	Reliable    bool     `parquet:"reliable,zstd"`
	Flagged     bool     `parquet:"flagged,zstd"`
	InMainModel bool     `parquet:"main,zstd"`
	Reason      *string  `parquet:"reason,optional,dict,zstd"`
}

// A placeRow is one part of the samples of a recording. The first is the whole.
type placeRow struct {
	scope
	Of       string   `parquet:"share_of,dict,zstd"`
	Share    *float64 `parquet:"share,optional,zstd"`
	Error    *float64 `parquet:"error,optional,zstd"`
	Samples  int64    `parquet:"samples,zstd"`
	Value    *float64 `parquet:"value,optional,zstd"`
	Coverage *float64 `parquet:"coverage,optional,zstd"`
	Enabled  *float64 `parquet:"enabled_ns,optional,zstd"`
	Running  *float64 `parquet:"running_ns,optional,zstd"`
	Reliable bool     `parquet:"reliable,zstd"`
	Reason   *string  `parquet:"reason,optional,dict,zstd"`
}

// known returns a number, nil for NaN. Infinity stays what it is.
func known(f float64) *float64 {
	if math.IsNaN(f) {
		return nil
	}
	return &f
}

// positive returns a number, nil for what 0 says is not known.
func positive[T int64 | float64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

// text returns a string, nil for "".
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// number returns a number, nil if it is not known or does not apply.
func number(n int, applies bool) *int64 {
	if !applies || n == counts.Unknown {
		return nil
	}
	v := int64(n)
	return &v
}

// scopeOf is the scope of an account with a number.
func scopeOf(h *report.Header, recording string, n int64, a *account.Account) scope {
	of := &a.Scope
	s := scope{Recording: recording, Account: n, Processor: h.CPU.Name, Vendor: h.CPU.Vendor, Source: h.Kind, Measured: !h.From.Simulated,
		Kind: of.Kind.String(), Label: text(a.Label), Start: known(a.Start), Duration: known(a.Duration), Runs: int64(max(a.Runs, 1)),
		CPU: number(of.CPU, true), CPUs: positive(int64(of.CPUs)), Core: number(of.Core, true), Die: number(of.Die, true),
		Socket: number(of.Socket, true), Node: number(of.Node, true), PID: number(of.PID, of.PID > 0), TID: number(of.TID, of.TID > 0),
		Process: text(of.Process), Thread: text(of.Thread), Comm: text(of.Comm), Cgroup: text(of.Cgroup)}
	if of.Kind != counts.Run && (of.Kind != counts.Interval || of.Label != "") {
		s.Label = text(of.Label)
	}
	if c := of.Code; c != nil {
		s.Module, s.BuildID, s.Function, s.File, s.Line = text(c.Module), text(c.BuildID), text(c.Function), text(c.File), positive(int64(c.Line))
		if c.Addr > 0 {
			s.Addr = text(fmt.Sprintf("%#x", c.Addr)) // an address may be too large for INT64
		}
	}
	return s
}

// countOf is the row of a count.
func countOf(s *scope, c *account.Count) countRow {
	r := countRow{scope: *s, Event: c.Event, As: c.As, LP: number(c.LP, true), Value: known(c.Value), Unit: text(c.Unit), Error: known(c.Estimate().Error),
		Coverage: known(c.Coverage), EnabledNS: positive(c.Enabled), Samples: c.Samples, Used: c.Used, Reliable: c.State == counts.Counted}
	if r.As == "" {
		r.As = c.Event
	}
	if r.EnabledNS != nil {
		r.RunningNS = known(c.Running)
	}
	if !r.Reliable {
		r.Reason = text(c.State.String())
	}
	return r
}

// nodeOf is the row of a node.
func nodeOf(s *scope, a *account.Account, i int, main bool, note func(counts.Note) string) accountRow {
	m := a.Model()
	n, v := &m.Nodes[i], &a.Nodes[i]
	why, bound := a.NoError(i)
	r := accountRow{scope: *s, Model: m.Name, Version: m.Version, Path: n.Path, Name: n.Name, Level: int64(n.Level), Section: text(n.Section),
		Value: known(v.Value), Amount: known(v.Amount), Unit: page.Unit(m, i), Error: known(v.Error), NoError: text(why), Bound: known(bound),
		Coverage: known(v.Coverage), Together: v.Together, Reliable: v.Reliable(), Flagged: v.Flagged, InMainModel: main}
	switch {
	case !v.Known():
		r.Reason = text(note(a.Why(i)))
	case !v.Reliable():
		r.Reason = text(v.Doubt.String())
	}
	return r
}

// placeOf is the row of a place. The count is that of the event that places are compared
// by; nil if there is none.
func placeOf(s *scope, event string, c *account.Count, total float64) placeRow {
	r := placeRow{scope: *s, Of: event}
	if c == nil {
		r.Reason = text("the event was not counted here")
		return r
	}
	share := c.Share(total)
	of := countOf(s, c)
	r.Share, r.Error, r.Samples, r.Reliable = known(share.Value), known(share.Error), c.Samples, share.Reliable()
	r.Value, r.Coverage, r.Enabled, r.Running = of.Value, of.Coverage, of.EnabledNS, of.RunningNS
	switch {
	case r.Share == nil:
		r.Reason = of.Reason
	case !r.Reliable:
		r.Reason = text("too few samples")
	}
	return r
}

// nodesOf are all nodes of a model.
func nodesOf(m *model.Model) []int {
	list := make([]int, len(m.Nodes))
	for i := range list {
		list[i] = i
	}
	return list
}
