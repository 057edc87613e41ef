package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
)

// Thread times next to the account of cycles: one line, or everything if the threads
// mostly waited, because cycles then explain little.

// Nodes of Account.Times.
const (
	timeThreads = "Threads"
	timeRan     = "CPUs_Utilised"
	timeKernel  = "System_Time"
	timeQueued  = "Runqueue_Wait"
	timeBlocked = "Blocked"
	timeDisks   = "IO_Wait"
	timeStolen  = "Steal"

	// Of processors instead of threads.
	timeProcessors = "Processors"
	timeBusy       = "Busy"
	timeBusyKernel = "Busy_System"
	timeIdle       = "Idle"
	timeIdleDisks  = "Idle_For_Disks"
	timeTaken      = "Stolen"

	timeStopped = "Throttled"
)

// times writes what the threads did, before the tree that explains their cycles.
func (t *tree) times(a *account.Account) {
	if a.Times == nil {
		return
	}
	first := waited(a.Times)
	if first == "" {
		t.Paragraph("time", timesText(a.Times), 10, plain)
		t.Out.WriteByte('\n')
		return
	}
	t.Paragraph("time", first, 10, bold)
	t.Paragraph("", timesText(a.Times), 10, plain)
	t.Out.WriteByte('\n')
	if t.o.Line {
		return
	}
	own := &tree{o: Options{Width: t.Width, Color: t.Color, Titles: t.o.Titles}}
	_ = own.Begin(Header{CPU: t.h.CPU, Model: a.Times.Model()})
	section := ""
	if i, ok := a.Times.Node(timeProcessors); ok && a.Times.Nodes[i].Known() {
		section = a.Times.Model().Nodes[i].Section
	}
	own.section(a.Times, section)
	if path := a.Times.Bottleneck; len(path) > 0 {
		own.Paragraph("try", advice(a.Times, path[len(path)-1]), 10, plain)
		own.Out.WriteByte('\n')
	}
	t.Out.WriteString(own.Out.String())
}

// waited returns a sentence for threads that mostly waited, so that waiting and not
// cycles determines the elapsed time; "" for others.
func waited(times *account.Account) string {
	node, of, atLeast := times.Waiting()
	share := page.PercentOf(of)
	if atLeast {
		share = "at least " + share
	}
	switch node {
	case timeIdle:
		return fmt.Sprintf("processors were idle for %s of their time: the cycles below are those of the rest", share)
	case timeQueued:
		return fmt.Sprintf("threads spent %s of their time in the run queue (other load): the cycles below explain only the rest", share)
	case timeBlocked:
		return fmt.Sprintf("no thread could run for %s of the time: find what they wait for; the cycles below explain only the rest", share)
	}
	return ""
}

// timesShown are the nodes of Account.Times that are written: the tree, and what else
// is known.
func timesShown(times *account.Account) []bool {
	m := times.Model()
	threads := math.IsNaN(times.Value(timeProcessors))
	shown := make([]bool, len(m.Nodes))
	for i := range m.Nodes {
		shown[i] = threads && m.Nodes[i].Section == "" || times.Nodes[i].Known()
	}
	return shown
}

// timesColumns are the nodes of Account.Times that have a column where each account is a
// row, most important first.
func timesColumns(times *account.Account) (nodes []int) {
	if times == nil {
		return nil
	}
	names := []string{timeRan, timeBlocked, timeQueued}
	if !math.IsNaN(times.Value(timeProcessors)) {
		names = []string{timeBusy, timeIdle}
	}
	for _, name := range names {
		if i, ok := times.Node(name); ok {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

func flagged(a *account.Account, name string) bool {
	i, ok := a.Node(name)
	return ok && a.Nodes[i].Flagged
}

// timesText says in one sentence what the threads or the processors did.
func timesText(times *account.Account) string {
	of, processors := times.Value(timeThreads), times.Value(timeProcessors)
	alone, late := times.Threads()
	s := sentence{times: times, figure: fixed}
	switch {
	case !times.Known():
		return "not known: what the threads did with their time" + whyUnknown(times)
	case !math.IsNaN(processors):
		s.text = "of " + fixed(processors) + " processors on the average "
		s.add(timeBusy, "", " running something")
		s.add(timeBusyKernel, " (", " in the kernel)")
		s.add(timeIdle, ", ", " idle")
		s.add(timeIdleDisks, " (", " with a thread waiting for a disk)")
		s.add(timeTaken, ", ", " taken by the hypervisor")
		return s.text
	case alone:
		s.figure = page.PercentOf
	case !math.IsNaN(of):
		s.text = "of " + fixed(of) + " threads on average "
	}
	s.add(timeRan, "", " running")
	s.add(timeKernel, " (", " in the kernel)")
	s.add(timeQueued, ", ", " in the run queue")
	s.add(timeBlocked, ", ", " blocked")
	s.add(timeDisks, " (", " by disks)")
	if late {
		s.text += fmt.Sprintf("; it existed for %s of the time", page.PercentOf(of))
	}
	if flagged(times, timeStolen) {
		s.text += fmt.Sprintf("; the hypervisor took %s of the machine's time", page.PercentOf(times.Value(timeStolen)/100))
	}
	if flagged(times, timeStopped) {
		s.text += fmt.Sprintf("; %s processors stood still for the cgroup's limit", fixed(times.Value(timeStopped)))
	}
	return s.text
}

// A sentence is made of the values of nodes.
type sentence struct {
	times  *account.Account
	figure func(float64) string
	text   string
}

// add adds a node's known value with what stands before and after it, and with its error if
// that matters.
func (s *sentence) add(node, before, after string) {
	i, ok := s.times.Node(node)
	if !ok || !s.times.Nodes[i].Known() {
		return
	}
	v := &s.times.Nodes[i]
	text := s.figure(v.Value)
	if v.ErrorMatters() {
		text = strings.TrimSuffix(text, " %") + " ± " + s.figure(v.Error)
	}
	s.text += before + text + after
}

// whyUnknown is why nothing is known of the threads, in brackets.
func whyUnknown(times *account.Account) string {
	if i, ok := times.Node(timeThreads); ok {
		return " (" + times.Why(i).Text + ")"
	}
	return ""
}

// fixed is a number of threads or processors, to a hundredth.
func fixed(v float64) string { return page.Rounded(v, 2) }
