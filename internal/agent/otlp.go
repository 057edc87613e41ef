package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// A pusher sends to a receiver over HTTP. A receiver that is down or slow delays the next
// attempt; nothing is kept meanwhile, as counters are cumulative.
type pusher struct {
	a      *Agent
	client *http.Client
	kind   string
	wait   time.Duration // before the next attempt, after errors
	result map[string]*counter
}

// Bounds of a push.
const (
	pushTimeout = 10 * time.Second
	mostWait    = 5 * time.Minute
	mostAnswer  = 64 << 10
)

// newPusher makes a pusher of a kind: "metrics" or "profiles". The caller must hold the
// registry's lock, or be alone.
func newPusher(a *Agent, kind string) *pusher {
	p := &pusher{a: a, kind: kind, client: &http.Client{Timeout: pushTimeout}, result: map[string]*counter{}}
	f := a.s.r.family(series.Pushes, "attempts to push, by kind and result", count)
	for _, result := range []string{"ok", "failed"} {
		p.result[result] = a.s.r.get(f, series.Kind, kind, series.Result, result)
	}
	return p
}

// checkURL refuses what is no URL to push to.
func checkURL(option, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fault.Optionf(option, text, "it is a URL, such as http://localhost:4318")
	}
	return nil
}

// post sends a body. Names and passwords are those of the URL.
func (p *pusher) post(ctx context.Context, to, contentType, encoding string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	req.Header.Set("User-Agent", "cyclestack-agent/"+p.a.o.Version)
	if tenant := os.Getenv("CYCLESTACK_TENANT"); tenant != "" {
		req.Header.Set("X-Scope-OrgID", tenant)
	}
	answer, err := p.client.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			return e.Err // without the URL, which may have a password
		}
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answers %s: %.200q", answer.Status, text)
	}
	return nil
}

// done takes notice of an attempt, and returns how long to wait for the next.
func (p *pusher) done(err error, usual time.Duration) time.Duration {
	result := "ok"
	if err != nil {
		result = "failed"
		p.a.failed("push", fmt.Errorf("%s: %w", p.kind, err))
	}
	p.a.s.r.mu.Lock()
	p.result[result].add(1)
	p.a.s.r.mu.Unlock()
	if err == nil {
		p.wait = 0
		return usual
	}
	p.wait = min(max(2*p.wait, usual), max(mostWait, usual))
	return p.wait
}

// pushMetrics pushes all series as OTLP, once in each interval.
func (a *Agent) pushMetrics(ctx context.Context) error {
	a.s.r.mu.Lock()
	p := newPusher(a, "metrics")
	a.s.r.mu.Unlock()
	next := time.Duration(0)
	for {
		o, changed := a.settings()
		if next == 0 {
			next = o.Interval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			continue
		case <-time.After(next):
		}
		if o.OTLP == "" {
			next = o.Interval
			continue
		}
		next = p.done(p.metrics(ctx, o.OTLP), o.Interval)
	}
}

// metrics pushes once.
func (p *pusher) metrics(ctx context.Context, to string) error {
	p.a.s.r.mu.Lock()
	body := p.a.s.r.otlp(time.Now(), resource(p.a.o.Version))
	p.a.s.r.mu.Unlock()
	small, err := squeezed(body)
	if err != nil {
		return err
	}
	const path = "/v1/metrics"
	if !strings.HasSuffix(to, path) {
		to = strings.TrimSuffix(to, "/") + path
	}
	return p.post(ctx, to, "application/json", "gzip", small)
}

// squeezed returns a body compressed.
func squeezed(body []byte) ([]byte, error) {
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err = z.Write(body); err == nil {
		err = z.Close()
	}
	return small.Bytes(), err
}

// resource returns the attributes of what sends, by OpenTelemetry's conventions.
func resource(release string) []string {
	host, _ := os.Hostname()
	return []string{"service.name", "cyclestack-agent", "service.version", release, "service.instance.id", host, "host.name", host}
}

// otlp returns all series as OTLP metrics in JSON: see opentelemetry/proto/metrics/v1 of
// github.com/open-telemetry/opentelemetry-proto. The caller must hold the lock.
func (r *registry) otlp(now time.Time, about []string) []byte {
	r.read("push")
	b := append(r.buf[:0], `{"resourceMetrics":[{"resource":{"attributes":`...)
	b = appendAttributes(b, about)
	b = append(b, `},"scopeMetrics":[{"scope":{"name":"github.com/cyclestack/cyclestack"},"metrics":[`...)
	first := true
	for _, f := range r.families {
		if len(f.list) == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = f.appendOTLP(b, now)
	}
	b = append(b, `]}]}]}`...)
	r.buf = b[:0]
	return b
}

// appendOTLP appends a family.
func (f *family) appendOTLP(b []byte, now time.Time) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, f.name)
	b = append(b, `,"description":`...)
	b = appendString(b, f.help)
	if f.nanos {
		b = append(b, `,"unit":"s"`...)
	}
	if f.gauge {
		b = append(b, `,"gauge":{"dataPoints":[`...)
	} else {
		b = append(b, `,"sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[`...)
	}
	at := now.UnixNano()
	for i, c := range f.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"attributes":`...)
		b = appendAttributes(b, c.labels)
		b = append(b, `,"startTimeUnixNano":"`...)
		b = strconv.AppendInt(b, min(c.born.UnixNano(), at), 10) // the clock may have been set back
		b = append(b, `","timeUnixNano":"`...)
		b = strconv.AppendInt(b, at, 10)
		switch {
		case f.gauge || f.nanos || c.value > math.MaxInt64:
			b = append(b, `","asDouble":`...)
			if f.nanos {
				b = c.appendValue(b)
			} else {
				b = strconv.AppendFloat(b, c.number(), 'g', -1, 64)
			}
			b = append(b, '}')
		default:
			b = append(b, `","asInt":"`...)
			b = strconv.AppendUint(b, c.value, 10)
			b = append(b, `"}`...)
		}
	}
	return append(b, `]}}`...)
}

func appendAttributes(b []byte, pairs []string) []byte {
	b = append(b, '[')
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"key":`...)
		b = appendString(b, pairs[i])
		b = append(b, `,"value":{"stringValue":`...)
		b = appendString(b, pairs[i+1])
		b = append(b, `}}`...)
	}
	return append(b, ']')
}

// appendString appends a string of JSON.
func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < 0x20:
			b = append(b, fmt.Sprintf(`\u%04x`, c)...)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}
