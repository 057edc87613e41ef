package simulated

import (
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/measure"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/internal/simulation"
	"github.com/cyclestack/cyclestack/internal/testkernel"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/model"
)

// machine is a Skylake server without a PMU, with its caches.
func machine() fstest.MapFS {
	root := testkernel.Intel(85, 2, 1, nil)
	for i, c := range [][4]string{{"1", "Data", "32K", "8"}, {"1", "Instruction", "32K", "8"}, {"2", "Unified", "1024K", "16"}, {"3", "Unified", "16384K", "16"}} {
		dir := "sys/devices/system/cpu/cpu0/cache/index" + string(rune('0'+i)) + "/"
		for k, name := range []string{"level", "type", "size", "ways_of_associativity"} {
			root[dir+name] = &fstest.MapFile{Data: []byte(c[k])}
		}
		root[dir+"coherency_line_size"] = &fstest.MapFile{Data: []byte("64")}
	}
	return root
}

// measurement is one of a program on such a machine.
func measurement(t *testing.T, c resolve.Choice, root fstest.MapFS) *measure.Measurement {
	t.Helper()
	k := testkernel.Kernel{Root: root}
	m, err := measure.New(k.Kernel(), measure.Options{Choice: c, Source: measure.Simulated})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSpool checks that an input without end is not copied without end.
func TestSpool(t *testing.T) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip(err)
	}
	defer zero.Close()
	t.Setenv("TMPDIR", t.TempDir())
	in := &input{file: zero}
	if _, err := in.spool(); err == nil || !strings.Contains(err.Error(), "longer than 64 MB") {
		t.Errorf("error %v", err)
	}
}

// TestPenalties checks where the penalties of a simulation come from.
func TestPenalties(t *testing.T) {
	for _, tt := range []struct {
		stored, given string
		want          float64
	}{
		{"", "", 10}, // another of the processor's methods has it
		{"L2_HIT_PENALTY = 7\n", "", 7},
		{"L2_HIT_PENALTY = 7\n", "8", 8},
	} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		place, err := resolve.PenaltiesFile("GenuineIntel-6-55-4")
		if err != nil {
			t.Fatal(err)
		}
		if tt.stored != "" {
			if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(place, []byte(tt.stored), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var c resolve.Choice
		if tt.given != "" {
			c.Params = []resolve.Param{{Name: "L2_HIT_PENALTY", Value: tt.given}}
		}
		s := &Simulator{m: measurement(t, c, machine())}
		if err := s.Resolve(); err != nil {
			t.Fatal(err)
		}
		if got := s.method.Account.Params()["L2_HIT_PENALTY"]; got != tt.want {
			t.Errorf("stored %q, given %q: %v, want %v", tt.stored, tt.given, got, tt.want)
		}
		if noted := slices.ContainsFunc(s.notes, func(n counts.Note) bool { return n.Fix.Action == counts.Calibrate }); noted != (tt.stored == "") {
			t.Errorf("stored %q: notes %q", tt.stored, s.notes)
		}
	}
}

// TestCaches checks that the caches of the catalogue's processors can be simulated.
func TestCaches(t *testing.T) {
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, cpu := range cat.CPUs() {
		if cpu.Caches == "" {
			continue
		}
		known++
		h, err := simulation.ParseHierarchy(cpu.Caches)
		if err != nil || h.L1D.Size > h.L2.Size || h.L3.Size > 0 && h.L2.Size > h.L3.Size {
			t.Errorf("%s: %v, %v", cpu.Name, h, err)
		}
	}
	if known < 20 {
		t.Errorf("the caches of %d processors are known", known)
	}
	for name, tt := range map[string]struct {
		cpu, cpuinfo string
		silent       bool // Linux does not say what caches there are
		want, note   string
	}{
		"this machine's":        {want: "L3 16 MiB"},
		"skylakex":              {cpu: "skylakex", want: "L2 1 MiB 16-way"},
		"nehalem":               {cpu: "nehalem", want: "L2 256 KiB"},
		"unknown caches":        {cpu: "neoverse-n2-r0p3", want: simulation.Typical().String(), note: "the caches of neoverse-n2-r0p3 are not known: typical ones"},
		"machine says nothing":  {silent: true, want: "L2 1 MiB 16-way", note: "does not say what caches it has: those of most skylakex"},
		"machine is not known":  {silent: true, cpuinfo: "vendor_id : GenuineIntel\ncpu family : 99\nmodel : 1\n", want: simulation.Typical().String(), note: "does not say what caches it has: typical ones"},
		"nehalem, says nothing": {cpu: "nehalem", silent: true, want: "L2 256 KiB"},
	} {
		root := machine()
		if tt.silent {
			maps.DeleteFunc(root, func(name string, _ *fstest.MapFile) bool { return strings.Contains(name, "/cache/") })
		}
		if tt.cpuinfo != "" {
			root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte(tt.cpuinfo)}
		}
		m := measurement(t, resolve.Choice{CPU: tt.cpu}, root)
		if h, note, err := cachesOf(m, ""); err != nil || !strings.Contains(h.String(), tt.want) || !strings.Contains(note.Text, tt.note) || (note.Text != "") != (tt.note != "") {
			t.Errorf("%s: %v, note %q, %v; want %s, note %q", name, h, note, err, tt.want, tt.note)
		}
	}
}

// TestSelfTimed says that a program which reads the clock does less in the simulator. The first run
// of one for another processor is in the simulator as well, and says nothing.
func TestSelfTimed(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil || cmd.ProcessState.UserTime() < 20*time.Millisecond {
		t.Skip("the shell has no processor time to compare: ", err, cmd.ProcessState)
	}
	s := &Simulator{m: measurement(t, resolve.Choice{Params: []resolve.Param{{Name: clockParameter, Value: "1e9"}}}, machine()), state: cmd.ProcessState, result: &simulation.Result{Timed: true}}
	if err := s.Resolve(); err != nil {
		t.Fatal(err)
	}
	table := counts.NewTable(&counts.Layout{Columns: []counts.Column{{Event: "Ct"}}, Scopes: []counts.Scope{{Kind: counts.Run}}})
	table.Cell(0, 0).Value = 1000
	if note := s.selfTimed(table); !strings.Contains(note.Text, "does less") {
		t.Errorf("note %q, want that the program does less", note.Text)
	}
	s.foreign = true
	if note := s.selfTimed(table); note.Text != "" {
		t.Errorf("note %q of a program for another processor", note.Text)
	}
}

// TestUnexplained: an account that lacks much of what the run took says so.
func TestUnexplained(t *testing.T) {
	method, err := account.Load("generic", resolve.SimulatedModel, account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}}
	a := method.Bind(l).Evaluate(counts.NewTable(l), account.Place{}, nil)
	node, _ := a.Node("Unaccounted")
	for _, tt := range []struct {
		value float64
		want  string
	}{{0.5, "does not explain 50 % of what"}, {0.2, ""}, {-0.2, ""}, {-1, "explains 100 % more than"}, {math.NaN(), ""}} {
		a.Nodes[node].Value, a.Notes = tt.value, nil
		unexplained(a)
		if got := strings.Join(counts.Texts(a.Notes), "; "); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", tt.value, got, tt.want)
		}
	}
}

// TestInput checks what a program reads that runs again.
func TestInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte("skipped\nread\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(8, 0); err != nil {
		t.Fatal(err)
	}
	in := &input{file: f}
	if !in.again() {
		t.Error("a file cannot be read again")
	}
	read := func(f *os.File) string {
		b := make([]byte, 100)
		n, _ := f.Read(b)
		return string(b[:n])
	}
	if first := read(f); first != "read\n" {
		t.Errorf("read %q", first)
	}
	restore := in.keep()
	for range 2 {
		again, err := in.rewind()
		if err != nil {
			t.Fatal(err)
		}
		if got := read(again); got != "read\n" {
			t.Errorf("read %q again", got)
		}
	}
	if _, err := in.rewind(); err != nil {
		t.Error(err)
	}
	restore()
	if rest := read(f); rest != "" {
		t.Errorf("after the program there is %q to be read", rest)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("piped\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	in = &input{file: r}
	if in.again() {
		t.Error("a pipe can be read again")
	}
	spooled, err := in.spool()
	if err != nil {
		t.Fatal(err)
	}
	defer spooled.Close()
	if got := read(spooled); got != "piped\n" {
		t.Errorf("spooled %q", got)
	}
	if again, err := in.rewind(); err != nil || read(again) != "piped\n" {
		t.Errorf("read again: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	in = &input{file: null}
	if f, err := in.rewind(); !in.again() || f != nil || err != nil {
		t.Errorf("of %s: %v, %v", os.DevNull, f, err)
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{1400 * time.Millisecond: "1.4 s", 6 * time.Second: "6 s", 22 * time.Second: "22 s", 42 * time.Second: "40 s", 100 * time.Second: "1.5 minutes", 116 * time.Second: "2 minutes", 5 * time.Minute: "5 minutes", 50 * time.Minute: "50 minutes", 3 * time.Hour: "3 hours"} {
		if got := Roughly(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
