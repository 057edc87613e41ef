package plan

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/shell"
	"github.com/cyclestack/cyclestack/model"
)

// A Command is a call of perf, or words about one.
type Command struct {
	About string   // what it does, in one line; "" if that is clear
	Args  []string // the arguments, "perf" first
	Break []int    // indexes in Args: a printed line may break before them
}

// String returns the command as a shell takes it, in one line.
func (c *Command) String() string { return c.lines(false) }

// Lines returns the command as a shell takes it, over several lines where it is
// long.
func (c *Command) Lines() string { return c.lines(true) }

func (c *Command) lines(several bool) string {
	var b strings.Builder
	breaks := map[int]bool{}
	for _, i := range c.Break {
		breaks[i] = several
	}
	for i, arg := range c.Args {
		switch {
		case i > 0 && breaks[i]:
			b.WriteString(" \\\n    ")
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(shell.Quote(arg))
	}
	return b.String()
}

// PerfName returns the event as perf is to be given it so that it prints the
// event's name: "cpu/event=0x9c,umask=0x1,name=IDQ_UOPS_NOT_DELIVERED.CORE/".
// Where perf would not take the name it is left out, and perf prints the code.
func (e *Event) PerfName() string {
	i := strings.LastIndexByte(e.Perf, '/')
	if e.Bare || !e.Core || i < 0 || strings.Trim(e.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
		return e.Perf
	}
	return e.Perf[:i] + ",name=" + e.Name + e.Perf[i:]
}

// Perf returns the group as perf stat's -e takes it: "{…,…}".
func (g *Group) Perf() string {
	names := make([]string, len(g.Events))
	for i := range g.Events {
		names[i] = g.Events[i].PerfName()
	}
	return braced(names)
}

// braced returns events as one group.
func braced(events []string) string {
	if len(events) == 1 {
		return events[0]
	}
	return "{" + strings.Join(events, ",") + "}"
}

// always returns the events that are counted all of the time, for perf stat's -e.
func (p *Plan) always() string {
	names := make([]string, len(p.Always))
	for i := range p.Always {
		names[i] = p.Always[i].PerfName()
	}
	return strings.Join(names, ",")
}

// Perf returns the perf stat commands that collect the plan's events: one, with the
// groups multiplexed by the kernel, or with runs one for each group. They count the
// whole machine for ten seconds; another program may replace sleep at the end. A
// published command for the same model comes first.
func (p *Plan) Perf(runs bool) []Command {
	var all []Command
	if published := p.published(); published != nil {
		all = append(all, *published)
	}
	if !runs {
		return append(all, p.stat(p.File(0, "csv"), p.Groups))
	}
	for i := range p.Runs() {
		var group []Group
		if i < len(p.Groups) {
			group = p.Groups[i : i+1]
		}
		all = append(all, p.stat(p.File(i+1, "csv"), group))
	}
	return all
}

// For returns a command that collects the same of a program. With SMT the whole machine
// is counted while the program runs: the other logical processor of its core is part of
// the account.
func (p *Plan) For(c Command, program []string) Command {
	end := slices.Index(c.Args, "--")
	if len(program) == 0 || end < 0 {
		return c
	}
	out := Command{About: c.About, Args: slices.Concat(c.Args[:end+1], program), Break: slices.Clone(c.Break)}
	if all := slices.Index(out.Args[:end], "-a"); all >= 0 && !p.Options.SMT && !p.PerCPU() {
		out.Args = slices.Delete(out.Args, all, all+1)
		for i := range out.Break {
			out.Break[i]-- // before the events nothing breaks
		}
	}
	return out
}

// File returns the name of the file of a run with this extension, or that of all
// groups for 0.
func (p *Plan) File(run int, extension string) string {
	name := strings.ReplaceAll(p.CPU.Name, ":", "-")
	if run > 0 {
		name = fmt.Sprintf("%s-%d", name, run)
	}
	return name + "." + extension
}

func (p *Plan) stat(file string, groups []Group) Command {
	args := []string{"perf", "stat", "-a"}
	if p.PerCPU() {
		args = append(args, "-A")
	}
	return command(append(args, "-x", ";", "-o", file), p.perfEvents(groups))
}

// PerCPU reports whether the plan's counts are of each logical processor by itself: the
// model compares those of a core.
func (p *Plan) PerCPU() bool {
	return slices.ContainsFunc(p.Model.Inputs, func(in model.Input) bool { return in.LP != nil || in.Any })
}

// inMode restricts an event or a group, as perf takes it, to the mode of the model.
func (p *Plan) inMode(events string) string {
	if p.Model.Mode == "" {
		return events
	}
	if strings.HasSuffix(events, "/") || strings.Contains(events, "}:") {
		return events + p.Model.Mode
	}
	return events + ":" + p.Model.Mode
}

// command returns a call of perf for some events.
func command(args, events []string) Command {
	c := Command{Args: args}
	for _, e := range events {
		c.Break = append(c.Break, len(c.Args))
		c.Args = append(c.Args, "-e", e)
	}
	c.Break = append(c.Break, len(c.Args))
	c.Args = append(c.Args, "--", "sleep", "10")
	return c
}

// perfEvents returns the arguments of perf stat's -e.
func (p *Plan) perfEvents(groups []Group) []string {
	var all []string
	for i := range groups {
		all = append(all, p.inMode(groups[i].Perf()))
	}
	if always := p.always(); always != "" {
		all = append(all, always)
	}
	return all
}

// published returns the command that the model's source gives for all of its nodes, nil
// if there is none.
func (p *Plan) published() *Command {
	if p.Options.Nodes != nil || p.Options.Set != "" || p.Options.Level != 0 {
		return nil
	}
	for _, set := range p.Model.EventSets {
		if set.Command != "" {
			return &Command{About: set.Note, Args: strings.Fields(set.Command)}
		}
	}
	return nil
}

//go:embed data/collect.sh
var collectScript string

// A Spelling has the commands and options of a client that a script names.
type Spelling struct {
	Script   string // the command that makes scripts
	Reader   string // the command that reads what scripts counted
	Report   string // the same, with options for the files of this script
	CPU      string // the option for another processor
	Watchdog string // the option for a watchdog that counts
	SMT      string // the option for cores whose logical processors are all in use
}

// Script returns a shell script that counts the plan's events with perf. It needs no
// cyclestack on the machine, and counts a program or the whole machine. The groups are
// multiplexed, or with runs each is counted in its own run. Notes are comments at its
// beginning. The program is run if the caller of the script names none. How commands and
// options are spelled is up to the client.
//
// The script first checks what the plan assumes of the machine: the processor, and
// counters that neither the watchdog nor SMT takes away.
func (p *Plan) Script(runs bool, spelled Spelling, notes []string, program ...string) string {
	var groups [][]Group // by run
	switch {
	case !runs:
		groups = [][]Group{p.Groups}
	case len(p.Groups) == 0:
		groups = [][]Group{nil}
	default:
		for i := range p.Groups {
			groups = append(groups, p.Groups[i:i+1])
		}
	}
	several, seconds, divided := len(groups) > 1, p.ShortestRun(true), p.needsUndivided()
	is := map[string]bool{
		"program": len(program) > 0, "several": several, "smt": p.Options.SMT, "watchdog": p.needsWatchdogOff(), "divided": divided > 0,
		"timed": !several && seconds > 0, "percpu": p.PerCPU(),
	}
	values := map[string]string{
		"cpu": p.CPU.Name, "model": p.Model.Name, "version": p.Model.Version,
		"prefix": shell.Quote(strings.TrimSuffix(p.File(0, "csv"), ".csv")), "runs": strconv.Itoa(len(groups)), "groups": strconv.Itoa(len(p.Groups)),
		"made": spelled.Script, "reads": spelled.Reader, "report": spelled.Report, "other": spelled.CPU, "shared": spelled.SMT, "counted": spelled.Watchdog,
		"counters": strconv.Itoa(divided), "seconds": fmt.Sprintf("%.1f", seconds),
	}
	if m := machineOf(p.CPU); m != nil {
		is["machine"], is["fields"], is["exact"] = true, m.Fields, m.Exact
		values["identify"], values["pattern"] = m.Command, shell.Quote(m.Pattern)
	}
	is["checked"] = is["machine"] || is["watchdog"] || is["divided"]
	for _, note := range notes {
		values["notes"] += "#\n# Note: " + note + "\n"
	}
	for _, word := range program {
		values["program"] += " " + shell.Quote(word)
	}
	for i, run := range groups {
		call := "collect"
		if several {
			call += fmt.Sprintf(" %d", i+1)
		}
		for _, e := range p.perfEvents(run) {
			call += " \\\n\t" + shell.Quote(e)
		}
		values["collect"] += call + " \\\n\t-- \"$@\"\n"
	}
	return expand(collectScript, is, values)
}

// expand fills in a text: {{name}} is a value, {{if name}}…{{else}}…{{end}} a choice. It
// is not package text/template, which keeps the linker from leaving out methods that
// nobody calls: 1.7 MB of the program.
func expand(text string, is map[string]bool, values map[string]string) string {
	var out strings.Builder
	shown := []bool{true} // the text of each choice that is open
	for {
		last := len(shown) - 1
		before, rest, more := strings.Cut(text, "{{")
		if shown[last] {
			out.WriteString(before)
		}
		if !more {
			return out.String()
		}
		word, after, _ := strings.Cut(rest, "}}")
		text = after
		condition, choice := strings.CutPrefix(word, "if ")
		switch {
		case choice:
			shown = append(shown, shown[last] && is[condition])
		case word == "else":
			shown[last] = shown[last-1] && !shown[last]
		case word == "end":
			shown = shown[:last]
		case shown[last]:
			out.WriteString(values[word])
		}
	}
}

// Assumptions says what the plan assumes of the machine that counts it. A machine
// without these needs other groups.
func (p *Plan) Assumptions() []counts.Note {
	var all []counts.Note
	if p.needsWatchdogOff() {
		all = append(all, counts.Notef("the kernel's NMI watchdog is taken to be off (sysctl kernel.nmi_watchdog=0): "+
			"it takes a counter, and groups that need all are never counted").With(counts.Fix{Action: counts.PlanWatchdog}))
	}
	if n := p.needsUndivided(); n > 0 {
		all = append(all, counts.Notef("SMT is taken to be off in the firmware: elsewhere groups that need more than %d general counters are never counted", n).
			With(counts.Fix{Action: counts.PlanSMT, Number: n}))
	}
	return all
}

// needsWatchdogOff reports whether there is a group that is never counted while the
// kernel's NMI watchdog counts.
func (p *Plan) needsWatchdogOff() bool {
	return !p.Options.Watchdog && !p.fits(p.heldByWatchdog(), func(e *Event) demand { return e.demand })
}

// needsUndivided returns how many general counters SMT leaves to a logical processor. It
// is 0 if no group needs more.
func (p *Plan) needsUndivided() int {
	if p.Options.SMT || p.PMU.CountersSMT == "" {
		return 0
	}
	left := p.PMU.general(true)
	lost := p.PMU.general(false) &^ left
	if p.fits(p.taken, func(e *Event) demand {
		d := e.demand
		d.can &^= lost
		d.erratum = p.PMU.Erratum != nil && slices.Contains(p.PMU.Erratum.Codes, e.ID.Config&0xff)
		return d
	}) {
		return 0
	}
	return left.len()
}

// heldByWatchdog is what the watchdog would take if it were on.
func (p *Plan) heldByWatchdog() []counters {
	can := p.general
	if p.cycles != nil {
		can = p.cycles.demand.can
	}
	return p.heldOf(can)
}

// fits reports whether all groups can be counted while something else holds counters,
// if their events take what demand says.
func (p *Plan) fits(held []counters, demandOf func(e *Event) demand) bool {
	for i := range p.Groups {
		events := p.Groups[i].Events
		demands, all := make([]demand, len(events)), newSet(len(events))
		for k := range events {
			demands[k] = demandOf(&events[k])
			all.add(k)
			if demands[k].can == 0 && events[k].demand.can != 0 {
				return false
			}
		}
		if !newSpace(demands, p.PMU.Registers, held, p.PMU.errata()).fits(all) {
			return false
		}
	}
	return true
}

// A machine is how a script finds out what processor it is on.
type machine struct {
	Command string // prints identifications, as perf and the catalogue spell them
	Fields  bool   // it calls the script's function field
	Pattern string // of those of the plan's processor, and of the architecture where the kernel does not tell more
	Exact   bool   // the identification says as much as the processor's name, or more
}

// machineOf returns how a script recognises a processor, nil for one that has no
// identification.
func machineOf(cpu *model.CPU) *machine {
	if len(cpu.IDs) == 0 {
		return nil
	}
	m := &machine{Fields: true, Exact: cpu.CoreType == ""}
	patterns := slices.Clone(cpu.IDs)
	switch cpu.Layout {
	case "intel", "amd":
		m.Command = `[ -z "$(field vendor_id)" ] ||
	printf '%s-%d-%X-%X' "$(field vendor_id)" "$(field 'cpu family')" "$(field model)" "$(field stepping)"`
		for i := range patterns {
			patterns[i] += "(-[0-9A-F]+)?" // the stepping, where the pattern has none
		}
	case "arm":
		m.Command = "cat /sys/devices/system/cpu/cpu*/regs/identification/midr_el1 2>/dev/null | sort -u | paste -s -d ' ' -"
		m.Fields, m.Exact = false, false // of several kinds of cores one may be the plan's
		for i, id := range patterns {
			if len(id) == len("0x00000000410fd0c0") { // without variant and revision
				patterns[i] = id[:12] + "." + id[13:17] + "."
			}
		}
		patterns = append(patterns, "arm.*", "aarch64.*")
	case "power":
		m.Command = `field revision | sed -n 's/.*(pvr \([0-9a-f]*\) \([0-9a-f]*\)).*/0x\1\2/p'`
		patterns = append(patterns, "ppc.*")
	case "riscv":
		m.Command = `[ -z "$(field mvendorid)" ] || echo "$(field mvendorid)-$(field marchid)-$(field mimpid)"`
		patterns = append(patterns, "riscv.*")
	default:
		return nil
	}
	m.Pattern = strings.Join(patterns, "|")
	return m
}
