package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// A planned is what is to be counted on one type of core. To find that takes a
// look into the catalogue and a search, tens of milliseconds before a program
// can start; so it is remembered between runs, in the user's cache directory.
type planned struct {
	CPU  string     // its name in the catalogue
	PMU  string     // the kernel's
	Note string     // what was assumed
	All  bool       // the nodes outside the main tree were asked for
	Plan *plan.Plan // without its processor and method
}

// A memory is where plans are remembered.
type memory struct {
	dir string // "" for nowhere
	key string
}

// memoryMost bounds the size of a remembered list of plans.
const memoryMost = 1 << 20

// memory returns where the plans of a job are remembered, if at all: nothing is
// of models of the user's own, which may change at any time.
func (j *job) memory() memory {
	if j.kernel.cache == nil || len(j.c.files) > 0 || j.f.drilldown {
		return memory{}
	}
	dir, err := j.kernel.cache()
	if err != nil {
		return memory{}
	}
	self, err := thisProgram()
	if err != nil {
		return memory{}
	}
	id, err := model.HostID(j.machine.Root)
	if err != nil {
		return memory{}
	}
	var pmus []string
	for _, p := range j.machine.Sys.Core() {
		pmus = append(pmus, fmt.Sprint(p.Name, p.CPUs))
	}
	key := fmt.Sprintf("%q %q %q %q %d %q %t %+v %g", id, pmus, j.c.cpu, j.c.model, j.c.level, j.c.nodes, j.c.all, j.options(), j.seconds())
	return memory{filepath.Join(dir, "cyclestack", "plans", digest(self)), digest(key)}
}

// thisProgram identifies the program's file: another version plans in another
// way.
func thisProgram() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(exe)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(exe, info.Size(), info.ModTime().UnixNano()), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// recall returns the plans that are remembered, nil if there are none.
func (m memory) recall() []planned {
	if m.dir == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(m.dir, m.key+".json"))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, memoryMost))
	if err != nil {
		return nil
	}
	var list []planned
	if err := json.Unmarshal(text, &list); err != nil {
		return nil
	}
	for _, p := range list {
		if p.Plan == nil || !whole(p.Plan) {
			return nil
		}
	}
	return list
}

// whole reports whether a plan that was read has groups for all its indexes.
func whole(p *plan.Plan) bool {
	in := func(list []int) bool {
		for _, g := range list {
			if g < 0 || g >= len(p.Groups) {
				return false
			}
		}
		return true
	}
	for i := range p.Nodes {
		if !in(p.Nodes[i].Groups) || p.Nodes[i].Index < 0 {
			return false
		}
	}
	return in(p.Rotation)
}

// keep remembers plans. If that fails, the next run plans again. What other
// versions of the program remembered is forgotten.
func (m memory) keep(list []planned) {
	if m.dir == "" {
		return
	}
	stripped := make([]planned, len(list))
	for i, p := range list {
		bare := *p.Plan
		bare.CPU, bare.Model, bare.PMU = nil, nil, nil
		stripped[i] = p
		stripped[i].Plan = &bare
	}
	text, err := json.Marshal(stripped)
	if err != nil || len(text) > memoryMost {
		return
	}
	if _, err := os.Stat(m.dir); err != nil {
		_ = os.RemoveAll(filepath.Dir(m.dir))
		if os.MkdirAll(m.dir, 0o700) != nil {
			return
		}
	}
	to := target{path: filepath.Join(m.dir, m.key+".json")}
	f, err := beside(to)
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), to.path) != nil {
		os.Remove(f.Name())
	}
}

// plans returns what is to be counted on each type of core: as it is
// remembered, or else as it is worked out.
func (j *job) plans() ([]planned, error) {
	m := j.memory()
	gone := func(p planned) bool { return j.machine.Sys.PMU(p.PMU) == nil }
	if list := m.recall(); list != nil && !slices.ContainsFunc(list, gone) {
		return list, nil
	}
	cat, err := j.catalogue()
	if err != nil {
		return nil, err
	}
	types, err := j.machine.CoreTypes(cat, j.c.cpu)
	if err != nil {
		return nil, usageError("--cpu: %v", err)
	}
	var list []planned
	for _, t := range types {
		s, err := j.session(t.CPU.Name)
		if err != nil {
			return nil, err
		}
		all := j.c.all || t.CPU.Name == resolve.GenericCPU && j.c.level == 0 && j.c.nodes == "" // its tree says little, and the rest needs few events
		p, err := j.plan(s, all)
		if err != nil {
			return nil, err
		}
		list = append(list, planned{CPU: t.CPU.Name, PMU: t.PMU.Name, Note: t.Note, All: all, Plan: p})
	}
	m.keep(list)
	return list, nil
}

// session finds the method for a type of core.
func (j *job) session(cpu string) (*session, error) {
	cat, err := j.catalogue()
	if err != nil {
		return nil, err
	}
	s := &session{c: j.c, cat: cat, id: j.id()}
	if s.cpu, err = cat.CPU(cpu); err != nil {
		return nil, err
	}
	if s.model, err = cat.Model(j.c.model, cpu); err != nil {
		return nil, usageError("%v", err)
	}
	if err := s.checkNodes(); err != nil {
		return nil, err
	}
	if s.events, err = cat.Events(s.cpu); err != nil {
		return nil, err
	}
	s.params, err = s.parameters(s.model)
	return s, err
}

// id is the processor as the user names it, else as the machine identifies itself; ""
// if it does not.
func (j *job) id() string {
	if j.c.cpu != "" {
		return j.c.cpu
	}
	id, err := model.HostID(j.machine.Root)
	if err != nil {
		return ""
	}
	return id
}
