package cli

import (
	"errors"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
)

// The values of --penalties that are no files.
const (
	penaltiesAuto = "auto" // what "" stands for as well
	penaltiesNone = "none"
)

// penaltiesPlace is where the penalties of a machine with a processor are stored
// unless another place is named.
func penaltiesPlace(id string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "cyclestack", "penalties-"+strings.ReplaceAll(id, "/", "_")+".toml"), nil
}

// storing reports whether the user leaves it to what is stored.
func (s *session) storing() bool { return s.c.penalties == "" || s.c.penalties == penaltiesAuto }

// stored returns the file in which calibrate has stored the penalties of the very
// processor that the counts are of, as far as that is known; "" if there is none, or
// the user wants others or none.
func (s *session) stored() string {
	if s.id == "" || !s.storing() {
		return ""
	}
	if cpu, err := s.cat.CPU(s.id); err == nil && cpu.Name != s.cpu.Name {
		return "" // another type of core of the processor, or read as another one
	}
	place, err := penaltiesPlace(s.id)
	if err == nil {
		_, err = os.Stat(place)
	}
	if err != nil {
		return ""
	}
	return place
}

// penalties puts the parameters of a method that were measured into set: those of the
// file that the user names, else those that calibrate has stored.
func (s *session) penalties(m *model.Model, set map[string]float64) error {
	file, auto := s.c.penalties, s.storing()
	if auto {
		file = s.stored()
	}
	s.measured = nil
	if file == "" || file == penaltiesNone || auto && len(measurable(m)) == 0 {
		return nil
	}
	from, err := s.readPenalties(file, m)
	if err == nil && auto && from.CPU != "" && from.CPU != s.id {
		err = inputError(fmt.Errorf("%s: measured on %s, and not on %s", file, from.CPU, s.id))
	}
	var wrong *failure
	if auto && errors.As(err, &wrong) {
		return &failure{wrong.status, fmt.Errorf("%w (--penalties none goes without, cyclestack calibrate measures them anew)", wrong.err)}
	}
	if err != nil {
		return err
	}
	maps.Copy(set, from.Params)
	for _, name := range measurable(m) {
		if _, ok := set[name]; !ok && !s.sets(name) {
			from.Own = append(from.Own, name)
		}
	}
	maps.DeleteFunc(from.Params, func(name string, _ float64) bool { return s.sets(name) })
	if len(from.Params) > 0 { // else none of them is one of the method's
		from.Stored, s.measured = auto, from
	}
	return nil
}

// sets reports whether the user sets a parameter with --param, which wins.
func (s *session) sets(name string) bool {
	return slices.ContainsFunc(s.c.params, func(p string) bool {
		set, _, _ := strings.Cut(p, "=")
		return strings.TrimSpace(set) == name
	})
}

// measurable returns the names of the parameters of a method that have a value of its
// own and that calibrate could measure.
func measurable(m *model.Model) []string {
	var names []string
	for _, p := range calibrate.Parameters() {
		own := func(q model.Parameter) bool { return q.Name == p.Name && q.Value != nil }
		if takes(m, p) && slices.ContainsFunc(m.Parameters, own) {
			names = append(names, p.Name)
		}
	}
	return names
}

// penaltiesMost bounds the size of a file of parameters.
const penaltiesMost = 1 << 20

// readPenalties reads a file of parameters. Those of the processor's other
// models are passed over, so that one file serves several; a name that no model
// has is an error.
func (s *session) readPenalties(file string, m *model.Model) (*report.Measured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, inputError(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, penaltiesMost+1))
	if err != nil {
		return nil, inputError(err)
	}
	if len(text) > penaltiesMost {
		return nil, inputError(fmt.Errorf("%s: larger than %d bytes: not a file of parameters", file, penaltiesMost))
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		if d, ok := err.(*toml.DecodeError); ok {
			row, _ := d.Position()
			return nil, inputError(fmt.Errorf("%s:%d: %v", file, row, d))
		}
		return nil, inputError(fmt.Errorf("%s: %v", file, err))
	}
	from := &report.Measured{File: file, Params: map[string]float64{}}
	from.CPU, from.When = report.PenaltiesHead(text)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		if !hasParameter(m, name) {
			if known, err := s.anyHas(name); err != nil || !known {
				return nil, inputError(fmt.Errorf("%s: no model for %s has a parameter %s", file, s.cpu.Name, name))
			}
			continue
		}
		if from.Params[name], err = parameter(m, name, fmt.Sprint(v)); err != nil {
			return nil, inputError(fmt.Errorf("%s: %s: %v", file, name, err))
		}
	}
	return from, nil
}

func hasParameter(m *model.Model, name string) bool {
	return slices.ContainsFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == name })
}

// anyHas reports whether any model has a parameter: one of the processor's, or,
// where the processor is not known, of any.
func (s *session) anyHas(name string) (bool, error) {
	cpus := []string{s.cpu.Name, resolve.GenericCPU} // some methods are for any processor
	if s.cpu.Name == resolve.GenericCPU {
		for _, cpu := range s.cat.CPUs() {
			cpus = append(cpus, cpu.Name)
		}
	}
	for _, cpu := range cpus {
		for _, info := range s.cat.Models(cpu) {
			m, err := s.cat.Model(info.Name, cpu)
			if err != nil {
				return false, err
			}
			if hasParameter(m, name) {
				return true, nil
			}
		}
	}
	return false, nil
}
