package plan

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
)

// A Command is a call of perf, or words about one.
type Command struct {
	About string   // what it does, in one line; "" if that is clear
	Args  []string // the arguments, "perf" first
	Break []int    // indexes in Args before which a printed line may break
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
		b.WriteString(quote(arg))
	}
	return b.String()
}

// quote returns an argument as a POSIX shell takes it.
func quote(arg string) string {
	plain := arg != "" && strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:%+@") == ""
	if plain {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
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

// always returns what is counted beside the groups as perf stat's -e takes it.
func (p *Plan) always() string {
	names := make([]string, len(p.Always))
	for i := range p.Always {
		names[i] = p.Always[i].PerfName()
	}
	return strings.Join(names, ",")
}

// Perf returns the perf stat commands that collect what the plan is for: one,
// in which the kernel lets the groups take turns, or with runs one for each
// group. They count the whole machine for ten seconds; another program than
// sleep may stand at the end. A published command for the same model comes
// first.
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
	return command([]string{"perf", "stat", "-a", "-x", ";", "-o", file}, p.perfEvents(groups))
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
		all = append(all, groups[i].Perf())
	}
	if always := p.always(); always != "" {
		all = append(all, always)
	}
	return all
}

// A published command is one that the source of a model gives.
type published struct {
	cpu, model string
	about      string
	line       string
}

// publishedCommands are the commands that sources of models give, word by word.
var publishedCommands = []published{{
	cpu: "power7", model: "power7-cpi",
	about: "as in R. Folco's article: every event by itself, so that none is counted together with another. " +
		"It leaves out r40016 (PM_CMPLU_STALL_REJECT), which the article's own output has",
	line: "perf stat -a --event=r400fa --event=r100f2 --event=r4001a --event=r100f8 --event=r4001c --event=r2001a " +
		"--event=r200f4 --event=r2004a --event=r4004a --event=r4004e --event=r4004c --event=r20016 --event=r40018 " +
		"--event=r20012 --event=r40012 --event=r20018 --event=r4000a --event=r2001c --event=r2003c --event=r1001c " +
		"--event=r1003c --event=r20014 --event=r40014 --event=r30004 sleep 1d",
}}

// published returns the published command for the whole of the plan's model,
// nil if there is none.
func (p *Plan) published() *Command {
	whole := p.Options.Nodes == nil && p.Options.Set == "" && p.Options.Level == 0
	for _, c := range publishedCommands {
		if whole && c.cpu == p.CPU.Name && c.model == p.Model.Name {
			return &Command{About: c.about, Args: strings.Fields(c.line)}
		}
	}
	return nil
}

//go:embed data/collect.sh
var collectScript string

var collectTemplate = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{"quote": quote, "inc": func(i int) int { return i + 1 }}
	return template.Must(template.New("collect.sh").Funcs(functions).Parse(collectScript))
})

// Script returns a shell script that collects what the plan is for with perf,
// on a machine without cyclestack, for a program or for the whole machine: all
// groups in turns, or with runs one in each of several runs.
func (p *Plan) Script(runs bool) (string, error) {
	type run struct{ Events []string }
	data := struct {
		CPU, Model, Version string
		SMT                 bool
		Groups              int
		Seconds             float64
		Runs                []run
		Prefix              string
		Notes               []string
	}{CPU: p.CPU.Name, Model: p.Model.Name, Version: p.Model.Version, SMT: p.Options.SMT, Groups: len(p.Groups),
		Seconds: p.ShortestRun(true), Prefix: strings.TrimSuffix(p.File(0, "csv"), ".csv"), Notes: p.Warnings}
	switch {
	case !runs:
		data.Runs = []run{{p.perfEvents(p.Groups)}}
	case len(p.Groups) == 0:
		data.Runs = []run{{p.perfEvents(nil)}}
	default:
		for i := range p.Groups {
			data.Runs = append(data.Runs, run{p.perfEvents(p.Groups[i : i+1])})
		}
	}
	var out bytes.Buffer
	if err := collectTemplate().Execute(&out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}
