// Package top is a live view for terminals: the tree of what is counted now, or its parts,
// with their course over the last minutes.
//
// It draws with tcell, which waits for events. So an idle view costs no processor time,
// unlike libraries that draw at a fixed rate.
package top

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/gdamore/tcell/v2"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// history is the number of intervals whose values are kept.
const history = 120

// usualLevel is the depth of the tree at first.
const usualLevel = 3

// A View is the state of what is shown. It is a [report.Writer] of accounts of intervals.
type View struct {
	options report.Options
	Name    string // of what is counted
	Keep    func(print func(io.Writer) error) (name string, err error)

	mu     sync.Mutex
	header report.Header
	json   report.Writer
	buf    bytes.Buffer
	head   []byte
	now    []part           // of the newest interval
	past   map[string][]row // by part: the values of its nodes, the newest last
	start  float64
	wake   func()

	paused   bool
	list     bool // the parts are shown, not the tree of one
	selected int
	level    int
	of       string // the part whose tree is shown
	message  string
}

// A part is the account of a scope, copied.
type part struct {
	key      string
	label    string
	duration float64
	nodes    []node
	line     []byte // as JSON
}

type node struct {
	path, name, value, err   string
	level                    int
	share                    float64 // that its bar shows; NaN for none
	reliable, flagged, onWay bool
}

// A row has the values of a part's nodes at one time.
type row map[string]float64

// New returns a view of accounts with so many levels.
func New(name string, o report.Options) *View {
	return &View{Name: name, options: o, level: cmp.Or(o.Level, usualLevel), past: map[string][]row{}, wake: func() {}}
}

// Begin implements [report.Writer].
func (v *View) Begin(h report.Header) (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json, err = report.New("json", &v.buf, v.options); err != nil {
		return err
	}
	v.header = h
	v.buf.Reset()
	if err := v.json.Begin(h); err != nil {
		return err
	}
	v.head = bytes.Clone(v.buf.Bytes())
	return nil
}

// Account implements [report.Writer].
func (v *View) Account(a *account.Account) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.buf.Reset()
	if err := v.json.Account(a); err != nil {
		return err
	}
	p := copied(a)
	p.line = bytes.Clone(bytes.TrimSpace(bytes.TrimPrefix(v.buf.Bytes(), []byte(","))))
	values := row{}
	for i, n := range a.Model().Nodes {
		values[n.Path] = a.Nodes[i].Value
	}
	list := append(v.past[p.key], values)
	v.past[p.key] = list[max(0, len(list)-history):]
	if v.paused {
		return nil
	}
	if a.Start != v.start {
		v.now, v.start = nil, a.Start
	}
	v.now = append(v.now, p)
	v.wake()
	return nil
}

// End implements [report.Writer].
func (v *View) End() error { return nil }

// copied copies what is shown of an account, which is reused.
func copied(a *account.Account) part {
	m := a.Model()
	p := part{duration: a.Duration, label: page.Printable(a.Scope.Label), key: key(a)}
	if p.label == "" || a.Scope.Kind == counts.Interval {
		p.label = page.Printable(a.Label)
	}
	section := tree(a)
	for i := range m.Nodes {
		n, val := &m.Nodes[i], &a.Nodes[i]
		if n.Section != section {
			continue
		}
		out := node{path: n.Path, name: n.Name, level: n.Level, value: "–", share: math.NaN(), reliable: val.Reliable(), flagged: val.Flagged, onWay: slices.Contains(a.Bottleneck, i)}
		if val.Known() {
			out.value = page.Figure(m, i, val.Value)
			root := i
			for !m.Share(i) && m.Nodes[root].Above >= 0 {
				root = m.Nodes[root].Above
			}
			out.share = val.Value
			if !m.Share(i) { // of the highest node
				out.share /= a.Nodes[root].Value
			}
			if !math.IsNaN(val.Error) {
				out.err = page.Figure(m, i, val.Error)
			}
		}
		p.nodes = append(p.nodes, out)
	}
	return p
}

// tree is the section of the nodes that are shown: that of the main tree if a node of it is
// known, else the first with a known node. Threads of the whole machine are not known.
func tree(a *account.Account) string {
	first := ""
	for i := range a.Nodes {
		switch s := a.Model().Nodes[i].Section; {
		case !a.Nodes[i].Known():
		case s == "":
			return ""
		case first == "" && a.Model().Nodes[i].Above >= 0: // of a tree, no single figure
			first = s
		}
	}
	return first
}

// key identifies a scope over intervals.
func key(a *account.Account) string {
	s := &a.Scope
	if s.Kind == counts.Interval {
		return ""
	}
	return fmt.Sprint(s.Kind, s.Label, s.CPU, s.PID, s.TID, s.Cgroup)
}

// Run shows the view until the user ends it, or stop is closed.
func (v *View) Run(screen tcell.Screen, stop <-chan struct{}) error {
	v.mu.Lock()
	v.wake = func() { _ = screen.PostEvent(tcell.NewEventInterrupt(nil)) }
	v.mu.Unlock()
	go func() {
		<-stop
		_ = screen.PostEvent(tcell.NewEventInterrupt(stop))
	}()
	v.draw(screen)
	for {
		switch e := screen.PollEvent().(type) {
		case nil: // the screen has ended
			return nil
		case *tcell.EventResize:
			screen.Sync()
		case *tcell.EventInterrupt:
			if e.Data() != nil {
				return nil
			}
		case *tcell.EventError:
			return e
		case *tcell.EventKey:
			if v.key(e) {
				return nil
			}
		}
		v.draw(screen)
	}
}

// key does what a key asks for, and reports whether that is the end.
func (v *View) key(e *tcell.EventKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.message = ""
	switch e.Key() {
	case tcell.KeyCtrlC, tcell.KeyCtrlD:
		return true
	case tcell.KeyDown:
		v.selected++
	case tcell.KeyUp:
		v.selected = max(0, v.selected-1)
	case tcell.KeyPgDn:
		v.selected += 10
	case tcell.KeyPgUp:
		v.selected = max(0, v.selected-10)
	case tcell.KeyEnter:
		if v.list && v.selected < len(v.now) {
			v.of, v.list, v.selected = v.now[v.selected].key, false, 0
		}
	case tcell.KeyEscape:
		v.list, v.selected = len(v.now) > 1, 0
	case tcell.KeyTab:
		v.list, v.selected = !v.list, 0
	case tcell.KeyRune:
		return v.letter(e.Rune())
	}
	return false
}

func (v *View) letter(r rune) bool {
	switch r {
	case 'q':
		return true
	case 'p', ' ':
		v.paused = !v.paused
	case '+':
		v.level = min(9, v.level+1)
	case '-':
		v.level = max(1, v.level-1)
	case 'j':
		v.selected++
	case 'k':
		v.selected = max(0, v.selected-1)
	case 'w':
		v.message = v.keep()
	}
	return false
}

// keep writes what is seen as a document of accounts.
func (v *View) keep() string {
	if len(v.now) == 0 || v.Keep == nil {
		return "there is nothing to keep yet"
	}
	name, err := v.Keep(func(w io.Writer) error {
		b := bytes.NewBuffer(bytes.Clone(v.head))
		for i, p := range v.now {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(p.line)
			b.WriteByte('\n')
		}
		b.WriteString("]}\n")
		_, err := b.WriteTo(w)
		return err
	})
	if err != nil {
		return err.Error()
	}
	return "kept as " + name
}

// Styles say more than their colours: terminals may have none.
var (
	plainStyle = tcell.StyleDefault
	boldStyle  = tcell.StyleDefault.Bold(true)
	dimStyle   = tcell.StyleDefault.Dim(true)
	wayStyle   = tcell.StyleDefault.Bold(true).Foreground(tcell.ColorRed)
	barStyle   = tcell.StyleDefault.Foreground(tcell.ColorTeal)
)

// draw draws the view.
func (v *View) draw(s tcell.Screen) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Clear()
	width, height := s.Size()
	state := "q quits  p pauses  Tab parts  +/- depth  w keeps"
	if v.message != "" {
		state = v.message
	}
	put(s, 0, 0, width, v.title(), boldStyle)
	put(s, 0, height-1, width, state, dimStyle)
	switch {
	case len(v.now) == 0:
		put(s, 0, 2, width, "counting…", plainStyle)
	case v.list:
		v.drawList(s, width, height)
	default:
		v.drawTree(s, width, height)
	}
	s.Show()
}

// title is the first line.
func (v *View) title() string {
	parts := []string{v.Name}
	if v.header.CPU != nil {
		parts = append(parts, "on "+v.header.CPU.Name, v.header.Model.Name+" "+v.header.Model.Version)
	}
	if v.header.How != "" {
		parts = append(parts, v.header.How)
	}
	if v.paused {
		parts = append([]string{"PAUSED"}, parts...)
	}
	return page.Printable(strings.Join(parts, ", "))
}

// part returns the part whose tree is shown.
func (v *View) part() *part {
	for i := range v.now {
		if v.now[i].key == v.of {
			return &v.now[i]
		}
	}
	return &v.now[0]
}

const (
	nameWidth  = 32
	valueWidth = 10
	errorWidth = 9
)

func (v *View) drawTree(s tcell.Screen, width, height int) {
	p := v.part()
	put(s, 0, 1, width, p.label, dimStyle)
	var shown []node
	for _, n := range p.nodes {
		if strings.Count(n.path, ".")+1 <= v.level {
			shown = append(shown, n)
		}
	}
	room := height - 4
	v.selected = min(v.selected, max(0, len(shown)-1))
	from := max(0, min(v.selected-room/2, len(shown)-room))
	spark := max(0, width-nameWidth-valueWidth-errorWidth-24)
	for i, n := range shown[from:min(len(shown), from+room)] {
		y, style := 2+i, plainStyle
		switch {
		case n.onWay:
			style = wayStyle
		case !n.reliable:
			style = dimStyle
		case n.flagged:
			style = boldStyle
		}
		if from+i == v.selected {
			style = style.Reverse(true)
		}
		mark := ""
		if !n.reliable && n.value != "–" {
			mark = " ?"
		}
		if n.onWay {
			mark += " ◄"
		}
		put(s, 0, y, nameWidth, strings.Repeat("  ", strings.Count(n.path, "."))+n.name, style)
		put(s, nameWidth, y, valueWidth, fmt.Sprintf("%*s", valueWidth, n.value), style)
		put(s, nameWidth+valueWidth+1, y, errorWidth+3, plusMinus(n.err)+mark, style)
		put(s, nameWidth+valueWidth+errorWidth+4, y, 20, page.Bar(n.share, 1), barStyle)
		put(s, width-spark, y, spark, v.sparkline(p.key, n.path, spark), barStyle)
	}
	put(s, 0, height-2, width, fmt.Sprintf("%d of %d nodes, depth %d", len(shown), len(p.nodes), v.level), dimStyle)
}

func plusMinus(err string) string {
	if err == "" {
		return ""
	}
	return "± " + err
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// sparkline is the course of a node's value, a character for each interval.
func (v *View) sparkline(key, path string, width int) string {
	list := v.past[key]
	list = list[max(0, len(list)-width):]
	most := 0.0
	for _, r := range list {
		if x := r[path]; x > most {
			most = x
		}
	}
	var b strings.Builder
	for _, r := range list {
		x, ok := r[path]
		switch {
		case !ok || math.IsNaN(x) || most == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(blocks[max(0, min(len(blocks)-1, int(x/most*float64(len(blocks)))))])
		}
	}
	return b.String()
}

// drawList draws a line for each part.
func (v *View) drawList(s tcell.Screen, width, height int) {
	var heads []node
	for _, n := range v.now[0].nodes {
		if strings.Count(n.path, ".") < 1 {
			heads = append(heads, n)
		}
	}
	if len(heads) == 1 {
		for _, n := range v.now[0].nodes {
			if strings.Count(n.path, ".") == 1 {
				heads = append(heads, n)
			}
		}
	}
	const column = 12
	for k, n := range heads {
		put(s, nameWidth+k*column, 1, column, fmt.Sprintf("%*s", column, page.Cut(n.name, column-1)), dimStyle)
	}
	room := height - 4
	v.selected = min(v.selected, len(v.now)-1)
	from := max(0, min(v.selected-room/2, len(v.now)-room))
	for i, p := range v.now[from:min(len(v.now), from+room)] {
		style := plainStyle
		if from+i == v.selected {
			style = style.Reverse(true)
		}
		put(s, 0, 2+i, nameWidth, p.label, style)
		for k, h := range heads {
			for _, n := range p.nodes {
				if n.path == h.path {
					put(s, nameWidth+k*column, 2+i, column, fmt.Sprintf("%*s", column, n.value), style)
				}
			}
		}
	}
	put(s, 0, height-2, width, fmt.Sprintf("%d parts; Enter shows the tree of one", len(v.now)), dimStyle)
}

// put writes text into a part of a line.
func put(s tcell.Screen, x, y, width int, text string, style tcell.Style) {
	for _, r := range text {
		if width <= 0 {
			return
		}
		s.SetContent(x, y, r, nil, style)
		x++
		width--
	}
}
