package ostime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// MachineColumns are the columns that Machine.Join adds: what processors did with their
// time, in nanoseconds and to the tick.
var MachineColumns = [...]counts.Column{
	processorUser:   {Event: "processor_user", Unit: "ns"},
	processorSystem: {Event: "processor_system", Unit: "ns"}, // in the kernel, its interrupts too
	processorIdle:   {Event: "processor_idle", Unit: "ns"},
	processorDisks:  {Event: "processor_iowait", Unit: "ns"}, // idle, while a thread that had run there waited for a disk
	processorStolen: {Event: "processor_steal", Unit: "ns"},  // the hypervisor ran something else
}

// Indexes of MachineColumns.
const (
	processorUser = iota
	processorSystem
	processorIdle
	processorDisks
	processorStolen
)

// A Machine says what processors did with their time, from /proc/stat. It goes with
// system-wide counts. Its methods may not be called at the same time.
type Machine struct {
	proc      proc
	kept      keptFile // proc/stat
	cpus      []int    // that are watched; nil for all
	places    []counts.Scope
	last, now []processorUse // by number
	at        time.Time      // of last
	of        *counts.Layout
	table     *counts.Table // the last that was returned
	err       error
}

// A processorUse is what a processor did since boot, by column.
type processorUse struct {
	known bool
	time  [len(MachineColumns)]time.Duration
}

// NewMachine watches processors from now on: those of cpus, or all if it is nil. The
// root is that of New. Places has the core, die, socket and node of each logical
// processor, for tables by these; it may be nil for others.
func NewMachine(root fs.FS, cpus []int, places []counts.Scope) *Machine {
	m := &Machine{proc: proc{root: root}, cpus: cpus, places: places}
	m.last, m.err = m.look(nil)
	m.at = time.Now()
	return m
}

// look reads what the processors did since boot, into the memory of a list.
func (m *Machine) look(into []processorUse) ([]processorUse, error) {
	text, err := m.proc.again(&m.kept, "proc", "/stat")
	if err != nil {
		return nil, err
	}
	return parseProcessors(into[:0], text)
}

// kinds are the columns of the times in a line about processors: user, nice, system, idle,
// iowait, irq, softirq, steal; what guests used is in user and nice.
var kinds = [...]int{processorUser, processorUser, processorSystem, processorIdle, processorDisks, processorSystem, processorSystem, processorStolen}

// parseProcessors appends what the lines of /proc/stat tell that are about single
// processors. They come first, behind one about all of them.
func parseProcessors(list []processorUse, text []byte) ([]processorUse, error) {
	bad := func(line []byte) error {
		return &fs.PathError{Op: "read", Path: "proc/stat", Err: fmt.Errorf("%q is not a line of proc_stat(5)", line)}
	}
	whole := false
	for {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		number, ok := bytes.CutPrefix(line, []byte("cpu"))
		if !ok {
			break
		}
		text = rest
		number, times, _ := bytes.Cut(number, []byte{' '})
		cpu := 0
		if len(number) > 0 {
			n, err := strconv.ParseUint(string(number), 10, 16)
			if err != nil {
				return nil, bad(line)
			}
			cpu = int(n)
		}
		s, ok := parseSpent(times)
		switch {
		case !ok:
			return nil, bad(line)
		case len(number) == 0:
			whole = true
			continue
		}
		for len(list) <= cpu {
			list = append(list, processorUse{})
		}
		list[cpu] = s
	}
	if !whole {
		return nil, &fs.PathError{Op: "read", Path: "proc/stat", Err: errors.New("it has no line for each processor")}
	}
	return list, nil
}

// parseSpent reads the times of one line.
func parseSpent(times []byte) (s processorUse, ok bool) {
	for _, column := range kinds {
		times = bytes.TrimLeft(times, " ")
		var field []byte
		field, times, _ = bytes.Cut(times, []byte{' '})
		d, err := ticks(field)
		if err != nil {
			return s, false
		}
		s.time[column] += d
	}
	s.known = true
	return s, true
}

// Join returns a table with the cells of another one and with MachineColumns. These are
// of the time since the last call or since NewMachine. A scope is one logical processor,
// the watched ones of a core, die, socket or node, or all watched ones.
//
// On a busy machine the processors are looked at some time before and after the table's
// own counts. What they did is then scaled to the table's time.
//
// The table is valid until the next call.
func (m *Machine) Join(t *counts.Table) *counts.Table {
	var err error
	now, scale := time.Now(), 1.0
	if between := now.Sub(m.at); t.Duration > 0 && between.Seconds() > t.Duration {
		scale = t.Duration / between.Seconds()
	}
	if m.now, err = m.look(m.now); err != nil {
		m.err = err
	}
	if m.of != t.Layout {
		m.of, m.table = t.Layout, counts.NewTable(extended(t.Layout, MachineColumns[:]))
	}
	out := m.table
	describe(out, t)
	for i := range t.Scopes {
		copy(out.Row(i), t.Row(i))
		cells := out.Row(i)[len(t.Columns):]
		sum, n := m.since(&t.Scopes[i])
		for c := range cells {
			cells[c] = counts.Cell{State: counts.NotSupported}
			if n > 0 {
				cells[c] = counts.Cell{State: counts.Counted, Value: scale * nanos(sum[c]), Variance: 2 * float64(n) * uniform(tick)}
			}
		}
	}
	if err == nil {
		m.last, m.now, m.at = m.now, m.last, now
	}
	if m.err != nil {
		out.Notes = append(out.Notes, counts.Notef("not known: what processors did with their time (%v)", m.err))
	}
	return out
}

// since adds up what the processors of a scope did, and says how many these are: those
// that are there now and were there before.
func (m *Machine) since(scope *counts.Scope) (sum [len(MachineColumns)]time.Duration, n int) {
	add := func(cpu int) {
		if cpu >= len(m.now) || cpu >= len(m.last) || !m.now[cpu].known || !m.last[cpu].known {
			return
		}
		n++
		for c := range sum {
			sum[c] += max(0, m.now[cpu].time[c]-m.last[cpu].time[c]) // the kernel's idle time can go back by a tick
		}
	}
	switch {
	case scope.CPU != counts.Unknown:
		add(scope.CPU)
	case partial(scope):
		for i := range m.places {
			if p := &m.places[i]; holds(scope, p) && (m.cpus == nil || slices.Contains(m.cpus, p.CPU)) {
				add(p.CPU)
			}
		}
	case scope.Kind != counts.Run && scope.Kind != counts.Interval:
	case m.cpus != nil:
		for _, cpu := range m.cpus {
			add(cpu)
		}
	default:
		for cpu := range m.now {
			add(cpu)
		}
	}
	return sum, n
}

// partial reports whether a scope is a part of the machine.
func partial(s *counts.Scope) bool {
	return s.Core != counts.Unknown || s.Die != counts.Unknown || s.Socket != counts.Unknown || s.Node != counts.Unknown
}

// holds reports whether a processor is in a part of the machine: where that has a number
// it is the processor's.
func holds(part, cpu *counts.Scope) bool {
	in := func(part, cpu int) bool { return part == counts.Unknown || part == cpu }
	return in(part.Core, cpu.Core) && in(part.Die, cpu.Die) && in(part.Socket, cpu.Socket) && in(part.Node, cpu.Node)
}

// Started does nothing: a command only says for how long.
func (m *Machine) Started(int) {}

// Ended does nothing.
func (m *Machine) Ended(int) {}

// Reaped does nothing.
func (m *Machine) Reaped(*os.ProcessState) {}
