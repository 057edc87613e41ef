package profile

import (
	"path/filepath"

	"github.com/cyclestack/cyclestack/internal/object"
)

// AddJitdumps reads the jitdumps that processes have mapped, below a root directory or with
// "" on this system. It maps their code at the times of its making. Call it after the
// events of the recording and before Settle. The clocks of both must be the same, as they
// are with perf record -k 1. Code of a file that cannot be read has no names: the
// Symbolizer says why.
func (s *Spaces) AddJitdumps(root string) {
	for _, f := range s.list {
		if f.kind != kindJitdump {
			continue
		}
		if d, err := object.OpenJitdump(filepath.Join(root, filepath.Clean("/"+f.Name))); err == nil {
			s.addJitdump(f, d)
		}
	}
}

func (s *Spaces) addJitdump(file *File, d *object.Jitdump) {
	if d.ArchTime {
		return
	}
	d.Placed(func(time, addr uint64, c *object.JitCode) {
		m := Mapping{PID: file.PID, Start: addr, Len: c.Size, PgOff: c.Offset}
		if c.Size > 0 {
			s.add(time, func(time uint64) { s.insert(time, m, file) })
		}
	})
}
