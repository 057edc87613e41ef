package counts

import "fmt"

// A Note is a remark on counts or on what was computed from them: what is missing, what
// was assumed, what a reader should know.
type Note struct {
	Kind string // a stable word for what it is about: NoteFiltered and others
	Text string // one plain sentence, which names no flag and no command
	Fix  Fix    // what would change it; the zero Fix if nothing is known to
}

// The kinds of note that programs tell from others.
const (
	noteGeneral    = "note"        // what only people read
	NoteEndedEarly = "ended-early" // nothing was counted: what was to be counted ended before counting began
	NoteFiltered   = "filtered"    // how much of a recording the filters left
	NoteOtherBuild = "other-build" // a program has changed since it was recorded
	NoteIncomplete = "incomplete"  // a recording is damaged or ends early: the rest was not counted
)

// Notef returns a general note of a formatted text.
func Notef(format string, args ...any) Note {
	return Note{Kind: noteGeneral, Text: fmt.Sprintf(format, args...)}
}

// Texts returns the texts of notes.
func Texts(notes []Note) []string {
	var list []string
	for _, n := range notes {
		list = append(list, n.Text)
	}
	return list
}

// With returns the note with a fix.
func (n Note) With(f Fix) Note {
	n.Fix = f
	return n
}

// String returns the text. It lacks the fix, which only the program that a person uses
// can put in words.
func (n Note) String() string { return n.Text }

// A Fix is what a person can do about a [Note]: an action and its arguments. Its zero
// value is nothing.
type Fix struct {
	Action Action
	Name   string // of the parameter, for SetParameter; of the processor, for ListEvents
	Number int    // of the runs, for CountSeparately; of the counters, for PlanSMT; of rows and levels
}

// Action is what a [Fix] consists of.
type Action uint8

// The actions.
const (
	SetSMT          Action = iota + 1 // say whether SMT was on
	AssumeSMT                         // say that SMT was on: it is taken to have been off
	SetParameter                      // give the parameter Name a value
	CountProcessors                   // count logical processors, all or some, instead of tasks
	CountWholeCores                   // count all logical processors of each core, or say that the others were idle
	CountSeparately                   // count each group of events in a run of its own: Number runs
	Calibrate                         // measure this machine's penalties
	NameCaches                        // say what caches to simulate
	SimulateAll                       // have the simulator simulate caches and branches
	ReportBy                          // report by the method Name; "" is that of the logical processors of cores
	RecordCallers                     // record call chains by frame pointers or by the processor's branch record
	PlanWatchdog                      // plan for a machine whose NMI watchdog counts
	PlanSMT                           // plan for SMT, or for the Number of counters that it leaves
	PlanErrata                        // plan around the kernel's workaround for errata
	PlanAllCounters                   // plan without regard to errata
	NameProcessor                     // say which processor the counts are of
	NameWork                          // say what work each run did

	ShowMore     // show more of the document, or with a Name less of such a list
	ShowAll      // show everything
	ShowNotes    // show the notes
	ShowRows     // show Number rows; 0 is any number
	ShowLines    // show Number shared cache lines, or one in detail
	ShowColumns  // show fewer columns, or more room for them
	ShowLevel    // show the tree down to level Number
	ShowData     // write the document for programs
	ShowFormula  // show the whole formula
	ShowFindings // show what is as usual
	ListEvents   // list the events that the methods of the processor Name need
	ListTrees    // list the trees for a processor
	Audit        // say what relations between the counts tell
	Compare      // say what of a difference is chance
)
