package agent

import (
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
)

// An entity is a cgroup that is a container or a service, or the root. What it took itself
// is what it took with all of its descendants, without those that are entities.
type entity struct {
	identity
	path   string
	none   bool // it is neither
	named  bool // the labels are final
	labels labels
	work   string // keys of its series; "" for none
	single string
	above  *entity
	scan   uint64 // when it was last seen
	read   bool
	cpu    cgroupfs.CPU
	psi    cgroupfs.Pressure
	whole  usage // what it took in this scan, with its descendants
	own    usage // without those that are entities
}

// cgroups follows the cgroups of a host.
type cgroups struct {
	reader    *cgroupfs.Reader
	byID      map[uint64]*entity
	within    []*entity // by depth: the entity that a cgroup is, or is in
	order     []*entity // of this scan, parents first
	scans     uint64
	pressures bool
	names     names
	nameless  bool // some container has no name
	alive     int  // containers
	ended     uint64
}

func newCgroups(r *cgroupfs.Reader, pressures bool) *cgroups {
	return &cgroups{reader: r, byID: map[uint64]*entity{}, pressures: pressures && r.Version() == 2}
}

// scan reads all cgroups. Then order has what each took since the last scan.
func (c *cgroups) scan() error {
	c.scans++
	c.order, c.alive, c.nameless = c.order[:0], 0, false
	if err := c.reader.Scan(c.visit); err != nil {
		return err
	}
	for i := len(c.order) - 1; i >= 0; i-- {
		if e := c.order[i]; e.above != nil { // throttling and pressure do not include descendants
			e.above.own.user -= e.whole.user
			e.above.own.system -= e.whole.system
		}
	}
	for id, e := range c.byID {
		if e.scan == c.scans {
			continue
		}
		if e.container() {
			c.ended++
		}
		delete(c.byID, id)
	}
	return nil
}

// visit looks at one cgroup.
func (c *cgroups) visit(g *cgroupfs.Group) {
	c.within = c.within[:min(g.Depth, len(c.within))]
	var above *entity
	if g.Depth > 0 {
		above = c.within[g.Depth-1]
	}
	e := c.byID[g.ID]
	if e == nil || !g.Is(e.path) {
		e = c.enter(g, above)
		c.byID[g.ID] = e
	}
	e.scan, e.above = c.scans, above
	if e.none {
		c.within = append(c.within, above)
		return
	}
	c.within = append(c.within, e)
	e.whole = usage{}
	cpu, ok := g.CPU()
	if !ok {
		return
	}
	if e.container() {
		c.alive++
		c.nameless = c.nameless || !e.named
	}
	c.took(e, &cpu)
	if c.pressures && (e.container() || strings.HasSuffix(e.path, ".service")) {
		psi := g.Pressure()
		e.waited(&psi, e.read || c.scans > 1)
	}
	e.cpu, e.read, e.own = cpu, true, e.whole
	c.order = append(c.order, e)
}

// took finds what an entity took since the last scan. One that is new took all of it since,
// unless this is the first scan.
func (c *cgroups) took(e *entity, now *cgroupfs.CPU) {
	if !e.read && c.scans == 1 {
		return
	}
	if e.read && now.Usage < e.cpu.Usage { // another cgroup of the same name
		e.cpu, e.psi = cgroupfs.CPU{}, cgroupfs.Pressure{}
	}
	usage := int64(now.Usage - e.cpu.Usage)
	system := min(usage, max(0, int64(now.System)-int64(e.cpu.System))) // version 1 has it in ticks
	e.whole.user, e.whole.system = usage-system, system
	e.whole.throttled = max(0, int64(now.Throttled)-int64(e.cpu.Throttled))
}

// waited finds for how long tasks waited since the last scan.
func (e *entity) waited(now *cgroupfs.Pressure, counts bool) {
	for i := range now {
		if counts && now[i].Known {
			e.whole.pressure[i] = [2]int64{max(0, int64(now[i].Some-e.psi[i].Some)), max(0, int64(now[i].Full-e.psi[i].Full))}
		}
	}
	e.psi = *now
}

// enter finds out what a new cgroup is. Inside of a container only containers are entities:
// its services are its own.
func (c *cgroups) enter(g *cgroupfs.Group, above *entity) *entity {
	e := &entity{path: g.Path()}
	var ok bool
	e.identity, ok = identify(e.path)
	e.none = !ok || !e.container() && above != nil && above.container()
	if !e.none {
		c.name(e)
	}
	return e
}

// name gives an entity its labels and the keys of its series.
func (c *cgroups) name(e *entity) {
	_, known := c.names[e.id]
	e.named = known || !e.container()
	e.labels = e.identity.labels(c.names)
	e.work = labelText(e.labels.workload())
	if e.container() {
		e.single = labelText(e.labels.single())
	}
}

// rename gives the containers without names those that are known now.
func (c *cgroups) rename(n names) {
	c.names = n
	for _, e := range c.byID {
		if !e.none && !e.named {
			c.name(e)
		}
	}
}

// report adds what each entity took to the series. The caller must hold the registry's lock.
func (c *cgroups) report(work, single *table, now time.Time) {
	for _, e := range c.order {
		work.add(e.work, e.labels, &e.own, now)
		if e.single != "" && single != nil {
			single.add(e.single, e.labels, &e.own, now)
		}
	}
	work.settle(now)
	if single != nil {
		single.settle(now)
	}
}
