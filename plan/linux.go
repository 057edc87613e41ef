package plan

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/model"
)

//go:embed data/linux.toml
var linuxFile []byte

// A driver says what one of Linux's PMU drivers demands of the events of a group
// beyond the makers' lists. The keys are described in data/linux.toml.
type driver struct {
	CPUs    []string    `toml:"cpus"`
	Source  string      `toml:"source"`
	Counter string      `toml:"counter"`
	Exempt  string      `toml:"exempt"`
	Narrow  []narrowing `toml:"narrow"`
	Agree   []agreement `toml:"agree"`
	Refuse  []refusal   `toml:"refuse"`
	Bank    *bank       `toml:"bank"`

	counter field
	exempt  counters
}

// A narrowing leaves events fewer counters than their maker's list has.
type narrowing struct {
	rule
	Counters string `toml:"counters"`

	counters counters
}

// An agreement is a field of the codes that all events of a group share.
type agreement struct {
	rule
	Name string `toml:"name"`
	Bits string `toml:"bits"`

	field field
}

// A refusal is of events that the driver does not count.
type refusal struct {
	rule
	Why string `toml:"why"`
}

// A bank needs the event of the same code on one counter.
type bank struct {
	rule
	Counter uint64 `toml:"counter"`
}

// A rule applies to the codes that match one of Only, if there is any, and none of
// Except.
type rule struct {
	Only   [][]uint64 `toml:"only"`
	Except [][]uint64 `toml:"except"`
}

// check reports what is wrong with the pairs of a rule.
func (r *rule) check() error {
	for _, pair := range slices.Concat(r.Only, r.Except) {
		if len(pair) != 2 || pair[1]&^pair[0] != 0 {
			return fmt.Errorf("%#x is not a mask and a value within it", pair)
		}
	}
	return nil
}

func (r *rule) applies(code uint64) bool {
	match := func(pair []uint64) bool { return code&pair[0] == pair[1] }
	return (len(r.Only) == 0 || slices.ContainsFunc(r.Only, match)) && !slices.ContainsFunc(r.Except, match)
}

// A field is some neighbouring bits of a code. The zero value is none.
type field struct {
	low, size uint
}

func (f field) of(code uint64) uint64 { return code >> f.low & (1<<f.size - 1) }

// with returns the code with another value of the field.
func (f field) with(code, value uint64) uint64 { return code&^((1<<f.size-1)<<f.low) | value<<f.low }

// parseField reads bits as perf writes them: "16-19", "9".
func parseField(bits string) (field, error) {
	from, to, span := strings.Cut(bits, "-")
	if !span {
		to = from
	}
	low, err := strconv.ParseUint(from, 10, 8)
	high, err2 := strconv.ParseUint(to, 10, 8)
	if err = errors.Join(err, err2); err != nil || low > high || high > 63 || high-low > 62 {
		return field{}, fmt.Errorf("%q are not bits of a code", bits)
	}
	return field{uint(low), uint(high-low) + 1}, nil
}

// driverOf returns what Linux's driver for a processor demands: nothing for one
// that is not listed.
func driverOf(cpu *model.CPU) (*driver, error) {
	drivers, err := embeddedDrivers()
	if err != nil {
		return nil, err
	}
	for i := range drivers {
		for _, pattern := range drivers[i].CPUs {
			if ok, _ := path.Match(pattern, cpu.Name); ok {
				return &drivers[i], nil
			}
		}
	}
	return &driver{}, nil
}

var embeddedDrivers = sync.OnceValues(func() ([]driver, error) { return readDrivers(linuxFile) })

// readDrivers reads the list of drivers.
func readDrivers(data []byte) ([]driver, error) {
	var file struct {
		Driver []driver `toml:"driver"`
	}
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("linux.toml: %w", located(err))
	}
	for i := range file.Driver {
		if err := file.Driver[i].prepare(); err != nil {
			return nil, fmt.Errorf("linux.toml: the driver of %s: %w", strings.Join(file.Driver[i].CPUs, ", "), err)
		}
	}
	return file.Driver, nil
}

// prepare checks a driver and reads its numbers.
func (d *driver) prepare() (err error) {
	if err := checkPatterns(d.CPUs); err != nil {
		return err
	}
	if d.Counter != "" {
		if d.counter, err = parseField(d.Counter); err != nil {
			return fmt.Errorf("counter: %w", err)
		}
	}
	if d.Exempt != "" {
		if d.exempt, err = parseCounters(d.Exempt); err != nil {
			return fmt.Errorf("exempt: %w", err)
		}
	}
	for _, r := range d.rules() {
		if err := r.check(); err != nil {
			return err
		}
	}
	for i := range d.Narrow {
		if d.Narrow[i].counters, err = parseCounters(d.Narrow[i].Counters); err != nil {
			return fmt.Errorf("narrow: %w", err)
		}
	}
	for i := range d.Agree {
		a := &d.Agree[i]
		if a.field, err = parseField(a.Bits); err != nil {
			return fmt.Errorf("agree: %w", err)
		}
		if a.Name == "" || slices.Contains(registerKinds, a.Name) {
			return fmt.Errorf("agree: bits %s need a name of their own", a.Bits)
		}
	}
	if d.Bank != nil && (d.Counter == "" || d.Bank.Counter == 0 || d.Bank.Counter>>d.counter.size != 0) {
		return errors.New("bank: it needs a counter that the codes can name")
	}
	return nil
}

// rules returns all rules of a driver.
func (d *driver) rules() (all []*rule) {
	for i := range d.Narrow {
		all = append(all, &d.Narrow[i].rule)
	}
	for i := range d.Agree {
		all = append(all, &d.Agree[i].rule)
	}
	for i := range d.Refuse {
		all = append(all, &d.Refuse[i].rule)
	}
	if d.Bank != nil {
		all = append(all, &d.Bank.rule)
	}
	return all
}

// on returns the counter that a code names, as a set; that of all of them if it
// names none.
func (d *driver) on(code uint64, all counters) counters {
	if n := d.counter.of(code); d.Counter != "" && n != 0 {
		return 1 << n
	}
	return all
}

// errRefused is why an event cannot be counted that a driver does not count.
var errRefused = errors.New("not counted by Linux")

// restrict adds to a demand what the driver wants of an event's code.
func (d *driver) restrict(demand *demand, code uint64) error {
	if demand.can&d.exempt != 0 {
		return nil
	}
	for i := range d.Refuse {
		if d.Refuse[i].applies(code) {
			return fmt.Errorf("%w: %s", errRefused, d.Refuse[i].Why)
		}
	}
	for i := range d.Narrow {
		n := &d.Narrow[i]
		if !n.applies(code) {
			continue
		}
		if demand.can &= n.counters | demand.can.fixedOnly(); demand.can == 0 {
			return fmt.Errorf("it needs one of the counters %s, which are not available", n.Counters)
		}
	}
	for i := range d.Agree {
		if a := &d.Agree[i]; a.applies(code) {
			demand.registers = append(demand.registers, register{a.Name, a.field.of(code)})
		}
	}
	return nil
}

// leader returns the code of the event that another one needs in its group, 0 if there is
// none.
func (d *driver) leader(code uint64) uint64 {
	if d.Bank == nil || !d.Bank.applies(code) || d.counter.of(code) == d.Bank.Counter {
		return 0
	}
	return d.counter.with(code, d.Bank.Counter)
}
