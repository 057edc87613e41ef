package model

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// spelled returns the fields of a layout in the order of spelling an event. Code that they
// do not cover is spelled raw.
func spelled(layout string) []string {
	switch layout {
	case layoutIntel:
		return []string{"event", "umask", "cmask", "inv", "edge", "any", "eq", "in_tx", "in_tx_cp"}
	case layoutAMD:
		return []string{"event", "umask", "cmask", "inv", "edge"}
	case layoutArm, layoutRISCV:
		return []string{"event"}
	}
	return nil
}

// Spell returns the spelling of a processor's event that perf accepts without
// knowing its name: cpu/event=0xa0,cmask=0x1,inv=0x1/, r400fa.
func Spell(cpu *CPU, e *Event) string {
	if e.NoCode || e.PMU != "" {
		if e.PMU != "" && e.PMU != pmuSoftware && e.PMU != pmuTool && e.PMU != pmuHardware && e.PMU != pmuCache {
			return e.PMU + "/" + e.Name + "/"
		}
		return e.Name
	}
	fields := spelled(cpu.Layout)
	if fields == nil {
		return fmt.Sprintf("r%x", e.Config)
	}
	pmu := "cpu"
	if len(cpu.PMUs) > 0 && !strings.ContainsAny(cpu.PMUs[0], "*?[") {
		pmu = cpu.PMUs[0]
	}
	var terms []string
	rest := e.Config
	for _, name := range fields {
		v := field(cpu.Layout, name, &rest)
		if v != 0 || name == "event" {
			terms = append(terms, fmt.Sprintf("%s=%#x", name, v))
		}
	}
	if rest != 0 {
		terms = []string{fmt.Sprintf("config=%#x", e.Config)}
	}
	if e.Config1 != 0 {
		terms = append(terms, fmt.Sprintf("%s=%#x", extraName(e), e.Config1))
	}
	return pmu + "/" + strings.Join(terms, ",") + "/"
}

// Hardware reports whether the core's PMU counts an event, under whatever name:
// restrictions to user or kernel mode then apply to it.
func (id Identity) Hardware() bool {
	return id.PMU == "" || id.PMU == pmuHardware || id.PMU == pmuCache
}

// extraName is perf's name of the register that an event's Config1 goes to.
func extraName(e *Event) string {
	for _, kind := range []string{"offcore_rsp", "ldlat", "frontend"} {
		if hasWord(e.Flags, kind) {
			return kind
		}
	}
	return "config1"
}

// field takes a field's value out of a code.
func field(layout, name string, config *uint64) uint64 {
	var v uint64
	shift := uint(0)
	for _, r := range fieldsOf()[layout][name] {
		if r.word != 0 {
			continue
		}
		mask := (uint64(1)<<r.width - 1) << r.at
		v |= (*config & mask) >> r.at << shift
		*config &^= mask
		shift += r.width
	}
	return v
}

// Candidates returns the names of the processors whose tables know most of a recording's
// events, and how many they know. Events that every machine has do not count; where a
// recording has no others, there are no candidates. The order is that of the catalogue,
// processors with a method first.
func (c *Catalogue) Candidates(events []string) (names []string, known int, err error) {
	refs := make([]EventRef, 0, len(events))
	for _, e := range events {
		if ref, err := ParseEvent(e); err == nil && kernelName(ref.Name) == nil {
			refs = append(refs, ref)
		}
	}
	type candidate struct {
		name   string
		known  int
		method bool
	}
	var all []candidate
	c.readTables()
	for _, p := range c.CPUs() {
		table, err := c.Events(p)
		if err != nil {
			return nil, 0, err
		}
		n := 0
		for _, ref := range refs {
			if _, ok := table.Find(ref); ok {
				n++
			}
		}
		if n > 0 {
			all = append(all, candidate{p.Name, n, len(c.Models(p.Name)) > 0})
		}
		known = max(known, n)
	}
	all = sorting.Delete(all, func(x candidate) bool { return x.known < known })
	sorting.Stable(all, func(a, b candidate) int {
		return cmp.Compare(order(a.method, b.method), 0)
	})
	for _, x := range all {
		names = append(names, x.name)
	}
	return names, known, nil
}

// readTables reads the event tables of all processors, as many at a time as
// there are processors to do it.
func (c *Catalogue) readTables() {
	var wg sync.WaitGroup
	next := make(chan *CPU)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range next {
				c.Events(p) // an error is kept too
			}
		})
	}
	for _, p := range c.CPUs() {
		next <- p
	}
	close(next)
	wg.Wait()
}
