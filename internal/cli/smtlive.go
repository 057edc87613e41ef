package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// runLiveSMT counts this machine's cores: as long as the program runs, or until
// a signal comes.
func (a *app) runLiveSMT(ctx context.Context, c *common, f *statFlags, siblings string, program []string) (err error) {
	switch {
	case siblings != "":
		return usageError("--siblings is for recordings: this machine says which logical processors share a core")
	case f.cpus == "":
		f.all = true // what a core does is more than what a program does
	}
	if err := f.check(c, program); err != nil {
		return err
	}
	if _, err := parseBy(c.by); err != nil {
		return err
	}
	j := &job{app: a, c: c, f: f, program: program, stream: a.out, by: counts.By(0).With(counts.CPU)}
	if f.interval > 0 {
		j.by = j.by.With(counts.Interval)
	}
	if err := j.prepare(); err != nil {
		return err
	}
	if why := j.machine.NoPMU(); why != "" {
		return machineError(fmt.Errorf("%s; cyclestack doctor says what would change that", why))
	}
	if !j.machine.Probe.SMT {
		return machineError(errors.New("every core of this machine has one logical processor in use, so there is nothing to divide among two"))
	}
	if err := j.smtParts(); err != nil {
		return err
	}
	j.places = j.liveCores
	return j.count(ctx)
}

// smtParts makes a part for each type of core whose logical processors can be
// told apart.
func (j *job) smtParts() error {
	cat, err := j.catalogue()
	if err != nil {
		return err
	}
	types, err := j.machine.CoreTypes(cat, j.c.cpu)
	if err != nil {
		return usageError("--cpu: %v", err)
	}
	j.c.model = resolve.SMTModel
	var none error
	for _, t := range types {
		if _, err := cat.Model(resolve.SMTModel, t.CPU.Name); err != nil {
			none = err // the small cores of a hybrid have one logical processor each
			continue
		}
		s, err := j.session(t.CPU.Name)
		if err != nil {
			return err
		}
		j.baseRatio(s)
		p := &part{find: func() (*session, error) { return s, nil }, pmu: t.PMU, cpu: t.CPU.Name}
		if p.plan, err = j.plan(s, true); err != nil {
			return err
		}
		j.name(p, t.Note, len(types) > 1)
		j.resolve(p, len(types) > 1)
		j.parts = append(j.parts, p)
	}
	if len(j.parts) == 0 {
		return machineError(none)
	}
	return nil
}

// baseRatio gives the method the nominal clock, where the kernel knows it and
// the user did not.
func (j *job) baseRatio(s *session) {
	const name, file = "BASE_RATIO", "sys/devices/system/cpu/cpu0/cpufreq/base_frequency"
	if _, given := s.params[name]; given || !resolve.HasParameter(s.model, name) {
		return
	}
	text, err := fs.ReadFile(j.machine.Root, file)
	if err != nil {
		return
	}
	const stepKHz = 100_000 // the clock is a multiple of 100 MHz
	if kHz, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil {
		s.params[name] = kHz / stepKHz
	}
}

// liveCores finds the cores in a table of this machine's logical processors.
func (j *job) liveCores(t *counts.Table) ([]accounting.Place, error) {
	row := map[int]int{}
	for i, s := range t.Scopes {
		row[s.CPU] = i
	}
	type id struct{ socket, die, core int }
	at := map[id]int{}
	var list []accounting.Place
	topology, err := j.machine.Sys.Topology()
	if err != nil {
		return nil, machineError(err)
	}
	for _, cpu := range topology {
		r, ok := row[cpu.ID]
		if !ok {
			continue
		}
		k := id{cpu.Socket, cpu.Die, cpu.Core}
		if i, seen := at[k]; seen {
			list[i].LP = append(list[i].LP, r)
			continue
		}
		at[k] = len(list)
		list = append(list, accounting.Place{Place: account.Place{Self: r, LP: []int{r}}})
	}
	list = slices.DeleteFunc(list, func(p accounting.Place) bool { return len(p.LP) != 2 })
	if len(list) == 0 {
		return nil, usageError("-C %s: no core has both of its logical processors among these", j.f.cpus)
	}
	for i := range list {
		list[i] = accounting.Core(t, list[i].LP)
	}
	return list, nil
}
