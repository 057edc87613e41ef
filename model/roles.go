package model

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// A Role is what events count, whatever their names. data/roles.toml has the events.
type Role string

// The roles.
const (
	RoleCycles        Role = "cycles"
	RoleInstructions  Role = "instructions"
	RoleRetired       Role = "retired" // instructions, by the hardware's events
	RoleTakenBranches Role = "taken-branches"
)

// Events returns the names of the role's events, in order of preference.
func (r Role) Events() []string {
	for _, t := range roles().role {
		if t.name == string(r) {
			return t.events
		}
	}
	return nil
}

// Has reports whether an event of a processor has the role: by its name, or as the event
// that the first of the role's names means there.
func (r Role) Has(event string, table *EventTable) bool {
	e, known := table.Lookup(event)
	name := event
	if ref, err := ParseEvent(event); err == nil {
		name = ref.Name
	}
	for _, t := range roles().role {
		if t.name != string(r) {
			continue
		}
		if slices.ContainsFunc(t.events, func(s string) bool { return strings.EqualFold(s, name) }) {
			return true
		}
		if known && len(t.contains) > 0 {
			event = e.Name
		}
		upper := strings.ToUpper(event)
		if slices.ContainsFunc(t.contains, func(part string) bool { return strings.Contains(upper, part) }) {
			return true
		}
		if len(t.events) == 0 {
			return false
		}
		first, ok := table.Lookup(t.events[0])
		return known && ok && e == first
	}
	return false
}

// BranchSets returns the sets of events that count branches on some processors, in order
// of preference: lists of events whose sums are the instructions, the branches and the
// mispredictions.
func BranchSets() [][3][]string { return roles().branching }

// rolesFile is the file of roles in the library.
const rolesFile = "roles.toml"

type roleTables struct {
	role      []roleTable
	branching [][3][]string
}

// A roleTable is one table [[role]].
type roleTable struct {
	name             string
	events, contains []string
}

func (t *roleTable) field(key string) any {
	switch key {
	case "name":
		return &t.name
	case "events":
		return &t.events
	case "contains":
		return &t.contains
	}
	return nil
}

func branchField(set *[3][]string, key string) any {
	switch key {
	case "instructions":
		return &set[0]
	case "branches":
		return &set[1]
	case "mispredictions":
		return &set[2]
	}
	return nil
}

var roles = sync.OnceValue(func() *roleTables {
	data, err := fs.ReadFile(embedded, "data/"+rolesFile)
	if err != nil {
		panic(err)
	}
	r, err := parseRoles(data)
	if err != nil {
		panic(fmt.Sprintf("model: %v", err)) // the file is part of the program: TestRoles reads it
	}
	return r
})

func parseRoles(data []byte) (*roleTables, error) {
	r := &roleTables{}
	err := decode(data, rolesFile, schema{
		top: noField,
		table: func(list string, at position) func(key string) any {
			switch list {
			case "role":
				r.role = append(r.role, roleTable{})
				return func(key string) any { return r.role[len(r.role)-1].field(key) }
			case "branching":
				r.branching = append(r.branching, [3][]string{})
				return func(key string) any { return branchField(&r.branching[len(r.branching)-1], key) }
			}
			return nil
		},
	})
	return r, err
}
