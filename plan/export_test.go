package plan

import "github.com/cyclestack/cyclestack/model"

// Fit returns the events of the group that a plan would make of the spellings in
// their order. It leaves out events that do not fit with the ones before.
func Fit(table *model.EventTable, opt Options, spellings []string) ([]Event, error) {
	c, err := newCatalog(table, opt)
	if err != nil {
		return nil, err
	}
	in := &inputs{catalog: c}
	b := &builder{Plan: &Plan{PMU: c.pmu, Options: opt, general: c.general}, in: in}
	var wanted [][]int
	for _, spelling := range spellings {
		n, err := in.number(spelling)
		if err != nil {
			continue
		}
		if all, err := in.withCompanions(n); err == nil {
			wanted = append(wanted, all)
		}
	}
	b.makeSpace()
	group := in.set(nil)
	for _, events := range wanted {
		both := group.clone()
		both.join(in.set(events))
		if b.space.fits(both) {
			group = both
		}
	}
	var events []Event
	for _, e := range group.members() {
		events = append(events, in.events[e])
	}
	return events, nil
}

// EqualCoverage is Coverage for groups with equal shares of the time.
func (p *Plan) EqualCoverage(n *Node) float64 { return p.equalCoverage(n) }
