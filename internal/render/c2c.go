package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/c2c"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/report"
)

// SharedLines is a document: the cache lines that threads share.
type SharedLines struct {
	Label  string
	CPU    string
	Events []string
	Size   int                // of a line, bytes
	All    c2c.Counts         // of all accesses
	Others c2c.Counts         // of lines that there was no room for
	Lines  []*c2c.Line        // the shared ones, in order
	Detail int                // the line that is shown in detail
	Top    int                // how many lines are shown; 0 is those worth a line
	Code   map[int]SharedCode // by Place.First
	Unsure bool
	Notes  []counts.Note
}

// A SharedCode is what is known of a place: the code, and the data in the line.
type SharedCode struct {
	Function, Line, Data string
	Addr                 uint64
}

func init() {
	report.Register("text", writeShared)
	report.Register("json", func(w io.Writer, d *SharedLines, o report.Options) error { return page.JSON(w, sharedDocument(d, o)) })
	report.Register("csv", writeSharedCSV)
}

// Lines and places of a line that are shown if the user names no number.
const (
	sharedTop    = 6
	sharedPlaces = 6
)

func writeShared(w io.Writer, d *SharedLines, o report.Options) error {
	t := &latencyPage{page.New(w, o.Width, o.Color), o}
	head := fmt.Sprintf("%d shared cache lines of %d bytes, from %d loads and %d stores of %s", len(d.Lines), d.Size, d.All.Loads, d.All.Stores, strings.Join(d.Events, ", "))
	if d.Label != "" {
		head = d.Label + ", " + head
	}
	if d.CPU != "" {
		head += " on " + d.CPU
	}
	t.Paragraph("", head, 0, bold)
	if len(d.Lines) == 0 {
		t.Paragraph("", "no line is used by several threads while one writes it; no load found its line in another core's cache", 0, plain)
		return t.Flush()
	}
	t.Out.WriteByte('\n')
	shown := d.shown()
	rows := [][]string{{"share", "HITM", "remote", "peer", "loads", "stores", "threads", "sharing", "line", "data"}}
	for _, x := range d.Lines[:shown] {
		rows = append(rows, []string{percentOne(d.share(x)), whole(x.HITM()), whole(x.RemoteHITM + x.RemotePeer), whole(x.Peer()), whole(x.Loads), whole(x.Stores),
			strconv.Itoa(x.Threads), x.Sharing.String(), fmt.Sprintf("%#x", x.Addr), d.data(x)})
	}
	if d.All.Peer() == 0 {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 3, 4)
		}
	}
	t.columns(rows)
	t.Out.WriteByte('\n')
	t.detail(d, d.Lines[d.Detail])
	t.Out.WriteByte('\n')
	t.sharedNotes(d, shown)
	return t.Flush()
}

// shown is how many lines are shown.
func (d *SharedLines) shown() int {
	if d.Top > 0 {
		return min(d.Top, len(d.Lines))
	}
	return min(sharedTop, len(d.Lines))
}

// share is a line's part of the loads that found their line in another cache: modified
// there, or where no processor says that, in whatever state.
func (d *SharedLines) share(x *c2c.Line) float64 {
	if n := d.All.HITM(); n > 0 {
		return float64(x.HITM()) / float64(n)
	}
	return float64(x.Peer()) / float64(max(1, d.All.Peer()))
}

// data says what data a line holds.
func (d *SharedLines) data(x *c2c.Line) string {
	for _, p := range x.Places {
		if c, ok := d.Code[p.First]; ok && c.Data != "" {
			return c.Data
		}
	}
	return ""
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// columns prints a table whose last column takes the rest of the width.
func (t *latencyPage) columns(rows [][]string) {
	widths, last := page.Sizes(rows...), len(rows[0])-1
	for k, r := range rows {
		out := page.Aligned(r[:last], widths, gap, func(int) bool { return false })
		room := t.Width - page.Runes(out)
		out += page.Cut(page.Shorter(r[last], room), max(16, room))
		st := plain
		if k == 0 {
			st = faint
		}
		t.Out.WriteString(t.Paint(out, st) + "\n")
	}
}

// detail prints the places of a line: those of the most loads from other caches, and of
// the most stores, in the order of their offsets.
func (t *latencyPage) detail(d *SharedLines, x *c2c.Line) {
	t.Paragraph("", fmt.Sprintf("line %#x", x.Addr)+nodesOf(x.Nodes), 0, bold)
	rows := [][]string{{"offset", "HITM", "loads", "stores", "cycles", "threads", "code"}}
	for i, p := range x.Places {
		if i == sharedPlaces && t.o.Lines > 0 && d.Top == 0 {
			break
		}
		c := d.Code[p.First]
		code := c.Function
		if c.Line != "" && !strings.HasPrefix(c.Line, "0x") {
			code = c.Line + "  " + code
		} else {
			code = fmt.Sprintf("%#x  %s", p.IP, code)
		}
		cycles := ""
		if m := elsewhere(&p.Counts); m.N > 0 {
			cycles = strconv.FormatFloat(m.Value(), 'f', 0, 64)
		}
		rows = append(rows, []string{fmt.Sprintf("%#x", p.Offset), whole(p.HITM() + p.Peer()), whole(p.Loads), whole(p.Stores), cycles, strconv.Itoa(p.Threads), code})
	}
	t.columns(rows)
	if n := len(x.Places) - len(rows) + 1; n > 0 {
		t.Paragraph("left out", t.o.Hint(fmt.Sprintf("%d more places", n), counts.Fix{Action: counts.ShowMore}), latencyHang, plain)
	}
}

// elsewhere is the latency of loads from other caches, or if there is none of all loads.
func elsewhere(c *c2c.Counts) c2c.Mean {
	m := c2c.Mean{Sum: c.RemoteHITMCycles.Sum + c.LocalHITMCycles.Sum + c.PeerCycles.Sum, N: c.RemoteHITMCycles.N + c.LocalHITMCycles.N + c.PeerCycles.N}
	if m.N == 0 {
		return c.LoadCycles
	}
	return m
}

// nodesOf names NUMA nodes.
func nodesOf(nodes []int) string {
	if len(nodes) == 0 {
		return ""
	}
	var list []string
	for _, n := range nodes {
		list = append(list, strconv.Itoa(n))
	}
	return ", NUMA nodes " + strings.Join(list, " ")
}

// sharedNotes says what the figures are.
func (t *latencyPage) sharedNotes(d *SharedLines, shown int) {
	if n := len(d.Lines) - shown; n > 0 {
		t.Paragraph("left out", t.o.Hint(fmt.Sprintf("%d more lines", n), counts.Fix{Action: counts.ShowLines, Number: len(d.Lines)}), latencyHang, plain)
	}
	switch d.Lines[d.Detail].Sharing {
	case c2c.False:
		t.Paragraph("try", fmt.Sprintf("set the data of different threads apart by %d bytes: no thread uses bytes that another one writes", d.Size), latencyHang, plain)
	case c2c.Both:
		t.Paragraph("try", "set apart what threads do not share: some bytes are shared, and others only lie on the same line", latencyHang, plain)
	case c2c.True:
		t.Paragraph("try", "write less often, or give each thread data of its own: threads use the same bytes", latencyHang, plain)
	}
	var notes []string
	if d.Unsure {
		notes = append(notes, "the samples do not say how wide accesses are: sharing is judged by their first bytes")
	}
	if d.Others.Records > 0 {
		notes = append(notes, fmt.Sprintf("%d accesses are of lines that there was no room for", d.Others.Records))
	}
	notes = append(notes, "a sample counts once, whatever its period, as in perf c2c")
	for _, n := range append(notes, t.o.Texts(d.Notes)...) {
		t.Paragraph("note", n, latencyHang, plain)
	}
}

type jsonShared struct {
	Schema string       `json:"schema"`
	Label  string       `json:"label,omitempty"`
	CPU    string       `json:"cpu,omitempty"`
	Events []string     `json:"events"`
	Size   int          `json:"line_size"`
	All    c2c.Counts   `json:"all"`
	Lines  []sharedLine `json:"lines"`
	Notes  []string     `json:"notes,omitempty"`
}

type sharedLine struct {
	Address string        `json:"address"`
	PID     int           `json:"pid"`
	Data    string        `json:"data,omitempty"`
	Sharing string        `json:"sharing"`
	Share   page.Number   `json:"share"`
	Threads int           `json:"threads"`
	CPUs    int           `json:"cpus"`
	Nodes   []int         `json:"nodes"`
	Counts  c2c.Counts    `json:"counts"`
	Places  []sharedPlace `json:"places"`
}

type sharedPlace struct {
	Offset   int        `json:"offset"`
	PID      int        `json:"pid"`
	Code     string     `json:"code_address"`
	Function string     `json:"function"`
	Line     string     `json:"line,omitempty"`
	Threads  int        `json:"threads"`
	CPUs     int        `json:"cpus"`
	Nodes    []int      `json:"nodes"`
	Counts   c2c.Counts `json:"counts"`
}

func sharedDocument(d *SharedLines, o report.Options) any {
	doc := jsonShared{Schema: "cyclestack.c2c/v1", Label: d.Label, CPU: d.CPU, Events: d.Events, Size: d.Size, All: d.All, Lines: []sharedLine{}, Notes: o.Texts(d.Notes)}
	for i, x := range d.Lines {
		if d.Top > 0 && i >= d.Top {
			break
		}
		l := sharedLine{Address: fmt.Sprintf("%#x", x.Addr), PID: x.PID, Data: d.data(x), Sharing: x.Sharing.String(), Share: page.Number(d.share(x)), Threads: x.Threads, CPUs: x.CPUs,
			Nodes: x.Nodes, Counts: x.Counts}
		for _, p := range x.Places {
			c := d.Code[p.First]
			l.Places = append(l.Places, sharedPlace{p.Offset, p.PID, fmt.Sprintf("%#x", p.IP), c.Function, c.Line, p.Threads, p.CPUs, p.Nodes, p.Counts})
		}
		doc.Lines = append(doc.Lines, l)
	}
	return doc
}

// writeSharedCSV prints a line for each place in a shared line.
func writeSharedCSV(w io.Writer, d *SharedLines, _ report.Options) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"line", "sharing", "data", "offset", "pid", "code_address", "function", "source", "threads", "cpus", "loads", "stores", "local_hitm", "remote_hitm", "local_peer", "remote_peer", "store_l1_hit", "store_l1_miss", "store_na",
		"remote_hitm_cycles", "local_hitm_cycles", "peer_cycles", "load_cycles"}}
	mean := func(m c2c.Mean) string {
		if m.N == 0 {
			return ""
		}
		return plainFigure(m.Value())
	}
	for i, x := range d.Lines {
		if d.Top > 0 && i >= d.Top {
			break
		}
		for _, p := range x.Places {
			c := d.Code[p.First]
			row := []string{fmt.Sprintf("%#x", x.Addr), x.Sharing.String(), d.data(x), strconv.Itoa(p.Offset), strconv.Itoa(p.PID), fmt.Sprintf("%#x", p.IP), c.Function, c.Line, strconv.Itoa(p.Threads), strconv.Itoa(p.CPUs)}
			for _, n := range []int64{p.Loads, p.Stores, p.LocalHITM, p.RemoteHITM, p.LocalPeer, p.RemotePeer, p.StoreL1Hit, p.StoreL1Miss, p.StoreNA} {
				row = append(row, whole(n))
			}
			rows = append(rows, append(row, mean(p.RemoteHITMCycles), mean(p.LocalHITMCycles), mean(p.PeerCycles), mean(p.LoadCycles)))
		}
	}
	return out.WriteAll(rows)
}
