package picture

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

func init() {
	report.RegisterWriter("chrome-trace", func(w io.Writer, o report.Options) report.Writer { return &trace{w: w, o: o} })
}

// A trace writes accounts of intervals in the Trace Event Format, which Perfetto and Chromium
// read: each node is a counter track. Shares are in percent, since tracks have no units.
// Other accounts than those of intervals are left out.
type trace struct {
	w     io.Writer
	o     report.Options
	h     report.Header
	shown []bool
	some  bool
	tasks map[string]int // process ids by label
}

// A traceEvent is an event of the format. See "Trace Event Format", counter events.
type traceEvent struct {
	Phase string         `json:"ph"`
	Name  string         `json:"name"`
	PID   int            `json:"pid"`
	Time  *float64       `json:"ts,omitempty"` // microseconds
	Args  map[string]any `json:"args"`
}

func (t *trace) Begin(h report.Header) error {
	t.h, t.shown, t.tasks = h, h.Model.Shown(t.o.Nodes, t.o.Level), map[string]int{}
	head, err := json.Marshal(h.Head("cyclestack.account/v1"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.w, "{\"otherData\":%s,\n\"traceEvents\":[\n", head)
	return err
}

func (t *trace) event(e traceEvent) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	comma := ""
	if t.some {
		comma = ","
	}
	t.some = true
	_, err = fmt.Fprintf(t.w, "%s%s\n", comma, text)
	return err
}

// process returns the number of the process that has the tracks of a scope, and names it.
func (t *trace) process(label string) (int, error) {
	pid, ok := t.tasks[label]
	if ok {
		return pid, nil
	}
	pid = len(t.tasks) + 1
	t.tasks[label] = pid
	return pid, t.event(traceEvent{Phase: "M", Name: "process_name", PID: pid, Args: map[string]any{"name": label}})
}

func (t *trace) Account(a *account.Account) error {
	if a.Scope.Kind != counts.Interval && !(a.Scope.Kind != counts.Run && a.Start > 0) {
		return nil
	}
	pid, err := t.process(page.Printable(page.Cut(a.Label, 200)))
	if err != nil {
		return err
	}
	m := a.Model()
	at := 1e6 * a.Start
	for i := range m.Nodes {
		n, v := &m.Nodes[i], &a.Nodes[i]
		if !t.shown[i] || n.Section != "" || !v.Known() || math.IsInf(v.Value, 0) {
			continue
		}
		value, unit := v.Value, page.Unit(m, i)
		if m.Share(i) {
			value, unit = 100*value, "%"
		}
		// One value for each event: some readers take no more.
		if err := t.event(traceEvent{"C", n.Path + " (" + unit + ")", pid, &at, map[string]any{n.Name: value}}); err != nil {
			return err
		}
	}
	return nil
}

func (t *trace) End() error {
	_, err := io.WriteString(t.w, "]}\n")
	return err
}
