package fleet

import (
	"cmp"
	"math"
	"slices"
)

// A Combined is the first level of accounts of one value of By, over several models of
// processors. Slots of different processors are no common unit. So each account weighs by
// its busy processors. All must be by one model of one version.
type Combined struct {
	By    string
	CPUs  float64 // busy processors
	Over  []string
	Lost  float64
	Error float64 // half-width of the 95 % interval of Lost; NaN if not known
	Saved float64 // the sum of what could be saved
	Nodes []FirstShare
}

// A FirstShare is the share of a node of the first level.
type FirstShare struct {
	Name         string
	Share, Error float64 // Error is the half-width of the 95 % interval
}

// Together combines accounts by their values of By, or all of them. What was counted by
// different models, or has no time of processors, is left out.
func Together(sets []*Set, all bool) []Combined {
	type id struct{ by, model, version, method string }
	groups := map[id][]*Account{}
	of := map[*Account]*Set{}
	for _, s := range sets {
		for _, a := range s.Accounts {
			by := a.By
			if all {
				by = ""
			}
			k := id{by, s.Key.Model, s.Key.Version, s.Key.Method}
			groups[k] = append(groups[k], a)
			of[a] = s
		}
	}
	var list []Combined
	for k, accounts := range groups {
		if c, ok := together(k.by, accounts, of); ok && (all || len(c.Over) > 1) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y Combined) int {
		return cmp.Or(cmp.Compare(y.CPUs, x.CPUs), cmp.Compare(x.By, y.By), slices.Compare(x.Over, y.Over))
	})
	return list
}

func together(by string, accounts []*Account, of map[*Account]*Set) (Combined, bool) {
	c := Combined{By: by}
	shares, variances := map[string]float64{}, map[string]float64{}
	var names []string
	for _, a := range accounts {
		c.CPUs += a.CPUs
		if name := a.processor(); !slices.Contains(c.Over, name) {
			c.Over = append(c.Over, name)
		}
	}
	if !(c.CPUs > 0) {
		return c, false
	}
	variance := 0.0
	for _, a := range accounts {
		w := a.CPUs / c.CPUs
		c.Lost += w * a.Lost
		variance += sq(w * a.lostError(of[a]))
		if !math.IsNaN(a.Saved) {
			c.Saved += a.Saved
		}
		m := of[a].Model
		for i := range m.Nodes {
			if m.Nodes[i].Above >= 0 {
				continue
			}
			name := m.Nodes[i].Name
			if _, ok := shares[name]; !ok {
				names = append(names, name)
			}
			shares[name] += w * a.Account.Nodes[i].Value
			variances[name] += sq(w * a.Account.Nodes[i].Error)
		}
	}
	c.Error = math.Sqrt(variance)
	for _, name := range names {
		c.Nodes = append(c.Nodes, FirstShare{name, shares[name], math.Sqrt(variances[name])})
	}
	slices.Sort(c.Over)
	return c, true
}

func sq(x float64) float64 { return x * x }

// lostError is the half-width of the interval of what is lost: that of useful work, which is
// the rest.
func (a *Account) lostError(s *Set) float64 {
	sum, useful := 0.0, 0
	for i := range s.Model.Nodes {
		if n := &s.Model.Nodes[i]; n.Above < 0 && n.Useful() {
			sum += a.Account.Nodes[i].Error
			useful++
		}
	}
	if useful == 0 {
		return math.NaN()
	}
	return sum
}
