// Package modeltest runs .test files: counts, and the node values a model must
// make of them, in the manner of Prometheus' promqltest.
//
//	# comment
//	load cpu=power7 model=power7-cpi
//	  PM_RUN_CYC 346189430203434 16.04%
//	  PM_RUN_INST_CMPL 20642995717523 17.68%
//	  CPU_CLK_UNHALTED.REF_TSC@lp1 5000
//	eval RUN_CPI 16.7703 ±1e-5
//	eval STALL_CPI unknown "PM_CMPLU_STALL is not in the recording"
//	check "closes" holds
//
// load starts anew; its indented lines are counts. They may have a coverage in percent, and
// @lpN for logical processor N of a core. More words on the load line set parameters: param
// NAME=VALUE, and duration=SECONDS. eval gives a value with a relative tolerance (1e-9 by
// default), or unknown with a part of the reason. check gives the outcome of a check: holds,
// fails, skipped.
package modeltest

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/model"
)

// Run runs a .test file.
func Run(t *testing.T, cat *model.Catalogue, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := runner{t: t, cat: cat, file: file}
	s := bufio.NewScanner(f)
	for s.Scan() {
		r.line++
		if err := r.do(s.Text()); err != nil {
			t.Fatalf("%s:%d: %v", file, r.line, err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if r.evals == 0 {
		t.Fatalf("%s: it checks nothing", file)
	}
}

type runner struct {
	t     *testing.T
	cat   *model.Catalogue
	file  string
	line  int
	evals int

	cpu, model string
	params     map[string]string
	duration   float64
	counts     []reading
	account    *account.Account // nil until the counts are complete
}

type reading struct {
	event    string
	lp       int
	value    float64
	coverage float64
}

func (r *runner) do(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	switch {
	case words[0] == "load":
		return r.load(words[1:])
	case text[0] == ' ' || text[0] == '\t':
		return r.count(words)
	case words[0] == "eval":
		return r.eval(words[1:], text)
	case words[0] == "check":
		return r.check(text)
	}
	return fmt.Errorf("unknown line %q", text)
}

func (r *runner) load(words []string) error {
	r.cpu, r.model, r.params, r.duration, r.counts, r.account = "", "", map[string]string{}, math.NaN(), nil, nil
	for i := 0; i < len(words); i++ {
		if words[i] == "param" {
			continue
		}
		k, v, ok := strings.Cut(words[i], "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", words[i])
		}
		switch k {
		case "cpu":
			r.cpu = v
		case "model":
			r.model = v
		case "duration":
			d, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return err
			}
			r.duration = d
		default:
			r.params[k] = v
		}
	}
	return nil
}

func (r *runner) count(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("a count is EVENT VALUE [COVERAGE%%]")
	}
	c := reading{event: words[0], lp: -1, coverage: 1}
	if name, lp, ok := strings.Cut(words[0], "@lp"); ok {
		n, err := strconv.Atoi(lp)
		if err != nil {
			return err
		}
		c.event, c.lp = name, n
	}
	var err error
	if c.value, err = strconv.ParseFloat(words[1], 64); err != nil {
		return err
	}
	if len(words) > 2 {
		p, err := strconv.ParseFloat(strings.TrimSuffix(words[2], "%"), 64)
		if err != nil {
			return err
		}
		c.coverage = p / 100
	}
	r.counts = append(r.counts, c)
	return nil
}

// evaluate makes the account of what was loaded.
func (r *runner) evaluate() error {
	if r.account != nil {
		return nil
	}
	cpu, err := r.cat.CPU(r.cpu)
	if err != nil {
		return err
	}
	m, err := r.cat.Model(r.model, cpu.Name)
	if err != nil {
		return err
	}
	events, err := r.cat.Events(cpu)
	if err != nil {
		return err
	}
	params, err := r.numbers(m)
	if err != nil {
		return err
	}
	method, err := account.Compile(m, cpu, events, account.Options{Params: params})
	if err != nil {
		return err
	}
	t, place := r.table()
	r.account = method.Bind(t.Layout).Evaluate(t, place, nil)
	return nil
}

func (r *runner) numbers(m *model.Model) (map[string]float64, error) {
	out := map[string]float64{}
	for name, text := range r.params {
		if i := slices.IndexFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == name }); i >= 0 {
			if v, ok := m.Parameters[i].Choices[text]; ok {
				out[name] = v
				continue
			}
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// table lays the counts out: the run in the first row, logical processors
// behind it.
func (r *runner) table() (*counts.Table, account.Place) {
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("test")}}
	place := account.Place{}
	for _, c := range r.counts {
		if !slices.ContainsFunc(l.Columns, func(o counts.Column) bool { return o.Event == c.event }) {
			l.Columns = append(l.Columns, counts.Column{Event: c.event})
		}
		for c.lp >= len(place.LP) {
			place.LP = append(place.LP, len(l.Scopes))
			l.Scopes = append(l.Scopes, counts.RunScope(fmt.Sprintf("CPU%d", len(place.LP)-1)))
		}
	}
	t := counts.NewTable(l)
	t.Duration = r.duration
	const enabled = 1e9
	for _, c := range r.counts {
		col := slices.IndexFunc(l.Columns, func(o counts.Column) bool { return o.Event == c.event })
		row := 0
		if c.lp >= 0 {
			row = place.LP[c.lp]
		}
		*t.Cell(row, col) = counts.Cell{Value: c.value, Enabled: enabled, Running: c.coverage * enabled, State: counts.Counted}
	}
	return t, place
}

// tolerance is the relative difference allowed where none is given.
const tolerance = 1e-9

func (r *runner) eval(words []string, text string) error {
	if len(words) < 2 {
		return fmt.Errorf("eval NODE VALUE [±TOLERANCE]")
	}
	if err := r.evaluate(); err != nil {
		return err
	}
	r.evals++
	i, ok := r.account.Node(words[0])
	if !ok {
		return fmt.Errorf("no node %s", words[0])
	}
	got := r.account.Nodes[i].Value
	if words[1] == "unknown" {
		reason := quoted(text)
		switch why := r.account.Why(i); {
		case !math.IsNaN(got):
			r.errorf("%s = %v, want unknown", words[0], got)
		case !strings.Contains(why.Text, reason):
			r.errorf("%s is unknown because %q, want %q", words[0], why, reason)
		}
		return nil
	}
	want, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		return err
	}
	tol := tolerance
	if len(words) > 2 {
		if tol, err = strconv.ParseFloat(strings.TrimLeft(words[2], "±"), 64); err != nil {
			return err
		}
	}
	switch {
	case math.IsNaN(got):
		r.errorf("%s is unknown (%s), want %v", words[0], r.account.Why(i), want)
	case math.Abs(got-want) > tol*math.Abs(want) && math.Abs(got-want) > 1e-15:
		r.errorf("%s = %v, want %v", words[0], got, want)
	}
	return nil
}

func (r *runner) check(text string) error {
	if err := r.evaluate(); err != nil {
		return err
	}
	r.evals++
	name := quoted(text)
	want := strings.TrimSpace(text[strings.LastIndexByte(text, '"')+1:])
	for i := range r.account.Checks {
		c := &r.account.Checks[i]
		if c.Name != name {
			continue
		}
		if c.State.String() != want {
			r.errorf("check %q %s (%v, %v; %s), want %s", name, c.State, c.Left, c.Right, r.account.WhySkipped(i), want)
		}
		return nil
	}
	return fmt.Errorf("no check %q", name)
}

func (r *runner) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s:%d: %s", r.file, r.line, fmt.Sprintf(format, args...))
}

// quoted returns what stands between double quotes, "" if nothing does.
func quoted(text string) string {
	_, rest, ok := strings.Cut(text, `"`)
	if !ok {
		return ""
	}
	inner, _, _ := strings.Cut(rest, `"`)
	return inner
}
