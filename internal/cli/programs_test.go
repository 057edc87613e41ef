package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// A testProgram is a program that simulated cycles are compared with. The programs are
// in testdata/programs, and docs/simulated.md has the table.
type testProgram struct {
	name    string
	does    string
	rounds  int      // that take some 0.3 s by themselves
	hottest []string // by sampling: the functions that may be the first, as they are equal but for noise
	native  float64  // million cycles of a round on AMD Zen 4
	better  bool     // compiled with -O3, and not with -O2
	command string   // of the system, and its arguments; it has no rounds
}

// A programSet is programs that were written at one time.
type programSet struct {
	name     string
	programs []testProgram
}

var programSets = []programSet{
	{"first", []testProgram{
		{"compress", "LZ77 with a hash table", 60, []string{"match", "expand"}, 16.7, false, ""},
		{"hash", "SHA-256, CRC-32, FNV", 80, nil, 11.6, false, ""},
		{"sort", "quicksort, merge sort", 12, []string{"merge"}, 94, false, ""},
		{"sparse", "sparse matrix × vector", 500, []string{"multiply"}, 1.6, false, ""},
		{"dense", "dense matrices, a stencil", 50, []string{"multiply"}, 29, false, ""},
		{"interpreter", "bytecode with a switch", 45, []string{"run"}, 25, false, ""},
		{"trees", "malloc, search and free", 70, []string{"find", "insert"}, 16, false, ""},
		{"parser", "JSON into tokens", 500, []string{"scan"}, 2, false, ""},
		{"chase", "lists in no order", 30, []string{"far"}, 25, false, ""},
		{"bodies", "gravity, Mandelbrot set", 800, []string{"attract", "mandelbrot"}, 1, false, ""},
		{"search", "substrings, binary search", 90, []string{"naive"}, 10.8, false, ""},
		{"table", "hash tables", 400, []string{"follow", "ask"}, 2.5, false, ""},
		{"graph", "breadth first, union-find", 80, nil, 13, false, ""},
		{"words", "Go: maps, strings, garbage", 100, nil, 8.7, false, ""},
	}},

	// When these were written, the simulation knew caches and branches and nothing of
	// how long instructions take.
	{"second", []testProgram{
		{"huffman", "Huffman codes", 250, []string{"decode"}, 4.4, false, ""},
		{"murmur", "hashes of eight bytes at a time", 1000, []string{"sliced", "sums"}, 1.04, true, ""},
		{"heap", "heapsort, Shell's sort, by digits", 20, []string{"shell", "sift"}, 50, false, ""},
		{"stack", "bytecode with calls", 40, []string{"run", "swap"}, 27, false, ""},
		{"csv", "a table into numbers and dates", 850, []string{"field"}, 1.35, false, ""},
		{"matrix", "dense matrices, as vectors", 550, []string{"eliminate", "multiply"}, 2.2, true, ""},
		{"primes", "a sieve, divisions", 280, []string{"sieve"}, 4.4, false, ""},
		{"distance", "dynamic programming", 230, nil, 4.6, true, ""},
		{"tokens", "expressions into trees", 14000, []string{"evaluate"}, 0.075, true, ""},
		{"objects", "C++: maps, strings, objects", 40, []string{"words", "memcmp"}, 27, false, ""},
	}},

	// When these were written, the simulation was about to learn that, from those above.
	{"third", []testProgram{
		{"regexp", "regular expressions, wildcards", 240, []string{"repeat"}, 4.4, false, ""},
		{"fourier", "transform, filters, Cholesky", 1680, []string{"correlate"}, 0.6, false, ""},
		{"cluster", "k means, nearest neighbours", 280, []string{"assign"}, 3.4, true, ""},
		{"btree", "a B-tree, a cache of lists", 56, []string{"place"}, 18.7, false, ""},
		{"bignum", "numbers of a thousand bits", 2480, []string{"remainder_"}, 0.4, false, ""},
		{"rays", "C++: rays, boxes, spheres", 248, []string{"enters"}, 4.1, false, ""},
		{"sudoku", "puzzles by trying", 120, []string{"choose"}, 8.4, false, ""},
		{"image", "a picture's medians, parts", 40, []string{"medians"}, 26, true, ""},
		{"records", "Go: JSON, sorting, grouping", 240, []string{"main.quote"}, 4.1, false, ""},
		{"routes", "Go: shortest ways, channels", 136, []string{"main.live"}, 7.3, false, ""},
	}},

	// When these were written, the simulation had QEMU.
	{"kernels", []testProgram{
		{name: "fannkuch", does: "reversals of permutations", rounds: 18},
		{name: "nbody", does: "gravity in double precision", rounds: 250},
		{name: "spectral", does: "a matrix of divisions", rounds: 800},
		{name: "binarytrees", does: "malloc and free of trees", rounds: 600},
		{name: "mandelbrot", does: "Mandelbrot set", rounds: 300},
		{name: "gemm", does: "product of matrices", rounds: 300},
		{name: "lu", does: "decomposition of a matrix", rounds: 350},
		{name: "floyd", does: "all shortest ways", rounds: 90},
		{name: "seidel", does: "a stencil in place", rounds: 1200},
		{name: "jacobi", does: "a stencil of two arrays", rounds: 1200},
		{name: "correlation", does: "products of columns", rounds: 40},
	}},

	// Programs of the system, with input that the test writes. Nobody here wrote them.
	{"commands", []testProgram{
		{name: "gzip", does: "compresses", command: "gzip -c data"},
		{name: "bzip2", does: "compresses", command: "bzip2 -c data"},
		{name: "zstd", does: "compresses", command: "zstd -q -c -T1 -9 data"},
		{name: "xz", does: "compresses", command: "xz -1 -c data"},
		{name: "sqlite3", does: "a table, an index, queries", command: "sqlite3 :memory: .read\u00a0queries.sql"},
		{name: "python3", does: "calls, a dictionary, sorting", command: "/usr/bin/python3 program.py"},
		{name: "perl", does: "a hash, strings", command: "perl program.pl"},
		{name: "lua", does: "a table, sorting", command: "lua5.4 program.lua"},
		{name: "md5", does: "a digest", command: "openssl md5 data data data data"},
		{name: "cc1", does: "compiles C", command: "gcc -O2 -S -o /dev/null program.c"},
		{name: "vet", does: "checks Go", command: "go vet program.go"},
	}},
}

// commandInput are the files that commands read. The file data is of the program go.
var commandInput = map[string]string{
	"program.py":  "def fib(n): return n if n<2 else fib(n-1)+fib(n-2)\nd={}\nfor i in range(300000): d[str(i*7919%100003)]=i\nprint(fib(26), sum(len(k) for k in sorted(d)))\n",
	"program.pl":  "my %h; for my $i (1..400000) { $h{($i*7919)%50021}.=\"x$i\"; } my $n=0; for (sort keys %h) { $n+=length $h{$_} if /7/; } print \"$n\\n\";\n",
	"program.lua": "local t={} for i=1,800000 do t[i]=(i*7919)%100003 end table.sort(t) local s=0 for i,v in ipairs(t) do s=s+v%7 end print(s)\n",
	"queries.sql": "create table t(a integer, b text); with recursive c(x) as (select 1 union all select x+1 from c where x<400000) insert into t select x*7919%100003, 'text'||x from c; create index i on t(b); select count(*), sum(a) from t where b like '%7%'; select b, count(*) from t group by a%100 order by 1 limit 3;\n",
}

// commandLine returns the command that runs the program: what compile has returned, with
// its arguments.
func (p *testProgram) commandLine(file string, rounds int) []string {
	if p.command == "" {
		return []string{file, strconv.Itoa(rounds)}
	}
	args := strings.Split(p.command, " ")
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "\u00a0", " ") // within an argument
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), args[i])); err == nil && i > 0 {
			args[i] = filepath.Join(filepath.Dir(file), args[i])
		}
		if name, ok := strings.CutPrefix(args[i], ".read "); ok {
			args[i] = ".read " + filepath.Join(filepath.Dir(file), name)
		}
	}
	return args
}

// prepareCommand writes the input of commands, and returns the directory's file of this
// name; the test goes on without commands that are not installed.
func (p *testProgram) prepareCommand(t *testing.T, file string) string {
	t.Helper()
	dir := filepath.Dir(file)
	for name, text := range commandInput {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(compiler)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"data": data[:min(len(data), 8<<20)]}
	for name, from := range map[string]string{"program.c": "testdata/programs/bignum.c", "program.go": "testdata/programs/records/main.go"} {
		if files[name], err = os.ReadFile(from); err != nil {
			t.Fatal(err)
		}
	}
	if files["programs.h"], err = os.ReadFile("testdata/programs/programs.h"); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// compile returns the program's file, or skips the test.
func (p *testProgram) compile(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, p.name)
	if p.command != "" {
		return p.prepareCommand(t, file)
	}
	source := filepath.Join("testdata", "programs", p.name)
	level := "-O2"
	if p.better {
		level = "-O3"
	}
	var c *exec.Cmd
	switch {
	case exists(source):
		c = exec.Command("go", "build", "-trimpath=false", "-o", file, "./"+source)
	case exists(source + ".cpp"):
		c = exec.Command("g++", level, "-g", "-Wall", "-Werror", "-o", file, source+".cpp", "-lm")
	default:
		c = exec.Command("gcc", level, "-g", "-Wall", "-Werror", "-o", file, source+".c", "-lm")
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
	return file
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// A simulatedProgram is what the simulation of a program says, in cycles.
type simulatedProgram struct {
	cycles    float64
	parts     []share // Issue, Branch_Misprediction and so on
	functions []share // most cycles first
	shown     []share // by the cycles where a sampler would see them; nil if the simulator does not say
}

// A share is a function's part of a program's cycles, or of its samples.
type share struct {
	function string
	value    float64
	error    float64 // of a simulation: half of the 95 % interval; 0 if it is not known
}

// The parts of a function's name that plainName leaves out. variant is the instruction
// set that a library appends to a function's name: a simulator has another one than the
// processor. recursion is what callgrind appends to a function that calls itself.
// parameters are those of C++, and not the parenthesis of Go's (*type).method.
var (
	variant    = regexp.MustCompile(`_(avx|evex|sse|ssse|erms|unaligned)\w*$`)
	recursion  = regexp.MustCompile(`'\d+$`)
	parameters = regexp.MustCompile(`\(([^*]|$)`)
)

// plainName returns the name of a function that is the same in a simulation and in
// samples. memcpy and memmove are the same code, and so are free and cfree.
func plainName(function string) string {
	name := recursion.ReplaceAllString(function, "")
	if strings.HasPrefix(name, "__") {
		name = strings.TrimLeft(strings.TrimPrefix(name, "__GI_"), "_")
		name = variant.ReplaceAllString(name, "")
	}
	name, _, _ = strings.Cut(name, "@")
	if at := parameters.FindStringIndex(name); at != nil {
		name = name[:at[0]]
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, "void "), "libc_")
	if name == "cfree" {
		return "free"
	}
	return strings.Replace(name, "memcpy", "memmove", 1)
}

// ranked returns functions with the largest first; those of one plain name are one.
func ranked(list map[string]float64) []share {
	sums := map[string]float64{}
	for name, v := range list {
		sums[plainName(name)] += v
	}
	out := make([]share, 0, len(sums))
	for name, v := range sums {
		out = append(out, share{function: name, value: v})
	}
	slices.SortFunc(out, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.function, b.function))
	})
	return out
}

// mustRun runs cyclestack, which must succeed.
func mustRun(t *testing.T, args ...string) {
	t.Helper()
	var out, msg bytes.Buffer
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if status := Main(t.Context(), args, null, &out, &msg); status != 0 {
		t.Fatalf("%q: status %d: %s", args, status, &msg)
	}
}

// programDocument is what these tests read of accounts as JSON.
type programDocument struct {
	CPU      struct{ Name string }
	Accounts []struct {
		Scope struct{ Kind, Module, Function string }
		Nodes []struct {
			Path, Name string
			Value      *float64
			Error      float64
		}
	}
}

func readDocument(t *testing.T, file string) (d programDocument) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// simulate simulates a program as stat does. The functions' cycles are with the penalties
// of a file, or without a name with the method's own.
func (p *testProgram) simulate(t *testing.T, dir, program string, rounds int, penalties string, more ...string) simulatedProgram {
	t.Helper()
	kept, whole, places := filepath.Join(dir, p.name+".callgrind"), filepath.Join(dir, p.name+".json"), filepath.Join(dir, p.name+".places")
	args := append([]string{"stat", "--source", "simulated", "--all", "--format", "json", "-o", whole, "--keep", kept}, more...)
	mustRun(t, slices.Concat(args, []string{"--"}, p.commandLine(program, rounds))...)
	d := readDocument(t, whole)
	args = []string{"report", "--by", "function", "--all", "--top", "100000", "--format", "json", "-o", places}
	if penalties != "" {
		args = append(args, "--cpu", d.CPU.Name, "--penalties", penalties)
	}
	mustRun(t, append(args, kept)...)
	functions, errors := map[string]float64{}, map[string]float64{}
	s := simulatedProgram{cycles: math.NaN()}
	for _, a := range d.Accounts[:1] {
		for _, n := range a.Nodes {
			switch part, ok := strings.CutPrefix(n.Path, "Cycles."); {
			case n.Value == nil:
			case n.Name == "Simulated_Cycles":
				s.cycles = *n.Value
			case ok && part != "Kernel" && part != "Unaccounted" && !strings.Contains(part, "."): // measured, what is left, and parts of parts
				s.parts = append(s.parts, share{function: part, value: *n.Value})
			}
		}
	}
	for i, sum := 0, total(s.parts); i < len(s.parts); i++ {
		s.parts[i].value *= s.cycles / sum // it was a share
	}
	for _, a := range readDocument(t, places).Accounts {
		for _, n := range a.Nodes {
			if a.Scope.Kind == "function" && n.Name == "Simulated_Cycles" && n.Value != nil {
				functions[a.Scope.Function] += *n.Value
				errors[plainName(a.Scope.Function)] += n.Error
			}
		}
	}
	s.functions = withErrors(ranked(functions), errors)
	if shown := shownCycles(t, kept); shown != nil {
		s.shown = withErrors(ranked(shown), errors)
	}
	return s
}

// shownCycles reads the cycles of functions where a sampler would see them; nil if the file has
// none.
func shownCycles(t *testing.T, kept string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	names, functions, now := map[string]string{}, map[string]float64{}, ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "events:"):
			if events = words[1:]; !slices.Contains(events, "Cs") {
				return nil
			}
		case strings.HasPrefix(line, "fn="):
			id, name, _ := strings.Cut(strings.TrimSpace(line[len("fn="):]), " ")
			if name != "" {
				names[id] = name
			}
			now = names[id]
		case strings.HasPrefix(line, "0x"):
			if at := slices.Index(events, "Cs") + 2; at < len(words) {
				v, err := strconv.ParseFloat(words[at], 64)
				if err != nil {
					t.Fatal(err)
				}
				functions[now] += v
			}
		}
	}
	return functions
}

// withErrors adds errors by plain name.
func withErrors(list []share, errors map[string]float64) []share {
	for i := range list {
		list[i].error = errors[list[i].function]
	}
	return list
}

const (
	ranks    = 3    // how many functions are compared
	rankable = 0.01 // of a whole, which a function must have
)

// contradiction says where samples contradict the order of the functions of a simulation. One
// that stands too low has more samples, by more than their error at 95 %. And it has fewer simulated
// cycles, by more than the error of these: what is equal within an error has no order. It is ""
// for none.
func contradiction(simulated, sampled []share) string {
	top := first(simulated)
	cycles := map[string]share{}
	for _, s := range simulated {
		cycles[s.function] = s
	}
	samples, all := map[string]float64{}, 0.0
	for _, s := range sampled {
		samples[s.function] = s.value
		all += s.value
	}
	for i, f := range top {
		here := samples[f.function]
		for _, g := range sampled {
			before := slices.ContainsFunc(top[:i+1], func(s share) bool { return s.function == g.function })
			if more := g.value - here; !before && more > 2*math.Sqrt(g.value+here) && f.value-cycles[g.function].value > math.Hypot(f.error, cycles[g.function].error) {
				return fmt.Sprintf("%s has %.1f %% of the samples, %s %.1f %%", g.function, 100*g.value/all, f.function, 100*here/all)
			}
		}
	}
	for _, g := range sampled {
		if len(top) < ranks && g.value-2*math.Sqrt(g.value) > rankable*all && !slices.ContainsFunc(top, func(s share) bool { return s.function == g.function }) {
			return fmt.Sprintf("%s has %.1f %% of the samples, and is not ranked", g.function, 100*g.value/all)
		}
	}
	return ""
}

// first returns the functions that are ranked.
func first(list []share) []share {
	all := total(list)
	n := 0
	for n < min(ranks, len(list)) && list[n].value >= rankable*all {
		n++
	}
	return list[:n]
}

// shares prints functions that are ranked, with their shares.
func shares(list []share) string {
	all := total(list)
	var parts []string
	for _, s := range first(list) {
		parts = append(parts, fmt.Sprintf("%s %.0f", s.function, 100*s.value/all))
	}
	return strings.Join(parts, ", ")
}

func TestContradiction(t *testing.T) {
	t.Parallel()
	simulated := []share{{"a", 50, 0}, {"b", 30, 4}, {"c", 15, 4}, {"d", 5, 4}}
	for _, tt := range []struct {
		name    string
		sampled []share
		want    bool
	}{
		{"the same", []share{{"a", 400, 0}, {"b", 300, 0}, {"c", 200, 0}, {"d", 100, 0}}, false},
		{"a tie", []share{{"b", 400, 0}, {"a", 390, 0}, {"c", 120, 0}, {"d", 110, 0}}, false},
		{"first and second", []share{{"b", 500, 0}, {"a", 300, 0}, {"c", 120, 0}}, true},
		{"another third", []share{{"a", 500, 0}, {"b", 300, 0}, {"d", 120, 0}, {"c", 20, 0}}, true},
		{"the second and third, beyond the errors", []share{{"a", 500, 0}, {"c", 300, 0}, {"b", 200, 0}}, true},
		{"one of no sample", []share{{"a", 500, 0}, {"b", 300, 0}, {"e", 120, 0}}, true},
	} {
		if got := contradiction(simulated, tt.sampled); (got != "") != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if got := contradiction([]share{{"a", 50, 0}, {"b", 32, 9}, {"c", 28, 9}}, []share{{"a", 500, 0}, {"c", 300, 0}, {"b", 200, 0}}); got != "" {
		t.Errorf("functions that are equal within their errors: %s", got)
	}
	if got := contradiction([]share{{"a", 99.9, 0}, {"b", 0.1, 0}}, []share{{"a", 700, 0}, {"b", 300, 0}}); got == "" {
		t.Error("a function with three samples in ten is not missed")
	}
}

func TestPlainName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"__memmove_avx512_unaligned_erms": "memmove", "__memcpy_avx_unaligned_erms": "memmove",
		"__strcmp_evex": "strcmp", "__strcmp_avx2": "strcmp", "merge'2": "merge", "words()": "words", "cfree@GLIBC_2.2.5": "free", "__libc_calloc": "calloc", "_int_free": "_int_free",
		"__GI_____strtol_l_internal": "strtol_l_internal", "____strtol_l_internal": "strtol_l_internal", "__GI___memcpy_avx_unaligned": "memmove",
		"main.(*queue).Less": "main.(*queue).Less", "visit(int, Ray const&)": "visit", "apply(int (*)(int))": "apply",
	} {
		if got := plainName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestPrograms simulates a few rounds of the programs that the method was not made with,
// with its own penalties. That counts much the same in every run: the function that is the
// hottest by sampling is the first where a sampler would see the cycles. The cycles are
// about those measured. It is
// TestProgramsMeasured that compares with this machine, and simulates the others.
func TestPrograms(t *testing.T) {
	needSimulator(t)
	t.Setenv("GOMAXPROCS", "1") // Go's threads wait for each other by turning, on a busy machine millions of times
	dir := t.TempDir()
	for _, p := range programSets[2].programs {
		if p.name != "sudoku" && !testlong.Enabled() {
			continue // each takes some ten seconds
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rounds := max(1, p.rounds/60)
			s := p.simulate(t, dir, p.compile(t, dir), rounds, "", "--cpu", "amdzen4", "--caches", "32K,8,64/32K,8,64/1M,8,64/32M,16,64")
			functions := s.functions
			if len(s.shown) > 0 { // samples see a misprediction where the program goes on, often in another function
				functions = s.shown
			}
			if p.hottest != nil && !slices.ContainsFunc(functions, func(f share) bool {
				return f.value+f.error > 0.85*functions[0].value && slices.Contains(p.hottest, f.function)
			}) {
				t.Errorf("functions %s; by sampling, %v is the first", shares(functions), p.hottest)
			}
			ratio := s.cycles / float64(rounds) / p.native / 1e6
			if !(ratio > 0.5 && ratio < 2) {
				t.Errorf("%.2f times the cycles that it takes", ratio)
			}
		})
	}
}

// needSimulator skips the test where programs cannot be compiled, counted or simulated.
func needSimulator(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("simulations take their time")
	}
	if ok, err := condition("counts"); err != nil || !ok {
		t.Skipf("no program may be counted here: %v", err)
	}
	if err := simulation.Installed(); err != nil {
		t.Skip(err)
	}
	for _, compiler := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skip("needs " + compiler)
		}
	}
}
