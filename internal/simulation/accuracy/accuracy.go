package main

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

type options struct {
	half    string
	worst   int
	classes bool
	set     string
	mca     bool
	dump    bool
}

// A set is a column of a file of blocks: cycles on one core.
type set struct {
	name, file string
	column     string
	scale      float64 // of the column's unit to cycles
	cpu        string  // the core that is compared
	mcpu       string  // its name in llvm-mca
	loop       bool
	alias      bool // measured with all registers equal
	faultless  bool // only blocks that touched one page
	calm       bool // only measurements whose quartiles are within 1 % of the cycles
}

var sets = []set{
	{"Zen 4 loops, measured", "zen4-loop.csv", "cycles", 1, "amdzen4", "znver3", true, true, false, false},
	{"Zen 4 loops, undisturbed", "zen4-loop.csv", "cycles", 1, "amdzen4", "znver3", true, true, false, true},
	{"Zen 4 unrolled, no further pages, measured", "zen4-unrolled.csv", "cycles", 1, "amdzen4", "znver3", false, true, true, false},
	{"Zen 4 unrolled, measured", "zen4-unrolled.csv", "cycles", 1, "amdzen4", "znver3", false, true, false, false},
	{"Skylake loops, uiCA", "uica-loop.csv", "skl", 1, "skylake", "skylake", true, false, false, false},
	{"Skylake unrolled, uiCA", "uica-unrolled.csv", "skl", 1, "skylake", "skylake", false, false, false, false},
	{"Haswell unrolled, uiCA", "uica-unrolled.csv", "hsw", 1, "haswell", "haswell", false, false, false, false},
	{"Haswell unrolled, measured", "haswell-measured.csv", "cycles_per_100", 100, "haswell", "haswell", false, true, false, false},
}

// calm is the largest distance of the quartiles of an undisturbed measurement, in parts of its
// cycles. A neighbour on the same core makes loops of one cycle take up to twice as long.
const calm = 0.01

// A result is a block with its reference and the model's cycles.
type result struct {
	code      string
	block     *pipeline.Block
	want, got float64
	test      bool
}

func (r *result) err() float64 { return math.Abs(r.got-r.want) / r.want }

// run prints the table of a folder.
func run(dir string, o options, w io.Writer) error {
	fmt.Fprintf(w, "%-44s %6s %8s %8s %8s %8s\n", "", "blocks", "error", "tuning", "test", "Kendall")
	start, blocks := time.Duration(0), 0
	for _, s := range sets {
		if !strings.Contains(s.name, o.set) {
			continue
		}
		list, took, err := s.evaluate(dir)
		if err != nil {
			return err
		}
		start, blocks = start+took, blocks+len(list)
		if o.half != "" {
			list = slices.DeleteFunc(list, func(r result) bool { return r.test != (o.half == "test") })
		}
		tuning, test := half(list, false), half(list, true)
		fmt.Fprintf(w, "%-44s %6d %7.2f%% %7.2f%% %7.2f%% %8.3f\n", s.name, len(list), 100*mean(list), 100*mean(tuning), 100*mean(test), kendall(list))
		if o.mca {
			mean, n, err := askMCA(s.mcpu, list)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%-44s %6d %7.2f%%\n", "  llvm-mca for "+s.mcpu, n, 100*mean)
		}
		if o.dump {
			for _, r := range list {
				fmt.Fprintf(w, "%s,%t,%s,%g,%.3f\n", s.name, r.test, r.code, r.want, r.got)
			}
		}
		if o.worst > 0 {
			printWorst(w, list, o.worst)
		}
		if o.classes {
			printClasses(w, list)
		}
	}
	fmt.Fprintf(w, "%.0f blocks a second of processor time\n", float64(blocks)/start.Seconds())
	return nil
}

// evaluate reads the blocks of a set and asks the model for each.
func (s *set) evaluate(dir string) ([]result, time.Duration, error) {
	f, err := os.Open(filepath.Join(dir, s.file))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	rows := csv.NewReader(f)
	head, err := rows.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", s.file, err)
	}
	column, faults, spread := slices.Index(head, s.column), slices.Index(head, "faults"), slices.Index(head, "interquartile")
	if column < 0 || s.faultless && faults < 0 || s.calm && spread < 0 {
		return nil, 0, fmt.Errorf("%s: no column %s", s.file, s.column)
	}
	m := pipeline.NewMachine(pipeline.CoreOf(s.cpu))
	var list []result
	var took time.Duration
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return list, took, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", s.file, err)
		}
		if s.faultless && row[faults] != "0" || row[column] == "" {
			continue
		}
		r := result{code: row[0], test: inTest(row[0])}
		code, err := hex.DecodeString(r.code)
		line, _ := rows.FieldPos(0)
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", s.file, line, err)
		}
		if r.want, err = strconv.ParseFloat(row[column], 64); err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", s.file, line, err)
		}
		if s.calm {
			if d, err := strconv.ParseFloat(row[spread], 64); err != nil || d > calm*r.want {
				continue
			}
		}
		r.want /= s.scale
		start := processorTime()
		if r.block, err = pipeline.NewBlock(code, s.loop); err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", s.file, line, err)
		}
		if s.alias {
			r.block.Same()
		}
		r.got = m.Cycles(r.block)
		took += processorTime() - start
		list = append(list, r)
	}
}

// processorTime returns the time that this process has run on processors. The load of a machine
// changes it little.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inTest says whether a block is of the test half: no constant of the model may be chosen
// by it. The halves depend on the code alone.
func inTest(code string) bool {
	h := fnv.New32a()
	io.WriteString(h, code)
	return h.Sum32()>>16&1 == 1
}

func half(list []result, test bool) []result {
	var out []result
	for _, r := range list {
		if r.test == test {
			out = append(out, r)
		}
	}
	return out
}

func mean(list []result) float64 {
	sum := 0.0
	for i := range list {
		sum += list[i].err()
	}
	return sum / float64(len(list))
}

// kendall returns Kendall's tau-b between reference and model.
func kendall(list []result) float64 {
	concordant, x, y := 0.0, 0.0, 0.0
	for i := range list {
		for j := range i {
			a, b := sign(list[i].want-list[j].want), sign(list[i].got-list[j].got)
			concordant += a * b
			x += a * a
			y += b * b
		}
	}
	return concordant / math.Sqrt(x*y)
}

func sign(x float64) float64 {
	switch {
	case x > 1e-9:
		return 1
	case x < -1e-9:
		return -1
	}
	return 0
}

func printWorst(w io.Writer, list []result, n int) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b result) int { return sign3(b.err() - a.err()) })
	for _, r := range list[:min(n, len(list))] {
		fmt.Fprintf(w, "  %7.2f for %7.2f  %s\n", r.got, r.want, r.code)
		fmt.Fprintf(w, "      %s\n", text(r.code))
	}
}

func sign3(x float64) int { return int(sign(x)) }

// text disassembles a block.
func text(code string) string {
	d, err := disasm.New(disasm.AMD64, disasm.ATT)
	b, _ := hex.DecodeString(code)
	if err != nil {
		return code
	}
	var list []string
	for len(b) > 0 {
		i := d.Decode(b, 0)
		list = append(list, strings.ReplaceAll(d.Text(i, b), "\t", " "))
		b = b[max(i.Len, 1):]
	}
	return strings.Join(list, "; ")
}

// printClasses prints the mean error of the blocks with each class of instructions, and their
// part of the whole error.
func printClasses(w io.Writer, list []result) {
	type sum struct {
		class       pipeline.Class
		n           int
		err, signed float64
	}
	sums := map[pipeline.Class]*sum{}
	total := 0.0
	for _, r := range list {
		total += r.err()
		seen := map[pipeline.Class]bool{}
		for _, op := range r.block.Ops() {
			if seen[op.Class] {
				continue
			}
			seen[op.Class] = true
			s := sums[op.Class]
			if s == nil {
				s = &sum{class: op.Class}
				sums[op.Class] = s
			}
			s.n++
			s.err += r.err()
			s.signed += (r.got - r.want) / r.want
		}
	}
	var rows []*sum
	for _, s := range sums {
		rows = append(rows, s)
	}
	slices.SortFunc(rows, func(a, b *sum) int { return sign3(b.err/float64(b.n) - a.err/float64(a.n)) })
	for _, s := range rows {
		fmt.Fprintf(w, "  %-16s %5d blocks  error %6.1f %%  signed %6.1f %%  of all error %5.1f %%\n", s.class, s.n, 100*s.err/float64(s.n), 100*s.signed/float64(s.n), 100*s.err/total)
	}
}
