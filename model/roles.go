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
		if t.Name == string(r) {
			return t.Events
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
		if t.Name != string(r) {
			continue
		}
		if slices.ContainsFunc(t.Events, func(s string) bool { return strings.EqualFold(s, name) }) {
			return true
		}
		if known && len(t.Contains) > 0 {
			event = e.Name
		}
		upper := strings.ToUpper(event)
		if slices.ContainsFunc(t.Contains, func(part string) bool { return strings.Contains(upper, part) }) {
			return true
		}
		if len(t.Events) == 0 {
			return false
		}
		first, ok := table.Lookup(t.Events[0])
		return known && ok && e == first
	}
	return false
}

// BranchSets returns the sets of events that count branches on some processors, in order
// of preference: lists of events whose sums are the instructions, the branches and the
// mispredictions.
func BranchSets() (sets [][3][]string) {
	for _, t := range roles().branching {
		sets = append(sets, [3][]string{t.Instructions, t.Branches, t.Mispredictions})
	}
	return sets
}

// rolesFile is the file of roles in the library.
const rolesFile = "roles.toml"

type roleTables struct {
	role      []roleTable
	branching []branchTable
}

// A branchTable is one table [[branching]].
type branchTable struct{ Instructions, Branches, Mispredictions []string }

// A roleTable is one table [[role]].
type roleTable struct {
	Name             string
	Events, Contains []string
}

var roles = sync.OnceValue(func() *roleTables {
	data, err := fs.ReadFile(embedded(), rolesFile)
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
		table: func(list string, at position) any {
			switch list {
			case "role":
				r.role = append(r.role, roleTable{})
				return &r.role[len(r.role)-1]
			case "branching":
				r.branching = append(r.branching, branchTable{})
				return &r.branching[len(r.branching)-1]
			}
			return nil
		},
	})
	return r, err
}
