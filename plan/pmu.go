package plan

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/model"
)

//go:embed data/pmus.toml
var pmusFile []byte

// A PMU says what the performance monitoring unit of a processor's cores can
// count at one time. Which of its counters can count an event is in the event
// tables. The keys are described in data/pmus.toml.
type PMU struct {
	CPUs        []string          `toml:"cpus"`
	Counters    string            `toml:"counters"`
	CountersSMT string            `toml:"counters-smt"`
	Fixed       int               `toml:"fixed"`
	Watchdog    string            `toml:"watchdog"`
	Registers   map[string]int    `toml:"registers"`
	Slots       string            `toml:"slots"`
	LdlatAux    *auxEvent         `toml:"ldlat-aux"`
	Also        map[string]string `toml:"also"`
	Erratum     *erratum          `toml:"erratum"`
	Assumed     bool              `toml:"assumed"`
}

// An auxEvent must be in a group, and on a counter, for the sake of another.
type auxEvent struct {
	Event    string `toml:"event"`
	Config   uint64 `toml:"config"`
	Counters string `toml:"counters"`
}

// An erratum leaves only some of the general counters to a group with one of certain
// events. It applies where the core's logical processors divide its counters.
type erratum struct {
	ID       string   `toml:"id"`
	Codes    []uint64 `toml:"codes"` // the low byte of the events' codes
	Counters int      `toml:"counters"`
}

// PMUOf returns the PMU of a processor's cores.
func PMUOf(cpu *model.CPU) (*PMU, error) {
	if cpu.Counters != "" { // a processor of the user's own says so itself
		p := &PMU{CPUs: []string{cpu.Name}, Counters: cpu.Counters, Fixed: cpu.Fixed}
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("processor %s: %w", cpu.Name, err)
		}
		return p, nil
	}
	pmus, err := embeddedPMUs()
	if err != nil {
		return nil, err
	}
	for i := range pmus {
		for _, pattern := range pmus[i].CPUs {
			if ok, _ := path.Match(pattern, cpu.Name); ok {
				return &pmus[i], nil
			}
		}
	}
	return nil, fmt.Errorf("the counters of %s are not known", cpu.Name)
}

var embeddedPMUs = sync.OnceValues(func() ([]PMU, error) { return readPMUs(pmusFile) })

// readPMUs reads the list of PMUs.
func readPMUs(data []byte) ([]PMU, error) {
	var file struct {
		PMU []PMU `toml:"pmu"`
	}
	d := toml.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("pmus.toml: %w", located(err))
	}
	for i := range file.PMU {
		if err := file.PMU[i].check(); err != nil {
			return nil, fmt.Errorf("pmus.toml: the PMU of %s: %w", strings.Join(file.PMU[i].CPUs, ", "), err)
		}
	}
	return file.PMU, nil
}

// located puts the line before an error of the decoder.
func located(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		line, _ := strict.Errors[0].Position()
		return fmt.Errorf("line %d: there is no key %q", line, strings.Join(strict.Errors[0].Key(), "."))
	}
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		line, _ := syntax.Position()
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

func (p *PMU) check() error {
	if err := checkPatterns(p.CPUs); err != nil {
		return err
	}
	lists := []string{p.Counters}
	if p.CountersSMT != "" {
		lists = append(lists, p.CountersSMT)
	}
	for _, list := range p.Also {
		lists = append(lists, list)
	}
	if p.LdlatAux != nil {
		lists = append(lists, p.LdlatAux.Counters)
	}
	for _, list := range lists {
		if _, err := parseCounters(list); err != nil {
			return err
		}
	}
	if p.Fixed < 0 || p.Fixed > firstMetric {
		return fmt.Errorf("fixed = %d: 0 to %d", p.Fixed, firstMetric)
	}
	for kind, n := range p.Registers {
		if !slices.Contains(registerKinds, kind) || n < 1 {
			return fmt.Errorf("registers: %s = %d: there are %s, at least one of each", kind, n, strings.Join(registerKinds, ", "))
		}
	}
	if e := p.Erratum; e != nil && (e.Counters < 1 || len(e.Codes) == 0) {
		return errors.New("erratum: it needs codes, and the number of counters that it leaves")
	}
	return nil
}

// checkPatterns checks the names of processors that an entry is for.
func checkPatterns(cpus []string) error {
	if len(cpus) == 0 {
		return errors.New("cpus: the processors are missing")
	}
	for _, pattern := range cpus {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("cpus: %q: %w", pattern, err)
		}
	}
	return nil
}

// general returns the general counters of one logical processor.
func (p *PMU) general(smt bool) counters {
	list := p.Counters
	if smt && p.CountersSMT != "" {
		list = p.CountersSMT
	}
	c, _ := parseCounters(list) // checked when the list was read
	return c
}

// divided reports whether the logical processors of a core divide its counters. They
// do if SMT is on in the firmware, even if the others are said to be idle. The number
// of free counters shows it.
func (p *PMU) divided(opt Options) bool {
	return opt.SMT || opt.Counters > 0 && p.CountersSMT != "" && opt.Counters <= p.general(true).len()
}

// errata returns how many general counters an erratum leaves.
func (p *PMU) errata() int {
	if p.Erratum == nil {
		return 0
	}
	return p.Erratum.Counters
}

// counters is a set of counters: the general ones in the low half, the fixed
// ones in the high half, as in the kernel's constraints (idxmsk64).
type counters uint64

const (
	firstFixed  = 32
	firstMetric = 16 // among the fixed ones: the parts of slots, which are on no counter
)

func (c counters) len() int { return bits.OnesCount64(uint64(c)) }

// isMetric reports whether c stands for a part of slots.
func (c counters) isMetric() bool { return c>>(firstFixed+firstMetric) != 0 }

// fixed returns the number of the fixed counter among c, -1 if there is none.
func (c counters) fixed() int {
	if c>>firstFixed == 0 {
		return -1
	}
	return bits.TrailingZeros64(uint64(c >> firstFixed))
}

// generalOnly returns the general counters among c.
func (c counters) generalOnly() counters { return c & (1<<firstFixed - 1) }

// fixedOnly returns the fixed counters among c.
func (c counters) fixedOnly() counters { return c &^ c.generalOnly() }

// String returns a single counter's name: "3", "fixed 1".
func (c counters) String() string {
	i := bits.TrailingZeros64(uint64(c))
	if i >= firstFixed {
		return "fixed " + strconv.Itoa(i-firstFixed)
	}
	return strconv.Itoa(i)
}

// parseCounters reads a list of counters as the event tables and pmus.toml
// write it: "0,1,2,3", "0-7", "fixed1".
func parseCounters(list string) (counters, error) {
	if number, ok := strings.CutPrefix(list, "fixed"); ok {
		n, err := counterNumber(number)
		return 1 << (firstFixed + n), err
	}
	var c counters
	for part := range strings.SplitSeq(list, ",") {
		low, high, span := strings.Cut(part, "-")
		if !span {
			high = low
		}
		from, err := counterNumber(low)
		if err != nil {
			return 0, err
		}
		to, err := counterNumber(high)
		if err != nil {
			return 0, err
		}
		if to < from {
			return 0, fmt.Errorf("%q is not a range of counters", part)
		}
		for n := from; n <= to; n++ {
			c |= 1 << n
		}
	}
	return c, nil
}

func counterNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n >= firstFixed {
		return 0, fmt.Errorf("%q is not the number of a counter", s)
	}
	return int(n), nil
}

// registerKinds are the kinds of extra registers, by the flags of the event
// tables.
var registerKinds = []string{"offcore_rsp", "frontend", "ldlat", "omr"}
