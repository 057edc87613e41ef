// Package model holds the accounting methods and the processors, as data.
//
// It is the first step of the flow
//
//	model → plan → source → counts → account → report
//
// A [Model] is one method for one family of processors: parameters, inputs, a tree of
// nodes with their formulas, relations that must hold, and event sets for collection.
// Models are TOML files that people read and write. The embedded ones are under data/, a
// user's own come from a file or a folder. They are decoded strictly: an unknown key is an
// error with its line. A model may extend another and state only what differs.
//
// A [CPU] is one processor, or one core type of a hybrid processor, with its
// identifications. Its [EventTable] says which spellings mean the same event. A user's
// folder may add processors. The package does not know where counts come from.
//
// A [Catalogue] holds all of these and finds the ones that belong together:
//
//	cat, err := model.Embedded()
//	cpu, err := cat.CPU("GenuineIntel-6-55-4")    // or "skylakex", a MIDR, a PVR
//	m, err := cat.Model("", cpu.Name)              // the processor's default model
//	events, err := cat.Events(cpu)
//	e, ok := events.Lookup("cpu/event=0x9c,umask=0x1/")
//
// [Lint] and [LintFile] name everything that is wrong with a model, a file or a folder.
//
// The package promises: names of models, processors and nodes stay; their figures change
// with the sources that the models cite. What a Catalogue returns is immutable and safe
// for concurrent use.
package model

import (
	"cmp"

	"github.com/cyclestack/cyclestack/metric"
)

// A Model is one accounting method for one family of processors, as read from its file.
// What it extends is merged in. It is immutable.
type Model struct {
	Name    string   // "core2-cycles"; several files may hold one name for different processors
	Version string   // of the method, as its source numbers it
	Title   string   // one line
	About   string   // what the method says and what it cannot say, in our words
	Source  string   // where it comes from
	CPUs    []string // names of the processors it is for
	Unit    string   // unit of the tree's values: "cycles", "slots", "cycles/instruction", "tsc"

	// Of is the formula of the whole. With it, the formulas of the tree's nodes give
	// amounts, and a node's value is its amount divided by Of: a share of the whole. Nodes
	// with a Unit of their own are excepted. Without it, the formulas give the values
	// themselves.
	Of string

	// Mode is the only mode that the method's events are to be counted in: "u" for user mode,
	// "k" for the kernel; "" for both.
	Mode string

	Parameters []Parameter `key:"-"`
	Inputs     []Input     `key:"-"`
	Nodes      []Node      `key:"-"`
	Relations  []Relation  `key:"-"`
	EventSets  []EventSet  `key:"-"`
	Issues     []Issue     `key:"-"` // what several nodes show from different sides
	File       string      `key:"-"` // the file it was read from, for messages

	of  *metric.Expr // Of, parsed
	pos position
}

// A Parameter is a named number that formulas use and a user may replace (--param
// NAME=VALUE or --penalties FILE): a penalty, a width, a clock ratio.
type Parameter struct {
	Name    string             `json:"name"`
	Value   *float64           `json:"value,omitempty"` // nil: must be given by the user or the source
	Unit    string             `json:"unit,omitempty"`
	About   string             `json:"about,omitempty"`
	Source  string             `json:"source,omitempty"`
	Choices map[string]float64 `json:"choices,omitempty"` // named alternatives: --param L2_MISS_PENALTY=server
	Min     *float64           `json:"min,omitempty"`     // the least and the greatest value that mean something: see Check
	Max     *float64           `json:"max,omitempty"`
	File    string             `json:"-" key:"-"` // where it is written: the model's own file, or the one that it extends
	Line    int                `json:"-" key:"-"` // in File

	pos position
}

// An Input gives a name to counts that a formula cannot name by itself: the
// first of several events that was counted, or an event on one of the logical
// processors of a core. Names in formulas that are not inputs, parameters or
// nodes are events.
type Input struct {
	Name   string   `json:"name"`
	Events []string `json:"events"`        // in order of preference
	LP     *int     `json:"lp,omitempty"`  // logical processor of the core (0, 1, …); nil: the scope's own counts
	Any    bool     `json:"any,omitempty"` // with LP nil, in a core scope: any one of the logical processors' counts, not their sum
	About  string   `json:"about,omitempty"`
	File   string   `json:"-" key:"-"`
	Line   int      `json:"-" key:"-"`

	pos position
}

// Advice is what to do about a node under a condition: a formula over nodes, inputs and
// events. One of When and Unless is given.
type Advice struct {
	Try    string `json:"try"`
	When   string `json:"when"`             // it holds where this is met; what is not known does not meet it
	Unless string `json:"unless,omitempty"` // it holds where this is not met, or not known

	when *metric.Expr
}

// Expr returns the parsed condition, of When or Unless.
func (a *Advice) Expr() (*metric.Expr, error) { return parsed(a.when, a.condition()) }

// condition is the formula of When or Unless.
func (a *Advice) condition() string { return cmp.Or(a.When, a.Unless) }

// A Node is one line of the account.
type Node struct {
	Path    string `json:"path" key:"-"`      // names from the root, joined by dots; computed
	Name    string `json:"name"`              // the vendor's name: "Frontend_Bound", "LSU_STALL_CPI"
	Level   int    `json:"level" key:"-"`     // of the tree: 0 for a root that is the whole, 1 for its parts, …; computed
	Parent  string `json:"-"`                 // name of the parent; "" for a root
	Section string `json:"section,omitempty"` // heading of roots outside the main tree; "" is the main tree
	Formula string `json:"formula,omitempty"` // empty with Rest
	Rest    bool   `json:"rest,omitempty"`    // the parent minus the other children: what they leave unexplained
	Unit    string `json:"unit,omitempty"`    // "" is the model's Unit (a node of the tree); anything else is a plain number
	Domain  string `json:"domain,omitempty"`  // "thread" (default), "core", "package": the scope that its counts are about

	// Threshold is a formula over node names that says when the node is worth
	// attention; an empty one never flags.
	Threshold  string   `json:"threshold,omitempty"`
	Places     bool     `json:"places,omitempty"`     // the threshold is for places in the code, and not for a run
	Standalone bool     `json:"standalone,omitempty"` // the threshold stands by itself: it may flag the node under a parent that is not flagged
	Min        *float64 `json:"min,omitempty"`        // the possible range of the value; outside it the value contradicts itself
	Max        *float64 `json:"max,omitempty"`
	Negative   string   `json:"negative,omitempty"` // why a negative value is possible here, in our words; "" says it is not
	Overlap    bool     `json:"overlap,omitempty"`  // the children overlap: they need not sum to the node
	Optional   bool     `json:"optional,omitempty"` // its absence is not worth a line (informational nodes)

	Title  string   `json:"title,omitempty"`  // a few words for the display
	About  string   `json:"about,omitempty"`  // what it means
	Causes []string `json:"causes,omitempty"` // what usually causes it
	Try    []string `json:"try,omitempty"`    // what to do about it
	Advice []Advice `json:"advice,omitempty"` // what to do about it if the counts show a particular cause
	Source string   `json:"source,omitempty"` // where the formula and figures come from
	Sample []string `json:"sample,omitempty"` // events to sample for finding the places in the code
	File   string   `json:"-" key:"-"`
	Line   int      `json:"-" key:"-"`

	Expected *Expectation `json:"-" key:"-"` // of a well-tuned program; nil where nobody has said

	Children []int `json:"-" key:"-"` // indexes into Model.Nodes; computed
	Above    int   `json:"-" key:"-"` // index of the parent, -1 for a root; computed

	expr, threshold *metric.Expr // Formula and Threshold, parsed
	uses            []string     // the names in Formula
	pos             position
}

// A Relation is a statement about counts. An identity holds in every correct recording; of
// others, it is a finding about the program whether they hold.
type Relation struct {
	Name      string   `json:"name"`
	Left      string   `json:"left"`                // formula
	Op        string   `json:"op"`                  // "=" (within Tolerance, the default), "<=" or ">=" (violated by more than Tolerance)
	Right     string   `json:"right"`               // formula
	Tolerance float64  `json:"tolerance"`           // relative, 0.02 for 2 %
	Identity  bool     `json:"identity"`            // true: if it does not hold, the recording contradicts itself; false: a finding about the program
	When      string   `json:"when,omitempty"`      // formula; the relation is not checked where it is 0
	Times     bool     `json:"times,omitempty"`     // only if the times of its counts are known, and so that they are of one processor or as many
	Plausible bool     `json:"plausible,omitempty"` // not an identity, but nearly every recording keeps it: if it fails, a count is suspect
	Slack     string   `json:"slack,omitempty"`     // why the tolerance is what it is
	Holds     string   `json:"holds,omitempty"`     // what it means if it holds
	Fails     string   `json:"fails,omitempty"`     // what it means if it does not
	Source    string   `json:"source,omitempty"`
	CPUs      []string `json:"-"`              // names of the processors it is for, as path.Match patterns; empty: all that have its events
	Each      []string `json:"each,omitempty"` // events: it is a relation for each of them, which its formulas call EACH
	File      string   `json:"-" key:"-"`
	Line      int      `json:"-" key:"-"`

	pos               position
	left, right, when *metric.Expr // parsed
}

// An EventSet is a recommended set of events to collect together.
type EventSet struct {
	Name   string     `json:"name"`
	About  string     `json:"about,omitempty"`
	Runs   int        `json:"runs,omitempty"` // how many runs its counters need, where the source says
	Events []SetEvent `json:"events"`
	// Command is how the source collects the set, word by word, and Note is what to know
	// of it.
	Command, Note string `json:"-"`
	File          string `json:"-" key:"-"`
	Line          int    `json:"-" key:"-"`

	pos position
}

// A SetEvent is an event of a set with its sample-after value, the sampling period.
type SetEvent struct {
	Event       string `json:"event"`
	SampleAfter uint64 `json:"sample_after,omitempty" key:"sample-after"`
}

// A CPU is one processor, or one core type of a hybrid processor.
type CPU struct {
	Name     string   `json:"name"`                                // "core2", "skylakex", "power7", "alderlake:core"
	Title    string   `json:"title"`                               // "Intel Core 2 (Conroe, Merom, Penryn)"
	Vendor   string   `json:"vendor"`                              // "intel", "amd", "arm", "ibm", "riscv"
	IDs      []string `json:"ids,omitempty"`                       // identification patterns, matched whole: "GenuineIntel-6-55-[01234]"
	Aliases  []string `json:"aliases,omitempty"`                   // other names: "skx"
	CoreType string   `key:"core-type" json:"core_type,omitempty"` // "core" or "atom" on hybrid processors
	PMUs     []string `json:"pmus,omitempty"`                      // sysfs names of its core PMU, as path.Match patterns: "cpu", "cpu_core", "armv8_pmuv3_*"
	Width    int      `json:"width,omitempty"`                     // slots per cycle; 0 where top-down is not defined
	Threads  int      `json:"threads,omitempty"`                   // logical processors per core at most
	Layout   string   `json:"-"`                                   // format of the event code: "intel", "amd", "arm", "power", "riscv"
	Events   string   `json:"-"`                                   // key of its rows in the event tables; "" where it has none of its own

	// Caches are those of the processor with the largest third level of its kind:
	// SIZE,WAYS,LINE of the first level for instructions, that for data, the second and
	// the third, with slashes between: "32K,8,64/48K,12,64/2M,16,64/105M,15,64". "" where
	// they are not known.
	Caches string `json:"caches,omitempty"`

	Model string `json:"model,omitempty"` // name of its default model; "" is the first there is

	// Params are facts of the processor: the values of the models' parameters of the same
	// name that have none of their own.
	Params map[string]float64 `json:"params,omitempty"`

	// Counters are the general counters of a logical processor, "0-3", and Fixed is the
	// number of fixed ones: for a processor of the user's own. "" leaves it to package plan.
	Counters string `json:"-"`
	Fixed    int    `json:"-"`

	folder *ownFolder // that of a user's own processor; nil for the library's
	at     place
}

// An Event is something a PMU can count.
type Event struct {
	Name        string
	Config      uint64   // perf_event_attr.config for the core PMU
	Config1     uint64   // extra register: offcore response, load latency, front end
	PMU         string   // "" is the core PMU; "msr", "software", …
	Aliases     []string // other spellings, the kernel's generic names among them
	NoCode      bool     // known by name only: Config and Config1 say nothing
	Counters    string   // general counters it can use, "0,1"; "fixed1"; "" for any
	CountersSMT string   // the same with all logical processors of the core in use; "" is as Counters
	Unit        string   // what one count is: "cycles", "uops", "instructions", "" for plain events
	SampleAfter uint64
	Flags       string // blank-separated: "pebs", "alone", "any", and the kind of Config1
}
