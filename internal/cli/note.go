package cli

import (
	"fmt"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/report"
)

// fixes spell what a person can do about a note: its text is the first argument, the name
// of the fix the second, its number the third.
var fixes = map[counts.Action]string{
	counts.AssumeSMT:       "%[1]s; --smt on otherwise",
	counts.SetSMT:          "%[1]s: --smt on|off",
	counts.SetParameter:    "%[1]s: --param %[2]s=…",
	counts.CountProcessors: "%[1]s: count processors (-a or -C)",
	counts.CountWholeCores: "%[1]s: if it was idle, --smt off; -a --per-core counts both",
	counts.CountSeparately: "%[1]s, or --no-multiplex (%[3]d runs)",
	counts.Calibrate:       "%[1]s: cyclestack calibrate measures this machine's",
	counts.NameCaches:      "%[1]s (--caches names others)",
	counts.SimulateAll:     "%[1]s, as they are with --cache-sim=yes --branch-sim=yes; --by function says where the instructions are",
	counts.ReportBy:        "%[1]s: report --model %[2]s prints more",
	counts.RecordCallers:   "%[1]s (perf record --call-graph fp or lbr has them)",
	counts.PlanWatchdog:    "%[1]s; --watchdog plans for that",
	counts.PlanSMT:         "%[1]s; --smt on plans for that, or --counters %[3]d where Linux has switched it off",
	counts.PlanErrata:      "%[1]s; --errata plans for that",
	counts.NameProcessor:   "%[1]s: --cpu NAME adds the methods of that processor",
	counts.PlanAllCounters: "%[1]s; --errata=false plans for all",
	counts.NameWork:        "%[1]s; --per says what a run did",
	counts.ShowMore:        "%[1]s (-v)",
	counts.ShowAll:         "%[1]s (--all)",
	counts.ShowNotes:       "%[1]s (--notes)",
	counts.ShowRows:        "%[1]s (--top %[3]d shows all)",
	counts.ShowLines:       "%[1]s (--top %[3]d shows all, --line ADDRESS one in detail)",
	counts.ShowColumns:     "%[1]s: --width, --nodes, or --format csv",
	counts.ShowLevel:       "%[1]s (--level %[3]d shows them)",
	counts.ShowData:        "%[1]s (--format json has them)",
	counts.ShowFormula:     "%[1]s (--formula prints the whole expression, and everything else)",
	counts.ShowFindings:    "%[1]scyclestack doctor --all prints what is as usual, and other remedies",
	counts.ListEvents:      "%[1]s (cyclestack plan --cpu %[2]s lists what it needs)",
	counts.ListTrees:       "%[1]scyclestack models --cpu NAME prints the trees for a processor",
	counts.Audit:           "%[1]scyclestack audit says what the relations between the counts tell",
	counts.Compare:         "%[1]scyclestack diff says what of a difference is chance",
}

// spell puts notes and steps into flags and commands.
var spell = report.Options{Note: noteText, Step: spellStep}

// lessOf spells what prints less of a list.
var lessOf = map[string]string{
	"methods": "--level 1 and --model NAME print less, explain NODE one node",
	"events":  "cyclestack events PATTERN prints some of them, such as '*L2*'",
	"plan":    "--level N or --nodes PATTERN plans for fewer nodes; --perf prints the commands alone",
	"code":    "--source-only, --asm-only, or SYMBOL:START-END; --full prints code without samples as well",
}

// noteText is the text of a note, with the flags and commands that do what would change it.
func noteText(n counts.Note) string {
	f := n.Fix
	switch {
	case f.Action == counts.ShowRows && f.Number == 0:
		return n.Text + ": --top N or --format csv prints them one by one"
	case f.Action == counts.ReportBy && f.Name == "":
		return n.Text + ": cyclestack smt prints it"
	case f.Action == counts.CountSeparately && f.Number == 0:
		return n.Text + " with --no-multiplex"
	case f.Action == counts.NameProcessor && f.Number > 0: // one is taken
		return n.Text + " (--cpu NAME names another)"
	case f.Action == counts.ShowMore && f.Name != "":
		return n.Text + lessOf[f.Name]
	case fixes[f.Action] == "":
		return n.Text
	}
	return fmt.Sprintf(fixes[f.Action], n.Text, f.Name, f.Number)
}
