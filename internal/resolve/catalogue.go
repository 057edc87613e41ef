package resolve

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/model"
)

// FindEvents finds events by pattern, by any spelling, or by encoding.
func FindEvents(table *model.EventTable, pattern string) ([]*model.Event, error) {
	if ev, ok := table.Lookup(pattern); ok {
		return []*model.Event{ev}, nil
	}
	glob := strings.ToLower(pattern)
	if !strings.ContainsAny(glob, "*?[") {
		glob = "*" + glob + "*"
	}
	if _, err := path.Match(glob, ""); err != nil {
		return nil, fault.Usagef("%q is not a pattern: %v", pattern, err)
	}
	var list []*model.Event
	all := table.Events()
	for i := range all {
		ev := &all[i]
		names := append([]string{ev.Name}, ev.Aliases...)
		if slices.ContainsFunc(names, func(n string) bool { ok, _ := path.Match(glob, strings.ToLower(n)); return ok }) {
			list = append(list, ev)
		}
	}
	return list, nil
}

// Models returns the methods of a processor, or the one of that name.
func Models(cat *model.Catalogue, cpu, name string) (list []*model.Model, err error) {
	names := []string{name}
	if name == "" {
		names = nil
		for _, info := range cat.Models(cpu) {
			names = append(names, info.Name)
		}
	}
	for _, name := range names {
		m, err := cat.Model(name, cpu)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// NodeNames returns the node names of a processor's methods, or of one, each with its title
// behind a tab.
func NodeNames(cat *model.Catalogue, cpu, name string) (names []string, err error) {
	p, err := cat.CPU(cpu)
	if err != nil {
		return nil, err
	}
	list, err := Models(cat, p.Name, name)
	for _, m := range list {
		for i := range m.Nodes {
			names = append(names, m.Nodes[i].Name+"\t"+m.Nodes[i].Title)
		}
	}
	return names, err
}

// Lint checks model files, or all of the catalogue if there are none. The error says which
// files cannot be read.
func Lint(cat *model.Catalogue, files []string) (all []model.Finding, unread error) {
	for _, file := range files {
		found, err := model.LintFile(cat, file)
		switch {
		case unread == nil:
			unread = err
		case err != nil:
			unread = fmt.Errorf("%w; %w", unread, err)
		}
		all = append(all, found...)
	}
	if len(files) > 0 {
		return all, unread
	}
	for _, info := range cat.Models("") {
		m, err := cat.Model(info.Name, info.CPUs[0])
		if err != nil {
			return nil, err
		}
		all = append(all, model.Lint(cat, m)...)
	}
	return all, nil
}

// CPUNames are the names of the embedded catalogue's processors, each with its title behind
// a tab; nil if the catalogue cannot be read.
func CPUNames() (names []string) {
	cat, err := model.Embedded()
	if err != nil {
		return nil
	}
	for _, cpu := range cat.CPUs() {
		names = append(names, cpu.Name+"\t"+cpu.Title)
	}
	return names
}

// ModelNames are the names of the embedded catalogue's methods; nil if it cannot be read.
func ModelNames() (names []string) {
	cat, err := model.Embedded()
	if err != nil {
		return nil
	}
	for _, m := range cat.Models("") {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}
