package fleet

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// answering is a store that gives the same answer to everything.
func answering(t *testing.T, h http.HandlerFunc, a Access) *Store {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	a.URL = s.URL
	if a.Timeout == 0 {
		a.Timeout = time.Minute
	}
	store, err := Open(a)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestHostileAnswers: each answer that is not whole, or is no answer, is an error of one line.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const good = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"x"},"value":[1,"2"]}]}`
	for _, c := range []struct {
		name, body, want string
		status           int
	}{
		{"partial", good + `,"isPartial":true}`, "partial", 200},
		{"warnings", good + `,"warnings":["store gateway-3 timed out"]}`, "gateway-3", 200},
		{"truncated", good[:60], "not JSON, at byte", 200},
		{"empty", "", "not JSON", 200},
		{"HTML", "<html>login</html>", "not JSON", 200},
		{"another type", `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "matrix", 200},
		{"no number", strings.ReplaceAll(good, `"2"`, `"two"`) + "}", "two", 200},
		{"a number for a text", strings.ReplaceAll(good, `"2"`, `2`) + "}", "no text", 200},
		{"an object for a vector", `{"status":"success","data":{"resultType":"vector","result":{"a":1}}}`, "another shape", 200},
		{"an error", `{"status":"error","errorType":"bad_data","error":"line\none"}`, "bad_data: line one", 200},
		{"too much", `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`, "too many samples: recording rules", 422},
		{"no access", "who are you", "401 Unauthorized: who are you: see user", 401},
		{"not found", "", "404", 404},
		{"a long text", strings.Repeat("x\x1b[31m", 10000), "…", 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}, Access{})
			_, err := s.Query(context.Background(), "x", time.Now())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 500 || fault.Of(err) != fault.Input {
				t.Errorf("%v", err)
			}
		})
	}
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, good+`,"warnings":["PromQL info: x"]}`)
	}, Access{})
	if list, err := s.Query(context.Background(), "x", time.Now()); err != nil || len(list) != 1 || list[0].Value != 2 || list[0].Labels["node"] != "x" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestHugeAnswer: an answer without an end is given up.
func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it sends 64 MiB")
	}
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","error":"`)
		for block := []byte(strings.Repeat("x", 1<<20)); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}, Access{})
	if _, err := s.Query(context.Background(), "x", time.Now()); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Error(err)
	}
}

// TestAccess: credentials are sent, and only to the address that was named.
func TestAccess(t *testing.T) {
	t.Parallel()
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = stolen || r.Header.Get("X-Scope-Orgid") != "" }))
	defer thief.Close()
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}, Access{Tenant: "a"})
	if _, err := s.Query(context.Background(), "x", time.Now()); err == nil || !strings.Contains(err.Error(), "redirects") || stolen {
		t.Errorf("%v, stolen %v", err, stolen)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hunter2\nx"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, a := range map[string]Access{"Bearer hunter2": {TokenFile: file}, "Basic bWU6aHVudGVyMg==": {User: "me", PasswordFile: file}} {
		got := ""
		s := answering(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		}, a)
		if _, err := s.Query(context.Background(), "x", time.Now()); err != nil || got != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	s = answering(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }, Access{Timeout: 20 * time.Millisecond})
	if _, err := s.Query(context.Background(), "x", time.Now()); err == nil || !strings.Contains(err.Error(), "timeout gives") {
		t.Error(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if s, err := Open(Access{URL: gone.URL}); err != nil {
		t.Error(err)
	} else if _, err := s.Query(context.Background(), "x", time.Now()); fault.Of(err) != fault.Machine || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	for _, bad := range []string{"", "localhost:9090", "ftp://x", "http://", "http://x?y=1", "http://[::1", "\x7f"} {
		if _, err := Open(Access{URL: bad}); fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if s, err := Open(Access{URL: "http://me:hunter2@x/p"}); err != nil || strings.Contains(s.String(), "hunter2") || s.header.Get("Authorization") == "" {
		t.Errorf("%v, %v", s, err)
	}
	for _, a := range []Access{{PasswordFile: "/nonexistent"}, {TokenFile: "/dev/null"}, {CAFile: file}, {CertFile: file, KeyFile: file}} {
		a.URL = "http://x"
		if _, err := Open(a); fault.Of(err) != fault.Input {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// TestTLS: a certificate is checked by --ca-file, and by nothing with --insecure.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a  Access
		ok bool
	}{{Access{}, false}, {Access{CAFile: ca}, true}, {Access{Insecure: true}, true}} {
		c.a.URL, c.a.Timeout = s.URL, time.Minute
		store, err := Open(c.a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = store.Query(context.Background(), "x", time.Now()); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.a, err)
		}
	}
}

// FuzzVector: whatever a store answers is read without a panic, or is an error.
func FuzzVector(f *testing.F) {
	for _, seed := range []string{
		`{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"cyclestack"},"value":[1764108000.123,"1"]}]}`,
		`{"resultType":"vector","result":[{"metric":{},"value":[1764108000,"NaN"]},{"metric":{},"value":[1764108000,"+Inf"]}]}`,
		`{"resultType":"scalar","result":[1764108000,"1"]}`, `{"resultType":"vector","result":null}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := vector(json.RawMessage(data))
		if err != nil && (len(list) > 0 || cut(err.Error()) == "") {
			t.Errorf("%d samples and %v", len(list), err)
		}
		if text := cut(string(data)); !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b\x7f") {
			t.Errorf("%q", text)
		}
	})
}

// TestRatio: the share and its error are those of the definition, host by host.
func TestRatio(t *testing.T) {
	n, q := []float64{}, []float64{}
	for i := range 40 {
		q = append(q, 100+float64(i*7%13))
		n = append(n, q[i]*(0.3+0.05*math.Sin(float64(i))))
	}
	sum := func(f func(i int) float64) (s float64) {
		for i := range q {
			s += f(i)
		}
		return s
	}
	w := &Whole{Q: sum(func(i int) float64 { return q[i] }), QQ: sum(func(i int) float64 { return q[i] * q[i] }), Hosts: 40}
	p := Part{N: sum(func(i int) float64 { return n[i] }), NN: sum(func(i int) float64 { return n[i] * n[i] }), NQ: sum(func(i int) float64 { return n[i] * q[i] }), Of: w}
	r := (&Node{Parts: []Part{p}}).Ratio()
	want := p.N / w.Q
	squares := sum(func(i int) float64 { return sq(n[i] - want*q[i]) })
	effective := w.Q * w.Q / w.QQ
	if e := math.Sqrt(squares*effective/(effective-1)) / w.Q; math.Abs(r.Value-want) > 1e-12 || math.Abs(r.Error-e) > 1e-9 || math.Abs(r.Freedom-effective+1) > 1e-9 {
		t.Errorf("%+v, want %g ± %g", r, want, e)
	}
	// The jackknife leaves out one host at a time, and needs no formula.
	jack := math.Sqrt(39.0 / 40 * sum(func(i int) float64 { return sq((p.N-n[i])/(w.Q-q[i]) - want) }))
	if math.Abs(r.Error-jack) > 0.02*jack {
		t.Errorf("%g, by the jackknife %g", r.Error, jack)
	}
	few := *w
	few.Hosts = 1
	p.Of = &few
	if r := (&Node{Parts: []Part{p}}).Ratio(); !math.IsNaN(r.Error) || r.Value != want {
		t.Errorf("of a single host %+v", r)
	}
	for _, bad := range []Part{{N: math.NaN(), Of: w}, {N: -1, Of: w}, {N: math.Inf(1), Of: w}, {N: 1, Of: &Whole{}}} {
		if r := (&Node{Parts: []Part{bad}}).Ratio(); !math.IsNaN(r.Value) {
			t.Errorf("%+v: %+v", bad, r)
		}
	}
}

// TestStudent: quantiles are those of published tables.
func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 9: 2.262, 30: 2.042, 1000: 1.962} {
		if got := student(freedom); math.Abs(got-want) > 0.001 {
			t.Errorf("%g: %g, want %g", freedom, got, want)
		}
	}
}

// TestQuestions: what means nothing is refused.
func TestQuestions(t *testing.T) {
	good := Options{By: "service", Range: time.Hour, Access: Access{URL: "http://x"}}
	for name, change := range map[string]func(*Options){
		"by":      func(o *Options) { o.By = `a"} or up{b="` },
		"by node": func(o *Options) { o.By = "node" },
		"range":   func(o *Options) { o.Range = 0 },
		"level":   func(o *Options) { o.Level = 9 },
		"where":   func(o *Options) { o.Where = []string{"service"} },
		"label":   func(o *Options) { o.Where = []string{`a{}=b`} },
		"at":      func(o *Options) { o.At = "yesterday" },
		"at NaN":  func(o *Options) { o.At = "NaN" },
		"prom":    func(o *Options) { o.Access.URL = "" },
		"before":  func(o *Options) { o.Before = time.Minute },
		"both":    func(o *Options) { o.Before, o.Against = 2*time.Hour, "version=canary" },
		"against": func(o *Options) { o.Against = "canary" },
	} {
		o := good
		change(&o)
		if _, err := Run(context.Background(), o); fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m, err := ParseMatch("where", `service!=a"}b`); err != nil || m.String() != `service!="a\"}b"` {
		t.Errorf("%s, %v", m, err)
	}
}
