package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/release"
	"github.com/cyclestack/cyclestack/internal/signals"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/plan"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// write records into the file.
func (r *recorder) write(ctx context.Context) error {
	out, err := output.NewSeries(r.c.output, r.out, r.f.limits.Switch.On(), r.f.maxFiles)
	if err != nil {
		return err
	}
	defer out.Discard() // unless it is kept
	catcher := signals.Catch(len(r.program) > 0)
	defer catcher.End() // not before the file has its name
	catcher.Finally(out.Discard)
	out.Current().Unguard()
	state, stats, err := r.run(ctx, out, catcher)
	if err != nil {
		return err
	}
	if err := out.Keep(); err != nil {
		return err
	}
	r.c.output = out.Last()
	r.conclude(stats, out.Current().Regular())
	return programStatus(r.program, state)
}

// run records until the end, and returns how the program ended.
func (r *recorder) run(ctx context.Context, out *output.Series, catcher *signals.Catcher) (*os.ProcessState, perfrecord.Stats, error) {
	rec, err := r.start(ctx, out)
	if err != nil {
		return nil, perfrecord.Stats{}, r.failure(err)
	}
	defer rec.Close()
	catcher.Pass(rec, len(r.program) > 0, func() {
		r.tell(r.program[0] + " goes on, and is recorded; another signal ends the recording, and the program")
	})
	told := len(rec.Notes())
	r.tellNotes(r.plan.Notes())
	r.tellNotes(rec.Notes())
	if err := rec.Run(); err != nil {
		return nil, perfrecord.Stats{}, r.failure(err)
	}
	r.tellNotes(rec.Notes()[told:])
	rec.Close()
	return rec.State(), rec.Stats(), nil
}

// tellNotes tells remarks, which stand behind no error.
func (r *recorder) tellNotes(notes []counts.Note) {
	for _, n := range notes {
		r.tell(noteText(n))
	}
}

// start starts to record.
func (r *recorder) start(ctx context.Context, out *output.Series) (*perfrecord.Recording, error) {
	m := r.plan.Machine()
	id, _ := model.HostID(m.Root)
	opts := perfrecord.Options{Root: m.Root, Cmdline: os.Args, Version: "cyclestack " + release.Version, CPUID: id, Limits: r.f.limits}
	if r.f.limits.Switch.On() {
		opts.Next = out.Next
	}
	rec, err := perfrecord.Start(ctx, m.Sys, r.plan.Spec(), out.Current(), opts)
	if err != nil && r.plan.Refused(err) {
		rec, err = perfrecord.Start(ctx, m.Sys, r.plan.Spec(), out.Current(), opts)
	}
	return rec, err
}

// failure gives an error of a recording its exit status.
func (r *recorder) failure(err error) error {
	var event *perfevent.EventError
	var unwritten *perfrecord.WriteError
	switch {
	case errors.As(err, &unwritten):
		name := r.c.output
		if name == "-" {
			name = "standard output"
		}
		return machineError(fmt.Errorf("cannot write %s: %w", name, output.Reason(unwritten.Err)))
	case errors.As(err, &event):
		return usageError("%v", err)
	}
	return programError(measure.StartError(err))
}

// conclude says what there is now, and what to do with it if it can be read again.
func (r *recorder) conclude(s perfrecord.Stats, readable bool) {
	if s.Samples == 0 {
		r.tell(fmt.Sprintf("no samples in %s: what was sampled ran too briefly, or not at all", r.c.output))
		return
	}
	lost, throttled, next := "none lost", "", ""
	if s.Lost > 0 {
		lost = fmt.Sprintf("%d lost (-m gives them more room)", s.Lost)
	}
	if s.Throttled > 0 {
		throttled = fmt.Sprintf(", %d times throttled (-F or -c take fewer)", s.Throttled)
	}
	if s.Full {
		throttled += ", ended at --max-size"
	}
	if readable {
		command := plan.Command{Args: []string{"cyclestack", "report", "--by", "function", r.c.output}}
		next = "; next: " + command.String()
	}
	if s.Files > 1 {
		throttled += fmt.Sprintf(", %d files", s.Files)
	}
	r.tell(fmt.Sprintf("%d samples, %s%s, %s in %s%s", s.Samples, lost, throttled, bytesText(s.Bytes), r.c.output, next))
}

// bytesText is a size for people.
func bytesText(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d kB", (n+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
