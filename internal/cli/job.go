package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/report"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A job is one call of stat: what is to be counted, and how.
type job struct {
	*app
	c       *common
	f       *statFlags
	program []string
	by      counts.By
	target  perfevent.Target
	machine *measure.Machine
	parts   []*part
	why     string      // no better source was used
	sim     *simulating // the rung above the operating system's counters; nil if there is none
	times   *timekeeper // what the operating system says beside the processor's counters; nil if nothing
	stream  io.Writer   // for the account, unless a file is named
	rows    bool        // an account has one line
	set     string      // the method's event set that is counted instead of nodes; "" for none
	places  func(*counts.Table) ([]accounting.Place, error)
	label   string // of what is counted, once a table was given it

	catalogue func() (*model.Catalogue, error) // loads it, once
}

// prepare finds out what there is to count, and to count with.
func (j *job) prepare() (err error) {
	if j.target, err = j.f.target(j.program); err != nil {
		return err
	}
	j.catalogue = sync.OnceValues(j.c.catalogue)
	j.target.Stdin, j.target.Stdout, j.target.Stderr = file(j.in), file(j.out), file(j.err)
	if err := errors.Join(writable(j.c.output), writable(j.f.keep)); err != nil {
		return err
	}
	read := perfevent.ReadSystem
	if j.osAlone() {
		read = perfevent.ReadProcessors
	}
	if j.machine, err = j.kernel.machineOf(read, j.kernel.limit); err != nil {
		return err
	}
	if j.c.smt == "" {
		j.c.smt = onOff(j.machine.Probe.SMT)
	}
	return nil
}

// file returns the file that a stream is, nil if it is none.
func file(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// writable looks whether an output file can be written, before a program runs
// for nothing.
func writable(name string) error {
	if name == "" || name == "-" {
		return nil
	}
	to, err := destination(name, nil)
	if err != nil || to.direct {
		return err
	}
	f, err := beside(to)
	if err != nil {
		return machineError(fmt.Errorf("cannot write %s: %w", name, reason(err)))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// choose takes the best source that works, and makes the parts to be counted.
func (j *job) choose() error {
	asked := j.c.model != "" && j.c.model != osModel && j.c.model != simModel
	if err := j.c.knownModel(); err != nil {
		return err
	}
	switch {
	case j.f.source == sourceOS && asked:
		return usageError("--source os: its method is %s", osModel)
	case j.f.source == sourceSimulated && (asked || j.c.model == osModel):
		return usageError("--source simulated: its method is %s", simModel)
	case j.osAlone():
		j.osParts("")
		return j.check()
	case j.f.source == sourceSimulated:
		return j.simulateOr("")
	}
	why := j.machine.NoPMU()
	switch {
	case why == "":
		return j.pmuParts()
	case j.f.source == sourcePMU || asked || j.f.drilldown || j.f.separate || j.f.split || j.f.user || j.f.kernel:
		return machineError(fmt.Errorf("%s; cyclestack doctor says what would change that", why))
	}
	return j.simulateOr(why + " (cyclestack doctor)")
}

// osAlone reports whether nothing but the operating system's counters is asked for.
func (j *job) osAlone() bool {
	return j.f.source == sourceOS || j.c.model == osModel && j.f.source != sourceSimulated
}

// simulateOr takes the rung of simulation, or the one below: of both the operating
// system's counters are the first part.
func (j *job) simulateOr(why string) error {
	sim, unfit, err := j.simulation()
	if err != nil {
		return err
	}
	if sim == nil {
		j.osParts(reasons(why, unfit))
		return j.check()
	}
	if j.sim = sim; !sim.input.again() {
		if j.target.Stdin, err = sim.input.spool(); err != nil {
			return machineError(fmt.Errorf("standard input: %w", err))
		}
	}
	j.osParts(why)
	sim.method, err = sim.session()
	return err
}

// check looks at the flags that are about the method before a program runs for
// nothing.
func (j *job) check() error {
	if j.c.nodes == "" && j.c.level == 0 && len(j.c.params) == 0 && j.c.penalties == "" && len(j.c.files) == 0 && j.c.cpu == "" {
		return nil
	}
	return j.ready()
}

// ready makes the parts' methods ready.
func (j *job) ready() (err error) {
	for _, p := range j.parts {
		if p.s, err = p.find(); err != nil {
			return err
		}
		if p.s.method == nil {
			if err := p.s.compile(); err != nil {
				return err
			}
		}
	}
	if j.times != nil {
		_, err = j.times.find()
	}
	return err
}

// pmuParts makes a part for each type of core and each mode.
func (j *job) pmuParts() error {
	list, err := j.plans()
	if err != nil {
		return err
	}
	modes := j.modes()
	if len(list)*len(modes) > 1 && j.f.interval > 0 && j.c.format != report.Formats[report.Accounts]()[0] {
		return usageError("--format %s and -I: the accounts of several types of cores, or modes, do not go into one document: choose one (--cpu %s; --user, --kernel)",
			j.c.format, list[0].CPU)
	}
	for _, t := range list {
		j.c.all = j.c.all || t.All
		find := sync.OnceValues(func() (*session, error) { return j.session(t.CPU) })
		for _, m := range modes {
			p := &part{pmu: j.machine.Sys.PMU(t.PMU), cpu: t.CPU, mode: m, plan: t.Plan, find: find}
			j.name(p, t.Note, len(list) > 1)
			j.resolve(p, len(list) > 1)
			j.parts = append(j.parts, p)
		}
	}
	return j.check()
}

// modes are the privilege levels to be told apart.
func (j *job) modes() []mode {
	switch {
	case j.f.split:
		return []mode{userMode, kernelMode}
	case j.f.kernel:
		return []mode{kernelMode}
	case j.f.user || j.machine.UserOnly() && !j.f.machine():
		return []mode{userMode}
	}
	return []mode{anyMode}
}

// name labels a part, and notes what is assumed for it.
func (j *job) name(p *part, note string, several bool) {
	var labels []string
	if several {
		labels = append(labels, p.pmu.Name)
	}
	switch p.mode {
	case userMode:
		labels = append(labels, "user mode")
	case kernelMode:
		labels = append(labels, "the kernel")
	}
	p.label = strings.Join(labels, ", ")
	if note != "" {
		p.notes = append(p.notes, counts.Notef("%s", note))
	}
	if p.mode == userMode && !j.f.user && !j.f.split {
		p.notes = append(p.notes, counts.Notef("only user mode was counted, as perf_event_paranoid is %d here; sysctl kernel.perf_event_paranoid=1 allows the kernel as well",
			j.machine.Probe.Paranoid))
	}
}

// count counts once, and prints the accounts.
func (j *job) count(ctx context.Context) error {
	var p *printer
	state, err := j.run(ctx, func(run counting) (err error) {
		if p == nil {
			if err := j.ready(); err != nil {
				return err
			}
			if p, err = j.printer(); err != nil {
				return err
			}
		}
		return p.table(run)
	})
	if p != nil && err == nil && j.sim != nil && state != nil {
		err = j.sim.climb(ctx, p, state)
	}
	if p != nil {
		err = errors.Join(p.finish(), err)
	}
	if err != nil {
		return err
	}
	return j.status(state)
}

// run counts the parts, once or as often as a repetition asks, and calls take
// with each table. It returns how the program ended.
func (j *job) run(ctx context.Context, take func(counting) error) (state *os.ProcessState, err error) {
	signals := catch()
	defer func() {
		if j.f.again() == "" && err == nil && j.sim == nil {
			time.AfterFunc(soon, signals.end) // nothing depends on it here, and it takes time
			return
		}
		signals.end()
		switch {
		case j.sim != nil:
			j.sim.ended = signals.ended
		case err == nil && signals.ended != 0:
			err = endedBy(signals.ended)
		}
	}()
	run, err := j.start(ctx)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	signals.forward(run, len(j.program) > 0, j.f.again() != "")
	// What is not needed to count is done while the program runs, unless it would
	// take the processor away from it; and beside the counting, which is to see
	// when the program ends.
	var readying sync.WaitGroup
	defer readying.Wait()
	switch {
	case runtime.NumCPU() == 1:
	case j.f.interval == 0:
		readying.Go(func() { _ = j.ready() }) // it is asked again below, and says the same
	default:
		if err := j.ready(); err != nil {
			return nil, err
		}
	}
	if j.f.interval > 0 {
		// From here on there is one thing to do at a time, and with one processor
		// the runtime spends half as much on waking threads for it.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	for run.Next() {
		readying.Wait()
		if err := take(run); err != nil {
			return nil, err
		}
	}
	if err := run.Err(); err != nil {
		return nil, machineError(err)
	}
	return run.State(), nil
}

// endedBy is the failure of a series of runs that a signal ended, or of one that it
// kept from beginning.
func endedBy(s syscall.Signal) error {
	return &failure{exitSignal + int(s), fmt.Errorf("ended by a signal: %v", s)}
}

// start starts the counters and the program. If the processor's counters are
// refused, the operating system's are taken, and if these are refused too what
// it tells the parent of any process.
func (j *job) start(ctx context.Context) (counting, error) {
	run, err := j.begin(ctx)
	var refused *perfevent.OpenError
	if errors.As(err, &refused) && j.anySource() {
		if err := j.simulateOr(fmt.Sprintf("the kernel refuses the processor's counters (%v)", refused)); err != nil {
			return nil, err
		}
		run, err = j.begin(ctx)
	}
	if errors.As(err, &refused) && j.parts[0].pmu == nil && j.ownProgram() {
		j.osTimes(refused)
		run, err = j.begin(ctx)
	}
	if err != nil {
		return nil, startError(err)
	}
	return run, nil
}

// anySource reports whether the parts are of the processor's counters, and
// nothing was asked for that only these can tell.
func (j *job) anySource() bool {
	return j.parts[0].pmu != nil && j.f.source == sourceAuto && j.f.again() == "" && !j.f.split && !j.f.user && !j.f.kernel &&
		j.c.model == "" && j.c.nodes == "" && len(j.c.params) == 0
}

// ownProgram reports whether what is counted is a program that is started.
func (j *job) ownProgram() bool {
	return !j.f.machine() && !j.f.tasks() && len(j.target.Cgroups) == 0
}

// Exit statuses for a program that cannot be run, those of a shell.
const (
	exitCannotRun = 126
	exitNotFound  = 127
	exitSignal    = 128 // and the signal's number
)

// startError gives an error of perfevent.Start its exit status.
func startError(err error) error {
	var program *exec.Error
	var target *perfevent.TargetError
	switch {
	case errors.As(err, &program):
		status := exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			status = exitNotFound
		}
		if errors.Is(err, syscall.EMFILE) { // that is not the program's
			return machineError(fmt.Errorf("%s cannot be started: %w: ulimit -n allows more", program.Name, reason(program.Err)))
		}
		return &failure{status, fmt.Errorf("%s: %w", program.Name, reason(program.Err))}
	case errors.As(err, &target):
		return usageError("%s", noteText(counts.Note{Text: err.Error(), Fix: target.Fix}))
	}
	return machineError(err)
}

// spec says what all parts together count.
func (j *job) spec() perfevent.Spec {
	spec := perfevent.Spec{
		Target: j.target, Interval: time.Duration(j.f.interval), Timeout: time.Duration(j.f.timeout),
		Delay: time.Duration(j.f.delay), Repeat: j.f.repeat, Separate: j.f.separate, NoInherit: j.f.noInherit,
	}
	if j.f.again() != "" && !j.f.drilldown {
		spec.Progress = func(run, of int) { j.say("run %d of %d", run, of) }
	}
	for _, k := range scopeKinds {
		if k != counts.Interval && j.by.Has(k) {
			spec.Keep = spec.Keep.With(k)
		}
	}
	if spec.Interval == 0 {
		spec.Interval = j.sampling()
	}
	seen := map[string]bool{}
	for _, p := range j.parts {
		for _, g := range p.turns {
			spec.Rotation = append(spec.Rotation, len(spec.Groups)+g)
		}
		spec.Groups = append(spec.Groups, p.groups...)
		for _, e := range p.always {
			if !seen[e.Name] {
				seen[e.Name] = true
				spec.Always = append(spec.Always, e)
			}
		}
	}
	if j.f.separate {
		spec.Rotation = nil
	}
	return spec
}

// status passes on how the program ended.
func (j *job) status(state *os.ProcessState) error {
	if state == nil || state.Success() {
		return nil
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return &failure{exitSignal + int(ws.Signal()), fmt.Errorf("%s: ended by a signal: %v", j.program[0], ws.Signal())}
	}
	return &failure{state.ExitCode(), errors.New("")}
}
