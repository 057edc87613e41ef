package recorded

import (
	"errors"
	"slices"
	"strconv"

	"github.com/cyclestack/cyclestack/internal/c2c"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/render"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
)

// SharingOptions are those of shared cache lines.
type SharingOptions struct {
	Line    string // an address in the line to be shown in detail; "" is the first
	Size    int    // of a line in bytes; 0 is that of the recording's machine
	Top     int    // how many lines; 0 is those worth a line
	Symbols profile.Config
}

// Sharing returns the document of the cache lines that threads of a recording share.
func (r *Recordings) Sharing(o SharingOptions) (*render.SharedLines, error) {
	name := r.Names[0]
	addr, err := uint64(0), error(nil)
	if o.Line != "" {
		if addr, err = strconv.ParseUint(o.Line, 0, 64); err != nil {
			return nil, &fault.OptionError{Option: "line", Value: o.Line, Err: errors.New("not an address")}
		}
	}
	rec, err := r.recording(name)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	var lines *c2c.Lines
	d := &render.SharedLines{Code: map[int]render.SharedCode{}, Top: o.Top}
	m, err := rec.Memory(samples.Options{Accesses: true, Symbols: o.Symbols}, func(x *samples.Access) {
		if lines == nil {
			lines = c2c.New(max(o.Size, x.LineSize()))
		}
		n := lines.Add(&c2c.Access{Source: x.Source, Store: x.Store, Addr: x.Addr, Phys: x.Phys, Width: x.Width, Latency: x.Latency,
			PID: x.PID, TID: x.TID, Object: x.Object, Offset: x.Offset, CPU: x.CPU, Node: x.Node, IP: x.IP, Kernel: x.Kernel()})
		if n >= 0 {
			d.Code[n] = render.SharedCode{Function: x.FunctionName(), Line: x.Line(), Addr: x.IP, Data: x.Data().Name}
		}
	})
	if err != nil {
		return nil, fault.As(fault.Input, err)
	}
	d.CPU, _ = r.recordedOn(m)
	d.Label, d.Notes, d.Size, d.All, d.Others, d.Unsure = m.Label, m.Notes, lines.Size, lines.All, lines.Others, lines.Unsure
	for _, e := range m.Events {
		d.Events = append(d.Events, e.Name)
	}
	d.Lines = lines.Shared()
	if o.Line != "" {
		d.Detail = slices.IndexFunc(d.Lines, func(l *c2c.Line) bool { return l.Addr == addr&^uint64(d.Size-1) })
		if d.Detail < 0 {
			return nil, fault.Inputf("%s: no shared line has the address %#x", name, addr)
		}
	}
	return d, nil
}
