package agent

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/sampled"
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
	f, err := sampled.Scratch()
	if err != nil {
		return err
	}
	defer f.Close()
	begin := time.Now()
	if err := p.record(ctx, f, d); err != nil {
		return err
	}
	end := time.Now()
	recs, err := sampled.Reader(f, p.a.o.Choice)
	if err != nil {
		return err
	}
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
	_, err := sampled.Record(ctx, o.Kernel, measure.SampleOptions{
		Options: measure.Options{Choice: o.Choice, Source: o.Source, Target: perfevent.Target{All: true}, Period: measure.Period{Timeout: d}},
		Rate:    measure.Rate{PerSecond: profileRate},
		Calls:   measure.Calls{Chains: true}, RingSize: profileRing,
	}, f, sampled.Bound{Bytes: profileMost, Command: []string{"cyclestack", "agent"}, Version: o.Version})
	return err
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
