package cli

import (
	"errors"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/shell"
	"maps"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/spelling"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source"
)

// A session is what one command works with: the catalogue, and once the first
// table of a recording is there, the processor and the method.
type session struct {
	c      *common
	cat    *model.Catalogue
	cpu    *model.CPU
	model  *model.Model
	method *account.Method
	events *model.EventTable
	params map[string]float64
	// measured says which of params were measured, and where; nil if none were.
	measured *report.Measured
	from     string // the file that said which processor it is; "" for --cpu
	id       string // the processor as the counts' source identifies it, else as --cpu has it
	having   string // a node that the method must have; "" is any
	audits   bool   // the method that checks most is wanted
	note     string // what is odd about the choice
}

func (c *common) session() (*session, error) {
	cat, err := c.catalogue()
	if err != nil {
		return nil, err
	}
	s := &session{c: c, cat: cat}
	if c.cpu == "" {
		return s, nil
	}
	if s.cpu, err = cat.CPU(c.cpu); err != nil {
		return nil, usageError("--cpu: %v", err)
	}
	s.id = c.cpu
	return s, nil
}

// settle chooses processor and method for a table of a recording. All tables
// of all files of one call must be of one processor: counts of two are never
// put into one account.
func (s *session) settle(t *counts.Table, file, prefer string) error {
	if err := s.settleCPU(t, file); err != nil {
		return err
	}
	switch {
	case s.method != nil:
		return nil
	case s.c.model == "" && simulatedCounts(t):
		return s.settleNeutral(simModel)
	case prefer == "" && s.c.model == "":
		return s.settleBest(t)
	}
	return s.settleModel(prefer)
}

// simulatedCounts reports whether a table has what simulators count: what was executed, and not
// what a processor did.
func simulatedCounts(t *counts.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c counts.Column) bool { return c.Event == "Ir" })
}

// neutral reports whether a method is about no processor in particular, but may be used for
// what was recorded on any: of what simulators count, and of what operating systems do.
func neutral(method string) bool { return method == simModel || method == osModel }

// settleNeutral chooses such a method, for whatever processor.
func (s *session) settleNeutral(method string) (err error) {
	if s.model, err = s.cat.Model(method, resolve.GenericCPU); err != nil {
		return usageError("%v", err)
	}
	if s.events, err = s.cat.Events(s.cpu); err != nil {
		return err
	}
	if s.params, err = s.parameters(s.model); err != nil {
		return err
	}
	return s.compile()
}

// settleBest chooses the method that says most about a recording: the one with
// the largest part of its first level known, in doubt the one that comes first
// in the catalogue. That of the operating system's counters, which is complete with next to
// nothing, is for recordings of which no other method makes anything of its own.
func (s *session) settleBest(t *counts.Table) error {
	best, bestScore, known := "", -1.0, 0.0
	related := false
	for _, info := range s.cat.Models(s.cpu.Name) {
		if err := s.settleModel(info.Name); err != nil {
			// It may be another method that has the parameters given; if none
			// has, the last attempt below says so.
			if best == "" {
				best = info.Name
			}
			continue
		}
		if s.having != "" && !has(s.model, s.having) {
			continue
		}
		a := s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil)
		if info.Name == osModel && related && !s.audits {
			continue
		}
		related = related || relates(a)
		if score := s.score(a); score > bestScore || bestScore < 0 {
			best, bestScore, known = info.Name, score, a.Completeness()
		}
	}
	if known < firstLevelKnown && s.settleModel(smtModel) == nil {
		core := account.Place{LP: []int{0, len(t.Scopes) - 1}}
		if s.method.Bind(t.Layout).Evaluate(t, core, nil).Completeness() > known {
			s.note = "what was recorded is about the logical processors of a core: cyclestack smt prints it"
		}
	}
	if bestScore <= 0 && s.cpu.Name != resolve.GenericCPU && !s.audits && s.having == "" && len(s.c.params) == 0 && s.settleNeutral(osModel) == nil &&
		s.method.Bind(t.Layout).Evaluate(t, account.Place{}, nil).Known() {
		return nil
	}
	return s.settleModel(best)
}

// relates reports whether an account relates counts of several events, so that it says more
// than they do.
func relates(a *account.Account) bool {
	for i := range a.Nodes {
		if a.Relates(i) {
			return true
		}
	}
	return false
}

// score is how much an account says, for what the command is about: its nodes, or
// its checks, of which those of a whole tree count for more than any others.
func (s *session) score(a *account.Account) float64 {
	const whole = 1e6
	switch {
	case !s.audits:
		return a.Completeness()
	case a.Completeness() >= 1:
		return whole
	}
	return float64(checksMade(a))
}

// checksMade is how many of an account's checks could be made.
func checksMade(a *account.Account) int {
	made := 0
	for i := range a.Checks {
		if a.Checks[i].State != account.Skipped {
			made++
		}
	}
	return made
}

// firstLevelKnown is less than the completeness of any account that has a node
// of the first level.
const firstLevelKnown = 1e-3

func (s *session) settleCPU(t *counts.Table, file string) error {
	if t.CPU != "" {
		cpu, err := s.cat.CPU(t.CPU)
		switch {
		case err != nil && s.cpu == nil:
			return inputError(fmt.Errorf("%s: it says its processor is %s: %v", where(file, t.Line), t.CPU, err))
		case err == nil && s.cpu == nil:
			s.cpu, s.from, s.id = cpu, file, t.CPU
		case t.CPU == simulation.AnyCPU: // a simulator's counts are of no processor in particular
		case err == nil && cpu.Name != s.cpu.Name && s.c.cpu != "":
			s.note = fmt.Sprintf("%s says that it is from %s; it was read as from %s, as --cpu asks", file, cpu.Name, s.cpu.Name)
		case err == nil && cpu.Name != s.cpu.Name:
			return inputError(fmt.Errorf("%s: from %s, but %s is from %s: report one processor at a time", where(file, t.Line), cpu.Name, s.from, s.cpu.Name))
		case err == nil && s.method == nil:
			s.id = t.CPU
		case err == nil && s.measured != nil && s.measured.Stored && t.CPU != s.id:
			return inputError(fmt.Errorf("%s: from %s, but the penalties that are stored here are of %s: --penalties none goes without", where(file, t.Line), t.CPU, s.id))
		}
	}
	if s.cpu != nil {
		return nil
	}
	err := s.askCPU(t, file)
	if s.audits && errors.As(err, new(*failure)) {
		// What holds on every processor can be checked without knowing which it is.
		s.note = err.Error() + "; until then only what holds on every processor is checked"
		s.cpu, err = s.cat.CPU(resolve.GenericCPU)
	}
	return err
}

// askCPU names the processors that a recording may be from. Which one it is is
// never guessed: encodings mean different things on different processors.
func (s *session) askCPU(t *counts.Table, file string) error {
	const most = 6
	fits, of, err := s.cat.Candidates(eventNames(t))
	if err != nil {
		return err
	}
	hint := "its events are known everywhere: cyclestack models lists the names; --cpu generic is any"
	if len(fits) > 0 {
		names := fits
		more := ""
		if len(names) > most {
			names, more = names[:most], fmt.Sprintf(" and %d more", len(fits)-most)
		}
		hint = fmt.Sprintf("%d of its %d events fit %s%s", of, len(t.Columns), strings.Join(names, ", "), more)
	}
	return usageError("%s does not say which processor it is from: add --cpu NAME, or --cpu native if it is this machine's (%s)", file, hint)
}

func eventNames(t *counts.Table) []string {
	var names []string
	for _, c := range t.Columns {
		if !slices.Contains(names, c.Event) {
			names = append(names, c.Event)
		}
	}
	return names
}

// settleModel chooses the method: the one asked for, else the one the command
// prefers, else the processor's first.
func (s *session) settleModel(prefer string) (err error) {
	name := s.c.model
	if name == "" {
		name = prefer
	}
	if neutral(name) {
		return s.settleNeutral(name)
	}
	if s.model, err = s.cat.Model(name, s.cpu.Name); err != nil {
		return usageError("%v", err)
	}
	if s.events, err = s.cat.Events(s.cpu); err != nil {
		return err
	}
	if s.params, err = s.parameters(s.model); err != nil {
		return err
	}
	return s.compile()
}

// compile makes the method ready for its processor.
func (s *session) compile() (err error) {
	s.method, err = account.Compile(s.model, s.cpu, s.events, account.Options{Params: s.params, Workload: model.Workload(s.c.workload), Level: s.c.level})
	if err != nil {
		return usageError("%v", err)
	}
	return nil
}

// checkNodes refuses a pattern of --nodes that no node of the method matches.
func (s *session) checkNodes() error {
	if p := s.c.nodes; p != "" && len(report.Select(s.model, p, 0)) == 0 {
		return s.unmatched("--nodes", p)
	}
	return nil
}

// unmatched is the error of a flag's pattern that no node of the method matches.
func (s *session) unmatched(flag, pattern string) error {
	return usageError("%s %s: no node of %s matches%s (%s prints the tree)", flag, pattern, s.model.Name, meant(s.model, pattern), s.tree())
}

// meant asks for the node that a mistyped name may mean; it is "" if there is none.
func meant(m *model.Model, name string) string {
	names := make([]string, len(m.Nodes))
	for i := range names {
		names[i] = m.Nodes[i].Name
	}
	if near := spelling.Near(name, names, 1); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// tree is the command that prints the method's tree. The method may be one that is for
// other processors than the one at hand: that of the operating system's counters.
func (s *session) tree() string {
	cpu := s.cpu.Name
	if list := s.model.CPUs; len(list) > 0 && !slices.Contains(list, cpu) {
		cpu = list[0]
	}
	return shell.Line([]string{"cyclestack", "models", "--cpu", cpu, "--model", s.model.Name})
}

func (s *session) header(kind string, files []string) report.Header {
	h := report.Header{CPU: s.cpu, CPUID: s.c.cpu, Model: s.model, Kind: kind, Files: files, Params: s.given(), Measured: s.measured,
		ModelFlag: s.c.model, ModelFiles: s.c.files, Workload: model.Workload(s.c.workload)}
	h.Kept = len(files) == 1 && source.Kept(files[0])
	if h.Simulated = isSimulated(kind); h.Simulated {
		h.How = "simulated by " + kind + ", not measured"
	}
	return h
}

// given are the parameters that the user has given: what is stored is found again.
func (s *session) given() map[string]float64 {
	if s.measured == nil || !s.measured.Stored {
		return s.params
	}
	given := maps.Clone(s.params)
	maps.DeleteFunc(given, func(name string, _ float64) bool { _, ok := s.measured.Params[name]; return ok })
	return given
}

// where names a table's place in a file: the line, if the file has lines.
func where(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// eachTable calls do with every table of every file.
func eachTable(files []string, do func(r source.Reader, t *counts.Table, file string) error) error {
	for _, name := range files {
		if err := tablesOf(name, 0, do); err != nil {
			return err
		}
	}
	return nil
}

// tablesOf calls do with the tables of a file. Of samples, the scopes of by are
// kept apart.
func tablesOf(name string, by counts.By, do func(r source.Reader, t *counts.Table, file string) error) error {
	f, err := source.Open(name)
	if err != nil {
		return inputError(err)
	}
	defer f.Close()
	f.Keep(by)
	any := false
	for f.Next() {
		any = true
		if err := do(f, f.Table(), name); err != nil {
			return err
		}
	}
	if err := f.Err(); err != nil {
		return inputError(err)
	}
	if !any {
		return inputError(errors.New(name + ": it holds no counts"))
	}
	return nil
}
