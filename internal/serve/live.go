package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/web"
	"github.com/cyclestack/cyclestack/report"
)

// Bounds of a live view.
const (
	kept        = 600 // accounts that a new client is shown
	clientsMost = 64
	behindMost  = 32 // events that a client may be behind
	heartbeat   = 15 * time.Second
)

// Live passes accounts on to clients, as they are made. It is a [report.Writer].
type Live struct {
	options report.Options

	mu      sync.Mutex
	header  report.Header
	head    []byte // of the document
	lines   [][]byte
	first   int // number of the first line kept
	clients map[*client]bool
	ended   bool

	buf  bytes.Buffer
	json report.Writer
}

// A client is a browser that follows.
type client struct {
	events chan event
}

type event struct {
	id   int
	data []byte
}

// NewLive returns a live view.
func NewLive(o report.Options) *Live { return &Live{options: o, clients: map[*client]bool{}} }

// Begin implements [report.Writer].
func (l *Live) Begin(h report.Header) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.json, err = report.New("json", &l.buf, l.options); err != nil {
		return err
	}
	if err := l.json.Begin(h); err != nil {
		return err
	}
	l.header, l.head = h, bytes.Clone(l.buf.Bytes())
	return nil
}

// Account implements [report.Writer].
func (l *Live) Account(a *account.Account) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
	if err := l.json.Account(a); err != nil {
		return err
	}
	line := bytes.Clone(bytes.TrimSpace(bytes.TrimPrefix(l.buf.Bytes(), []byte(","))))
	l.lines = append(l.lines, line)
	if len(l.lines) > kept {
		l.lines = l.lines[1:]
		l.first++
	}
	for c := range l.clients {
		select {
		case c.events <- event{l.first + len(l.lines) - 1, line}:
		default: // it is too slow, and told so when its events end
			delete(l.clients, c)
			close(c.events)
		}
	}
	return nil
}

// End implements [report.Writer].
func (l *Live) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for c := range l.clients {
		delete(l.clients, c)
		close(c.events)
	}
	return nil
}

// A snapshot is what has been counted up to a moment.
type snapshot struct {
	header report.Header
	head   []byte
	lines  [][]byte
	last   int // number of the newest account, -1 for none
}

func (l *Live) snapshot() snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return snapshot{l.header, l.head, l.lines[:len(l.lines):len(l.lines)], l.first + len(l.lines) - 1}
}

// write writes the accounts as one document.
func (s *snapshot) write(w io.Writer) error {
	if s.head == nil {
		return errNotYet
	}
	b := bytes.NewBuffer(bytes.Clone(s.head))
	for i, line := range s.lines {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteString("]}\n")
	_, err := b.WriteTo(w)
	return err
}

var errNotYet = fmt.Errorf("nothing has been counted yet: try again in a second")

// page writes the page that follows.
func (l *Live) page(w io.Writer, version string, command []string) error {
	s := l.snapshot()
	if len(s.lines) == 0 {
		return errNotYet
	}
	p := web.NewLive(w, "live")
	if err := p.Add(s.write); err != nil {
		return err
	}
	if err := p.Explain(l.options, s.header.CPU, s.header.Model); err != nil {
		return err
	}
	if err := p.About(web.About{Version: version, Command: command, Live: fmt.Sprintf("api/v1/live?since=%d", s.last)}); err != nil {
		return err
	}
	return p.Finish()
}

// follow makes a client, with what it has missed since an event.
func (l *Live) follow(since int) (*client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.clients) >= clientsMost {
		return nil, fmt.Errorf("there are %d clients already", clientsMost)
	}
	c := &client{make(chan event, behindMost)}
	if since >= 0 {
		from := max(since+1-l.first, len(l.lines)-behindMost, 0)
		for i := from; i < len(l.lines); i++ {
			c.events <- event{l.first + i, l.lines[i]}
		}
	}
	if l.ended {
		close(c.events)
		return c, nil
	}
	l.clients[c] = true
	return c, nil
}

// leave removes a client.
func (l *Live) leave(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients[c] {
		delete(l.clients, c)
		close(c.events)
	}
}

// over reports whether counting has ended.
func (l *Live) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// stream sends events until the client leaves, is too slow, or counting ends.
func (l *Live) stream(w http.ResponseWriter, r *http.Request) {
	since := -1
	for _, text := range []string{r.URL.Query().Get("since"), r.Header.Get("Last-Event-ID")} { // the later one after a break
		if id, err := strconv.Atoi(text); err == nil {
			since = id
		}
	}
	c, err := l.follow(since)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer l.leave(c)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) bool {
		if err := out.SetWriteDeadline(time.Now().Add(heartbeat)); err != nil {
			return false
		}
		_, err := io.WriteString(w, text)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 2000\n\n") {
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if !send(": still here\n\n") {
				return
			}
		case e, ok := <-c.events:
			if !ok {
				why := "slow"
				if l.over() {
					why = "ended"
				}
				send("event: " + why + "\ndata: {}\n\n")
				return
			}
			if !send(fmt.Sprintf("id: %d\nevent: account\ndata: %s\n\n", e.id, e.data)) {
				return
			}
		}
	}
}
