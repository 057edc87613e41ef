package cli

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
)

// noteText is the text of a note, with the flags and commands that do what would change it.
func noteText(n counts.Note) string {
	f := n.Fix
	switch f.Action {
	case counts.AssumeSMT:
		return n.Text + "; --smt on otherwise"
	case counts.SetSMT:
		return n.Text + ": --smt on|off"
	case counts.SetParameter:
		return fmt.Sprintf("%s: --param %s=…", n.Text, f.Name)
	case counts.CountProcessors:
		return n.Text + ": count processors (-a or -C)"
	case counts.CountWholeCores:
		return n.Text + ": if it was idle, --smt off; -a --per-core counts both"
	case counts.CountSeparately:
		return fmt.Sprintf("%s, or --no-multiplex (%d runs)", n.Text, f.Number)
	case counts.Calibrate:
		return n.Text + ": cyclestack calibrate measures this machine's"
	case counts.NameCaches:
		return n.Text + " (--caches names others)"
	case counts.SimulateAll:
		return n.Text + ", as they are with --cache-sim=yes --branch-sim=yes; --by function says where the instructions are"
	case counts.ReportCores:
		return n.Text + ": cyclestack smt prints it"
	case counts.RecordCallers:
		return n.Text + " (perf record --call-graph fp or lbr has them)"
	case counts.PlanWatchdog:
		return n.Text + "; --watchdog plans for that"
	case counts.PlanSMT:
		return fmt.Sprintf("%s; --smt on plans for that, or --counters %d where Linux has switched it off", n.Text, f.Number)
	case counts.PlanErrata:
		return n.Text + "; --errata plans for that"
	case counts.NameProcessor:
		return n.Text + ": --cpu NAME adds the methods of that processor"
	case counts.PlanAllCounters:
		return n.Text + "; --errata=false plans for all"
	}
	return n.Text
}

// noteTexts are the texts of notes.
func noteTexts(notes []counts.Note) []string {
	var list []string
	for _, n := range notes {
		list = append(list, noteText(n))
	}
	return list
}
