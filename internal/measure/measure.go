// Package measure counts programs, processes and machines while they run, and makes
// accounts of the counts. It is the one path for everything that measures: the command
// line and the library for Go programs are its clients.
//
// [New] looks at the machine, chooses what counts, and plans. [Measurement.Start] starts
// the counters and the program. [Run.Count] takes the counts until the end, and
// [Run.Finish] writes the accounts that remain:
//
//	options.Writer = func(o report.Options) (report.Writer, error) { return report.New("json", os.Stdout, o) }
//	m, err := measure.New(measure.ThisKernel(), options)
//	…
//	run, err := m.Start(ctx)
//	…
//	defer run.Close()
//	err = errors.Join(run.Count(), run.Finish(ctx))
package measure

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/hostinfo"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// Options say what to measure, and how.
type Options struct {
	Choice resolve.Choice // processor, method, nodes and parameters
	All    bool           // the nodes outside the main tree as well
	Set    string         // the method's event set to count instead of nodes; "" for none
	// UsualLevel is the deepest level if the choice has neither a level nor nodes; 0 is as
	// deep as the counts are reliable.
	UsualLevel int

	Target perfevent.Target
	Label  string // names the target
	Source Source // what counts
	Mode   Mode   // which privilege levels are counted
	By     counts.By
	Period Period
	Runs   Runs
	// NoInherit leaves out the processes and threads that the target starts.
	NoInherit bool

	// Cores divides the time of each core among its logical processors.
	Cores bool
	// OneCoreType counts the first type of the machine's cores only.
	OneCoreType bool
	// Generic are generic events that are counted as well, unless the plan has them.
	Generic []string
	// Events are the user's own, in perf's spelling: instead of a plan's, or next to them if the
	// choice has a method, nodes or a level. "" is none.
	Events string
	// NoTimes leaves out what threads or processors do with their time.
	NoTimes bool

	Client Client
}

// A Source is what counts.
type Source string

// The sources. Auto takes the best that works in one run of the program.
const (
	Auto      Source = "auto"
	PMU       Source = "pmu"
	Simulated Source = "simulated"
	OS        Source = "os"
)

// A Mode says which privilege levels are counted.
type Mode string

// The modes. SplitModes makes two accounts.
const (
	AnyMode    Mode = ""
	UserMode   Mode = "user"
	KernelMode Mode = "kernel"
	SplitModes Mode = "split"
)

// A Period says when to count.
type Period struct {
	Interval time.Duration // of one account each; 0 is one account of the whole run
	Timeout  time.Duration // ends the counting; 0 for none
	Delay    time.Duration // before counting begins
	// Batch is for how long intervals may be kept before their accounts are made.
	Batch time.Duration
}

// Runs say how often to run the program.
type Runs struct {
	Repeat   int  // so many times; 0 is once
	Separate bool // one group of events in each run, instead of multiplexing
	Descend  bool // again and again, following the bottleneck down: see [Measurement.Descend]
}

// several reports whether the program runs more than once.
func (r Runs) several() bool { return r.Repeat > 1 || r.Separate || r.Descend }

// A Client takes the accounts. All functions but Writer may be nil.
type Client struct {
	// Writer returns a writer of a document. The options say what the document shows.
	Writer func(report.Options) (report.Writer, error)
	// OneDocument says that there is room for one document only: that of a simulation, if
	// there is one.
	OneDocument bool
	// Again is the end of a command line that measures the same once more.
	Again []string
	// From says whether what is measured can be measured again. The simulator adds itself.
	From account.Provenance
	// Progress is called before each run of several, counted from 1. Of is 0 if the number
	// of runs is not known; nodes are then those that the run counts.
	Progress func(run, of int, nodes string)
	// Say puts a reason into words for people; nil is its text.
	Say func(Reason) string
	// Simulator runs the program again if that is asked for.
	Simulator Simulator
	// Sampler takes samples of the program where the processor's counters cannot be used.
	Sampler Sampler
}

// head says in a document's header what the client knows of measuring again.
func (c *Client) head(h *report.Header) {
	h.Again = c.Again
	h.From.Live, h.From.Started = c.From.Live, c.From.Started
}

// A Measurement is what is to be counted on this machine. It belongs to one goroutine.
type Measurement struct {
	options  Options
	kernel   Kernel
	machine  *Machine
	resolver func() (*resolve.Resolver, error) // loads the catalogue, once
	smt      string                            // whether cores are shared, "on" or "off": the choice, else as the machine is
	stdin    *os.File                          // the program reads it instead of the target's; nil for that

	parts     []*part
	all       bool             // the nodes outside the main tree are shown
	reasons   []Reason         // no better source was used
	simulator Simulator        // nil if nothing is simulated
	simulated bool             // the simulator has simulated
	state     *os.ProcessState // how the program ended
	times     *timeAccount
	pid       atomic.Int64 // of the program
}

// New finds out what counts, and plans. What is wrong with the options has the kind
// fault.Usage; a machine that cannot do it has the kind fault.Machine.
func New(k Kernel, o Options) (*Measurement, error) {
	switch {
	case o.Cores:
		o.Choice.Model = resolve.SMTModel
	case o.Choice.Model == resolve.SimulatedModel && o.Source == Auto:
		o.Source = Simulated
	}
	m := &Measurement{options: o, kernel: k, all: o.All}
	read := perfevent.ReadSystem
	if m.options.OSAlone() {
		read = perfevent.ReadProcessors
	}
	var err error
	if m.machine, err = k.machine(read, k.Limit); err != nil {
		return nil, err
	}
	choice := o.Choice
	if choice.SMT == "" {
		choice.SMT = "off"
		if m.machine.Probe.SMT {
			choice.SMT = "on"
		}
	}
	m.smt = choice.SMT
	m.resolver = sync.OnceValues(func() (*resolve.Resolver, error) { return resolve.New(choice) })
	return m, nil
}

// Plan chooses the best source that works, and plans what to count. Options that make no
// sense are refused before a program runs for nothing.
func (m *Measurement) Plan() error {
	o := &m.options
	method := o.Choice.Model
	asked := method != "" && method != resolve.OSModel && method != resolve.SimulatedModel
	switch {
	case o.Cores:
		return m.coreParts()
	case m.ownAlone():
		return m.ownPart()
	case o.Source == OS && asked:
		return &fault.OptionError{Option: "source", Value: string(OS), Err: fmt.Errorf("its method is %s", resolve.OSModel)}
	case o.Source == Simulated && (asked || method == resolve.OSModel):
		return &fault.OptionError{Option: "source", Value: string(Simulated), Err: fmt.Errorf("its method is %s", resolve.SimulatedModel)}
	case m.options.OSAlone():
		m.osParts()
		return errors.Join(m.besides(), m.check())
	case o.Source == Simulated:
		return m.simulate()
	}
	why := m.machine.NoPMU()
	switch {
	case why == "":
		return cmp.Or(m.pmuParts(), m.besides())
	case o.Source == PMU || asked || o.Runs.Descend || o.Runs.Separate || o.Mode != AnyMode:
		return &NoPMUError{why}
	}
	m.reasons = []Reason{{NoPMU, why}}
	m.osParts()
	return errors.Join(m.besides(), m.check())
}

// Machine returns the machine that is measured.
func (m *Measurement) Machine() *Machine { return m.machine }

// Processors returns the names of the processors of the parts that have accounts of their
// own: one for each type of core and mode.
func (m *Measurement) Processors() []string {
	var names []string
	for _, p := range m.parts {
		names = append(names, p.cpu)
	}
	return names
}

// Plans returns what is counted together, by the names of processors.
// There is none for what the operating system counts.
func (m *Measurement) Plans() map[string]*plan.Plan {
	plans := map[string]*plan.Plan{}
	for _, p := range m.parts {
		if p.plan != nil {
			plans[p.cpu] = p.plan
		}
	}
	return plans
}

// Simulates reports whether the program is going to be simulated.
func (m *Measurement) Simulates() bool { return m.simulator != nil }

// OSAlone reports whether nothing but the operating system's counters is asked for.
func (o *Options) OSAlone() bool {
	return o.Source == OS || o.Choice.Model == resolve.OSModel && o.Source != Simulated
}

// simulate has the program simulated. The operating system counts it in any case.
func (m *Measurement) simulate() error {
	s := m.options.Client.Simulator
	if s == nil {
		m.osParts()
		return m.check()
	}
	if err := s.Prepare(m); err != nil {
		return err
	}
	m.simulator = s
	m.osParts()
	return s.Resolve()
}

// check looks at options that are about the method before a program runs for nothing.
func (m *Measurement) check() error {
	c := &m.options.Choice
	if c.Nodes == "" && c.Level == 0 && len(c.Params) == 0 && c.Penalties == "" && len(c.ModelFiles) == 0 && c.CPU == "" {
		return nil
	}
	return m.ready()
}

// ready makes the methods of all parts ready.
func (m *Measurement) ready() error {
	for _, p := range m.parts {
		if _, err := p.method(); err != nil {
			return err
		}
	}
	if m.times != nil {
		_, err := m.times.method()
		return err
	}
	return nil
}

// rows reports whether there are several accounts, one for each scope.
func (m *Measurement) rows() bool { return m.options.By != 0 && !m.options.Cores }

// cpus reports whether CPUs are counted, whatever runs on them.
func (m *Measurement) cpus() bool {
	t := &m.options.Target
	return (t.All || len(t.CPUs) > 0) && len(t.Cgroups) == 0
}

// program reports whether a program is counted that the measurement starts.
func (m *Measurement) program() bool {
	t := &m.options.Target
	return !t.All && len(t.CPUs) == 0 && len(t.PIDs) == 0 && len(t.TIDs) == 0 && len(t.Cgroups) == 0
}

// id returns the processor as the user names it, else as the machine identifies itself;
// "" if it does not.
func (m *Measurement) id() string {
	if m.options.Choice.CPU != "" {
		return m.options.Choice.CPU
	}
	id, err := model.HostID(m.machine.Root)
	if err != nil {
		return ""
	}
	return id
}

// Features returns the features of this machine's processor, flags as /proc/cpuinfo has
// them; nil if the user named another one.
func (m *Measurement) Features() []string {
	if m.options.Choice.CPU != "" {
		return nil
	}
	return hostinfo.Features(m.machine.Root)
}

// A Reason says why a better source was not used.
type Reason struct {
	Kind ReasonKind
	Text string
}

// A ReasonKind is what a reason is about.
type ReasonKind string

// The kinds of reasons. Only a simulator has Unfit.
const (
	NoPMU   ReasonKind = "no PMU"
	Refused ReasonKind = "refused"
	Unfit   ReasonKind = "unfit" // what is asked for cannot be simulated
)

// why puts the reasons into words.
func (m *Measurement) why() string {
	var list []string
	for _, r := range m.reasons {
		text := r.Text
		if m.options.Client.Say != nil {
			text = m.options.Client.Say(r)
		}
		list = append(list, text)
	}
	return strings.Join(slices.DeleteFunc(list, func(text string) bool { return text == "" }), "; ")
}
