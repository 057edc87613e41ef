package model

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

func embeddedCatalogue(t testing.TB) *Catalogue {
	t.Helper()
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestCPU(t *testing.T) {
	cat := embeddedCatalogue(t)
	for query, want := range map[string]string{
		"GenuineIntel-6-F":                  "core2",
		"GenuineIntel-6-F-B":                "core2",
		"GenuineIntel-6-16-1":               "core2",
		"GenuineIntel-6-17-A":               "core2",
		"GenuineIntel-6-1D-1":               "core2",
		"GenuineIntel-6-1A-5":               "nehalemep",
		"GenuineIntel-6-2A-7":               "sandybridge",
		"GenuineIntel-6-3E-4":               "ivytown",
		"GenuineIntel-6-55-0":               "skylakex",
		"GenuineIntel-6-55-4":               "skylakex",
		"GenuineIntel-6-55-5":               "cascadelakex",
		"GenuineIntel-6-55-7":               "cascadelakex",
		"GenuineIntel-6-55-B":               "cascadelakex",
		"genuineintel-6-55-b":               "cascadelakex",
		"GenuineIntel-6-8F-8":               "sapphirerapids",
		"GenuineIntel-6-97-2:core":          "alderlake:core",
		"GenuineIntel-6-97:atom":            "alderlake:atom",
		"GenuineIntel-6-BE-0":               "alderlaken",
		"GenuineIntel-6-C5-2:lowpower":      "arrowlake:lowpower",
		"GenuineIntel-6-C6-2:core":          "arrowlake:core",
		"GenuineIntel-18-1-0:atom":          "novalake:atom",
		"AuthenticAMD-23-1-1":               "amdzen1",
		"AuthenticAMD-23-18-1":              "amdzen1",
		"HygonGenuine-24-1-1":               "amdzen1",
		"AuthenticAMD-23-31-0":              "amdzen2",
		"AuthenticAMD-23-71":                "amdzen2",
		"AuthenticAMD-25-1-1":               "amdzen3",
		"AuthenticAMD-25-21-0":              "amdzen3",
		"AuthenticAMD-25-11":                "amdzen4",
		"AuthenticAMD-25-11-1":              "amdzen4",
		"AuthenticAMD-25-61-2":              "amdzen4",
		"AuthenticAMD-26-2-1":               "amdzen5",
		"AuthenticAMD-26-44-0":              "amdzen5",
		"AuthenticAMD-26-50-0":              "amdzen6",
		"0x00000000410fd0c0":                "neoverse-n1",
		"0x00000000413fd0c1":                "neoverse-n1",
		"410fd0c0":                          "neoverse-n1",
		"0x410FD0C0":                        "neoverse-n1",
		"0x00000000410fd490":                "neoverse-n2",
		"0x00000000410fd492":                "neoverse-n2",
		"0x00000000410fd493":                "neoverse-n2-r0p3",
		"0x00000000411fd490":                "neoverse-n2-r0p3",
		"0x000000006d0fd490":                "neoverse-n2",
		"0x00000000410fd4f1":                "neoverse-v2",
		"0x003f0203":                        "power7",
		"0x004a0201":                        "power7",
		"0x004d0200":                        "power8",
		"004d0200":                          "power8",
		"0x004e1202":                        "power9",
		"0x00800200":                        "power10",
		"0x00820200":                        "power11",
		"0x489-0x8000000000000007-0x4210":   "sifive-bullet",
		"0x489-0x8000000000000407-0xd0":     "sifive-bullet-0d",
		"0x5b7-0x0-0x0":                     "thead-c900",
		"0x710-0x8000000058000001-0x100000": "riscv",
		"skylakex":                          "skylakex",
		" SkylakeX ":                        "skylakex",
		"SKX":                               "skylakex",
		"snb-ep":                            "jaketown",
		"alderlake:core":                    "alderlake:core",
		"ADL:Atom":                          "alderlake:atom",
		"raptorlake:core":                   "alderlake:core",
		"gracemont":                         "alderlake:atom",
		"goldencove":                        "alderlake:core",
		"sapphirerapidshbm":                 "sapphirerapidshbm",
		"zen4":                              "amdzen4",
		"n2":                                "neoverse-n2",
		"power7":                            "power7",
		"generic":                           "generic",
	} {
		p, err := cat.CPU(query)
		if err != nil {
			t.Errorf("CPU(%q): %v", query, err)
		} else if p.Name != want {
			t.Errorf("CPU(%q) = %s, want %s", query, p.Name, want)
		}
	}
}

func TestCPUErrors(t *testing.T) {
	cat := embeddedCatalogue(t)
	for query, want := range map[string]string{
		"":                         `unknown processor ""`,
		"skylakx":                  `unknown processor "skylakx"; did you mean skylake or skylakex?`,
		"alderlak:core":            `unknown processor "alderlak:core"; did you mean alderlake:core or alderlaken?`,
		"power6":                   `unknown processor "power6"; did you mean power7, power8 or power9?`,
		"GenuineIntel-6-55":        `unknown processor "GenuineIntel-6-55": its stepping decides, as in GenuineIntel-6-55-4; did you mean skylakex or cascadelakex?`,
		"GenuineIntel-6-FF-1":      `unknown processor "GenuineIntel-6-FF-1": no processor of the catalogue has this identification; generic stands for any, with the kernel's generic events`,
		"0x00000000490fd0c0":       `unknown processor "0x00000000490fd0c0": no processor of the catalogue has this identification; generic stands for any, with the kernel's generic events`,
		"alderlake":                `"alderlake" is a hybrid processor with an account for each core type: write alderlake:core or alderlake:atom`,
		"GenuineIntel-6-97-2":      `"GenuineIntel-6-97-2" is a hybrid processor with an account for each core type: write GenuineIntel-6-97-2:core or GenuineIntel-6-97-2:atom`,
		"arl":                      `"arl" is a hybrid processor with an account for each core type: write arl:core, arl:atom or arl:lowpower`,
		"GenuineIntel-6-C6-2":      `"GenuineIntel-6-C6-2" is a hybrid processor with an account for each core type: write GenuineIntel-6-C6-2:core or GenuineIntel-6-C6-2:atom`,
		"alderlake:small":          `processor "alderlake:small" has no core type "small": write alderlake:core or alderlake:atom`,
		"skylakex:core":            `unknown processor "skylakex:core": it has one type of core; did you mean skylakex?`,
		strings.Repeat("x", 10000): `unknown processor "` + strings.Repeat("x", 80) + `…"`,
	} {
		p, err := cat.CPU(query)
		if err == nil {
			t.Errorf("CPU(%q) = %s", query, p.Name)
		} else if err.Error() != want {
			t.Errorf("CPU(%q):\n got %v\nwant %v", query, err, want)
		}
	}
	var hybrid *CoreTypeError
	if _, err := cat.CPU("lunarlake"); !errors.As(err, &hybrid) || len(hybrid.Choices) != 2 {
		t.Errorf("CPU(lunarlake): %#v", err)
	}
	var unknown *UnknownCPUError
	if _, err := cat.CPU("lunarlanding"); !errors.As(err, &unknown) {
		t.Errorf("CPU(lunarlanding): %#v", err)
	}
}

// TestEmbeddedCPUs checks the embedded list: patterns that compile, names and aliases that lead
// to their processor, and no identification pattern hidden by an earlier one.
func TestEmbeddedCPUs(t *testing.T) {
	cat := embeddedCatalogue(t)
	if err := cat.lib.checkIDs(); err != nil {
		t.Error(err)
	}
	for _, p := range cat.CPUs() {
		for _, name := range append([]string{p.base()}, p.Aliases...) {
			query := name
			if p.CoreType != "" {
				query += ":" + p.CoreType
			}
			if got, err := cat.CPU(query); err != nil || got != p {
				t.Errorf("CPU(%q) = %v, %v, want %s", query, got, err, p.Name)
			}
		}
		if p.Title == "" || len(p.PMUs) == 0 {
			t.Errorf("%s: title and pmus are wanted", p.Name)
		}
	}
}

func TestMatchID(t *testing.T) {
	intel, arm, power := &CPU{Layout: "intel"}, &CPU{Layout: "arm"}, &CPU{Layout: "power"}
	tests := []struct {
		cpu         *CPU
		pattern, id string
		want        bool
	}{
		{intel, "GenuineIntel-6-55-[01234]", "GenuineIntel-6-55-4", true},
		{intel, "GenuineIntel-6-55-[01234]", "GenuineIntel-6-55", false},
		{intel, "GenuineIntel-6-55-[01234]", "GenuineIntel-6-55-44", false},
		{intel, "GenuineIntel-6-(97|9A)", "GenuineIntel-6-9A-3", true},
		{intel, "GenuineIntel-6-(97|9A)", "GenuineIntel-6-9A", true},
		{intel, "GenuineIntel-6-(97|9A)", "GenuineIntel-6-9AA", false},
		{intel, "GenuineIntel-6-F", "GenuineIntel-6-FF", false},
		{intel, "GenuineIntel-6-F", "xGenuineIntel-6-F", false},
		{intel, "A-1-2|GenuineIntel-6-F", "GenuineIntel-6-F", true},
		{intel, "GenuineIntel-6-5?F", "GenuineIntel-6-F", true},
		{intel, "GenuineIntel-6-(", "GenuineIntel-6-1", false},
		{intel, "AuthenticAMD-25-[0-9A-F]+", "AuthenticAMD-25-11-1", true},
		{arm, "0x00000000410fd490", "0x00000000413fd491", true},
		{arm, "0x410fd493", "0x00000000410fd492", false},
		{arm, "0x410fd493", "0x00000000410fd493", true},
		{arm, "0x411fd493", "0x00000000412fd490", true},
		{arm, "0x411fd493", "0x00000000411fd492", false},
		{arm, "0x410fd493", "0x00000000410fd4f3", false},
		{arm, "0x410fd490", "neoverse-n2", false},
		{arm, "neoverse-n2", "0x410fd490", false},
		{power, "0x004[bcd][0-9a-f]{4}", "4d0200", true},
		{power, "0x004[bcd][0-9a-f]{4}", "0x4D0200", true},
		{power, "0x004[bcd][0-9a-f]{4}", "0x00000000004d0200", true},
		{power, "0x004[bcd][0-9a-f]{4}", "0x1004d0200", false},
	}
	for _, tt := range tests {
		if got := matchID(tt.cpu.Layout, tt.pattern, tt.id); got != tt.want {
			t.Errorf("%s: MatchID(%q, %q) = %v", tt.cpu.Layout, tt.pattern, tt.id, got)
		}
	}
}

func TestCPUFileErrors(t *testing.T) {
	tests := []struct{ toml, want string }{
		{"name = 1\n", `cpus.toml:1: unknown key "name"`},
		{"[[cpu]]\nname = 1\nlayout = \"arm\"\nthreads = 1\n", `cpus.toml:2: key "name" in "cpu": want a string`},
		{"[[cpu]]\nname = \"x\"\n\ncolour = \"red\"\n", `cpus.toml:4: unknown key "colour" in "cpu"`},
		{"[[cpu]]\nname = \"x\"\nlayout = \"m68k\"\nthreads = 1\n", `cpus.toml:1: processor x: layout "m68k" is not one of`},
		{"[[cpu]]\nname = \"x\"\nlayout = \"arm\"\n", `cpus.toml:1: processor x: threads = 0`},
		{"[[cpu]]\nname = \"X\"\nlayout = \"arm\"\nthreads=1\n", `the name "X" is not made of lower-case`},
		{"[[cpu]]\nname = \"x:core\"\nlayout = \"arm\"\nthreads=1\n", `the core type of a hybrid processor`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\n[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\n", `cpus.toml:5: processor x: there is one already`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\n[[cpu]]\nname=\"y\"\naliases=[\"x\"]\nlayout=\"arm\"\nthreads=1\n", `cpus.toml:5: processor y: "x" is a name of x already`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nwidth=-1\n", `width = -1`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nwidth=1.5\n", `key "width" in "cpu": want an integer`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nids=[1]\n", `key "ids" in "cpu": want a list of strings`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nparams={A=\"b\"}\n", `key "params" in "cpu": want an inline table of numbers`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nparams={A=nan}\n", `params: "A" = NaN`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\npmus=[\"[\"]\n", `pmus: "[": syntax error in pattern`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"intel\"\nthreads=1\nids=[\"(\"]\n", `processor x: ids: "(": error parsing regexp`},
		{"[[cpu]]\nname=\"x\"\nlayout=\"arm\"\nthreads=1\nids=[\"0x41[0-9]\"]\n", `processor x: ids: "0x41[0-9]"`},
		{"[[cpu]]\nname = \"x\n", `cpus.toml:2: `},
		{"[[cpu]]\nname = \"x\"\n[cpu.sub]\na = 1\n", `cpus.toml:3: table "cpu": lists of tables are written [[cpu]]`},
	}
	for _, tt := range tests {
		_, err := Load(fstest.MapFS{"cpus.toml": {Data: []byte(tt.toml)}})
		if !slices.ContainsFunc(asFaults(err), func(e *Error) bool { return strings.Contains(e.Error(), tt.want) }) {
			t.Errorf("%q: %v, want %q", tt.toml, err, tt.want)
		}
	}
	if _, err := Load(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without cpus.toml: %v", err)
	}
}

// A mapRow is a line of a map file: the folder of events for an identification
// and a core type.
type mapRow struct{ pattern, folder, coreType string }

// lookup returns the first row that an identification matches, as perf does.
func lookup(rows []mapRow, layout, id, coreType string) (mapRow, bool) {
	for _, row := range rows {
		if row.coreType == coreType && matchID(layout, row.pattern, id) {
			return row, true
		}
	}
	return mapRow{}, false
}

// checkMapfile checks the catalogue against a map file, both ways: the processor that a
// pattern of the file matches must agree with the row. The same holds for the catalogue's
// patterns, as far as the file has them.
func checkMapfile(t *testing.T, cat *Catalogue, rows []mapRow, layouts []string, agree func(p *CPU, row mapRow) bool) {
	t.Helper()
	checked := 0
	check := func(layout, id, coreType string) {
		row, ok := lookup(rows, layout, id, coreType)
		if !ok {
			return
		}
		checked++
		query := id
		if coreType != "" {
			query += ":" + coreType
		}
		p, err := cat.CPU(query)
		var hybrid *CoreTypeError
		if errors.As(err, &hybrid) { // the file does not tell core types apart
			p, err = cat.CPU(hybrid.Choices[0])
		}
		if err != nil {
			t.Errorf("%s: %v", query, err)
		} else if !agree(p, row) {
			t.Errorf("%s is %s, the list has %s", query, p.Name, row.folder)
		}
	}
	for _, row := range rows {
		for _, id := range instances(row.pattern) {
			check(layouts[0], id, row.coreType)
		}
	}
	if checked < len(rows) {
		t.Errorf("%d identifications were checked, with %d rows", checked, len(rows))
	}
	hasTypes := slices.ContainsFunc(rows, func(row mapRow) bool { return row.coreType != "" })
	for _, p := range cat.CPUs() {
		if !slices.Contains(layouts, p.Layout) {
			continue
		}
		coreType := ""
		if hasTypes {
			coreType = p.CoreType
		}
		for _, pattern := range p.IDs {
			for _, id := range instances(pattern) {
				check(p.Layout, id, coreType)
			}
		}
	}
}

// TestIntelMapfile: the catalogue agrees with Intel's list of event files. It has no other
// Intel processor, except those known to be missing.
func TestIntelMapfile(t *testing.T) {
	cat := embeddedCatalogue(t)
	coreTypes := map[string]string{"": "", "Core": "core", "Atom": "atom", "LowPower_Atom": "lowpower"}
	var rows []mapRow
	for _, row := range readMapfile(t, testshared.Dir(t, "data", "intel-perfmon", "mapfile.csv")) {
		if row[3] == "core" || row[3] == "hybridcore" {
			rows = append(rows, mapRow{row[0], strings.Split(row[2], "/")[1], coreTypes[row[6]]})
		}
	}
	seen := map[string]bool{}
	checkMapfile(t, cat, rows, []string{"intel"}, func(p *CPU, row mapRow) bool {
		seen[p.Name] = true
		folder, _, _ := strings.Cut(p.Events, ":")
		return folder == row.folder
	})
	for _, p := range cat.CPUs() {
		if p.Vendor == "intel" && !seen[p.Name] && p.Name != "core2" && p.Name != "sapphirerapidshbm" {
			t.Errorf("%s is in no row", p.Name)
		}
	}
}

// TestLinuxMapfiles: the catalogue agrees with Linux's lists of event folders,
// whose names its processors have.
func TestLinuxMapfiles(t *testing.T) {
	cat := embeddedCatalogue(t)
	dir := testshared.Dir(t, "data", "reference-only", "linux-pmu-events", "7.3")
	// Folders that stand for several processors of the catalogue, or are called
	// differently.
	other := map[string][]string{
		"arm/cortex-a57-a72": {"cortex-a57", "cortex-a72"},
		"arm/cortex-a65-e1":  {"cortex-a65", "neoverse-e1"},
		"arm/neoverse-n2-v2": {"neoverse-n2", "neoverse-n2-r0p3", "neoverse-v2"},
		"hisilicon/hip08":    {"kunpeng920"},
		"nvidia/t410":        {"olympus"},
		"sifive/bullet":      {"sifive-bullet"},
		"sifive/bullet-07":   {"sifive-bullet-07"},
		"sifive/bullet-0d":   {"sifive-bullet-0d"},
		"sifive/p550":        {"sifive-p550"},
		"sifive/p650":        {"sifive-p650"},
		"thead/c900-legacy":  {"thead-c900"},
		"starfive/dubhe-80":  {"starfive-dubhe-80"},
		"andes/ax45":         {"andes-ax45"},
		"power10":            {"power10", "power11"},
	}
	for arch, layouts := range map[string][]string{"x86": {"intel", "amd"}, "arm64": {"arm"}, "powerpc": {"power"}, "riscv": {"riscv"}} {
		var rows []mapRow
		for _, row := range readMapfile(t, filepath.Join(dir, arch, "mapfile.csv")) {
			if row[2] != "compat" { // no processor, but a mode of several
				rows = append(rows, mapRow{strings.ReplaceAll(row[0], "[[:xdigit:]]", "[0-9a-f]"), row[2], ""})
			}
		}
		checkMapfile(t, cat, rows, layouts, func(p *CPU, row mapRow) bool {
			if names, ok := other[row.folder]; ok {
				return slices.Contains(names, p.base())
			}
			return p.base() == row.folder[strings.LastIndexByte(row.folder, '/')+1:]
		})
	}
}

// TestArmTelemetry: every MIDR in the mapping of Arm's telemetry data leads to
// the core of that name, at that revision.
func TestArmTelemetry(t *testing.T) {
	cat := embeddedCatalogue(t)
	data, err := os.ReadFile(testshared.Dir(t, "data", "arm-telemetry", "mapping.json"))
	if err != nil {
		t.Fatal(err)
	}
	var mapping map[string]struct{ Name string }
	if err := json.Unmarshal(data, &mapping); err != nil {
		t.Fatal(err)
	}
	for id, entry := range mapping {
		if len(id) == len("0x41d0c") { // implementer and part
			id = id[:4] + "0f" + id[4:] + "0"
		}
		core, revision, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(entry.Name, "arm_"), "_pmu"), "_r")
		want := strings.ReplaceAll(core, "_", "-")
		if want == "neoverse-n2" && revision == "0p3" {
			want = "neoverse-n2-r0p3"
		}
		if p, err := cat.CPU(id); err != nil || p.Name != want {
			t.Errorf("CPU(%q) = %v, %v, want %s", id, p, err, want)
		}
	}
}

func readMapfile(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 6 {
		t.Fatalf("%s has %d rows", name, len(rows))
	}
	if strings.HasPrefix(rows[0][0], "Family-model") {
		rows = rows[1:]
	}
	return rows
}

// instances returns identifications that a pattern of a map file stands for:
// with every alternative and every member of a class, and with one and two
// members for any number of them.
func instances(pattern string) []string {
	pattern = strings.ReplaceAll(pattern, "[0-9a-f]{4}", "0203")
	out := []string{""}
	for pattern != "" {
		var choices []string
		choices, pattern = nextChoices(pattern)
		var longer []string
		for _, prefix := range out {
			for _, c := range choices {
				longer = append(longer, prefix+c)
			}
		}
		out = longer
	}
	return out
}

// nextChoices splits the first part off a pattern: a character, a class, or a
// group of alternatives.
func nextChoices(pattern string) (choices []string, rest string) {
	switch pattern[0] {
	case '(':
		end := strings.IndexByte(pattern, ')')
		for _, alternative := range strings.Split(pattern[1:end], "|") {
			choices = append(choices, instances(alternative)...)
		}
		return choices, pattern[end+1:]
	case '[':
		end := strings.IndexByte(pattern, ']')
		for class := pattern[1:end]; class != ""; class = class[1:] {
			first, last := class[0], class[0]
			if len(class) >= 3 && class[1] == '-' {
				last = class[2]
				class = class[2:]
			}
			for c := int(first); c <= int(last); c++ {
				choices = append(choices, string(rune(c)))
			}
		}
		rest, repeated := strings.CutPrefix(pattern[end+1:], "+")
		if repeated {
			for _, c := range slices.Clone(choices) {
				choices = append(choices, c+"0", "1"+c)
			}
		}
		return choices, rest
	}
	return []string{pattern[:1]}, pattern[1:]
}

func FuzzCPU(f *testing.F) {
	for _, s := range []string{
		"GenuineIntel-6-55-4", "AuthenticAMD-25-11", "0x00000000410fd0c0", "410fd0c0", "0x004d0200", "skylakex", "alderlake:core",
		"GenuineIntel-6-97-2:core", "GenuineIntel-6-55", "alderlake", "0x489-0x8000000000000007-0x0", "skylakx", ":", "a:b:c", "----", "",
	} {
		f.Add(s)
	}
	cat, err := Embedded()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := cat.CPU(s)
		switch {
		case err == nil && p == nil:
			t.Fatalf("CPU(%q): neither a processor nor an error", s)
		case err != nil && len(err.Error()) > 1000:
			t.Fatalf("CPU(%q): an error of %d bytes", s, len(err.Error()))
		}
		var hybrid *CoreTypeError
		if errors.As(err, &hybrid) {
			for _, choice := range hybrid.Choices {
				if _, err := cat.CPU(choice); err != nil {
					t.Fatalf("CPU(%q) proposes %q: %v", s, choice, err)
				}
			}
		}
	})
}

func BenchmarkCPU(b *testing.B) {
	cat := embeddedCatalogue(b)
	for _, id := range []string{"GenuineIntel-6-55-7", "0x00000000410fd4f0", "skx"} {
		b.Run(id, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cat.CPU(id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
