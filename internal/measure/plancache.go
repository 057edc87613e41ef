package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
)

// A planCache keeps plans in the user's cache directory. The search for a plan takes 60 to
// 180 ms on Intel's processors, before the program starts: see BenchmarkPlan.
type planCache struct {
	dir string // "" for nowhere
	key string
}

// planCacheMost bounds the size of a file.
const planCacheMost = 1 << 20

// planCache returns where the plans of a measurement are kept. Those of models of the
// user's own are not, as these may change at any time.
func (m *Measurement) planCache() planCache {
	o := &m.options
	if m.kernel.Cache == nil || len(o.Choice.ModelFiles) > 0 || o.Runs.Descend {
		return planCache{}
	}
	dir, err := m.kernel.Cache()
	if err != nil {
		return planCache{}
	}
	self, err := thisProgram()
	if err != nil {
		return planCache{}
	}
	id, err := model.HostID(m.machine.Root)
	if err != nil {
		return planCache{}
	}
	var pmus []string
	for _, p := range m.machine.Sys.Core() {
		pmus = append(pmus, fmt.Sprint(p.Name, p.CPUs))
	}
	c := &o.Choice
	key := fmt.Sprintf("%q %q %q %q %d %d %q %q %t %+v %g", id, pmus, c.CPU, c.Model, c.Level, o.UsualLevel, c.Nodes, o.Set, o.All, m.planOptions(), m.seconds())
	return planCache{filepath.Join(dir, "cyclestack", "plans", digest(self)), digest(key)}
}

// thisProgram identifies the program's file: another version plans in another way.
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

func (c planCache) file() string { return filepath.Join(c.dir, c.key+".json") }

// read returns the plans that are kept, nil if there are none.
func (c planCache) read() []corePlan {
	if c.dir == "" {
		return nil
	}
	info, err := os.Stat(c.file())
	if err != nil || info.Size() > planCacheMost {
		return nil
	}
	text, err := os.ReadFile(c.file())
	if err != nil {
		return nil
	}
	var list []corePlan
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
		return !slices.ContainsFunc(list, func(g int) bool { return g < 0 || g >= len(p.Groups) })
	}
	for i := range p.Nodes {
		if !in(p.Nodes[i].Groups) || p.Nodes[i].Index < 0 {
			return false
		}
	}
	return in(p.Rotation)
}

// write keeps plans. If that fails, the next run plans again. The plans of other versions
// of the program are removed.
func (c planCache) write(list []corePlan) {
	if c.dir == "" {
		return
	}
	kept := make([]corePlan, len(list))
	for i, p := range list {
		bare := *p.Plan
		bare.CPU, bare.Model, bare.PMU = nil, nil, nil
		kept[i] = p
		kept[i].Plan = &bare
	}
	text, err := json.Marshal(kept)
	if err != nil || len(text) > planCacheMost {
		return
	}
	if _, err := os.Stat(c.dir); err != nil {
		_ = os.RemoveAll(filepath.Dir(c.dir))
		if os.MkdirAll(c.dir, 0o700) != nil {
			return
		}
	}
	f, err := os.CreateTemp(c.dir, ".plan.*")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), c.file()) != nil {
		os.Remove(f.Name())
	}
}
