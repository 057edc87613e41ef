package measure

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
)

// coreParts makes a part for each type of core that shares its time among logical
// processors.
func (m *Measurement) coreParts() error {
	if why := m.machine.NoPMU(); why != "" {
		return &NoPMUError{why}
	}
	if !m.machine.Probe.SMT {
		return fault.Machinef("every core of this machine has one logical processor in use, so there is nothing to divide among two")
	}
	r, err := m.resolver()
	if err != nil {
		return err
	}
	types, err := m.coreTypes(r)
	if err != nil {
		return err
	}
	var none error
	for _, t := range types {
		if _, err := r.Catalogue.Model(resolve.SMTModel, t.CPU.Name); err != nil {
			none = err // the small cores of a hybrid have one logical processor each
			continue
		}
		s, err := m.selection(t.CPU.Name)
		if err != nil {
			return err
		}
		m.baseRatio(s)
		method, err := s.Compile(nil)
		if err != nil {
			return err
		}
		p := &part{method: func() (*resolve.Method, error) { return method, nil }, pmu: t.PMU, cpu: t.CPU.Name}
		if p.plan, err = m.plan(s, true); err != nil {
			return err
		}
		m.name(p, t.Note, len(types) > 1)
		m.find(p, len(types) > 1)
		m.parts = append(m.parts, p)
	}
	if len(m.parts) == 0 {
		return fault.As(fault.Machine, none)
	}
	return nil
}

// baseRatio gives the method the nominal clock, where the kernel knows it and the user did
// not say.
func (m *Measurement) baseRatio(s *resolve.Selection) {
	const name, file = "BASE_RATIO", "sys/devices/system/cpu/cpu0/cpufreq/base_frequency"
	if _, given := s.Params[name]; given || !resolve.HasParameter(s.Model, name) {
		return
	}
	text, err := fs.ReadFile(m.machine.Root, file)
	if err != nil {
		return
	}
	const stepKHz = 100_000 // the clock is a multiple of 100 MHz
	if kHz, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil {
		s.Params[name] = kHz / stepKHz
	}
}

// corePlaces finds the cores in a table of this machine's logical processors.
func (m *Measurement) corePlaces(t *counts.Table) ([]accounting.Place, error) {
	row := map[int]int{}
	for i, s := range t.Scopes {
		row[s.CPU] = i
	}
	type id struct{ socket, die, core int }
	at := map[id]int{}
	var list []accounting.Place
	topology, err := m.machine.Sys.Topology()
	if err != nil {
		return nil, fault.As(fault.Machine, err)
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
		return nil, &fault.OptionError{Option: "cpu-list", Err: fmt.Errorf("no core has both of its logical processors among these")}
	}
	for i := range list {
		list[i] = accounting.Core(t, list[i].LP)
	}
	return list, nil
}
