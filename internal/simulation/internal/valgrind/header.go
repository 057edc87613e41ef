package valgrind

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
)

// A header is the lines before the costs of a part.
type header struct {
	callgrind    bool // it has what only callgrind's format has
	creator      string
	command      string
	caches       []string // that were simulated
	cpu          string   // that was simulated; "" if the file does not say
	core         string   // the model of a core that timed it; likewise
	timed        string   // where the cycles of instructions come from
	sampling     string   // the relative errors of these, by event
	task         taskID
	lines        bool // costs have line numbers
	instructions bool // and addresses before them
	begun        bool // the part has costs
}

// A taskID identifies the process and thread of a part.
type taskID struct{ pid, thread int }

// A task is a thread, or a process, with the sums of its parts.
type task struct {
	id   taskID
	sums []float64 // by event
}

// maxTasks bounds the tasks that are kept.
const maxTasks = 1 << 14

// An ending compares the totals that the file states with its costs.
type ending struct {
	stated, missing int // parts that state them, and that do not
	differ          string
}

// head reads a line of a header, or the totals below the costs of a part.
func (r *Reader) head(key, value, all []byte) error {
	h := &r.header
	what := string(key)
	switch what {
	case "totals", "summary":
		return r.totals(what, value)
	}
	if headerKeys[what] && h.begun {
		r.endPart()
	}
	switch what {
	case "version":
		h.callgrind = true
		if v, _, ok := decimal(value); ok && v > 1 {
			return r.fault("version %d of the format is not known", v)
		}
	case "creator":
		h.creator = string(value)
	case "cmd":
		if h.command == "" { // of several processes the first
			h.command = string(value)
		}
	case "pid":
		return r.readNumber(&h.task.pid, value)
	case "thread":
		return r.readNumber(&h.task.thread, value)
	case "part":
	case "desc":
		r.describe(value)
	case "event":
		return r.define(value)
	case "positions":
		h.callgrind = true
		list := words(value)
		h.instructions = slices.Contains(list, "instr") || slices.Contains(list, "addr")
		h.lines = slices.Contains(list, "line")
		if !h.instructions && !h.lines {
			return r.fault("costs without positions: %s", quote(all))
		}
	case "events":
		return r.nameEvents(words(value))
	default:
		r.unknown.add(r.line, all)
	}
	return nil
}

func (r *Reader) readNumber(to *int, value []byte) error {
	v, _, ok := decimal(value)
	if !ok || v > 1<<31 {
		return r.fault("not a number: %s", quote(value))
	}
	*to = int(v)
	return nil
}

// beyondDescription is the description of Options.Beyond in files that cyclestack keeps.
const beyondDescription = "Third level share"

// cpuDescription is that of the processor in such files.
const cpuDescription = "Processor"

// coreDescription is that of the model of a core in such files.
const coreDescription = "Core"

// DescribeCore is the line of a file's header that names the model of a core.
func DescribeCore(name string) string { return "desc: " + coreDescription + ": " + name + "\n" }

// DescribeCPU is the line of a file's header that names the processor.
func DescribeCPU(id string) string { return "desc: " + cpuDescription + ": " + id + "\n" }

// describe reads a description: those of caches, and cyclestack's own.
func (r *Reader) describe(value []byte) {
	what, text, ok := bytes.Cut(value, []byte{':'})
	if share, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64); string(what) == beyondDescription && err == nil && share >= 0 && share <= 1 && r.opts.Beyond == 0 {
		r.beyond = share
	}
	if string(what) == cpuDescription && r.header.cpu == "" {
		r.header.cpu = counts.Name(string(bytes.TrimSpace(text)))
	}
	if string(what) == coreDescription && r.header.core == "" {
		r.header.core = counts.Name(string(bytes.TrimSpace(text)))
	}
	if string(what) == timedDescription && r.header.timed == "" {
		r.header.timed = counts.Name(string(bytes.TrimSpace(text)))
	}
	if string(what) == samplingDescription && r.header.sampling == "" {
		r.header.sampling = string(text)
	}
	// Caches that were not simulated have a description without a text.
	if text = bytes.TrimSpace(text); ok && len(text) > 0 && bytes.HasSuffix(what, []byte(" cache")) {
		line := strings.TrimSuffix(string(what), " cache") + " " + cacheText(string(text))
		if !slices.Contains(r.header.caches, line) && len(r.header.caches) < maxEvents {
			r.header.caches = append(r.header.caches, line)
		}
	}
}

// cacheText shortens a simulator's description of a cache, such as "32768 B, 64 B,
// 8-way associative".
func cacheText(text string) string {
	var c Cache
	text = strings.Join(strings.Fields(text), " ")
	if n, err := fmt.Sscanf(text, "%d B, %d B, %d-way", &c.Size, &c.Line, &c.Ways); n == 3 && err == nil {
		return c.String()
	}
	return text
}

// nameEvents reads the names of the events of a part.
func (r *Reader) nameEvents(events []string) error {
	if len(events) == 0 {
		return r.fault("no events are named")
	}
	r.columns = r.columns[:0]
	for _, e := range events {
		if r.header.sampling != "" && (e == formerWalkEvent || e == formerWalkEvent+ofUntimed) {
			e = strings.Replace(e, formerWalkEvent, walkEvent, 1)
		}
		c := r.column(e)
		if slices.Contains(r.columns, c) {
			return r.fault("the event %s is named twice", quote([]byte(e)))
		}
		r.columns = append(r.columns, c)
	}
	if len(r.events) > maxEvents {
		return r.fault("more than %d events", maxEvents)
	}
	for i, levels := range [...][2][]string{missEvents, storeMissEvents} {
		for level, names := range levels {
			r.misses[i][level] = slices.IndexFunc(events, func(e string) bool { return slices.Contains(names, e) })
		}
	}
	r.data = [2]int{slices.Index(events, "Dr"), slices.Index(events, "Dw")}
	r.lacks = slices.Index(events, untimed)
	r.costs = make([]float64, len(events))
	r.sums = append(r.sums, make([]float64, len(r.events)-len(r.sums))...)
	r.only = append(r.only, make([]float64, len(r.events)-len(r.only))...)
	r.places.widen(len(r.events))
	if r.also != nil {
		r.also.widen(len(r.events))
	}
	return nil
}

// endPart adds up the costs of a part, and prepares for the next.
func (r *Reader) endPart() {
	if !r.header.begun {
		return
	}
	r.header.begun = false
	if r.ended.stated == 0 {
		r.ended.missing++
	}
	r.ended.stated = 0
	t := r.current()
	t.sums = append(t.sums, make([]float64, len(r.events)-len(t.sums))...)
	for i, v := range r.sums {
		t.sums[i] += v
	}
	clear(r.sums)
	r.at.line, r.at.addr, r.call = 0, 0, false
}

// current returns the task that the part is of.
func (r *Reader) current() *task {
	id := r.header.task
	i := slices.IndexFunc(r.tasks, func(t task) bool { return t.id == id })
	switch {
	case i >= 0:
		return &r.tasks[i]
	case len(r.tasks) == maxTasks:
		return &r.tasks[maxTasks-1]
	}
	r.tasks = append(r.tasks, task{id: id})
	return &r.tasks[len(r.tasks)-1]
}

// totals compares the totals that a part states with its costs. Callgrind's summary comes
// before the costs, and includes those that are not finished.
func (r *Reader) totals(key string, value []byte) error {
	if key == "summary" && r.header.callgrind {
		return nil
	}
	r.ended.stated++
	for i, text := range words(value) {
		v, rest, ok := decimal([]byte(text))
		if !ok || len(rest) > 0 || i >= len(r.columns) {
			return r.fault("not totals of %d events: %s", len(r.columns), quote(value))
		}
		if got := r.sums[r.columns[i]]; got != float64(v) && r.ended.differ == "" {
			r.ended.differ = fmt.Sprintf("line %d says that %s is %d in all, and its lines have %s", r.line, r.events[r.columns[i]], v,
				strconv.FormatFloat(got, 'f', -1, 64))
		}
	}
	return nil
}

// short reports whether the file lacks counts that the simulator can make.
func (r *Reader) short() bool {
	has := func(event string) bool { return slices.Contains(r.events, event) }
	return has("Ir") && !(has("D1mr") && has("Bcm"))
}

// notes says what the table lacks.
func (r *Reader) notes() []counts.Note {
	var out []counts.Note
	add := func(format string, args ...any) { out = append(out, counts.Notef(format, args...)) }
	if r.short() {
		out = append(out, counts.Notef("caches and branches were not both simulated").With(counts.Fix{Action: counts.SimulateAll}))
	}
	if r.ended.missing > 0 && strings.HasPrefix(r.header.creator, "callgrind") || r.ended.missing > 0 && !r.header.callgrind {
		add("it ends before its totals: what valgrind counted last may be missing")
	}
	if r.ended.differ != "" {
		add("its totals are not what its lines sum to: %s", r.ended.differ)
	}
	if n := r.unknown.lines; n > 0 {
		add("%d lines were not understood: the first is line %d, %s", n, r.unknown.first, r.unknown.text)
	}
	if n := r.ob.lost + r.fl.lost + r.fn.lost; n > 0 {
		add("%d names are numbers that it does not explain", n)
	}
	if r.places.others >= 0 {
		add("there are too many places: the others are together")
	}
	if len(r.header.caches) > 0 {
		add("simulated caches: %s", strings.Join(r.header.caches, ", "))
	}
	if r.header.timed != "" {
		add("instructions and branches: %s", r.header.timed)
	}
	if share := r.untimed(); share > timedEnough {
		add("%.0f %% of the instructions were not timed by the model of the core: they are estimated from their number, misses and mispredictions", 100*share)
	}
	return out
}

// timedEnough is the share of instructions that may lack a rate without a note.
const timedEnough = 0.05

// untimed returns the share of the instructions without a rate, in files with rates.
func (r *Reader) untimed() float64 {
	all, lack := slices.Index(r.events, "Ir"), slices.Index(r.events, untimed)
	if all < 0 || lack < 0 {
		return 0
	}
	total := r.total()
	return total[lack] / total[all]
}

// total returns the sums of all tasks.
func (r *Reader) total() []float64 {
	total := make([]float64, len(r.events))
	for _, t := range r.tasks {
		for i, v := range t.sums {
			total[i] += v
		}
	}
	return total
}

// scopes returns the tasks to split by, or the one run.
func (r *Reader) scopes() ([]counts.Scope, [][]float64) {
	kind := counts.Run
	switch {
	case r.opts.By != counts.Run || r.opts.Only != nil:
	case r.keep.Has(counts.Thread):
		kind = counts.Thread
	case r.keep.Has(counts.Process):
		kind = counts.Process
	}
	if kind == counts.Run {
		if r.opts.Only != nil {
			return []counts.Scope{counts.RunScope("")}, [][]float64{r.only}
		}
		return []counts.Scope{counts.RunScope("")}, [][]float64{r.total()}
	}
	var scopes []counts.Scope
	var sums [][]float64
	for _, t := range r.tasks {
		s := counts.RunScope("")
		s.Kind, s.TID = kind, t.id.pid
		s.Label = fmt.Sprintf("process %d", t.id.pid)
		if kind == counts.Thread {
			s.TID, s.Label = t.id.thread, fmt.Sprintf("thread %d", t.id.thread)
		}
		t.sums = append(t.sums, make([]float64, len(r.events)-len(t.sums))...)
		scopes, sums = append(scopes, s), append(sums, t.sums)
	}
	return scopes, sums
}
