package export_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/export"
)

func writeFirefox(w *bytes.Buffer, p *export.Profile) error {
	_, err := export.Firefox(w, p)
	return err
}

// A firefoxFile is the part of the Firefox Profiler's format that has values, with the
// names of its type declarations.
type firefoxFile struct {
	Threads []struct {
		Name, ProcessName, Pid string
		IsMainThread           bool
		Samples                struct {
			WeightType   string
			Length       int
			Stack        []int
			Weight, Time []float64
		}
	}
	Shared struct {
		StringArray []string
		StackTable  struct {
			Length              int
			Frame, PrefixOffset []int
		}
		FrameTable struct {
			Length                      int
			Func, Category, Subcategory []int
			Line                        []*int
		}
		FuncTable struct {
			Length         int
			Name, Resource []int
			Source         []*int
		}
		ResourceTable struct {
			Length int
			Name   []int
		}
		Sources struct {
			Length   int
			Filename []int
		}
	}
	Meta struct {
		Product    string
		Format     int   `json:"preprocessedProfileVersion"`
		Chosen     []int `json:"initialSelectedThreads"`
		Categories []struct{ Subcategories []string }
		Extra      []struct{ Entries []struct{ Value string } }
	}
}

// parseFirefox decodes a file and fails if rows name others that are not there, or if columns
// differ in length.
func parseFirefox(t testing.TB, b []byte) (f firefoxFile) {
	t.Helper()
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Shared map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	for name, text := range raw.Shared {
		var table map[string]any
		if name == "stringArray" || json.Unmarshal(text, &table) != nil {
			continue
		}
		for column, v := range table {
			if list, ok := v.([]any); ok && float64(len(list)) != table["length"] {
				t.Errorf("%s.%s has %d rows of %v", name, column, len(list), table["length"])
			}
		}
	}
	s := &f.Shared
	for what, x := range map[string]struct {
		rows []int
		of   int
	}{"stacks' frames": {s.StackTable.Frame, s.FrameTable.Length}, "functions": {s.FrameTable.Func, s.FuncTable.Length},
		"names": {s.FuncTable.Name, len(s.StringArray)}, "modules": {s.FuncTable.Resource, s.ResourceTable.Length},
		"modules' names": {s.ResourceTable.Name, len(s.StringArray)}, "files' names": {s.Sources.Filename, len(s.StringArray)},
		"categories": {s.FrameTable.Category, len(f.Meta.Categories)}, "bottlenecks": {s.FrameTable.Subcategory, len(f.Meta.Categories[1].Subcategories)}} {
		if len(x.rows) > 0 && (slices.Max(x.rows) >= x.of || slices.Min(x.rows) < -1) {
			t.Errorf("%s: rows from %d to %d of %d", what, slices.Min(x.rows), slices.Max(x.rows), x.of)
		}
	}
	for i, k := range s.StackTable.PrefixOffset {
		if k < 0 || k > i {
			t.Fatalf("the callers of stack %d are %d before it", i, k)
		}
	}
	for _, x := range f.Threads {
		n := x.Samples.Length
		if len(x.Samples.Stack) != n || len(x.Samples.Weight) != n || len(x.Samples.Time) != n || !slices.IsSorted(x.Samples.Time) || slices.Max(x.Samples.Stack) >= s.StackTable.Length {
			t.Errorf("thread %s of %s: %+v", x.Name, x.ProcessName, x.Samples)
		}
	}
	return f
}

// path is a stack's functions, the outermost first.
func (f *firefoxFile) path(stack int) string {
	name := f.Shared.StringArray[f.Shared.FuncTable.Name[f.Shared.FrameTable.Func[f.Shared.StackTable.Frame[stack]]]]
	if k := f.Shared.StackTable.PrefixOffset[stack]; k > 0 {
		return f.path(stack-k) + ";" + name
	}
	return name
}

func TestFirefox(t *testing.T) {
	f := parseFirefox(t, write(t, program(), writeFirefox))
	got, all := map[string]float64{}, map[string]int{}
	for _, x := range f.Threads {
		if x.Name == "all threads" {
			all[x.ProcessName] = len(x.Samples.Stack)
			continue
		}
		for i, s := range x.Samples.Stack {
			got[x.ProcessName+" "+x.Name+";"+f.path(s)] = x.Samples.Weight[i]
			if at := x.Samples.Time[i]; at < 0 || at > 1500 {
				t.Errorf("%s at %v ms of 1500", f.path(s), at)
			}
		}
	}
	want := map[string]float64{
		"Memory_Bound (slots) prog;main": 1, "Memory_Bound (slots) prog;main;work;mix": 300.4,
		"Memory_Bound (slots) prog;main;work;mix;copy_page": -5, "Memory_Bound (slots) worker;main;main;[libc.so.6]": 7,
		"Retiring (slots) prog;main": 2, "Retiring (slots) prog;main;work;mix": 20,
		"cycles (count) prog;main": 10, "cycles (count) prog;main;work;mix": 100,
		"cycles (count) prog;main;work;mix;copy_page": 40, "cycles (count) worker;main;main;[libc.so.6]": 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if want := (map[string]int{"Memory_Bound (slots)": 4, "cycles (count)": 4}); !cmp.Equal(all, want) {
		t.Errorf("threads with the samples of all: %v, want %v", all, want)
	}
	if m := f.Meta; m.Product != "./prog 1 2" || m.Format != 66 || !slices.Equal(m.Chosen, []int{4}) ||
		!slices.Equal(m.Categories[1].Subcategories, []string{"Other", "Memory_Bound"}) || len(m.Extra) != 1 || len(m.Extra[0].Entries) != 2 || m.Extra[0].Entries[0].Value != "a note" {
		t.Errorf("description %+v", m)
	}
	row := slices.IndexFunc(f.Shared.FrameTable.Func, func(i int) bool { return f.Shared.StringArray[f.Shared.FuncTable.Name[i]] == "copy_page" })
	if f.Shared.FrameTable.Category[row] != 2 || f.Shared.FrameTable.Line[row] != nil || f.Shared.FuncTable.Source[f.Shared.FrameTable.Func[row]] != nil {
		t.Errorf("copy_page is no code of the kernel without a line: %+v", f.Shared.FrameTable)
	}
}

// TestFirefoxTimes: times are in milliseconds.
func TestFirefoxTimes(t *testing.T) {
	p := &export.Profile{Types: []export.Type{{Name: "task-clock", Unit: "nanoseconds"}}, Duration: math.NaN(),
		Stacks: slices.Values([]*export.Stack{{Values: []float64{2.5e6}}})}
	f := parseFirefox(t, write(t, p, writeFirefox))
	if x := f.Threads[0]; x.Samples.WeightType != "tracing-ms" || x.Samples.Weight[0] != 2.5 || x.ProcessName != "task-clock" || f.path(x.Samples.Stack[0]) != "[unknown]" {
		t.Errorf("thread %+v", x)
	}
}

// TestFirefoxReads has the Firefox Profiler's own code read profiles: that of its command
// line.
func TestFirefoxReads(t *testing.T) {
	tool := filepath.Join(os.Getenv("CYCLESTACK_NODE_MODULES"), ".bin", "profiler-cli")
	if _, err := os.Stat(tool); os.Getenv("CYCLESTACK_NODE_MODULES") == "" || err != nil {
		t.Skip("CYCLESTACK_NODE_MODULES has no @firefox-devtools/profiler-cli")
	}
	for name, p := range map[string]*export.Profile{"program": program(), "hostile": hostileProfile()} {
		home := t.TempDir()
		file := filepath.Join(home, name+".json.gz")
		w, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		format := export.Formats[slices.Index(export.Names(), "firefox")]
		if _, err := format.Save(w, p, file); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for s := range p.Stacks {
			want += s.Values[p.Default]
		}
		var list struct {
			WeightType string
			Functions  []struct {
				NameWithLibrary           string
				SelfSamples, TotalSamples float64
			}
		}
		// Of the thread that is selected first: that of all, of the default type.
		out := firefoxFunctions(t, tool, home, file)
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatalf("%v in %.500s", err, out)
		}
		got, functions := 0.0, map[string][2]float64{}
		for _, x := range list.Functions {
			got += x.SelfSamples
			functions[x.NameWithLibrary] = [2]float64{x.SelfSamples, x.TotalSamples}
		}
		if got != want || list.WeightType != "samples" {
			t.Errorf("%s: %v %s in all, want %v", name, got, list.WeightType, want)
		}
		if name == "program" {
			want := map[string][2]float64{"prog!main": {10, 153}, "prog!mix": {100, 140}, "prog!work": {0, 140}, "[kernel.kallsyms]!copy_page": {40, 40}, "libc.so.6![libc.so.6]": {3, 3}}
			if diff := cmp.Diff(want, functions); diff != "" {
				t.Errorf("functions (-want +got):\n%s", diff)
			}
		}
	}
}

// firefoxFunctions returns the functions that the Firefox Profiler's command line has of a
// profile. The command asks a server. It is started here because the command gives it only half
// a second, and then takes it for dead.
func firefoxFunctions(t testing.TB, tool, home, file string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	for wait := time.Second; wait <= 8*time.Second; wait *= 2 {
		server := exec.Command(tool, "--daemon", file, "--session", "test")
		c := exec.Command(tool, "thread", "functions", "--session", "test", "--include-idle", "--limit", "0", "--json")
		server.Env = append(os.Environ(), "HOME="+home)
		c.Env, c.Stderr = server.Env, &stderr
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		out, err := c.Output()
		server.Process.Signal(os.Interrupt)
		server.Wait()
		if err == nil {
			return out
		}
	}
	t.Fatalf("no functions of %s: %s", file, stderr.Bytes())
	return nil
}
