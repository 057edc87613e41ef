package model

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// LintFile checks a model file, or a folder of models and processors, as Lint does. What
// keeps a model from loading is among the findings. The error is about files that cannot
// be read.
func LintFile(cat *Catalogue, path string) ([]Finding, error) {
	lib, sources, err := cat.lib.open(path)
	all, err := faultFindings(err)
	if err != nil {
		return nil, err
	}
	own := &Catalogue{lib: lib, added: sources}
	for i := range sources {
		found, err := lintSource(own, &sources[i])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	var folder *ownFolder
	for _, p := range own.CPUs() {
		if p.folder == nil {
			break // those of the user come first
		}
		folder = p.folder
		found, err := lintCPU(own, p)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if folder != nil {
		found, err := lintTables(own, folder)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	sorting.Stable(all, compareFindings)
	return slices.Compact(all), nil
}

// lintSource checks a model file of the user's.
func lintSource(cat *Catalogue, s *source) ([]Finding, error) {
	all, _ := faultFindings(s.faults)
	if len(s.CPUs) == 0 && s.faults == nil {
		return nil, nil // only for others to extend
	}
	var p *CPU
	if len(s.CPUs) > 0 {
		p = cat.lib.named(s.CPUs[0])
	}
	m, err := cat.lib.readAll(s, p)
	found, ioErr := faultFindings(err)
	if ioErr != nil {
		return nil, ioErr
	}
	all = append(all, found...)
	switch {
	case m == nil:
	case err == nil && s.faults == nil:
		all = append(all, Lint(cat, m)...)
	default: // what is wrong already may make the whole look worse than it is
		l := newLinter(cat, m)
		l.known = all
		l.parts()
		all = append(all, l.sorted()...)
	}
	return all, nil
}

// faultFindings returns the faults of files as findings, and other errors as
// they are.
func faultFindings(err error) ([]Finding, error) {
	all := asFaults(err)
	if all == nil {
		return nil, err
	}
	var out []Finding
	for _, e := range all {
		out = append(out, Finding{e.File, max(e.Line, 1), SevError, e.Msg})
	}
	return out, nil
}

// lintCPU checks what the catalogue says about one processor.
func lintCPU(cat *Catalogue, p *CPU) ([]Finding, error) {
	var all []Finding
	report := func(severity string, format string, args ...any) {
		all = append(all, Finding{p.at.file, p.at.line, severity, "processor " + p.Name + ": " + fmt.Sprintf(format, args...)})
	}
	table, err := cat.Events(p)
	if err != nil {
		return faultFindings(err)
	}
	if p.Events != "" && len(table.events) == 0 {
		report(SevWarning, "no event table has rows for %q", p.Events)
	}
	if p.Model != "" && !slices.ContainsFunc(cat.Models(p.Name), func(i ModelInfo) bool { return i.Name == p.Model }) {
		report(SevWarning, "there is no model %q, its default", p.Model)
	}
	codes := map[string]int{}
	for i := range table.events {
		if p.folder != nil {
			break // lintTables looks at them; the library's may be replaced
		}
		e := &table.events[i]
		j, twice := codes[e.Name]
		if twice && !table.sameCode(i, j) {
			report(SevError, "event %s has two encodings", e.Name)
		}
		codes[e.Name] = i
	}
	return all, nil
}

// lintTables checks the event tables in a user's folder: the rows of all processors.
func lintTables(cat *Catalogue, f *ownFolder) ([]Finding, error) {
	files, err := fs.Glob(f.fsys, "events/*.csv")
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, p := range cat.CPUs() {
		keys[p.Events] = true
	}
	var all []Finding
	for _, name := range files {
		data, err := readFile(f.fsys, name)
		if err != nil {
			return nil, err
		}
		all = append(all, lintTable(string(data), f.label(name), keys)...)
	}
	return all, nil
}

// lintTable checks each row of an event table. keys are those of the processors.
func lintTable(data, file string, keys map[string]bool) (all []Finding) {
	type code struct{ config, config1 uint64 }
	codes := map[[2]string]code{} // by key and name
	var columns []column
	line := 0
	for row := range strings.Lines(data) {
		line++
		report := func(severity string, format string, args ...any) {
			all = append(all, Finding{file, line, severity, oneLine(fmt.Sprintf(format, args...))})
		}
		row = strings.TrimRight(row, "\r\n")
		if row == "" || row[0] == '#' {
			continue
		}
		t := &EventTable{}
		header := columns == nil
		var err error
		if columns, _, err = t.readRow(row, columns, nil); err != nil {
			report(SevError, "%v", err)
			if columns == nil {
				return all // nothing is known of the rows
			}
		}
		if header {
			continue
		}
		for _, key := range strings.Fields(firstField(row)) {
			if !keys[key] {
				report(SevWarning, "no processor has the key %q", spelling.Clip(key))
			}
			for i := range t.events {
				e := &t.events[i]
				at, have := [2]string{key, e.Name}, code{e.Config, e.Config1}
				if old, twice := codes[at]; twice && old != have {
					report(SevError, "event %s has two encodings", e.Name)
				}
				codes[at] = have
			}
		}
	}
	return all
}
