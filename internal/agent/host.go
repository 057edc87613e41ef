package agent

import (
	"bufio"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/source/cgroupfs"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

// A host is the operating system's account of the machine.
type host struct {
	root    fs.FS
	machine *ostime.Machine
	empty   *counts.Table
	modes   [len(ostime.MachineColumns)]*counter
	nodes   [6]*counter
	whole   *counter
	psi     cgroupfs.Pressure
	queued  map[string]uint64 // by processor: nanoseconds in the run queue
	queue   *counter
	first   bool
	online  int
	known   *counter // number of processors
	errors  *counter
}

// modes are the values of the label, by ostime's columns. Only the first two are use.
var modes = [len(ostime.MachineColumns)]string{"user", "system", "idle", "iowait", "steal"}

// hostNodes are the nodes of the account, below Processors of the model os-time: their level
// and the columns that they sum.
var hostNodes = [6]struct {
	level   int
	name    string
	columns []int
}{
	{1, "Busy", []int{0, 1}},
	{1, "Idle", []int{2, 3}},
	{1, "Stolen", []int{4}},
	{2, "Busy_User", []int{0}},
	{2, "Busy_System", []int{1}},
	{2, "Idle_For_Disks", []int{3}},
}

func newHost(s *sink, root fs.FS) *host {
	h := &host{root: root, machine: ostime.NewMachine(root, nil, nil), first: true, queued: map[string]uint64{},
		empty: counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})}
	scope := []string{series.Scope, series.Host}
	method := append(scope, series.Processor, s.processor, series.Method, series.OS)
	for i, mode := range modes {
		f := s.cpu
		if i > 1 {
			f = s.idle
		}
		h.modes[i] = s.r.get(f, append(method, series.Mode, mode)...)
	}
	account := append(scope, series.Model, osModel, series.ModelVersion, s.osVersion, series.Processor, s.processor, series.Method, series.OS, series.Group, osGroup)
	h.whole = s.r.get(s.wholeSeconds, account...)
	for i, n := range hostNodes {
		h.nodes[i] = s.r.get(s.secondsOf(n.level), append(account, series.Node, n.name)...)
	}
	h.known = s.r.get(s.r.family(series.Processors, "logical processors that are online", gauge), scope...)
	h.errors = s.r.get(s.r.family(series.Errors, "what could not be read or sent, by part of the agent", count), "part", "host")
	s.describe(osModel, s.osVersion, s.processor, series.OS, series.CPUSeconds.Name)
	return h
}

// read adds what the processors did since the last call.
func (h *host) read(s *sink) {
	t := h.machine.Join(h.empty)
	online := onlineProcessors(h.root)
	psi := cgroupfs.HostPressure("/")
	queue, haveQueue := h.waited()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	row := t.Row(0)[len(h.empty.Columns):]
	if !s.r.shown(h.whole) {
		queue = 0
	} else if row[0].State == counts.Counted && len(t.Notes) == 0 {
		var sum int64
		for i := range h.modes {
			n := int64(row[i].Value)
			h.modes[i].addNanos(n)
			sum += n
		}
		h.whole.addNanos(sum)
		for i, n := range hostNodes {
			for _, c := range n.columns {
				h.nodes[i].addNanos(int64(row[c].Value))
			}
		}
	} else {
		h.errors.add(1)
	}
	h.online = online
	h.known.set(float64(online))
	for i := range psi {
		for k, now := range [2]uint64{psi[i].Some, psi[i].Full} {
			before := [2]uint64{h.psi[i].Some, h.psi[i].Full}[k]
			if !psi[i].Known {
				continue
			}
			c := s.r.get(s.pressure, series.Scope, series.Host, series.Processor, s.processor, series.Method, series.OS, series.Resource, resources[i], series.Kind, [2]string{"some", "full"}[k])
			if !h.first && now > before {
				c.addNanos(int64(now - before))
			}
		}
	}
	if haveQueue {
		if h.queue == nil {
			h.queue = s.r.get(s.runQueue, series.Scope, series.Host, series.Processor, s.processor, series.Method, series.OS)
		}
		h.queue.addNanos(queue)
	}
	h.psi, h.first = psi, false
}

// waited returns the time of threads in the run queues since the last call. It is in
// /proc/schedstat, where the kernel has it.
func (h *host) waited() (sum int64, ok bool) {
	f, err := h.root.Open("proc/schedstat")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		const delay = 8 // of the lines about processors: see Documentation/scheduler/sched-stats.rst
		if len(fields) <= delay || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		now, err := strconv.ParseUint(fields[delay], 10, 64)
		if err != nil {
			continue
		}
		before, known := h.queued[fields[0]]
		if known && now >= before {
			sum += int64(now - before)
		}
		h.queued[fields[0]] = now
		ok = true
	}
	return sum, ok && lines.Err() == nil
}

// onlineProcessors counts the processors that /proc/stat has, 0 if it cannot be read.
func onlineProcessors(root fs.FS) (n int) {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "cpu") {
			break
		}
		if len(line) > 3 && line[3] != ' ' {
			n++
		}
	}
	return n
}
