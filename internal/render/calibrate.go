package render

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/calibrate"
	"github.com/cyclestack/cyclestack/internal/page"
	"github.com/cyclestack/cyclestack/internal/penalties"
	"github.com/cyclestack/cyclestack/report"
)

// A Calibration is a document: what was measured of a machine.
type Calibration struct {
	*calibrate.Result
	// Wanted reports whether a model of the processor has a penalty's parameter: for the
	// toml format.
	Wanted func(penalties.Penalty) bool
	// Commands are those that measured, and that use the file: for the toml format.
	Commands [2]string
}

// writePenalties prints what was measured as a file of parameters (TOML). Those that
// Wanted does not want are left in as comments: a reader of the file refuses names
// that no model of the processor has.
func writePenalties(w io.Writer, r Calibration, _ report.Options) error {
	var b, rest strings.Builder
	fmt.Fprintf(&b, "# Penalties measured with %s on %s,\n# %s. To use them:\n#\n#\t%s\n",
		r.Commands[0], r.CPU, r.Time.Format("2006-01-02 15:04 MST"), r.Commands[1])
	for _, p := range r.Penalties() {
		switch {
		case p.Why != "":
			fmt.Fprintf(&rest, "# %s: %s\n", p.Name, p.Why)
		case r.Wanted(p) || p.Name == penalties.FlopPeak:
			fmt.Fprintf(&b, "\n# %s, ± %s %s\n", p.From, penaltyText(p.Error), p.Unit)
			for _, other := range p.Cases {
				fmt.Fprintf(&b, "# the event may also count: %s\n", other)
			}
			fmt.Fprintf(&b, "%s = %s\n", p.Name, penaltyText(p.Value))
		default:
			fmt.Fprintf(&rest, "# %s = %s %s, which no model of this processor asks for\n", p.Name, penaltyText(p.Value), p.Unit)
		}
	}
	if rest.Len() > 0 {
		b.WriteString("\n# Not here:\n" + rest.String())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// penaltyText is a penalty with as many digits as mean something, as TOML has
// numbers.
func penaltyText(v float64) string {
	if math.Abs(v) >= 1e5 {
		return strconv.FormatFloat(v, 'e', 3, 64)
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// writeCalibration prints what was measured for people.
func writeCalibration(w io.Writer, d Calibration, o report.Options) error {
	r := d.Result
	t := calibration{Page: page.New(w, o.Width, o.Color), r: r}
	t.heading()
	t.levels()
	t.plot()
	t.pages()
	t.costs()
	t.peak()
	t.bandwidth()
	t.loaded()
	for i, note := range r.Notes {
		label := ""
		if i == 0 {
			label = "note"
		}
		t.Paragraph(label, note, hang, plain)
	}
	return t.Flush()
}

type calibration struct {
	page.Page
	r *calibrate.Result
}

func (t *calibration) heading() {
	r := t.r
	about := []string{r.CPU, fmt.Sprintf("logical processor %d", r.Logical)}
	if r.Node > 0 {
		about = append(about, fmt.Sprintf("NUMA node %d", r.Node))
	}
	about = append(about, fmt.Sprintf("%s of %s", r.Pages, calibrate.Size(r.PageBytes)))
	if r.Quick {
		about = append(about, "quick")
	}
	t.Paragraph("", strings.Join(about, ", "), 0, bold)
	t.Out.WriteByte('\n')
	t.Paragraph("clock", fmt.Sprintf("%.3f GHz ± %.3f, by dependent additions", r.Clock.Value/1e9, r.Clock.Error/1e9), hang, plain)
	t.Out.WriteByte('\n')
}

// table prints rows of cells below a heading. The first column is aligned left, the
// others right; a row with a reason has it in place of them.
func (t *calibration) table(heading []string, rows []calibrationRow) {
	if len(rows) == 0 {
		return
	}
	all := [][]string{heading}
	for _, row := range rows {
		all = append(all, row.cells)
	}
	widths := page.Sizes(all...)
	cells := func(list []string) string {
		return strings.TrimRight(page.Aligned(list, widths, gap, func(i int) bool { return i == 0 }), " ")
	}
	t.Out.WriteString(t.Paint(cells(heading), faint) + "\n")
	for _, row := range rows {
		if row.why == "" {
			t.Out.WriteString(cells(row.cells) + "\n")
			continue
		}
		hang := indent + widths[0] + gap
		for i, l := range page.Wrap("– "+row.why, max(30, t.Width-hang)) {
			name := ""
			if i == 0 {
				name = row.cells[0]
			}
			t.Out.WriteString(strings.Repeat(" ", indent) + name + strings.Repeat(" ", hang-indent-page.Runes(name)) + t.Paint(l, dim) + "\n")
		}
	}
	t.Out.WriteByte('\n')
}

type calibrationRow struct {
	cells []string
	why   string
}

// short is a figure with three significant digits, or all before the point.
func short(n calibrate.Number) string {
	v := float64(n)
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case abs >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs < 0.005:
		return "0.00" // and not -0.00
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (t *calibration) levels() {
	var rows []calibrationRow
	for _, l := range t.r.Levels {
		rows = append(rows, calibrationRow{[]string{l.Name, short(l.Cycles), short(l.Error), short(l.Nanos), calibrate.Size(l.From) + " to " + calibrate.Size(l.To)}, l.Why})
	}
	t.table([]string{"latency of a load", "cycles", "±", "ns", "working sets"}, rows)
}

func (t *calibration) costs() {
	var rows []calibrationRow
	for _, f := range t.r.Costs {
		rows = append(rows, calibrationRow{[]string{f.Title, short(f.Value), short(f.Error)}, f.Why})
	}
	t.table([]string{"costs", "cycles", "±"}, rows)
}

// pages prints the extra cost of pages: a column for each curve.
func (t *calibration) pages() {
	heading := []string{"extra cycles by pages visited"}
	var counts []int
	for _, c := range t.r.PageCurves {
		name := calibrate.Size(c.PageBytes)
		if c.Stride > 1 {
			name += fmt.Sprintf(" × %d", c.Stride)
		}
		heading = append(heading, name)
		for _, p := range c.Points {
			if !slices.Contains(counts, p.Pages) && p.Pages&(p.Pages-1) == 0 {
				counts = append(counts, p.Pages)
			}
		}
	}
	slices.Sort(counts)
	var rows []calibrationRow
	for _, n := range counts {
		row := []string{strconv.Itoa(n)}
		for _, c := range t.r.PageCurves {
			text := ""
			if i := slices.IndexFunc(c.Points, func(p calibrate.PagePoint) bool { return p.Pages == n }); i >= 0 {
				text = short(c.Points[i].Cycles)
			}
			row = append(row, text)
		}
		rows = append(rows, calibrationRow{cells: row})
	}
	t.table(heading, rows)
}

func (t *calibration) bandwidth() {
	var rows []calibrationRow
	for _, f := range t.r.Bandwidth {
		threads := page.Several(f.Threads, "thread")
		rows = append(rows, calibrationRow{[]string{f.Title + ", " + threads, short(f.Value / 1e9), short(f.Error / 1e9)}, f.Why})
	}
	t.table([]string{"bandwidth (" + t.r.Vectors + ")", "GB/s", "±"}, rows)
}

func (t *calibration) peak() {
	if f := t.r.Peak; f != nil {
		t.table([]string{"floating point, 1 thread", "GFLOP/s", "±"}, []calibrationRow{{[]string{f.Title, short(f.Value / 1e9), short(f.Error / 1e9)}, f.Why}})
	}
}

func (t *calibration) loaded() {
	var rows []calibrationRow
	for _, l := range t.r.Loaded {
		name := "nothing else running"
		if l.Threads > 0 {
			name = page.Several(l.Threads, "thread") + " reading"
			if l.Share < 1 {
				name += fmt.Sprintf(" %s of the time", page.Percent(float64(l.Share)))
			}
		}
		rows = append(rows, calibrationRow{[]string{name, short(l.Bandwidth / 1e9), short(l.Cycles), short(l.Error), short(l.Nanos)}, l.Why})
	}
	t.table([]string{"loaded memory latency", "GB/s", "cycles", "±", "ns"}, rows)
}

// plotRows is the height of the picture of the curve, without its axis.
const plotRows = 14

// plot draws the curve of latencies: both axes are logarithmic, a column is a
// working set.
func (t *calibration) plot() {
	points := measuredPoints(t.r.Curve)
	if len(points) < 2 {
		return
	}
	low, high := cyclesRange(points)
	row := func(cycles float64) int {
		return int(math.Round(math.Log(cycles/low) / math.Log(high/low) * (plotRows - 1)))
	}
	columns := len(t.r.Curve)
	grid := make([][]rune, plotRows)
	for i := range grid {
		grid[i] = []rune(strings.Repeat(" ", columns))
	}
	for i, p := range t.r.Curve {
		if p.Why == "" {
			grid[row(float64(p.Cycles))][i] = '•'
		}
	}
	marks := map[int]string{}
	for _, c := range decades(low, high) {
		marks[row(c)] = strconv.FormatFloat(c, 'g', -1, 64)
	}
	t.Out.WriteString("  " + t.Paint("cycles", faint) + "\n")
	for i := plotRows - 1; i >= 0; i-- {
		label := marks[i]
		t.Out.WriteString(strings.Repeat(" ", 8-page.Runes(label)) + t.Paint(label+" │", faint) + strings.TrimRight(string(grid[i]), " ") + "\n")
	}
	axis, labels := plotAxis(t.r.Curve)
	t.Out.WriteString(strings.Repeat(" ", 9) + t.Paint("└"+axis, faint) + "\n")
	t.Out.WriteString(strings.Repeat(" ", 10) + t.Paint(labels, faint) + "\n\n")
}

// plotAxis returns the axis of working sets and the line of labels below it: every
// fourth octave, from 4 KiB.
func plotAxis(curve []calibrate.Point) (axis, labels string) {
	line, text := []rune(strings.Repeat("─", len(curve))), []rune{}
	for i, p := range curve {
		if octave := math.Log2(float64(p.Bytes) / 4096); octave == math.Trunc(octave) && int(octave)%4 == 0 {
			line[i] = '┬'
			text = append(text, []rune(strings.Repeat(" ", max(0, i-len(text))))...)
			text = append(text, []rune(calibrate.Size(p.Bytes))...)
		}
	}
	return string(line), string(text)
}

func measuredPoints(curve []calibrate.Point) []calibrate.Point {
	return slices.DeleteFunc(slices.Clone(curve), func(p calibrate.Point) bool { return p.Why != "" || p.Cycles <= 0 })
}

// cyclesRange returns the least and the most of some latencies, never the same.
func cyclesRange(points []calibrate.Point) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, p := range points {
		low, high = min(low, float64(p.Cycles)), max(high, float64(p.Cycles))
	}
	return low, max(high, 1.1*low)
}

// decades returns 1, 2, 5, 10, … as far as they are within a range.
func decades(low, high float64) []float64 {
	var list []float64
	for d := math.Pow(10, math.Floor(math.Log10(low))); d <= high; d *= 10 {
		for _, f := range []float64{1, 2, 5} {
			if v := d * f; v >= low && v <= high {
				list = append(list, v)
			}
		}
	}
	return list
}
