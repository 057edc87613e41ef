package published

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/counts"
)

// A figure is a value that a file has.
type figure struct {
	when      string // the interval, as the file has it
	scope     counts.Scope
	path      []string
	unit      string  // as the file has it: "% Slots"
	value     float64 // as the file has it
	deviation float64 // one standard deviation of the value; 0 where not known
	mux       float64 // percent of the time; NaN where not known
	below     bool    // it is marked as below its threshold
	best      bool    // it is marked as the bottleneck
	idle      bool
}

// share reports whether a figure is in percent.
func (x *figure) share() bool { return strings.HasPrefix(x.unit, "%") }

// blank is a figure of the whole run that nothing is known of.
func blank() figure {
	return figure{scope: counts.RunScope(""), value: math.NaN(), mux: math.NaN()}
}

// A heading is that of a CSV table.
type heading struct {
	kind  string // the tool
	names []string
	sep   string
}

// headings are the known headings, each by two of its names.
var headings = []struct{ kind, a, b string }{
	{toplev, "Area", "Value"}, {toplev, "Area", "Node"}, {toplev, "Group", "Perf-event"}, {perfspect, "TS", "SKT"},
	{perfspect, "metric", "mean"}, {perfspect, "metrics", "avg"}, {perfspect, "metric", "CPU0"}, {perfspect, "metric", "SKT0"},
}

// headingOf reads a line that is a heading. Its names are separated by what ends the first.
func headingOf(line string) (h heading, ok bool) {
	end := strings.IndexFunc(line, func(c rune) bool { return !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') })
	if end <= 0 || line[end] == ' ' || line[end] >= 0x80 {
		return h, false
	}
	h.sep = line[end : end+1]
	h.names = split(line, h.sep)
	for _, known := range headings {
		if slices.Contains(h.names, known.a) && slices.Contains(h.names, known.b) {
			h.kind = known.kind
			return h, true
		}
	}
	return h, false
}

// split splits a line of CSV. Fields may be quoted.
func split(line, sep string) (fields []string) {
	begin, quoted := 0, false
	for at := 0; at <= len(line); at++ {
		switch {
		case at == len(line), !quoted && strings.HasPrefix(line[at:], sep):
			field := strings.Trim(strings.TrimSpace(line[begin:at]), `"`)
			fields = append(fields, strings.ReplaceAll(field, `""`, `"`))
			begin = at + len(sep)
			at = begin - 1
		case line[at] == '"':
			quoted = !quoted
		}
	}
	return fields
}

// A csvRow is a row of a CSV table.
type csvRow struct {
	figure
	name, event, area string
	group             int
	others            []int // columns of values, each of a scope or a figure by its name
}

// set takes a field. It reports whether it can be what its column says.
func (x *csvRow) set(i int, column, field string) bool {
	switch column {
	case "Timestamp", "TS":
		x.when = field
		_, ok := number(field)
		return ok || field == "" || field == summary
	case "CPUs", "CPU", "SKT", "CID":
		if field != "" && field != "NaN" {
			x.scope = scopeNamed(strings.TrimSuffix(strings.TrimSuffix(column, "s"), "CID") + field)
		}
	case "Area":
		x.area = field
	case "Node", "metric", "metrics":
		x.name = field
	case "Unit":
		x.unit, x.below = strings.CutSuffix(field, "<")
		x.unit = strings.TrimSpace(x.unit)
	case "Stddev", "STDDEV":
		if v, ok := number(field); ok {
			x.deviation = v
		}
	case "Multiplex", "MULTI":
		x.mux, _ = number(strings.Trim(field, "[ ]"))
	case "Bottleneck":
		x.best = field == "<=="
	case "Idle":
		x.idle = field == "Y"
	case "Group":
		x.group, _ = strconv.Atoi(field)
	case "Event", "Perf-event":
		x.event = cmp.Or(x.event, field)
	case "Value", "mean", "avg":
		x.value, _ = number(field)
	case "Description", "Sample", "Index", "Nodes", "min", "max", "stddev", "p95", "PID":
	default:
		x.others = append(x.others, i)
	}
	return true
}

// row takes a row of a CSV table. It reports whether there is a value in it.
func (r *Reader) row(h *heading, f []string) (any bool) {
	x := csvRow{figure: blank()}
	for i, column := range h.names {
		if !x.set(i, column, f[i]) {
			return false
		}
	}
	x.name = cmp.Or(x.name, x.area)
	if !math.IsNaN(x.value) {
		return r.value(h, &x, x.name)
	}
	for _, i := range x.others {
		name := x.name
		if x.value, _ = number(f[i]); name == "" {
			name = h.names[i]
		} else {
			x.scope = scopeNamed(h.names[i])
		}
		if x.unit = ""; h.kind == toplev && x.area != "" && !strings.HasPrefix(x.area, "Info") { // a share, and no percentage
			x.value, x.unit = 100*x.value, "%"
		}
		any = r.value(h, &x, name) || any
	}
	return any
}

// value takes a value of a row. It reports whether it is one.
func (r *Reader) value(h *heading, x *csvRow, name string) bool {
	switch {
	case math.IsNaN(x.value):
		return false
	case h.kind == perfspect:
		return r.metric(x.figure, name)
	case x.event != "":
		if x.value < 0 || x.group < 0 {
			return false
		}
		r.count(x.figure, x.group, x.event)
		return true
	case !isName(name):
		return false
	}
	x.path = strings.Split(name, ".")
	r.add(x.figure)
	return true
}

// metric takes a metric of PerfSpect. Names of nodes begin with two dots for each level above,
// and nodes come in the order of the tree. Other names may have a unit in parentheses.
func (r *Reader) metric(x figure, name string) bool {
	name = strings.TrimPrefix(name, "metric_")
	_, node, isNode := strings.Cut(name, "_")
	if isNode = isNode && strings.HasPrefix(name, "TMA") && strings.HasSuffix(node, "(%)"); isNode {
		node = strings.TrimSuffix(node, "(%)")
		bare := strings.TrimLeft(node, ".")
		r.above = append(r.above[:min((len(node)-len(bare))/2, len(r.above))], bare)
		x.path, x.unit = slices.Clone(r.above), "%"
		if isName(bare) {
			r.add(x)
		}
		return isName(bare)
	}
	x.unit = "1"
	if at := strings.LastIndex(name, "("); at >= 0 && strings.HasSuffix(name, ")") && !strings.Contains(strings.TrimPrefix(name[at+1:], "in "), " ") {
		x.unit = strings.ReplaceAll(strings.TrimPrefix(name[at+1:len(name)-1], "in "), "/sec", "/s")
	}
	if strings.Contains(name, "%") {
		x.unit = "percent"
	}
	x.path = []string{strings.ReplaceAll(name, ".", " ")}
	if strings.TrimSpace(x.path[0]) != "" {
		r.add(x)
		return true
	}
	return false
}

// isName reports whether a text is a path of nodes.
func isName(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if part == "" || strings.Trim(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return false
		}
	}
	return true
}

// numberMost bounds figures. Counters have 64 bits at most, and no figure exceeds its counts.
const numberMost = 1 << 64

// number reads a number, with commas between its thousands or a percent sign; NaN if it is
// none.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.ReplaceAll(text, ",", ""), "%"), 64)
	if err != nil || math.Abs(v) > numberMost || math.IsNaN(v) || strings.ContainsAny(text, "xX_") {
		return math.NaN(), false
	}
	return v, true
}

// scopePattern matches the names of scopes: S0-C1-T0 or CPU3.
var scopePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:CPU(\d{1,6})|(?:S(\d{1,6}))?-?(?:C(\d{1,6}))?-?(T\d{1,6})?)`)
})

// scopeAt reads the scope that a text begins with. The text behind it is returned.
func scopeAt(text string) (s counts.Scope, behind string) {
	s = counts.RunScope("")
	m := scopePattern().FindStringSubmatch(text)
	if m == nil || m[1]+m[2]+m[3] == "" {
		return s, text
	}
	s.Label = m[0]
	for i, to := range []*int{&s.CPU, &s.Socket, &s.Core} {
		if v, err := strconv.Atoi(m[i+1]); err == nil {
			*to, s.Kind = v, []counts.Kind{counts.CPU, counts.Socket, counts.Core}[i]
		}
	}
	if m[4] != "" { // a logical processor, whose number is not in the file
		s.Kind = counts.CPU
	}
	return s, text[len(m[0]):]
}

// scopeNamed returns the scope of a name such as CPU0, SKT1 and CPUS0-C1, or else a cgroup's.
func scopeNamed(name string) counts.Scope {
	s, behind := scopeAt(strings.Replace(name, "SKT", "S", 1))
	if behind != "" {
		s, behind = scopeAt(strings.TrimPrefix(name, "CPU"))
	}
	if behind != "" && len(name) <= nameMost {
		s.Kind, s.Label, s.Cgroup = counts.Cgroup, name, name
	}
	return s
}

// textRow reads a row of toplev's text for people, of any version:
//
//	S0-C0    BE/Mem         Backend_Bound.Memory_Bound:     44.59 +-     0.00 % Slots       <==
//	 0.13 C0 BE    Backend_Bound   % Slots        53.8 <  [33.3%] +-  0.1<==
func textRow(line string) (figure, bool) {
	x, f := blank(), strings.Fields(line)
	if len(f) < 2 || len(line) > 4*nameMost {
		return x, false
	}
	if f[1] == "=" && f[len(f)-1] == "%" { // Frontend_Bound = … = 0.03 %
		v, ok := number(f[len(f)-2])
		x.path, x.value, x.unit = strings.Split(f[0], "."), v, "%"
		return x, ok && isName(f[0])
	}
	if _, ok := number(f[0]); ok && strings.Contains(f[0], ".") || f[0] == summary {
		x.when, f = f[0], f[1:]
	}
	if x.scope, f[0] = scopeAt(f[0]); f[0] == "" {
		f = f[1:]
	}
	at := slices.IndexFunc(f, func(s string) bool { _, ok := number(s); return ok })
	if at < 1 || at > 4 {
		return x, false
	}
	x.value, _ = number(f[at])
	if strings.HasSuffix(f[at], "%") {
		x.unit = "%"
		if at == 1 { // VTune's, without a column of areas
			return x, false
		}
	}
	name, unit := f[at-1], slices.Index(f[:at], "%")
	switch {
	case strings.HasSuffix(name, ":"):
		name = strings.TrimSuffix(name, ":")
	case unit > 0:
		name, x.unit = f[unit-1], strings.Join(f[unit:at], " ")
	case x.unit == "" && at > 1:
		name, x.unit = f[at-2], f[at-1]
	}
	name = strings.TrimPrefix(name, "...") // what the row above has too, with --abbrev
	x.path = strings.Split(name, ".")
	return x, isName(name) && x.flags(f[at+1:])
}

// flags reads what stands behind a value. It reports whether all is known.
func (x *figure) flags(f []string) bool {
	for i := 0; i < len(f); i++ {
		word, chosen := strings.CutSuffix(f[i], "<==")
		x.best = x.best || chosen
		v, ok := number(strings.Trim(word, "[]"))
		switch {
		case word == "", word == "[", word == "above", word == "mismeasured":
		case word == "<", word == "below":
			x.below = true
		case ok && strings.HasSuffix(word, "]"):
			x.mux = v
		case ok && i > 0 && f[i-1] == "+-":
			x.deviation = v
		case word == "+-" && i+1 < len(f):
		case word == "%":
			x.unit = "%"
		case isName(word) && !ok && (x.unit == "" || x.unit == "%"):
			x.unit = strings.TrimSpace(x.unit + " " + word)
		default:
			return false
		}
	}
	return true
}

// cpuName is the name of a processor for toplev's: its model, and its PMU.
func cpuName(name, pmu string) string {
	base, core, hybrid := strings.Cut(name, "-")
	switch {
	case base == "simple":
		return ""
	case strings.HasSuffix(pmu, "_atom"), hybrid && strings.Contains("grt cmt skt", core):
		return base + ":atom"
	case hybrid, strings.HasSuffix(pmu, "_core"):
		return base + ":core"
	}
	return base
}
