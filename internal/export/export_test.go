package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"github.com/cyclestack/cyclestack/internal/export"
	"github.com/cyclestack/cyclestack/internal/testlong"
)

// frames of a program: main calls work, into which mix is inlined, and the kernel.
var (
	mainFrame = &export.Frame{Function: "main", Module: "prog", BuildID: "abcd", File: "prog.c", Addr: 0x1000}
	workFrame = &export.Frame{Function: "work", Module: "prog", BuildID: "abcd", File: "prog.c", Line: 7, Addr: 0x1100}
	mixFrame  = &export.Frame{Function: "mix", Module: "prog", BuildID: "abcd", File: "mix.h", Line: 3, Inlined: true}
	kernel    = &export.Frame{Function: "copy_page", Module: "[kernel.kallsyms]", Kernel: true, Addr: 0xffffffff81000000}
	unnamed   = &export.Frame{Module: "libc.so.6", Addr: 0x99}
)

// program is a profile of two nodes and an event.
func program() *export.Profile {
	return &export.Profile{
		Title:    "./prog 1 2",
		Types:    []export.Type{{"Memory_Bound", "slots", "Backend_Bound.Memory_Bound"}, {"Retiring", "slots", "Retiring"}, {"cycles", "count", ""}},
		Default:  2,
		Duration: 1.5,
		Notes:    []string{"a note"},
		Stacks: slices.Values([]*export.Stack{
			{Thread: "prog", Frames: []*export.Frame{mainFrame}, Values: []float64{1, 2, 10}},
			{Thread: "prog", Frames: []*export.Frame{mainFrame, workFrame, mixFrame}, Values: []float64{300.4, 20, 100}, Bottleneck: "Memory_Bound"},
			{Thread: "prog", Frames: []*export.Frame{mainFrame, workFrame, mixFrame, kernel}, Values: []float64{-5, math.NaN(), 40}},
			{Thread: "worker", Frames: []*export.Frame{mainFrame, mainFrame, unnamed}, Values: []float64{7, 0, 3}},
		}),
	}
}

func write(t testing.TB, p *export.Profile, format func(*bytes.Buffer, *export.Profile) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := format(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func writePprof(w *bytes.Buffer, p *export.Profile) error { return export.Pprof(w, p) }
func writeFlame(w *bytes.Buffer, p *export.Profile) error {
	_, err := export.FlameGraph(w, p)
	return err
}
func writeSpeedscope(w *bytes.Buffer, p *export.Profile) error {
	_, err := export.Speedscope(w, p, "cyclestack")
	return err
}

func writeCollapsed(typ int) func(*bytes.Buffer, *export.Profile) error {
	return func(w *bytes.Buffer, p *export.Profile) error {
		_, err := export.Collapsed(w, p, typ)
		return err
	}
}

func parsePprof(t testing.TB, b []byte) *pprof.Profile {
	t.Helper()
	p, err := pprof.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPprof(t *testing.T) {
	p := parsePprof(t, write(t, program(), writePprof))
	var types []string
	for _, s := range p.SampleType {
		types = append(types, s.Type+"/"+s.Unit)
	}
	if want := []string{"Memory_Bound/slots", "Retiring/slots", "cycles/count"}; !slices.Equal(types, want) {
		t.Errorf("types %v, want %v", types, want)
	}
	if p.DefaultSampleType != "cycles" || p.DurationNanos != 1.5e9 || len(p.Comments) != 3 || !slices.Equal(p.Comments[:2], []string{"./prog 1 2", "a note"}) ||
		!strings.HasPrefix(p.Comments[2], "1 values are below zero, -5 together") {
		t.Errorf("default %s, duration %d, comments %q", p.DefaultSampleType, p.DurationNanos, p.Comments)
	}
	if m := p.Mapping[0]; m.File != "prog" || m.BuildID != "abcd" || !m.HasFunctions || !m.HasInlineFrames {
		t.Errorf("first mapping %+v", m)
	}
	got := map[string][]int64{}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			var lines []string
			for _, x := range l.Line {
				lines = append(lines, fmt.Sprintf("%s:%d", x.Function.Name, x.Line))
			}
			names = append(names, strings.Join(lines, "<"))
		}
		got[s.Label["thread"][0]+" "+strings.Join(names, " ")] = s.Value
	}
	want := map[string][]int64{
		"prog main:0":                          {1, 2, 10},
		"prog mix:3<work:7 main:0":             {300, 20, 100},
		"prog copy_page:0 mix:3<work:7 main:0": {-5, 0, 40},
		"worker [libc.so.6]:0 main:0 main:0":   {7, 0, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// TestPprofTypesAreUnique: pprof finds types by their names.
func TestPprofTypesAreUnique(t *testing.T) {
	p := &export.Profile{Types: []export.Type{{Name: "cycles"}, {Name: "cycles"}, {Name: "Other", Path: "A.Other"}, {Name: "Other", Path: "B.Other"}, {Name: "cycles"}}}
	p.Stacks = slices.Values([]*export.Stack{{Frames: []*export.Frame{mainFrame}, Values: []float64{1, 2, 3, 4, 5}}})
	var got []string
	for _, s := range parsePprof(t, write(t, p, writePprof)).SampleType {
		got = append(got, s.Type)
	}
	if want := []string{"cycles", "cycles (2)", "Other", "B.Other", "cycles (3)"}; !slices.Equal(got, want) {
		t.Errorf("types %q, want %q", got, want)
	}
}

// TestPprofReads has the program itself read a profile. Go builds it first, which takes longer
// than most tests.
func TestPprofReads(t *testing.T) {
	testlong.Only(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool pprof")
	}
	file := filepath.Join(t.TempDir(), "p.pb.gz")
	if err := os.WriteFile(file, write(t, program(), writePprof), 0o666); err != nil {
		t.Fatal(err)
	}
	for sample, want := range map[string][]string{
		"Memory_Bound": {"File: prog", "Type: Memory_Bound", `300slots .* 295slots .* mix \(inline\)`, `-5slots .* copy_page`, `1slots .* 303slots .* main`},
		"cycles":       {"Type: cycles", `100 .* 140 .* mix \(inline\)`, `40 .* copy_page`, ` 10 .* 153 .* main`},
	} {
		out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=99", "-nodefraction=0", "-sample_index="+sample, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, w := range want {
			if !regexp.MustCompile(w).Match(out) {
				t.Errorf("%s: no %q in\n%s", sample, w, out)
			}
		}
	}
}

// TestThreadsAsFrames: without callchains the thread is the outermost frame.
func TestThreadsAsFrames(t *testing.T) {
	p := program()
	p.Threads = true
	for _, s := range parsePprof(t, write(t, p, writePprof)).Sample {
		if outer := s.Location[len(s.Location)-1].Line[0].Function.Name; outer != "prog" && outer != "worker" || s.Label != nil {
			t.Errorf("the outermost frame is %s, labels %v", outer, s.Label)
		}
	}
}

// TestRounding: formats of whole numbers have the nearest ones, and the largest that
// they can have.
func TestRounding(t *testing.T) {
	p := &export.Profile{Types: []export.Type{{Name: "slots"}}}
	values := map[string]float64{"low": 0.4, "high": 0.6, "more": 1.6, "most": 1e300, "least": -1e300}
	p.Stacks = func(yield func(*export.Stack) bool) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !yield(&export.Stack{Frames: []*export.Frame{{Function: name}}, Values: []float64{values[name]}}) {
				return
			}
		}
	}
	got := map[string]int64{}
	for _, s := range parsePprof(t, write(t, p, writePprof)).Sample {
		got[s.Location[0].Line[0].Function.Name] = s.Value[0]
	}
	if want := (map[string]int64{"high": 1, "more": 2, "most": math.MaxInt64, "least": math.MinInt64}); !cmp.Equal(got, want) {
		t.Errorf("pprof has %v, want %v", got, want)
	}
	delete(values, "most")
	if got, want := string(write(t, p, writeCollapsed(0))), "high 1\nmore 2\n"; got != want {
		t.Errorf("collapsed: %q, want %q", got, want)
	}
}

func TestCollapsed(t *testing.T) {
	var out bytes.Buffer
	left, err := export.Collapsed(&out, program(), 0)
	if err != nil {
		t.Fatal(err)
	}
	const want = "prog;main 1\nprog;main;work;mix 300\nworker;main;main;[libc.so.6] 7\n"
	if out.String() != want {
		t.Errorf("collapsed:\n%swant:\n%s", out.String(), want)
	}
	if left.Negative != 1 || left.Sum != -5 || len(left.Notes()) != 1 {
		t.Errorf("left out %+v", left)
	}
}

// A speedscopeFile is the part of speedscope's format that is used, with the names of
// its schema.
type speedscopeFile struct {
	Schema             string `json:"$schema"`
	Name, Exporter     string
	ActiveProfileIndex int
	Shared             struct {
		Frames []struct {
			Name, File string
			Line       int
		}
	}
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue float64
		Samples              [][]int
		Weights              []float64
	}
}

func parseSpeedscope(t testing.TB, b []byte) (f speedscopeFile) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Profiles {
		sum := 0.0
		for _, w := range p.Weights {
			sum += w
		}
		if p.Type != "sampled" || len(p.Samples) != len(p.Weights) || p.EndValue != sum {
			t.Errorf("%s: type %s, %d samples with %d weights, %v together and not %v", p.Name, p.Type, len(p.Samples), len(p.Weights), sum, p.EndValue)
		}
		for _, s := range p.Samples {
			for _, i := range s {
				if i < 0 || i >= len(f.Shared.Frames) {
					t.Fatalf("%s: frame %d of %d", p.Name, i, len(f.Shared.Frames))
				}
			}
		}
	}
	return f
}

func TestSpeedscope(t *testing.T) {
	f := parseSpeedscope(t, write(t, program(), writeSpeedscope))
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.ActiveProfileIndex != 2 || len(f.Profiles) != 3 || f.Name != "./prog 1 2" {
		t.Errorf("schema %s, profile %d of %d, name %s", f.Schema, f.ActiveProfileIndex, len(f.Profiles), f.Name)
	}
	p := f.Profiles[0]
	got := map[string]float64{}
	for i, s := range p.Samples {
		var names []string
		for _, k := range s {
			names = append(names, f.Shared.Frames[k].Name)
		}
		got[strings.Join(names, ";")] = p.Weights[i]
	}
	want := map[string]float64{"prog;main": 1, "prog;main;work;mix": 300.4, "worker;main;main;[libc.so.6]": 7}
	if diff := cmp.Diff(want, got); diff != "" || p.Unit != "none" || p.Name != "Memory_Bound" {
		t.Errorf("%s in %s (-want +got):\n%s", p.Name, p.Unit, diff)
	}
}

// A flameData is what a flame graph's page has for its script.
type flameData struct {
	Title                  string
	Types                  []struct{ Name, Unit, Path string }
	Main                   int
	Notes                  []string
	Boxes                  [][]float64
	Names, Modules, Limits []string
}

var dataElement = regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`)

func parseFlame(t testing.TB, b []byte) (d flameData) {
	t.Helper()
	m := dataElement.FindSubmatch(b)
	if m == nil {
		t.Fatalf("no data in %.300s", b)
	}
	if err := json.Unmarshal(m[1], &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// boxes are the values of the boxes of a flame graph by their paths.
func (d *flameData) boxes() map[string][]float64 {
	out := map[string][]float64{}
	paths := make([]string, len(d.Boxes))
	for i, b := range d.Boxes {
		paths[i] = d.Names[int(b[1])]
		if b[0] >= 0 {
			paths[i] = paths[int(b[0])] + ";" + paths[i]
		}
		out[paths[i]] = b[5:]
	}
	return out
}

func TestFlameGraph(t *testing.T) {
	page := write(t, program(), writeFlame)
	d := parseFlame(t, page)
	want := map[string][]float64{
		"all":                              {308.4, 22, 153},
		"all;worker":                       {7, 0, 3},
		"all;worker;main":                  {7, 0, 3},
		"all;worker;main;main":             {7, 0, 3},
		"all;worker;main;main;[libc.so.6]": {7, 0, 3},
		"all;prog":                         {301.4, 22, 150},
		"all;prog;main":                    {301.4, 22, 150},
		"all;prog;main;work":               {300.4, 20, 140},
		"all;prog;main;work;mix":           {300.4, 20, 140},
		"all;prog;main;work;mix;copy_page": {0, 0, 40},
	}
	if diff := cmp.Diff(want, d.boxes()); diff != "" {
		t.Errorf("boxes (-want +got):\n%s", diff)
	}
	flags := map[string]float64{}
	for _, b := range d.Boxes {
		if b[4] != 0 {
			flags[d.Names[int(b[1])]] = b[4]
		}
	}
	if want := (map[string]float64{"mix": 1, "copy_page": 2}); !cmp.Equal(flags, want) {
		t.Errorf("inlined and the kernel's are %v, want %v", flags, want)
	}
	if limit := d.Limits[int(d.Boxes[0][3])]; limit != "Memory_Bound" {
		t.Errorf("the whole's bottleneck is %q", limit)
	}
	if len(d.Notes) != 3 {
		t.Errorf("notes %q", d.Notes)
	}
	for _, outside := range []string{"http:", "https:", "src=", "href=", "@import", "url("} {
		if bytes.Contains(page, []byte(outside)) {
			t.Errorf("the page has %s", outside)
		}
	}
}

// TestFlameGraphIsBounded: boxes too narrow to be seen are not written, and those around
// them keep their width.
func TestFlameGraphIsBounded(t *testing.T) {
	p := &export.Profile{Types: []export.Type{{Name: "cycles"}}, Stacks: func(yield func(*export.Stack) bool) {
		for i := range 1000 {
			v := 1.0
			if i == 0 {
				v = 1e9
			}
			if !yield(&export.Stack{Frames: []*export.Frame{{Function: fmt.Sprint("f", i)}}, Values: []float64{v}}) {
				return
			}
		}
	}}
	d := parseFlame(t, write(t, p, writeFlame))
	if len(d.Boxes) != 2 || d.Boxes[0][5] != 1000001000 {
		t.Errorf("%d boxes, the lowest %v", len(d.Boxes), d.Boxes[0])
	}
}

// hostile are names that would do harm if they were taken for anything but names.
var hostile = []string{
	"</script><script>document.title='taken'</script>",
	`"><img src=x onerror="document.title='taken'">`,
	"<svg onload=document.title='taken'>", "]]>", "<!--", "-->", "&lt;b&gt;", "`${document.title='taken'}`",
	"a;b;c 5\nd 6", "tab\there", "nul\x00esc\x1b[31m", "invalid\xff\xfeutf8", "line\u2028para\u2029graph", "right\u202eto left",
	"quote\"back\\slash", "'; DROP TABLE", "%s%n", "", " ", strings.Repeat("long", 20_000), "日本語<T>::f(int&&)", "__proto__", "constructor",
}

func hostileProfile() *export.Profile {
	p := &export.Profile{Title: hostile[0], Types: []export.Type{{hostile[1], hostile[0], ""}, {"cycles", "count", ""}}, Default: 1, Notes: hostile}
	p.Stacks = func(yield func(*export.Stack) bool) {
		for i, name := range hostile {
			f := []*export.Frame{{Function: name, Module: name, File: name, BuildID: name}, {Module: name, Inlined: true}}
			if !yield(&export.Stack{Thread: name, Frames: f, Values: []float64{1, float64(i + 1)}, Bottleneck: name}) {
				return
			}
		}
	}
	return p
}

// TestHostileNames: whatever names hold, the files say the same as they would with other
// names.
func TestHostileNames(t *testing.T) {
	sum := float64(len(hostile) * (len(hostile) + 1) / 2)
	t.Run("pprof", func(t *testing.T) {
		got := int64(0)
		p := parsePprof(t, write(t, hostileProfile(), writePprof))
		for _, s := range p.Sample {
			got += s.Value[1]
		}
		for _, f := range p.Function {
			checkName(t, f.Name)
		}
		if got != int64(sum) {
			t.Errorf("%d in all, want %v", got, sum)
		}
	})
	t.Run("collapsed", func(t *testing.T) {
		got := 0.0
		for line := range strings.Lines(string(write(t, hostileProfile(), writeCollapsed(1)))) {
			line = strings.TrimSuffix(line, "\n")
			checkName(t, line)
			i := strings.LastIndexByte(line, ' ')
			v := 0.0
			if _, err := fmt.Sscanf(line[i+1:], "%g", &v); err != nil || strings.Count(line[:i], ";") != 2 && line[:i] != "[unknown];[unknown]" { // a thread without a name
				t.Errorf("a line %.200q: %v", line, err)
			}
			got += v
		}
		if got != sum {
			t.Errorf("%v in all, want %v", got, sum)
		}
	})
	t.Run("speedscope", func(t *testing.T) {
		f := parseSpeedscope(t, write(t, hostileProfile(), writeSpeedscope))
		if f.Profiles[1].EndValue != sum || f.Profiles[0].Unit != "none" {
			t.Errorf("%v in all, want %v; unit %q", f.Profiles[1].EndValue, sum, f.Profiles[0].Unit)
		}
		for _, x := range f.Shared.Frames {
			checkName(t, x.Name)
		}
	})
	t.Run("firefox", func(t *testing.T) {
		f := parseFirefox(t, write(t, hostileProfile(), writeFirefox))
		got := map[bool]float64{}
		for _, x := range f.Threads {
			checkName(t, x.Name)
			checkName(t, x.ProcessName)
			for _, v := range x.Samples.Weight {
				if x.Pid == "2" {
					got[x.IsMainThread] += v
				}
			}
		}
		if got[true] != sum || got[false] != sum {
			t.Errorf("%v in the thread of all and in the others, want %v", got, sum)
		}
		for _, name := range slices.Concat(f.Shared.StringArray, f.Meta.Categories[1].Subcategories, []string{f.Meta.Product}) {
			checkName(t, name)
		}
	})
	t.Run("flamegraph", func(t *testing.T) {
		page := write(t, hostileProfile(), writeFlame)
		if n := bytes.Count(bytes.ToLower(page), []byte("<script")); n != 2 {
			t.Errorf("%d scripts, want the data and the page's own", n)
		}
		for _, tag := range []string{"<img", "<svg", "<!--"} {
			if bytes.Contains(page, []byte(tag)) {
				t.Errorf("the page has %s", tag)
			}
		}
		if n := bytes.Count(page, []byte("</title>")); n != 1 {
			t.Errorf("%d ends of the title", n)
		}
		d := parseFlame(t, page)
		if d.Boxes[0][6] != sum {
			t.Errorf("%v in all, want %v", d.Boxes[0][6], sum)
		}
		for _, name := range slices.Concat(d.Names, d.Modules, d.Limits) {
			checkName(t, name)
		}
	})
}

// checkName fails for names that are not valid text of one line.
func checkName(t testing.TB, name string) {
	t.Helper()
	const most = 3*4200 + 100 // three names in a line of collapsed stacks
	if !utf8.ValidString(name) || strings.ContainsAny(name, "\n\r\t\x00\x1b\u2028\u2029\u202e") || len(name) > most {
		t.Errorf("a name of %d bytes: %.100q", len(name), name)
	}
}

// browser returns a browser that can be used without a screen.
func browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium")
	return ""
}

// dom opens a page in a browser and returns what its script made of it.
func dom(t testing.TB, page []byte) string {
	t.Helper()
	path := browser(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, page, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir, "--window-size=1200,800", "--dump-dom", "file://"+file)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%s does not run here: %v", path, err)
	}
	return string(out)
}

var (
	boxElement = regexp.MustCompile(`<button [^>]*class="box[^>]*>`)
	boxWidth   = regexp.MustCompile(`width: ([0-9.]+)px`)
	boxTitle   = regexp.MustCompile(`title="([^"]*)  [0-9.]+ %"`)
)

// TestFlameGraphInABrowser: the boxes are there, as wide as they should be.
func TestFlameGraphInABrowser(t *testing.T) {
	page := dom(t, write(t, program(), writeFlame))
	width := map[string]float64{}
	for _, box := range boxElement.FindAllString(page, -1) {
		title, wide := boxTitle.FindStringSubmatch(box), boxWidth.FindStringSubmatch(box)
		if title == nil || wide == nil {
			t.Fatalf("a box %s", box)
		}
		w, err := strconv.ParseFloat(wide[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		width[title[1]] = max(width[title[1]], w)
	}
	if !(width["all"] > 500) {
		t.Fatalf("widths %v", width)
	}
	for name, share := range map[string]float64{"all": 1, "prog": 150. / 153, "work": 140. / 153, "copy_page": 40. / 153} {
		if got := width[name] / width["all"]; !(math.Abs(got-share) <= 0.01) {
			t.Errorf("%s is %v of the whole's width, want %v (%v)", name, got, share, slices.Sorted(maps.Keys(width)))
		}
	}
	for _, text := range []string{"153 count, 100.00 % of all; bottleneck Memory_Bound", "Backend_Bound.Memory_Bound (slots)", "a note"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %q", text)
		}
	}
}

// TestHostileNamesInABrowser: none of them is run.
func TestHostileNamesInABrowser(t *testing.T) {
	page := dom(t, write(t, hostileProfile(), writeFlame))
	if strings.Contains(page, "<title>taken</title>") || strings.Contains(page, "<img") {
		t.Errorf("a name was run: %.500s", page)
	}
	if n := len(boxElement.FindAllString(page, -1)); n < len(hostile) {
		t.Errorf("%d boxes are shown: %.3000s", n, page[strings.LastIndex(page, `id="graph"`):])
	}
}

// TestSame: what is said of the stack before saves work, and changes nothing.
func TestSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	frames := make([]*export.Frame, 12)
	for i := range frames {
		frames[i] = &export.Frame{Function: string(rune('a' + i%5)), Module: string(rune('A' + i%3)), Line: i, Addr: uint64(i), Inlined: i >= 8}
	}
	var stacks []export.Stack
	threads := []string{"", "one", "two;"}
	for _, thread := range threads {
		var last []*export.Frame
		for range 400 {
			same := random.IntN(len(last) + 1)
			list := slices.Clone(last[:same])
			for range random.IntN(6) {
				list = append(list, frames[random.IntN(len(frames))])
			}
			if len(list) == 0 {
				list = append(list, frames[0])
			}
			limit := []string{"", "", "Memory_Bound", "Core_Bound"}[random.IntN(4)]
			stacks = append(stacks, export.Stack{Thread: thread, Frames: list, Same: same, Values: []float64{float64(random.IntN(3))}, Bottleneck: limit})
			last = list
		}
	}
	for i := range 4 {
		asFrames, some := i&1 > 0, i&2 > 0
		p := &export.Profile{Types: []export.Type{{Name: "slots"}}, Threads: asFrames}
		outputs := func(same bool) map[string]string {
			all := func(yield func(*export.Stack) bool) {
				for _, s := range stacks {
					if !same {
						s.Same = 0
					}
					if !yield(&s) {
						return
					}
				}
			}
			if p.Stacks = all; some {
				p.Stacks = export.Select(all, func(s *export.Stack) bool { return s.Values[0] != 2 || len(s.Frames)%2 == 0 })
			}
			return map[string]string{"collapsed": string(write(t, p, writeCollapsed(0))), "pprof": parsePprof(t, write(t, p, writePprof)).String(),
				"speedscope": string(write(t, p, writeSpeedscope)), "firefox": string(write(t, p, writeFirefox))}
		}
		got, want := outputs(true), outputs(false)
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("threads as frames %v, some %v: %s differs", asFrames, some, name)
			}
		}
		sum := int64(0)
		for _, s := range parsePprof(t, write(t, p, writePprof)).Sample {
			sum += s.Value[0]
		}
		all := 0.0
		for s := range p.Stacks {
			all += s.Values[0]
		}
		if float64(sum) != all {
			t.Errorf("threads as frames %v: pprof has %d of %v", asFrames, sum, all)
		}
	}
}

// TestStacksAllocateNothing: formats that list stacks take memory for what is new, such as a frame,
// and not for each stack.
func TestStacksAllocateNothing(t *testing.T) {
	const stacks = 20_000
	frames := make([]*export.Frame, 50)
	for i := range frames {
		frames[i] = &export.Frame{Function: fmt.Sprint("function", i), File: "a.c", Line: i}
	}
	p := &export.Profile{Types: []export.Type{{Name: "slots"}, {Name: "cycles"}}, Duration: 1}
	p.Stacks = func(yield func(*export.Stack) bool) {
		s := &export.Stack{Thread: "prog", Values: make([]float64, 2)}
		for i := range stacks {
			s.Frames = append(s.Frames[:0], frames[0], frames[1], frames[i%50], frames[i/50%50], frames[i/2500%50])
			s.Same, s.Values[0], s.Values[1] = min(i, 2), 0.1*float64(i), 1000
			if !yield(s) {
				return
			}
		}
	}
	for _, name := range []string{"pprof", "speedscope", "firefox", "collapsed"} {
		f := export.Formats[slices.Index(export.Names(), name)]
		n := testing.AllocsPerRun(1, func() {
			if _, err := f.Write(io.Discard, p); err != nil {
				t.Fatal(err)
			}
		})
		if n > stacks/10 {
			t.Errorf("%s: %v allocations for %d stacks", name, n, stacks)
		}
	}
}

// TestNumbers: numbers are those of package json.
func TestNumbers(t *testing.T) {
	p := &export.Profile{Types: []export.Type{{Name: "cycles"}}, Duration: 1}
	var values []float64
	var stacks []*export.Stack
	for _, v := range []float64{1, 0.1, 1.0 / 3, 1e-6, 9.9e-7, 1e-10, math.SmallestNonzeroFloat64, 123456789.125, 1e20, 1e21, 1.5e21, 1e300} {
		values = append(values, v)
		stacks = append(stacks, &export.Stack{Frames: []*export.Frame{mainFrame}, Values: values[len(values)-1:]})
	}
	p.Stacks = slices.Values(stacks)
	want, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"speedscope": write(t, p, writeSpeedscope), "firefox": write(t, p, writeFirefox)} {
		if !bytes.Contains(text, want) {
			t.Errorf("%s lacks %s: %s", name, want, text)
		}
	}
	stacks[0].Values = []float64{math.MaxFloat64}
	stacks[1].Values = stacks[0].Values
	if err := writeSpeedscope(&bytes.Buffer{}, p); err == nil {
		t.Error("a sum that is no number is written")
	}
}
