package resolve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/model"
)

// The values of Choice.Penalties that are no files.
const (
	PenaltiesAuto = "auto" // "" means the same
	PenaltiesNone = "none"
)

// PenaltiesFile returns the file for the penalties of a machine with a processor, if
// the user names no other.
func PenaltiesFile(id string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "cyclestack", "penalties-"+strings.ReplaceAll(id, "/", "_")+".toml"), nil
}

// UsesStored reports whether the choice takes stored penalties, if there are any.
func (c *Choice) UsesStored() bool { return c.Penalties == "" || c.Penalties == PenaltiesAuto }

// Stored returns the file with the penalties that were measured on a processor; "" if
// there is none, or the user wants others or none.
func (r *Resolver) Stored(p Processor) string {
	if p.ID == "" || !r.Choice.UsesStored() {
		return ""
	}
	if cpu, err := r.Catalogue.CPU(p.ID); err == nil && cpu.Name != p.CPU.Name {
		return "" // another type of core of the processor, or read as another one
	}
	file, err := PenaltiesFile(p.ID)
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		return ""
	}
	return file
}

// Parameters returns the parameters for a method: measured ones, and over them those
// that the user sets. Of the measured ones it says where they are from; nil if there are
// none.
func (r *Resolver) Parameters(p Processor, m *model.Model) (map[string]float64, *account.Measured, error) {
	set := map[string]float64{}
	switch r.Choice.SMT {
	case "":
	case "on":
		set["#smt_on"] = 1
	case "off":
		set["#smt_on"] = 0
	default:
		return nil, nil, &fault.OptionError{Option: "smt", Value: r.Choice.SMT, Err: errors.New("must be on or off")}
	}
	measured, err := r.penalties(p, m)
	if err != nil {
		return nil, nil, err
	}
	if measured != nil {
		maps.Copy(set, measured.Params)
	}
	for _, p := range r.Choice.Params {
		v, err := parameter(m, p.Name, p.Value)
		if err != nil {
			return nil, nil, &fault.OptionError{Option: "param", Value: p.Name + "=" + p.Value, Err: err}
		}
		set[p.Name] = v
	}
	return set, measured, nil
}

// penalties returns the measured parameters of a method: those of the file that the
// user names, else the stored ones. Those that the user sets are left out.
func (r *Resolver) penalties(p Processor, m *model.Model) (*account.Measured, error) {
	file, stored := r.Choice.Penalties, r.Choice.UsesStored()
	if stored {
		file = r.Stored(p)
	}
	if file == "" || file == PenaltiesNone || stored && len(measurable(m)) == 0 {
		return nil, nil
	}
	from, err := r.readPenalties(file, p, m)
	if err == nil && stored && from.CPU != "" && from.CPU != p.ID {
		err = fault.Inputf("%s: measured on %s, and not on %s", file, from.CPU, p.ID)
	}
	if stored && fault.Of(err) != 0 {
		return nil, &PenaltiesError{err}
	}
	if err != nil {
		return nil, err
	}
	for _, name := range measurable(m) {
		if _, ok := from.Params[name]; !ok && !r.Choice.sets(name) {
			from.Own = append(from.Own, name)
		}
	}
	maps.DeleteFunc(from.Params, func(name string, _ float64) bool { return r.Choice.sets(name) })
	if len(from.Params) == 0 { // none of them is one of the method's
		return nil, nil
	}
	from.Stored = stored
	return from, nil
}

// measurable returns the parameters of a method that have a default and that
// calibrate could measure.
func measurable(m *model.Model) []string {
	var names []string
	for _, p := range penalties.Parameters() {
		own := func(q model.Parameter) bool { return q.Name == p.Name && q.Value != nil }
		if Takes(m, p) && slices.ContainsFunc(m.Parameters, own) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Wanted says which penalties the models of a processor take. A processor that the
// catalogue does not know may be given all.
func Wanted(cat *model.Catalogue, id string) func(penalties.Penalty) bool {
	cpu, err := cat.CPU(id)
	if err != nil {
		return func(penalties.Penalty) bool { return true }
	}
	var models []*model.Model
	for _, name := range []string{cpu.Name, GenericCPU} { // some methods are for any processor
		for _, info := range cat.Models(name) {
			if m, err := cat.Model(info.Name, name); err == nil {
				models = append(models, m)
			}
		}
	}
	return func(p penalties.Penalty) bool {
		return slices.ContainsFunc(models, func(m *model.Model) bool { return Takes(m, p) })
	}
}

// Takes reports whether a model has a penalty among its parameters, with the same
// meaning.
func Takes(m *model.Model, p penalties.Penalty) bool {
	other := func(n model.Node) bool { return p.Unless != "" && n.Name == p.Unless }
	return !slices.ContainsFunc(m.Nodes, other) && slices.ContainsFunc(m.Parameters, func(q model.Parameter) bool {
		return q.Name == p.Name && q.Unit == p.Unit
	})
}

// penaltiesMost bounds the size of a file of parameters in bytes.
const penaltiesMost = 1 << 20

// readPenalties reads a file of parameters. Those of the processor's other models are
// ignored, so that one file serves several. A name that no model has is an error.
func (r *Resolver) readPenalties(file string, p Processor, m *model.Model) (*account.Measured, error) {
	values, text, err := penaltyValues(file)
	if err != nil {
		return nil, err
	}
	from := &account.Measured{File: file, Params: map[string]float64{}}
	from.CPU, from.When = penaltiesHead(text)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !HasParameter(m, name) {
			if name == penalties.FlopPeak {
				continue
			}
			if known, err := r.anyHas(p, name); err != nil || !known {
				return nil, fault.Inputf("%s: no model for %s has a parameter %s", file, p.CPU.Name, name)
			}
			continue
		}
		if from.Params[name], err = parameter(m, name, fmt.Sprint(values[name])); err != nil {
			return nil, fault.Inputf("%s: %s: %v", file, name, err)
		}
	}
	return from, nil
}

// penaltyValues reads the values of a file of parameters, and returns its text as well.
func penaltyValues(file string) (values map[string]any, text []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fault.As(fault.Input, err)
	}
	defer f.Close()
	if text, err = io.ReadAll(io.LimitReader(f, penaltiesMost+1)); err != nil {
		return nil, nil, fault.As(fault.Input, err)
	}
	if len(text) > penaltiesMost {
		return nil, nil, fault.Inputf("%s: larger than %d bytes: not a file of parameters", file, penaltiesMost)
	}
	values = map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		if d, ok := err.(*toml.DecodeError); ok {
			row, _ := d.Position()
			return nil, nil, fault.Inputf("%s:%d: %v", file, row, d)
		}
		return nil, nil, fault.Inputf("%s: %v", file, err)
	}
	return values, text, nil
}

// Machine returns the numbers of the processor's file of measured parameters, those of
// other methods as well. It is empty without a file that can be
// read: whoever needs a number says that it is missing.
func (s *Selection) Machine() map[string]float64 {
	numbers := map[string]float64{}
	r := s.Resolver
	file := r.Choice.Penalties
	if r.Choice.UsesStored() {
		file = r.Stored(s.Processor)
	}
	if file == "" || file == PenaltiesNone {
		return numbers
	}
	values, text, err := penaltyValues(file)
	if err != nil {
		return numbers
	}
	if cpu, _ := penaltiesHead(text); r.Choice.UsesStored() && cpu != "" && cpu != s.ID {
		return numbers
	}
	for name, v := range values {
		switch v := v.(type) {
		case float64:
			numbers[name] = v
		case int64:
			numbers[name] = float64(v)
		}
	}
	return numbers
}

// HasParameter reports whether a model has a parameter.
func HasParameter(m *model.Model, name string) bool {
	return slices.ContainsFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == name })
}

// anyHas reports whether any model of a processor has a parameter. Where the
// processor is not known, the models of all processors are searched.
func (r *Resolver) anyHas(p Processor, name string) (bool, error) {
	cpus := []string{p.CPU.Name, GenericCPU} // some methods are for any processor
	if p.CPU.Name == GenericCPU {
		for _, cpu := range r.Catalogue.CPUs() {
			cpus = append(cpus, cpu.Name)
		}
	}
	for _, cpu := range cpus {
		for _, info := range r.Catalogue.Models(cpu) {
			m, err := r.Catalogue.Model(info.Name, cpu)
			if err != nil {
				return false, err
			}
			if HasParameter(m, name) {
				return true, nil
			}
		}
	}
	return false, nil
}

// parameter reads a parameter's value: a number or one of its named choices.
func parameter(m *model.Model, name, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	i := slices.IndexFunc(m.Parameters, func(p model.Parameter) bool { return p.Name == name })
	if i < 0 {
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", text)
		}
		return v, nil
	}
	p := &m.Parameters[i]
	choice, named := p.Choices[text]
	switch {
	case named:
		return choice, nil
	case err != nil && len(p.Choices) > 0:
		return 0, fmt.Errorf("%q is neither a number nor one of %s", text, strings.Join(slices.Sorted(maps.Keys(p.Choices)), ", "))
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return v, p.Check(v)
}

// penaltiesHead returns the processor and the time that a file of penalties names in
// its first lines; "" for what it does not.
func penaltiesHead(text []byte) (cpu, when string) {
	m := regexp.MustCompile(`\A# Penalties measured with cyclestack calibrate.* on (\S+),\r?\n# ([0-9-]+ [0-9:]+ \S+)\.`).FindSubmatch(text)
	if m == nil {
		return "", ""
	}
	return string(m[1]), string(m[2])
}
