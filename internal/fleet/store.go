package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
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

	"github.com/cyclestack/cyclestack/internal/fault"
)

// Bounds on what a store may answer.
const (
	answerMost  = 64 << 20 // bytes
	excerptMost = 4 << 10  // bytes of an answer that is an error
	secretMost  = 64 << 10 // bytes of a file with a password or a token
)

// Access says how a store is reached.
type Access struct {
	URL          string
	User         string // of basic authentication
	PasswordFile string
	TokenFile    string // with a bearer token
	Tenant       string // the header X-Scope-OrgID of Mimir, Cortex and Thanos
	CAFile       string // certificates to trust instead of the system's
	CertFile     string // the client's own certificate and its key
	KeyFile      string
	Insecure     bool // certificates are not checked
	Timeout      time.Duration
	Answered     func() // is called after each answer, by several goroutines; nil for none
}

// A Store is a Prometheus, or what has its HTTP API: Thanos, Mimir, VictoriaMetrics.
type Store struct {
	base   url.URL
	access Access
	header http.Header
	client *http.Client
}

// Open checks how the store is to be reached. Nothing is asked yet.
func Open(a Access) (*Store, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Optionf("prom", a.URL, "not the address of a store, such as http://localhost:9090")
	}
	s := &Store{base: *u, access: a, header: http.Header{}}
	password := ""
	if a.PasswordFile != "" {
		if password, err = secret(a.PasswordFile); err != nil {
			return nil, err
		}
	}
	user := url.UserPassword(a.User, password)
	if u.User != nil {
		user, s.base.User = u.User, nil
	}
	switch {
	case a.TokenFile != "":
		token, err := secret(a.TokenFile)
		if err != nil {
			return nil, err
		}
		s.header.Set("Authorization", "Bearer "+token)
	case a.User != "" || u.User != nil:
		p, _ := user.Password()
		r := http.Request{Header: s.header}
		r.SetBasicAuth(user.Username(), p)
	}
	if a.Tenant != "" {
		s.header.Set("X-Scope-OrgID", a.Tenant)
	}
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxResponseHeaderBytes = config, 64<<10
	s.client = &http.Client{
		Transport: transport,
		Timeout:   a.Timeout,
		// Credentials are for the address that the user named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// tls is the configuration of encrypted connections.
func (a *Access) tls() (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: a.Insecure, MinVersion: tls.VersionTLS12}
	if a.CAFile != "" {
		pem, err := os.ReadFile(a.CAFile)
		if err != nil {
			return nil, fault.As(fault.Input, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.Inputf("%s: no certificate in PEM", a.CAFile)
		}
	}
	if a.CertFile != "" || a.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
		if err != nil {
			return nil, fault.As(fault.Input, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// secret is the first line of a file.
func secret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fault.As(fault.Input, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, secretMost))
	if err != nil {
		return "", fault.As(fault.Input, err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	line = strings.TrimSpace(line)
	if line == "" {
		return "", fault.Inputf("%s: its first line is empty", file)
	}
	return line, nil
}

// String is the store's address without a password.
func (s *Store) String() string { return strings.TrimSuffix(s.base.String(), "/") }

// A Sample is one element of an instant vector.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// answer is a document of the HTTP API.
type answer struct {
	Status    string          `json:"status"`
	ErrorType string          `json:"errorType"`
	Error     string          `json:"error"`
	Data      json.RawMessage `json:"data"`
	Warnings  []string        `json:"warnings"`
	IsPartial bool            `json:"isPartial"`
}

// Query evaluates an expression at a time. Its value is an instant vector.
func (s *Store) Query(ctx context.Context, expr string, at time.Time) ([]Sample, error) {
	form := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	u := s.base.JoinPath("api/v1/query")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header = s.header.Clone()
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fault.Machinef("%s: %w", s, reason(err))
	}
	defer res.Body.Close()
	if s.access.Answered != nil {
		defer s.access.Answered()
	}
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return nil, fault.Inputf("%s: redirects to %q, which is not followed: name that address if it is the store's", s, cut(res.Header.Get("Location")))
	case res.StatusCode != http.StatusOK:
		return nil, s.refused(res)
	}
	body := &io.LimitedReader{R: res.Body, N: answerMost + 1}
	var a answer
	d := json.NewDecoder(body)
	if err := d.Decode(&a); err != nil {
		if body.N <= 0 {
			return nil, fault.Inputf("%s: an answer of more than %d MiB: ask for less, with %s or a lower %s", s, answerMost>>20, fault.Name("where"), fault.Name("level"))
		}
		return nil, fault.Inputf("%s: an answer that is not JSON, at byte %d: %w", s, answerMost+1-body.N, reason(err))
	}
	if err := s.judge(&a); err != nil {
		return nil, err
	}
	samples, err := vector(a.Data)
	if err != nil {
		return nil, fault.Inputf("%s: %w", s, err)
	}
	return samples, nil
}

// judge refuses answers that are errors or only a part. Remarks of newer versions
// on the expression begin with PromQL and are neither.
func (s *Store) judge(a *answer) error {
	if a.Status != "success" {
		return fault.Inputf("%s: %s: %s", s, cut(a.ErrorType), cut(a.Error))
	}
	if a.IsPartial {
		return fault.Inputf("%s: a partial answer, whose sums would be too small: a part of the store is out of reach", s)
	}
	for _, w := range a.Warnings {
		if !strings.HasPrefix(w, "PromQL ") {
			return fault.Inputf("%s: sums may be too small, as the store warns: %s", s, cut(w))
		}
	}
	return nil
}

// refused is the error of a response that has another status than 200.
func (s *Store) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, excerptMost))
	var a answer
	text := string(body)
	if json.Unmarshal(body, &a) == nil && a.Error != "" {
		text = a.Error
	}
	var hint error
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = fault.Errorf(": see %s, %s and %s", fault.Name("user"), fault.Name("bearer-token-file"), fault.Name("tenant"))
	case http.StatusNotFound:
		hint = errors.New(": the address may lack a path, such as /prometheus")
	case http.StatusUnprocessableEntity, http.StatusServiceUnavailable:
		hint = errors.New(": recording rules make the question smaller (docs/fleet.md)")
	}
	if hint == nil {
		return fault.Inputf("%s: %s: %s", s, res.Status, cut(text))
	}
	return fault.Inputf("%s: %s: %s%w", s, res.Status, cut(text), hint)
}

// reason is the cause of a client's error, without the query that it repeats.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return fault.Errorf("no answer in time: %s gives it more", fault.Name("timeout"))
		}
		return u.Err
	}
	return err
}

// cut is a store's text on one line, and not too long.
func cut(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// vector reads an instant vector.
func vector(data json.RawMessage) ([]Sample, error) {
	var v struct {
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric map[string]string  `json:"metric"`
			Value  [2]json.RawMessage `json:"value"`
		} `json:"result"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("an answer of another shape: %w", err)
	}
	if v.ResultType != "vector" {
		return nil, fmt.Errorf("an answer of type %q, not a vector", cut(v.ResultType))
	}
	list := make([]Sample, 0, len(v.Result))
	for _, r := range v.Result {
		var text string
		if err := json.Unmarshal(r.Value[1], &text); err != nil {
			return nil, errors.New("a value that is no text")
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil, fmt.Errorf("the value %q is no number", cut(text))
		}
		list = append(list, Sample{r.Metric, f})
	}
	return list, nil
}
