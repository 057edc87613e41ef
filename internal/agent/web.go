package agent

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A web is the HTTP server: /metrics, and what says that the agent lives.
type web struct {
	a        *Agent
	listener net.Listener
	server   *http.Server
	config   *webConfig
	secure   bool
	buffers  sync.Pool
	mu       sync.Mutex
	places   chan struct{} // of scrapes
	scrapes  []*scrape     // that are being answered, the oldest first
}

// A scrape is an answer that is being sent.
type scrape struct {
	out   *http.ResponseController
	ended atomic.Bool // it was told to end, for another one
}

// Bounds on what a client may take. A scraper that does not read has its connection closed.
const (
	mostScrapes  = 4
	mostClients  = 64
	placeTimeout = 5 * time.Second
	writeTimeout = 30 * time.Second
)

// newWeb listens.
func newWeb(a *Agent, address, config string) (*web, error) {
	c, err := readWebConfig(config)
	if err != nil {
		return nil, err
	}
	w := &web{a: a, config: c, places: make(chan struct{}, 2*mostScrapes)}
	if w.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fault.As(fault.Machine, err)
	}
	w.listener = &limited{w.listener, make(chan struct{}, mostClients)}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: writeTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 14, ErrorLog: log.New(io.Discard, "", 0)}
	if w.secure = c.secure(); w.secure {
		w.secured()
	}
	return w, nil
}

// url is the address of the metrics.
func (w *web) url() string {
	scheme := "http://"
	if w.secure {
		scheme = "https://"
	}
	return scheme + w.listener.Addr().String() + "/metrics"
}

// run serves until the context is done.
func (w *web) run(ctx context.Context) error {
	end := context.AfterFunc(ctx, func() { w.server.Close() })
	defer end()
	serve := w.server.Serve
	if w.secure {
		serve = func(l net.Listener) error { return w.server.ServeTLS(l, "", "") }
	}
	if err := serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
		return fault.As(fault.Machine, err)
	}
	return nil
}

// The types of content: OpenMetrics, and what Prometheus had before it.
const (
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
)

// ServeHTTP implements [http.Handler].
func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	h := out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	w.config.header(h)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(out, "only GET and HEAD", http.StatusMethodNotAllowed)
	case r.URL.Path == "/-/healthy":
		_, _ = out.Write([]byte("ok\n"))
	case !w.config.allows(r):
		h.Set("WWW-Authenticate", "Basic")
		http.Error(out, "Unauthorized", http.StatusUnauthorized)
	case r.URL.Path == "/":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = out.Write([]byte("<title>cyclestack agent</title><h1>cyclestack agent</h1><a href=/metrics>metrics</a>\n"))
	case r.URL.Path == "/metrics":
		w.metrics(out, r)
	default:
		http.NotFound(out, r)
	}
}

// metrics answers a scrape. The text is made before anything is sent, so that a slow reader
// holds no lock.
func (w *web) metrics(out http.ResponseWriter, r *http.Request) {
	own := w.enter(r.Context(), http.NewResponseController(out))
	if own == nil {
		http.Error(out, "too many scrapes at a time", http.StatusServiceUnavailable)
		return
	}
	defer w.leave(own)
	kept, ok := w.buffers.Get().(*[]byte)
	if !ok {
		kept = new([]byte)
	}
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	w.a.s.r.mu.Lock()
	if own.ended.Load() {
		w.a.s.r.mu.Unlock()
		return
	}
	if r.Method == http.MethodGet {
		w.a.s.r.read(host + " " + clean(r.UserAgent()))
	}
	buf := w.a.s.r.collect((*kept)[:0], open)
	w.a.s.r.mu.Unlock()
	defer func() {
		*kept = buf
		w.buffers.Put(kept)
	}()
	kind := plainText
	if open {
		kind = openMetrics
	}
	out.Header().Set("Content-Type", kind)
	out.Header().Set("Content-Length", strconv.Itoa(len(buf)))
	if r.Method == http.MethodGet {
		_, _ = out.Write(buf)
	}
}

// enter begins to answer a scrape. If there are too many, the oldest is ended: who does not
// read keeps no one else out. It waits for those that were told to end; nil if they do not.
func (w *web) enter(ctx context.Context, out *http.ResponseController) *scrape {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	select {
	case w.places <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.scrapes[:max(0, len(w.scrapes)-mostScrapes+1)] {
		if !s.ended.Swap(true) {
			_ = s.out.SetWriteDeadline(time.Now())
		}
	}
	own := &scrape{out: out}
	w.scrapes = append(w.scrapes, own)
	return own
}

// leave ends what enter began.
func (w *web) leave(own *scrape) {
	w.mu.Lock()
	w.scrapes = slices.DeleteFunc(w.scrapes, func(s *scrape) bool { return s == own })
	w.mu.Unlock()
	<-w.places
}

// A limited listener has at most so many connections. Others wait.
type limited struct {
	net.Listener
	room chan struct{}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	l.room <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, room: l.room}, nil
}

// A limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	room chan struct{}
	once sync.Once
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.room })
	return c.Conn.Close()
}
