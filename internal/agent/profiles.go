package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/recorded"
	"github.com/cyclestack/cyclestack/internal/sampled"
	"github.com/cyclestack/cyclestack/internal/sorting"
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

// pushProfiles samples the host from time to time, and pushes what it finds.
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

// otlpProfiles is how the path of a receiver of OTLP profiles ends. All other receivers are
// taken for Pyroscopes.
const otlpProfiles = "/v1development/profiles"

// profile samples for some time, and pushes a profile for each service or container.
func (p *pusher) profile(ctx context.Context, to string, d time.Duration) error {
	f, err := output.NewScratch()
	if err != nil {
		return err
	}
	defer f.Close()
	begin := time.Now()
	if err := p.record(ctx, f.File, d); err != nil {
		return err
	}
	end := time.Now()
	recs, err := sampled.Reader(f, p.a.o.Choice)
	if err != nil {
		return err
	}
	defer recs.Close()
	stacks, err := recs.Stacks(recorded.StackOptions{By: counts.Function, Memory: stackMemory, Cgroups: true})
	if err != nil {
		return err
	}
	defer stacks.Close()
	shares := p.a.shares(stacks.Profile)
	var body bytes.Buffer
	if strings.HasSuffix(strings.TrimSuffix(to, "/"), otlpProfiles) {
		var list []export.Resource
		for _, s := range shares {
			list = append(list, export.Resource{Attributes: s.attributes(p.a.o.Version, p.a.s.r.fixed), Profile: s.profile})
		}
		if err := export.OTLP(&body, list, p.a.o.Version, begin, end); err != nil {
			return err
		}
		small, err := squeezed(body.Bytes())
		if err != nil {
			return err
		}
		return p.post(ctx, to, "application/json", "gzip", small)
	}
	for _, s := range shares {
		body.Reset()
		if err := export.Pprof(&body, s.profile); err != nil {
			return err
		}
		if err := p.post(ctx, ingest(to, append(s.labels, p.a.s.r.fixed...), begin, end), "application/octet-stream", "", body.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// A share is the stacks of one service or container. All shares together are the host.
type share struct {
	labels  []string // names and values in turn
	weight  float64
	profile *export.Profile
}

// sharesMost bounds the profiles of one push. What takes least is in one of service "other".
const sharesMost = 50

// shares divides a profile by service, and by container where containers have series.
func (a *Agent) shares(p *export.Profile) (list []*share) {
	byKey, byCgroup := map[string]*share{}, map[string]*share{}
	for s := range p.Stacks {
		of := byCgroup[s.Cgroup]
		if of == nil {
			l := a.sharedBy(s.Cgroup)
			if of = byKey[labelText(l)]; of == nil {
				of = &share{labels: l}
				byKey[labelText(l)] = of
				list = append(list, of)
			}
			byCgroup[s.Cgroup] = of
		}
		of.weight += max(0, s.Values[p.Default])
	}
	sorting.Sort(list, func(x, y *share) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(labelText(x.labels), labelText(y.labels)))
	})
	if len(list) > sharesMost {
		rest := &share{labels: labels{service: series.Other}.workload()}
		if at := slices.IndexFunc(list[:sharesMost-1], func(s *share) bool { return labelText(s.labels) == labelText(rest.labels) }); at >= 0 {
			rest = list[at]
		} else {
			list = slices.Insert(list, sharesMost-1, rest)
		}
		for cgroup, of := range byCgroup {
			if slices.Index(list, of) >= sharesMost {
				byCgroup[cgroup] = rest
			}
		}
		list = list[:sharesMost]
	}
	for _, of := range list {
		mine := *p
		mine.Stacks = export.Select(p.Stacks, func(s *export.Stack) bool { return byCgroup[s.Cgroup] == of })
		of.profile = &mine
	}
	return list
}

// sharedBy returns the labels of a cgroup's profile. Without cgroups all is the host's.
func (a *Agent) sharedBy(cgroup string) []string {
	a.s.r.mu.Lock()
	defer a.s.r.mu.Unlock()
	if a.groups == nil {
		return labels{service: "host"}.workload()
	}
	p, known := a.placeOf(cgroup)
	switch {
	case !known || !strings.HasPrefix(cgroup, "/"): // one that has gone
		return labels{service: series.Other}.workload()
	case a.single != nil && p.single != "" && a.single.has(p.single):
		return p.labels.single()
	}
	return p.labels.workload()
}

// attributes are the labels by OpenTelemetry's conventions.
func (s *share) attributes(release string, fixed []string) map[string]string {
	m := map[string]string{"telemetry.sdk.name": "cyclestack", "telemetry.sdk.version": release}
	m["host.name"], _ = os.Hostname()
	names := map[string]string{series.Service: "service.name", series.Namespace: "service.namespace", series.Pod: "k8s.pod.name", series.Container: "container.name"}
	for i := 0; i+1 < len(fixed); i += 2 {
		m[fixed[i]] = fixed[i+1]
	}
	for i := 0; i+1 < len(s.labels); i += 2 {
		m[names[s.labels[i]]] = s.labels[i+1]
	}
	return m
}

// record samples the host into a file.
func (p *pusher) record(ctx context.Context, f *os.File, d time.Duration) error {
	o := &p.a.o
	_, err := sampled.Record(ctx, o.Kernel, measure.SampleOptions{
		Options: measure.Options{Choice: o.Choice, Source: o.Source, Target: perfevent.Target{All: true}, Period: measure.Period{Timeout: d}},
		Rate:    measure.Rate{PerSecond: profileRate},
		Calls:   measure.Calls{Chains: true}, RingSize: profileRing, Cgroups: p.a.groups != nil,
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
		if tags[i+1] == "" {
			continue
		}
		if !strings.HasSuffix(name.String(), "{") {
			name.WriteByte(',')
		}
		if tags[i] == series.Service { // Pyroscope's own name for it
			tags[i] = "service_name"
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
