package agent

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// TestOTLP: what is pushed is what OpenTelemetry's own library reads, and has the values
// that a scrape has.
func TestOTLP(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	h.use("system.slice/a\"b\\c\n\x01ü.service", 1, 0)
	var got metrics.MetricsData
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %s", r.URL.Path, r.Header.Get("Content-Type"))
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		if err := protojson.Unmarshal(text, &got); err != nil { // unknown fields are errors
			t.Errorf("%v: %s", err, text)
		}
	}))
	defer server.Close()
	a := h.agent(nil)
	a.tick(t.Context())
	_ = a.text()
	h.use("system.slice/a\"b\\c\n\x01ü.service", 2_500_000, 1)
	a.tick(t.Context())
	p := newPusher(a, "metrics")
	if err := p.metrics(t.Context(), server.URL); err != nil {
		t.Fatal(err)
	}
	if len(got.ResourceMetrics) != 1 || len(got.ResourceMetrics[0].ScopeMetrics) != 1 {
		t.Fatalf("%v", &got)
	}
	n, found := 0, false
	for _, m := range got.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		points := m.GetGauge().GetDataPoints()
		if s := m.GetSum(); s != nil {
			points = s.DataPoints
			if !s.IsMonotonic || s.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
				t.Errorf("%s: %v", m.Name, s.AggregationTemporality)
			}
		}
		for _, point := range points {
			n++
			if point.StartTimeUnixNano == 0 || point.StartTimeUnixNano > point.TimeUnixNano {
				t.Errorf("%s: from %d to %d", m.Name, point.StartTimeUnixNano, point.TimeUnixNano)
			}
			var pairs []string
			for _, kv := range point.Attributes {
				pairs = append(pairs, kv.Key, kv.Value.GetStringValue())
				found = found || m.Name == series.CPU && kv.Value.GetStringValue() == "a\"b\\c\n\x01ü" && point.GetAsDouble() == 2.5
			}
			v := float64(point.GetAsInt()) + point.GetAsDouble()
			if c := a.s.r.find(m.Name, pairs...); c == nil || c.number() != v {
				t.Errorf("%s%v is %g", m.Name, pairs, v)
			}
		}
	}
	if n != a.s.r.active || !found {
		t.Errorf("%d points of %d series; the odd name was found: %v", n, a.s.r.active, found)
	}
}

// TestPushDown: a receiver that is down or refuses costs nothing but attempts that become
// rarer. When it is back, it has the sums.
func TestPushDown(t *testing.T) {
	t.Parallel()
	h := newFakeHost(t)
	var down atomic.Bool
	down.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "full", http.StatusInsufficientStorage)
		}
	}))
	defer server.Close()
	a := h.agent(nil)
	p := newPusher(a, "metrics")
	wait := time.Duration(0)
	for range 12 {
		err := p.metrics(t.Context(), server.URL)
		if err == nil {
			t.Fatal("nobody said no")
		}
		wait = p.done(err, 10*time.Second)
	}
	if wait != mostWait {
		t.Errorf("the next attempt is in %v", wait)
	}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer slow.Close()
	p.client.Timeout = 50 * time.Millisecond
	if err := p.metrics(t.Context(), slow.URL); err == nil {
		t.Error("a receiver that never answers is waited for")
	}
	p.client.Timeout = pushTimeout
	down.Store(false)
	if got := p.done(p.metrics(t.Context(), server.URL), 10*time.Second); got != 10*time.Second {
		t.Errorf("the next attempt is in %v", got)
	}
	if ok, failed := a.value(series.Pushes, series.Kind, "metrics", series.Result, "ok"), a.value(series.Pushes, series.Kind, "metrics", series.Result, "failed"); ok != 1 || failed != 12 {
		t.Errorf("%g and %g attempts", ok, failed)
	}
}
