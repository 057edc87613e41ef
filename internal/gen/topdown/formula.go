package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
	"github.com/cyclestack/cyclestack/metric"
	"github.com/cyclestack/cyclestack/model"
)

// A converter rewrites the formulas of one metric file into those of a model,
// and notes what they name.
type converter struct {
	p       *processor
	fixes   fixes
	infos   map[string]info
	spelled spellings
	events  map[string]string // names of the core's events, by name in upper case
	latency latencies
	costs   *costs
	version string            // of the file
	atom    map[string]string // thresholds that the file leaves out, by node
	names   map[string]string // names of the metrics, by name in lower case
	tree    map[string]bool   // those of the main tree

	params []parameter   // latencies, in the order of their first use
	inputs []model.Input // events of inputs.csv, likewise
}

// percent reports whether the vendor's value of a metric's BaseFormula is a
// share multiplied by 100.
func (c *converter) percent(metric string) bool {
	return strings.HasPrefix(metric, "Bottleneck_") || c.infos[metric].percent
}

// formula returns a metric's formula in the spelling of the models.
func (c *converter) formula(m *vendorMetric) (string, error) {
	if m.addition != nil {
		return c.own(m.addition.Formula)
	}
	if whole := c.fixes.find(c.p.stem, m.MetricName, "formula"); len(whole) > 0 {
		return c.own(whole[0].To)
	}
	src := strings.Join(strings.Fields(m.BaseFormula), " ")
	for _, x := range c.fixes.find(c.p.stem, m.MetricName, "part") {
		if !strings.Contains(src, x.From) {
			return "", fmt.Errorf("its formula has no %q, as fixes.toml expects", x.From)
		}
		src = strings.ReplaceAll(src, x.From, x.To)
	}
	src = strings.ReplaceAll(src, fmt.Sprintf("( %d )", c.p.width), pipelineWidth)
	e, err := metric.Parse(src)
	if err != nil {
		return "", err
	}
	if e, err = c.spell(m, e); err != nil {
		return "", err
	}
	text, err := withoutFallback(e.String())
	if err != nil {
		return "", err
	}
	if text, err = canonical(text); err != nil {
		return "", err
	}
	if text, err = c.nameLatencies(m.MetricName, text); err != nil {
		return "", err
	}
	if c.percent(m.MetricName) {
		share, ok := c.share(text)
		if !ok {
			return "", fmt.Errorf("cannot tell how to divide it by 100: %s", text)
		}
		return canonical(share)
	}
	return text, nil
}

// pipelineWidth is the parameter that stands for the number of slots in a
// cycle. The vendor's formulas have the number, alone in parentheses.
const pipelineWidth = "Pipeline_Width"

// own returns a formula of fixes.toml, in the models' own spelling, and notes the inputs that
// it names.
func (c *converter) own(text string) (string, error) {
	e, err := metric.Parse(text)
	if err != nil {
		return "", err
	}
	for _, name := range e.Names() {
		if counted := c.spelled[[2]string{c.p.stem, strings.ToUpper(name)}]; counted != nil {
			c.addInput(model.Input{Name: name, Events: counted})
		}
	}
	return tidy(e.String()), nil
}

// spell replaces the names in the BaseFormula of a metric by those of the models.
// A fix may name an event to count instead.
func (c *converter) spell(m *vendorMetric, e *metric.Expr) (*metric.Expr, error) {
	optional := c.fixes.find(c.p.stem, m.MetricName, "optional")
	either := c.fixes.find(c.p.stem, m.MetricName, "either")
	hit := map[*fix]bool{}
	e, err := substitute(e, func(name string) (string, error) {
		text, err := c.name(m, name)
		if err != nil {
			return "", err
		}
		for _, x := range optional {
			if ok, _ := path.Match(x.From, name); ok {
				hit[x] = true
				text = fmt.Sprintf("(%s if has_event(%s) else 0)", text, text)
			}
		}
		for _, x := range either {
			if x.From != name {
				continue
			}
			hit[x] = true
			other, err := c.event(x.To)
			if err != nil {
				return "", err
			}
			c.addInput(model.Input{Name: x.Input, Events: []string{text, other}, About: strings.TrimSpace(x.About)})
			text = x.Input
		}
		return text, nil
	})
	for _, x := range slices.Concat(optional, either) {
		if err == nil && !hit[x] {
			err = fmt.Errorf("its formula has no %q, as fixes.toml expects", x.From)
		}
	}
	return e, err
}

// substitute replaces the names of a formula by what f says they are.
func substitute(e *metric.Expr, f func(name string) (string, error)) (*metric.Expr, error) {
	var failed error
	out := e.Substitute(func(name string) *metric.Expr {
		text, err := f(name)
		if err == nil {
			var sub *metric.Expr
			if sub, err = metric.Parse(text); err == nil {
				return sub
			}
		}
		if failed == nil {
			failed = err
		}
		return nil
	})
	return out, failed
}

// name returns what a name in the BaseFormula of a metric is in the models.
func (c *converter) name(m *vendorMetric, name string) (string, error) {
	switch name {
	case pipelineWidth:
		return name, nil
	case "smt_on":
		return "#smt_on", nil
	case "num_cpus":
		return "#num_cpus_online", nil
	case "tsc":
		return "TSC", nil
	case "duration_time": // in seconds here, in nanoseconds in the models
		if _, ok := c.names["info_system_time"]; ok && m.MetricName != "Info_System_Time" {
			return "Info_System_Time", nil
		}
		return "duration_time / 1000000000", nil
	}
	if lower, ok := strings.CutPrefix(name, "tma_"); ok {
		other, ok := c.names[lower]
		if !ok {
			return "", fmt.Errorf("there is no metric %s", name)
		}
		if c.percent(other) && !c.percent(m.MetricName) {
			return "100 * " + other, nil
		}
		return other, nil
	}
	return c.event(name)
}

// event returns an event with its modifiers in the spelling of the models.
func (c *converter) event(name string) (string, error) {
	upper := strings.ToUpper(name)
	if counted := c.spelled[[2]string{c.p.stem, upper}]; counted != nil {
		in := model.Input{Name: strings.NewReplacer(".", "_", ":", "_", "=", "_").Replace(name), Events: counted}
		in.Name = strings.ToUpper(in.Name)
		if strings.HasSuffix(upper, ":ONE_UNIT") {
			in.About = "one of them, not the sum of all"
		}
		c.addInput(in)
		return in.Name, nil
	}
	base, mods, _ := strings.Cut(name, ":")
	event, ok := c.events[strings.ToUpper(base)]
	if !ok {
		if !strings.HasPrefix(upper, "PERF_METRICS.") {
			return "", fmt.Errorf("there is no event %s", name)
		}
		event = strings.ToUpper(base)
	}
	for mod := range strings.SplitSeq(mods, ":") {
		switch {
		case mod == "" || mod == "perf_metrics":
		case strings.EqualFold(mod, "sup"):
			event += ":k"
		case strings.EqualFold(mod, "user"):
			event += ":u"
		case mod == "retire_latency":
			return c.retireLatency(event), nil
		case field.MatchString(mod):
			event += ":" + mod
		default:
			return "", fmt.Errorf("%s: the modifier %q is not known", name, mod)
		}
	}
	return event, nil
}

// field are the modifiers that set a field of an event's code.
var field = regexp.MustCompile(`^(c|i|e|eq)\d+$|^u0x[0-9a-f]+$|^ocr_msr_val=0x[0-9a-f]+$`)

func (c *converter) addInput(in model.Input) {
	if !slices.ContainsFunc(c.inputs, func(have model.Input) bool { return have.Name == in.Name }) {
		c.inputs = append(c.inputs, in)
	}
}

// retireLatency returns the parameter for the mean retire latency of an event.
func (c *converter) retireLatency(event string) string {
	par := parameter{Parameter: model.Parameter{Name: "Retire_Latency_" + strings.ReplaceAll(event, ".", "_"), Unit: "cycles", About: "mean retire latency of " + event, Min: new(float64)}}
	if v, ok := c.latency.means[event]; ok {
		par.Value = &v
		par.Source = c.latency.source
	}
	if !slices.ContainsFunc(c.params, func(have parameter) bool { return have.Name == par.Name }) {
		c.params = append(c.params, par)
	}
	return par.Name
}

// fallback is the choice that the vendor makes where a retire latency may not
// be known.
var fallback = regexp.MustCompile(` if Retire_Latency_\w+ >= 0 else `)

// withoutFallback reduces each "min(x, y) if latency >= 0 else y" of a formula to
// the min. A parameter that nobody gave is unknown, and so is every value that
// needs it.
func withoutFallback(s string) (string, error) {
	for {
		at := fallback.FindStringIndex(s)
		if at == nil {
			return s, nil
		}
		from, to := enclosing(s, at[0])
		x, _, y, ok := cutIf(s[from:to])
		args, isMin := strings.CutPrefix(x, "min(")
		if !ok || !isMin || !strings.HasSuffix(args, ", "+y+")") {
			return "", fmt.Errorf("a choice by a retire latency that is not known: %s", s[from:to])
		}
		s = s[:from] + x + s[to:]
	}
}

// enclosing returns where what is between the innermost parentheses around a
// byte of s begins and ends.
func enclosing(s string, at int) (from, to int) {
	depth := 0
	for from = at; from > 0; from-- {
		if c := s[from-1]; c == ')' {
			depth++
		} else if c == '(' {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	depth = 0
	for to = at; to < len(s); to++ {
		if s[to] == '(' {
			depth++
		} else if s[to] == ')' {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	return from, to
}

// tidy writes round large numbers as powers of ten, and drops the detour over
// percent in "100 * x * … / 100".
func tidy(s string) string {
	s = strings.ReplaceAll(s, `:ocr_msr_val\=`, ":ocr_msr_val=") // an equals sign in a modifier needs no backslash
	for zeros := 9; zeros >= 6; zeros-- {
		s = regexp.MustCompile(`(^|[ (])1`+strings.Repeat("0", zeros)+`\b`).ReplaceAllString(s, fmt.Sprintf("${1}1e%d", zeros))
	}
	if rest, ok := strings.CutPrefix(s, "100 * Bottleneck_"); ok && strings.HasSuffix(rest, " / 100") {
		s = "Bottleneck_" + strings.TrimSuffix(rest, " / 100")
	}
	return s
}

// canonical returns a formula as metric prints it.
func canonical(s string) (string, error) {
	e, err := metric.Parse(s)
	if err != nil {
		return "", err
	}
	return tidy(e.String()), nil
}

// share returns the hundredth of a formula in canonical form, by leaving out
// its factors 100; false if it is not made of such.
func (c *converter) share(s string) (string, bool) {
	if x, cond, y, ok := cutIf(s); ok {
		x, ok1 := c.share(x)
		y, ok2 := c.share(y)
		return x + " if " + cond + " else " + y, ok1 && ok2
	}
	terms, signs := gen.SplitTop(s, " + ", " - ")
	var b strings.Builder
	for i, t := range terms {
		part, ok := c.shareOfTerm(t)
		if !ok {
			return "", false
		}
		if i > 0 {
			b.WriteString(signs[i-1])
		}
		b.WriteString(part)
	}
	return b.String(), true
}

// shareOfTerm is share for a formula without a sum at its top.
func (c *converter) shareOfTerm(t string) (string, bool) {
	if rest, ok := strings.CutPrefix(t, "100 * "); ok {
		return rest, true
	}
	if inner, ok := gen.InParentheses(t); ok {
		part, ok := c.share(inner)
		return "(" + part + ")", ok
	}
	if v, err := strconv.ParseFloat(t, 64); err == nil {
		return strconv.FormatFloat(v/100, 'g', -1, 64), true
	}
	return t, c.percent(t)
}

// cutIf takes "x if y else z" apart.
func cutIf(s string) (x, cond, y string, ok bool) {
	parts, _ := gen.SplitTop(s, " if ", " else ")
	if len(parts) < 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], strings.TrimPrefix(s, parts[0]+" if "+parts[1]+" else "), true
}

// legacy is the name of a metric in a threshold: "metric_TMA_....DRAM_Bound(%)".
var legacy = regexp.MustCompile(`metric_TMA_\.*(\w+)(?:\(%\))?`)

// comparison is that of a metric with a number, in canonical form.
var comparison = regexp.MustCompile(`(\w+) (<=|>=|<|>) (\d+(?:\.\d+)?)`)

// threshold returns a metric's threshold in the spelling of the models, with
// everything that its ancestors' say too.
func (c *converter) threshold(m *vendorMetric) (string, error) {
	if m.addition != nil {
		return canonical(m.addition.Threshold)
	}
	src := strings.Join(strings.Fields(m.Threshold.BaseFormula), " ")
	if own := c.fixes.find(c.p.stem, m.MetricName, "threshold"); len(own) > 0 {
		if src != own[0].From {
			return "", fmt.Errorf("its threshold is %q, and not %q as fixes.toml expects", src, own[0].From)
		}
		return own[0].To, nil
	}
	if src == "" {
		return c.atom[m.MetricName], nil
	}
	e, err := metric.Parse(legacy.ReplaceAllString(src, "$1"))
	if err != nil {
		return "", fmt.Errorf("threshold: %w", err)
	}
	for _, name := range e.Names() {
		if c.names[strings.ToLower(name)] != name {
			return "", fmt.Errorf("threshold: there is no metric %s", name)
		}
	}
	text := comparison.ReplaceAllStringFunc(e.String(), func(s string) string {
		f := comparison.FindStringSubmatch(s)
		v, _ := strconv.ParseFloat(f[3], 64) // digits with a point at most
		if c.tree[f[1]] || c.percent(f[1]) {
			v /= 100
		}
		return f[1] + " " + f[2] + " " + strconv.FormatFloat(v, 'f', -1, 64)
	})
	// Thresholds that hang on the width have it in sums and quotients.
	width := strconv.Itoa(c.p.width)
	text = strings.NewReplacer("/ "+width+" >", "/ "+pipelineWidth+" >", "< "+width+" *", "< "+pipelineWidth+" *").Replace(text)
	return tidy(text), nil
}

// withoutParent leaves out of a threshold what its parent's, which is asked
// first, says already. A threshold that says nothing of what the parent's does
// stands by itself.
func withoutParent(own, parent string) (left string, standalone bool) {
	if parent == "" || own == "" {
		return own, false
	}
	implied, _ := gen.SplitTop(parent, " & ")
	asked := len(implied)
	terms, _ := gen.SplitTop(own, " & ")
	var others []string
	for _, t := range terms {
		if slices.Contains(implied, t) {
			implied = slices.DeleteFunc(implied, func(s string) bool { return s == t })
			continue
		}
		others = append(others, t)
	}
	if len(implied) > 0 || len(others) == 0 {
		return own, len(implied) == asked // it says something else
	}
	return strings.Join(others, " & "), false
}
