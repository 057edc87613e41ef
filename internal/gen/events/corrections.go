package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

// Corrections are the facts that the vendors' files have wrong or leave open.
type corrections struct {
	fixes    []*fix
	synonyms []*synonyms
}

// A fix is one line of fixes.csv: on these processors this event's field is not
// what the vendor's file says.
type fix struct {
	line  int
	cpus  []string
	name  string
	field string // "config", "counters" (with a blank and counters_smt, where they differ), "drop"
	from  string // what the vendor has: if that changes, the fix is looked at again
	to    string
	used  map[string]bool // by processor
}

// Synonyms are names for one encoding, the preferred one first.
type synonyms struct {
	line  int
	names []string
	used  bool
}

func readCorrections() (*corrections, error) {
	fixes, err := data.ReadFile("fixes.csv")
	if err != nil {
		return nil, err
	}
	synonyms, err := data.ReadFile("synonyms.csv")
	if err != nil {
		return nil, err
	}
	return parseCorrections(fixes, synonyms)
}

func parseCorrections(fixes, names []byte) (*corrections, error) {
	c := new(corrections)
	err := gen.EachRow("fixes.csv", fixes, "cpus,name,field,from,to,reason", func(line int, r []string) error {
		f := &fix{line: line, cpus: strings.Fields(r[0]), name: r[1], field: r[2], from: r[3], to: r[4], used: map[string]bool{}}
		if !slices.Contains([]string{"config", "counters", "drop"}, f.field) {
			return fmt.Errorf("unknown field %q", f.field)
		}
		if len(f.cpus) == 0 || f.name == "" || r[5] == "" {
			return fmt.Errorf("a fix needs processors, a name and a reason")
		}
		c.fixes = append(c.fixes, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	err = gen.EachRow("synonyms.csv", names, "name,synonyms", func(line int, r []string) error {
		s := &synonyms{line: line, names: append([]string{r[0]}, strings.Fields(r[1])...)}
		if len(s.names) < 2 {
			return fmt.Errorf("%s has no synonym", r[0])
		}
		for _, n := range s.names {
			if seen[n] {
				return fmt.Errorf("%s is in two lines", n)
			}
			seen[n] = true
		}
		c.synonyms = append(c.synonyms, s)
		return nil
	})
	return c, err
}

// apply corrects the events of a processor.
func (c *corrections) apply(p *processor) error {
	for _, f := range c.fixes {
		if !slices.Contains(f.cpus, p.key) {
			continue
		}
		e := p.find(f.name)
		if e == nil {
			return fmt.Errorf("fixes.csv:%d: %s has no event %s", f.line, p.key, f.name)
		}
		if err := f.apply(p, e); err != nil {
			return fmt.Errorf("fixes.csv:%d: %s on %s: %w", f.line, f.name, p.key, err)
		}
		f.used[p.key] = true
	}
	return nil
}

func (f *fix) apply(p *processor, e *event) error {
	has := hex(e.config)
	if f.field == "counters" {
		has = strings.TrimSpace(e.counters + " " + e.smt)
	}
	if has != f.from {
		return fmt.Errorf("the vendor has %s now, not %s", has, f.from)
	}
	switch f.field {
	case "config":
		v, err := strconv.ParseUint(f.to, 0, 64)
		if err != nil {
			return err
		}
		e.config = v
	case "counters":
		e.counters, e.smt, _ = strings.Cut(f.to, " ")
	case "drop":
		p.events = slices.DeleteFunc(p.events, func(x *event) bool { return x == e })
	}
	return nil
}

// merge makes one event of those of a processor that have one encoding. The
// others' names become aliases. That is right for spellings which the vendor
// calls deprecated or the same, and for those which synonyms.csv lists; any
// other pair is an error, because it is as a rule a fault in the vendor's file.
func (c *corrections) merge(p *processor) error {
	byEncoding := map[encoding][]*event{}
	for _, e := range p.events {
		byEncoding[e.encoding()] = append(byEncoding[e.encoding()], e)
	}
	var merged []*event
	for _, e := range p.events {
		same := byEncoding[e.encoding()]
		if len(same) == 0 {
			continue // merged before
		}
		delete(byEncoding, e.encoding())
		one, err := c.mergeOne(same)
		if err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
		merged = append(merged, one)
	}
	p.events = merged
	return nil
}

// mergeOne makes one event of events with one encoding.
func (c *corrections) mergeOne(same []*event) (*event, error) {
	current := slices.DeleteFunc(slices.Clone(same), func(e *event) bool { return e.deprecated })
	main := same[0]
	if len(current) > 0 {
		main = current[0]
	}
	for _, e := range current {
		preferred, ok := c.preferred(main.name, e.name)
		if !ok && (slices.Contains(e.sameAs, main.name) || slices.Contains(main.sameAs, e.name)) {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("%s and %s both are %s (a fault? if not: synonyms.csv)", main.name, e.name, hex(e.config))
		}
		if preferred == e.name {
			main = e
		}
	}
	for _, e := range same {
		if e == main {
			continue
		}
		if err := absorb(main, e); err != nil {
			return nil, err
		}
	}
	return main, nil
}

// preferred says which of two names of one encoding stands for both, and whether they surely
// mean the same.
func (c *corrections) preferred(a, b string) (string, bool) {
	if a == b {
		return a, true
	}
	for _, s := range c.synonyms {
		i, j := slices.Index(s.names, a), slices.Index(s.names, b)
		if i >= 0 && j >= 0 {
			s.used = true
			return s.names[min(i, j)], true
		}
	}
	// Where there is one memory, a miss of the last cache is an access to the local memory.
	for _, pair := range [][2]string{{".DRAM", ".LOCAL_DRAM"}, {".L3_MISS", ".L3_MISS_LOCAL"}} {
		if strings.HasPrefix(a, "OCR.") {
			if strings.TrimSuffix(a, pair[0])+pair[1] == b {
				return a, true
			}
			if strings.TrimSuffix(b, pair[0])+pair[1] == a {
				return b, true
			}
		}
	}
	return "", false
}

// absorb makes e's name an alias of main. A fixed counter counts the same without one of the
// general counters that the other name would take; of two lists of general counters the shorter
// one is surely right.
func absorb(main, e *event) error {
	main.aliases = append(main.aliases, e.name)
	switch {
	case e.counters == main.counters && e.smt == main.smt:
	case strings.HasPrefix(main.counters, "fixed"):
	case strings.HasPrefix(e.counters, "fixed"), within(e, main):
		main.counters, main.smt = e.counters, e.smt
	case within(main, e):
	default:
		return fmt.Errorf("%s and %s have one encoding, but counters %q and %q", main.name, e.name, main.counters, e.counters)
	}
	for _, flag := range e.flags {
		main.addFlag(flag)
	}
	if main.sampleAfter == 0 {
		main.sampleAfter = e.sampleAfter
	}
	return nil
}

// within says whether a's general counters are among b's.
func within(a, b *event) bool {
	list := strings.Split(b.counters, ",")
	return !slices.ContainsFunc(strings.Split(a.counters, ","), func(c string) bool { return !slices.Contains(list, c) })
}

// unused reports lines of the correction files that nothing needed.
func (c *corrections) unused() error {
	for _, f := range c.fixes {
		for _, cpu := range f.cpus {
			if !f.used[cpu] {
				return fmt.Errorf("fixes.csv:%d: there is no processor %s", f.line, cpu)
			}
		}
	}
	for _, s := range c.synonyms {
		if !s.used {
			return fmt.Errorf("synonyms.csv:%d: no processor gives %s and its synonyms one encoding", s.line, s.names[0])
		}
	}
	return nil
}
