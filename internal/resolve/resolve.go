// Package resolve finds the method for counts: it leads from the user's choices and a table of
// counts to a processor, a method, its events and parameters. Results are immutable; trying
// several methods changes nothing.
package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/model"
)

// Names in the catalogue that have a meaning for programs.
const (
	GenericCPU     = "generic"          // any processor
	OSModel        = "os-time"          // the method for the operating system's counters
	SimulatedModel = "simulated-cycles" // the method for what simulators count
	SMTModel       = "smt-occupancy"    // the method for the logical processors of cores

	InstructionsModel = "instruction-samples" // the method for instructions that the hardware sampled
	BranchesModel     = "taken-branches"      // the method for branch stacks
	WallModel         = "wall-time"           // the method for the time of threads, running and waiting
)

// A Choice is what the user chose. The zero Choice leaves everything to the
// recording or the machine.
type Choice struct {
	Here       string         // this machine's processor, for recordings that do not name theirs and fit it; "" for none
	CPU        string         // processor, by identification or name
	Model      string         // method, by name
	ModelFiles []string       // further models
	Params     []Param        // parameters of the method
	Penalties  string         // file of measured parameters; "" and PenaltiesAuto are the stored ones, PenaltiesNone is none
	SMT        string         // "on", "off" or ""
	Workload   model.Workload // judges the values
	Level      int            // deepest level of nodes; 0 is all
	Nodes      string         // pattern of nodes
}

// A Param is a parameter's value, as the user wrote it.
type Param struct{ Name, Value string }

// sets reports whether the user sets a parameter.
func (c *Choice) sets(name string) bool {
	return slices.ContainsFunc(c.Params, func(p Param) bool { return p.Name == name })
}

// Catalogue loads the embedded models and the user's own.
func (c *Choice) Catalogue() (*model.Catalogue, error) {
	cat, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	if len(c.ModelFiles) > 0 {
		if err := cat.Add(c.ModelFiles...); err != nil {
			return nil, fault.As(fault.Input, err)
		}
	}
	return cat, nil
}

// A Resolver resolves a choice. It is immutable, and safe for concurrent use as
// far as its catalogue is.
type Resolver struct {
	Choice    Choice
	Catalogue *model.Catalogue
	named     Processor // that of the choice; zero if it names none
	generic   sync.Map  // methods for any processor by name
}

// New returns a resolver for a choice with the catalogue that it asks for.
func New(c Choice) (*Resolver, error) {
	cat, err := c.Catalogue()
	if err != nil {
		return nil, err
	}
	return With(cat, c)
}

// With returns a resolver for a choice with a catalogue that is loaded already.
func With(cat *model.Catalogue, c Choice) (*Resolver, error) {
	r := &Resolver{Choice: c, Catalogue: cat}
	if c.CPU == "" {
		return r, nil
	}
	cpu, err := cat.CPU(c.CPU)
	if err != nil {
		return nil, &fault.OptionError{Option: "cpu", Err: err}
	}
	r.named = Processor{CPU: cpu, ID: c.CPU}
	return r, nil
}

// Named returns the processor that the user named; it is zero if there is none.
func (r *Resolver) Named() Processor { return r.named }

// A Processor is a processor of the catalogue, and how it was found.
type Processor struct {
	CPU  *model.CPU // nil for a processor that is not known yet
	ID   string     // its identification: the source's, else the user's; "" if neither has one
	File string     // the file that names it; "" if the user did
	// Unknown says why nothing is known of the processor, so that only what holds
	// everywhere is checked; nil otherwise.
	Unknown error
	Here    bool        // it is this machine's, as the recording does not say
	Note    counts.Note // what is odd about the choice; zero for nothing
}

// A Selection is a method before its formulas are compiled.
type Selection struct {
	Processor
	Model    *model.Model
	Events   *model.EventTable
	Params   map[string]float64 // given by the user or measured
	Measured *account.Measured  // which of Params were measured, and where; nil if none were
	Resolver *Resolver          // that found the selection
}

// A Method is a resolved method, ready to make accounts.
type Method struct {
	Selection
	Account *account.Method
	Audits  bool // Request.Audits
	// Also are further methods for counts that none before uses.
	Also []*Method
}

// Given returns the parameters that the user set or took from a file of the user's
// own. Stored parameters are found again without being named.
func (s *Selection) Given() map[string]float64 {
	if s.Measured == nil || !s.Measured.Stored {
		return s.Params
	}
	given := maps.Clone(s.Params)
	maps.DeleteFunc(given, func(name string, _ float64) bool { _, ok := s.Measured.Params[name]; return ok })
	return given
}

// Compile makes a selection ready. Defaults are values of parameters that are
// neither given nor measured; they may be nil.
func (s *Selection) Compile(defaults map[string]float64) (*Method, error) {
	params := s.Params
	if len(defaults) > 0 {
		params = maps.Clone(defaults)
		maps.Copy(params, s.Params)
	}
	c := &s.Resolver.Choice
	m, err := account.Compile(s.Model, s.CPU, s.Events, account.Options{Params: params, Workload: c.Workload, Level: c.Level})
	if err != nil {
		return nil, fault.As(fault.Usage, err)
	}
	return &Method{Selection: *s, Account: m}, nil
}

// Evaluate returns the account of a place in a table.
func (m *Method) Evaluate(t *counts.Table, p account.Place) *account.Account {
	return m.Account.Bind(t.Layout).Evaluate(t, p, nil)
}

// Says reports whether an account says anything that was asked for.
func (m *Method) Says(a *account.Account) bool {
	return a.Known() || m.Audits && checksMade(a) > 0
}

// Derived returns the method for counts that are derived of samples: which the hardware
// describes, of their branch stacks, of switches between threads; "" for other tables.
func Derived(t *counts.Table) string {
	for _, c := range t.Columns {
		switch c.Event {
		case "op.instructions":
			return InstructionsModel
		case "taken.branches":
			return BranchesModel
		case "wall.time":
			return WallModel
		}
	}
	return ""
}

// neutral reports whether a method is about no processor in particular, so that it
// fits what was recorded on any.
func neutral(method string) bool {
	return method == InstructionsModel || method == BranchesModel || method == WallModel || method == SimulatedModel || method == OSModel || method == GenericCPU
}

// Select chooses a method for a processor: the one that is named here, else the
// user's, else the processor's first.
func (r *Resolver) Select(p Processor, name string) (*Selection, error) {
	s := &Selection{Processor: p, Resolver: r}
	cpu := p.CPU.Name
	if name == "" {
		name = r.Choice.Model
	}
	if neutral(name) {
		cpu = GenericCPU
	}
	var err error
	if s.Model, err = r.Catalogue.Model(name, cpu); err != nil {
		return nil, fault.As(fault.Usage, err)
	}
	if s.Events, err = r.Catalogue.Events(p.CPU); err != nil {
		return nil, err
	}
	s.Params, s.Measured, err = r.Parameters(p, s.Model)
	return s, err
}

// Method is Select for a method that is compiled at once.
func (r *Resolver) Method(p Processor, name string) (*Method, error) {
	s, err := r.Select(p, name)
	if err != nil {
		return nil, err
	}
	return s.Compile(nil)
}

// WithLoops returns the method with nodes for what limits hot loops in the core; nil if
// there are none for it.
func (m *Method) WithLoops() (*Method, error) {
	with, err := m.Resolver.Catalogue.WithLoops(m.Model, m.CPU)
	if with == nil || err != nil {
		return nil, err
	}
	s := m.Selection
	s.Model = with
	out, err := s.Compile(nil)
	if err == nil {
		out.Audits, out.Also = m.Audits, m.Also
	}
	return out, err
}

// holding returns the method, with the nodes for hot loops if a node is one of these.
func (m *Method) holding(node string) *Method {
	if node == "" || has(m.Model, node) {
		return m
	}
	if with, err := m.WithLoops(); with != nil && err == nil && has(with.Model, node) {
		return with
	}
	return m
}

// Generic returns a method for any processor. It serves for reports that have no
// method of their own.
func (r *Resolver) Generic(name string) (*Method, error) {
	if known, ok := r.generic.Load(name); ok {
		m := *known.(*Method)
		return &m, nil
	}
	cpu, err := r.Catalogue.CPU(GenericCPU)
	if err != nil {
		return nil, err
	}
	m, err := r.Method(Processor{CPU: cpu}, name)
	if err == nil {
		own := *m
		r.generic.Store(name, &own)
	}
	return m, err
}

// ForNode chooses a method for a node without a recording: the processor's first
// method that has the node, else one for any processor.
func (r *Resolver) ForNode(node string) (*Method, error) {
	p := r.named
	if p.CPU == nil {
		return nil, &UnknownCPUError{Node: node}
	}
	if r.Choice.Model != "" {
		m, err := r.Method(p, "")
		if err != nil {
			return nil, err
		}
		return m.holding(node), nil
	}
	near := ""
	for _, info := range r.Catalogue.Models(p.CPU.Name) {
		m, err := r.Catalogue.Model(info.Name, p.CPU.Name)
		if err != nil {
			return nil, err
		}
		if has(m, node) {
			return r.Method(p, info.Name)
		}
		if near == "" {
			near = meant(m, node)
		}
	}
	if m := r.anywhere(p, node); m != nil {
		return m, nil
	}
	return nil, &NodeError{Pattern: node, Near: near, CPU: p.CPU.Name}
}

// Node finds a node of a selection by name or path; case does not matter.
func (s *Selection) Node(name string) (int, error) {
	i := slices.IndexFunc(s.Model.Nodes, func(n model.Node) bool { return is(&n, name) })
	if i < 0 {
		return 0, &NodeError{Pattern: name, Near: meant(s.Model, name), CPU: s.CPU.Name, Model: s.Model}
	}
	return i, nil
}

// CheckNodes refuses a pattern of Choice.Nodes that no node of the method matches.
func (s *Selection) CheckNodes() error {
	if p := s.Resolver.Choice.Nodes; p != "" && len(s.Model.Select(p, 0)) == 0 {
		return s.Unmatched("nodes", p)
	}
	return nil
}

// Unmatched is the error of an option's pattern that no node of the method matches.
func (s *Selection) Unmatched(option, pattern string) error {
	return &NodeError{Option: option, Pattern: pattern, Near: meant(s.Model, pattern), CPU: s.CPU.Name, Model: s.Model}
}

// is reports whether a node has a name or path; case does not matter.
func is(n *model.Node, name string) bool {
	return strings.EqualFold(n.Name, name) || strings.EqualFold(n.Path, name)
}

func has(m *model.Model, node string) bool {
	return slices.ContainsFunc(m.Nodes, func(n model.Node) bool { return is(&n, node) })
}

// EventNames returns the names of a table's events, each once, in the order of its
// columns.
func EventNames(t *counts.Table) []string {
	var names []string
	for _, c := range t.Columns {
		if !slices.Contains(names, c.Event) {
			names = append(names, c.Event)
		}
	}
	return names
}

// Where names a table's place in a file: the line, if the file has lines.
func Where(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}
