// Package serve shows recordings to browsers over HTTP.
//
// A server answers requests whose Host is the address that it listens on. So a name that a
// foreign page has the browser resolve to this machine (DNS rebinding) reaches nothing. Other
// origins are refused too. On an address other than the loopback interface, paths begin with
// a token. Nothing can be written: a recording that is dropped onto a page is read, answered
// with its page, and forgotten.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	htm "html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/web"
)

// Options say what is served, and where.
type Options struct {
	Listen string   // address and port
	Files  []string // recordings
	// Page writes the page of a recording.
	Page func(w io.Writer, file string) error
	// Run runs a command of cyclestack on recordings.
	Run func(ctx context.Context, w io.Writer, command string, args ...string) error

	Live    *Live // what is counted now; nil for nothing
	Version string
	Command []string // that serves
}

// A Server is a server that listens.
type Server struct {
	o        Options
	listener net.Listener
	token    string // the first element of paths; "" on the loopback interface
	hosts    []string
	http     *http.Server
	dropping chan struct{} // one recording at a time
}

// New listens. A file that cannot be opened is an error of kind [fault.Input].
func New(o Options) (*Server, error) {
	for i, name := range o.Files {
		if strings.HasPrefix(name, "-") { // no flag
			o.Files[i] = "./" + name
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, fault.As(fault.Input, err)
		}
		f.Close()
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fault.As(fault.Machine, err)
	}
	s := &Server{o: o, listener: l, dropping: make(chan struct{}, 1)}
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(fault.As(fault.Machine, err), l.Close())
	}
	port := strconv.Itoa(int(at.Port()))
	if at.Addr().Unmap().IsLoopback() {
		s.hosts = []string{net.JoinHostPort("localhost", port), net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
	} else {
		var secret [24]byte
		if _, err := rand.Read(secret[:]); err != nil {
			return nil, errors.Join(fault.As(fault.Machine, err), l.Close())
		}
		s.token = base64.RawURLEncoding.EncodeToString(secret[:])
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	return s, nil
}

// URL is the address of the server, with its token.
func (s *Server) URL() string {
	path := "/"
	if s.token != "" {
		path += s.token + "/"
	}
	return "http://" + s.listener.Addr().String() + path
}

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	end := context.AfterFunc(ctx, func() { s.http.Close() })
	defer end()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fault.As(fault.Machine, err)
	}
	return nil
}

// refuse says why a request is not answered, "" if it is.
func (s *Server) refuse(r *http.Request) (why string, status int) {
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+dropPath):
		if why, status := foreign(r); why != "" {
			return why, status
		}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "only GET and HEAD: nothing can be written here", http.StatusMethodNotAllowed
	}
	switch {
	case s.hosts != nil && !slices.Contains(s.hosts, strings.ToLower(r.Host)):
		return "this server answers requests for " + s.hosts[1] + " only", http.StatusMisdirectedRequest
	}
	if origin := r.Header.Get("Origin"); origin != "" && strings.ToLower(origin) != "http://"+strings.ToLower(r.Host) {
		return "another origin", http.StatusForbidden
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return "another site", http.StatusForbidden
	}
	return "", 0
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Frame-Options", "DENY")
	if why, status := s.refuse(r); why != "" {
		http.Error(w, why, status)
		return
	}
	path := r.URL.Path
	if s.token != "" {
		given, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			http.Error(w, "the token is missing: use the address that was printed", http.StatusForbidden)
			return
		}
		path = "/" + rest
	}
	s.route(w, r, path)
}

// route answers a request for a path behind the token.
func (s *Server) route(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "/" && s.o.Live != nil && len(s.o.Files) == 0:
		s.live(w)
	case path == "/live" && s.o.Live != nil:
		s.live(w)
	case path == "/" && len(s.o.Files) == 1 && s.o.Live == nil:
		s.page(w, 0)
	case path == "/":
		s.list(w)
	case path == "/"+dropPath:
		s.drop(w, r)
	case path == "/compare":
		s.compare(w, r)
	case strings.HasPrefix(path, "/api/v1/"):
		s.api(w, r, strings.TrimPrefix(path, "/api/v1/"))
	case strings.HasPrefix(path, "/recordings/"):
		n, ok := s.number(strings.TrimPrefix(path, "/recordings/"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		s.page(w, n)
	default:
		http.NotFound(w, r)
	}
}

// page writes the page of a recording. Its own policy allows its script.
func (s *Server) page(w http.ResponseWriter, n int) {
	var b strings.Builder
	if err := s.o.Page(&b, s.o.Files[n]); err != nil {
		http.Error(w, page.Printable(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	html(w, b.String())
}

// html writes a page of package web.
func html(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", web.Policy(true)+"; frame-ancestors 'none'")
	_, _ = io.WriteString(w, web.Served(text))
}

// number reads the number of a recording.
func (s *Server) number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n < len(s.o.Files)
}

// live writes the page that follows what is counted.
func (s *Server) live(w http.ResponseWriter) {
	var b strings.Builder
	if err := s.o.Live.page(&b, s.o.Version, s.o.Command); err != nil {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Refresh", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	html(w, b.String())
}

// compare writes the page of a difference.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	old, ok := s.number(r.URL.Query().Get("old"))
	fresh, too := s.number(r.URL.Query().Get("new"))
	if !ok || !too {
		http.Error(w, "compare?old=N&new=N: numbers of recordings", http.StatusBadRequest)
		return
	}
	var b strings.Builder
	if err := s.o.Run(r.Context(), &b, "diff", "--format", web.Name, s.o.Files[old], "--", s.o.Files[fresh]); err != nil {
		http.Error(w, page.Printable(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	html(w, b.String())
}

// list writes the list of recordings.
func (s *Server) list(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'")
	fmt.Fprint(w, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Recordings</title></head><body><h1>Recordings</h1><ul>\n")
	for i, name := range s.o.Files {
		fmt.Fprintf(w, "<li><a href=\"recordings/%d\">%s</a></li>\n", i, htm.EscapeString(page.Printable(name)))
	}
	fmt.Fprint(w, "</ul>\n")
	if s.o.Live != nil {
		fmt.Fprint(w, "<p><a href=\"live\">what is counted now</a></p>\n")
	}
	for i := 1; i < len(s.o.Files); i++ {
		fmt.Fprintf(w, "<p><a href=\"compare?old=%d&amp;new=%d\">compare %s with %s</a></p>\n", i-1, i, htm.EscapeString(page.Printable(s.o.Files[i-1])), htm.EscapeString(page.Printable(s.o.Files[i])))
	}
	fmt.Fprint(w, "</body></html>\n")
}

// A recording is one in the list of recordings.
type recording struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Page string `json:"page"`
}

// recordings writes the list of recordings as JSON.
func (s *Server) recordings(w http.ResponseWriter) {
	list := []recording{}
	for i, name := range s.o.Files {
		list = append(list, recording{i, filepath.Base(name), fmt.Sprintf("recordings/%d", i)})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"schema": "cyclestack.recordings/v1", "recordings": list})
}
