package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/kept"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/report"
)

// errNoRecording says that nothing was measured.
var errNoRecording = errors.New("there is no recording")

// store is where runs are kept; nil if they cannot be.
func (a *app) store() *kept.Store {
	s, err := kept.Open(a.kernel.Cache)
	if err != nil {
		return nil
	}
	return s
}

// A keeper keeps the run that a meter measures. Nil keeps nothing.
type keeper struct {
	run      *kept.NewRun
	document bytes.Buffer // of the account
	taken    bool         // a writer has been made for it
}

// keep begins to keep what is measured, if it can be kept and nobody asked not to.
func (l *meter) keep() {
	if s := l.store(); s != nil && !l.f.unkept && l.f.interval == 0 && !l.f.drilldown {
		if run, err := s.New(); err == nil {
			l.keeper = &keeper{run: run}
		}
	}
}

// samples creates the file for samples: of the run that is kept, or one that goes with
// this process.
func (k *keeper) samples() (*os.File, error) {
	if k != nil {
		return k.run.Create(kept.Samples)
	}
	f, err := os.CreateTemp("", "cyclestack-")
	if err == nil {
		_ = os.Remove(f.Name()) // it lives as long as it is open
	}
	return f, err
}

// with returns a writer that also keeps the first document.
func (k *keeper) with(w report.Writer) report.Writer {
	if k == nil || k.taken {
		return w
	}
	own, err := report.New("json", &k.document, report.Options{})
	if err != nil {
		return w
	}
	k.taken = true
	return &bothWriters{w, own}
}

// end keeps the run, or gives it up if nothing came of it.
func (k *keeper) end(ok bool, again []string) {
	if k == nil {
		return
	}
	account := func(w io.Writer) error { _, err := k.document.WriteTo(w); return err }
	if !ok || k.document.Len() == 0 || k.run.Write(kept.Account, account) != nil || k.run.Again(again) != nil {
		_ = k.run.Discard()
		return
	}
	_ = k.run.Keep() // what was measured has been printed
}

// bothWriters write the same accounts. Only errors of the first count.
type bothWriters struct {
	report.Writer
	second report.Writer
}

func (b *bothWriters) Begin(h report.Header) error {
	_ = b.second.Begin(h)
	return b.Writer.Begin(h)
}

func (b *bothWriters) Account(a *account.Account) error {
	_ = b.second.Account(a)
	return b.Writer.Account(a)
}

func (b *bothWriters) End() error {
	_ = b.second.End()
	return b.Writer.End()
}

// last is the recording of what was measured last, where no file is named. Places says
// that its places in the code matter. What it took is said on standard error.
func (a *app) last(command string, places bool) (name string, run *recorded.KeptRun, err error) {
	found := kept.Last(a.store(), places, defaultFile, simulatedFile)
	if found == nil {
		return "", nil, usageError("%w%s: name a FILE, or measure first (cyclestack stat -- PROGRAM)", errNoRecording, map[bool]string{true: " of places"}[places])
	}
	when := found.Time.Local().Format("15:04:05")
	if found.Run == nil {
		fmt.Fprintf(a.err, "cyclestack %s: %s, of %s\n", command, found.File, when)
		return found.File, nil, nil
	}
	fmt.Fprintf(a.err, "cyclestack %s: the last run%s, of %s\n", command, map[bool]string{true: " with places in the code"}[found.Older], when)
	run = &recorded.KeptRun{Samples: found.Run.Path(kept.Samples), Again: found.Run.Again()}
	_, run.Features = host()
	if name = found.Run.Path(kept.Account); places || name == "" {
		name = found.Run.Places()
	}
	return name, run, nil
}

// lastSides completes the two sides of a comparison: the last run is the new one, and
// without an old one that is the run before. Places says that places in the code are
// compared.
func (a *app) lastSides(args []string, places bool) ([]string, error) {
	missing := 2 - len(args)
	if missing <= 0 {
		return args, nil
	}
	runs := a.store().Runs()
	file := func(r *kept.Run) string { return r.Path(kept.Account) }
	if places {
		file = (*kept.Run).Places
	}
	for i := missing - 1; i >= 0; i-- {
		if i >= len(runs) || file(&runs[i]) == "" {
			return nil, usageError("there are no %d runs of stat to compare: name OLD and NEW", missing)
		}
		args = append(args, file(&runs[i]))
	}
	return args, nil
}
