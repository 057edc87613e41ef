package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/source/perfrecord"
	"github.com/cyclestack/cyclestack/model"
	"github.com/cyclestack/cyclestack/source/perfevent"
)

// A profile is taken for profileFor in each profileEvery, with so many samples a second on
// each processor. The number is prime, so that it does not keep in step with a program.
const (
	profileFor   = 10 * time.Second
	profileEvery = 5 * time.Minute
	profileRate  = 47
	profileRing  = 128 << 10
	profileMost  = 32 << 20 // bytes of a recording
	stackMemory  = 8 << 20
)

// errLarge ends a recording that is too large.
var errLarge = errors.New("the recording is too large")

// pushProfiles samples the host from time to time, and pushes what it finds to Pyroscope.
func (a *Agent) pushProfiles(ctx context.Context) error {
	a.s.r.mu.Lock()
	p := newPusher(a, "profiles")
	a.s.r.mu.Unlock()
	next := time.Duration(0)
	for {
		o, changed := a.settings()
		if o.Profiles == "" {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			continue
		case <-time.After(next):
		}
		next = p.done(p.profile(ctx, o.Profiles, profileFor), time.Duration(float64(profileEvery)/a.cost.share()))
	}
}

// profile samples for some time, and pushes.
func (p *pusher) profile(ctx context.Context, to string, d time.Duration) error {
	f, err := scratch()
	if err != nil {
		return err
	}
	defer f.Close()
	begin := time.Now()
	if err := p.record(ctx, f, d); err != nil {
		return err
	}
	end := time.Now()
	r, err := resolve.New(p.a.o.Choice)
	if err != nil {
		return err
	}
	recs := recorded.New(r, fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	defer recs.Close()
	stacks, err := recs.Stacks(recorded.StackOptions{By: counts.Function, Memory: stackMemory})
	if err != nil {
		return err
	}
	defer stacks.Close()
	var body bytes.Buffer
	if err := export.Pprof(&body, stacks.Profile); err != nil {
		return err
	}
	return p.post(ctx, ingest(to, p.a.s.r.fixed, begin, end), "application/octet-stream", "", body.Bytes())
}

// record samples the host into a file.
func (p *pusher) record(ctx context.Context, f *os.File, d time.Duration) error {
	o := &p.a.o
	rec, err := measure.NewRecording(o.Kernel, measure.SampleOptions{
		Options: measure.Options{Choice: o.Choice, Source: o.Source, Target: perfevent.Target{All: true}, Period: measure.Period{Timeout: d}},
		Rate:    measure.Rate{PerSecond: profileRate},
		Calls:   measure.Calls{Chains: true}, RingSize: profileRing,
	})
	if err != nil {
		return err
	}
	id, _ := model.HostID(o.Kernel.Root)
	start := func() (*perfrecord.Recording, error) {
		return perfrecord.Start(ctx, rec.Machine().Sys, rec.Spec(), &measured{File: f}, perfrecord.Options{Root: o.Kernel.Root, Cmdline: []string{"cyclestack", "agent"},
			Version: "cyclestack " + o.Version, CPUID: id})
	}
	run, err := start()
	if err != nil && rec.Refused(err) {
		run, err = start()
	}
	if err != nil {
		return measure.StartError(err)
	}
	return errors.Join(run.Run(), run.Close())
}

// A measured file takes no more than profileMost.
type measured struct {
	*os.File
	n int64
}

// Write implements [io.Writer].
func (m *measured) Write(b []byte) (int, error) {
	if m.n += int64(len(b)); m.n > profileMost {
		return 0, errLarge
	}
	return m.File.Write(b)
}

// ingest returns the address of Pyroscope's receiver of profiles.
func ingest(to string, labels []string, begin, end time.Time) string {
	if !strings.HasSuffix(to, "/ingest") {
		to = strings.TrimSuffix(to, "/") + "/ingest"
	}
	host, _ := os.Hostname()
	tags := append([]string{"host", host}, labels...)
	var name strings.Builder
	name.WriteString("cyclestack{")
	for i := 0; i+1 < len(tags); i += 2 {
		if i > 0 {
			name.WriteByte(',')
		}
		name.WriteString(tags[i] + "=" + strings.Map(func(r rune) rune {
			if strings.ContainsRune(",={}", r) {
				return '_'
			}
			return r
		}, tags[i+1]))
	}
	name.WriteByte('}')
	q := url.Values{"name": {name.String()}, "from": {fmt.Sprint(begin.Unix())}, "until": {fmt.Sprint(end.Unix())}, "format": {"pprof"}, "spyName": {"cyclestack"}}
	return to + "?" + q.Encode()
}
